//! Segment: timed text.

use serde::{Deserialize, Serialize};

use super::Word;

/// Text with the time in which it is spoken (specification 2.1).
///
/// Times are integer milliseconds in the code and numbers of seconds on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// The text, as the supplier provided it.
    pub text: String,
    /// Start in milliseconds from the beginning of the video.
    pub start_ms: u64,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// The words with their times; empty if the source has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
}

impl Segment {
    /// Creates a segment with this text and these times in milliseconds.
    pub fn new(text: impl Into<String>, start_ms: u64, duration_ms: u64) -> Self {
        Self { text: text.into(), start_ms, duration_ms, words: Vec::new() }
    }

    /// End in milliseconds from the beginning of the video.
    pub fn end_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.duration_ms)
    }
}
