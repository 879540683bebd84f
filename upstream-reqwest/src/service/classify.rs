//! Translates a server's response into the outcome of a supplier. No I/O.

use std::time::Duration;

use transcript_core::{
    archive::TrackSelector,
    body::segments,
    lookup::FailureReason,
    service::{ResponseMeta, SERVICE_SUPPLIER, ServiceErrorKind, ServiceReply},
    supplier::{SupplyError, SupplyOutput, SupplyReason, SupplyRequest},
    time::Timestamp,
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, best_track},
    wire::lookup::TranscriptResult,
};

use super::call_error::{CallError, single_line};

/// Maximum length of a supplier's name in bytes; a longer one is replaced.
const SOURCE_MAX: usize = 64;
/// Maximum length of a page's URL in bytes; a longer one is dropped.
const ADDRESS_MAX: usize = 500;
/// Bounds of the pause before a server that is still fetching is called again. Without the detail
/// [`STILL_WORKING`], a `Retry-After` above the maximum means that a supplier cools down and no fetch is running.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// The failure detail of a server whose fetch is still running.
const STILL_WORKING: &str = "still_working";

/// Decision about a server's response.
#[derive(Debug)]
pub(super) enum SupplyDecision {
    /// A transcript.
    Supplied(SupplyOutput),
    /// The server is still fetching: call it again after this time, or report this error at the deadline.
    Later(Duration, SupplyError),
    /// No transcript.
    Failed(SupplyError),
}

/// Decides about a response of the lookup API that arrived at `now`.
pub(super) fn classify_response(
    response: ServiceReply<TranscriptResult>,
    request: &SupplyRequest,
    now: Timestamp,
) -> SupplyDecision {
    let ServiceReply { body, meta } = response;
    let (platform, id) = (request.video.platform().as_str(), request.video.id());
    if body.video_id != id || !(body.platform.is_empty() || body.platform == platform) {
        let message = "The other Verbatim server returned another video.";
        return SupplyDecision::Failed(SupplyError::new(SupplyReason::OtherVideo, message));
    }
    match body.available {
        true => supplied(body, &meta, request).map_or_else(SupplyDecision::Failed, SupplyDecision::Supplied),
        false => missing(&body, &meta, now),
    }
}

fn supplied(
    body: TranscriptResult,
    meta: &ResponseMeta,
    request: &SupplyRequest,
) -> Result<SupplyOutput, SupplyError> {
    let language = meta.language.clone();
    if language.is_none() && request.selector != TrackSelector::Default {
        return Err(unreadable("it does not name the language of its transcript").ambiguous());
    }
    // Captions without a statement that a person wrote them count as generated.
    let kind = if meta.is_generated == Some(false) { TrackKind::Human } else { TrackKind::Generated };
    let track = TrackInfo::new(language.unwrap_or_else(LanguageTag::unknown), kind);
    if best_track([&track], &request.selector).is_none() {
        let message = format!(
            "The other Verbatim server returns one transcript per video, and this video's is in {}.",
            track.language.as_str()
        );
        // The response does not list the video's other tracks.
        return Err(SupplyError::new(SupplyReason::PlatformFault, message).ambiguous());
    }
    let segments =
        segments::from_wire(body.transcript).ok_or_else(|| unreadable("a timestamp in it is invalid"))?;
    let transcript = Transcript {
        video: request.video.clone(),
        // The lookup API returns neither of them, nor the video's length.
        title: None,
        author: None,
        duration_ms: None,
        track: track.clone(),
        source: body.source.filter(|name| is_source(name)).unwrap_or_else(|| SERVICE_SUPPLIER.to_owned()),
        segments,
    };
    Ok(SupplyOutput { transcripts: vec![transcript], known_tracks: vec![track], ..SupplyOutput::default() })
}

/// Whether a text is a valid supplier name.
fn is_source(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    (1..=SOURCE_MAX).contains(&name.len()) && name.bytes().all(plain)
}

