//! Citations of an answer: their segments, and the markers that stand for them in text.

use std::ops::Range;

use super::super::{Citation, passage::PassageLine};
use crate::transcript::{Segment, Transcript};

/// Builds the citation of a range of segments.
pub(in crate::chat) fn citation(transcript: &Transcript, segments: &Range<usize>) -> Option<Citation> {
    let cited = transcript.segments.get(segments.clone())?;
    let start_ms = cited.first()?.start_ms;
    let end_ms = cited.iter().map(Segment::end_ms).max()?;
    let text = PassageLine::new(&transcript.segments, segments.clone()).text;
    Some(Citation { start_ms, end_ms, text, url: transcript.video.address_at(start_ms / 1_000) })
}

/// Whether a text consists of markers such as `[1:05]`.
pub(super) fn is_only_markers(text: &str) -> bool {
    let mut is_inside = false;
    text.chars().all(|c| match c {
        '[' => {
            is_inside = true;
            true
        }
        ']' => {
            is_inside = false;
            true
        }
        c => is_inside || !c.is_alphanumeric(),
    })
}
