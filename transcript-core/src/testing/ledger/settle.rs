//! Conformance cases of `settle`, `extend` and `expire`.

use super::*;
use crate::{error::ErrorKind, testing::expect_error};

/// A settle spends its amount and returns the rest.
pub async fn settle_part_returns_rest(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(10), 5)])).await;
    let balances = settle(&store, "h", &[3]).await;
    let pool = PoolBalance { spent: 3, ..PoolBalance::unused(bucket("day/2026-11-20", 10)) };
    let expect = Balance { wallet: WalletId::new("w"), pools: vec![pool] };
    assert_eq!(balances, [expect], "settle returns the balances of the held pools");
    assert_eq!(usage(&store, "w", &day_terms(10)).await, [(3, 0)]);
    let entries = entries(&store, "w").await;
    let steps: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.amount)).collect();
    let expect = [(EntryKind::Held, 5), (EntryKind::Spent, 3), (EntryKind::Returned, 2)];
    assert_eq!(steps, expect, "a settle writes one entry for the spent part and one for the returned part");
    assert!(entries[1..].iter().all(|entry| entry.at == at(10)), "the entries have the time of the settle");
    assert!(
        entries.iter().all(|entry| entry.cause == "h" && entry.memo == "memo of h"),
        "the entries have the id of the hold"
    );
    check_audit(&store).await;
}

/// A settle with all zeros returns everything.
pub async fn settle_with_zeros_releases_hold(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(5), 5), leg("v", day_terms(5), 1)])).await;
    settle(&store, "h", &[0, 0]).await;
    assert_eq!(available(&store, "w", &day_terms(5)).await, 5, "a released hold returns everything");
    let expect = [(EntryKind::Held, 5), (EntryKind::Returned, 5)];
    assert_eq!(kinds_and_amounts(&store, "w").await, expect, "a release writes no Spent entry");
    let outcome = expect_ok(store.settle(settle_request("h", &[5, 1])).await);
    let expect = SettleOutcome::Exists { state: HoldState::Settled { spent: vec![0, 0] } };
    assert_eq!(outcome, expect, "a released hold is settled");
    check_audit(&store).await;
}

/// A settle spends pools in the order in which they were held.
pub async fn settle_spends_pools_in_order_of_hold(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 5), bucket("unused", 0), Pool::Purchased]);
    hold(&store, request("h", &[leg("w", pools.clone(), 9)])).await;
    let balances = settle(&store, "h", &[6]).await;
    let held: Vec<_> = balances[0].pools.iter().map(|pool| pool.pool.bucket()).collect();
    assert_eq!(held, [Some("month/1"), None], "only held pools are settled, in that order");
    assert_eq!(usage(&store, "w", &pools).await, [(5, 0), (0, 0), (1, 0)], "the first pool is spent first");
    let turned = terms(&[Pool::Purchased, bucket("other", 5)]);
    hold(&store, request("i", &[leg("w", turned.clone(), 10)])).await;
    settle(&store, "i", &[4]).await;
    assert_eq!(
        usage(&store, "w", &turned).await,
        [(5, 0), (0, 0)],
        "pools are spent in hold order, and no other pool is touched"
    );
    check_audit(&store).await;
}

/// Each leg is settled with the amount at its index.
pub async fn settle_uses_own_amount_per_leg(store: LedgerStore) {
    let legs = [leg("c", day_terms(9), 3), leg("a", day_terms(9), 2), leg("b", day_terms(9), 1)];
    hold(&store, request("h", &legs)).await;
    let balances = settle(&store, "h", &[2, 0, 1]).await;
    let names: Vec<_> = balances.iter().map(|balance| balance.wallet.as_str()).collect();
    assert_eq!(names, ["c", "a", "b"], "balances come in the order of the legs");
    for (wallet, spent) in [("c", 2), ("a", 0), ("b", 1)] {
        assert_eq!(usage(&store, wallet, &day_terms(9)).await, [(spent, 0)], "each leg has its own amount");
    }
    check_audit(&store).await;
}

/// A hold keeps its bucket: settling in the next period does not touch that period.
pub async fn settle_after_period_end_uses_old_bucket(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(5), 4)])).await;
    let both = terms(&[bucket("day/2026-11-20", 5), bucket("day/2026-11-21", 5)]);
    hold(&store, request("i", &[leg("w", terms(&[bucket("day/2026-11-21", 5)]), 5)])).await;
    let balances = settle(&store, "h", &[3]).await;
    assert_eq!(
        balances[0].pools[0].pool.bucket(),
        Some("day/2026-11-20"),
        "the settle uses the bucket of the hold"
    );
    assert_eq!(usage(&store, "w", &both).await, [(3, 0), (0, 5)], "the new period is untouched");
    check_audit(&store).await;
}

/// An overdue hold can be settled until a sweep expires it.
pub async fn settle_of_overdue_open_hold_succeeds(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(5), 4)])).await;
    assert_eq!(usage(&store, "w", &day_terms(5)).await, [(0, 4)]);
    let outcome =
        expect_ok(store.settle(SettleRequest { now: at(9_999), ..settle_request("h", &[4]) }).await);
    assert!(matches!(outcome, SettleOutcome::Settled { .. }), "an overdue hold settles: {outcome:?}");
    assert_eq!(usage(&store, "w", &day_terms(5)).await, [(4, 0)], "the finished work is charged");
    assert_eq!(expect_ok(store.expire(at(9_999), 10).await), 0, "a settled hold does not expire");
    check_audit(&store).await;
}

