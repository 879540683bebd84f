//! Vectors of passages in the archive: computed once for all servers, and read again after a restart.

use std::sync::Arc;

use super::embedder::TextVectors;
use crate::{
    archive::{Archive, VECTORS_BYTES_MAX, VectorsKey},
    error::Result,
    failure_log::FailureLog,
};

/// An archive with the vectors of its transcripts. Without it, an answer only takes longer: a failure is logged.
#[derive(Clone)]
pub(super) struct VectorArchive {
    archive: Arc<dyn Archive>,
    failures: Arc<FailureLog>,
}

crate::debug_fields!(VectorArchive { archive });

impl VectorArchive {
    pub(super) fn new(archive: Arc<dyn Archive>) -> Self {
        Self { archive, failures: Arc::new(FailureLog::new()) }
    }

    /// The stored vectors of `count` texts; `None` if there are none or they are damaged.
    pub(super) async fn find(&self, key: &VectorsKey, count: usize) -> Option<TextVectors> {
        let bytes = self.logged(self.archive.vectors(key).await).flatten()?;
        TextVectors::decode(&bytes, &key.texts_sha256, count)
    }

    /// Stores vectors, unless they are too large.
    pub(super) async fn put(&self, key: &VectorsKey, vectors: &TextVectors) {
        let bytes = vectors.encode(&key.texts_sha256);
        if bytes.len() <= VECTORS_BYTES_MAX {
            self.logged(self.archive.put_vectors(key, bytes).await);
        }
    }

    fn logged<T>(&self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => {
                self.failures.succeeded();
                Some(value)
            }
            Err(error) => {
                if let Some(failures) = self.failures.failed() {
                    tracing::warn!(%error, failures, "vectors not read from or written to the archive");
                }
                None
            }
        }
    }
}
