//! Ledger operations as events for metrics.

use crate::names::names;

/// An operation of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerOperation {
    /// Kind of the operation.
    pub kind: LedgerOperationKind,
    /// Result of the operation.
    pub result: LedgerOperationResult,
    /// Moved amount of all legs; 0 if nothing was moved.
    pub amount: u64,
}

/// Kind of a ledger operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerOperationKind {
    /// [`super::Ledger::hold`]
    Hold,
    /// [`super::Ledger::spend`]
    Spend,
    /// [`super::Ledger::settle`] with an amount above 0.
    Settle,
    /// [`super::Ledger::settle`] with zero for all legs.
    Release,
    /// A hold that [`super::Ledger::expire`] ended. Its amount is unknown.
    Expire,
    /// [`super::Ledger::grant`]
    Grant,
    /// [`super::Ledger::revoke`]
    Revoke,
}

/// Result of a ledger operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerOperationResult {
    /// It was applied.
    Done,
    /// The balance did not cover it.
    Refused,
    /// It was applied before, or its id belongs to another operation: nothing was moved.
    Duplicate,
    /// The store failed; it is unknown whether the operation was applied.
    Failed,
}

names!(LedgerOperationKind {
    Hold = "hold",
    Spend = "spend",
    Settle = "settle",
    Release = "release",
    Expire = "expire",
    Grant = "grant",
    Revoke = "revoke",
});

names!(LedgerOperationResult {
    Done = "done",
    Refused = "refused",
    Duplicate = "known",
    Failed = "failed",
});
