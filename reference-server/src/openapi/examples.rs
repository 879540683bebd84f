//! Examples of every body, as values of the wire types.

use serde::Serialize;
use serde_json::{Value, json};
use transcript_core::{
    ledger::terms::Period,
    lookup::{FailureReason, KeyPlan, LookupOptions, SourceTag},
    transcript,
    video::Platform,
    wire::{
        Problem,
        lookup::{KeyCreated, KeyObject, KeyRequest, KeyStatus, Segment, TranscriptResult},
    },
};

use super::INTERFACE_VERSION;

/// The id of the video in the examples.
pub(super) const VIDEO: &str = "dQw4w9WgXcQ";

/// An archived transcript, asked for without a key.
pub(super) fn archived(options: &LookupOptions) -> Value {
    value(TranscriptResult {
        available: true,
        from_cache: true,
        source: Some("youtube-captions".to_owned()),
        transcript: segments().iter().map(Segment::from).collect(),
        ..nothing(options)
    })
}

/// A transcript that was made for this request.
pub(super) fn fetched(options: &LookupOptions) -> Value {
    value(TranscriptResult {
        available: true,
        source: Some("youtube-captions".to_owned()),
        key: Some(usage(options, 1)),
        transcript: segments().iter().map(Segment::from).collect(),
        ..nothing(options)
    })
}

/// A video that is not archived, asked for without a key.
pub(super) fn needs_verification(options: &LookupOptions) -> Value {
    let src = SourceTag::McpOther.as_str();
    value(TranscriptResult {
        watch_url: format!("{}?src={src}", watch_url(options)),
        failure_reason: Some(FailureReason::NeedsVerification.as_str().to_owned()),
        failure_message: Some(
            "This video has not been transcribed here yet: open the watch address, or send an API key."
                .to_owned(),
        ),
        ..nothing(options)
    })
}

/// A key that has spent its allowance.
pub(super) fn key_allowance(options: &LookupOptions) -> Value {
    value(TranscriptResult {
        failure_reason: Some(FailureReason::KeyAllowance.as_str().to_owned()),
        failure_message: Some(
            "The key has spent its allowance of new transcripts for this month.".to_owned(),
        ),
        key: Some(usage(options, options.free_per_month)),
        ..nothing(options)
    })
}

/// The transcript as prose.
pub(super) fn prose() -> String {
    transcript::prose(&segments())
}

/// The transcript as Markdown.
pub(super) fn markdown() -> String {
    format!(
        "# A talk\n\nby Ann\n\n[0:01](https://www.youtube.com/watch?v={VIDEO}&t=1s) It is so quiet here.\n"
    )
}

/// The transcript as SRT subtitles.
pub(super) fn srt() -> String {
    transcript::srt(&segments())
}

/// The transcript as WebVTT subtitles.
pub(super) fn webvtt() -> String {
    transcript::webvtt(&segments())
}

/// No transcript, as text: a sentence, and alone on the last line the watch address.
pub(super) fn failure_text(options: &LookupOptions, sentence: &str) -> String {
    format!("{sentence}\n{}\n", watch_url(options))
}

/// What a request for a key may say.
pub(super) fn key_request() -> Value {
    value(KeyRequest { label: Some("laptop".to_owned()), email: Some("ann@example.org".to_owned()) })
}

/// A new key. Its check digits are wrong on purpose, so that nobody takes it for a real one.
pub(super) fn key_created(options: &LookupOptions) -> Value {
    value(KeyCreated { key: format!("vbk_{}", "0".repeat(36)), status: status(options, 0) })
}

/// What is left of a key.
pub(super) fn key_status(options: &LookupOptions) -> Value {
    value(status(options, 1))
}

/// A problem with this status and sentence.
pub(super) fn problem(status: u16, title: &str, detail: &str) -> Value {
    value(Problem {
        kind: "about:blank".to_owned(),
        title: title.to_owned(),
        status,
        detail: detail.to_owned(),
        failure_reason: None,
    })
}

/// Which server it is. The version is any: the document does not change with each release.
pub(super) fn version() -> Value {
    json!({ "name": "verbatim", "version": "0.1.0", "interface": INTERFACE_VERSION })
}

fn nothing(options: &LookupOptions) -> TranscriptResult {
    TranscriptResult {
        platform: Platform::VideoSite.as_str().to_owned(),
        video_id: VIDEO.to_owned(),
        available: false,
        from_cache: false,
        watch_url: watch_url(options),
        source: None,
        failure_reason: None,
        failure_message: None,
        key: None,
        transcript: Vec::new(),
    }
}

fn watch_url(options: &LookupOptions) -> String {
    format!("{}/watch/{}/{VIDEO}", options.base_url.trim_end_matches('/'), Platform::VideoSite)
}

/// The segments of the transcript in the examples.
pub(super) fn segments() -> Vec<transcript::Segment> {
    vec![
        transcript::Segment::new("It is so", 1_500, 1_250),
        transcript::Segment::new("quiet here.", 2_750, 2_000),
    ]
}

fn usage(options: &LookupOptions, used: u64) -> KeyObject {
    let allowance = options.free_per_month;
    KeyObject {
        plan: KeyPlan::Free.as_str().to_owned(),
        period: Period::Month.as_str().to_owned(),
        used: used.min(allowance),
        allowance,
        remaining: allowance.saturating_sub(used),
    }
}

fn status(options: &LookupOptions, used: u64) -> KeyStatus {
    KeyStatus {
        id: "key-00112233445566778899aabbccddeeff".to_owned(),
        label: Some("laptop".to_owned()),
        usage: usage(options, used),
        resets_at: "2026-12-01T00:00:00Z".to_owned(),
        created_at: "2026-11-20T09:30:00Z".to_owned(),
    }
}

/// A body as JSON.
pub(super) fn value(body: impl Serialize) -> Value {
    // A structure of texts, numbers and lists always becomes JSON.
    serde_json::to_value(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
        video::VideoId,
    };

    use super::*;

    #[test]
    fn the_markdown_is_as_the_server_writes_it() {
        let transcript = Transcript {
            video: VideoId::new(Platform::VideoSite, VIDEO).unwrap(),
            title: Some("A talk".to_owned()),
            author: Some("Ann".to_owned()),
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
            source: "youtube-captions".to_owned(),
            segments: segments(),
        };
        assert_eq!(transcript::markdown(&transcript), markdown());
    }
}
