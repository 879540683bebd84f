//! Ledger of the app.

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{Cursor, GrantId, HoldId, WalletId},
    ledger::{
        Balance, Entry, EntryKind, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        Leg, PeriodBalance, Pool, PoolBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest,
        Terms,
    },
};

use super::ForeignStore;
use crate::error::VerbatimError;

/// Allowance of a period, or purchased credits.
#[uniffi::remote(Enum)]
pub enum Pool {
    /// An allowance.
    Allowance {
        /// Name of the period, such as `day/2026-11-20`: each period has its own bucket.
        bucket: String,
        /// Limit of the period.
        limit: u64,
    },
    /// Purchased or granted credits.
    Purchased,
}

/// Pools of a wallet, in the order of spending.
#[uniffi::remote(Record)]
pub struct Terms {
    /// The pools.
    pub pools: Vec<Pool>,
    /// Time at which the allowance resets.
    pub resets_at: Option<Timestamp>,
}

/// One wallet's part of a hold.
#[uniffi::remote(Record)]
pub struct Leg {
    /// The wallet. An unknown wallet is empty.
    pub wallet: WalletId,
    /// Terms of the wallet.
    pub terms: Terms,
    /// Amount to hold.
    pub amount: u64,
}

/// Request to reserve an amount: all legs or none.
#[uniffi::remote(Record)]
pub struct HoldRequest {
    /// Id of the hold: a repeated id is the same hold.
    pub id: HoldId,
    /// The legs.
    pub legs: Vec<Leg>,
    /// Current time.
    pub now: Timestamp,
    /// Expiry, unless the hold is extended.
    pub expires_at: Timestamp,
    /// Purpose.
    pub memo: String,
}

/// Balance of a pool.
#[uniffi::remote(Record)]
pub struct PoolBalance {
    /// The pool.
    pub pool: Pool,
    /// Amount spent.
    pub spent: u64,
    /// Amount held.
    pub held: u64,
    /// Amount granted.
    pub granted: u64,
}

/// Balance of a wallet.
#[uniffi::remote(Record)]
pub struct Balance {
    /// The wallet.
    pub wallet: WalletId,
    /// Balances of its pools, in the order of the terms.
    pub pools: Vec<PoolBalance>,
}

/// Balance of a wallet, with its purchased credits spent since a time.
#[uniffi::remote(Record)]
pub struct PeriodBalance {
    /// The balance.
    pub balance: Balance,
    /// Purchased credits spent.
    pub purchased_spent: u64,
}

/// State of a hold.
#[uniffi::remote(Enum)]
pub enum HoldState {
    /// The hold is open.
    Open {
        /// Expiry.
        expires_at: Timestamp,
    },
    /// The hold is settled.
    Settled {
        /// Amount spent per leg.
        spent: Vec<u64>,
    },
    /// The hold expired.
    Expired,
}

/// Outcome of a hold.
#[uniffi::remote(Enum)]
pub enum HoldOutcome {
    /// The amount is held.
    Held {
        /// Balances of the wallets afterwards, in the order of the legs.
        balances: Vec<Balance>,
    },
    /// The balance of a leg is too small; nothing is held.
    Insufficient {
        /// Index of the leg, from 0.
        leg: u32,
        /// Balance of its wallet.
        balance: Balance,
    },
    /// The same hold exists already.
    Exists {
        /// State of the hold.
        state: HoldState,
        /// Balances of the wallets.
        balances: Vec<Balance>,
    },
    /// Another hold has this id.
    Conflict,
}

