//! Tests of the supplier against a local platform.

mod restraint;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use transcript_core::{
    archive::TrackSelector,
    supplier::{Supplier, SupplyError, SupplyOutput, SupplyReason, SupplyRequest},
    test_doubles::{ManualClock, PatientMonitor},
    time::Timestamp,
    transcript::TrackKind,
    video::{Platform as Site, VideoId},
};

use super::{YouTubeCaptions, YouTubeOptions};
use crate::http::{
    HttpOptions, HttpTransport,
    testing::{FakePlatform, ScriptStep, SeenRequest, reply},
};

const ID: &str = "vb-supply-0";

fn now() -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000)
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(now()))
}

fn request(selector: &str) -> SupplyRequest {
    SupplyRequest {
        video: VideoId::new(Site::YouTube, ID).unwrap(),
        selector: TrackSelector::from_name(selector),
        deadline: now().plus(Duration::from_secs(20)),
    }
}

async fn supply_by(http: Arc<HttpTransport>, request: SupplyRequest) -> Result<SupplyOutput, SupplyError> {
    let supplier = YouTubeCaptions::new(http, YouTubeOptions::default(), clock());
    supplier.supply(request, Arc::new(PatientMonitor::default())).await
}

async fn supply(platform: &FakePlatform, selector: &str) -> Result<SupplyOutput, SupplyError> {
    supply_by(platform.http(), request(selector)).await
}

/// A track in the player data: language, kind and additional URL parameters.
fn track(language: &str, kind: &str, more: &str) -> Value {
    let address = format!("https://www.youtube.com/api/timedtext?v={ID}&kind={kind}&lang={language}{more}");
    json!({"baseUrl": address, "languageCode": language, "kind": kind, "isTranslatable": true})
}

fn player(tracks: &[Value]) -> Vec<ScriptStep> {
    player_with(tracks, &["ja"])
}

/// Player data with these tracks and translations.
fn player_with(tracks: &[Value], translations: &[&str]) -> Vec<ScriptStep> {
    let translations: Vec<_> = translations.iter().map(|code| json!({"languageCode": code})).collect();
    let body = json!({
        "responseContext": {"visitorData": "visitor-1"},
        "playabilityStatus": {"status": "OK"},
        "videoDetails": {"videoId": ID, "title": "A mill", "author": "Miller", "lengthSeconds": "90"},
        "captions": {"playerCaptionsTracklistRenderer": {
            "captionTracks": tracks,
            "translationLanguages": translations,
        }},
    });
    reply(200, "", body.to_string())
}

fn rejection(status: &str, reason: &str) -> Vec<ScriptStep> {
    let body = json!({
        "responseContext": {"visitorData": "visitor-1"},
        "playabilityStatus": {"status": status, "reason": reason},
    });
    reply(200, "", body.to_string())
}

fn captions_reply(text: &str) -> Vec<ScriptStep> {
    let body = json!({"events": [{"tStartMs": 500, "dDurationMs": 900, "segs": [{"utf8": text}]}]});
    reply(200, "", body.to_string())
}

/// The client name in a request for player data; `None` for another request.
fn client(request: &SeenRequest) -> Option<String> {
    let body: Value = serde_json::from_str(&request.body).ok()?;
    Some(body["context"]["client"]["clientName"].as_str()?.to_owned())
}

fn lines(platform: &FakePlatform) -> Vec<String> {
    let requests = platform.requests();
    requests.iter().map(|request| client(request).unwrap_or_else(|| request.line.clone())).collect()
}

fn reason(result: Result<SupplyOutput, SupplyError>) -> SupplyReason {
    result.unwrap_err().reason().clone()
}

#[tokio::test]
async fn supply_transcript_takes_two_requests() {
    let platform = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("de", "", ""), track("en", "asr", "&fmt=srv3&xosf=1")]),
        None => captions_reply("the wheel turns"),
    })
    .await;
    let supplied = supply(&platform, "default").await.unwrap();
    let transcript = &supplied.transcripts[0];
    assert_eq!(supplied.transcripts.len(), 1);
    assert_eq!(transcript.video.id(), ID);
    assert_eq!(transcript.source, "youtube-captions");
    assert_eq!((transcript.title.as_deref(), transcript.author.as_deref()), (Some("A mill"), Some("Miller")));
    assert_eq!(transcript.duration_ms, Some(90_000));
    assert_eq!((transcript.track.language.as_str(), transcript.track.kind), ("en", TrackKind::Generated));
    assert!(transcript.track.original);
    let segment = &transcript.segments[0];
    assert_eq!((segment.text.as_str(), segment.start_ms, segment.duration_ms), ("the wheel turns", 500, 900));
    assert_eq!(supplied.known_tracks.len(), 2);
    assert_eq!(
        lines(&platform),
        ["VISIONOS", &format!("GET /api/timedtext?v={ID}&kind=asr&lang=en&fmt=json3")]
    );
    let requests = platform.requests();
    assert_eq!(requests[0].line, "POST /youtubei/v1/player?prettyPrint=false");
    assert_eq!(requests[0].headers["user-agent"], requests[1].headers["user-agent"]);
    assert!(!requests[0].headers.contains_key("x-goog-visitor-id"));
}