/// An expired hold is never charged afterwards.
pub async fn expired_hold_is_never_charged(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(5), 4)])).await;
    assert_eq!(expect_ok(store.expire(at(60), 10).await), 1, "a hold is overdue at its expiry");
    for spent in [4, 0] {
        let outcome = expect_ok(store.settle(settle_request("h", &[spent])).await);
        let expect = SettleOutcome::Exists { state: HoldState::Expired };
        assert_eq!(outcome, expect, "an expired hold stays expired");
    }
    assert_eq!(usage(&store, "w", &day_terms(5)).await, [(0, 0)], "an expired hold costs nothing");
    let expect = [(EntryKind::Held, 4), (EntryKind::Expired, 4)];
    assert_eq!(kinds_and_amounts(&store, "w").await, expect, "the entries record the expiry");
    check_audit(&store).await;
}

/// A repeated settle changes nothing and returns the result of the first.
pub async fn settle_repeated_changes_nothing(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(9), 5)])).await;
    settle(&store, "h", &[2]).await;
    for spent in [2, 5, 0] {
        let outcome = expect_ok(store.settle(settle_request("h", &[spent])).await);
        let expect = SettleOutcome::Exists { state: HoldState::Settled { spent: vec![2] } };
        assert_eq!(outcome, expect, "the first settle wins");
    }
    assert_eq!(usage(&store, "w", &day_terms(9)).await, [(2, 0)], "a repeated settle spends nothing");
    assert_eq!(entries(&store, "w").await.len(), 3, "a repeated settle writes no entry");
    check_audit(&store).await;
}

/// Settling an unknown hold returns `HoldNotFound`; extending one is an error.
pub async fn settle_of_unknown_hold_returns_not_found(store: LedgerStore) {
    let outcome = expect_ok(store.settle(settle_request("unknown", &[1])).await);
    assert_eq!(outcome, SettleOutcome::HoldNotFound, "the hold does not exist");
    let extended = store.extend(&HoldId::new("unknown"), at(99)).await;
    expect_error(extended, ErrorKind::NotFound, "only an existing hold can be extended");
}

/// A wrong number of amounts, or one above its leg, is invalid; the hold stays open.
pub async fn settle_out_of_bounds_changes_nothing(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(9), 5), leg("v", day_terms(9), 2)])).await;
    for figures in [&[][..], &[5], &[5, 2, 0], &[6, 0], &[0, 3], &[u64::MAX, 2], &[5, u64::MAX]] {
        let outcome = store.settle(settle_request("h", figures)).await;
        expect_error(outcome, ErrorKind::Invalid, "one amount per leg, none above the held amount");
        assert_eq!(usage(&store, "w", &day_terms(9)).await, [(0, 5)], "an invalid settle changes nothing");
        assert_eq!(usage(&store, "v", &day_terms(9)).await, [(0, 2)], "an invalid settle changes nothing");
    }
    settle(&store, "h", &[5, 2]).await;
    check_audit(&store).await;
}

/// An ended hold returns its final state whatever the amounts.
pub async fn settle_of_ended_hold_ignores_amounts(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(9), 5)])).await;
    settle(&store, "h", &[1]).await;
    for figures in [&[][..], &[1, 1], &[6]] {
        let outcome = expect_ok(store.settle(settle_request("h", figures)).await);
        let expect = SettleOutcome::Exists { state: HoldState::Settled { spent: vec![1] } };
        assert_eq!(outcome, expect, "the state of an ended hold is checked before the amounts");
    }
}

/// An extended hold becomes overdue at its new expiry, not at its first.
pub async fn extended_hold_expires_at_new_time(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(9), 5)])).await;
    let id = HoldId::new("h");
    let state = expect_ok(store.extend(&id, at(80)).await);
    assert_eq!(state, HoldState::Open { expires_at: at(80) }, "extend returns the new expiry");
    assert_eq!(expect_ok(store.expire(at_ms(79_999), 10).await), 0, "an extended hold is not overdue yet");
    let state = expect_ok(store.extend(&id, at(100)).await);
    assert_eq!(
        state,
        HoldState::Open { expires_at: at(100) },
        "a hold can be extended after its first expiry"
    );
    let other = HoldRequest { now: at(99), ..request("i", &[leg("w", day_terms(9), 4)]) };
    hold(&store, other).await;
    assert_eq!(usage(&store, "w", &day_terms(9)).await, [(0, 9)], "an extended hold still holds");
    assert_eq!(expect_ok(store.expire(at(100), 10).await), 2, "it is overdue at its new expiry");
    check_audit(&store).await;
}

