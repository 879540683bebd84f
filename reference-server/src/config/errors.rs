//! Errors of the settings, as sentences for the operator.

use std::fmt;

/// All errors of the settings, one sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    sentences: Vec<String>,
}

impl ConfigErrors {
    /// Creates an error with one sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { sentences: vec![sentence.into()] }
    }

    /// Creates an error from several sentences; `None` if there are none.
    pub fn all(sentences: Vec<String>) -> Option<Self> {
        (!sentences.is_empty()).then_some(Self { sentences })
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}