#[tokio::test]
async fn supply_language_also_returns_default() {
    let script = |request: &SeenRequest, _| match client(request) {
        Some(_) => player(&[track("en", "", ""), track("de", "asr", "")]),
        None if request.line.contains("tlang=ja") => captions_reply("水車"),
        None if request.line.contains("lang=de") => captions_reply("das Rad"),
        None => captions_reply("the wheel"),
    };
    for (selector, expect) in [
        ("de", &["das Rad", "the wheel"][..]),
        ("en", &["the wheel"]),
        ("translation:ja", &["水車", "the wheel"]),
    ] {
        let platform = FakePlatform::start(script).await;
        let supplied = supply(&platform, selector).await.unwrap();
        let texts: Vec<_> =
            supplied.transcripts.iter().map(|found| found.segments[0].text.as_str()).collect();
        assert_eq!(texts, expect, "{selector}");
        let track = &supplied.transcripts[0].track;
        assert_eq!(Some(&track.language), TrackSelector::from_name(selector).language());
        assert_eq!(track.kind == TrackKind::Translated, selector == "translation:ja");
        assert_eq!(platform.requests().len(), 1 + texts.len(), "{selector}");
        assert_eq!(supplied.known_tracks.len(), 2, "translations are not tracks of the video");
    }
    let platform = FakePlatform::start(script).await;
    // A machine translation is not returned unasked.
    assert!(matches!(supply(&platform, "ja").await.unwrap_err().reason(), SupplyReason::NoLanguage(_)));
    let platform = FakePlatform::start(script).await;
    let found = supply(&platform, "translation:nl").await.unwrap_err();
    let SupplyReason::NoLanguage(tracks) = found.reason() else { panic!("{found:?}") };
    let tracks: Vec<_> = tracks.iter().map(|one| (one.language.as_str(), one.kind, one.original)).collect();
    assert_eq!(tracks, [("en", TrackKind::Human, false), ("de", TrackKind::Generated, true)]);
    assert!(found.message().contains("en, de"), "{found}");
}

#[tokio::test]
async fn supply_failed_default_keeps_requested_language() {
    let platform = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("en", "", ""), track("de", "", "")]),
        None if request.line.contains("lang=de") => captions_reply("das Rad"),
        None => reply(200, "", ""),
    })
    .await;
    let supplied = supply(&platform, "de").await.unwrap();
    assert_eq!(supplied.transcripts.len(), 1);
}

#[tokio::test]
async fn supply_rejected_client_falls_back_to_next() {
    let platform = FakePlatform::start(|request, _| match client(request).as_deref() {
        Some("VISIONOS") => rejection("UNPLAYABLE", "This video is not available"),
        Some("ANDROID") => {
            let body = json!({"error": {"code": 400, "status": "FAILED_PRECONDITION"}});
            reply(400, "", body.to_string())
        }
        Some(_) => player(&[track("en", "", "")]),
        None => captions_reply("one duck"),
    })
    .await;
    supply(&platform, "default").await.unwrap();
    assert_eq!(lines(&platform)[..3], ["VISIONOS", "ANDROID", "IOS"]);
    let requests = platform.requests();
    assert_eq!(requests[1].headers["x-goog-visitor-id"], "visitor-1", "the visitor id is sent again");
    assert!(requests[3].headers["user-agent"].contains("ios"), "the client that received the URL fetches it");
}

#[tokio::test]
async fn supply_reports_failure_with_highest_weight() {
    let check = async |script: fn(&str) -> Vec<ScriptStep>, expect: SupplyReason, expect_requests: usize| {
        let platform = FakePlatform::start(move |request, _| match client(request) {
            Some(client) => script(&client),
            None => reply(200, "", ""),
        })
        .await;
        let error = supply(&platform, "default").await.unwrap_err();
        assert_eq!(*error.reason(), expect);
        assert_eq!(platform.requests().len(), expect_requests, "{error}");
    };
    check(|_| reply(400, "", r#"{"error":{"status":"FAILED_PRECONDITION"}}"#), SupplyReason::Stale, 3).await;
    check(|_| rejection("UNPLAYABLE", "This video is not available"), SupplyReason::PlatformFault, 3).await;
    check(|_| rejection("ERROR", "Video unavailable"), SupplyReason::Removed, 3).await;
    check(
        |client| match client {
            "VISIONOS" => rejection("UNPLAYABLE", "This video is not available"),
            _ => rejection("UNPLAYABLE", "This video is available to this channel's members"),
        },
        SupplyReason::Members,
        2,
    )
    .await;
    check(
        |client| match client {
            "ANDROID" => player(&[]),
            _ => rejection("ERROR", "Video unavailable"),
        },
        SupplyReason::NoCaptions,
        3,
    )
    .await;
    check(
        |client| match client {
            "VISIONOS" => rejection("ERROR", "Video unavailable"),
            _ => reply(200, "", "<html>"),
        },
        SupplyReason::Unreadable,
        3,
    )
    .await;
    check(|_| rejection("LOGIN_REQUIRED", "This video is private"), SupplyReason::Private, 1).await;
    check(|_| reply(200, "", "<html>"), SupplyReason::Unreadable, 3).await;
    check(|_| reply(404, "", ""), SupplyReason::PlatformFault, 3).await;
    check(|_| reply(403, "", ""), SupplyReason::Throttled(None), 3).await;
    check(
        |_| reply(302, "location: https://www.google.com/sorry/index?q=x\r\n", ""),
        SupplyReason::BotCheck,
        1,
    )
    .await;
    // Every client receives a track whose URL returns an empty body.
    check(|_| player(&[track("en", "", "")]), SupplyReason::Unreadable, 6).await;
}

#[tokio::test]
async fn supply_gated_track_is_replaced_by_ungated() {
    let platform = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("en", "", "&exp=xpe"), track("en", "asr", "")]),
        None => captions_reply("half of it"),
    })
    .await;
    let supplied = supply(&platform, "default").await.unwrap();
    assert_eq!(supplied.transcripts[0].track.kind, TrackKind::Generated);
    assert_eq!(lines(&platform)[..3], ["VISIONOS", "ANDROID", "IOS"], "another client may have it ungated");
    assert_eq!(platform.requests().len(), 4);

    let platform = FakePlatform::start(|_, _| player(&[track("en", "", "&exp=xpv")])).await;
    assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable);
    assert_eq!(platform.requests().len(), 3, "a gated track is not requested");
}

