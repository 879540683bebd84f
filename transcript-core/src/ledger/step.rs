//! What the ledger did, in a word and a figure: for whoever counts, not for whoever is charged.

/// A step that the ledger was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which one.
    pub kind: StepKind,
    /// What came of it.
    pub result: StepResult,
    /// How much it moved, of all legs together; 0 where nothing was.
    pub amount: u64,
}

/// The kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// [`super::Ledger::hold`]
    Hold,
    /// [`super::Ledger::spend`]
    Spend,
    /// [`super::Ledger::settle`] with a figure above 0.
    Settle,
    /// [`super::Ledger::settle`] with nothing but 0: all is returned.
    Release,
    /// A hold that [`super::Ledger::expire`] ended. The amounts are not known.
    Expire,
    /// [`super::Ledger::grant`]
    Grant,
    /// [`super::Ledger::revoke`]
    Revoke,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// It was taken.
    Done,
    /// There was not enough to take it.
    Refused,
    /// It had been taken before, or its id was somebody else's: nothing was moved.
    Known,
    /// The store failed. Whether it was taken is not known.
    Failed,
}

impl StepKind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Hold, Self::Spend, Self::Settle, Self::Release, Self::Expire, Self::Grant, Self::Revoke];

    /// A lasting name, for metrics.
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

impl StepResult {
    /// Every result.
    pub const ALL: [Self; 4] = [Self::Done, Self::Refused, Self::Known, Self::Failed];

    /// A lasting name, for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Known => "known",
            Self::Failed => "failed",
        }
    }
}
