//! Passages of transcripts, cut once and cached.
//!
//! The key is the content digest, so an entry never becomes invalid. It is found only through a transcript that was
//! read from the archive for the call, so withdrawal and new revisions take effect at once.

use std::{mem::size_of, sync::Arc, time::Duration};

use transcript_core::{
    Error,
    archive::StoredTranscript,
    chat::{Chat, Passage},
    engine::Transcripts,
};
use verbatim::read_cache::{FormCost, FormKey, ReadCache, ReadCacheBudget};

/// Budget of the cache in bytes: some 150 transcripts of an hour.
const BYTES_MAX: u64 = 16 << 20;

/// Content digest of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ContentKey(Vec<u8>);

impl FormKey for ContentKey {
    fn cost(&self) -> FormCost {
        FormCost::Costly
    }
}

/// Cache of passages. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct PassageCache {
    chat: Chat,
    cache: Arc<ReadCache<(), (), ContentKey, Arc<[Passage]>>>,
}

impl PassageCache {
    /// Creates an empty cache. `chat` divides transcripts.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn new(transcripts: Transcripts, chat: Chat) -> Self {
        let budget = ReadCacheBudget { selections: 0, cheap_forms: 0, costly_forms: BYTES_MAX };
        Self { chat, cache: Arc::new(ReadCache::new(transcripts, budget, Duration::ZERO)) }
    }

    /// Returns the passages of a transcript. Concurrent calls for one transcript divide it once.
    ///
    /// # Errors
    /// As [`Chat::passages`].
    pub(super) async fn get(&self, stored: &StoredTranscript) -> Result<Arc<[Passage]>, Error> {
        let key = ContentKey(stored.content_sha256.to_vec());
        let make = async {
            let passages = self.chat.passages(Arc::clone(&stored.transcript)).await?;
            let bytes =
                passages.iter().map(|passage| passage.text.len() + size_of::<Passage>()).sum::<usize>();
            Ok((passages, bytes as u64))
        };
        self.cache.form_or_make(&key, make).await
    }

    /// Number of cached transcripts.
    #[cfg(test)]
    pub(super) fn len(&self) -> u64 {
        self.cache.usage(|_| true).entries
    }
}
