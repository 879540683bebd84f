//! The ledger: who may spend how much, and every step in which it was spent.
//!
//! A spend is held first, then settled once or released; what is at hand is held and settled in one step.
//! Every step is an immutable [`Entry`], and every balance can be recomputed from the entries
//! ([`audit`]). Which pool gives how much is plain arithmetic that every implementation shares
//! ([`allocate`]). The ledger knows no plan and no calendar: which pools a wallet has at a moment comes in
//! with each call, as [`Terms`] that [`terms`] computes. A new period is a new bucket name, so nothing needs
//! a timer to reset.

pub mod allocate;
pub mod audit;
mod records;
mod step;
pub mod terms;

use std::fmt;

use async_trait::async_trait;

pub use records::{
    Balance, BalanceSince, Entry, EntryKind, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Leg,
    Pool, PoolBalance, Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
};
pub use step::{Step, StepKind, StepResult};

use crate::{
    error::Result,
    ids::{HoldId, WalletId},
    page::{Page, PageRequest},
    time::Timestamp,
};

/// Wallets, holds, grants and their entries.
///
/// Every method is one transaction: it happens whole or not at all, and what it acknowledged survives
/// a crash. Each is idempotent by the id that it takes: after a fault whose outcome is unknown, the
/// same call is repeated and tells what the first one did. Wallets are locked in the order of their
/// ids, so that no two calls can wait for each other. Dropping a future at any await leaves the call
/// done or not done.
///
/// No balance is ever negative, and no more than a limit is ever spent and held in a bucket.
///
/// Where no terms come with a call, and in entries, an allowance's limit is the one last seen: that of
/// the last hold that took from its bucket. A pool, and a wallet, is stored once something is held in it
/// or granted to it; an amount of 0 leaves no trace but the hold's id.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] when the store cannot be reached, and with
/// [`crate::ErrorKind::Invalid`], having done nothing, when a request is outside the bounds that
/// [`HoldRequest::check`] and its siblings name.
#[async_trait]
pub trait Ledger: fmt::Debug + Send + Sync + 'static {
    /// Holds the amounts of all legs, or of none.
    ///
    /// **Behaviour**
    /// - First the overdue holds of these wallets expire, whole; they stay expired whatever becomes of the
    ///   request. So a repeat of an overdue hold finds it expired.
    /// - Each leg takes from its pools in their order. The first leg, in order, that its pools cannot
    ///   cover refuses the whole: [`HoldOutcome::Refused`], and nothing is stored.
    /// - An unknown wallet is a fresh one.
    /// - A known id with the same body (wallets and amounts, in order) tells the state of that hold, and
    ///   nothing is held again; with another body it is [`HoldOutcome::Conflict`]. A refused request
    ///   leaves its id unknown. Holds and spends share their ids. The balances are under the terms of
    ///   the present call.
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome>;

    /// Holds and settles in full in one step: for what is already at hand.
    ///
    /// **Behaviour**: as [`Ledger::hold`]; `expires_at` is not used. Each pool that gives has one entry,
    /// [`EntryKind::Charged`].
    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome>;

    /// Puts off the expiry of an open hold: the heartbeat of long work.
    ///
    /// **Behaviour**: never brings the expiry forward. A hold that is overdue but was not swept yet is
    /// open. One that is no longer open stays as it is, and its state is returned.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] when the hold is unknown.
    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState>;

    /// Ends a hold: spends a figure for each leg and returns the rest. All zero releases it.
    ///
    /// **Behaviour**
    /// - What is spent is taken from the pools in the order in which they were held; the bucket is the
    ///   one in which it was held, also when its period is over.
    /// - A hold that is overdue but was not swept yet settles.
    /// - A hold that was settled before, or has expired, stays as it is: [`SettleOutcome::Known`] tells
    ///   its state, whatever the figures. An expired hold is never charged after the fact.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when the number of figures is not that of the legs, or a figure is
    /// above what its leg holds.
    async fn settle(&self, ask: Settle) -> Result<SettleOutcome>;

    /// Adds purchased credits, once per id.
    ///
    /// **Behaviour**: a known id with the same wallet and amount is [`GrantOutcome::Known`], with others
    /// [`GrantOutcome::Conflict`]; nothing is added again. An id is a grant's or a revocation's, never both.
    async fn grant(&self, grant: Grant) -> Result<GrantOutcome>;

    /// Takes purchased credits back, once per id, as far as there are any.
    ///
    /// **Behaviour**
    /// - All revocations of one grant together take back no more than it gave, shortfalls counted: what
    ///   exceeds that is ignored.
    /// - What is not available (spent or held) is the shortfall: noted in the entry, never collected later.
    /// - A known id tells what it did the first time; with another grant or amount it is
    ///   [`RevokeOutcome::Conflict`], as is the id of a grant. [`RevokeOutcome::UnknownGrant`] leaves the id
    ///   unknown.
    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome>;

    /// A wallet's balance under these terms.
    ///
    /// **Behaviour**: an unknown wallet has spent and holds nothing. Overdue holds that were not swept
    /// yet count as held. Changes nothing.
    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance>;

    /// A wallet's balance under these terms, and how much of its purchased credits was spent since a moment.
    ///
    /// **Behaviour**: as [`Ledger::balance`]. What is spent at that moment counts; what is held does not, nor
    /// what was granted or taken back. Both figures are of one and the same state.
    async fn balance_since(&self, wallet: &WalletId, terms: &Terms, since: Timestamp)
    -> Result<BalanceSince>;

    /// Expires overdue holds, at most `limit`, the longest overdue first; returns how many.
    ///
    /// **Behaviour**: a hold is overdue when its expiry is at or before `now`. What it held is returned.
    /// May run in many places at once.
    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32>;

    /// A wallet's entries, oldest first, page by page. An unknown wallet has none.
    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>>;

    /// All wallets with all pools that were ever used, page by page. With the entries: the audit.
    ///
    /// **Behaviour**: an allowance's limit is the one last seen. A wallet that only entries or open holds name
    /// is there too, without pools: no ledger may come to that, so whoever audits one must see it.
    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>>;
}
