//! Requests, outcomes and records of the ledger. Amounts are whole credits or transcripts.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    ids::{GrantId, HoldId, WalletId},
    time::Timestamp,
};

/// Maximum of legs in a hold and of pools in a leg's terms.
const PARTS_MAX: usize = 8;
/// Maximum length of a bucket name, id or memo, in bytes.
const TEXT_MAX: usize = 256;
/// Largest amount or limit: sums of many of them fit an `i64` column.
const AMOUNT_MAX: u64 = 1_000_000_000_000;

/// Pool that a wallet spends from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// An allowance for one period, named after it: `day/2026-11-20`.
    Allowance {
        /// Name of the period. A new period has a new name.
        bucket: String,
        /// Maximum of spent and held amounts in the period.
        limit: u64,
    },
    /// Purchased credits. They do not expire.
    Purchased,
}

impl Pool {
    /// Whether both are the same pool of a wallet; an allowance's limit may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        self.bucket() == other.bucket()
    }

    /// Name of the allowance's bucket; `None` for purchased credits.
    pub fn bucket(&self) -> Option<&str> {
        match self {
            Self::Allowance { bucket, .. } => Some(bucket),
            Self::Purchased => None,
        }
    }
}

/// Pools and reset time of a wallet that apply to one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Pools, in the order in which they are spent.
    pub pools: Vec<Pool>,
    /// Time at which the next period's allowance starts; `None` if there is no period.
    pub resets_at: Option<Timestamp>,
}

/// One wallet's part of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// The wallet.
    pub wallet: WalletId,
    /// Terms of the wallet.
    pub terms: Terms,
    /// Amount to hold.
    pub amount: u64,
}

/// Request to hold an amount, or to spend it in one step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoldRequest {
    /// Caller's id of the hold, by which a repeat is recognised.
    pub id: HoldId,
    /// Legs. A refusal names the first leg that cannot be covered.
    pub legs: Vec<Leg>,
    /// Current time.
    pub now: Timestamp,
    /// Expiry of the hold unless it is extended or settled.
    ///
    /// A later one than [`LEASE_MAX`](crate::time::LEASE_MAX) after `now` does not last:
    /// [`Ledger::shorten_holds`](super::Ledger::shorten_holds) brings it forward, unless all amounts are 0. Longer work
    /// extends its hold.
    pub expires_at: Timestamp,
    /// Purpose, for statements: no key, no address, no user text.
    pub memo: String,
}

impl HoldRequest {
    /// Checks the bounds of the request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if there are no legs or more than 8, a wallet occurs twice, terms have no pool,
    /// more than 8 pools or one pool twice, an amount or limit exceeds 10^12, or a text exceeds 256 bytes.
    pub fn check(&self) -> Result<()> {
        check_text(self.id.as_str(), "hold id")?;
        if self.memo.len() > TEXT_MAX {
            return Err(Error::invalid("the memo is longer than 256 bytes"));
        }
        if self.legs.is_empty() || self.legs.len() > PARTS_MAX {
            return Err(Error::invalid("wrong number of legs in a hold; allowed: 1 to 8"));
        }
        for (index, leg) in self.legs.iter().enumerate() {
            check_text(leg.wallet.as_str(), "wallet id")?;
            check_amount(leg.amount)?;
            leg.terms.check()?;
            if self.legs[..index].iter().any(|earlier| earlier.wallet == leg.wallet) {
                return Err(Error::invalid("a hold contains the same wallet twice"));
            }
        }
        Ok(())
    }
}

impl Terms {
    /// Checks the bounds of the terms; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if there are no pools, more than 8 or one pool twice, a limit exceeds 10^12, or a
    /// bucket name is empty or exceeds 256 bytes.
    pub fn check(&self) -> Result<()> {
        if self.pools.is_empty() || self.pools.len() > PARTS_MAX {
            return Err(Error::invalid("wrong number of pools in terms; allowed: 1 to 8"));
        }
        for (index, pool) in self.pools.iter().enumerate() {
            if let Pool::Allowance { bucket, limit } = pool {
                check_text(bucket, "bucket")?;
                check_amount(*limit)?;
            }
            if self.pools[..index].iter().any(|earlier| earlier.is_same(pool)) {
                return Err(Error::invalid("terms contain the same pool twice"));
            }
        }
        Ok(())
    }
}

