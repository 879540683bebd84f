//! What goes into the ledger and comes out of it. Amounts are whole credits or transcripts.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    ids::{GrantId, HoldId, WalletId},
    time::Timestamp,
};

/// The most legs that a hold may have, and pools that a leg's terms may have.
const PARTS_MAX: usize = 8;
/// The longest name of a bucket, id or memo, in bytes.
const TEXT_MAX: usize = 256;
/// The largest amount or limit: sums of many of them fit an `i64` column.
const AMOUNT_MAX: u64 = 1_000_000_000_000;

/// Where a wallet's spending comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// An allowance for one period, named by it: `day/2026-11-20`.
    Allowance {
        /// The period's name. A new period is a new name.
        bucket: String,
        /// How much may be spent and held in it.
        limit: u64,
    },
    /// Credits that were bought. They do not expire.
    Purchased,
}

impl Pool {
    /// Whether both are the same pool of a wallet; an allowance's limit may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        self.bucket() == other.bucket()
    }

    /// The name of the allowance's bucket; none for purchased credits.
    pub fn bucket(&self) -> Option<&str> {
        match self {
            Self::Allowance { bucket, .. } => Some(bucket),
            Self::Purchased => None,
        }
    }
}

/// What a wallet may spend at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The pools, in the order in which they are spent.
    pub pools: Vec<Pool>,
    /// When the allowance is replaced by a fresh one; none when it never is.
    pub resets_at: Option<Timestamp>,
}

/// One wallet's part in a hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leg {
    /// The wallet.
    pub wallet: WalletId,
    /// What it may spend.
    pub terms: Terms,
    /// How much is held.
    pub amount: u64,
}

/// A request to hold, or to spend at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoldRequest {
    /// The caller's id, by which a repeat is recognised.
    pub id: HoldId,
    /// The legs. The first one that cannot be covered is the one that is named in a refusal.
    pub legs: Vec<Leg>,
    /// The present moment.
    pub now: Timestamp,
    /// When the hold expires unless it is extended or settled.
    pub expires_at: Timestamp,
    /// What it is for, for statements: no key, no address, no text of a person.
    pub memo: String,
}

impl HoldRequest {
    /// Checks the bounds of a request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: no leg or more than 8, a wallet named twice, terms with no pool,
    /// more than 8 or one twice, an amount or limit above 10^12, a text longer than 256 bytes.
    pub fn check(&self) -> Result<()> {
        check_text(self.id.as_str(), "hold id")?;
        if self.memo.len() > TEXT_MAX {
            return Err(Error::invalid("a memo has at most 256 bytes"));
        }
        if self.legs.is_empty() || self.legs.len() > PARTS_MAX {
            return Err(Error::invalid("a hold has from 1 to 8 legs"));
        }
        for (place, leg) in self.legs.iter().enumerate() {
            check_text(leg.wallet.as_str(), "wallet id")?;
            check_amount(leg.amount)?;
            leg.terms.check()?;
            if self.legs[..place].iter().any(|earlier| earlier.wallet == leg.wallet) {
                return Err(Error::invalid("a hold names each wallet once"));
            }
        }
        Ok(())
    }
}

impl Terms {
    /// Checks the bounds of terms; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: no pool, more than 8 or one twice, a limit above 10^12, a bucket's
    /// name that is empty or longer than 256 bytes.
    pub fn check(&self) -> Result<()> {
        if self.pools.is_empty() || self.pools.len() > PARTS_MAX {
            return Err(Error::invalid("terms have from 1 to 8 pools"));
        }
        for (place, pool) in self.pools.iter().enumerate() {
            if let Pool::Allowance { bucket, limit } = pool {
                check_text(bucket, "bucket")?;
                check_amount(*limit)?;
            }
            if self.pools[..place].iter().any(|earlier| earlier.is_same(pool)) {
                return Err(Error::invalid("terms name each pool once"));
            }
        }
        Ok(())
    }
}

/// One pool of a wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolBalance {
    /// The pool.
    pub pool: Pool,
    /// How much was spent.
    pub spent: u64,
    /// How much is held now.
    pub held: u64,
    /// How much was granted and not taken back; 0 for an allowance.
    pub granted: u64,
}

impl PoolBalance {
    /// A pool of which nothing was used yet.
    pub fn fresh(pool: Pool) -> Self {
        Self { pool, spent: 0, held: 0, granted: 0 }
    }

    /// How much there is in all: the limit, or what was granted.
    pub fn total(&self) -> u64 {
        match self.pool {
            Pool::Allowance { limit, .. } => limit,
            Pool::Purchased => self.granted,
        }
    }

    /// How much is spent or held.
    pub fn used(&self) -> u64 {
        self.spent.saturating_add(self.held)
    }

    /// How much can be held now; zero when a limit was lowered below what is used.
    pub fn available(&self) -> u64 {
        self.total().saturating_sub(self.used())
    }
}

/// A wallet's pools, in the order of the terms that were asked with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// The wallet.
    pub wallet: WalletId,
    /// Its pools.
    pub pools: Vec<PoolBalance>,
}

impl Balance {
    /// How much can be held now, over all pools.
    pub fn available(&self) -> u64 {
        self.pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.available()))
    }
}

/// A wallet's balance, and what of it was spent lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceSince {
    /// The balance.
    pub balance: Balance,
    /// How much of the purchased credits was spent since the moment that was asked with.
    pub purchased_spent: u64,
}

