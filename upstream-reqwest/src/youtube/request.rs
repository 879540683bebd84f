//! The two requests: a video's player data, and the captions of a track.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Map, Value, json};
use transcript_core::video::VideoId;
use url::Url;

use super::{clients::ClientIdentity, tracks::TrackFormat};
use crate::http::{HttpRequest, parse_constant};

/// The hosts of this supplier. YouTube's caption URLs are on no other host.
pub(crate) const HOSTS: &[&str] = &[PLATFORM];
/// The platform's name in the transport.
pub(crate) const PLATFORM: &str = "www.youtube.com";
const ORIGIN: &str = "https://www.youtube.com";
const PLAYER: &str = "https://www.youtube.com/youtubei/v1/player?prettyPrint=false";

/// Maximum lengths of responses.
///
/// Player data has 2 to 400 KB; captions have about 16 KB per minute of speech, so this suffices for 24 hours.
const PLAYER_MAX: usize = 8 << 20;
const CAPTIONS_MAX: usize = 32 << 20;

/// The request for a video's player data, as this client.
///
/// `visitor` is the visitor id of an earlier response, if any. The language is English because some failures can be
/// recognized by their sentences only.
pub(super) fn player(client: &ClientIdentity, video: &VideoId, visitor: Option<&str>) -> HttpRequest {
    let fields = [
        ("videoId", Value::from(video.id())),
        // Skips the content warnings of some videos.
        ("contentCheckOk", true.into()),
        ("racyCheckOk", true.into()),
    ];
    post(client, PLAYER, visitor, fields)
}

/// A request to an endpoint of YouTube's clients, with these fields in its body.
pub(super) fn post<const N: usize>(
    client: &ClientIdentity,
    endpoint: &'static str,
    visitor: Option<&str>,
    fields: [(&str, Value); N],
) -> HttpRequest {
    let mut headers = headers(client);
    insert(&mut headers, header::CONTENT_TYPE, "application/json");
    insert(&mut headers, header::ORIGIN, ORIGIN);
    insert(&mut headers, HeaderName::from_static("x-youtube-client-name"), &client.number().to_string());
    insert(&mut headers, HeaderName::from_static("x-youtube-client-version"), client.version());
    if let Some(visitor) = visitor {
        insert(&mut headers, HeaderName::from_static("x-goog-visitor-id"), visitor);
    }
    let context = ("context", json!({"client": context(client, visitor)}));
    let fields = std::iter::once(context).chain(fields).map(|(name, value)| (name.to_owned(), value));
    let body = Value::Object(fields.collect());
    HttpRequest {
        method: Method::POST,
        body: Bytes::from(body.to_string()),
        ..HttpRequest::get(parse_constant(endpoint), HOSTS, headers, PLAYER_MAX)
    }
}

/// The request for captions at a track's URL in a format, with an optional translation.
///
/// `None` if the URL is invalid.
pub(super) fn captions(
    client: &ClientIdentity,
    address: &str,
    format: TrackFormat,
    translate_to: Option<&str>,
) -> Option<HttpRequest> {
    // URLs are absolute; they used to be relative.
    let url = Url::parse(ORIGIN).and_then(|base| base.join(address)).ok()?;
    let url = super::tracks::caption_url(url, format, translate_to);
    let request = HttpRequest::get(url, HOSTS, headers(client), CAPTIONS_MAX);
    Some(HttpRequest { has_own_rate_limit: translate_to.is_some(), ..request })
}

/// Headers that identify the client in every request.
pub(super) fn headers(client: &ClientIdentity) -> HeaderMap {
    let mut headers = HeaderMap::new();
    insert(&mut headers, header::USER_AGENT, client.user_agent());
    insert(&mut headers, header::ACCEPT_LANGUAGE, "en");
    headers
}

/// Sets a header; an invalid value, which comes from outside, is skipped.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn context(client: &ClientIdentity, visitor: Option<&str>) -> Value {
    let device = client.device();
    let fields = [
        ("clientName", Some(Value::from(client.context_name()))),
        ("clientVersion", Some(client.version().into())),
        ("userAgent", Some(client.user_agent().into())),
        ("deviceMake", device.make.map(Value::from)),
        ("deviceModel", device.model.map(Value::from)),
        ("osName", Some(device.os_name.into())),
        ("osVersion", Some(device.os_version.into())),
        ("androidSdkVersion", device.android_sdk.map(Value::from)),
        ("hl", Some("en".into())),
        ("timeZone", Some("UTC".into())),
        ("utcOffsetMinutes", Some(0.into())),
        ("visitorData", visitor.map(Value::from)),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    fn client_request(client: &str, visitor: Option<&str>) -> (HttpRequest, Value) {
        let client = ClientIdentity::parse(client).unwrap();
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        let request = player(&client, &video, visitor);
        let body = serde_json::from_slice(&request.body).unwrap();
        (request, body)
    }

    #[test]
    fn player_request_has_client_identity() {
        let (request, body) = client_request("android@22.1.2", None);
        assert_eq!(request.url.as_str(), "https://www.youtube.com/youtubei/v1/player?prettyPrint=false");
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("x-youtube-client-name"), Some("3"));
        assert_eq!(header("x-youtube-client-version"), Some("22.1.2"));
        assert_eq!(header("origin"), Some("https://www.youtube.com"));
        assert_eq!(header("content-type"), Some("application/json"));
        assert_eq!(header("x-goog-visitor-id"), None);
        assert!(header("user-agent").unwrap().contains("22.1.2"));
        assert_eq!(body["videoId"], "dQw4w9WgXcQ");
        assert_eq!(body["contentCheckOk"], true);
        assert_eq!(body["racyCheckOk"], true);
        let client = &body["context"]["client"];
        assert_eq!(client["clientName"], "ANDROID");
        assert_eq!(client["clientVersion"], "22.1.2");
        assert_eq!(client["androidSdkVersion"], 30);
        assert_eq!(client["hl"], "en");
        assert!(client.get("deviceMake").is_none() && client.get("visitorData").is_none());
        assert!(body.get("key").is_none() && !request.url.as_str().contains("key="));
    }

    #[test]
    fn player_request_valid_visitor_id_is_sent_twice() {
        let (request, body) = client_request("visionos", Some("Cgs3%3D"));
        assert_eq!(request.headers["x-goog-visitor-id"], "Cgs3%3D");
        assert_eq!(body["context"]["client"]["visitorData"], "Cgs3%3D");
        let (request, _) = client_request("visionos", Some("a\r\nb: c"));
        assert!(!request.headers.contains_key("x-goog-visitor-id"));
    }

    #[test]
    fn caption_request_resolves_relative_url() {
        let client = ClientIdentity::parse("ios").unwrap();
        let url_of =
            |address| captions(&client, address, TrackFormat::Json3, None).map(|r| r.url.to_string());
        assert_eq!(
            url_of("/api/timedtext?v=x").unwrap(),
            "https://www.youtube.com/api/timedtext?v=x&fmt=json3"
        );
        assert_eq!(url_of("https://evil.example/?a").unwrap(), "https://evil.example/?a&fmt=json3");
        assert_eq!(url_of("https://["), None);
    }
}
