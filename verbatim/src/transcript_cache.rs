//! Cache of recently requested archived transcripts.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{
    archive::{self, LazyTranscript, StoredTranscript},
    transcript::{Segment, Transcript},
    video::VideoLink,
};

use crate::{GetRequest, Verbatim};

mod archived_transcript;
mod ghost_list;

pub use archived_transcript::ArchivedTranscript;
use archived_transcript::LazyEntry;
use ghost_list::GhostList;

/// Maximum age of the change counter: the longest time for which a change by another process is unseen.
const COUNTER_AGE_MAX: Duration = Duration::from_millis(50);
/// Maximum length of a link in the cache; real links are shorter.
const LINK_MAX: usize = 512;

/// A facade with a cache of archived transcripts, for programs that repeat requests.
///
/// A clone shares the cache. A transcript is cached on its second request, unless the requests in between would have
/// evicted it. A single pass over many videos therefore evicts nothing, and its reads reuse memory that is in the CPU
/// cache.
///
/// If the archive supports lazy transcripts, an entry stays encoded until its text is accessed: a transcript that is
/// only passed on is never decompressed and takes a fraction of the memory. Entries are valid while the change counter
/// of the archive is unchanged. The counter is read at most 50 ms before use. A program that changes the archive
/// through the same facade calls [`TranscriptCache::invalidate_all`].
#[derive(Clone, Debug)]
pub struct TranscriptCache {
    verbatim: Arc<Verbatim>,
    state: Arc<Mutex<CacheState>>,
}

#[derive(Debug, Default)]
struct CacheState {
    /// The change counter of the archive, and the time before it was read.
    counter: Option<(u64, Instant)>,
    transcripts: HashMap<Arc<GetRequest>, (CachedForm, u64)>,
    /// Oldest first.
    order: VecDeque<Arc<GetRequest>>,
    bytes: u64,
    bytes_max: u64,
    ghosts: GhostList,
    /// Number of invalidations. A transcript that was read before an invalidation is not cached after it.
    invalidations: u64,
}

/// A cached transcript: decoded or lazy.
#[derive(Clone, Debug)]
enum CachedForm {
    Decoded(StoredTranscript),
    Lazy(Arc<dyn LazyTranscript>),
}

impl CachedForm {
    /// Approximate memory in bytes.
    fn memory_bytes(&self) -> u64 {
        match self {
            Self::Decoded(stored) => transcript_bytes(&stored.transcript),
            Self::Lazy(lazy) => lazy.memory_bytes(),
        }
    }
}

impl CacheState {
    fn is_fresh(&self) -> bool {
        self.counter.is_some_and(|(_, read)| read.elapsed() < COUNTER_AGE_MAX)
    }

    fn invalidate_all(&mut self) {
        let (invalidations, ghosts) = (self.invalidations + 1, std::mem::take(&mut self.ghosts));
        *self = Self { invalidations, ghosts, bytes_max: self.bytes_max, ..Self::default() };
    }

    /// Records the change counter that was read after `read`, unless a newer value is known.
    fn record_counter(&mut self, changes: u64, read: Instant) {
        if let Some((known, known_since)) = self.counter {
            if read < known_since {
                return;
            }
            if known != changes {
                self.invalidate_all();
            }
        }
        self.counter = Some((changes, read));
    }

    /// Caches a transcript if it was requested before and fits.
    fn insert(&mut self, request: Arc<GetRequest>, form: CachedForm) {
        let bytes = form.memory_bytes();
        if bytes > self.bytes_max || request.link.len() > LINK_MAX {
            return;
        }
        if !self.ghosts.check_and_record(&*request, bytes, self.bytes_max)
            || self.transcripts.contains_key(&request)
        {
            return;
        }
        self.transcripts.insert(Arc::clone(&request), (form, bytes));
        self.order.push_back(request);
        self.bytes += bytes;
        self.make_room();
    }

