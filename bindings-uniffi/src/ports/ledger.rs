//! A ledger of the app's.

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{Cursor, GrantId, HoldId, WalletId},
    ledger::{
        Balance, BalanceSince, Entry, EntryKind, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState,
        Ledger, Leg, Pool, PoolBalance, Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
    },
};

use super::Foreign;
use crate::error::VerbatimError;

/// What is spent from: an allowance of a period, or what was bought.
#[uniffi::remote(Enum)]
pub enum Pool {
    /// An allowance.
    Allowance {
        /// The period's name, such as `day/2026-11-20`: a reset is a new bucket.
        bucket: String,
        /// How much there is in all.
        limit: u64,
    },
    /// What was bought or granted.
    Purchased,
}

/// From which pools a wallet spends, in order.
#[uniffi::remote(Record)]
pub struct Terms {
    /// The pools.
    pub pools: Vec<Pool>,
    /// When the allowance begins anew.
    pub resets_at: Option<Timestamp>,
}

/// One wallet's part of a hold.
#[uniffi::remote(Record)]
pub struct Leg {
    /// The wallet. An unknown one is a fresh one.
    pub wallet: WalletId,
    /// Its pools.
    pub terms: Terms,
    /// How much.
    pub amount: u64,
}

/// What to hold: all legs or none.
#[uniffi::remote(Record)]
pub struct HoldRequest {
    /// The hold's id: the same one again is the same hold.
    pub id: HoldId,
    /// The legs.
    pub legs: Vec<Leg>,
    /// The present moment.
    pub now: Timestamp,
    /// When it ends unless it is extended.
    pub expires_at: Timestamp,
    /// What it is for.
    pub memo: String,
}

/// What a pool has.
#[uniffi::remote(Record)]
pub struct PoolBalance {
    /// The pool.
    pub pool: Pool,
    /// What was spent.
    pub spent: u64,
    /// What is held.
    pub held: u64,
    /// What was granted.
    pub granted: u64,
}

/// What a wallet has.
#[uniffi::remote(Record)]
pub struct Balance {
    /// The wallet.
    pub wallet: WalletId,
    /// Its pools, in the order of the terms.
    pub pools: Vec<PoolBalance>,
}

/// What a wallet has, and what it spent of what was bought since a moment.
#[uniffi::remote(Record)]
pub struct BalanceSince {
    /// What it has.
    pub balance: Balance,
    /// What it spent of what was bought.
    pub purchased_spent: u64,
}

/// How a hold stands.
#[uniffi::remote(Enum)]
pub enum HoldState {
    /// It is open.
    Open {
        /// When it ends.
        expires_at: Timestamp,
    },
    /// It was settled.
    Closed {
        /// What was spent of each leg.
        spent: Vec<u64>,
    },
    /// It ended by itself.
    Expired,
}

/// What came of a hold.
#[uniffi::remote(Enum)]
pub enum HoldOutcome {
    /// It holds.
    Held {
        /// What the wallets have then, in the order of the legs.
        balances: Vec<Balance>,
    },
    /// A leg is too small; nothing is held.
    Refused {
        /// Which leg, from 0.
        leg: u32,
        /// What its wallet has.
        balance: Balance,
    },
    /// The same hold was made before.
    Known {
        /// How it stands.
        state: HoldState,
        /// What the wallets have.
        balances: Vec<Balance>,
    },
    /// Another hold has this id.
    Conflict,
}

/// How to end a hold.
#[uniffi::remote(Record)]
pub struct Settle {
    /// The hold.
    pub id: HoldId,
    /// What is spent of each leg; the rest returns.
    pub spent: Vec<u64>,
    /// The present moment.
    pub now: Timestamp,
}

/// What came of settling.
#[uniffi::remote(Enum)]
pub enum SettleOutcome {
    /// It is settled.
    Settled {
        /// What the wallets have then.
        balances: Vec<Balance>,
    },
    /// It was no longer open.
    Known {
        /// How it stands.
        state: HoldState,
    },
    /// There is no such hold.
    Unknown,
}

/// Credits to add, once.
#[uniffi::remote(Record)]
pub struct Grant {
    /// The grant's id.
    pub id: GrantId,
    /// The wallet.
    pub wallet: WalletId,
    /// How much.
    pub amount: u64,
    /// The present moment.
    pub now: Timestamp,
    /// What for.
    pub memo: String,
}

/// Credits to take back, once, as far as there are any.
#[uniffi::remote(Record)]
pub struct Revoke {
    /// The revocation's id.
    pub id: GrantId,
    /// The grant that it takes back from.
    pub grant: GrantId,
    /// How much.
    pub amount: u64,
    /// The present moment.
    pub now: Timestamp,
    /// What for.
    pub memo: String,
}

/// What came of a grant.
#[uniffi::remote(Enum)]
pub enum GrantOutcome {
    /// It is added.
    Granted {
        /// What the wallet has then.
        balance: Balance,
    },
    /// It was added before.
    Known,
    /// Another grant has this id.
    Conflict,
}

