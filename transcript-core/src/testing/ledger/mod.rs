//! The cases of the ledger.

mod auditing;
mod holds;
mod racing;
mod repeats;
mod settling;
mod transfers;

use std::sync::Arc;

pub use auditing::*;
pub use holds::*;
pub use racing::*;
pub use repeats::*;
pub use settling::*;
pub use transfers::*;

use super::{at, at_ms, done, pages};
use crate::{
    ids::{GrantId, HoldId, WalletId},
    ledger::{
        Balance, Entry, EntryKind, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Ledger, Leg,
        Pool, PoolBalance, Revoke, Settle, SettleOutcome, Terms, audit,
    },
    page::PAGE_LIMIT,
};

/// Makes a test of every case of [`Ledger`]; see [`crate::testing`].
#[macro_export]
macro_rules! ledger_conformance {
    ($make:expr) => {
        $crate::ledger_conformance_cases!(conformance_cases; $make;);
    };
}

/// The names of the cases, for whoever makes something of them.
#[doc(hidden)]
#[macro_export]
macro_rules! ledger_conformance_cases {
    ($then:ident; $($before:tt)*) => {
        $crate::$then! { $($before)* $crate::ledger::Ledger; [$crate::testing::ledger];
            a_hold_is_held_and_seen
            an_unknown_wallet_is_a_fresh_one
            legs_are_held_all_or_none
            the_first_leg_too_small_is_named
            pools_are_taken_in_the_order_of_the_terms
            a_wallet_is_spent_to_exactly_nothing
            an_amount_of_zero_leaves_no_trace
            buckets_and_wallets_are_apart
            a_limit_below_what_is_used_leaves_nothing
            overdue_holds_of_these_wallets_expire_first
            overdue_holds_stay_expired_when_the_request_is_refused
            any_text_is_an_id
            requests_out_of_bounds_change_nothing

            the_same_hold_again_is_known
            a_repeat_after_the_end_tells_the_end
            a_repeat_of_an_overdue_hold_finds_it_expired
            the_same_id_with_another_body_is_a_conflict
            a_refused_request_leaves_its_id_unknown
            a_spend_holds_and_settles_in_one
            holds_and_spends_share_their_ids

            a_settlement_spends_a_part_and_returns_the_rest
            all_zero_releases
            what_is_spent_is_taken_in_the_order_of_the_holding
            each_leg_is_settled_with_its_own_figure
            settling_after_the_period_touches_the_old_bucket
            an_overdue_hold_that_nobody_swept_settles
            an_expired_hold_is_never_charged
            a_hold_is_settled_once
            a_hold_that_nobody_made_is_unknown
            figures_out_of_bounds_change_nothing
            an_ended_hold_ignores_the_figures
            an_extended_hold_lives_on
            extending_never_shortens
            what_has_ended_is_not_extended
            the_longest_overdue_expire_first
            expiring_returns_what_was_held

            a_grant_is_added_once
            the_id_of_a_grant_with_another_body_is_a_conflict
            credits_are_taken_back
            what_is_spent_or_held_is_a_shortfall
            revocations_take_back_no_more_than_the_grant_gave
            a_shortfall_is_never_collected_later
            a_revocation_is_done_once
            grants_and_revocations_share_their_ids
            transfers_out_of_bounds_change_nothing
            what_was_bought_is_spent_since_a_moment

            entries_tell_every_step_in_order
            entries_come_in_pages
            a_page_is_never_larger_than_the_limit
            wallets_come_in_pages
            wallets_show_the_limit_last_seen
            a_strange_cursor_is_no_fault_of_the_store
            balances_are_what_the_entries_add_up_to

            many_at_once_drain_a_wallet_to_exactly_nothing
            many_at_once_with_one_id_hold_once
            crossing_legs_do_not_wait_for_each_other
            a_hold_ends_once_however_many_end_it
            sweeping_in_many_places_expires_each_once
            a_grant_at_once_is_added_once
            revoking_while_spending_never_overdraws
            a_dropped_call_is_done_or_not_done
        }
    };
}

