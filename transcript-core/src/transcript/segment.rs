//! One timed piece of text.

use serde::{Deserialize, Serialize};

/// A piece of text with the time in which it was spoken (specification 2.1).
///
/// Times are integer milliseconds inside and seconds as numbers on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// The text, as the supplier gave it.
    pub text: String,
    /// When it starts, in milliseconds from the video's beginning.
    pub start_ms: u64,
    /// How long it lasts, in milliseconds.
    pub duration_ms: u64,
}

impl Segment {
    /// A segment with this text and these times in milliseconds.
    pub fn new(text: impl Into<String>, start_ms: u64, duration_ms: u64) -> Self {
        Self { text: text.into(), start_ms, duration_ms }
    }

    /// When it ends, in milliseconds from the video's beginning.
    pub fn end_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.duration_ms)
    }
}
