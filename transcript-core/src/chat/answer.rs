//! A verified answer.

use super::TokenUsage;

/// Response if the transcript does not answer the question.
pub const NOT_COVERED_SENTENCE: &str = "The transcript does not cover this.";

/// Response if the part of the transcript that the model received does not answer the question.
pub(super) const NOT_COVERED_IN_PART: &str =
    "The parts of the transcript that were looked at do not cover this.";

/// Responses to a question for what follows or precedes the last answer, if that is the end or the beginning.
pub(super) const NOTHING_FOLLOWS: &str = "Nothing follows: this is the end of the transcript.";
pub(super) const NOTHING_PRECEDES: &str = "Nothing comes before: this is the beginning of the transcript.";

/// A citation: a run of whole segments that an answer rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// Start of its first segment, in milliseconds from the start of the video.
    pub start_ms: u64,
    /// End of its last segment, in milliseconds from the start of the video.
    pub end_ms: u64,
    /// Text of its segments, without line breaks: at most its first 4,096 bytes.
    pub text: String,
    /// Link to `start_ms` where the platform supports such links, otherwise to the video.
    pub url: String,
}

/// A verified sentence of an answer; it is never retracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Text with the white space before it. The texts of all sentences together are the response.
    pub text: String,
    /// Citations that no earlier sentence has.
    pub citations: Vec<Citation>,
}

/// Source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOrigin {
    /// The model.
    Model,
    /// The best passages of the transcript, because no sentence of the model could be verified.
    Passages,
}

/// A verified answer.
///
/// Every quotation of twelve characters or more is the transcript's own text, every marker `[m:ss]` is the start of a
/// segment, and the only links are those of the citations.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedAnswer {
    /// The text, with a marker such as `[1:05]` for each citation.
    pub response: String,
    /// Citations, in the order of their markers in the text.
    pub citations: Vec<Citation>,
    /// Share of the transcript's words that the model received, from 0 to 1.
    pub coverage: f64,
    /// Whether the transcript answers the question; if not, the response says so.
    pub is_covered: bool,
    /// Source of the answer.
    pub origin: AnswerOrigin,
    /// Tokens counted by the model; `None` if it does not count them.
    pub usage: Option<TokenUsage>,
}

impl VerifiedAnswer {
    /// Returns an answer without text.
    pub(super) fn empty(coverage: f64) -> Self {
        Self {
            response: String::new(),
            citations: Vec::new(),
            coverage,
            is_covered: true,
            origin: AnswerOrigin::Model,
            usage: None,
        }
    }
}
