//! The requests to X: a guest token, a post in two ways, and the files of a video.

use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use transcript_core::video::VideoId;
use url::Url;

use super::{options::XOptions, syndication};
use crate::{
    http::{HttpRequest, parse_constant},
    social::{BROWSER, headers},
};

/// The platform's name in the transport, for the API's hosts.
pub(crate) const PLATFORM: &str = "x.com";
const API: &[&str] = &[PLATFORM, "api.x.com"];
/// The syndication service, a separate platform in the transport, since X throttles it separately.
pub(super) const SYNDICATION: &[&str] = &["cdn.syndication.twimg.com"];
/// The host of videos and their captions.
pub(crate) const VIDEO: &[&str] = &["video.twimg.com"];

/// Authorization of X's own pages: the same for every visitor of the site.
const BEARER: &str = "Bearer AAAAAAAAAAAAAAAAAAAAANRILgAAAAAAnNwIzUejRCOuH5E6I8xnZz4puTs%3D1Zv7ttfk8LF81IUq16c\
                      HjhLTvJu4FA33AGWWjCpTnA";

/// Maximum lengths of responses.
///
/// A post has 5 to 30 KB, a playlist 1 to 5 KB, captions a few KB per minute.
const TOKEN_MAX: usize = 64 << 10;
const POST_MAX: usize = 4 << 20;
const FILE_MAX: usize = 10 << 20;

/// The request for a guest token.
pub(super) fn activate() -> HttpRequest {
    let url = parse_constant("https://api.x.com/1.1/guest/activate.json");
    HttpRequest { method: Method::POST, ..HttpRequest::get(url, API, api_headers(None), TOKEN_MAX) }
}

/// The request for a post with this guest token.
pub(super) fn post(video: &VideoId, token: &str, options: &XOptions) -> HttpRequest {
    let mut url = parse_constant("https://x.com/i/api/graphql/");
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push(&options.query_id).push("TweetResultByRestId");
    }
    let variables = json!({
        "tweetId": video.id(),
        "withCommunity": false,
        "includePromotedContent": false,
        "withVoice": false,
    });
    let features = options.features.iter().map(|(name, on)| (name.clone(), Value::Bool(*on)));
    let features = Value::Object(features.collect::<Map<_, _>>());
    url.query_pairs_mut()
        .append_pair("variables", &variables.to_string())
        .append_pair("features", &features.to_string())
        .append_pair("fieldToggles", "{\"withArticleRichContentState\":false}");
    HttpRequest::get(url, API, api_headers(Some(token)), POST_MAX)
}

/// The request for a post to the syndication service, which needs no guest token.
pub(super) fn syndicated(video: &VideoId) -> HttpRequest {
    let mut url = parse_constant("https://cdn.syndication.twimg.com/tweet-result");
    url.query_pairs_mut()
        .append_pair("id", video.id())
        .append_pair("lang", "en")
        .append_pair("token", &syndication::token(video.id()));
    let headers =
        headers(&[("user-agent", BROWSER), ("accept", "application/json"), ("accept-language", "en")]);
    HttpRequest::get(url, SYNDICATION, headers, POST_MAX)
}

/// The request for a playlist or captions.
pub(super) fn file(url: Url) -> HttpRequest {
    HttpRequest::get(url, VIDEO, file_headers(), FILE_MAX)
}

/// The headers of a file request.
pub(super) fn file_headers() -> HeaderMap {
    headers(&[("user-agent", BROWSER), ("accept", "*/*"), ("referer", "https://x.com/")])
}

fn api_headers(token: Option<&str>) -> HeaderMap {
    let mut headers = headers(&[
        ("user-agent", BROWSER),
        ("accept", "*/*"),
        ("accept-language", "en"),
        ("authorization", BEARER),
        ("content-type", "application/json"),
        ("x-twitter-active-user", "yes"),
        // Some failures can be recognized by their English messages only.
        ("x-twitter-client-language", "en"),
    ]);
    if let Some(token) = token {
        headers.extend(self::headers(&[("x-guest-token", token)]));
    }
    headers
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    #[test]
    fn post_request_has_query_parameters() {
        let video = VideoId::new(Platform::X, "1585341984679469056").unwrap();
        let request = post(&video, "77", &XOptions::new(Some("Qq-1"), Some(&["a", "b=false"])).unwrap());
        assert_eq!(request.url.path(), "/i/api/graphql/Qq-1/TweetResultByRestId");
        let query: std::collections::BTreeMap<_, _> = request.url.query_pairs().collect();
        let variables: Value = serde_json::from_str(&query["variables"]).unwrap();
        assert_eq!(variables["tweetId"], "1585341984679469056");
        assert_eq!(query["features"], "{\"a\":true,\"b\":false}");
        assert_eq!(request.headers["x-guest-token"], "77");
        assert!(request.headers["authorization"].to_str().unwrap().starts_with("Bearer AAAA"));
        let request = syndicated(&video);
        assert!(request.url.as_str().ends_with("?id=1585341984679469056&lang=en&token=3uchycv2wqc"));
        assert!(!request.headers.contains_key("authorization"));
        assert_eq!(activate().method, Method::POST);
    }
}