fn missing(body: &TranscriptResult, meta: &ResponseMeta, now: Timestamp) -> SupplyDecision {
    let message = body.failure_message.as_deref().and_then(single_line);
    let message = message.unwrap_or_else(|| "It named no reason.".to_owned());
    let Some(reason) = body.failure_reason.as_deref().and_then(FailureReason::from_wire) else {
        return SupplyDecision::Failed(unreadable("it has no transcript and names no known reason"));
    };
    let with_server_name = |what: &str| format!("The other Verbatim server {what}: {message}");
    let failure = |reason, message| SupplyError::new(reason, message);
    SupplyDecision::Failed(match reason {
        // A property of the video holds for every server; the server's message says which.
        FailureReason::NoCaptions => no_captions(meta, message, now),
        FailureReason::NeedsVerification => failure(
            SupplyReason::Misconfigured,
            with_page(
                "The other Verbatim server does not know the API key. The operator can correct \
                 service.api_key."
                    .to_owned(),
                &body.watch_url,
            ),
        ),
        FailureReason::KeyAllowance
        | FailureReason::Allowance
        | FailureReason::DailyCap
        | FailureReason::FairUse => failure(
            SupplyReason::Throttled(meta.retry_after),
            with_page(with_server_name("returns no more new transcripts for now"), &body.watch_url),
        ),
        // The error may concern this video only, so it must not open the breaker for all videos.
        FailureReason::RateLimited => failure(
            SupplyReason::Throttled(meta.retry_after),
            with_server_name("is throttled by the platform"),
        )
        .ambiguous(),
        FailureReason::FetchError => {
            let failure =
                failure(SupplyReason::PlatformFault, with_server_name("could not fetch the transcript now"))
                    .ambiguous();
            let is_working = meta.failure_detail.as_deref() == Some(STILL_WORKING);
            match meta.retry_after {
                Some(wait) if is_working || wait <= RETRY_MAX => {
                    return SupplyDecision::Later(
                        wait.clamp(RETRY_MIN, RETRY_MAX),
                        failure.with_retry_after(wait),
                    );
                }
                Some(wait) => failure.with_retry_after(wait),
                None => failure,
            }
        }
        FailureReason::ConfigError => {
            failure(SupplyReason::Misconfigured, with_server_name("has no source for the video"))
        }
    })
}

/// The other server's reason for a video without captions.
///
/// The reason decides how long this server stores the absence: as long as the other server.
fn no_captions(meta: &ResponseMeta, message: String, now: Timestamp) -> SupplyError {
    let reason = match meta.failure_detail.as_deref() {
        Some("private") => SupplyReason::Private,
        Some("removed") => SupplyReason::Removed,
        Some("region") => SupplyReason::Region,
        Some("age") => SupplyReason::Age,
        Some("members") => SupplyReason::Members,
        Some("payment") => SupplyReason::Payment,
        Some("login") => SupplyReason::Login,
        Some("live") => SupplyReason::Live,
        Some("upcoming") => SupplyReason::Upcoming(meta.retry_after.map(|wait| now.plus(wait))),
        // A withdrawal by another operator does not apply here; the local suppliers decide.
        Some("withdrawn") => {
            let message = "The other Verbatim server has withdrawn its transcript of this video.";
            return SupplyError::declined(SupplyReason::NoCaptions, message);
        }
        _ => SupplyReason::NoCaptions,
    };
    SupplyError::new(reason, message)
}

/// A message with the page where a person may get the transcript: the URL as the server sent it.
fn with_page(sentence: String, address: &str) -> String {
    let is_address = (address.starts_with("https://") || address.starts_with("http://"))
        && address.len() <= ADDRESS_MAX
        && address.bytes().all(|byte| byte.is_ascii_graphic());
    match is_address {
        true => format!("{sentence} The transcript page is {address}"),
        false => sentence,
    }
}

