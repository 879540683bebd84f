//! Cursor of a transcript page.

use transcript_core::archive::StoredTranscript;

/// Position in one revision of a transcript: a passage and the bytes of it that were already returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
#[display("{digest:08x}-{passage}-{offset}")]
pub(super) struct PassageCursor {
    /// First four bytes of the content digest.
    digest: u32,
    /// Passage, from 0.
    pub(super) passage: u32,
    /// Bytes of the passage's text that were already returned.
    pub(super) offset: u32,
}

impl PassageCursor {
    /// Creates a cursor into this transcript.
    pub(super) fn new(stored: &StoredTranscript, passage: usize, offset: usize) -> Self {
        // A transcript has less than 4 GiB.
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { digest: stored.short_digest(), passage: small(passage), offset: small(offset) }
    }

    /// Whether the cursor belongs to this revision of this transcript.
    pub(super) fn is_of(&self, stored: &StoredTranscript) -> bool {
        self.digest == stored.short_digest()
    }

    /// Parses the text form of a cursor.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let digest = parts.next().filter(|part| part.len() == 8)?;
        let cursor = Self {
            digest: u32::from_str_radix(digest, 16).ok()?,
            passage: parts.next()?.parse().ok()?,
            offset: parts.next()?.parse().ok()?,
        };
        // Only the canonical form is valid: no signs, no leading zeros.
        (cursor.to_string() == text).then_some(cursor)
    }
}
