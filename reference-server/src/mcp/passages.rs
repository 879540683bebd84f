//! Passages of transcripts, cut once and cached.
//!
//! The key is the content digest, so an entry never becomes invalid. It is found only through a transcript that was
//! read from the archive for the call, so withdrawal and new revisions take effect at once.

use std::{mem::size_of, sync::Arc};

use quick_cache::{Weighter, sync::Cache};
use transcript_core::{
    Error,
    archive::StoredTranscript,
    chat::{Chat, Passage},
};

/// Budget of the cache in bytes: some 150 transcripts of an hour.
const BYTES_MAX: u64 = 16 << 20;
/// Expected number of transcripts in it: so few that the cache is not divided. A part would be too small for a long
/// one.
const CACHE_ITEMS: usize = 32;

/// Weighs cached passages by their bytes.
#[derive(Clone, Copy, Debug)]
struct PassageWeighter;

impl Weighter<Vec<u8>, Arc<[Passage]>> for PassageWeighter {
    fn weight(&self, digest: &Vec<u8>, passages: &Arc<[Passage]>) -> u64 {
        let bytes = |passage: &Passage| (passage.text.len() + size_of::<Passage>()) as u64;
        digest.len() as u64 + passages.iter().map(bytes).sum::<u64>()
    }
}

/// Cache of passages by the content digest. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct PassageCache {
    chat: Chat,
    cache: Arc<Cache<Vec<u8>, Arc<[Passage]>, PassageWeighter>>,
}

impl PassageCache {
    /// Creates an empty cache. `chat` divides transcripts.
    pub(crate) fn new(chat: Chat) -> Self {
        Self { chat, cache: Arc::new(Cache::with_weighter(CACHE_ITEMS, BYTES_MAX, PassageWeighter)) }
    }

    /// Returns the passages of a transcript. Concurrent calls for one transcript divide it once.
    ///
    /// # Errors
    /// As [`Chat::passages`].
    pub(super) async fn get(&self, stored: &StoredTranscript) -> Result<Arc<[Passage]>, Error> {
        let make = self.chat.passages(Arc::clone(&stored.transcript));
        self.cache.get_or_insert_async(&stored.content_sha256, make).await
    }

    /// Number of cached transcripts.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.cache.len()
    }
}
