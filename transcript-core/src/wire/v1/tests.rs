//! Tests of the JSON bodies of the v1 API.

use serde_json::{Value, json, to_value};

use super::*;
use crate::{
    accounts::{CreditBalance, IssuedAccountKey, Profile, V1Error},
    archive::StoredTranscript,
    body::segments,
    directory::{
        Plan,
        api_key::{ApiKey, ApiKind},
    },
    test_doubles::SequentialRandom,
    time::Timestamp,
    transcript::{
        Chapter, LanguageTag, LiveStatus, Segment, TrackInfo, TrackKind, Transcript, VideoDetails,
        VideoMetadata, test_transcript,
    },
    video::{Platform, VideoId},
    wire::AFTER_SEGMENTS,
};

fn stored(transcript: Transcript) -> StoredTranscript {
    crate::service::unarchived(transcript)
}

fn transcript(title: Option<&str>, kind: TrackKind) -> Transcript {
    Transcript {
        title: title.map(str::to_owned),
        track: TrackInfo::new(LanguageTag::parse("en-GB").unwrap(), kind),
        ..test_transcript(vec![Segment::new("Hello", 1_500, 250)])
    }
}

#[test]
fn v1_transcript_has_specified_fields() {
    let never = transcript(Some("Never"), TrackKind::Generated);
    let metadata = VideoMetadata {
        published_at: Some(Timestamp::from_millis(1_500)),
        live: Some(LiveStatus::WasLive),
        chapters: vec![Chapter { title: "One".to_owned(), start_ms: 500 }],
        ..VideoMetadata::default()
    };
    let details = VideoDetails { metadata, tracks: vec![never.track.clone()] };
    let kept = StoredTranscript { details: details.clone().into(), ..stored(never.clone()) };
    let wire = VideoTranscript::from(&kept);
    assert_eq!(wire.details(), details);
    let expect = json!({
        "video_id": "dQw4w9WgXcQ",
        "title": "Never",
        "language": "en-GB",
        "is_generated": true,
        "languages": [{ "tag": "en-GB", "name": "English (en-GB)", "kind": "auto", "original": false }],
        "metadata": { "title": "Never", "published_at": "1970-01-01T00:00:01.500Z", "live": "was_live" },
        "chapters": [{ "title": "One", "start": 0.5 }],
        "segments": [{ "text": "Hello", "start": 1.5, "duration": 0.25 }],
    });
    assert_eq!(to_value(&wire).unwrap(), expect);
    assert_eq!(serde_json::from_value::<VideoTranscript>(expect).unwrap(), wire);
    let mut joined = VideoTranscript::before_segments(&kept, None).unwrap();
    joined.extend(segments::write(&never.segments).unwrap());
    joined.extend_from_slice(AFTER_SEGMENTS);
    assert_eq!(joined, serde_json::to_vec(&wire).unwrap());
    let other = VideoTranscript::from(&stored(transcript(None, TrackKind::Human)));
    assert_eq!((other.title.as_str(), other.is_generated), ("", false));
}

#[test]
fn v1_transcript_is_read_back_without_source() {
    for (title, kind) in [(Some("Never"), TrackKind::Generated), (None, TrackKind::Human)] {
        let transcript = transcript(title, kind);
        let read = VideoTranscript::from(&stored(transcript.clone())).into_transcript("a server").unwrap();
        assert_eq!(read, Transcript { source: "a server".to_owned(), ..transcript });
    }
    let whole = VideoTranscript::from(&stored(transcript(None, TrackKind::Human)));
    let linked = VideoTranscript {
        video_id: "https://www.tiktok.com/@words/video/7106594312292453675".to_owned(),
        ..whole.clone()
    };
    let video = linked.into_transcript("a server").unwrap().video;
    assert_eq!((video.platform(), video.id()), (Platform::TikTok, "7106594312292453675"));
    for (broken, what) in [
        (VideoTranscript { video_id: "no video".to_owned(), ..whole.clone() }, "its video id is invalid"),
        (
            VideoTranscript { video_id: "https://vm.tiktok.com/ZMabcdefg/".to_owned(), ..whole.clone() },
            "its video id is invalid",
        ),
        (VideoTranscript { language: "-".to_owned(), ..whole.clone() }, "its language is invalid"),
        (
            VideoTranscript {
                segments: vec![crate::wire::lookup::Segment {
                    text: "x".to_owned(),
                    start: -1.0,
                    duration: 1.0,
                    words: Vec::new(),
                }],
                ..whole.clone()
            },
            "a time in it is invalid",
        ),
    ] {
        assert_eq!(broken.into_transcript("a server"), Err(what));
    }
}

