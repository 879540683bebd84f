//! Cache of what is read from an archive: one type for the bodies of a server and the transcripts of a program.
//!
//! | level | key | value | invalid |
//! |---|---|---|---|
//! | 1, selections | the query as it was sent, with its API; in a program, link and language | what the query selects: the key of a form, without the encoding | the archive's change counter differs from the one read before the selection, or was read more than 50 ms ago ([`ChangeMonitor`]) |
//! | 2, forms | the content and its form: content digest, format and encoding; in a program, video, selector and change counter | bytes with their headers; a lazy or decoded transcript | never: the key names the content. The least used forms are evicted |
//!
//! A form is reached through a valid selection only, so no change of the archive is hidden for more than 50 ms,
//! whichever process makes it. While the archive cannot be read, selections stay valid for the time that the owner of
//! the cache permits ([`ReadCache::new`]).
//!
//! The parts have one byte budget ([`ReadCacheBudget`]). What is made as fast as it is found, such as a row, is
//! admitted on its second request ([`ReadCache::admit`]) to its own part. What takes milliseconds to make is
//! admitted at once, and no cheap form evicts it.

mod admission;
mod change_monitor;

use std::{
    fmt,
    hash::{Hash, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use quick_cache::{
    DefaultHashBuilder, Equivalent, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use tokio::time::Instant;
use transcript_core::engine::Transcripts;

use admission::AdmissionFilter;
pub use change_monitor::{CHANGE_COUNTER_AGE_MAX, ChangeMonitor};

/// Approximate overhead of an entry, in bytes.
const OVERHEAD: u64 = 256;
/// Smallest shard of forms, in bytes. A shard is locked at once, and no form may be larger than its shard.
const FORM_SHARD_BYTES_MIN: u64 = 8 << 20;
/// Smallest shard of selections, in bytes. Selections are small and read by each request, so they have many shards.
const SELECTION_SHARD_BYTES_MIN: u64 = 512 << 10;
/// Most shards of a part.
const SHARDS_MAX: u64 = 64;
/// Typical size of a form, in bytes.
const FORM_BYTES: u64 = 16 << 10;

/// Cost of making a form again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormCost {
    /// About as much as reading its row.
    Cheap,
    /// Decompressing, rendering or compressing.
    Costly,
}

/// Key of a form: names the content, so that its form never becomes invalid.
pub trait FormKey: Clone + Eq + Hash + Send + Sync {
    /// The cost of the form. Equal keys have equal costs.
    fn cost(&self) -> FormCost;
}

/// Byte budget of a cache, by part. No part ever holds more.
///
/// A part is divided into equal shards: what the division leaves, less than a byte for each shard, is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCacheBudget {
    /// Selections.
    pub selections: u64,
    /// Cheap forms.
    pub cheap_forms: u64,
    /// Costly forms.
    pub costly_forms: u64,
}

/// Number and size of cached forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCacheUsage {
    /// Number of forms.
    pub entries: u64,
    /// Their size in bytes, as the budget counts it.
    pub bytes: u64,
}

/// A value and the bytes that it takes.
#[derive(Clone, Debug)]
struct CacheEntry<T> {
    value: T,
    bytes: u64,
}

impl<T> CacheEntry<T> {
    fn new(value: T, bytes: u64) -> Self {
        Self { value, bytes: bytes + OVERHEAD }
    }
}

/// A selection, and the change counter that was read before it.
#[derive(Clone, Debug)]
struct CountedSelection<S> {
    selection: S,
    changes: u64,
}

#[derive(Clone, Debug)]
struct EntryWeighter;

impl<K, T> Weighter<K, CacheEntry<T>> for EntryWeighter {
    fn weight(&self, _: &K, entry: &CacheEntry<T>) -> u64 {
        entry.bytes
    }
}

type WeightedCache<K, T> = Cache<K, CacheEntry<T>, EntryWeighter>;

/// A cache of queries `Q`, what they select `S`, the keys of forms `K` and forms `F`.
pub struct ReadCache<Q, S, K, F> {
    selections: WeightedCache<Q, CountedSelection<S>>,
    cheap: WeightedCache<K, F>,
    costly: WeightedCache<K, F>,
    admission: AdmissionFilter,
    hasher: RandomState,
    monitor: Arc<ChangeMonitor>,
    stale_uses: AtomicU64,
    budget: ReadCacheBudget,
}