#[tokio::test]
async fn supply_unreadable_format_tries_others() {
    let platform = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("en", "", "")]),
        None if request.line.contains("fmt=json3") => reply(200, "", "<transcript><text start=\"0\">cut o"),
        None if request.line.contains("fmt=srv3") => reply(200, "", "?"),
        None => reply(200, "", r#"<transcript><text start="0.5" dur="1">salt</text></transcript>"#),
    })
    .await;
    let supplied = supply(&platform, "default").await.unwrap();
    assert_eq!(supplied.transcripts[0].segments[0].text, "salt");
    assert_eq!(platform.requests().len(), 4);
}

#[tokio::test]
async fn supply_foreign_caption_url_is_not_requested() {
    for address in ["https://evil.example/api/timedtext", "https://127.0.0.1/", "http://www.youtube.com/x"] {
        let track = json!({"baseUrl": address, "languageCode": "en"});
        let platform = FakePlatform::start(move |_, _| player(std::slice::from_ref(&track))).await;
        assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable, "{address}");
        assert!(platform.requests().iter().all(|request| request.host == "www.youtube.com:443"));
        assert_eq!(platform.requests().len(), 3);
    }
}

/// Options that use both platforms in rotation, and the file with their certificates.
fn two_proxies(one: &FakePlatform, other: &FakePlatform) -> (HttpOptions, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let pem = |platform: &FakePlatform| std::fs::read(platform.options().ca_file.unwrap()).unwrap();
    std::fs::write(file.path(), [pem(one), pem(other)].concat()).unwrap();
    let options = HttpOptions {
        proxies: vec![one.proxy(), other.proxy()],
        ca_file: Some(file.path().to_owned()),
        ..HttpOptions::default()
    };
    (options, file)
}

#[tokio::test]
async fn supply_blocked_route_switches_to_other_route() {
    let wary =
        FakePlatform::start(|_, _| rejection("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot")).await;
    assert_eq!(reason(supply(&wary, "default").await), SupplyReason::BotCheck);
    assert_eq!(wary.requests().len(), 1, "no other client is tried");

    let open = FakePlatform::start(|request, _| match client(request) {
        Some(_) => player(&[track("en", "", "")]),
        None => captions_reply("trusted"),
    })
    .await;
    let (options, _file) = two_proxies(&wary, &open);
    let http = Arc::new(HttpTransport::new(options).unwrap());
    for _ in 0..2 {
        let supplied = supply_by(Arc::clone(&http), request("default")).await.unwrap();
        assert_eq!(supplied.transcripts[0].segments[0].text, "trusted");
    }
    assert_eq!((wary.requests().len(), open.requests().len()), (2, 4), "the blocked route cools down");
}

#[tokio::test]
async fn supply_without_waiter_or_time_sends_nothing() {
    let platform = FakePlatform::start(|_, _| player(&[])).await;
    let supplier = YouTubeCaptions::new(platform.http(), YouTubeOptions::default(), clock());
    let cancelled = PatientMonitor { cancels_at: Some(Instant::now()) };
    let result = supplier.supply(request("default"), Arc::new(cancelled)).await;
    assert_eq!(reason(result), SupplyReason::Cancelled);
    let late = SupplyRequest { deadline: now(), ..request("default") };
    assert_eq!(reason(supply_by(platform.http(), late).await), SupplyReason::Timeout);
    let of_x = SupplyRequest { video: VideoId::new(Site::X, "1").unwrap(), ..request("default") };
    assert_eq!(reason(supply_by(platform.http(), of_x).await), SupplyReason::Misconfigured);
    assert!(platform.requests().is_empty());
}