/// The supply error of a failed call.
pub(super) fn supply_error(error: &CallError) -> SupplyError {
    let server = "The other Verbatim server";
    let (reason, message) = match error {
        CallError::Timeout => (SupplyReason::Timeout, format!("{server} took too long to respond.")),
        CallError::Unreachable(how) => {
            (SupplyReason::Unreachable, format!("{server} could not be reached: {how}."))
        }
        CallError::CutOff => (SupplyReason::Unreadable, format!("{server} ended its response early.")),
        CallError::Unreadable(what) => return unreadable(what),
        CallError::Invalid(what) => {
            (SupplyReason::Misconfigured, format!("{server} was not called: {what}."))
        }
        CallError::Rejected(no) => {
            let status = no.status.unwrap_or_default();
            match no.kind {
                ServiceErrorKind::Unauthorized => (
                    SupplyReason::Misconfigured,
                    format!("{server} rejected the API key. The operator can correct service.api_key."),
                ),
                ServiceErrorKind::NotFound | ServiceErrorKind::WrongMethod | ServiceErrorKind::Redirected => {
                    (
                        SupplyReason::Misconfigured,
                        format!(
                            "No Verbatim server responds at the configured address (HTTP {status}). The operator can \
                             correct service.base_url."
                        ),
                    )
                }
                ServiceErrorKind::RateLimited => (
                    SupplyReason::Throttled(no.meta.retry_after),
                    format!("{server} receives too many requests from this one (HTTP 429)."),
                ),
                ServiceErrorKind::ServerError => (
                    SupplyReason::PlatformFault,
                    format!("{server} failed with an internal error (HTTP {status}). Try again in a moment."),
                ),
                // The server accepts other links than this one, or has another version.
                _ => {
                    let message = format!("{server} rejected the request (HTTP {status}).");
                    return SupplyError::new(SupplyReason::Unreadable, message).ambiguous();
                }
            }
        }
    };
    SupplyError::new(reason, message)
}

fn unreadable(what: &str) -> SupplyError {
    let message = format!("The response of the other Verbatim server is invalid: {what}.");
    SupplyError::new(SupplyReason::Unreadable, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use transcript_core::video::{Platform, VideoId};

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
            ("something_new", ResponseMeta::default(), Why::Unreadable, false),
        ] {
            let changes = json!({"available": false, "failureReason": reason, "failureMessage": "It\nis so.",
                "transcript": []});
            let error = failure(changes, meta, TrackSelector::Default);
            assert_eq!(*error.reason(), expect, "{reason}");
            // Failures that may concern one video only must not open the breaker.
            let is_server_failure = !["no_captions", "rate_limited", "fetch_error"].contains(&reason);
            assert_eq!(error.counts_against_supplier(), is_server_failure, "{reason}");
            assert_eq!(error.message().ends_with(ADDRESS), has_page, "{reason}: {error}");
            assert!(!error.message().contains('\n'), "{reason}");
        }
        assert!(FailureReason::ALL.len() == 9, "a failure reason has no case above");
        let odd =
            json!({"available": false, "failureReason": "key_allowance", "watchUrl": "javascript:alert(1)"});
        assert!(
            !failure(odd, ResponseMeta::default(), TrackSelector::Default).message().contains("javascript")
        );
    }

    #[test]
    fn fetch_error_with_short_retry_after_is_polled() {
        let changes =
            || json!({"available": false, "failureReason": "fetch_error", "failureMessage": "Wait."});
        let named = |seconds| ResponseMeta {
            retry_after: Some(Duration::from_secs(seconds)),
            ..ResponseMeta::default()
        };
        for (named_s, expect_s) in [(0, 1), (7, 7), (30, 30)] {
            let later = decide(changes(), named(named_s), TrackSelector::Default);
            let SupplyDecision::Later(wait, _) = later else { panic!("{named_s}: {later:?}") };
            assert_eq!(wait.as_secs(), expect_s);
        }
        let cooling = failure(changes(), named(31), TrackSelector::Default);
        assert_eq!(cooling.retry_after(), Some(Duration::from_secs(31)));
    }

    #[test]
    fn still_working_detail_is_polled_for_any_retry_after() {
        let changes =
            || json!({"available": false, "failureReason": "fetch_error", "failureMessage": "Wait."});
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
            ("no_language", Why::NoCaptions),
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
        let withdrawn = failure(
            json!({"available": false, "failureReason": "no_captions"}),
            meta,
            TrackSelector::Default,
        );
        assert!(withdrawn.is_declined() && withdrawn.message().contains("other Verbatim server"));
    }
}
