//! Decisions about responses of other servers.

use serde_json::{Value, json};
use transcript_core::{
    transcript::{Chapter, LiveStatus, VideoMetadata, Word},
    video::{Platform, VideoId},
};

use super::*;

const ADDRESS: &str = "https://a.example/watch/video_site/dQw4w9WgXcQ";

fn request(selector: TrackSelector) -> SupplyRequest {
    let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
    SupplyRequest { video, selector, deadline: Timestamp::from_millis(0) }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(0).plus(Duration::from_secs(seconds))
}

fn decide(changes: Value, meta: ResponseMeta, selector: TrackSelector) -> SupplyDecision {
    let mut body = json!({
        "platform": "video_site", "videoId": "dQw4w9WgXcQ", "available": true, "fromCache": true,
        "watchUrl": ADDRESS, "source": "youtube-captions",
        "transcript": [{"text": "Never gonna", "start": 0.5, "duration": 1.25}],
    });
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    classify_response(
        ServiceReply { body: serde_json::from_value(body).unwrap(), meta },
        &request(selector),
        at(1_000),
    )
}

fn failure(changes: Value, meta: ResponseMeta, selector: TrackSelector) -> SupplyError {
    match decide(changes, meta, selector) {
        SupplyDecision::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

fn track_meta(language: &str, is_generated: bool) -> ResponseMeta {
    let language = LanguageTag::parse(language).ok();
    ResponseMeta { language, is_generated: Some(is_generated), ..ResponseMeta::default() }
}

fn language(tag: &str) -> TrackSelector {
    TrackSelector::Language(LanguageTag::parse(tag).unwrap())
}

#[test]
fn transcript_keeps_text_language_kind_and_source() {
    for (meta, tag, kind) in [
        (track_meta("en", false), "en", TrackKind::Human),
        (track_meta("pt-BR", true), "pt-BR", TrackKind::Generated),
        // Without a statement the captions count as generated.
        (ResponseMeta::default(), "und", TrackKind::Generated),
    ] {
        let SupplyDecision::Supplied(supplied) = decide(json!({}), meta, TrackSelector::Default) else {
            panic!("{tag}")
        };
        let transcript = &supplied.transcripts[0];
        assert_eq!((transcript.track.language.as_str(), transcript.track.kind), (tag, kind));
        assert_eq!(transcript.source, "youtube-captions");
        assert_eq!(
            transcript.segments,
            [transcript_core::transcript::Segment::new("Never gonna", 500, 1_250)]
        );
        assert!(transcript.check().is_ok() && supplied.known_tracks.len() == 1);
    }
    for source in ["", "Not A Name", "a\u{0}b", &"x".repeat(SOURCE_MAX + 1)] {
        let SupplyDecision::Supplied(supplied) =
            decide(json!({"source": source}), track_meta("en", true), TrackSelector::Default)
        else {
            panic!("{source}")
        };
        assert_eq!(supplied.transcripts[0].source, SERVICE_SUPPLIER);
    }
}

#[test]
fn transcript_keeps_words_and_details() {
    let words = json!([{"text": "Never", "start": 0.5, "duration": 0.25}, {"text": "gonna", "start": 1, "duration": 0.5}]);
    let changes = json!({
        "transcript": [{"text": "Never gonna", "start": 0.5, "duration": 1.25, "words": words}],
        "language": "en",
        "languages": [{"tag": "de", "name": "Die Fassung", "kind": "manual", "original": false},
            {"tag": "en", "name": "English", "kind": "auto", "original": true}],
        "metadata": {"title": "Never", "author": "Rick", "authorId": "UC1", "authorUrl": "https://a.example/rick",
            "durationSeconds": 213.5, "publishedAt": "2009-10-25T06:57:33Z", "live": "not_live"},
        "chapters": [{"title": "Intro", "start": 0}, {"title": "Verse", "start": 18.5}],
    });
    let decision = decide(changes, track_meta("en", true), TrackSelector::Default);
    let SupplyDecision::Supplied(supplied) = decision else { panic!("{decision:?}") };
    let transcript = &supplied.transcripts[0];
    assert_eq!((transcript.title.as_deref(), transcript.author.as_deref()), (Some("Never"), Some("Rick")));
    assert_eq!(transcript.duration_ms, Some(213_500));
    assert_eq!(transcript.segments[0].words, [Word::new("Never", 500, 250), Word::new("gonna", 1_000, 500)]);
    assert!(transcript.track.original && transcript.track.name.is_none());
    let tracks: Vec<_> =
        supplied.known_tracks.iter().map(|t| (t.language.as_str(), t.name.as_deref())).collect();
    assert_eq!(tracks, [("de", Some("Die Fassung")), ("en", None)]);
    let chapter = |title: &str, start_ms| Chapter { title: title.to_owned(), start_ms };
    let expect = VideoMetadata {
        author_id: Some("UC1".to_owned()),
        author_url: Some("https://a.example/rick".to_owned()),
        published_at: Timestamp::parse("2009-10-25T06:57:33Z"),
        live: Some(LiveStatus::NotLive),
        chapters: vec![chapter("Intro", 0), chapter("Verse", 18_500)],
        ..VideoMetadata::default()
    };
    assert_eq!(supplied.metadata, expect);
}

#[test]
fn transcript_hostile_details_are_left_out() {
    let word = |text: &str, start: f64| json!({"text": text, "start": start, "duration": 0});
    let changes = json!({
        "transcript": [{"text": "a b", "start": 0, "duration": 1, "words": [word("b", 0.0), word("a", 0.5)]},
            {"text": "c", "start": 1, "duration": 1, "words": [word("c", -1.0)]}],
        "languages": [{"tag": "no language", "name": "", "kind": "auto", "original": true},
            {"tag": "de", "name": "x".repeat(100_000), "kind": "new", "original": true}],
        "metadata": {"title": " a\nb\u{0} ", "authorUrl": "javascript:alert(1)", "durationSeconds": -5,
            "publishedAt": "soon", "live": "perhaps", "thumbnailUrl": "http://a.example"},
        "chapters": [{"title": "late", "start": 1e300}, {"title": "", "start": 1}],
    });
    let decision = decide(changes, track_meta("en", true), TrackSelector::Default);
    let SupplyDecision::Supplied(supplied) = decision else { panic!("{decision:?}") };
    let transcript = &supplied.transcripts[0];
    assert!(transcript.check().is_ok() && !transcript.has_words());
    assert_eq!((transcript.title.as_deref(), transcript.duration_ms), (Some("a b"), None));
    assert!(supplied.metadata.is_empty(), "{:?}", supplied.metadata);
    assert_eq!(supplied.known_tracks.iter().collect::<Vec<_>>(), [&transcript.track]);
}

#[test]
fn transcript_page_is_not_supplied() {
    let changes = json!({"nextCursor": "0a1b2c3d-5", "totalChars": 90});
    let error = failure(changes, track_meta("en", true), TrackSelector::Default);
    assert_eq!(*error.reason(), SupplyReason::Unreadable, "{error}");
}

#[test]
fn selector_other_language_is_not_supplied() {
    assert!(matches!(
        decide(json!({}), track_meta("de-AT", true), language("de")),
        SupplyDecision::Supplied(_)
    ));
    let other = failure(json!({}), track_meta("fr", false), language("de"));
    assert!(!other.reason().is_about_video() && other.message().ends_with("this video's is in fr."));
    let silent = failure(json!({}), ResponseMeta::default(), language("de"));
    assert_eq!(*silent.reason(), SupplyReason::Unreadable);
    assert!(![other, silent].iter().any(SupplyError::counts_against_supplier));
}

#[test]
fn response_of_other_video_or_invalid_is_rejected() {
    for changes in [json!({"videoId": "aaaaaaaaaaa"}), json!({"platform": "reels"})] {
        assert_eq!(
            *failure(changes, track_meta("en", false), TrackSelector::Default).reason(),
            SupplyReason::OtherVideo
        );
    }
    let late = json!({"transcript": [{"text": "x", "start": 1e300, "duration": 1.0}]});
    assert_eq!(
        *failure(late, track_meta("en", false), TrackSelector::Default).reason(),
        SupplyReason::Unreadable
    );
}

#[test]
fn failure_reason_each_maps_to_supply_reason() {
    use SupplyReason as Why;
    let wait = Some(Duration::from_secs(7));
    for (reason, meta, expect, has_page) in [
        ("no_captions", ResponseMeta::default(), Why::NoCaptions, false),
        ("needs_verification", ResponseMeta::default(), Why::Misconfigured, true),
        ("key_allowance", ResponseMeta::default(), Why::Throttled(None), true),
        ("allowance", ResponseMeta::default(), Why::Throttled(None), true),
        ("daily_cap", ResponseMeta::default(), Why::Throttled(None), true),
        (
            "fair_use",
            ResponseMeta { retry_after: wait, ..ResponseMeta::default() },
            Why::Throttled(wait),
            true,
        ),
        ("rate_limited", ResponseMeta::default(), Why::Throttled(None), false),
        ("fetch_error", ResponseMeta::default(), Why::PlatformFault, false),
        ("config_error", ResponseMeta::default(), Why::Misconfigured, false),
        ("something_new", ResponseMeta::default(), Why::PlatformFault, false),
    ] {
        let changes = json!({"available": false, "failureReason": reason, "failureMessage": "It\nis so.",
            "transcript": []});
        let error = failure(changes, meta, TrackSelector::Default);
        assert_eq!(*error.reason(), expect, "{reason}");
        // Failures that may concern one video only must not open the breaker.
        let is_server_failure =
            !["no_captions", "rate_limited", "fetch_error", "something_new"].contains(&reason);
        assert_eq!(error.counts_against_supplier(), is_server_failure, "{reason}");
        assert_eq!(error.message().ends_with(ADDRESS), has_page, "{reason}: {error}");
        assert!(!error.message().contains('\n'), "{reason}");
    }
    assert!(FailureReason::ALL.len() == 9, "a failure reason has no case above");
    let silent = json!({"available": false, "failureMessage": "It is so.", "transcript": []});
    let error = failure(silent, ResponseMeta::default(), TrackSelector::Default);
    assert!(*error.reason() == Why::Unreadable && error.counts_against_supplier(), "{error}");
    let odd =
        json!({"available": false, "failureReason": "key_allowance", "watchUrl": "javascript:alert(1)"});
    assert!(!failure(odd, ResponseMeta::default(), TrackSelector::Default).message().contains("javascript"));
}

#[test]
fn fetch_error_with_short_retry_after_is_polled() {
    let changes = || json!({"available": false, "failureReason": "fetch_error", "failureMessage": "Wait."});
    let named =
        |seconds| ResponseMeta { retry_after: Some(Duration::from_secs(seconds)), ..ResponseMeta::default() };
    for (named_s, expect_s) in [(0, 1), (7, 7), (30, 30)] {
        let later = decide(changes(), named(named_s), TrackSelector::Default);
        let SupplyDecision::Later(wait, _) = later else { panic!("{named_s}: {later:?}") };
        assert_eq!(wait.as_secs(), expect_s);
    }
    let cooling = failure(changes(), named(31), TrackSelector::Default);
    assert_eq!(cooling.retry_after(), Some(Duration::from_secs(31)));
    for detail in ["busy", "storage", "something_new"] {
        let meta = ResponseMeta { failure_detail: Some(detail.to_owned()), ..named(10) };
        let busy = failure(changes(), meta, TrackSelector::Default);
        assert_eq!(busy.retry_after(), Some(Duration::from_secs(10)), "{detail}");
        assert!(!busy.counts_against_supplier(), "{detail}");
    }
}

#[test]
fn still_working_detail_is_polled_for_any_retry_after() {
    let changes = || json!({"available": false, "failureReason": "fetch_error", "failureMessage": "Wait."});
    for (named_s, expect_s) in [(0, 1), (60, 30), (300, 30)] {
        let meta = ResponseMeta {
            retry_after: Some(Duration::from_secs(named_s)),
            failure_detail: Some(STILL_WORKING.to_owned()),
            ..ResponseMeta::default()
        };
        let later = decide(changes(), meta, TrackSelector::Default);
        let SupplyDecision::Later(wait, failure) = later else { panic!("{named_s}: {later:?}") };
        assert_eq!(wait.as_secs(), expect_s);
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(named_s)));
    }
}