impl<Q, S, K, F> fmt::Debug for ReadCache<Q, S, K, F> {
    /// Without entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCache").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl<Q, S, K, F> ReadCache<Q, S, K, F>
where
    Q: Eq + Hash + Send + Sync,
    S: Clone + Send + Sync,
    K: FormKey,
    F: Clone + Send + Sync,
{
    /// Creates an empty cache over the archive of `transcripts`.
    ///
    /// While the archive cannot be read, selections that were valid within the last `stale_max` are used.
    ///
    /// # Panics
    /// Outside a tokio runtime, which reads the change counter in the background.
    pub fn new(transcripts: Transcripts, budget: ReadCacheBudget, stale_max: Duration) -> Self {
        Self::with_monitor(ChangeMonitor::new(transcripts, stale_max), budget)
    }

    /// Creates an empty cache of a program: the requests themselves read the change counter, never a task.
    ///
    /// For a single caller, waking a thread costs more than the reading.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn for_program(transcripts: Transcripts, budget: ReadCacheBudget) -> Self {
        Self::with_monitor(ChangeMonitor::for_program(transcripts), budget)
    }

    fn with_monitor(monitor: ChangeMonitor, budget: ReadCacheBudget) -> Self {
        Self {
            selections: cache(budget.selections, 2 * OVERHEAD, SELECTION_SHARD_BYTES_MIN),
            cheap: cache(budget.cheap_forms, FORM_BYTES, FORM_SHARD_BYTES_MIN),
            costly: cache(budget.costly_forms, FORM_BYTES, FORM_SHARD_BYTES_MIN),
            admission: AdmissionFilter::new(budget.cheap_forms),
            hasher: RandomState::new(),
            monitor: Arc::new(monitor),
            stale_uses: AtomicU64::new(0),
            budget,
        }
    }

    /// The monitor of the archive's change counter.
    pub fn monitor(&self) -> &Arc<ChangeMonitor> {
        &self.monitor
    }

    /// Returns what a query selects if that is known and valid at `now`. It never waits.
    pub fn selection<B>(&self, query: &B, now: Instant) -> Option<S>
    where
        B: Equivalent<Q> + Hash + ?Sized,
    {
        let CountedSelection { selection, changes } = self.selections.get(query)?.value;
        let current = self.monitor.changes(now).or_else(|| self.stale(now))?;
        (current == changes).then_some(selection)
    }

    /// Returns what a query selects if that is known and valid, and reads the change counter if necessary.
    pub async fn selection_or_wait<B>(&self, query: &B) -> Option<S>
    where
        B: Equivalent<Q> + Hash + Sync + ?Sized,
    {
        let CountedSelection { selection, changes } = self.selections.get(query)?.value;
        let current = self.monitor.read().await.or_else(|| self.stale(Instant::now()))?;
        (current == changes).then_some(selection)
    }

    /// Returns the last known change counter while the archive cannot be read, and counts the use.
    fn stale(&self, now: Instant) -> Option<u64> {
        let changes = self.monitor.last_known(now)?;
        self.stale_uses.fetch_add(1, Ordering::Relaxed);
        Some(changes)
    }

    /// How many selections were checked with an old change counter, because the archive could not be read.
    pub fn stale_uses(&self) -> u64 {
        self.stale_uses.load(Ordering::Relaxed)
    }

    /// Stores what a query of `bytes` bytes selects while the change counter is `changes`.
    ///
    /// The counter must have been read before the archive, or in one snapshot with it.
    pub fn insert_selection(&self, query: Q, bytes: u64, selection: S, changes: u64) {
        self.selections.insert(query, CacheEntry::new(CountedSelection { selection, changes }, bytes));
    }

    /// Returns a cached form.
    pub fn form(&self, key: &K) -> Option<F> {
        self.part(key).get(key).map(|entry| entry.value)
    }

