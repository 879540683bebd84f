//! What a server's answer means for whoever asked it for a transcript. Pure.

use std::time::Duration;

use transcript_core::{
    archive::Wish,
    lookup::FailureReason,
    supplier::{Ask, Supplied, SupplyError, SupplyReason},
    time::Timestamp,
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, best_track},
    wire::{lookup::TranscriptResult, segments},
};

use super::{Answered, Facts, RefusalKind, SERVICE_SUPPLIER, ServiceError, refusal::line};

/// The longest name of a supplier that is passed on, in bytes.
const SOURCE_MAX: usize = 64;
/// The longest address of a page that is passed on, in bytes.
const ADDRESS_MAX: usize = 500;
/// The shortest and the longest time after which a server is asked again for what it is still fetching. Of one that does
/// not say whether it is: who names a longer one has a source at rest, and nothing under way.
const LATER_MIN: Duration = Duration::from_secs(1);
const LATER_MAX: Duration = Duration::from_secs(30);
/// What a server says of work that goes on.
const STILL_WORKING: &str = "still_working";

/// What came of asking.
#[derive(Debug)]
pub(super) enum Judged {
    /// A transcript.
    Supplied(Supplied),
    /// The server is still at work: ask again after this time. Where that is too late, it is this failure.
    Later(Duration, SupplyError),
    /// None.
    Failed(SupplyError),
}

/// What an answer of Surface A means that came at this moment.
pub(super) fn judge(answer: Answered<TranscriptResult>, ask: &Ask, now: Timestamp) -> Judged {
    let Answered { body, facts } = answer;
    let (platform, id) = (ask.video.platform().as_str(), ask.video.id());
    if body.video_id != id || !(body.platform.is_empty() || body.platform == platform) {
        let message = "The Verbatim server that this one asks answered about another video.";
        return Judged::Failed(SupplyError::new(SupplyReason::OtherVideo, message));
    }
    match body.available {
        true => supplied(body, &facts, ask).map_or_else(Judged::Failed, Judged::Supplied),
        false => missing(&body, &facts, now),
    }
}

fn supplied(body: TranscriptResult, facts: &Facts, ask: &Ask) -> Result<Supplied, SupplyError> {
    let language = facts.language.clone();
    if language.is_none() && ask.wish != Wish::Default {
        return Err(unreadable("it does not tell the language of its transcript").perhaps_the_video());
    }
    // Words of which nobody says that a person wrote them are no person's.
    let kind = if facts.is_generated == Some(false) { TrackKind::Human } else { TrackKind::Generated };
    let track = TrackInfo::new(language.unwrap_or_else(LanguageTag::unknown), kind);
    if best_track([&track], &ask.wish).is_none() {
        let message = format!(
            "The Verbatim server that this one asks gives one transcript of a video; this one's is in {}.",
            track.language.as_str()
        );
        // Which others the video has, nobody said.
        return Err(SupplyError::new(SupplyReason::PlatformFault, message).perhaps_the_video());
    }
    let segments = segments::timed(body.transcript).ok_or_else(|| unreadable("its times are none"))?;
    let transcript = Transcript {
        video: ask.video.clone(),
        // Surface A tells neither, nor the video's length.
        title: None,
        author: None,
        duration_ms: None,
        track: track.clone(),
        source: body.source.filter(|name| is_source(name)).unwrap_or_else(|| SERVICE_SUPPLIER.to_owned()),
        segments,
    };
    Ok(Supplied { tracks: vec![transcript], known_tracks: vec![track] })
}

/// Whether a text can be the name of a supplier.
fn is_source(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    (1..=SOURCE_MAX).contains(&name.len()) && name.bytes().all(plain)
}

