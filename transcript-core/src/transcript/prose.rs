//! Transcript as plain text (`format=text`, specification 14).

use super::{Segment, paragraphs};

/// Renders segments as paragraphs of plain text, with an empty line between them and a final line end.
///
/// No times, no markup: the same words in the same order. Without words, the result is empty.
///
/// ```
/// use transcript_core::transcript::{Segment, prose};
///
/// let segments = [
///     Segment::new("Hello", 0, 500),
///     Segment::new("there.", 500, 500),
///     Segment::new("Bye.", 9_000, 500),
/// ];
/// assert_eq!(prose(&segments), "Hello there.\n\nBye.\n");
/// ```
pub fn prose(segments: &[Segment]) -> String {
    let mut text = String::new();
    for paragraph in paragraphs(segments) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&paragraph.text);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transcript::paragraph::tests::{any_segments, without_white_space};

    #[test]
    fn prose_blank_segments_return_empty_text() {
        assert_eq!(prose(&[]), "");
        assert_eq!(prose(&[Segment::new(" \n", 0, 1)]), "");
    }

    proptest! {
        #[test]
        fn prose_keeps_words_of_segments(segments in any_segments()) {
            let input_text: String = segments.iter().map(|segment| segment.text.as_str()).collect();
            prop_assert_eq!(without_white_space(&prose(&segments)), without_white_space(&input_text));
        }
    }
}