    /// Stores a form of `bytes` bytes.
    pub fn insert_form(&self, key: K, form: F, bytes: u64) {
        self.part(&key).insert(key, CacheEntry::new(form, bytes));
    }

    /// Removes the forms whose key does not meet the condition.
    pub fn retain_forms(&self, keep: impl Fn(&K) -> bool) {
        self.cheap.retain(|key, _| keep(key));
        self.costly.retain(|key, _| keep(key));
    }

    /// Replaces a cached form, unless it was evicted or its part of the cache is locked.
    ///
    /// In a forked process a lock of the parent stays locked, so this neither waits nor fails.
    pub fn try_replace_form(&self, key: &K, form: F, bytes: u64) {
        let part = self.part(key);
        if part.try_contains_key(key) == Ok(true) {
            // A form that is not stored is made again.
            let _ = part.try_insert(key.clone(), CacheEntry::new(form, bytes));
        }
    }

    /// Returns a cached form, or makes and stores it. Concurrent callers wait for the first one.
    ///
    /// `make` returns the form and its bytes.
    ///
    /// # Errors
    /// The error of `make`.
    pub async fn form_or_make<E: Send>(
        &self,
        key: &K,
        make: impl Future<Output = Result<(F, u64), E>> + Send,
    ) -> Result<F, E> {
        let make = async { make.await.map(|(form, bytes)| CacheEntry::new(form, bytes)) };
        self.part(key).get_or_insert_async(key, make).await.map(|entry| entry.value)
    }

    /// Whether a cheap form of `bytes` bytes is worth its place: it was requested recently.
    ///
    /// Recently means that the cheap forms requested since then would still fit. If not, the request is recorded.
    pub fn admit(&self, name: impl Hash, bytes: u64) -> bool {
        self.admission.admit(std::hash::BuildHasher::hash_one(&self.hasher, name), bytes + OVERHEAD)
    }

    /// Number and size of the forms whose key meets the condition.
    pub fn usage(&self, of: impl Fn(&K) -> bool) -> ReadCacheUsage {
        let forms = self.cheap.iter().chain(self.costly.iter());
        forms.filter(|(key, _)| of(key)).fold(ReadCacheUsage::default(), |sum, (_, entry)| ReadCacheUsage {
            entries: sum.entries + 1,
            bytes: sum.bytes + entry.bytes,
        })
    }

    /// The byte budget.
    pub fn budget(&self) -> ReadCacheBudget {
        self.budget
    }

    /// Requires a new reading of the change counter, after a change of the archive by this process.
    pub fn require_reading(&self) {
        self.monitor.invalidate();
    }

    /// Removes all entries; required after a change of the archive by this process, which must be visible at once.
    pub fn invalidate_all(&self) {
        self.monitor.invalidate();
        self.selections.clear();
        self.cheap.clear();
        self.costly.clear();
    }

    fn part(&self, key: &K) -> &WeightedCache<K, F> {
        match key.cost() {
            FormCost::Cheap => &self.cheap,
            FormCost::Costly => &self.costly,
        }
    }
}

impl ReadCacheBudget {
    /// Size of all forms.
    pub fn forms(&self) -> u64 {
        self.cheap_forms + self.costly_forms
    }
}

fn cache<K: Eq + Hash, T: Clone>(
    bytes_max: u64,
    entry_bytes: u64,
    shard_bytes_min: u64,
) -> WeightedCache<K, T> {
    // The cache rounds up to a power of two shards, and the bytes of each shard up.
    let shards = 1 << (bytes_max / shard_bytes_min).clamp(1, SHARDS_MAX).ilog2();
    let mut options = OptionsBuilder::new();
    options
        .weight_capacity(bytes_max - bytes_max % shards)
        .estimated_items_capacity(usize::try_from(bytes_max / entry_bytes).unwrap_or(usize::MAX))
        .shards(usize::try_from(shards).unwrap_or(1));
    match options.build() {
        Ok(options) => Cache::with_options(
            options,
            EntryWeighter,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ),
        // Both capacities are set, so this is not reached.
        Err(_) => Cache::with_weighter(1, bytes_max, EntryWeighter),
    }
}

#[cfg(test)]
mod tests;
