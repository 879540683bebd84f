//! The supplier against a platform on the loopback.

mod restraint;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use transcript_core::{
    archive::Wish,
    supplier::{Ask, Supplied, Supplier, SupplyError, SupplyReason, Watcher},
    time::{Clock, Timestamp},
    transcript::{LanguageTag, TrackKind},
    video::{Platform as Site, VideoId},
};

use super::{YouTubeCaptions, YouTubeOptions};
use crate::http::{
    Http, HttpOptions,
    testing::{Platform, Seen, Step, answer},
};

const ID: &str = "vb-supply-0";

fn now() -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000)
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        now()
    }
}

#[derive(Debug)]
struct Waiting(bool);

impl Watcher for Waiting {
    fn stage(&self, _: &str, done: u64, of: u64) {
        assert!(done <= of);
    }

    fn cancelled(&self) -> bool {
        !self.0
    }
}

fn ask(wish: &str) -> Ask {
    Ask {
        video: VideoId::new(Site::VideoSite, ID).unwrap(),
        wish: Wish::from_name(wish),
        deadline: now().plus(Duration::from_secs(20)),
    }
}

async fn supply_by(http: Arc<Http>, ask: Ask, waits: bool) -> Result<Supplied, SupplyError> {
    let supplier = YouTubeCaptions::new(http, YouTubeOptions::default(), Arc::new(Still));
    supplier.supply(ask, Arc::new(Waiting(waits))).await
}

async fn supply(platform: &Platform, wish: &str) -> Result<Supplied, SupplyError> {
    supply_by(platform.http(), ask(wish), true).await
}

/// A track in the player data: language, kind and what else its address says.
fn track(language: &str, kind: &str, more: &str) -> Value {
    let address = format!("https://www.youtube.com/api/timedtext?v={ID}&kind={kind}&lang={language}{more}");
    json!({"baseUrl": address, "languageCode": language, "kind": kind, "isTranslatable": true})
}

fn player(tracks: &[Value]) -> Vec<Step> {
    player_with(tracks, &["ja"])
}

/// Player data with these tracks and translations.
fn player_with(tracks: &[Value], translations: &[&str]) -> Vec<Step> {
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
    answer(200, "", body.to_string())
}

fn refuse(status: &str, reason: &str) -> Vec<Step> {
    let body = json!({
        "responseContext": {"visitorData": "visitor-1"},
        "playabilityStatus": {"status": status, "reason": reason},
    });
    answer(200, "", body.to_string())
}

fn words(text: &str) -> Vec<Step> {
    let body = json!({"events": [{"tStartMs": 500, "dDurationMs": 900, "segs": [{"utf8": text}]}]});
    answer(200, "", body.to_string())
}

/// The name of the client that asks for player data; none for another request.
fn client(seen: &Seen) -> Option<String> {
    let body: Value = serde_json::from_str(&seen.body).ok()?;
    Some(body["context"]["client"]["clientName"].as_str()?.to_owned())
}

fn lines(platform: &Platform) -> Vec<String> {
    let seen = platform.seen();
    seen.iter().map(|seen| client(seen).unwrap_or_else(|| seen.line.clone())).collect()
}

fn reason(result: Result<Supplied, SupplyError>) -> SupplyReason {
    result.unwrap_err().reason().clone()
}

#[tokio::test]
async fn a_transcript_takes_two_requests() {
    let platform = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("de", "", ""), track("en", "asr", "&fmt=srv3&xosf=1")]),
        None => words("the wheel turns"),
    })
    .await;
    let supplied = supply(&platform, "default").await.unwrap();
    let transcript = &supplied.tracks[0];
    assert_eq!(supplied.tracks.len(), 1);
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
    let seen = platform.seen();
    assert_eq!(seen[0].line, "POST /youtubei/v1/player?prettyPrint=false");
    assert_eq!(seen[0].headers["user-agent"], seen[1].headers["user-agent"]);
    assert!(!seen[0].headers.contains_key("x-goog-visitor-id"));
}

