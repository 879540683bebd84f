//! A transcript.

use serde::{Deserialize, Serialize};

use crate::{transcript::Transcript, wire::lookup::Segment};

/// A transcript (specification 2.5), the answer of `GET /api/v1/transcript`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The transcript of a video.")
)]
pub struct VideoTranscript {
    /// The video's id.
    pub video_id: String,
    /// The video's title; empty where the source of the transcript does not tell it.
    pub title: String,
    /// The language code of the transcript.
    pub language: String,
    /// Whether a machine made the words: recognised from speech, or translated.
    pub is_generated: bool,
    /// The segments.
    pub segments: Vec<Segment>,
}

impl From<&Transcript> for VideoTranscript {
    fn from(transcript: &Transcript) -> Self {
        Self {
            video_id: transcript.video.id().to_owned(),
            title: transcript.title.clone().unwrap_or_default(),
            language: transcript.track.language.as_str().to_owned(),
            is_generated: transcript.track.is_generated(),
            segments: transcript.segments.iter().map(Segment::from).collect(),
        }
    }
}