/// Extending to an earlier time leaves the expiry unchanged.
pub async fn extend_never_shortens_hold(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(9), 5)])).await;
    for expires_at in [at(59), at(60), at(-9)] {
        let state = expect_ok(store.extend(&HoldId::new("h"), expires_at).await);
        assert_eq!(state, HoldState::Open { expires_at: at(60) }, "an expiry is never brought forward");
    }
    assert_eq!(expect_ok(store.expire(at_ms(59_999), 10).await), 0, "an expiry is never brought forward");
    assert_eq!(expect_ok(store.expire(at(60), 10).await), 1);
    assert_eq!(entries(&store, "w").await.len(), 2, "extend writes no entry");
}

/// A hold of a clock that was ahead ends at the latest possible time, for its wallet too; a hold of nothing keeps its
/// end.
pub async fn hold_of_corrected_clock_is_shortened(store: LedgerStore) {
    let day = 86_400;
    let ahead = |id: &str, wallet: &str| HoldRequest {
        now: at(day),
        expires_at: at(day + 60),
        ..request(id, &[leg(wallet, day_terms(2), 2)])
    };
    hold(&store, ahead("h", "w")).await;
    hold(&store, ahead("i", "v")).await;
    hold(&store, request("j", &[leg("u", day_terms(2), 1)])).await;
    hold(&store, HoldRequest { expires_at: at(day), ..request("n", &[leg("w", day_terms(2), 0)]) }).await;
    expect_ok(store.shorten_holds(at(600)).await);
    for (id, expires) in [("h", 600), ("i", 600), ("j", 60), ("n", day)] {
        let state = expect_ok(store.extend(&HoldId::new(id), at(0)).await);
        assert_eq!(state, HoldState::Open { expires_at: at(expires) }, "{id}");
    }
    let state = expect_ok(store.extend(&HoldId::new("i"), at(660)).await);
    assert_eq!(state, HoldState::Open { expires_at: at(660) }, "its holder extends it again");
    let next =
        HoldRequest { now: at(600), expires_at: at(660), ..request("k", &[leg("w", day_terms(2), 2)]) };
    hold(&store, next).await;
    assert_eq!(expect_ok(store.expire(at(600), 10).await), 1, "the hold that ended a minute after its start");
    assert_eq!(expect_ok(store.expire(at(660), 10).await), 2, "the extended hold and the new one");
    check_audit(&store).await;
}

/// Extending an ended hold returns its final state.
pub async fn extend_of_ended_hold_returns_final_state(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(9), 5)])).await;
    hold(&store, request("i", &[leg("w", day_terms(9), 2)])).await;
    settle(&store, "h", &[1]).await;
    expect_ok(store.expire(at(60), 10).await);
    let state = expect_ok(store.extend(&HoldId::new("h"), at(99)).await);
    assert_eq!(state, HoldState::Settled { spent: vec![1] }, "a settled hold stays settled");
    let state = expect_ok(store.extend(&HoldId::new("i"), at(99)).await);
    assert_eq!(state, HoldState::Expired, "an expired hold stays expired");
    assert_eq!(usage(&store, "w", &day_terms(9)).await, [(1, 0)]);
}

/// Expire takes the longest overdue holds first, up to the limit.
pub async fn expire_takes_longest_overdue_first(store: LedgerStore) {
    for (id, expires) in [("c", 30), ("a", 10), ("d", 40), ("b", 20), ("later", 500)] {
        let hold_request =
            HoldRequest { expires_at: at(expires), ..request(id, &[leg(id, day_terms(1), 1)]) };
        hold(&store, hold_request).await;
    }
    assert_eq!(expect_ok(store.expire(at(9), 10).await), 0, "nothing is overdue before its expiry");
    assert_eq!(expect_ok(store.expire(at(100), 0).await), 0, "a limit of 0 expires nothing");
    let mut expired = Vec::new();
    for expect in [1, 2, 1, 0] {
        let before = expired.len();
        assert_eq!(
            expect_ok(store.expire(at(100), expect.max(1)).await),
            expect,
            "as many as requested and available"
        );
        for id in ["a", "b", "c", "d", "later"] {
            let gone = usage(&store, id, &day_terms(1)).await == [(0, 0)];
            if gone && !expired.contains(&id) {
                expired.push(id);
            }
        }
        assert_eq!(expired.len() - before, expect as usize, "the count matches the expired holds");
    }
    assert_eq!(expired, ["a", "b", "c", "d"], "the longest overdue first, and only overdue holds");
}

/// An expired hold returns its amounts in all legs and pools.
pub async fn expire_returns_held_amounts(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 5), Pool::Purchased]);
    hold(&store, request("h", &[leg("w", pools.clone(), 9), leg("v", day_terms(1), 1)])).await;
    assert_eq!(expect_ok(store.expire(at(61), u32::MAX).await), 1);
    assert_eq!(usage(&store, "w", &pools).await, [(0, 0), (0, 0)], "everything is returned");
    assert_eq!(available(&store, "w", &pools).await, 15);
    assert_eq!(available(&store, "v", &day_terms(1)).await, 1, "in every leg");
    let last = entries(&store, "v").await.pop().expect("an expiry leaves an entry");
    assert_eq!((last.kind, last.at), (EntryKind::Expired, at(61)), "the entry has the time of the sweep");
    check_audit(&store).await;
}
