//! A transcript: the words that were spoken in a video, with the time of each.

mod bounds;
pub mod language;
mod markdown;
mod markdown_escape;
#[cfg(test)]
mod markdown_tests;
mod paragraph;
mod prose;
mod segment;
mod shown;
mod srt;
mod track;
mod webvtt;

pub use bounds::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
pub use language::LanguageTag;
pub use markdown::{markdown, moment};
pub(crate) use paragraph::{PAUSE_MS, append, ends_sentence, is_unspaced};
pub use paragraph::{Paragraph, paragraphs};
pub use prose::prose;
pub use segment::Segment;
pub use srt::srt;
pub use track::{TrackInfo, TrackKind, best_track};
pub use webvtt::webvtt;

use serde::{Deserialize, Serialize};

use crate::video::VideoId;

/// The words of one video in one language, as a supplier gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The video.
    pub video: VideoId,
    /// The video's title, where the supplier knows it.
    pub title: Option<String>,
    /// Who published the video, where the supplier knows it.
    pub author: Option<String>,
    /// The video's length in milliseconds, where the supplier knows it.
    pub duration_ms: Option<u64>,
    /// The track that the words come from.
    pub track: TrackInfo,
    /// The supplier's name, `source` on the wire (specification 2.2).
    pub source: String,
    /// The segments, by start.
    pub segments: Vec<Segment>,
}
