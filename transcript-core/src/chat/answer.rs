//! A verified answer.

use super::Usage;

/// What is answered when the transcript does not say.
pub const NOT_COVERED_SENTENCE: &str = "The transcript does not cover this.";

/// What is answered when the model was given a part of the transcript only, and that part does not say.
pub(super) const NOT_COVERED_IN_PART: &str =
    "The parts of the transcript that were looked at do not cover this.";

/// A moment of the video that an answer rests on: whole segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// When the first of its segments starts, in milliseconds from the video's beginning.
    pub start_ms: u64,
    /// When the last of its segments ends, in milliseconds from the video's beginning.
    pub end_ms: u64,
    /// What its segments say, on one line.
    pub text: String,
    /// A link to that moment, where the platform has such links; else to the video.
    pub url: String,
}

/// A piece of an answer, verified: nothing of it is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Its text, with the white space before it: all of them together are the response.
    pub text: String,
    /// The moments that it cites and that no sentence before it did.
    pub citations: Vec<Citation>,
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The model wrote it.
    Model,
    /// Nothing that the model wrote could be verified: these are the transcript's best passages.
    Passages,
}

/// A verified answer.
///
/// Every quotation of twelve characters or more in it is the transcript's own text, every marker `[m:ss]` is the
/// start of a segment, and no link is in it but those of its citations.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text, with a marker such as `[1:05]` for each citation.
    pub response: String,
    /// The moments that it cites, in the order in which the text does.
    pub citations: Vec<Citation>,
    /// The share of the transcript's words that the model was given, from 0 to 1.
    pub coverage: f64,
    /// Whether the transcript answers the question; else the response says that it does not.
    pub is_covered: bool,
    /// Where it came from.
    pub origin: Origin,
    /// The tokens that the model counted, where it counts them.
    pub usage: Option<Usage>,
}

impl Answer {
    /// An answer that says nothing yet.
    pub(super) fn empty(coverage: f64) -> Self {
        Self {
            response: String::new(),
            citations: Vec::new(),
            coverage,
            is_covered: true,
            origin: Origin::Model,
            usage: None,
        }
    }
}
