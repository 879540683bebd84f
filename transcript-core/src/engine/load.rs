//! The engine's current load: for monitoring, and for the time after which a refused caller retries.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::Transcripts;

/// Current load of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Running fetches, each of a video and track selector.
    pub fetches: u64,
    /// Callers that wait for them, without those that pay for them.
    pub callers: u64,
    /// The load of each supplier, by name.
    pub suppliers: Vec<SupplierLoad>,
}

/// Load of a supplier, over all of its platforms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierLoad {
    /// Its name.
    pub supplier: String,
    /// Videos that it works on.
    pub active: u32,
    /// Requests that wait for a permit.
    pub queued: u32,
    /// Requests that were refused because too many waited, since the start.
    pub refused: u64,
}

impl Transcripts {
    /// The current load.
    pub fn load(&self) -> Load {
        let (fetches, callers) = self.inner.flights.count();
        Load { fetches, callers, suppliers: self.inner.suppliers.load() }
    }
}

/// Load counters that a supplier's platforms share.
#[derive(Debug, Default)]
pub(super) struct LoadCounts {
    active: Arc<AtomicU32>,
    queued: Arc<AtomicU32>,
    refused: AtomicU64,
    /// Moving mean of the duration of calls, in microseconds; 0 before the first call has ended.
    call_micros: AtomicU64,
}

/// Weight of one call in the moving mean: one in this many.
const CALL_WEIGHT: u64 = 8;

/// Counts one until it is dropped.
#[derive(Debug)]
pub(super) struct LoadGuard(Arc<AtomicU32>);

impl LoadCounts {
    pub(super) fn track_active(&self) -> LoadGuard {
        LoadGuard::begin(&self.active)
    }

    pub(super) fn track_queued(&self) -> LoadGuard {
        LoadGuard::begin(&self.queued)
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a call to the mean. Of concurrent ones one may be lost, which an estimate permits.
    pub(super) fn record_call(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let mean = match self.call_micros.load(Ordering::Relaxed) {
            0 => took,
            mean => mean - mean / CALL_WEIGHT + took / CALL_WEIGHT,
        };
        self.call_micros.store(mean.max(1), Ordering::Relaxed);
    }

    /// The mean duration of recent calls; `None` before the first has ended.
    pub(super) fn mean_call(&self) -> Option<Duration> {
        let micros = self.call_micros.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    pub(super) fn snapshot(&self, supplier: &str) -> SupplierLoad {
        SupplierLoad {
            supplier: supplier.to_owned(),
            active: self.active.load(Ordering::Relaxed),
            queued: self.queued.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

impl LoadGuard {
    fn begin(count: &Arc<AtomicU32>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_call_follows_recent_calls() {
        let counts = LoadCounts::default();
        assert_eq!(counts.mean_call(), None);
        counts.record_call(Duration::from_secs(8));
        assert_eq!(counts.mean_call(), Some(Duration::from_secs(8)));
        counts.record_call(Duration::from_secs(16));
        assert_eq!(counts.mean_call(), Some(Duration::from_secs(9)));
        for _ in 0..100 {
            counts.record_call(Duration::ZERO);
        }
        assert!(counts.mean_call().unwrap() < Duration::from_millis(1));
        counts.record_call(Duration::MAX);
        assert!(counts.mean_call().unwrap() > Duration::from_secs(1 << 30));
    }
}