/// Balance of one pool of a wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolBalance {
    /// The pool.
    pub pool: Pool,
    /// Spent amount.
    pub spent: u64,
    /// Amount that is held now.
    pub held: u64,
    /// Granted amount minus revoked amount; 0 for an allowance.
    pub granted: u64,
}

impl PoolBalance {
    /// Returns the balance of an unused pool.
    pub fn unused(pool: Pool) -> Self {
        Self { pool, spent: 0, held: 0, granted: 0 }
    }

    /// Total amount: the limit, or the granted amount.
    pub fn total(&self) -> u64 {
        match self.pool {
            Pool::Allowance { limit, .. } => limit,
            Pool::Purchased => self.granted,
        }
    }

    /// Spent and held amount.
    pub fn used(&self) -> u64 {
        self.spent.saturating_add(self.held)
    }

    /// Amount that can be held now; 0 if the limit was lowered below the used amount.
    pub fn available(&self) -> u64 {
        self.total().saturating_sub(self.used())
    }
}

/// Balances of a wallet's pools, in the order of the terms of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// The wallet.
    pub wallet: WalletId,
    /// Its pools.
    pub pools: Vec<PoolBalance>,
}

impl Balance {
    /// Amount that can be held now, over all pools.
    pub fn available(&self) -> u64 {
        self.pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.available()))
    }
}

/// Balance of a wallet, and the purchased credits that it spent in a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodBalance {
    /// The balance.
    pub balance: Balance,
    /// Purchased credits spent since the start of the period.
    pub purchased_spent: u64,
}

/// State of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    /// The amounts are held until `expires_at` unless the hold is extended.
    Open {
        /// Expiry of the hold.
        expires_at: Timestamp,
    },
    /// The hold was settled.
    #[serde(rename = "closed")]
    Settled {
        /// Spent amount of each leg.
        spent: Vec<u64>,
    },
    /// The hold expired, and all amounts were returned.
    Expired,
}

/// Outcome of a hold request.
#[must_use = "the outcome says whether anything happened"]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    /// The amounts are held (or spent, for [`super::Ledger::spend`]).
    Held {
        /// Balances afterwards, one per leg.
        balances: Vec<Balance>,
    },
    /// The pools of a leg cannot cover its amount; nothing is held.
    #[serde(rename = "refused")]
    Insufficient {
        /// Index of the first such leg.
        leg: u32,
        /// Balance of that leg's wallet.
        balance: Balance,
    },
    /// The id was used before with the same body.
    #[serde(rename = "known")]
    Exists {
        /// State of that hold.
        state: HoldState,
        /// Current balances, one per leg.
        balances: Vec<Balance>,
    },
    /// The id was used before with another body.
    Conflict,
}

/// Request to settle a hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettleRequest {
    /// The hold.
    pub id: HoldId,
    /// Amount to spend of each leg; zero for all legs releases the hold.
    pub spent: Vec<u64>,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of settling a hold.
#[must_use = "the outcome says whether anything happened"]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettleOutcome {
    /// The hold is settled.
    Settled {
        /// Balances of the held pools, one per leg.
        balances: Vec<Balance>,
    },
    /// The hold had ended before.
    #[serde(rename = "known")]
    Exists {
        /// State of the hold.
        state: HoldState,
    },
    /// There is no such hold.
    #[serde(rename = "unknown")]
    HoldNotFound,
}

/// Request to add purchased credits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantRequest {
    /// Caller's id of the grant, by which a repeat is recognised.
    pub id: GrantId,
    /// The wallet.
    pub wallet: WalletId,
    /// Number of credits; at least 1.
    pub amount: u64,
    /// Current time.
    pub now: Timestamp,
    /// Purpose of the grant.
    pub memo: String,
}

