//! Where a page of a transcript begins.

use std::fmt;

use transcript_core::archive::StoredTranscript;

/// A place in one revision of one transcript: a passage, and how many bytes of it were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The first bytes of the content's digest.
    digest: u32,
    /// The passage, from 0.
    pub(super) passage: u32,
    /// How many bytes of its text were read.
    pub(super) offset: u32,
}

impl Cursor {
    /// A place in this transcript.
    pub(super) fn new(stored: &StoredTranscript, passage: usize, offset: usize) -> Self {
        // A transcript has less than four gigabytes.
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { digest: digest(stored), passage: small(passage), offset: small(offset) }
    }

    /// Whether it is of this transcript, as it is archived now.
    pub(super) fn is_of(&self, stored: &StoredTranscript) -> bool {
        self.digest == digest(stored)
    }

    /// The cursor that was written so.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let digest = parts.next().filter(|part| part.len() == 8)?;
        let cursor = Self {
            digest: u32::from_str_radix(digest, 16).ok()?,
            passage: parts.next()?.parse().ok()?,
            offset: parts.next()?.parse().ok()?,
        };
        // Only what it is written as itself: no signs, no leading zeros.
        (cursor.to_string() == text).then_some(cursor)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}-{}", self.digest, self.passage, self.offset)
    }
}

fn digest(stored: &StoredTranscript) -> u32 {
    stored.content_sha256.iter().take(4).fold(0, |digest, byte| digest << 8 | u32::from(*byte))
}
