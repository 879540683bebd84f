//! What is wrong with the settings, in sentences for the operator.

use std::fmt;

/// Everything that is wrong with the settings: one sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    sentences: Vec<String>,
}

impl Problem {
    /// One thing that is wrong.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { sentences: vec![sentence.into()] }
    }

    /// Several things that are wrong; none when there are none.
    pub fn all(sentences: Vec<String>) -> Option<Self> {
        (!sentences.is_empty()).then_some(Self { sentences })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences.join("\n"))
    }
}

impl std::error::Error for Problem {}