    /// Replaces a lazy entry by its decoded transcript.
    fn replace_decoded(
        &mut self,
        request: &GetRequest,
        lazy: &Arc<dyn LazyTranscript>,
        stored: &StoredTranscript,
    ) {
        let form = CachedForm::Decoded(stored.clone());
        let more = form.memory_bytes();
        match self.transcripts.get_mut(request) {
            Some((known @ CachedForm::Lazy(_), bytes)) if more <= self.bytes_max => {
                if !matches!(known, CachedForm::Lazy(known) if Arc::ptr_eq(known, lazy)) {
                    return;
                }
                *known = form;
                self.bytes = self.bytes.saturating_sub(*bytes) + more;
                *bytes = more;
            }
            _ => return,
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.bytes > self.bytes_max {
            let Some((_, bytes)) = self.order.pop_front().and_then(|oldest| self.transcripts.remove(&oldest))
            else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}

/// Approximate memory of a transcript in bytes.
fn transcript_bytes(transcript: &Transcript) -> u64 {
    let each = size_of::<Segment>() as u64 + 16;
    let words = transcript.segments.iter().map(|segment| segment.text.len() as u64 + each);
    words.sum::<u64>() + 1_024
}

impl TranscriptCache {
    /// Creates an empty cache of about `bytes_max` bytes; the oldest entries are evicted first.
    pub fn new(verbatim: Verbatim, bytes_max: u64) -> Self {
        Self {
            verbatim: Arc::new(verbatim),
            state: Arc::new(Mutex::new(CacheState { bytes_max, ..CacheState::default() })),
        }
    }

    /// The underlying facade.
    pub fn verbatim(&self) -> &Verbatim {
        &self.verbatim
    }

    /// Returns a cached transcript that is known to be valid, without waiting.
    pub fn peek(&self, request: &GetRequest) -> Option<ArchivedTranscript> {
        let state = self.state();
        let (request, (form, _)) = state.transcripts.get_key_value(request).filter(|_| state.is_fresh())?;
        Some(self.archived_as(request, form.clone()))
    }

    /// Returns the archived transcript of exactly this request, from the cache or the archive.
    ///
    /// `None` if there is none, or if the archive fails; [`Verbatim::get`] returns the reason. It can be awaited on any
    /// executor. A lazy transcript takes one read of the archive.
    pub async fn get(&self, request: &Arc<GetRequest>) -> Option<ArchivedTranscript> {
        let (is_known, invalidations) = {
            let state = self.state();
            (state.transcripts.contains_key(request), state.invalidations)
        };
        if is_known
            && self.refresh_counter().await.is_some()
            && let Some(archived) = self.peek(request)
        {
            return Some(archived);
        }
        let selector = request.selector().ok()?;
        let Ok(VideoLink::Video(video)) = VideoLink::parse(&request.link) else { return None };
        let started = Instant::now();
        let request = Arc::clone(request);
        if let Some(lazy) = self.verbatim.transcripts().find_lazy(&video, &selector).await.ok()? {
            let changes = Some((lazy.change_counter(), started));
            return Some(self.cache_unless_invalidated(
                request,
                CachedForm::Lazy(lazy),
                invalidations,
                changes,
            ));
        }
        let invalidations = self.refresh_counter().await?;
        match self.verbatim.transcripts().find(&video, &selector).await {
            Ok(archive::FindOutcome::Transcript(stored)) => {
                Some(self.cache_unless_invalidated(request, CachedForm::Decoded(stored), invalidations, None))
            }
            _ => None,
        }
    }

    /// Caches a transcript unless the cache was invalidated since `invalidations` was read.
    ///
    /// Records the change counter that was read with it, and the time before that read.
    fn cache_unless_invalidated(
        &self,
        request: Arc<GetRequest>,
        form: CachedForm,
        invalidations: u64,
        changes: Option<(u64, Instant)>,
    ) -> ArchivedTranscript {
        let mut state = self.state();
        let is_current = state.invalidations == invalidations;
        if let Some((changes, read)) = changes {
            state.record_counter(changes, read);
        }
        // A counter older than the known one may also be older than the last change.
        let is_newest = changes.is_none_or(|(_, read)| state.counter.is_some_and(|(_, known)| known == read));
        if is_current && is_newest {
            state.insert(Arc::clone(&request), form.clone());
        }
        drop(state);
        self.archived_as(&request, form)
    }

    fn archived_as(&self, request: &Arc<GetRequest>, form: CachedForm) -> ArchivedTranscript {
        match form {
            CachedForm::Decoded(stored) => ArchivedTranscript::decoded(stored),
            CachedForm::Lazy(lazy) => ArchivedTranscript::lazy(LazyEntry {
                lazy,
                state: Arc::downgrade(&self.state),
                request: Arc::clone(request),
            }),
        }
    }

    /// Removes all entries; required after a change of the archive.
    pub fn invalidate_all(&self) {
        self.state().invalidate_all();
    }

    /// Ensures a recent change counter and returns the number of invalidations.
    ///
    /// `None` if the counter cannot be read.
    async fn refresh_counter(&self) -> Option<u64> {
        {
            let state = self.state();
            if state.is_fresh() {
                return Some(state.invalidations);
            }
        }
        let read = Instant::now();
        let changes = self.verbatim.transcripts().changes().await.ok()?;
        let mut state = self.state();
        state.record_counter(changes, read);
        Some(state.invalidations)
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        // No operation on the state can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
