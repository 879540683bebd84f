//! Ledger: balances of wallets, holds, and the entry of every operation.
//!
//! A spend is held first, then settled once or released; a charge for data that is already available is held and
//! settled in one step. Every operation writes immutable entries ([`Entry`]), and every balance can be recomputed from
//! them ([`audit`]). The effect of an operation on the rows of a wallet is plain arithmetic that the stores share
//! ([`rules`], [`allocate`]). The ledger has no plans and no calendar: each call passes the wallet's current pools as
//! [`Terms`], computed by [`terms`]. A new period is a new bucket name, so no timer resets balances.

pub mod allocate;
pub mod audit;
mod hold_guard;
mod operation;
mod recent;
mod records;
pub mod rules;
pub mod terms;

use std::fmt;

use async_trait::async_trait;

pub(crate) use hold_guard::{HoldGuard, HoldManager, HoldResult, HoldTimes, SpendResult};
pub use operation::{LedgerOperation, LedgerOperationKind, LedgerOperationResult};
pub use records::{
    Balance, Entry, EntryKind, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Leg,
    PeriodBalance, Pool, PoolBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
};

use crate::{
    error::Result,
    ids::{HoldId, WalletId},
    page::{Page, PageRequest},
    time::Timestamp,
};

/// Wallet of [`Ledger::check_writable`]: it does not exist, and nothing is stored for it.
const CHECK_WALLET: &str = "readiness";

