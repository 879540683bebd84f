//! A transcript as plain prose (`format=text`, specification 2.1).

use super::{Segment, paragraphs};

/// The words as paragraphs of plain text, with an empty line between them and a line end after the last.
///
/// No times, no markup: the same words in the same order. Nothing at all when there are no words.
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
    use crate::transcript::paragraph::tests::{any_segments, dense};

    #[test]
    fn nothing_said_is_nothing_written() {
        assert_eq!(prose(&[]), "");
        assert_eq!(prose(&[Segment::new(" \n", 0, 1)]), "");
    }

    proptest! {
        #[test]
        fn the_words_are_those_of_the_segments(segments in any_segments()) {
            let given: String = segments.iter().map(|segment| segment.text.as_str()).collect();
            prop_assert_eq!(dense(&prose(&segments)), dense(&given));
        }
    }
}
