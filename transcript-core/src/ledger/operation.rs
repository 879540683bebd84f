//! Ledger operations as events for metrics.

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

impl LedgerOperationKind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Hold, Self::Spend, Self::Settle, Self::Release, Self::Expire, Self::Grant, Self::Revoke];

    /// Stable name for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Spend => "spend",
            Self::Settle => "settle",
            Self::Release => "release",
            Self::Expire => "expire",
            Self::Grant => "grant",
            Self::Revoke => "revoke",
        }
    }
}

impl LedgerOperationResult {
    /// All results.
    pub const ALL: [Self; 4] = [Self::Done, Self::Refused, Self::Duplicate, Self::Failed];

    /// Stable name for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Duplicate => "known",
            Self::Failed => "failed",
        }
    }
}
