//! The changes of one write.

use serde::Serialize;

use super::{KeyValueChange, keys};
use crate::error::{Error, Result};

/// What the write of a video means for caches and for a search index.
#[derive(Clone, Copy, Debug)]
pub(super) struct VideoChange {
    /// Whether transcripts found earlier may have become invalid.
    pub(super) is_change: bool,
    /// Whether a search index must read the video again.
    pub(super) is_unindexed: bool,
}

impl VideoChange {
    /// A change for both.
    pub(super) const FULL: Self = Self { is_change: true, is_unindexed: true };
}

/// The changes of one write.
#[derive(Debug, Default)]
pub(super) struct Changes(pub(super) Vec<KeyValueChange>);

impl Changes {
    /// A write that changes no data.
    pub(super) fn check() -> Self {
        Self(vec![KeyValueChange { key: keys::CHECK.to_owned(), value: Some(b"null".to_vec()) }])
    }

    pub(super) fn put(&mut self, key: String, value: &impl Serialize) -> Result<()> {
        let value = serde_json::to_vec(value).map_err(|_| Error::unexpected("a value cannot be encoded"))?;
        self.0.push(KeyValueChange { key, value: Some(value) });
        Ok(())
    }

    pub(super) fn delete(&mut self, key: String) {
        self.0.push(KeyValueChange { key, value: None });
    }
}