#[tokio::test]
async fn a_wished_language_brings_the_default_along() {
    let script = |seen: &Seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", ""), track("de", "asr", "")]),
        None if seen.line.contains("tlang=ja") => words("水車"),
        None if seen.line.contains("lang=de") => words("das Rad"),
        None => words("the wheel"),
    };
    for (wish, expect) in
        [("de", &["das Rad", "the wheel"][..]), ("en", &["the wheel"]), ("ja", &["水車", "the wheel"])]
    {
        let platform = Platform::start(script).await;
        let supplied = supply(&platform, wish).await.unwrap();
        let texts: Vec<_> = supplied.tracks.iter().map(|found| found.segments[0].text.as_str()).collect();
        assert_eq!(texts, expect, "{wish}");
        assert_eq!(supplied.tracks[0].track.language.as_str(), wish);
        assert_eq!(supplied.tracks[0].track.kind == TrackKind::Translated, wish == "ja");
        assert_eq!(platform.seen().len(), 1 + texts.len(), "{wish}");
        assert_eq!(supplied.known_tracks.len(), 2, "translations are not tracks of the video");
    }
    let platform = Platform::start(script).await;
    let found = supply(&platform, "nl").await.unwrap_err();
    let tags = ["en", "de"].map(|tag| LanguageTag::parse(tag).unwrap());
    assert_eq!(*found.reason(), SupplyReason::NoLanguage(tags.to_vec()));
    assert!(found.message().contains("en, de"), "{found}");
    assert_eq!(platform.seen().len(), 3, "another client may offer more translations");
}

#[tokio::test]
async fn a_default_that_fails_does_not_cost_the_wished_one() {
    let platform = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", ""), track("de", "", "")]),
        None if seen.line.contains("lang=de") => words("das Rad"),
        None => answer(200, "", ""),
    })
    .await;
    let supplied = supply(&platform, "de").await.unwrap();
    assert_eq!(supplied.tracks.len(), 1);
}

#[tokio::test]
async fn the_next_client_is_asked_where_one_is_refused() {
    let platform = Platform::start(|seen, _| match client(seen).as_deref() {
        Some("VISIONOS") => refuse("UNPLAYABLE", "This video is not available"),
        Some("ANDROID") => {
            let body = json!({"error": {"code": 400, "status": "FAILED_PRECONDITION"}});
            answer(400, "", body.to_string())
        }
        Some(_) => player(&[track("en", "", "")]),
        None => words("one duck"),
    })
    .await;
    supply(&platform, "default").await.unwrap();
    assert_eq!(lines(&platform)[..3], ["VISIONOS", "ANDROID", "IOS"]);
    let seen = platform.seen();
    assert_eq!(seen[1].headers["x-goog-visitor-id"], "visitor-1", "YouTube knows us by now");
    assert!(seen[3].headers["user-agent"].contains("ios"), "who was told the address fetches from it");
}

#[tokio::test]
async fn the_most_telling_answer_is_reported() {
    let check = async |script: fn(&str) -> Vec<Step>, expect: SupplyReason, expect_requests: usize| {
        let platform = Platform::start(move |seen, _| match client(seen) {
            Some(client) => script(&client),
            None => answer(200, "", ""),
        })
        .await;
        let error = supply(&platform, "default").await.unwrap_err();
        assert_eq!(*error.reason(), expect);
        assert_eq!(platform.seen().len(), expect_requests, "{error}");
    };
    check(|_| answer(400, "", r#"{"error":{"status":"FAILED_PRECONDITION"}}"#), SupplyReason::Stale, 3).await;
    check(|_| refuse("UNPLAYABLE", "This video is not available"), SupplyReason::PlatformFault, 3).await;
    check(|_| refuse("ERROR", "Video unavailable"), SupplyReason::Removed, 3).await;
    check(
        |client| match client {
            "VISIONOS" => refuse("UNPLAYABLE", "This video is not available"),
            _ => refuse("UNPLAYABLE", "This video is available to this channel's members"),
        },
        SupplyReason::Members,
        2,
    )
    .await;
    check(
        |client| match client {
            "ANDROID" => player(&[]),
            _ => refuse("ERROR", "Video unavailable"),
        },
        SupplyReason::NoCaptions,
        3,
    )
    .await;
    check(|_| refuse("LOGIN_REQUIRED", "This video is private"), SupplyReason::Private, 1).await;
    check(|_| answer(200, "", "<html>"), SupplyReason::Unreadable, 3).await;
    check(|_| answer(404, "", ""), SupplyReason::PlatformFault, 3).await;
    check(|_| answer(403, "", ""), SupplyReason::Throttled(None), 3).await;
    check(
        |_| answer(302, "location: https://www.google.com/sorry/index?q=x\r\n", ""),
        SupplyReason::BotCheck,
        1,
    )
    .await;
    // Every client is told of a track whose address answers with nothing.
    check(|_| player(&[track("en", "", "")]), SupplyReason::Unreadable, 6).await;
}

#[tokio::test]
async fn a_track_behind_a_proof_gives_way_to_one_in_the_open() {
    let platform = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", "&exp=xpe"), track("en", "asr", "")]),
        None => words("half of it"),
    })
    .await;
    let supplied = supply(&platform, "default").await.unwrap();
    assert_eq!(supplied.tracks[0].track.kind, TrackKind::Generated);
    assert_eq!(lines(&platform)[..3], ["VISIONOS", "ANDROID", "IOS"], "another client may have it open");
    assert_eq!(platform.seen().len(), 4);

    let platform = Platform::start(|_, _| player(&[track("en", "", "&exp=xpv")])).await;
    assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable);
    assert_eq!(platform.seen().len(), 3, "what is behind a proof is not asked for");
}