fn missing(body: &TranscriptResult, facts: &Facts, now: Timestamp) -> Judged {
    let said = body.failure_message.as_deref().and_then(line);
    let said = said.unwrap_or_else(|| "It does not say why.".to_owned());
    let Some(reason) = body.failure_reason.as_deref().and_then(FailureReason::from_wire) else {
        return Judged::Failed(unreadable("it gives no transcript, for no reason that is known"));
    };
    let theirs = |what: &str| format!("The Verbatim server that this one asks {what}: {said}");
    let failure = |reason, message| SupplyError::new(reason, message);
    Judged::Failed(match reason {
        // What the video is, it is for everybody: its own sentence says which.
        FailureReason::NoCaptions => no_captions(facts, said, now),
        FailureReason::NeedsVerification => failure(
            SupplyReason::Misconfigured,
            with_page(
                "The Verbatim server that this one asks does not know its key. The operator can correct \
                 service.api_key."
                    .to_owned(),
                &body.watch_url,
            ),
        ),
        FailureReason::KeyAllowance
        | FailureReason::Allowance
        | FailureReason::DailyCap
        | FailureReason::FairUse => failure(
            SupplyReason::Throttled(facts.retry_after),
            with_page(theirs("gives no more new transcripts for now"), &body.watch_url),
        ),
        // What it met with this video says little of it: an odd link must not make it rest for all others.
        FailureReason::RateLimited => {
            failure(SupplyReason::Throttled(facts.retry_after), theirs("is throttled itself"))
                .perhaps_the_video()
        }
        FailureReason::FetchError => {
            let failure =
                failure(SupplyReason::PlatformFault, theirs("could not fetch it now")).perhaps_the_video();
            let is_at_work = facts.failure_detail.as_deref() == Some(STILL_WORKING);
            match facts.retry_after {
                Some(wait) if is_at_work || wait <= LATER_MAX => {
                    return Judged::Later(wait.clamp(LATER_MIN, LATER_MAX), failure.again_after(wait));
                }
                Some(wait) => failure.again_after(wait),
                None => failure,
            }
        }
        FailureReason::ConfigError => failure(SupplyReason::Misconfigured, theirs("has no source for it")),
    })
}

/// What the other server knows of a video without words, so that it is remembered here for as long as there.
fn no_captions(facts: &Facts, said: String, now: Timestamp) -> SupplyError {
    let reason = match facts.failure_detail.as_deref() {
        Some("private") => SupplyReason::Private,
        Some("removed") => SupplyReason::Removed,
        Some("region") => SupplyReason::Region,
        Some("age") => SupplyReason::Age,
        Some("members") => SupplyReason::Members,
        Some("payment") => SupplyReason::Payment,
        Some("login") => SupplyReason::Login,
        Some("live") => SupplyReason::Live,
        Some("upcoming") => SupplyReason::Upcoming(facts.retry_after.map(|wait| now.plus(wait))),
        // Its operator's will is not ours: what our own sources say is the answer.
        Some("withdrawn") => {
            let message =
                "The Verbatim server that this one asks has withdrawn its transcript of this video.";
            return SupplyError::declined(SupplyReason::NoCaptions, message);
        }
        _ => SupplyReason::NoCaptions,
    };
    SupplyError::new(reason, said)
}

/// A sentence, and where a person may get what we cannot: the address as the server sent it.
fn with_page(sentence: String, address: &str) -> String {
    let is_address = (address.starts_with("https://") || address.starts_with("http://"))
        && address.len() <= ADDRESS_MAX
        && address.bytes().all(|byte| byte.is_ascii_graphic());
    match is_address {
        true => format!("{sentence} A person can look at {address}"),
        false => sentence,
    }
}

/// What a call without an answer means.
pub(super) fn failed(error: &ServiceError) -> SupplyError {
    let server = "The Verbatim server that this one asks";
    let (reason, message) = match error {
        ServiceError::Timeout => (SupplyReason::Timeout, format!("{server} took too long to answer.")),
        ServiceError::Unreachable(how) => {
            (SupplyReason::Unreachable, format!("{server} could not be reached: {how}."))
        }
        ServiceError::CutOff => (SupplyReason::Unreadable, format!("{server} broke off its answer.")),
        ServiceError::Unreadable(what) => return unreadable(what),
        ServiceError::Invalid(what) => {
            (SupplyReason::Misconfigured, format!("{server} was not asked: {what}."))
        }
        ServiceError::Refused(no) => {
            let status = no.status;
            match no.kind {
                RefusalKind::Unauthorized => (
                    SupplyReason::Misconfigured,
                    format!("{server} does not accept its key. The operator can correct service.api_key."),
                ),
                RefusalKind::NotFound | RefusalKind::WrongMethod | RefusalKind::Redirected => (
                    SupplyReason::Misconfigured,
                    format!(
                        "There is no Verbatim server at service.base_url (HTTP {status}). The operator can correct it."
                    ),
                ),
                RefusalKind::RateLimited => (
                    SupplyReason::Throttled(no.facts.retry_after),
                    format!("{server} gets too many requests from this one (HTTP 429)."),
                ),
                RefusalKind::Fault => (
                    SupplyReason::PlatformFault,
                    format!("{server} has a fault of its own (HTTP {status}). Try again in a moment."),
                ),
                // It takes other links than we do, or is of a version that does.
                _ => {
                    let message = format!("{server} refuses what it is asked (HTTP {status}).");
                    return SupplyError::new(SupplyReason::Unreadable, message).perhaps_the_video();
                }
            }
        }
    };
    SupplyError::new(reason, message)
}

