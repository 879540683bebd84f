//! Examples of all bodies, as values of the wire types.

use serde::Serialize;
use serde_json::{Value, json};
use transcript_core::{
    captions,
    ledger::terms::AllowancePeriod,
    lookup::{AttributionTag, FailureReason, KeyPlan, LookupOptions},
    transcript,
    video::Platform,
    wire::{
        ChapterObject, LanguageObject, MetadataObject, Problem,
        lookup::{CreateKeyResponse, KeyObject, KeyRequest, KeyStatus, Segment, TranscriptResult},
    },
};

use crate::api::INTERFACE_VERSION;

/// Video of the examples.
pub(crate) const VIDEO: &str = "dQw4w9WgXcQ";

/// Archived transcript, requested without a key.
pub(crate) fn archived(options: &LookupOptions) -> Value {
    value(TranscriptResult {
        available: true,
        from_cache: true,
        source: Some("youtube-captions".to_owned()),
        language: Some("en".to_owned()),
        languages: languages(),
        metadata: Some(MetadataObject {
            title: Some("A talk".to_owned()),
            author: Some("Ann".to_owned()),
            duration_seconds: Some(1_260.0),
            published_at: Some("2026-11-02T09:30:00Z".to_owned()),
            ..MetadataObject::default()
        }),
        chapters: vec![ChapterObject { title: "The pier".to_owned(), start: 0.0 }],
        transcript: segments().iter().map(Segment::from).collect(),
        ..nothing(options)
    })
}

/// Transcript fetched for this request.
pub(crate) fn fetched(options: &LookupOptions) -> Value {
    value(TranscriptResult {
        available: true,
        source: Some("youtube-captions".to_owned()),
        key: Some(usage(options, 1)),
        transcript: segments().iter().map(Segment::from).collect(),
        ..nothing(options)
    })
}

/// Video that is not archived, requested without a key.
pub(crate) fn needs_verification(options: &LookupOptions) -> Value {
    let src = AttributionTag::McpOther.as_str();
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

/// Key with a spent allowance.
pub(crate) fn key_allowance(options: &LookupOptions) -> Value {
    value(TranscriptResult {
        failure_reason: Some(FailureReason::KeyAllowance.as_str().to_owned()),
        failure_message: Some(
            "The key has spent its allowance of new transcripts for this month.".to_owned(),
        ),
        key: Some(usage(options, options.free_per_month)),
        ..nothing(options)
    })
}

/// Transcript as prose.
pub(crate) fn prose() -> String {
    transcript::prose(&segments())
}

/// Transcript as Markdown.
pub(crate) fn markdown() -> String {
    format!(
        "# A talk\n\nby Ann\n\n[0:01](https://www.youtube.com/watch?v={VIDEO}&t=1s) It is so quiet here.\n"
    )
}

/// Transcript as SRT subtitles.
pub(crate) fn srt() -> String {
    captions::write_srt(&segments())
}

/// Transcript as WebVTT subtitles.
pub(crate) fn webvtt() -> String {
    captions::write_webvtt(&segments())
}

/// Failure as text: a sentence, then the watch page's address on the last line.
pub(crate) fn failure_text(options: &LookupOptions, sentence: &str) -> String {
    format!("{sentence}\n{}\n", watch_url(options))
}

pub(crate) fn key_request() -> Value {
    value(KeyRequest { label: Some("laptop".to_owned()), email: Some("ann@example.org".to_owned()) })
}

/// New key. Its check digits are wrong on purpose: it can never be a real key.
pub(crate) fn key_created(options: &LookupOptions) -> Value {
    value(CreateKeyResponse { key: format!("vbk_{}", "0".repeat(36)), status: status(options, 0) })
}

pub(crate) fn key_status(options: &LookupOptions) -> Value {
    value(status(options, 1))
}

pub(crate) fn problem(status: u16, title: &str, detail: &str) -> Value {
    value(Problem {
        kind: "about:blank".to_owned(),
        title: title.to_owned(),
        status,
        detail: detail.to_owned(),
        failure_reason: None,
    })
}

/// Version response. The number is fixed, so that the document does not change with each release.
pub(crate) fn version() -> Value {
    json!({ "name": "verbatim", "version": "0.1.0", "interface": INTERFACE_VERSION })
}

fn nothing(options: &LookupOptions) -> TranscriptResult {
    TranscriptResult {
        platform: Platform::YouTube.as_str().to_owned(),
        video_id: VIDEO.to_owned(),
        watch_url: watch_url(options),
        ..TranscriptResult::default()
    }
}

fn watch_url(options: &LookupOptions) -> String {
    format!("{}/watch/{}/{VIDEO}", options.base_url.trim_end_matches('/'), Platform::YouTube)
}

/// Languages of the example video.
pub(crate) fn languages() -> Vec<LanguageObject> {
    let language = |tag: &str, name: &str, kind: &str, original| LanguageObject {
        tag: tag.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
        original,
    };
    vec![language("en", "English", "manual", true), language("de", "German", "auto", false)]
}

/// Segments of the example transcript.
pub(crate) fn segments() -> Vec<transcript::Segment> {
    vec![
        transcript::Segment::new("It is so", 1_500, 1_250),
        transcript::Segment::new("quiet here.", 2_750, 2_000),
    ]
}

fn usage(options: &LookupOptions, used: u64) -> KeyObject {
    let allowance = options.free_per_month;
    KeyObject {
        plan: KeyPlan::Free.as_str().to_owned(),
        period: AllowancePeriod::Month.as_str().to_owned(),
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

/// JSON value of a body.
pub(crate) fn value(body: impl Serialize) -> Value {
    // The wire types always serialize.
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
    fn markdown_example_equals_rendered_transcript() {
        let transcript = Transcript {
            video: VideoId::new(Platform::YouTube, VIDEO).unwrap(),
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