/// Where a hold stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    /// It holds what it was asked to, until this moment unless it is extended.
    Open {
        /// When it expires.
        expires_at: Timestamp,
    },
    /// It was settled with these figures, one per leg.
    Closed {
        /// What was spent of each leg.
        spent: Vec<u64>,
    },
    /// It expired: all was returned.
    Expired,
}

/// What came of a request to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    /// It is held (or spent, for [`super::Ledger::spend`]).
    Held {
        /// The balances afterwards, one per leg.
        balances: Vec<Balance>,
    },
    /// A leg cannot be covered: nothing is held.
    Refused {
        /// The place of the first leg, in order, that is too small.
        leg: u32,
        /// That leg's balance.
        balance: Balance,
    },
    /// The id was used before with the same body.
    Known {
        /// Where that hold stands.
        state: HoldState,
        /// The present balances, one per leg.
        balances: Vec<Balance>,
    },
    /// The id was used before with another body.
    Conflict,
}

/// A request to end a hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settle {
    /// The hold.
    pub id: HoldId,
    /// What is spent of each leg; all zero releases the hold.
    pub spent: Vec<u64>,
    /// The present moment.
    pub now: Timestamp,
}

/// What came of ending a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettleOutcome {
    /// It is settled.
    Settled {
        /// The balances of the pools that were held, one per leg.
        balances: Vec<Balance>,
    },
    /// It had ended before.
    Known {
        /// How it had ended.
        state: HoldState,
    },
    /// There is no such hold.
    Unknown,
}

/// Purchased credits to add.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// The caller's id, by which a repeat is recognised.
    pub id: GrantId,
    /// The wallet.
    pub wallet: WalletId,
    /// How many; at least 1.
    pub amount: u64,
    /// The present moment.
    pub now: Timestamp,
    /// What it is for.
    pub memo: String,
}

impl Grant {
    /// Checks the bounds of a request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: an amount of 0 or above 10^12, a text longer than 256 bytes.
    pub fn check(&self) -> Result<()> {
        check_text(self.wallet.as_str(), "wallet id")?;
        check_transfer(&self.id, self.amount, &self.memo)
    }
}

/// Purchased credits to take back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Revoke {
    /// The caller's id, by which a repeat is recognised.
    pub id: GrantId,
    /// The grant that they came from.
    pub grant: GrantId,
    /// How many; at least 1.
    pub amount: u64,
    /// The present moment.
    pub now: Timestamp,
    /// What it is for.
    pub memo: String,
}

impl Revoke {
    /// Checks the bounds of a request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: an amount of 0 or above 10^12, a text longer than 256 bytes.
    pub fn check(&self) -> Result<()> {
        check_text(self.grant.as_str(), "grant id")?;
        check_transfer(&self.id, self.amount, &self.memo)
    }
}

/// What came of a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantOutcome {
    /// The credits were added.
    Granted {
        /// The purchased credits afterwards.
        balance: Balance,
    },
    /// They were added before, under the same id.
    Known,
    /// The id was used before for something else.
    Conflict,
}

/// What came of taking credits back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevokeOutcome {
    /// Done now.
    Revoked {
        /// How many were taken.
        taken: u64,
        /// How many were wanted and not there.
        shortfall: u64,
    },
    /// Done before, under the same id.
    Known {
        /// How many were taken then.
        taken: u64,
        /// How many were wanted and not there.
        shortfall: u64,
    },
    /// There is no such grant.
    UnknownGrant,
    /// The id was used before for something else.
    Conflict,
}

/// Which step an entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// An amount was held.
    Held,
    /// A held amount was spent.
    Spent,
    /// An amount was held and spent in one step: what `Held` and `Spent` say together.
    Charged,
    /// A held amount was returned by a settlement.
    Returned,
    /// A held amount was returned because its hold expired.
    Expired,
    /// Credits were added.
    Granted,
    /// Credits were taken back.
    Revoked {
        /// How many more were wanted and not there.
        shortfall: u64,
    },
}

impl EntryKind {
    /// Whether the amount was spent in this step.
    pub fn is_spent(self) -> bool {
        matches!(self, Self::Spent | Self::Charged)
    }
}

/// One step in the life of a wallet. Entries are never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The entry's number; numbers grow, and those of one wallet are in the order in which it changed.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The wallet.
    pub wallet: WalletId,
    /// The pool.
    pub pool: Pool,
    /// Which step it was.
    pub kind: EntryKind,
    /// How much. Steps of amount 0 are left out, except a revocation with a shortfall.
    pub amount: u64,
    /// The id of the hold, grant or revocation.
    pub cause: String,
    /// What it was for.
    pub memo: String,
}

fn check_transfer(id: &GrantId, amount: u64, memo: &str) -> Result<()> {
    check_text(id.as_str(), "grant id")?;
    check_amount(amount)?;
    if amount == 0 {
        return Err(Error::invalid("the amount of a grant or revocation is at least 1"));
    }
    if memo.len() > TEXT_MAX {
        return Err(Error::invalid("a memo has at most 256 bytes"));
    }
    Ok(())
}

fn check_text(text: &str, what: &str) -> Result<()> {
    if text.is_empty() || text.len() > TEXT_MAX {
        return Err(Error::invalid(format!("a {what} has from 1 to 256 bytes")));
    }
    Ok(())
}

fn check_amount(amount: u64) -> Result<()> {
    if amount > AMOUNT_MAX {
        return Err(Error::invalid("an amount is at most 1,000,000,000,000"));
    }
    Ok(())
}