/// What came of a revocation.
#[uniffi::remote(Enum)]
pub enum RevokeOutcome {
    /// It is taken back.
    Revoked {
        /// How much was there.
        taken: u64,
        /// How much was not.
        shortfall: u64,
    },
    /// It was taken back before.
    Known {
        /// How much was there.
        taken: u64,
        /// How much was not.
        shortfall: u64,
    },
    /// There is no such grant.
    UnknownGrant,
    /// Another revocation has this id.
    Conflict,
}

/// What an entry notes.
#[uniffi::remote(Enum)]
pub enum EntryKind {
    /// Held.
    Held,
    /// Spent.
    Spent,
    /// Held and spent in one step.
    Charged,
    /// Returned.
    Returned,
    /// Returned, since the hold ended by itself.
    Expired,
    /// Granted.
    Granted,
    /// Taken back.
    Revoked {
        /// How much was not there.
        shortfall: u64,
    },
}

/// One immutable row of the ledger.
#[uniffi::remote(Record)]
pub struct Entry {
    /// Its place among the wallet's.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub wallet: WalletId,
    /// Of which pool.
    pub pool: Pool,
    /// What it notes.
    pub kind: EntryKind,
    /// How much.
    pub amount: u64,
    /// The hold, grant or revocation.
    pub cause: String,
    /// What for.
    pub memo: String,
}

/// A part of a wallet's entries.
#[derive(Clone, Debug, uniffi::Record)]
pub struct EntryPage {
    /// The items, in order.
    pub items: Vec<Entry>,
    /// What to ask for to go on; none when there is no more.
    pub next: Option<Cursor>,
}

/// A part of the list of wallets.
#[derive(Clone, Debug, uniffi::Record)]
pub struct BalancePage {
    /// The items, in order.
    pub items: Vec<Balance>,
    /// What to ask for to go on; none when there is no more.
    pub next: Option<Cursor>,
}

/// A ledger: wallets, pools, holds, grants, entries. Each call is one transaction, and may be repeated by its id.
#[uniffi::export(rust, foreign)]
#[async_trait]
pub trait LedgerStore: Send + Sync {
    /// Holds an amount in several wallets at once: all legs or none. Overdue holds of these wallets expire first.
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome, VerbatimError>;
    /// Holds and settles in one step, with one entry of each pool, `Charged`.
    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome, VerbatimError>;
    /// Puts off the end of an open hold; never brings it forward.
    async fn extend(&self, id: HoldId, until: Timestamp) -> Result<HoldState, VerbatimError>;
    /// Ends a hold: so much of each leg is spent, the rest returns.
    async fn settle(&self, ask: Settle) -> Result<SettleOutcome, VerbatimError>;
    /// Adds credits, once for each id.
    async fn grant(&self, grant: Grant) -> Result<GrantOutcome, VerbatimError>;
    /// Takes credits back, once for each id.
    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome, VerbatimError>;
    /// What a wallet has on these terms.
    async fn balance(&self, wallet: WalletId, terms: Terms) -> Result<Balance, VerbatimError>;
    /// The same, with what was spent since a moment of what was bought.
    async fn balance_since(
        &self,
        wallet: WalletId,
        terms: Terms,
        since: Timestamp,
    ) -> Result<BalanceSince, VerbatimError>;
    /// Ends overdue holds, at most so many; how many.
    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32, VerbatimError>;
    /// A wallet's entries, oldest first.
    async fn entries(&self, wallet: WalletId, page: PageRequest) -> Result<EntryPage, VerbatimError>;
    /// All wallets with what they have.
    async fn wallets(&self, page: PageRequest) -> Result<BalancePage, VerbatimError>;
}

#[async_trait]
impl Ledger for Foreign<dyn LedgerStore> {
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        ask.check()?;
        self.ask(self.store.hold(ask)).await
    }

    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        ask.check()?;
        self.ask(self.store.spend(ask)).await
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        self.ask(self.store.extend(id.clone(), until)).await
    }

    async fn settle(&self, ask: Settle) -> Result<SettleOutcome> {
        self.ask(self.store.settle(ask)).await
    }

    async fn grant(&self, grant: Grant) -> Result<GrantOutcome> {
        grant.check()?;
        self.ask(self.store.grant(grant)).await
    }

    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome> {
        ask.check()?;
        self.ask(self.store.revoke(ask)).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        self.ask(self.store.balance(wallet.clone(), terms.clone())).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        terms.check()?;
        self.ask(self.store.balance_since(wallet.clone(), terms.clone(), since)).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        self.ask(self.store.expire(now, limit)).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let EntryPage { items, next } = self.ask(self.store.entries(wallet.clone(), page)).await?;
        Ok(Page { items, next })
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let BalancePage { items, next } = self.ask(self.store.wallets(page)).await?;
        Ok(Page { items, next })
    }
}
