//! In-memory implementations of the storage ports.
//!
//! They are for trying things out, for tests, and as the oracle that simulations compare other stores
//! with: so they are simple rather than fast, and exact. Nothing outlives the process. Each is a handle:
//! a clone is the same store. Each method is one critical section of one lock, which is never held
//! across an await.
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

mod archive;
mod bound;
#[cfg(test)]
mod bound_tests;
mod directory;
mod ledger;
mod limits;
mod orders;
mod outbox;
mod replies;
mod secrets;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use archive::MemoryArchive;
pub use directory::MemoryDirectory;
pub use ledger::MemoryLedger;
pub use limits::MemoryRateLimiter;
pub use orders::MemoryOrders;
pub use outbox::MemoryOutbox;
pub use replies::MemoryReplies;
pub use secrets::MemorySecrets;

use crate::{
    error::{Error, Result},
    ids::Cursor,
    page::Page,
};

/// State that the clones of a handle share. It prints nothing of what it holds: secrets are in it.
#[derive(Default)]
struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    /// The state, for one critical section.
    fn lock(&self) -> MutexGuard<'_, T> {
        // No method leaves its state half changed where it could panic, so poison means nothing here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// The next page of what is left: at most `size` items, and a cursor when there are more.
fn page_of<T>(rest: impl Iterator<Item = T>, size: usize, cursor: impl Fn(&T) -> String) -> Page<T> {
    let mut items: Vec<T> = rest.take(size + 1).collect();
    let more = items.len() > size;
    items.truncate(size);
    let next = items.last().filter(|_| more).map(|last| Cursor::new(cursor(last)));
    Page { items, next }
}

/// The number in a cursor of a list that only grows: how many items came before; 0 on the first page.
fn numbered(after: Option<&Cursor>) -> Result<u64> {
    after.map_or(Ok(0), |cursor| cursor.as_str().parse().map_err(|_| no_cursor()))
}

#[cold]
fn no_cursor() -> Error {
    Error::invalid("this is no cursor of this store")
}
