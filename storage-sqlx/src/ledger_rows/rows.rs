//! The rows of the ledger and their stored names.

use serde::{Deserialize, Serialize};
use transcript_core::{
    Result, Timestamp,
    ledger::{EntryKind, HoldState, Leg, Pool, PoolBalance, allocate::PoolShare},
};

use crate::error::corrupt;

/// One pool of a wallet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PoolRow {
    pub(crate) wallet: String,
    /// Name of the allowance's bucket; empty for purchased credits.
    pub(crate) bucket: String,
    /// The last known limit.
    pub(crate) cap: u64,
    pub(crate) spent: u64,
    pub(crate) held: u64,
    pub(crate) granted: u64,
    #[serde(skip)]
    pub(crate) touched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HoldRowState {
    Open,
    Closed,
    Expired,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HoldRow {
    pub(crate) id: String,
    pub(crate) state: HoldRowState,
    pub(crate) expires_at: i64,
    pub(crate) memo: String,
    pub(crate) legs: Vec<LegRow>,
    #[serde(skip)]
    pub(crate) touched: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LegRow {
    pub(crate) wallet: String,
    pub(crate) amount: u64,
    /// The amount spent, once the hold is settled.
    pub(crate) spent: u64,
    pub(crate) shares: Vec<ShareRow>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ShareRow {
    pub(crate) bucket: String,
    pub(crate) cap: u64,
    pub(crate) amount: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct EntryRow {
    pub(crate) at: i64,
    pub(crate) wallet: String,
    pub(crate) bucket: String,
    pub(crate) cap: u64,
    pub(crate) kind: &'static str,
    pub(crate) amount: u64,
    pub(crate) shortfall: u64,
    pub(crate) cause: String,
    pub(crate) memo: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransferKind {
    Grant,
    Revocation,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TransferRow {
    pub(crate) id: String,
    pub(crate) kind: TransferKind,
    pub(crate) wallet: String,
    pub(crate) of_grant: String,
    pub(crate) amount: u64,
    pub(crate) taken: u64,
    pub(crate) shortfall: u64,
    #[serde(skip)]
    pub(crate) touched: bool,
}

/// The bucket name of a pool in a row.
pub(crate) fn bucket_name(pool: &Pool) -> &str {
    pool.bucket().unwrap_or_default()
}

/// The pool with this bucket name and limit.
pub(crate) fn pool_of(bucket: String, cap: u64) -> Pool {
    if bucket.is_empty() { Pool::Purchased } else { Pool::Allowance { bucket, limit: cap } }
}

pub(crate) fn cap_of(pool: &Pool) -> u64 {
    match pool {
        Pool::Allowance { limit, .. } => *limit,
        Pool::Purchased => 0,
    }
}

impl PoolRow {
    pub(super) fn fresh(wallet: &str, pool: &Pool) -> Self {
        let (wallet, bucket) = (wallet.to_owned(), bucket_name(pool).to_owned());
        Self { wallet, bucket, cap: cap_of(pool), spent: 0, held: 0, granted: 0, touched: false }
    }

    pub(super) fn is(&self, wallet: &str, bucket: &str) -> bool {
        self.wallet == wallet && self.bucket == bucket
    }

    /// The balance under the last known limit.
    pub(crate) fn balance(&self) -> PoolBalance {
        let pool = pool_of(self.bucket.clone(), self.cap);
        PoolBalance { pool, spent: self.spent, held: self.held, granted: self.granted }
    }

    /// Applies an entry. `None` if the row has less than the entry subtracts.
    pub(super) fn apply(&mut self, kind: EntryKind, amount: u64) -> Option<()> {
        match kind {
            EntryKind::Held => self.held = self.held.checked_add(amount)?,
            EntryKind::Spent => {
                self.held = self.held.checked_sub(amount)?;
                self.spent = self.spent.checked_add(amount)?;
            }
            EntryKind::Charged => self.spent = self.spent.checked_add(amount)?,
            EntryKind::Returned | EntryKind::Expired => self.held = self.held.checked_sub(amount)?,
            EntryKind::Granted => self.granted = self.granted.checked_add(amount)?,
            EntryKind::Revoked { .. } => self.granted = self.granted.checked_sub(amount)?,
        }
        Some(())
    }
}

impl LegRow {
    pub(super) fn is_of(&self, leg: &Leg) -> bool {
        self.wallet == leg.wallet.as_str() && self.amount == leg.amount
    }

    pub(super) fn shares(&self) -> Vec<PoolShare> {
        let share =
            |row: &ShareRow| PoolShare { pool: pool_of(row.bucket.clone(), row.cap), amount: row.amount };
        self.shares.iter().map(share).collect()
    }
}

impl HoldRow {
    pub(crate) fn state(&self) -> HoldState {
        match self.state {
            HoldRowState::Open => HoldState::Open { expires_at: Timestamp::from_millis(self.expires_at) },
            HoldRowState::Closed => {
                HoldState::Settled { spent: self.legs.iter().map(|leg| leg.spent).collect() }
            }
            HoldRowState::Expired => HoldState::Expired,
        }
    }

    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == HoldRowState::Open && self.expires_at <= now.as_millis()
    }
}

pub(super) fn leg_row(leg: &Leg, shares: Vec<PoolShare>, spent: u64) -> LegRow {
    let share = |share: PoolShare| ShareRow {
        bucket: bucket_name(&share.pool).to_owned(),
        cap: cap_of(&share.pool),
        amount: share.amount,
    };
    LegRow {
        wallet: leg.wallet.as_str().to_owned(),
        amount: leg.amount,
        spent,
        shares: shares.into_iter().map(share).collect(),
    }
}

impl HoldRowState {
    /// The stored name.
    #[cfg(feature = "postgres")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Expired => "expired",
        }
    }

    /// The state with this name.
    #[cfg(feature = "postgres")]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Closed, Self::Expired].into_iter().find(|state| state.name() == name)
    }
}

impl TransferKind {
    /// The stored name.
    #[cfg(feature = "postgres")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Revocation => "revocation",
        }
    }
}

/// The stored name of an entry kind.
pub(super) fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Held => "held",
        EntryKind::Spent => "spent",
        EntryKind::Charged => "charged",
        EntryKind::Returned => "returned",
        EntryKind::Expired => "expired",
        EntryKind::Granted => "granted",
        EntryKind::Revoked { .. } => "revoked",
    }
}

/// The entry kind with this name.
pub(crate) fn kind_of(name: &str, shortfall: u64) -> Result<EntryKind> {
    match name {
        "held" => Ok(EntryKind::Held),
        "spent" => Ok(EntryKind::Spent),
        "charged" => Ok(EntryKind::Charged),
        "returned" => Ok(EntryKind::Returned),
        "expired" => Ok(EntryKind::Expired),
        "granted" => Ok(EntryKind::Granted),
        "revoked" => Ok(EntryKind::Revoked { shortfall }),
        _ => Err(corrupt("a ledger entry has an unknown kind")),
    }
}