#[test]
fn v1_job_results_are_written_before_their_items() {
    for (next_cursor, expect) in [
        (None, r#"{"job_id":"job_a","next_cursor":null,"items":"#),
        (Some("2".to_owned()), r#"{"job_id":"job_a","next_cursor":"2","items":"#),
    ] {
        let page = JobResults { job_id: "job_a".to_owned(), next_cursor, items: Vec::new() };
        assert_eq!(page.before_items().unwrap(), expect.as_bytes());
    }
}

#[test]
fn v1_job_result_names_video_of_its_platform() {
    for (platform, id) in [
        (Platform::YouTube, "dQw4w9WgXcQ"),
        // An id of eleven digits is one of YouTube too.
        (Platform::TikTok, "71065943122"),
        (Platform::TikTok, "7106594312292453675"),
    ] {
        let video = VideoId::new(platform, id).unwrap();
        let delivered = Transcript { video: video.clone(), ..transcript(None, TrackKind::Human) };
        let mut result = JobResult {
            index: 0,
            url: video.address(),
            platform: Some(platform.as_str().to_owned()),
            video_id: Some(id.to_owned()),
            status: "done".to_owned(),
            reason: None,
            message: None,
            languages: Vec::new(),
            transcript: Some(VideoTranscript::from(&stored(delivered))),
        };
        let taken = result.take_transcript().unwrap().into_transcript("a server").unwrap();
        assert_eq!(taken.video, video);
        assert_eq!(result.take_transcript(), None);
    }
}

#[test]
fn v1_account_has_specified_fields() {
    let credits =
        CreditBalance { plan: Plan::Pro, remaining: 7, total: 9, resets_at: Timestamp::from_millis(1_500) };
    let me = AccountInfo::from(&Profile { email: "ann@example.org".to_owned(), credits });
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
fn v1_key_is_shown_once_and_never_printed() {
    let key = ApiKey::generate(ApiKind::V1, &SequentialRandom::default()).unwrap();
    let text = key.reveal().to_owned();
    let issued = |credits_remaining| IssuedAccountKey {
        account: crate::ids::AccountId::new("ann"),
        key: key.clone(),
        is_new_account: true,
        plan: Plan::Free,
        credits_remaining,
        is_blocked: false,
    };
    let verified = VerifyResponse::from(&issued(Some(200)));
    let expect = json!({ "success": true, "api_key": text, "credits": 200, "plan": "free" });
    assert_eq!(to_value(&verified).unwrap(), expect);
    assert_eq!(VerifyResponse::from(&issued(None)).credits, 0);
    let blocked = VerifyResponse::from(&IssuedAccountKey { is_blocked: true, ..issued(None) });
    assert!(blocked.notice.is_some_and(|notice| notice.contains("blocked")));
    let rotated = RotateKeyResponse::from(&key);
    assert_eq!(to_value(&rotated).unwrap(), json!({ "success": true, "api_key": text }));
    for printed in [format!("{verified:?}"), format!("{rotated:?}"), format!("{:?}", issued(None))] {
        assert!(!printed.contains(&text[8..]), "{printed}");
    }
}

#[test]
fn v1_error_has_message_and_code() {
    let text = || "why".to_owned();
    for (error, code) in [
        (V1Error::BadRequest(text()), 400),
        (V1Error::Unauthorized(text()), 401),
        (V1Error::PaymentRequired { message: text(), credits_remaining: 0 }, 402),
        (V1Error::not_found(text()), 404),
        (V1Error::Conflict(text()), 409),
        (V1Error::RateLimited { message: text(), retry_after_s: 1, rate: None }, 429),
        (V1Error::Internal(text()), 500),
    ] {
        assert_eq!(to_value(ErrorBody::from(&error)).unwrap(), json!({ "error": "why", "code": code }));
    }
}

#[test]
fn v1_purchase_has_specified_fields() {
    let read = |value: Value| serde_json::from_value::<BuyCreditsRequest>(value).unwrap().pack;
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
