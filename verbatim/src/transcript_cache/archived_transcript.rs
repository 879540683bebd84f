//! An archived transcript that may still be encoded.

use std::sync::{Arc, OnceLock, Weak};

use transcript_core::{
    Result,
    archive::{LazyTranscript, StoredTranscript},
};

use super::{CachedForm, CachedTranscripts, TranscriptKey};

/// An archived transcript, decoded on first access. A clone shares the decoded form.
#[derive(Clone)]
pub struct ArchivedTranscript(Arc<ArchivedState>);

struct ArchivedState {
    revision: u32,
    /// The decoded transcript.
    read: OnceLock<StoredTranscript>,
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
    revision: this.0.revision, is_read: this.0.read.get().is_some()
});

impl ArchivedTranscript {
    pub(super) fn decoded(stored: StoredTranscript) -> Self {
        Self(Arc::new(ArchivedState { revision: stored.revision, read: stored.into(), lazy: None }))
    }

    pub(super) fn lazy(lazy: LazyEntry) -> Self {
        let revision = lazy.lazy.revision();
        Self(Arc::new(ArchivedState { revision, read: OnceLock::new(), lazy: Some(lazy) }))
    }

    /// As [`StoredTranscript::revision`].
    pub fn revision(&self) -> u32 {
        self.0.revision
    }

    /// Returns the transcript; the first call decodes it and checks its digest.
    ///
    /// Decoding takes a fraction of a millisecond per hour of speech.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] if the archived data is damaged.
    pub fn read(&self) -> Result<&StoredTranscript> {
        let state = &self.0;
        let (None, Some(lazy)) = (state.read.get(), &state.lazy) else {
            return state.read.get().ok_or_else(missing_form);
        };
        let stored = lazy.lazy.load()?;
        if let Some(cache) = lazy.cache.upgrade() {
            let form = CachedForm::Decoded(stored.clone());
            let bytes = form.memory_bytes();
            cache.try_replace_form(&lazy.key, form, bytes);
        }
        // A concurrent caller has decoded the same transcript.
        Ok(state.read.get_or_init(|| stored))
    }
}

#[cold]
fn missing_form() -> transcript_core::Error {
    transcript_core::Error::unexpected("a transcript is neither decoded nor lazy")
}