fn unreadable(what: &str) -> SupplyError {
    let message = format!("The answer of the Verbatim server that this one asks is of no use: {what}.");
    SupplyError::new(SupplyReason::Unreadable, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use transcript_core::video::{Platform, VideoId};

    use super::*;

    const ADDRESS: &str = "https://a.example/watch/video_site/dQw4w9WgXcQ";

    fn ask(wish: Wish) -> Ask {
        let video = VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap();
        Ask { video, wish, deadline: Timestamp::from_millis(0) }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_secs(seconds))
    }

    fn judged(changes: Value, facts: Facts, wish: Wish) -> Judged {
        let mut body = json!({
            "platform": "video_site", "videoId": "dQw4w9WgXcQ", "available": true, "fromCache": true,
            "watchUrl": ADDRESS, "source": "youtube-captions",
            "transcript": [{"text": "Never gonna", "start": 0.5, "duration": 1.25}],
        });
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        judge(Answered { body: serde_json::from_value(body).unwrap(), facts }, &ask(wish), at(1_000))
    }

    fn failure(changes: Value, facts: Facts, wish: Wish) -> SupplyError {
        match judged(changes, facts, wish) {
            Judged::Failed(error) => error,
            other => panic!("{other:?}"),
        }
    }

    fn told(language: &str, is_generated: bool) -> Facts {
        let language = LanguageTag::parse(language).ok();
        Facts { language, is_generated: Some(is_generated), ..Facts::default() }
    }

    fn language(tag: &str) -> Wish {
        Wish::Language(LanguageTag::parse(tag).unwrap())
    }

    #[test]
    fn a_transcript_keeps_its_words_language_kind_and_source() {
        for (facts, tag, kind) in [
            (told("en", false), "en", TrackKind::Human),
            (told("pt-BR", true), "pt-BR", TrackKind::Generated),
            // Who does not say so is not believed that a person wrote it.
            (Facts::default(), "und", TrackKind::Generated),
        ] {
            let Judged::Supplied(supplied) = judged(json!({}), facts, Wish::Default) else { panic!("{tag}") };
            let transcript = &supplied.tracks[0];
            assert_eq!((transcript.track.language.as_str(), transcript.track.kind), (tag, kind));
            assert_eq!(transcript.source, "youtube-captions");
            assert_eq!(
                transcript.segments,
                [transcript_core::transcript::Segment::new("Never gonna", 500, 1_250)]
            );
            assert!(transcript.check().is_ok() && supplied.known_tracks.len() == 1);
        }
        for source in ["", "Not A Name", "a\u{0}b", &"x".repeat(SOURCE_MAX + 1)] {
            let Judged::Supplied(supplied) =
                judged(json!({"source": source}), told("en", true), Wish::Default)
            else {
                panic!("{source}")
            };
            assert_eq!(supplied.tracks[0].source, SERVICE_SUPPLIER);
        }
    }

    #[test]
    fn only_the_wished_language_answers_a_wish() {
        assert!(matches!(judged(json!({}), told("de-AT", true), language("de")), Judged::Supplied(_)));
        let other = failure(json!({}), told("fr", false), language("de"));
        assert!(!other.reason().is_about_the_video() && other.message().ends_with("this one's is in fr."));
        let silent = failure(json!({}), Facts::default(), language("de"));
        assert_eq!(*silent.reason(), SupplyReason::Unreadable);
        assert!(![other, silent].iter().any(SupplyError::speaks_against_the_supplier));
    }

    #[test]
    fn what_is_of_another_video_or_no_transcript_is_refused() {
        for changes in [json!({"videoId": "aaaaaaaaaaa"}), json!({"platform": "reels"})] {
            assert_eq!(
                *failure(changes, told("en", false), Wish::Default).reason(),
                SupplyReason::OtherVideo
            );
        }
        let late = json!({"transcript": [{"text": "x", "start": 1e300, "duration": 1.0}]});
        assert_eq!(*failure(late, told("en", false), Wish::Default).reason(), SupplyReason::Unreadable);
    }

    #[test]
    fn every_failure_reason_has_a_meaning() {
        use SupplyReason as Why;
        let wait = Some(Duration::from_secs(7));
        for (reason, facts, expect, has_page) in [
            ("no_captions", Facts::default(), Why::NoCaptions, false),
            ("needs_verification", Facts::default(), Why::Misconfigured, true),
            ("key_allowance", Facts::default(), Why::Throttled(None), true),
            ("allowance", Facts::default(), Why::Throttled(None), true),
            ("daily_cap", Facts::default(), Why::Throttled(None), true),
            ("fair_use", Facts { retry_after: wait, ..Facts::default() }, Why::Throttled(wait), true),
            ("rate_limited", Facts::default(), Why::Throttled(None), false),
            ("fetch_error", Facts::default(), Why::PlatformFault, false),
            ("config_error", Facts::default(), Why::Misconfigured, false),
            ("something_new", Facts::default(), Why::Unreadable, false),
        ] {
            let changes = json!({"available": false, "failureReason": reason, "failureMessage": "It\nis so.",
                "transcript": []});
            let error = failure(changes, facts, Wish::Default);
            assert_eq!(*error.reason(), expect, "{reason}");
            // Whoever asks for odd videos must not take the server from all others.
            let is_its_own = !["no_captions", "rate_limited", "fetch_error"].contains(&reason);
            assert_eq!(error.speaks_against_the_supplier(), is_its_own, "{reason}");
            assert_eq!(error.message().ends_with(ADDRESS), has_page, "{reason}: {error}");
            assert!(!error.message().contains('\n'), "{reason}");
        }
        assert!(FailureReason::ALL.len() == 9, "a reason without a line above");
        let odd =
            json!({"available": false, "failureReason": "key_allowance", "watchUrl": "javascript:alert(1)"});
        assert!(!failure(odd, Facts::default(), Wish::Default).message().contains("javascript"));
    }

    #[test]
    fn a_server_that_is_at_work_is_asked_again_when_it_says() {
        let changes =
            || json!({"available": false, "failureReason": "fetch_error", "failureMessage": "Wait."});
        let named = |seconds| Facts { retry_after: Some(Duration::from_secs(seconds)), ..Facts::default() };
        for (named_s, expect_s) in [(0, 1), (7, 7), (30, 30)] {
            let later = judged(changes(), named(named_s), Wish::Default);
            let Judged::Later(wait, _) = later else { panic!("{named_s}: {later:?}") };
            assert_eq!(wait.as_secs(), expect_s);
        }
        let rests = failure(changes(), named(31), Wish::Default);
        assert_eq!(rests.retry_after(), Some(Duration::from_secs(31)));
    }

    #[test]
    fn a_server_that_says_so_is_at_work_whatever_wait_it_names() {
        let changes =
            || json!({"available": false, "failureReason": "fetch_error", "failureMessage": "Wait."});
        for (named_s, expect_s) in [(0, 1), (60, 30), (300, 30)] {
            let facts = Facts {
                retry_after: Some(Duration::from_secs(named_s)),
                failure_detail: Some(STILL_WORKING.to_owned()),
                ..Facts::default()
            };
            let later = judged(changes(), facts, Wish::Default);
            let Judged::Later(wait, failure) = later else { panic!("{named_s}: {later:?}") };
            assert_eq!(wait.as_secs(), expect_s);
            assert_eq!(failure.retry_after(), Some(Duration::from_secs(named_s)));
        }
    }

    #[test]
    fn what_is_known_of_the_video_comes_through() {
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
            let facts = Facts {
                retry_after: Some(Duration::from_secs(90)),
                failure_detail: Some(detail.to_owned()),
                ..Facts::default()
            };
            let changes =
                json!({"available": false, "failureReason": "no_captions", "failureMessage": "So it is."});
            let error = failure(changes, facts, Wish::Default);
            assert_eq!((error.reason(), error.message()), (&expect, "So it is."), "{detail}");
        }
        let facts = Facts { failure_detail: Some("withdrawn".to_owned()), ..Facts::default() };
        let withdrawn =
            failure(json!({"available": false, "failureReason": "no_captions"}), facts, Wish::Default);
        assert!(withdrawn.is_declined() && withdrawn.message().contains("server that this one asks"));
    }
}
