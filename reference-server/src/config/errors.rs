//! Errors of the settings, as sentences for the operator.

/// All errors of the settings, one sentence each.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display, derive_more::Error)]
#[display("{}", sentences.join("\n"))]
pub(crate) struct ConfigErrors {
    sentences: Vec<String>,
}

impl ConfigErrors {
    /// Creates an error with one sentence.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentences: vec![sentence.into()] }
    }

    /// Creates an error from several sentences; `None` if there are none.
    pub(crate) fn all(sentences: Vec<String>) -> Option<Self> {
        (!sentences.is_empty()).then_some(Self { sentences })
    }
}
