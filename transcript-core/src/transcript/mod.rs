//! Transcripts: the timed text of videos, its tracks, and its output formats.

mod chunk;
mod front_matter;
pub mod language;
mod language_name;
mod limits;
mod markdown;
mod markdown_escape;
#[cfg(test)]
mod markdown_tests;
mod metadata;
mod pages;
pub(crate) mod paragraph;
mod prose;
pub(crate) mod script;
mod segment;
mod selector;
pub(crate) mod tokens;
mod track;
mod word;

pub use chunk::{Chunk, ChunkOptions, ChunkUnit, chunks};
pub(crate) use front_matter::fact_lines;
pub use front_matter::front_matter;
pub use language::LanguageTag;
pub use limits::{NAME_BYTES_MAX, SEGMENTS_MAX, SOURCE_BYTES_MAX, TEXT_BYTES_MAX, TIME_MAX_MS};
pub use markdown::{format_timestamp, markdown};
pub(crate) use metadata::clean_line;
pub use metadata::{CHAPTERS_MAX, Chapter, DESCRIPTION_BYTES_MAX, LiveStatus, VideoDetails, VideoMetadata};
pub use pages::{PAGE_CHARS, PAGE_CHARS_MAX, pages};
pub(crate) use pages::{chars, page_end};
pub(crate) use paragraph::{PAUSE_MS, append, ends_sentence, is_unspaced};
pub use paragraph::{chapter_paragraphs, paragraphs};
pub use prose::prose;
pub use segment::Segment;
pub use selector::{TrackSelector, Translation};
pub use track::{TrackInfo, TrackKind, best_track, distinct_languages, list_languages};
pub use word::{WORDS_MAX, Word, remove_unfit_words, set_word_durations};
pub(crate) use word::{default_words_end, find_words};

use serde::{Deserialize, Serialize};

use crate::video::VideoId;

/// Transcript of one video in one language, as the supplier provided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The video.
    pub video: VideoId,
    /// Title of the video; `None` if the supplier does not know it.
    pub title: Option<String>,
    /// Publisher of the video; `None` if the supplier does not know it.
    pub author: Option<String>,
    /// Length of the video in milliseconds; `None` if the supplier does not know it.
    pub duration_ms: Option<u64>,
    /// The track of the transcript.
    pub track: TrackInfo,
    /// Name of the supplier, `source` on the wire (specification 2.2).
    pub source: String,
    /// The segments, ordered by start.
    pub segments: Vec<Segment>,
}

impl Transcript {
    /// The transcript without its segments.
    pub fn without_segments(&self) -> Self {
        let Self { video, title, author, duration_ms, track, source, segments: _ } = self;
        Self {
            video: video.clone(),
            title: title.clone(),
            author: author.clone(),
            duration_ms: *duration_ms,
            track: track.clone(),
            source: source.clone(),
            segments: Vec::new(),
        }
    }

    /// Length of the words in bytes.
    pub fn text_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.text.len()).sum()
    }

    /// Approximate memory of the decoded segments, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        // Each text is a separate allocation, with some overhead of the allocator.
        let text_bytes = |text: &str, each: usize| text.len() + each + 16;
        let segment_bytes = |segment: &Segment| {
            let words = segment.words.iter().map(|word| text_bytes(&word.text, size_of::<Word>()));
            text_bytes(&segment.text, size_of::<Segment>()) + words.sum::<usize>()
        };
        self.segments.iter().map(segment_bytes).sum::<usize>() as u64
    }

    /// Whether words have times.
    pub fn has_words(&self) -> bool {
        self.segments.iter().any(|segment| !segment.words.is_empty())
    }
}

/// Human captions in English with these segments.
#[cfg(test)]
pub(crate) fn test_transcript(segments: Vec<Segment>) -> Transcript {
    Transcript {
        video: VideoId::new(crate::video::Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
        source: "test".to_owned(),
        segments,
    }
}
