//! Every way in which a body can be no captions.

use std::fmt;

/// Why a body gave no segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptionErrorKind {
    /// Zero bytes, or only white space: a platform that wants a further proof answers so.
    Empty,
    /// Something else than captions: a web page, a JSON error, a picture.
    NotCaptions,
    /// Captions that are cut off or cannot be read.
    Malformed,
    /// Well-formed captions without any text.
    NoCues,
    /// More than the limits allow.
    TooLarge,
}

/// Why a body gave no segments: a kind to decide by, and a sentence that says what was found.
///
/// The sentence quotes nothing of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptionError {
    kind: CaptionErrorKind,
    message: String,
}

impl CaptionError {
    #[cold]
    pub(crate) fn new(kind: CaptionErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    #[cold]
    pub(crate) fn not_captions(message: impl Into<String>) -> Self {
        Self::new(CaptionErrorKind::NotCaptions, message)
    }

    #[cold]
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(CaptionErrorKind::Malformed, message)
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> CaptionErrorKind {
        self.kind
    }

    /// The sentence, as [`fmt::Display`] prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for CaptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CaptionError {}
