//! The rows of the ledger and their stored names.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    ids::WalletId,
    ledger::{Entry, EntryKind, HoldState, Leg, Pool, PoolBalance, allocate::PoolShare},
    time::Timestamp,
};

/// One pool of a wallet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoolRow {
    /// The wallet.
    pub wallet: String,
    /// Name of the allowance's bucket; empty for purchased credits.
    pub bucket: String,
    /// The last known limit.
    pub cap: u64,
    /// Spent amount.
    pub spent: u64,
    /// Amount that is held now.
    pub held: u64,
    /// Granted amount minus revoked amount; 0 for an allowance.
    pub granted: u64,
    /// Whether a step changed the row since it was loaded.
    #[serde(skip)]
    pub touched: bool,
}

/// State of a hold in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldRowState {
    /// The amounts are held.
    Open,
    /// The hold was settled.
    Closed,
    /// The hold expired.
    Expired,
}

/// A hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoldRow {
    /// Id of the hold.
    pub id: String,
    /// Its state.
    pub state: HoldRowState,
    /// Its expiry, in milliseconds.
    pub expires_at: i64,
    /// Purpose of the hold.
    pub memo: String,
    /// Its legs.
    pub legs: Vec<LegRow>,
    /// Whether a step changed the row since it was loaded.
    #[serde(skip)]
    pub touched: bool,
}

/// One wallet's part of a hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LegRow {
    /// The wallet.
    pub wallet: String,
    /// Held amount.
    pub amount: u64,
    /// Spent amount, once the hold is settled.
    pub spent: u64,
    /// Shares of the pools that cover the amount.
    pub shares: Vec<ShareRow>,
}

/// Part of a leg that one pool covers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShareRow {
    /// Name of the allowance's bucket; empty for purchased credits.
    pub bucket: String,
    /// Limit of the allowance when the amount was held; 0 for purchased credits.
    pub cap: u64,
    /// Held amount; never 0.
    pub amount: u64,
}

/// A new entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EntryRow {
    /// Time of the change, in milliseconds.
    pub at: i64,
    /// The wallet.
    pub wallet: String,
    /// Name of the allowance's bucket; empty for purchased credits.
    pub bucket: String,
    /// The last known limit of the allowance; 0 for purchased credits.
    pub cap: u64,
    /// Kind of change.
    pub kind: EntryKind,
    /// Changed amount.
    pub amount: u64,
    /// Shortfall of a revocation; otherwise 0.
    pub shortfall: u64,
    /// Id of the hold, grant or revocation.
    pub cause: String,
    /// Purpose of the operation.
    pub memo: String,
}

/// Operation that a transfer records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferKind {
    /// Credits were added.
    Grant,
    /// Credits were revoked.
    Revocation,
}

/// A grant or a revocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferRow {
    /// Id of the grant or revocation.
    pub id: String,
    /// Its kind.
    pub kind: TransferKind,
    /// The wallet.
    pub wallet: String,
    /// Id of the grant whose credits are revoked; the own id of a grant.
    pub of_grant: String,
    /// Granted or requested amount.
    pub amount: u64,
    /// Revoked amount; of a grant, the sum over its revocations.
    pub taken: u64,
    /// Requested amount that was not available; of a grant, the sum over its revocations.
    pub shortfall: u64,
    /// Whether a step changed the row since it was loaded.
    #[serde(skip)]
    pub touched: bool,
}

/// Returns the bucket name of a pool in a row.
pub fn bucket_name(pool: &Pool) -> &str {
    pool.bucket().unwrap_or_default()
}

/// Returns the pool with this bucket name and limit.
pub fn pool_from_row(bucket: String, cap: u64) -> Pool {
    if bucket.is_empty() { Pool::Purchased } else { Pool::Allowance { bucket, limit: cap } }
}

/// Returns the limit of a pool in a row; 0 for purchased credits.
pub fn cap_of(pool: &Pool) -> u64 {
    match pool {
        Pool::Allowance { limit, .. } => *limit,
        Pool::Purchased => 0,
    }
}

impl PoolRow {
    /// Returns the row of an unused pool.
    pub fn fresh(wallet: &str, pool: &Pool) -> Self {
        let (wallet, bucket) = (wallet.to_owned(), bucket_name(pool).to_owned());
        Self { wallet, bucket, cap: cap_of(pool), spent: 0, held: 0, granted: 0, touched: false }
    }

    pub(super) fn is(&self, wallet: &str, bucket: &str) -> bool {
        self.wallet == wallet && self.bucket == bucket
    }

    /// Returns the balance under the last known limit.
    pub fn balance(&self) -> PoolBalance {
        let pool = pool_from_row(self.bucket.clone(), self.cap);
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
    pub(super) fn new(leg: &Leg, shares: Vec<PoolShare>, spent: u64) -> Self {
        let share = |share: PoolShare| ShareRow {
            bucket: bucket_name(&share.pool).to_owned(),
            cap: cap_of(&share.pool),
            amount: share.amount,
        };
        Self {
            wallet: leg.wallet.as_str().to_owned(),
            amount: leg.amount,
            spent,
            shares: shares.into_iter().map(share).collect(),
        }
    }

    pub(super) fn is_of(&self, leg: &Leg) -> bool {
        self.wallet == leg.wallet.as_str() && self.amount == leg.amount
    }

    pub(super) fn shares(&self) -> Vec<PoolShare> {
        let share = |row: &ShareRow| PoolShare {
            pool: pool_from_row(row.bucket.clone(), row.cap),
            amount: row.amount,
        };
        self.shares.iter().map(share).collect()
    }
}

impl HoldRow {
    /// Returns the state with its data.
    pub fn state(&self) -> HoldState {
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

impl HoldRowState {
    /// Returns the stored name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Expired => "expired",
        }
    }

    /// Returns the state with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Closed, Self::Expired].into_iter().find(|state| state.name() == name)
    }
}

impl TransferKind {
    /// Returns the stored name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Revocation => "revocation",
        }
    }

    /// Returns the kind with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Grant, Self::Revocation].into_iter().find(|kind| kind.name() == name)
    }
}

impl EntryRow {
    /// Returns the entry with this number.
    pub fn entry(&self, seq: u64) -> Entry {
        Entry {
            seq,
            at: Timestamp::from_millis(self.at),
            wallet: WalletId::new(self.wallet.as_str()),
            pool: pool_from_row(self.bucket.clone(), self.cap),
            kind: self.kind,
            amount: self.amount,
            cause: self.cause.clone(),
            memo: self.memo.clone(),
        }
    }
}

/// Returns the stored name of an entry kind.
pub fn kind_name(kind: EntryKind) -> &'static str {
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

/// Returns the entry kind with this name.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] if there is none.
pub fn kind_from_name(name: &str, shortfall: u64) -> Result<EntryKind> {
    match name {
        "held" => Ok(EntryKind::Held),
        "spent" => Ok(EntryKind::Spent),
        "charged" => Ok(EntryKind::Charged),
        "returned" => Ok(EntryKind::Returned),
        "expired" => Ok(EntryKind::Expired),
        "granted" => Ok(EntryKind::Granted),
        "revoked" => Ok(EntryKind::Revoked { shortfall }),
        _ => Err(Error::corrupt("a ledger entry has an unknown kind")),
    }
}