#[test]
fn failure_detail_maps_to_video_reason() {
    use SupplyReason as Why;
    for (detail, expect) in [
        ("private", Why::Private),
        ("removed", Why::Removed),
        ("region", Why::Region),
        ("age", Why::Age),
        ("members", Why::Members),
        ("payment", Why::Payment),
        ("login", Why::Login),
        ("live", Why::Live),
        ("upcoming", Why::Upcoming(Some(at(1_090)))),
        ("no_captions", Why::NoCaptions),
        ("no_language", Why::NoLanguage(Vec::new())),
        ("something_new", Why::NoCaptions),
    ] {
        let meta = ResponseMeta {
            retry_after: Some(Duration::from_secs(90)),
            failure_detail: Some(detail.to_owned()),
            ..ResponseMeta::default()
        };
        let changes =
            json!({"available": false, "failureReason": "no_captions", "failureMessage": "So it is."});
        let error = failure(changes, meta, TrackSelector::Default);
        assert_eq!((error.reason(), error.message()), (&expect, "So it is."), "{detail}");
    }
    let meta = ResponseMeta { failure_detail: Some("withdrawn".to_owned()), ..ResponseMeta::default() };
    let withdrawn =
        failure(json!({"available": false, "failureReason": "no_captions"}), meta, TrackSelector::Default);
    assert!(withdrawn.is_declined() && withdrawn.was_attempted());
    assert!(withdrawn.message().contains("other Verbatim server"));
}
