//! Counts requests of keys in memory, checks quotas, and adds the counts to the directory in batches.
//!
//! A count is the stored one, which the read of the key returns, and the requests since then that are not stored yet.
//! Several servers on one database know of each other's requests only after they are stored.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    directory::{Directory, KeyAccess, KeyRequests, LookupKey, RequestCounts},
    error::Result,
    ids::KeyId,
    retry::with_timeout,
    time::Timestamp,
};

/// Most keys in memory, about 300 bytes each. A further one makes its caller store the counts first.
const KEYS_MAX: usize = 16_384;
/// Keys per store call.
const BATCH: usize = 500;

/// Outcome of counting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountOutcome {
    /// The request is counted.
    Counted,
    /// The quota is used up: the request is not counted.
    Exhausted {
        /// Time until the quota renews.
        retry_after: Duration,
    },
}

/// The requests of keys since they were last stored. A clone is the same counter.
#[derive(Clone, Debug)]
pub(crate) struct RequestCounter {
    directory: Arc<dyn Directory>,
    store_timeout: Duration,
    keys: Arc<Mutex<HashMap<KeyId, KeyCounter>>>,
    /// One flush at a time, so that each key is in one store call at most.
    flush: Arc<tokio::sync::Mutex<()>>,
    keys_max: usize,
}

/// The requests of one key.
#[derive(Debug, Default)]
struct KeyCounter {
    /// The newest counts that are known to be stored.
    stored: RequestCounts,
    /// Requests that a running store call adds.
    storing: RequestCounts,
    /// Later requests.
    pending: RequestCounts,
    /// Whether nothing was pending at the last flush.
    is_idle: bool,
}

impl KeyCounter {
    /// All requests, if the directory returned `read`, which may or may not contain those that are being stored.
    fn all(&self, read: &RequestCounts) -> RequestCounts {
        self.stored.plus(&self.storing).newest(read).plus(&self.pending)
    }
}

/// The outcome if these requests use up the key's quota.
fn exhausted(access: &KeyAccess, requests: &RequestCounts, now: Timestamp) -> Option<CountOutcome> {
    let quota = access.quota.as_ref()?;
    let is_exhausted = requests.within(quota.period, now) >= quota.max;
    is_exhausted.then(|| CountOutcome::Exhausted { retry_after: quota.period.end(now).since(now) })
}

impl RequestCounter {
    pub(crate) fn new(directory: Arc<dyn Directory>, store_timeout: Duration) -> Self {
        let (keys, flush) = (Arc::default(), Arc::default());
        Self { directory, store_timeout, keys, flush, keys_max: KEYS_MAX }
    }

    /// Counts a request of a key that was just read, unless its quota is used up.
    ///
    /// # Errors
    /// Those of the directory, if too many keys wait for a flush.
    pub(super) async fn count(&self, key: &LookupKey, now: Timestamp) -> Result<CountOutcome> {
        let (id, access) = (&key.key.id, &key.access);
        if let Some(outcome) = self.try_count(id, access, now) {
            return Ok(outcome);
        }
        self.flush().await?;
        self.lock().retain(|_, counter| !counter.pending.is_empty() || !counter.storing.is_empty());
        // Other callers may have filled the room again: then the request passes uncounted, within the stored counts.
        let uncounted = || exhausted(access, &access.requests, now).unwrap_or(CountOutcome::Counted);
        Ok(self.try_count(id, access, now).unwrap_or_else(uncounted))
    }

    /// Counts a request of a key without a quota, for the time of its last use.
    ///
    /// Without room it is not counted: the last use of a key is no reason to wait for a store.
    #[cfg(feature = "accounts")]
    pub(crate) fn count_use(&self, key: &KeyId, now: Timestamp) {
        let _ = self.try_count(key, &KeyAccess::default(), now);
    }

    /// Counts a request without waiting; `None` if there is no room for its key.
    fn try_count(&self, key: &KeyId, access: &KeyAccess, now: Timestamp) -> Option<CountOutcome> {
        let mut keys = self.lock();
        let has_room = keys.len() < self.keys_max;
        let counter = match keys.entry(key.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) if has_room => entry.insert(KeyCounter::default()),
            Entry::Vacant(_) => return None,
        };
        let read = &access.requests;
        if let Some(exhausted) = exhausted(access, &counter.all(read), now) {
            return Some(exhausted);
        }
        if counter.storing.is_empty() {
            counter.stored = counter.stored.newest(read);
        }
        counter.pending = counter.pending.plus(&RequestCounts::one(now));
        counter.is_idle = false;
        Some(CountOutcome::Counted)
    }

    /// Adds all counts to the directory. Counts that cannot be stored stay for the next call.
    ///
    /// # Errors
    /// Those of the directory.
    ///
    /// # Cancellation
    /// Requests of a store call that is dropped midway are counted again by the next flush.
    pub(crate) async fn flush(&self) -> Result<()> {
        let _one = self.flush.lock().await;
        for keys in self.begin_flush().chunks(BATCH) {
            let batch = self.begin_storing(keys);
            let stored = with_timeout(self.store_timeout, self.directory.add_key_requests(batch)).await;
            self.end_storing(keys, stored)?;
        }
        Ok(())
    }

    /// Returns the keys with pending requests, and removes keys without any since the flush before the last one.
    ///
    /// A key that was stored just now stays: a running request may have read its row before.
    fn begin_flush(&self) -> Vec<KeyId> {
        let mut keys = self.lock();
        keys.retain(|_, counter| {
            // Left by a dropped flush.
            let storing = std::mem::take(&mut counter.storing);
            counter.pending = storing.plus(&counter.pending);
            let is_unused = counter.pending.is_empty();
            let keep = !(is_unused && counter.is_idle);
            counter.is_idle = is_unused;
            keep
        });
        keys.iter().filter(|(_, counter)| !counter.is_idle).map(|(key, _)| key.clone()).collect()
    }

    /// Marks the pending requests of these keys as being stored, and returns them.
    fn begin_storing(&self, names: &[KeyId]) -> Vec<KeyRequests> {
        let mut keys = self.lock();
        let mut batch = Vec::with_capacity(names.len());
        for key in names {
            if let Some(counter) = keys.get_mut(key) {
                counter.storing = std::mem::take(&mut counter.pending);
                batch.push(KeyRequests { key: key.clone(), counts: counter.storing.clone() });
            }
        }
        batch
    }

    /// Records the stored counts; after an error the requests are pending again.
    fn end_storing(&self, names: &[KeyId], stored: Result<Vec<KeyRequests>>) -> Result<()> {
        let mut keys = self.lock();
        for requests in stored.as_ref().into_iter().flatten() {
            if let Some(counter) = keys.get_mut(&requests.key) {
                counter.stored = counter.stored.newest(&requests.counts);
            }
        }
        for key in names {
            let Some(counter) = keys.get_mut(key) else { continue };
            let storing = std::mem::take(&mut counter.storing);
            if stored.is_err() {
                counter.pending = storing.plus(&counter.pending);
            }
        }
        stored.map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, KeyCounter>> {
        // Every change leaves the map complete.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
