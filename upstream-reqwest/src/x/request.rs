//! What X is asked: for a guest's pass, for a post in two ways, and for the files of a video.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use transcript_core::video::VideoId;
use url::Url;

use super::{options::XOptions, syndication};
use crate::{
    http::Request,
    social::{BROWSER, headers},
};

/// The platform that the API's hosts belong to, as the transport tells platforms apart.
pub(crate) const PLATFORM: &str = "x.com";
const API: &[&str] = &[PLATFORM, "api.x.com"];
/// The service for pages that show a post: another platform to the transport, since X throttles it apart.
pub(super) const SYNDICATION: &[&str] = &["cdn.syndication.twimg.com"];
/// The host of videos and their captions.
pub(crate) const VIDEO: &[&str] = &["video.twimg.com"];

/// What X's own pages give as their right to ask: the same for every visitor of the site.
const BEARER: &str = "Bearer AAAAAAAAAAAAAAAAAAAAANRILgAAAAAAnNwIzUejRCOuH5E6I8xnZz4puTs%3D1Zv7ttfk8LF81IUq16c\
                      HjhLTvJu4FA33AGWWjCpTnA";

/// The longest answers that are read. A post has 5 to 30 KB, a playlist 1 to 5 KB, captions some KB a minute.
const PASS_MAX: usize = 64 << 10;
const POST_MAX: usize = 4 << 20;
const FILE_MAX: usize = 10 << 20;

/// The question for a guest's pass.
pub(super) fn activate() -> Request {
    let url = fixed("https://api.x.com/1.1/guest/activate.json");
    Request { method: Method::POST, ..request(url, API, api_headers(None), PASS_MAX) }
}

/// The question for a post, as a guest with this pass.
pub(super) fn post(video: &VideoId, token: &str, options: &XOptions) -> Request {
    let mut url = fixed("https://x.com/i/api/graphql/");
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
    request(url, API, api_headers(Some(token)), POST_MAX)
}

/// The question for a post to the service for other sites' pages, which wants no pass.
pub(super) fn syndicated(video: &VideoId) -> Request {
    let mut url = fixed("https://cdn.syndication.twimg.com/tweet-result");
    url.query_pairs_mut()
        .append_pair("id", video.id())
        .append_pair("lang", "en")
        .append_pair("token", &syndication::token(video.id()));
    let headers =
        headers(&[("user-agent", BROWSER), ("accept", "application/json"), ("accept-language", "en")]);
    request(url, SYNDICATION, headers, POST_MAX)
}

/// The question for a playlist or captions.
pub(super) fn file(url: Url) -> Request {
    request(url, VIDEO, file_headers(), FILE_MAX)
}

/// What a request for a file says of who asks.
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
        // Some failures can only be told by their sentences.
        ("x-twitter-client-language", "en"),
    ]);
    if let Some(token) = token {
        headers.extend(self::headers(&[("x-guest-token", token)]));
    }
    headers
}

fn request(url: Url, hosts: &'static [&'static str], headers: HeaderMap, answer_max: usize) -> Request {
    Request {
        method: Method::GET,
        url,
        hosts,
        headers,
        body: Bytes::new(),
        answer_max,
        throttled_apart: false,
    }
}

fn fixed(address: &'static str) -> Url {
    Url::parse(address).expect("invariant: a constant of this file is an address")
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    #[test]
    fn a_post_is_asked_for_with_all_that_the_query_wants() {
        let video = VideoId::new(Platform::Microblog, "1585341984679469056").unwrap();
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
