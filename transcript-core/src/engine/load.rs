//! How much is under way: what an operator watches, and nothing is decided by.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use super::Transcripts;

/// How much is under way in an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many fetches are under way, each of a video and wish.
    pub fetches: u64,
    /// How many callers wait for them in line, beside those for whose payment they are made.
    pub callers: u64,
    /// Each supplier, by name.
    pub suppliers: Vec<SupplierLoad>,
}

/// How much there is for a supplier to do, of all of its platforms together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierLoad {
    /// Its name.
    pub supplier: String,
    /// With how many videos it works.
    pub at_work: u32,
    /// How many wait for a place.
    pub in_line: u32,
}

impl Transcripts {
    /// How much is under way at this moment.
    pub fn load(&self) -> Load {
        let (fetches, callers) = self.inner.errands.count();
        Load { fetches, callers, suppliers: self.inner.suppliers.load() }
    }
}

/// What a supplier's platforms have in common to count.
#[derive(Debug, Default)]
pub(super) struct Counts {
    at_work: Arc<AtomicU32>,
    in_line: Arc<AtomicU32>,
}

/// One that is counted for as long as it is kept.
#[derive(Debug)]
pub(super) struct Counted(Arc<AtomicU32>);

impl Counts {
    pub(super) fn work(&self) -> Counted {
        Counted::begin(&self.at_work)
    }

    pub(super) fn wait(&self) -> Counted {
        Counted::begin(&self.in_line)
    }

    pub(super) fn of(&self, supplier: &str) -> SupplierLoad {
        SupplierLoad {
            supplier: supplier.to_owned(),
            at_work: self.at_work.load(Ordering::Relaxed),
            in_line: self.in_line.load(Ordering::Relaxed),
        }
    }
}

impl Counted {
    fn begin(count: &Arc<AtomicU32>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
