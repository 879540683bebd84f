//! Results of the verification: of one sentence, and of a whole text.

use std::ops::Range;

/// Counts and flags of the verification of one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::chat) struct VerifyReport {
    /// Number of verified sentences.
    pub(in crate::chat) verified: usize,
    /// Number of removed sentences.
    pub(in crate::chat) removed: usize,
    /// Whether the model reported that the transcript does not answer the question.
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
    /// Whether it must be removed, because a quotation is not in the transcript or no citation supports it.
    pub(super) is_rejected: bool,
}

/// A sentence that waits for a later sentence with a citation.
#[derive(Clone, Debug)]
pub(super) struct PendingSentence {
    pub(super) text: String,
    pub(super) starts_line: bool,
}
