//! The storage ports behind the gate: every method of each, written out, so that none is missed.

mod archive;
mod directory;
mod ledger;
mod limiter;
mod orders;
mod outbox;
mod replies;

pub(crate) use archive::FaultyArchive;
pub(crate) use directory::FaultyDirectory;
pub(crate) use ledger::FaultyLedger;
pub(crate) use limiter::FaultyLimiter;
pub(crate) use orders::FaultyOrders;
pub(crate) use outbox::FaultyOutbox;
pub(crate) use replies::FaultyReplies;

/// What a call without a consequence for the oracle tells it.
fn nothing<O, T>(_: &O, _: &T) {}
