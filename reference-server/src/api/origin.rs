//! Where the response to a lookup comes from.

/// Origin of the response to a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultOrigin {
    /// The response cache.
    Ready,
    /// A stored body, sent without decoding.
    Stored,
    Archive,
    /// Fetched for this caller, or by a fetch that the caller waited for.
    Fetched,
    /// No transcript.
    Nothing,
}

impl ResultOrigin {
    /// All origins, in the order of their discriminants.
    pub(crate) const ALL: [Self; 5] =
        [Self::Ready, Self::Stored, Self::Archive, Self::Fetched, Self::Nothing];

    /// Returns the name in metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stored => "stored",
            Self::Archive => "archive",
            Self::Fetched => "fetched",
            Self::Nothing => "nothing",
        }
    }
}
