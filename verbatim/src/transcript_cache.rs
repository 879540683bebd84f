//! Cache of recently requested archived transcripts, for programs.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::time::Instant;
use transcript_core::{
    archive::{self, LazyTranscript, StoredTranscript, TrackSelector},
    video::{VideoId, VideoLink},
};

use crate::{
    GetRequest, Verbatim,
    read_cache::{FormCost, FormKey, ReadCache, ReadCacheBudget},
};

mod archived_transcript;

pub use archived_transcript::ArchivedTranscript;
use archived_transcript::LazyEntry;

/// Maximum length of a link in the cache; real links are shorter.
const LINK_MAX: usize = 512;
/// Part of the budget that holds the selections.
const SELECTIONS_PART: u64 = 4;

/// A facade with a [`ReadCache`] of archived transcripts, for programs that repeat requests.
///
/// A clone shares the cache. A transcript is cached on its second request, unless the requests in between would have
/// evicted it. A single pass over many videos therefore evicts nothing, and its reads reuse memory that is in the CPU
/// cache.
///
/// If the archive supports lazy transcripts, an entry stays encoded until its text is accessed: a transcript that is
/// only passed on is never decompressed and takes a fraction of the memory. A program that changes the archive through
/// the same facade calls [`TranscriptCache::invalidate_all`].
#[derive(Clone, Debug)]
pub struct TranscriptCache(Arc<SharedCache>);

/// What the clones of a cache share.
#[derive(Debug)]
struct SharedCache {
    verbatim: Verbatim,
    cache: Arc<CachedTranscripts>,
    /// The largest change counter of a cached transcript. Those with a smaller one can no longer be selected.
    latest_changes: AtomicU64,
}

type CachedTranscripts = ReadCache<Arc<GetRequest>, Arc<TranscriptKey>, Arc<TranscriptKey>, CachedForm>;

/// Names the content of a transcript: what a selector selects is the same until the change counter grows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TranscriptKey {
    video: VideoId,
    selector: TrackSelector,
    changes: u64,
}

impl FormKey for Arc<TranscriptKey> {
    fn cost(&self) -> FormCost {
        // Lazy and decoded transcripts share the budget, since one replaces the other.
        FormCost::Cheap
    }
}

/// A cached transcript: decoded or lazy.
#[derive(Clone, Debug)]
enum CachedForm {
    Decoded(Arc<StoredTranscript>),
    Lazy(Arc<dyn LazyTranscript>),
}

impl CachedForm {
    /// Approximate memory in bytes.
    fn memory_bytes(&self) -> u64 {
        match self {
            Self::Decoded(stored) => stored.transcript.memory_bytes() + 1_024,
            Self::Lazy(lazy) => lazy.memory_bytes(),
        }
    }
}

impl TranscriptCache {
    /// Creates an empty cache of about `bytes_max` bytes.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(verbatim: Verbatim, bytes_max: u64) -> Self {
        let selections = bytes_max / SELECTIONS_PART;
        let budget = ReadCacheBudget { selections, cheap_forms: bytes_max - selections, costly_forms: 0 };
        let cache = Arc::new(ReadCache::for_program(verbatim.transcripts().clone(), budget));
        Self(Arc::new(SharedCache { verbatim, cache, latest_changes: AtomicU64::new(0) }))
    }

    /// The underlying facade.
    pub fn verbatim(&self) -> &Verbatim {
        &self.0.verbatim
    }

    /// Returns a cached transcript that is known to be valid, without waiting.
    pub fn peek(&self, request: &GetRequest) -> Option<ArchivedTranscript> {
        let key = self.0.cache.selection(request, Instant::now())?;
        let form = self.0.cache.form(&key)?;
        Some(self.archived(key, form))
    }

    /// Returns the archived transcript of the first language of this request, from the cache or the archive.
    ///
    /// `None` if there is none, or if the archive fails; [`Verbatim::get`] returns the reason. It can be awaited on any
    /// executor. A lazy transcript takes one read of the archive, a cold one two.
    pub async fn get(&self, request: &Arc<GetRequest>) -> Option<ArchivedTranscript> {
        if let Some(key) = self.0.cache.selection_or_wait(&**request).await
            && let Some(form) = self.0.cache.form(&key)
        {
            return Some(self.archived(key, form));
        }
        let selector = request.selector().ok()?;
        let Ok(VideoLink::Video(video)) = VideoLink::parse(&request.link) else { return None };
        let started_at = Instant::now();
        if let Some(lazy) = self.0.verbatim.transcripts().find_lazy(&video, &selector).await.ok()? {
            let changes = self.0.cache.monitor().record(lazy.change_counter(), started_at);
            // Archives of earlier versions keep machine translations for languages.
            if matches!(selector, TrackSelector::Language(_)) && !selector.takes(lazy.track_kind().ok()?) {
                return None;
            }
            let key = TranscriptKey { video, selector, changes };
            return Some(self.insert(request, key, CachedForm::Lazy(lazy)));
        }
        let changes = self.0.cache.monitor().read().await?;
        match self.0.verbatim.transcripts().find(&video, &selector).await {
            Ok(archive::FindOutcome::Transcript(stored)) => Some(self.insert(
                request,
                TranscriptKey { video, selector, changes },
                CachedForm::Decoded(Arc::new(stored)),
            )),
            _ => None,
        }
    }

    /// Caches a transcript if it was requested before.
    fn insert(&self, request: &Arc<GetRequest>, key: TranscriptKey, form: CachedForm) -> ArchivedTranscript {
        let (key, link_bytes, bytes) = (Arc::new(key), request.link.len(), form.memory_bytes());
        if link_bytes <= LINK_MAX && self.0.cache.admit(&**request, bytes) {
            let changes = key.changes;
            let latest = self.0.latest_changes.fetch_max(changes, Ordering::Relaxed);
            if latest < changes {
                self.0.cache.retain_forms(|key| changes <= key.changes);
            } else if changes < latest {
                return self.archived(key, form);
            }
            self.0.cache.insert_selection(Arc::clone(request), link_bytes as u64, Arc::clone(&key), changes);
            self.0.cache.insert_form(Arc::clone(&key), form.clone(), bytes);
        }
        self.archived(key, form)
    }

    fn archived(&self, key: Arc<TranscriptKey>, form: CachedForm) -> ArchivedTranscript {
        match form {
            CachedForm::Decoded(stored) => ArchivedTranscript::decoded(stored),
            CachedForm::Lazy(lazy) => {
                ArchivedTranscript::lazy(LazyEntry { lazy, cache: Arc::downgrade(&self.0.cache), key })
            }
        }
    }

    /// Removes all entries; required after a change of the archive.
    pub fn invalidate_all(&self) {
        self.0.cache.invalidate_all();
    }
}

#[cfg(test)]
mod tests;
