//! Results of the verification: of one sentence, and of a whole text.

use std::ops::Range;

use super::support::ContentTerms;

/// Counts and flags of the verification of one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::chat) struct VerifyReport {
    /// Number of verified sentences.
    pub(in crate::chat) verified: usize,
    /// Number of removed sentences.
    pub(in crate::chat) removed: usize,
    /// Whether the model began with the report that the transcript does not answer the question.
    pub(in crate::chat) says_not_covered: bool,
    /// Whether the text has at least one letter or digit.
    pub(in crate::chat) is_readable: bool,
}

/// Result of checking one sentence.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckedSentence {
    pub(super) text: String,
    /// Cited ranges of segments, in order.
    pub(super) cited: Vec<Range<usize>>,
    /// Its parts that Markdown sets apart and that may be statements.
    pub(super) separate: Vec<ContentTerms>,
    /// Whether it must be removed, because a quotation is not in the transcript or no citation supports it.
    pub(super) is_rejected: bool,
}

/// A sentence that waits for a later sentence with a citation.
#[derive(Clone, Debug)]
pub(super) struct PendingSentence {
    /// Text, with the times that the model wrote.
    pub(super) text: String,
    /// As in [`CheckedSentence`].
    pub(super) separate: Vec<ContentTerms>,
    pub(super) starts_line: bool,
}

impl PendingSentence {
    /// Whether it leads to the next line: a heading, or a text that ends with a colon.
    pub(super) fn is_lead(&self) -> bool {
        let is_heading = self.starts_line && self.text.trim_start().starts_with('#');
        is_heading || self.text.trim_end().trim_end_matches(['*', '_', ' ']).ends_with([':', '：'])
    }
}
