//! The storage ports behind the gate. A method of the archive or the ledger that is not written out is the store's,
//! without faults; a method of another port is the default one, which the store may override.

mod archive;
mod directory;
mod idempotency;
mod ledger;
mod limiter;
mod orders;
mod outbox;

pub(crate) use archive::FaultyArchive;
pub(crate) use directory::FaultyDirectory;
pub(crate) use idempotency::FaultyIdempotencyStore;
pub(crate) use ledger::FaultyLedger;
pub(crate) use limiter::FaultyLimiter;
pub(crate) use orders::FaultyOrders;
pub(crate) use outbox::FaultyOutbox;

/// Effect callback of calls that the oracle does not record.
fn nothing<O, T>(_: &O, _: &T) {}