type Store = Arc<dyn Ledger>;

fn bucket(name: &str, limit: u64) -> Pool {
    Pool::Allowance { bucket: name.to_owned(), limit }
}

/// Terms with these pools.
fn terms(pools: &[Pool]) -> Terms {
    Terms { pools: pools.to_vec(), resets_at: None }
}

/// The terms that most cases use: an allowance of a day.
fn day(limit: u64) -> Terms {
    terms(&[bucket("day/2026-11-20", limit)])
}

/// The terms of a wallet with purchased credits only.
fn bought() -> Terms {
    terms(&[Pool::Purchased])
}

fn leg(wallet: &str, terms: Terms, amount: u64) -> Leg {
    Leg { wallet: WalletId::new(wallet), terms, amount }
}

/// A request of this moment that expires a minute later.
fn request(id: &str, legs: &[Leg]) -> HoldRequest {
    let (now, expires_at) = (at(0), at(60));
    HoldRequest { id: HoldId::new(id), legs: legs.to_vec(), now, expires_at, memo: format!("memo of {id}") }
}

fn settlement(id: &str, spent: &[u64]) -> Settle {
    Settle { id: HoldId::new(id), spent: spent.to_vec(), now: at(10) }
}

fn credits(id: &str, wallet: &str, amount: u64) -> Grant {
    let wallet = WalletId::new(wallet);
    Grant { id: GrantId::new(id), wallet, amount, now: at(0), memo: format!("memo of {id}") }
}

fn taking(id: &str, grant: &str, amount: u64) -> Revoke {
    let grant = GrantId::new(grant);
    Revoke { id: GrantId::new(id), grant, amount, now: at(20), memo: format!("memo of {id}") }
}

/// Holds what must be there.
async fn hold(store: &Store, request: HoldRequest) -> Vec<Balance> {
    match done(store.hold(request).await) {
        HoldOutcome::Held { balances } => balances,
        other => panic!("a hold that is covered and whose id is new is held; it was {other:?}"),
    }
}

/// Settles what must be open.
async fn settle(store: &Store, id: &str, spent: &[u64]) -> Vec<Balance> {
    match done(store.settle(settlement(id, spent)).await) {
        SettleOutcome::Settled { balances } => balances,
        other => panic!("an open hold settles; it was {other:?}"),
    }
}

/// Grants what was never granted.
async fn grant(store: &Store, id: &str, wallet: &str, amount: u64) -> Balance {
    match done(store.grant(credits(id, wallet, amount)).await) {
        GrantOutcome::Granted { balance } => balance,
        other => panic!("a grant whose id is new is granted; it was {other:?}"),
    }
}

/// What is spent and held in each pool of a wallet under these terms.
async fn used(store: &Store, wallet: &str, terms: &Terms) -> Vec<(u64, u64)> {
    let balance = done(store.balance(&WalletId::new(wallet), terms).await);
    balance.pools.iter().map(|pool| (pool.spent, pool.held)).collect()
}

async fn available(store: &Store, wallet: &str, terms: &Terms) -> u64 {
    done(store.balance(&WalletId::new(wallet), terms).await).available()
}

async fn entries(store: &Store, wallet: &str) -> Vec<Entry> {
    let wallet = WalletId::new(wallet);
    pages(PAGE_LIMIT, async |page| store.entries(&wallet, page).await).await
}

/// A wallet's steps: kind and amount of each entry.
async fn steps(store: &Store, wallet: &str) -> Vec<(EntryKind, u64)> {
    entries(store, wallet).await.iter().map(|entry| (entry.kind, entry.amount)).collect()
}

async fn wallets(store: &Store) -> Vec<Balance> {
    pages(PAGE_LIMIT, async |page| store.wallets(page).await).await
}

/// Checks that every balance is what its entries add up to.
async fn audited(store: &Store) {
    for balance in wallets(store).await {
        let entries = entries(store, balance.wallet.as_str()).await;
        let differences = audit::compare(&balance, &entries);
        assert_eq!(differences, Ok(Vec::new()), "every balance is what its entries add up to");
    }
}
