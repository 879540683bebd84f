//! Where the content of a transcript object comes from: the core, the archive, a caller or JSON.

use std::sync::{Arc, OnceLock};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use transcript_core::{
    archive::StoredTranscript,
    transcript::{self, VideoDetails},
};
use verbatim::ArchivedTranscript;

use super::Transcript;
use crate::{document::Document, exceptions::core_exception, metadata, segment::SegmentStore};

impl Transcript {
    pub(crate) fn from_stored(stored: &StoredTranscript, from_cache: bool) -> Self {
        let store = SegmentStore::new(Arc::clone(&stored.transcript), Arc::clone(&stored.details));
        Self::with_store(store, from_cache, stored.revision)
    }

    pub(crate) fn from_core(
        transcript: transcript::Transcript,
        details: Arc<VideoDetails>,
        from_cache: bool,
    ) -> Self {
        Self::with_store(SegmentStore::new(Arc::new(transcript), details), from_cache, 0)
    }

    /// A lazy transcript, decoded on first access.
    pub(crate) fn from_archive(archived: ArchivedTranscript) -> Self {
        let revision = archived.revision();
        Self { store: OnceLock::new(), archived: Some(archived), from_cache: true, revision }
    }

    pub(super) fn with_store(store: SegmentStore, from_cache: bool, revision: u32) -> Self {
        Self { store: Arc::new(store).into(), archived: None, from_cache, revision }
    }

    pub(super) fn store(&self, py: Python<'_>) -> PyResult<&Arc<SegmentStore>> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let read = self.archived.as_ref().map(|archived| py.detach(|| archived.read()));
        let read = read.transpose().map_err(|error| core_exception(py, &error))?;
        let stored = read.ok_or_else(|| PyRuntimeError::new_err("the transcript has no segments"))?;
        // A concurrent caller has decoded the same transcript.
        Ok(self.store.get_or_init(|| {
            Arc::new(SegmentStore::new(Arc::clone(&stored.transcript), Arc::clone(&stored.details)))
        }))
    }

    /// The transcript as the core's type.
    ///
    /// # Errors
    /// `StorageError` if the archived form is damaged.
    pub(crate) fn inner(&self, py: Python<'_>) -> PyResult<&transcript::Transcript> {
        Ok(&self.store(py)?.transcript)
    }

    /// What is known of the video.
    ///
    /// # Errors
    /// `StorageError` if the archived form is damaged.
    pub(crate) fn details(&self, py: Python<'_>) -> PyResult<&VideoDetails> {
        Ok(&self.store(py)?.details)
    }

    /// The transcript as a JSON document.
    pub(super) fn document(&self, py: Python<'_>) -> PyResult<Document> {
        Ok(Document::new(self.inner(py)?, self.details(py)?, self.from_cache, self.revision))
    }

    /// A transcript from the caller.
    pub(super) fn checked(
        py: Python<'_>,
        mut transcript: transcript::Transcript,
        metadata: Option<&Bound<'_, PyAny>>,
        chapters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let details = metadata::read_details(&mut transcript, metadata, chapters)?;
        transcript.check().map_err(|error| core_exception(py, &error))?;
        Ok(Self::from_core(transcript, Arc::new(details), false))
    }

    pub(super) fn parse_document(json: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let (from_cache, revision) = (document.from_cache, document.revision);
        let (transcript, details) = document.into_transcript()?;
        transcript.check().map_err(|error| error.to_string())?;
        let store = SegmentStore::new(Arc::new(transcript), Arc::new(details));
        Ok(Self::with_store(store, from_cache, revision))
    }
}
