//! Citations of an answer: their segments, and the markers that stand for them in text.

use std::ops::Range;

use super::super::{Citation, passage::PassageLine};
use crate::{
    text::head,
    transcript::{Segment, Transcript},
};

/// Longest text of a citation, in bytes. Only very long segments have more; one may be a whole transcript.
///
/// An answer to a request with an idempotency key is stored for a day, with its citations.
const CITED_BYTES_MAX: usize = 4 * 1024;

/// Builds the citation of a range of segments.
pub(in crate::chat) fn citation(transcript: &Transcript, segments: &Range<usize>) -> Option<Citation> {
    let cited = transcript.segments.get(segments.clone())?;
    let start_ms = cited.first()?.start_ms;
    let end_ms = cited.iter().map(Segment::end_ms).max()?;
    let mut bytes = 0;
    let begins_within = |segment: &&Segment| {
        let is_within = bytes < CITED_BYTES_MAX;
        bytes += segment.text.len();
        is_within
    };
    let shown = segments.start..segments.start + cited.iter().take_while(begins_within).count();
    let line = PassageLine::new(&transcript.segments, shown).text;
    let text = head(&line, CITED_BYTES_MAX).to_owned();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::test_transcript;

    #[test]
    fn citation_of_long_segment_has_its_beginning() {
        let words = "é".repeat(1_000_000);
        let segments = ["short", words.as_str(), "end"];
        let segments = (0..).zip(segments).map(|(n, text)| Segment::new(text, n * 10_000, 5_000)).collect();
        let transcript = test_transcript(segments);
        assert_eq!(citation(&transcript, &(0..1)).unwrap().text, "short");
        let long = citation(&transcript, &(0..3)).unwrap();
        assert_eq!((long.start_ms, long.end_ms), (0, 25_000));
        assert_eq!(long.text, format!("short {}", "é".repeat((CITED_BYTES_MAX - 6) / 2)));
    }
}
