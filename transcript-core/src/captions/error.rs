//! Errors of the caption parsers.

/// Reason why a body has no segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptionErrorKind {
    /// Zero bytes or only white space: the response of a platform that requires a further proof.
    Empty,
    /// Not captions: a web page, a JSON error, an image.
    NotCaptions,
    /// Truncated or unreadable captions.
    Malformed,
    /// Well-formed captions without any text.
    NoCues,
    /// Larger than the limits allow.
    TooLarge,
}

/// Error of a caption parser: a kind for decisions and a message.
///
/// The message quotes nothing of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptionError {
    kind: CaptionErrorKind,
    message: String,
}

crate::display::display!(CaptionError, |this| this.message);

impl std::error::Error for CaptionError {}

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

    /// Kind of the error.
    pub fn kind(&self) -> CaptionErrorKind {
        self.kind
    }

    /// The message, as [`Display`](std::fmt::Display) prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}
