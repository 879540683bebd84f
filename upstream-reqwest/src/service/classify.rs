//! Translates a server's response into the outcome of a supplier. No I/O.

use std::time::Duration;

use transcript_core::{
    archive::TrackSelector,
    body::segments,
    lookup::FailureReason,
    service::{ResponseMeta, SERVICE_SUPPLIER, ServiceErrorKind, ServiceReply},
    supplier::{SupplyError, SupplyOutput, SupplyReason, SupplyRequest},
    time::Timestamp,
    transcript::{LanguageTag, TrackKind, Transcript, VideoDetails, best_track},
    wire::lookup::TranscriptResult,
};

use super::{
    call_error::{CallError, TOO_LARGE, single_line},
    lookup::track,
};

/// Maximum length of a supplier's name in bytes; a longer one is replaced.
const SOURCE_MAX: usize = 64;
/// Maximum length of a page's URL in bytes; a longer one is dropped.
const ADDRESS_MAX: usize = 500;
/// Bounds of the pause before a server that is still fetching is called again. Without a failure detail, a
/// `Retry-After` above the maximum means that a supplier cools down and no fetch is running.
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
    mut body: TranscriptResult,
    meta: &ResponseMeta,
    request: &SupplyRequest,
) -> Result<SupplyOutput, SupplyError> {
    // No page was requested: the next one may be of another revision.
    if body.next_cursor.is_some() {
        return Err(unreadable("it is only one page of the transcript"));
    }
    let (details, metadata) = (body.details(), body.metadata.clone().unwrap_or_default());
    // Captions without a statement that a person wrote them count as generated.
    let track = track(meta, &body, &details, TrackKind::Generated);
    if track.language == LanguageTag::unknown() && request.selector != TrackSelector::Default {
        return Err(unreadable("it does not name the language of its transcript").ambiguous());
    }
    if best_track([&track], &request.selector).is_none() {
        let message = format!(
            "The other Verbatim server returns one transcript per video, and this video's is in {}.",
            track.language.as_str()
        );
        // The response does not list the video's other tracks.
        return Err(SupplyError::new(SupplyReason::PlatformFault, message).ambiguous());
    }
    let segments = segments::from_wire(std::mem::take(&mut body.transcript));
    let source = body.source.filter(|name| is_source(name));
    let transcript = Transcript {
        video: request.video.clone(),
        title: metadata.clean_title(),
        author: metadata.clean_author(),
        duration_ms: metadata.duration_ms(),
        track: track.clone(),
        source: source.unwrap_or_else(|| SERVICE_SUPPLIER.to_owned()),
        segments: segments.ok_or_else(|| unreadable("a timestamp in it is invalid"))?,
    };
    let VideoDetails { metadata, tracks: mut known_tracks } = details;
    if !known_tracks.iter().any(|known| known.is_same(&track)) {
        known_tracks.push(track);
    }
    Ok(SupplyOutput { transcripts: vec![transcript], known_tracks, metadata })
}

/// Whether a text is a valid supplier name.
fn is_source(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    (1..=SOURCE_MAX).contains(&name.len()) && name.bytes().all(plain)
}

fn missing(body: &TranscriptResult, meta: &ResponseMeta, now: Timestamp) -> SupplyDecision {
    let message = body.failure_message.as_deref().and_then(single_line);
    let message = message.unwrap_or_else(|| "It named no reason.".to_owned());
    let with_server_name = |what: &str| format!("The other Verbatim server {what}: {message}");
    let failure = |reason, message| SupplyError::new(reason, message);
    let Some(reason) = body.failure_reason.as_deref() else {
        return SupplyDecision::Failed(unreadable("it has no transcript and names no reason"));
    };
    let Some(reason) = FailureReason::from_wire(reason) else {
        // A newer server may have the reason for some videos only.
        let message = with_server_name("has no transcript for a reason that this version does not know");
        return SupplyDecision::Failed(failure(SupplyReason::PlatformFault, message).ambiguous());
    };
    SupplyDecision::Failed(match reason {
        // A property of the video holds for every server; the server's message says which.
        FailureReason::NoCaptions => no_captions(body, meta, message, now),
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
            // Another detail, such as `busy`: no work runs that a second call could join.
            let is_working = match meta.failure_detail.as_deref() {
                Some(detail) => detail == STILL_WORKING,
                None => meta.retry_after.is_some_and(|wait| wait <= RETRY_MAX),
            };
            match meta.retry_after {
                Some(wait) if is_working => {
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
fn no_captions(body: &TranscriptResult, meta: &ResponseMeta, message: String, now: Timestamp) -> SupplyError {
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
        Some("no_language") => SupplyReason::NoLanguage(body.details().tracks),
        // A withdrawal by another operator does not apply here; the local suppliers decide.
        Some("withdrawn") => {
            let message = "The other Verbatim server has withdrawn its transcript of this video.";
            return SupplyError::declined(SupplyReason::NoCaptions, message).mark_attempted();
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
        CallError::TooLarge => return unreadable(TOO_LARGE),
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
                ServiceErrorKind::NotFound
                | ServiceErrorKind::NoServer
                | ServiceErrorKind::WrongMethod
                | ServiceErrorKind::Redirected => (
                    SupplyReason::Misconfigured,
                    format!(
                        "No Verbatim server responds at the configured address (HTTP {status}). The operator can \
                         correct service.base_url."
                    ),
                ),
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
mod tests;
