//! In-memory implementations of the storage ports.
//!
//! For experiments and tests: simple rather than fast. Ledger and rate limits are maps of rows over the rules that all
//! stores share. Data ends with the process. Each type is a handle: a clone is the same store. Each method is one
//! critical section of one lock, which is never held across an await.
//!
//! ```
//! use transcript_core::{archive::Archive, memory::MemoryArchive};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let archive = MemoryArchive::default();
//! assert_eq!(archive.stats().await?.transcripts, 0);
//! # Ok::<(), transcript_core::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admin;
mod archive;
mod directory;
mod eviction;
#[cfg(test)]
mod eviction_tests;
#[cfg(feature = "accounts")]
mod idempotency;
#[cfg(feature = "accounts")]
mod jobs;
mod ledger;
mod limits;
#[cfg(feature = "accounts")]
mod orders;
#[cfg(feature = "accounts")]
mod outbox;
#[cfg(feature = "search")]
mod search_index;
mod secrets;
#[cfg(feature = "accounts")]
mod sessions;
#[cfg(feature = "accounts")]
mod webhooks;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use admin::MemoryAdminStore;
pub use archive::MemoryArchive;
pub use directory::MemoryDirectory;
#[cfg(feature = "accounts")]
pub use idempotency::MemoryIdempotencyStore;
#[cfg(feature = "accounts")]
pub use jobs::MemoryJobs;
pub use ledger::MemoryLedger;
pub use limits::MemoryRateLimiter;
#[cfg(feature = "accounts")]
pub use orders::MemoryOrders;
#[cfg(feature = "accounts")]
pub use outbox::MemoryOutbox;
#[cfg(feature = "search")]
pub use search_index::MemorySearchIndex;
pub use secrets::MemorySecrets;
#[cfg(feature = "accounts")]
pub use sessions::MemorySessions;

/// State that the clones of a handle share. Its `Debug` output is empty because it contains secrets.
#[derive(Default)]
struct SharedState<T>(Arc<Mutex<T>>);

impl<T> SharedState<T> {
    /// The state, for one critical section.
    fn lock(&self) -> MutexGuard<'_, T> {
        // No method panics with half-changed state, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for SharedState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl<T> Clone for SharedState<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(all(test, feature = "testing"))]
mod charges_conformance {
    use super::*;
    use crate::accounts::SequentialCharges;

    crate::charges_conformance!(Arc::new(SequentialCharges {
        directory: Arc::new(MemoryDirectory::default()),
        limiter: Arc::new(MemoryRateLimiter::default()),
        ledger: Arc::new(MemoryLedger::default()),
    }));
}