/// Store of wallets, holds, grants and their entries.
///
/// Each method is one transaction: it applies entirely or not at all, and an acknowledged change survives a crash. Only
/// a new hold of credits may be lost when the machine crashes, until a later change of its wallets is acknowledged.
/// Each method is idempotent by its id: after a fault with an unknown outcome, the caller repeats the call and receives
/// the outcome of the first one. Wallets are locked in the order of their ids, so two calls cannot deadlock. If a
/// future is dropped, the call has either applied or not.
///
/// No balance is ever negative, and the spent and held amounts of a bucket never exceed its limit.
///
/// Where a call has no terms, and in entries, an allowance's limit is the last known one: that of the last hold that
/// used its bucket. A pool or wallet is stored once something is held in it or granted to it; an amount of 0 stores
/// only the hold's id.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached, and with
/// [`crate::ErrorKind::Invalid`], without any change, if a request exceeds the bounds of [`HoldRequest::check`] and the
/// other `check` methods.
#[async_trait]
pub trait Ledger: fmt::Debug + Send + Sync + 'static {
    /// Holds the amounts of all legs, or of none.
    ///
    /// **Behaviour**
    /// - First the overdue holds of these wallets expire, entirely; they stay expired whatever the outcome of the
    ///   request is. So a repeat of an overdue hold finds it expired.
    /// - Each leg takes from its pools in their order. If the pools cannot cover a leg, the first such leg, in order,
    ///   is the outcome [`HoldOutcome::Insufficient`], and nothing is stored.
    /// - An unknown wallet is an empty one.
    /// - A known id with the same body (wallets and amounts, in order) is [`HoldOutcome::Exists`] with the state of
    ///   that hold, and nothing is held again; with another body it is [`HoldOutcome::Conflict`]. A rejected request
    ///   leaves its id unknown. Holds and spends share one namespace of ids. The balances are under the terms of the
    ///   current call.
    /// - An expiry more than [`LEASE_MAX`](crate::time::LEASE_MAX) after the present is accepted, but
    ///   [`Ledger::shorten_holds`] brings it forward to that time.
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome>;

    /// Holds and settles in full in one step.
    ///
    /// **Behaviour**: as [`Ledger::hold`]; `expires_at` is not used. Each pool that contributes has one entry,
    /// [`EntryKind::Charged`].
    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome>;

    /// Extends an open hold: the heartbeat of long work.
    ///
    /// **Behaviour**: never shortens the hold. An overdue hold that has not been expired yet is open. A hold that is no
    /// longer open does not change; its state is returned. As in [`Ledger::hold`], the hold lasts for at most
    /// [`LEASE_MAX`](crate::time::LEASE_MAX) without a further call.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] if the hold is unknown.
    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState>;

    /// Settles a hold: spends an amount of each leg and returns the rest. Zero for all legs releases it.
    ///
    /// **Behaviour**
    /// - Spent amounts are taken from the pools in the order of the hold, and from the buckets of the hold, also after
    ///   their period.
    /// - An overdue hold that has not been expired yet settles.
    /// - A hold that was settled before or has expired does not change: the outcome is [`SettleOutcome::Exists`] with
    ///   its state, whatever the amounts. An expired hold is never charged afterwards.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the number of amounts differs from the number of legs, or an amount exceeds the
    /// held amount of its leg.
    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome>;

    /// Adds purchased credits, once per id.
    ///
    /// **Behaviour**: a known id with the same wallet and amount is [`GrantOutcome::Exists`], with others
    /// [`GrantOutcome::Conflict`]; nothing is added again. Grants and revocations share one namespace of ids.
    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome>;

    /// Revokes purchased credits, once per id, as far as they are available.
    ///
    /// **Behaviour**
    /// - All revocations of one grant together, with their shortfalls, never exceed the grant; the excess is ignored.
    /// - Unavailable credits (spent or held) are the shortfall: recorded in the entry, never collected later.
    /// - A known id returns the first outcome as [`RevokeOutcome::Exists`]; with another grant or amount it is
    ///   [`RevokeOutcome::Conflict`], as is the id of a grant. [`RevokeOutcome::GrantNotFound`] leaves the id unknown.
    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome>;

    /// Returns a wallet's balance under these terms; changes nothing.
    ///
    /// **Behaviour**: an unknown wallet has spent and holds nothing. Overdue holds that have not been expired yet count
    /// as held.
    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance>;

    /// Returns a wallet's balance under these terms, and the purchased credits that it spent since `since`.
    ///
    /// **Behaviour**: as [`Ledger::balance`]. A spend at `since` counts; holds, grants and revocations do not. Both
    /// figures are from one consistent state.
    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance>;

    /// Expires overdue holds, at most `limit`, the longest overdue first; returns their number.
    ///
    /// **Behaviour**: a hold is overdue if its expiry is at or before `now`. Its held amounts are returned. Several
    /// servers may call this at once. One that cannot be read is left as it is, and delays no other one.
    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32>;

    /// Shortens the open holds with an amount that end after `latest`: they end at `latest`.
    ///
    /// **Behaviour**: a hold of a clock that was ahead would otherwise stay open until that time, if its process has
    /// ended. It writes no entry, and the hold can be extended again. A hold whose amounts are all 0 keeps its end: it
    /// takes nothing from a wallet, and prepaid deliveries are such holds of a day. The default implementation changes
    /// nothing.
    async fn shorten_holds(&self, latest: Timestamp) -> Result<()> {
        let _ = latest;
        Ok(())
    }

    /// Lists a wallet's entries, oldest first. An unknown wallet has none.
    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>>;

    /// Lists a wallet's entries, newest first. An unknown wallet has none.
    ///
    /// **Behaviour**: the order is the reverse of [`Ledger::entries`], by number. New entries do not move the next
    /// page. The default implementation reads the entries of the wallet from the oldest on.
    async fn recent_entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        recent::read_reversed(self, wallet, &page).await
    }

    /// Lists all wallets with all pools that were ever used.
    ///
    /// **Behaviour**: with the entries, this is the input of the audit. An allowance's limit is the last known one. A
    /// wallet that only entries, or open holds with an amount, name is listed without pools: no valid ledger contains
    /// one, so the audit must see it. One of holds whose amounts are all 0 is not listed.
    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>>;

    /// Checks that the store accepts writes.
    ///
    /// **Behaviour**: a store on a disk or a server commits a small write that changes no data, as durably as any
    /// other. The default implementation only reads.
    async fn check_writable(&self) -> Result<()> {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        self.balance(&WalletId::new(CHECK_WALLET), &terms).await.map(|_| ())
    }
}
