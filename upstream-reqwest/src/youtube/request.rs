//! The two requests: for a video's player data, and for the captions of a track.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Map, Value, json};
use transcript_core::video::VideoId;
use url::Url;

use super::{clients::ClientIdentity, tracks::Format};
use crate::http::Request;

/// The hosts that this supplier goes to. YouTube's answers name no other for captions.
pub(crate) const HOSTS: &[&str] = &[PLATFORM];
/// The platform that these hosts belong to, as the transport tells platforms apart.
pub(crate) const PLATFORM: &str = "www.youtube.com";
const ORIGIN: &str = "https://www.youtube.com";
const PLAYER: &str = "https://www.youtube.com/youtubei/v1/player?prettyPrint=false";

/// The longest answers that are read. Player data is 2 to 400 KB; a caption body has some 16 KB for each
/// minute of speech, so this is enough for 24 hours.
const PLAYER_MAX: usize = 8 << 20;
const CAPTIONS_MAX: usize = 32 << 20;

/// The question for a video's player data, asked as this client.
///
/// `visitor` is the mark that YouTube gave to the one who asks in an earlier answer, if there was one.
/// The language is English because some failures can only be told by their sentences.
pub(super) fn player(client: &ClientIdentity, video: &VideoId, visitor: Option<&str>) -> Request {
    let mut headers = headers(client);
    insert(&mut headers, header::CONTENT_TYPE, "application/json");
    insert(&mut headers, header::ORIGIN, ORIGIN);
    insert(&mut headers, HeaderName::from_static("x-youtube-client-name"), &client.number().to_string());
    insert(&mut headers, HeaderName::from_static("x-youtube-client-version"), client.version());
    if let Some(visitor) = visitor {
        insert(&mut headers, HeaderName::from_static("x-goog-visitor-id"), visitor);
    }
    let body = json!({
        "context": {"client": context(client, visitor)},
        "videoId": video.id(),
        // The viewer has seen the warnings that come before some videos.
        "contentCheckOk": true,
        "racyCheckOk": true,
    });
    Request {
        method: Method::POST,
        url: fixed(PLAYER),
        hosts: HOSTS,
        headers,
        body: Bytes::from(body.to_string()),
        answer_max: PLAYER_MAX,
        throttled_apart: false,
    }
}

/// The question for the captions behind a track's address, in a format; translated where that is wished.
///
/// None when the address is none.
pub(super) fn captions(
    client: &ClientIdentity,
    address: &str,
    format: Format,
    translate_to: Option<&str>,
) -> Option<Request> {
    // Addresses are absolute nowadays; once they were relative to the site.
    let url = Url::parse(ORIGIN).and_then(|base| base.join(address)).ok()?;
    Some(Request {
        method: Method::GET,
        url: super::tracks::caption_url(url, format, translate_to),
        hosts: HOSTS,
        headers: headers(client),
        body: Bytes::new(),
        answer_max: CAPTIONS_MAX,
        throttled_apart: translate_to.is_some(),
    })
}

/// What every request says of who asks.
pub(super) fn headers(client: &ClientIdentity) -> HeaderMap {
    let mut headers = HeaderMap::new();
    insert(&mut headers, header::USER_AGENT, client.user_agent());
    insert(&mut headers, header::ACCEPT_LANGUAGE, "en");
    headers
}

/// Sets a header; a value that cannot be one is left out, since it came from outside.
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

fn fixed(address: &'static str) -> Url {
    Url::parse(address).expect("invariant: a constant of this file is an address")
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    fn ask(client: &str, visitor: Option<&str>) -> (Request, Value) {
        let client = ClientIdentity::parse(client).unwrap();
        let video = VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap();
        let request = player(&client, &video, visitor);
        let body = serde_json::from_slice(&request.body).unwrap();
        (request, body)
    }

    #[test]
    fn the_player_is_asked_as_the_client_would() {
        let (request, body) = ask("android@22.1.2", None);
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
    fn a_visitor_is_remembered_in_both_places_unless_it_is_no_header() {
        let (request, body) = ask("visionos", Some("Cgs3%3D"));
        assert_eq!(request.headers["x-goog-visitor-id"], "Cgs3%3D");
        assert_eq!(body["context"]["client"]["visitorData"], "Cgs3%3D");
        let (request, _) = ask("visionos", Some("a\r\nb: c"));
        assert!(!request.headers.contains_key("x-goog-visitor-id"));
    }

    #[test]
    fn captions_are_asked_for_at_their_address() {
        let client = ClientIdentity::parse("ios").unwrap();
        let ask = |address| captions(&client, address, Format::Json3, None).map(|r| r.url.to_string());
        assert_eq!(ask("/api/timedtext?v=x").unwrap(), "https://www.youtube.com/api/timedtext?v=x&fmt=json3");
        assert_eq!(ask("https://evil.example/?a").unwrap(), "https://evil.example/?a&fmt=json3");
        assert_eq!(ask("https://["), None);
    }
}