#[tokio::test]
async fn other_forms_are_tried_where_one_cannot_be_read() {
    let platform = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", "")]),
        None if seen.line.contains("fmt=json3") => answer(200, "", "<transcript><text start=\"0\">cut o"),
        None if seen.line.contains("fmt=srv3") => answer(200, "", "?"),
        None => answer(200, "", r#"<transcript><text start="0.5" dur="1">salt</text></transcript>"#),
    })
    .await;
    let supplied = supply(&platform, "default").await.unwrap();
    assert_eq!(supplied.tracks[0].segments[0].text, "salt");
    assert_eq!(platform.seen().len(), 4);
}

#[tokio::test]
async fn foreign_caption_addresses_are_never_asked() {
    for address in ["https://evil.example/api/timedtext", "https://127.0.0.1/", "http://www.youtube.com/x"] {
        let track = json!({"baseUrl": address, "languageCode": "en"});
        let platform = Platform::start(move |_, _| player(std::slice::from_ref(&track))).await;
        assert_eq!(reason(supply(&platform, "default").await), SupplyReason::Unreadable, "{address}");
        assert!(platform.seen().iter().all(|seen| seen.host == "www.youtube.com:443"));
        assert_eq!(platform.seen().len(), 3);
    }
}

/// Options that go through both platforms in turn, and the file with their certificates.
fn both(one: &Platform, other: &Platform) -> (HttpOptions, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let pem = |platform: &Platform| std::fs::read(platform.options().ca_file.unwrap()).unwrap();
    std::fs::write(file.path(), [pem(one), pem(other)].concat()).unwrap();
    let options = HttpOptions {
        proxies: vec![one.proxy(), other.proxy()],
        ca_file: Some(file.path().to_owned()),
        ..HttpOptions::default()
    };
    (options, file)
}

#[tokio::test]
async fn distrust_ends_it_on_one_address_and_not_on_others() {
    let wary = Platform::start(|_, _| refuse("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot")).await;
    assert_eq!(reason(supply(&wary, "default").await), SupplyReason::BotCheck);
    assert_eq!(wary.seen().len(), 1, "no further client is burnt");

    let open = Platform::start(|seen, _| match client(seen) {
        Some(_) => player(&[track("en", "", "")]),
        None => words("trusted"),
    })
    .await;
    let (options, _file) = both(&wary, &open);
    let http = Arc::new(Http::new(options).unwrap());
    for _ in 0..2 {
        let supplied = supply_by(Arc::clone(&http), ask("default"), true).await.unwrap();
        assert_eq!(supplied.tracks[0].segments[0].text, "trusted");
    }
    assert_eq!((wary.seen().len(), open.seen().len()), (2, 4), "the distrusted one rests");
}

#[tokio::test]
async fn nothing_is_asked_for_nobody() {
    let platform = Platform::start(|_, _| player(&[])).await;
    assert_eq!(reason(supply_by(platform.http(), ask("default"), false).await), SupplyReason::Cancelled);
    let late = Ask { deadline: now(), ..ask("default") };
    assert_eq!(reason(supply_by(platform.http(), late, true).await), SupplyReason::Timeout);
    let elsewhere = Ask { video: VideoId::new(Site::Microblog, "1").unwrap(), ..ask("default") };
    assert_eq!(reason(supply_by(platform.http(), elsewhere, true).await), SupplyReason::Misconfigured);
    assert!(platform.seen().is_empty());
}
