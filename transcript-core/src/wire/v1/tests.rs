use serde_json::{Value, json, to_value};

use super::*;
use crate::{
    accounts::{Credits, NewAccountKey, Profile, Refused},
    directory::{
        Plan,
        key::{Key, Surface},
    },
    time::{Random, Timestamp},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

#[derive(Debug)]
struct Sevens;

impl Random for Sevens {
    fn bytes(&self, count: u32) -> Vec<u8> {
        vec![7; count as usize]
    }
}

fn transcript(title: Option<&str>, kind: TrackKind) -> Transcript {
    Transcript {
        video: VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap(),
        title: title.map(str::to_owned),
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::parse("en-GB").unwrap(), kind),
        source: "words".to_owned(),
        segments: vec![Segment::new("Hello", 1_500, 250)],
    }
}

#[test]
fn a_transcript_has_the_specifications_fields() {
    let wire = VideoTranscript::from(&transcript(Some("Never"), TrackKind::Generated));
    let expect = json!({
        "video_id": "dQw4w9WgXcQ",
        "title": "Never",
        "language": "en-GB",
        "is_generated": true,
        "segments": [{ "text": "Hello", "start": 1.5, "duration": 0.25 }],
    });
    assert_eq!(to_value(&wire).unwrap(), expect);
    assert_eq!(serde_json::from_value::<VideoTranscript>(expect).unwrap(), wire);
    let other = VideoTranscript::from(&transcript(None, TrackKind::Human));
    assert_eq!((other.title.as_str(), other.is_generated), ("", false));
}

#[test]
fn a_transcript_is_read_back_but_for_who_it_came_from() {
    for (title, kind) in [(Some("Never"), TrackKind::Generated), (None, TrackKind::Human)] {
        let transcript = transcript(title, kind);
        let read = VideoTranscript::from(&transcript).into_transcript("a server").unwrap();
        assert_eq!(read, Transcript { source: "a server".to_owned(), ..transcript });
    }
    let whole = VideoTranscript::from(&transcript(None, TrackKind::Human));
    let linked = VideoTranscript {
        video_id: "https://www.tiktok.com/@words/video/7106594312292453675".to_owned(),
        ..whole.clone()
    };
    let video = linked.into_transcript("a server").unwrap().video;
    assert_eq!((video.platform(), video.id()), (Platform::ShortVideo, "7106594312292453675"));
    for (broken, what) in [
        (VideoTranscript { video_id: "no video".to_owned(), ..whole.clone() }, "its video is none"),
        (
            VideoTranscript { video_id: "https://vm.tiktok.com/ZMabcdefg/".to_owned(), ..whole.clone() },
            "its video is none",
        ),
        (VideoTranscript { language: "-".to_owned(), ..whole.clone() }, "its language is none"),
        (
            VideoTranscript {
                segments: vec![crate::wire::lookup::Segment {
                    text: "x".to_owned(),
                    start: -1.0,
                    duration: 1.0,
                }],
                ..whole.clone()
            },
            "a time in it is none",
        ),
    ] {
        assert_eq!(broken.into_transcript("a server"), Err(what));
    }
}

#[test]
fn an_account_has_the_specifications_fields() {
    let credits =
        Credits { plan: Plan::Pro, remaining: 7, total: 9, resets_at: Timestamp::from_millis(1_500) };
    let me = Me::from(&Profile { email: "ann@example.org".to_owned(), credits });
    let expect = json!({
        "email": "ann@example.org",
        "plan": "pro",
        "credits_remaining": 7,
        "credits_total": 9,
        "resets_at": "1970-01-01T00:00:01.500Z",
    });
    assert_eq!(to_value(&me).unwrap(), expect);
}

#[test]
fn a_key_is_shown_once_and_never_printed() {
    let key = Key::generate(Surface::Account, &Sevens).unwrap();
    let text = key.reveal().to_owned();
    let issued = |credits_remaining| NewAccountKey {
        key: key.clone(),
        first: true,
        plan: Plan::Free,
        credits_remaining,
        is_blocked: false,
    };
    let verified = Verified::from(&issued(Some(200)));
    let expect = json!({ "success": true, "api_key": text, "credits": 200, "plan": "free" });
    assert_eq!(to_value(&verified).unwrap(), expect);
    assert_eq!(Verified::from(&issued(None)).credits, 0);
    let blocked = Verified::from(&NewAccountKey { is_blocked: true, ..issued(None) });
    assert!(blocked.notice.is_some_and(|notice| notice.contains("blocked")));
    let rotated = KeyRotated::from(&key);
    assert_eq!(to_value(&rotated).unwrap(), json!({ "success": true, "api_key": text }));
    for printed in [format!("{verified:?}"), format!("{rotated:?}"), format!("{:?}", issued(None))] {
        assert!(!printed.contains(&text[8..]), "{printed}");
    }
}

#[test]
fn every_refusal_has_its_sentence_and_its_code() {
    let text = || "why".to_owned();
    for (refused, code) in [
        (Refused::BadRequest(text()), 400),
        (Refused::Unauthorized(text()), 401),
        (Refused::PaymentRequired { message: text(), credits_remaining: 0 }, 402),
        (Refused::NotFound(text()), 404),
        (Refused::Conflict(text()), 409),
        (Refused::RateLimited { message: text(), retry_after_s: 1, rate: None }, 429),
        (Refused::Internal(text()), 500),
    ] {
        assert_eq!(to_value(ErrorBody::from(&refused)).unwrap(), json!({ "error": "why", "code": code }));
    }
}

#[test]
fn what_is_bought_has_the_specifications_fields() {
    let read = |value: Value| serde_json::from_value::<BuyCredits>(value).unwrap().pack;
    assert_eq!(read(json!({ "pack": "1k" })), "1k");
    let checkout = CreditsCheckout {
        checkout_url: "https://pay.example/1".to_owned(),
        pack: "1k".to_owned(),
        credits: 1_000,
        price_usd: 12.0,
    };
    let expect = json!({
        "checkout_url": "https://pay.example/1",
        "pack": "1k",
        "credits": 1_000,
        "price_usd": 12.0,
    });
    assert_eq!(to_value(&checkout).unwrap(), expect);
}