/// Request to settle a hold.
#[uniffi::remote(Record)]
pub struct SettleRequest {
    /// The hold.
    pub id: HoldId,
    /// Amount to spend per leg; the rest is released.
    pub spent: Vec<u64>,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of a settlement.
#[uniffi::remote(Enum)]
pub enum SettleOutcome {
    /// The hold is settled.
    Settled {
        /// Balances of the wallets afterwards.
        balances: Vec<Balance>,
    },
    /// The hold was not open any more.
    Exists {
        /// State of the hold.
        state: HoldState,
    },
    /// There is no such hold.
    HoldNotFound,
}

/// Request to grant credits, once per id.
#[uniffi::remote(Record)]
pub struct GrantRequest {
    /// Id of the grant.
    pub id: GrantId,
    /// The wallet.
    pub wallet: WalletId,
    /// Amount.
    pub amount: u64,
    /// Current time.
    pub now: Timestamp,
    /// Purpose.
    pub memo: String,
}

/// Request to take granted credits back, once per id, as far as they are not spent.
#[uniffi::remote(Record)]
pub struct RevokeRequest {
    /// Id of the revocation.
    pub id: GrantId,
    /// Id of the grant.
    pub grant: GrantId,
    /// Amount.
    pub amount: u64,
    /// Current time.
    pub now: Timestamp,
    /// Purpose.
    pub memo: String,
}

/// Outcome of a grant.
#[uniffi::remote(Enum)]
pub enum GrantOutcome {
    /// The credits are granted.
    Granted {
        /// Balance of the wallet afterwards.
        balance: Balance,
    },
    /// The same grant exists already.
    Exists,
    /// Another grant has this id.
    Conflict,
}

/// Outcome of a revocation.
#[uniffi::remote(Enum)]
pub enum RevokeOutcome {
    /// The credits are revoked.
    Revoked {
        /// Amount taken back.
        taken: u64,
        /// Amount already spent.
        shortfall: u64,
    },
    /// The same revocation exists already.
    Exists {
        /// Amount taken back.
        taken: u64,
        /// Amount already spent.
        shortfall: u64,
    },
    /// There is no such grant.
    GrantNotFound,
    /// Another revocation has this id.
    Conflict,
}

/// Kind of a ledger entry.
#[uniffi::remote(Enum)]
pub enum EntryKind {
    /// Held.
    Held,
    /// Spent.
    Spent,
    /// Held and spent in one operation.
    Charged,
    /// Released.
    Returned,
    /// Released because the hold expired.
    Expired,
    /// Granted.
    Granted,
    /// Revoked.
    Revoked {
        /// Amount already spent.
        shortfall: u64,
    },
}

/// Immutable row of one ledger operation.
#[uniffi::remote(Record)]
pub struct Entry {
    /// Sequence number within the wallet.
    pub seq: u64,
    /// Time of the operation.
    pub at: Timestamp,
    /// The wallet.
    pub wallet: WalletId,
    /// The pool.
    pub pool: Pool,
    /// Kind of the operation.
    pub kind: EntryKind,
    /// Amount.
    pub amount: u64,
    /// Id of the hold, grant or revocation.
    pub cause: String,
    /// Purpose.
    pub memo: String,
}

/// Page of ledger entries.
#[derive(Clone, Debug, uniffi::Record)]
pub struct EntryPage {
    /// The items, in order.
    pub items: Vec<Entry>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Page of wallets.
#[derive(Clone, Debug, uniffi::Record)]
pub struct BalancePage {
    /// The items, in order.
    pub items: Vec<Balance>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Ledger of wallets, pools, holds, grants and entries.
///
/// Each call is one transaction; repeating an id is safe.
#[uniffi::export(rust, foreign)]
#[async_trait]
pub trait LedgerStore: Send + Sync {
    /// Holds amounts in several wallets: all legs or none. Overdue holds of these wallets expire first.
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome, VerbatimError>;
    /// Holds and settles in one operation, with one `Charged` entry per pool.
    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome, VerbatimError>;
    /// Extends an open hold; an earlier expiry has no effect.
    async fn extend(&self, id: HoldId, until: Timestamp) -> Result<HoldState, VerbatimError>;
    /// Settles a hold: spends a part of each leg and releases the rest.
    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome, VerbatimError>;
    /// Grants credits, once per id.
    async fn grant(&self, request: GrantRequest) -> Result<GrantOutcome, VerbatimError>;
    /// Revokes credits, once per id.
    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome, VerbatimError>;
    /// Balance of a wallet with these terms.
    async fn balance(&self, wallet: WalletId, terms: Terms) -> Result<Balance, VerbatimError>;
    /// The same, with the purchased credits spent since a time.
    async fn balance_since(
        &self,
        wallet: WalletId,
        terms: Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance, VerbatimError>;
    /// Expires overdue holds, at most `limit`; returns their number.
    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32, VerbatimError>;
    /// Entries of a wallet, oldest first.
    async fn entries(&self, wallet: WalletId, page: PageRequest) -> Result<EntryPage, VerbatimError>;
    /// All wallets with their balances.
    async fn wallets(&self, page: PageRequest) -> Result<BalancePage, VerbatimError>;
}

#[async_trait]
impl Ledger for ForeignStore<dyn LedgerStore> {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        self.call(self.store.hold(request)).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        self.call(self.store.spend(request)).await
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        self.call(self.store.extend(id.clone(), until)).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.call(self.store.settle(request)).await
    }

    async fn grant(&self, request: GrantRequest) -> Result<GrantOutcome> {
        request.check()?;
        self.call(self.store.grant(request)).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        request.check()?;
        self.call(self.store.revoke(request)).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        self.call(self.store.balance(wallet.clone(), terms.clone())).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        terms.check()?;
        self.call(self.store.balance_since(wallet.clone(), terms.clone(), since)).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        self.call(self.store.expire(now, limit)).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let after = page.after.clone();
        let EntryPage { items, next } = self.call(self.store.entries(wallet.clone(), page)).await?;
        self.page(after, items, next)
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let after = page.after.clone();
        let BalancePage { items, next } = self.call(self.store.wallets(page)).await?;
        self.page(after, items, next)
    }
}