impl GrantRequest {
    /// Checks the bounds of the request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the amount is 0 or exceeds 10^12, or a text exceeds 256 bytes.
    pub fn check(&self) -> Result<()> {
        check_text(self.wallet.as_str(), "wallet id")?;
        check_transfer(&self.id, self.amount, &self.memo)
    }
}

/// Request to revoke granted credits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RevokeRequest {
    /// Caller's id of the revocation, by which a repeat is recognised.
    pub id: GrantId,
    /// Grant whose credits are revoked.
    pub grant: GrantId,
    /// Number of credits; at least 1.
    pub amount: u64,
    /// Current time.
    pub now: Timestamp,
    /// Purpose of the revocation.
    pub memo: String,
}

impl RevokeRequest {
    /// Checks the bounds of the request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the amount is 0 or exceeds 10^12, or a text exceeds 256 bytes.
    pub fn check(&self) -> Result<()> {
        check_text(self.grant.as_str(), "grant id")?;
        check_transfer(&self.id, self.amount, &self.memo)
    }
}

/// Outcome of a grant.
#[must_use = "the outcome says whether anything happened"]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantOutcome {
    /// The credits were added.
    Granted {
        /// Purchased credits afterwards.
        balance: Balance,
    },
    /// The credits were added before under the same id.
    #[serde(rename = "known")]
    Exists,
    /// The id was used before with other values.
    Conflict,
}

/// Outcome of a revocation.
#[must_use = "the outcome says whether anything happened"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevokeOutcome {
    /// The credits were revoked.
    Revoked {
        /// Revoked credits.
        taken: u64,
        /// Requested credits that were not available.
        shortfall: u64,
    },
    /// The credits were revoked before under the same id.
    #[serde(rename = "known")]
    Exists {
        /// Credits revoked then.
        taken: u64,
        /// Requested credits that were not available.
        shortfall: u64,
    },
    /// There is no such grant.
    #[serde(rename = "unknown_grant")]
    GrantNotFound,
    /// The id was used before with other values.
    Conflict,
}

/// Kind of change that an entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// An amount was held.
    Held,
    /// A held amount was spent.
    Spent,
    /// An amount was held and spent in one step, as `Held` and `Spent` together.
    Charged,
    /// A held amount was returned when its hold was settled.
    Returned,
    /// A held amount was returned because its hold expired.
    Expired,
    /// Credits were added.
    Granted,
    /// Credits were revoked.
    Revoked {
        /// Requested credits that were not available.
        shortfall: u64,
    },
}

impl EntryKind {
    /// Whether the entry spends its amount.
    pub fn is_spent(self) -> bool {
        matches!(self, Self::Spent | Self::Charged)
    }
}

/// An immutable record of one change to a pool of a wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Ascending number; the entries of one wallet are numbered in the order of its changes.
    pub seq: u64,
    /// Time of the change.
    pub at: Timestamp,
    /// The wallet.
    pub wallet: WalletId,
    /// The pool.
    pub pool: Pool,
    /// Kind of change.
    pub kind: EntryKind,
    /// Changed amount. Changes of amount 0 have no entry, except a revocation with a shortfall.
    pub amount: u64,
    /// Id of the hold, grant or revocation.
    pub cause: String,
    /// Purpose of the operation.
    pub memo: String,
}

fn check_transfer(id: &GrantId, amount: u64, memo: &str) -> Result<()> {
    check_text(id.as_str(), "grant id")?;
    check_amount(amount)?;
    if amount == 0 {
        return Err(Error::invalid("the amount of a grant or revocation is 0; minimum: 1"));
    }
    if memo.len() > TEXT_MAX {
        return Err(Error::invalid("the memo is longer than 256 bytes"));
    }
    Ok(())
}

fn check_text(text: &str, what: &str) -> Result<()> {
    if text.is_empty() || text.len() > TEXT_MAX {
        return Err(Error::invalid(format!("the {what} is empty or longer than 256 bytes")));
    }
    Ok(())
}

fn check_amount(amount: u64) -> Result<()> {
    if amount > AMOUNT_MAX {
        return Err(Error::invalid("an amount or limit is above 1,000,000,000,000"));
    }
    Ok(())
}
