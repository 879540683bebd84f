//! An archived transcript that may still be encoded.

use std::sync::{Arc, OnceLock, Weak};

use transcript_core::{
    Result,
    archive::{LazyTranscript, StoredTranscript},
};

use super::{CachedForm, CachedTranscripts, TranscriptKey};

/// An archived transcript, decoded on first access.
pub struct ArchivedTranscript {
    revision: u32,
    /// The decoded transcript.
    read: OnceLock<Arc<StoredTranscript>>,
    /// `None` if it was decoded from the start.
    lazy: Option<LazyEntry>,
}

/// A lazy transcript, and the cache whose entry is replaced once it is decoded.
pub(super) struct LazyEntry {
    pub(super) lazy: Arc<dyn LazyTranscript>,
    pub(super) cache: Weak<CachedTranscripts>,
    pub(super) key: Arc<TranscriptKey>,
}

// Without the text.
transcript_core::debug_fields!(ArchivedTranscript |this| {
    revision: this.revision, is_read: this.read.get().is_some()
});

impl ArchivedTranscript {
    pub(super) fn decoded(stored: Arc<StoredTranscript>) -> Self {
        Self { revision: stored.revision, read: stored.into(), lazy: None }
    }

    pub(super) fn lazy(lazy: LazyEntry) -> Self {
        Self { revision: lazy.lazy.revision(), read: OnceLock::new(), lazy: Some(lazy) }
    }

    /// As [`StoredTranscript::revision`].
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// Returns the transcript; the first call decodes it and checks its digest.
    ///
    /// Decoding takes a fraction of a millisecond per hour of speech.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] if the archived data is damaged.
    pub fn read(&self) -> Result<&StoredTranscript> {
        let (None, Some(lazy)) = (self.read.get(), &self.lazy) else {
            return self.read.get().map(AsRef::as_ref).ok_or_else(missing_form);
        };
        let stored = Arc::new(lazy.lazy.load()?);
        if let Some(cache) = lazy.cache.upgrade() {
            let form = CachedForm::Decoded(Arc::clone(&stored));
            let bytes = form.memory_bytes();
            cache.try_replace_form(&lazy.key, form, bytes);
        }
        // A concurrent caller has decoded the same transcript.
        Ok(self.read.get_or_init(|| stored))
    }
}

#[cold]
fn missing_form() -> transcript_core::Error {
    transcript_core::Error::unexpected("a transcript is neither decoded nor lazy")
}
