//! The engine's current load: for monitoring only, no decision depends on it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
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
}

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
