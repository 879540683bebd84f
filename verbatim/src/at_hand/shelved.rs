//! An archived transcript that may still be unread.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, Weak},
};

use transcript_core::{
    Result,
    archive::{StoredTranscript, Unread},
};

use super::Kept;
use crate::Get;

/// An archived transcript, which is read when somebody first looks at its words. A clone is the same one.
#[derive(Clone)]
pub struct Shelved(Arc<Inner>);

struct Inner {
    revision: u32,
    read: OnceLock<StoredTranscript>,
    /// None where it was read before.
    unread: Option<Left>,
}

/// What was left unread, and where it is at hand.
pub(super) struct Left {
    pub(super) unread: Arc<dyn Unread>,
    pub(super) at: Weak<Mutex<Kept>>,
    pub(super) ask: Arc<Get>,
}

impl fmt::Debug for Shelved {
    /// Without the words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelved")
            .field("revision", &self.0.revision)
            .field("is_read", &self.0.read.get().is_some())
            .finish_non_exhaustive()
    }
}

impl Shelved {
    pub(super) fn read_before(stored: StoredTranscript) -> Self {
        Self(Arc::new(Inner { revision: stored.revision, read: stored.into(), unread: None }))
    }

    pub(super) fn left(left: Left) -> Self {
        let revision = left.unread.revision();
        Self(Arc::new(Inner { revision, read: OnceLock::new(), unread: Some(left) }))
    }

    /// As [`StoredTranscript::revision`].
    pub fn revision(&self) -> u32 {
        self.0.revision
    }

    /// The transcript, which is read, and checked against its digest, the first time: a fraction of a millisecond for an
    /// hour of speech.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] when what was archived is damaged.
    pub fn read(&self) -> Result<&StoredTranscript> {
        let inner = &self.0;
        let (None, Some(left)) = (inner.read.get(), &inner.unread) else {
            return inner.read.get().ok_or_else(neither);
        };
        let stored = left.unread.read()?;
        // In a forked child nobody may ever unlock it.
        if let Some(at) = left.at.upgrade()
            && let Ok(mut kept) = at.try_lock()
        {
            kept.was_read(&left.ask, &left.unread, &stored);
        }
        // Whoever reads at the same time has read the same.
        Ok(inner.read.get_or_init(|| stored))
    }
}

#[cold]
fn neither() -> transcript_core::Error {
    transcript_core::Error::unexpected("a transcript is neither read nor unread")
}
