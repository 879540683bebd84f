//! Conformance cases of the ledger.

mod audit_cases;
mod holds;
mod idempotency;
mod model;
mod races;
mod settle;
mod transfers;
mod walk;

use std::sync::Arc;

pub use audit_cases::*;
pub use holds::*;
pub use idempotency::*;
pub use model::LedgerModel;
pub use races::*;
pub use settle::*;
pub use transfers::*;
pub use walk::random_walk_matches_model;
#[cfg(test)]
pub(crate) use walk::{LedgerWalk, WalkStep, contents, outcome_text};

use super::{at, at_ms, expect_ok, read_pages};
use crate::{
    ids::{GrantId, HoldId, WalletId},
    ledger::{
        Balance, Entry, EntryKind, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        Leg, Pool, PoolBalance, RevokeRequest, SettleOutcome, SettleRequest, Terms, audit,
    },
    page::PAGE_LIMIT,
};

/// Generates one test per case of [`Ledger`]; see [`crate::testing`].
#[macro_export]
macro_rules! ledger_conformance {
    ($make:expr) => {
        $crate::ledger_conformance_cases!(conformance_cases; $make;);
        // Not a case of stores in other languages, whose interface does not have the call.
        $crate::conformance_cases! { $make; $crate::ledger::Ledger; [$crate::testing::ledger];
            hold_of_corrected_clock_is_shortened
        }
    };
}

/// Case names of the ledger, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! ledger_conformance_cases {
    ($then:ident; $($before:tt)*) => {
        $crate::$then! { $($before)* $crate::ledger::Ledger; [$crate::testing::ledger];
            hold_new_is_in_balance
            unknown_wallet_has_unused_pools
            hold_with_one_short_leg_holds_none
            hold_insufficient_names_first_short_leg
            hold_takes_pools_in_order_of_terms
            hold_drains_wallet_to_zero_and_no_more
            zero_amount_leaves_no_entry_and_no_wallet
            buckets_and_wallets_are_independent
            limit_below_usage_leaves_zero_available
            hold_expires_overdue_holds_of_its_wallets_first
            overdue_holds_stay_expired_after_insufficient_hold
            ids_of_any_text_round_trip
            hold_out_of_bounds_changes_nothing

            hold_repeated_returns_exists
            hold_repeated_after_settle_returns_settled
            hold_repeated_when_overdue_returns_expired
            hold_id_with_other_body_returns_conflict
            hold_insufficient_leaves_id_unused
            spend_holds_and_settles_in_one_step
            holds_and_spends_share_ids

            settle_part_returns_rest
            settle_with_zeros_releases_hold
            settle_spends_pools_in_order_of_hold
            settle_uses_own_amount_per_leg
            settle_after_period_end_uses_old_bucket
            settle_of_overdue_open_hold_succeeds
            expired_hold_is_never_charged
            settle_repeated_changes_nothing
            settle_of_unknown_hold_returns_not_found
            settle_out_of_bounds_changes_nothing
            settle_of_ended_hold_ignores_amounts
            extended_hold_expires_at_new_time
            extend_never_shortens_hold
            extend_of_ended_hold_returns_final_state
            expire_takes_longest_overdue_first
            expire_returns_held_amounts

            grant_repeated_adds_once
            grant_id_with_other_body_returns_conflict
            revoke_takes_available_credits
            revoke_of_spent_or_held_credits_is_shortfall
            revocations_never_exceed_their_grant
            shortfall_is_never_collected_later
            revoke_repeated_changes_nothing
            grants_and_revocations_share_ids
            grant_and_revoke_out_of_bounds_change_nothing
            period_balance_counts_spend_since_start

            entries_record_every_operation_in_order
            entries_are_paged_in_order
            recent_entries_are_paged_newest_first
            entry_pages_never_exceed_limit
            wallets_are_paged_once_each
            wallets_show_last_held_limit
            foreign_cursor_is_never_store_error
            balances_equal_sum_of_entries

            concurrent_holds_drain_wallet_to_zero
            concurrent_holds_with_one_id_hold_once
            concurrent_holds_with_crossed_legs_do_not_deadlock
            concurrent_settle_and_expire_end_hold_once
            concurrent_expire_ends_each_hold_once
            concurrent_grants_with_one_id_add_once
            concurrent_revoke_and_spend_never_overdraw
            dropped_call_is_applied_fully_or_not_at_all

            random_walk_matches_model
        }
    };
}

type LedgerStore = Arc<dyn Ledger>;

fn bucket(name: &str, limit: u64) -> Pool {
    Pool::Allowance { bucket: name.to_owned(), limit }
}

fn terms(pools: &[Pool]) -> Terms {
    Terms { pools: pools.to_vec(), resets_at: None }
}

/// Terms of most cases: a daily allowance.
fn day_terms(limit: u64) -> Terms {
    terms(&[bucket("day/2026-11-20", limit)])
}

/// Terms of a wallet with purchased credits only.
fn purchased_terms() -> Terms {
    terms(&[Pool::Purchased])
}

fn leg(wallet: &str, terms: Terms, amount: u64) -> Leg {
    Leg { wallet: WalletId::new(wallet), terms, amount }
}

/// Hold request at time 0 that expires after one minute.
fn request(id: &str, legs: &[Leg]) -> HoldRequest {
    let (now, expires_at) = (at(0), at(60));
    HoldRequest { id: HoldId::new(id), legs: legs.to_vec(), now, expires_at, memo: format!("memo of {id}") }
}

fn settle_request(id: &str, spent: &[u64]) -> SettleRequest {
    SettleRequest { id: HoldId::new(id), spent: spent.to_vec(), now: at(10) }
}

fn grant_request(id: &str, wallet: &str, amount: u64) -> GrantRequest {
    let wallet = WalletId::new(wallet);
    GrantRequest { id: GrantId::new(id), wallet, amount, now: at(0), memo: format!("memo of {id}") }
}

fn revoke_request(id: &str, grant: &str, amount: u64) -> RevokeRequest {
    let grant = GrantId::new(grant);
    RevokeRequest { id: GrantId::new(id), grant, amount, now: at(20), memo: format!("memo of {id}") }
}

/// Holds; the credits must suffice and the id must be new.
async fn hold(store: &LedgerStore, request: HoldRequest) -> Vec<Balance> {
    match expect_ok(store.hold(request).await) {
        HoldOutcome::Held { balances } => balances,
        other => panic!("a covered hold with a new id is held; got {other:?}"),
    }
}

/// Makes a hold that must be insufficient; returns the leg and its balance.
async fn short_leg(store: &LedgerStore, request: HoldRequest, rule: &str) -> (u32, Balance) {
    match expect_ok(store.hold(request).await) {
        HoldOutcome::Insufficient { leg, balance } => (leg, balance),
        other => panic!("{rule}: {other:?}"),
    }
}

/// Settles a hold that must be open.
async fn settle(store: &LedgerStore, id: &str, spent: &[u64]) -> Vec<Balance> {
    match expect_ok(store.settle(settle_request(id, spent)).await) {
        SettleOutcome::Settled { balances } => balances,
        other => panic!("an open hold settles; got {other:?}"),
    }
}

/// Grants credits; the id must be new.
async fn grant(store: &LedgerStore, id: &str, wallet: &str, amount: u64) -> Balance {
    match expect_ok(store.grant(grant_request(id, wallet, amount)).await) {
        GrantOutcome::Granted { balance } => balance,
        other => panic!("a grant with a new id is granted; got {other:?}"),
    }
}

/// Spent and held amounts of each pool of a wallet under these terms.
async fn usage(store: &LedgerStore, wallet: &str, terms: &Terms) -> Vec<(u64, u64)> {
    let balance = expect_ok(store.balance(&WalletId::new(wallet), terms).await);
    balance.pools.iter().map(|pool| (pool.spent, pool.held)).collect()
}

async fn available(store: &LedgerStore, wallet: &str, terms: &Terms) -> u64 {
    expect_ok(store.balance(&WalletId::new(wallet), terms).await).available()
}

async fn entries(store: &LedgerStore, wallet: &str) -> Vec<Entry> {
    let wallet = WalletId::new(wallet);
    read_pages(PAGE_LIMIT, async |page| store.entries(&wallet, page).await).await
}

/// Kind and amount of each entry of a wallet.
async fn kinds_and_amounts(store: &LedgerStore, wallet: &str) -> Vec<(EntryKind, u64)> {
    entries(store, wallet).await.iter().map(|entry| (entry.kind, entry.amount)).collect()
}

async fn wallets(store: &LedgerStore) -> Vec<Balance> {
    read_pages(PAGE_LIMIT, async |page| store.wallets(page).await).await
}

/// Checks that every balance equals the sum of its entries.
async fn check_audit(store: &LedgerStore) {
    for balance in wallets(store).await {
        let entries = entries(store, balance.wallet.as_str()).await;
        let differences = audit::compare(&balance, &entries);
        assert_eq!(differences, Ok(Vec::new()), "every balance equals the sum of its entries");
    }
}
