//! Settling, extending and expiring: how holds end.

use super::*;
use crate::{error::ErrorKind, testing::refused};

/// A settlement spends its figure and returns the rest.
pub async fn a_settlement_spends_a_part_and_returns_the_rest(store: Store) {
    hold(&store, request("h", &[leg("w", day(10), 5)])).await;
    let balances = settle(&store, "h", &[3]).await;
    let pool = PoolBalance { spent: 3, ..PoolBalance::fresh(bucket("day/2026-11-20", 10)) };
    let expect = Balance { wallet: WalletId::new("w"), pools: vec![pool] };
    assert_eq!(balances, [expect], "it answers with the balances of the pools that were held");
    assert_eq!(used(&store, "w", &day(10)).await, [(3, 0)]);
    let entries = entries(&store, "w").await;
    let steps: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.amount)).collect();
    let expect = [(EntryKind::Held, 5), (EntryKind::Spent, 3), (EntryKind::Returned, 2)];
    assert_eq!(steps, expect, "a settlement leaves an entry for what is spent and one for what is returned");
    assert!(entries[1..].iter().all(|entry| entry.at == at(10)), "they happened when it was settled");
    assert!(entries.iter().all(|entry| entry.cause == "h" && entry.memo == "memo of h"), "of the hold's id");
    audited(&store).await;
}

/// A settlement of all zeros returns everything.
pub async fn all_zero_releases(store: Store) {
    hold(&store, request("h", &[leg("w", day(5), 5), leg("v", day(5), 1)])).await;
    settle(&store, "h", &[0, 0]).await;
    assert_eq!(available(&store, "w", &day(5)).await, 5, "a released hold returns all");
    let expect = [(EntryKind::Held, 5), (EntryKind::Returned, 5)];
    assert_eq!(steps(&store, "w").await, expect, "nothing spent, nothing written as spent");
    let outcome = done(store.settle(settlement("h", &[5, 1])).await);
    let expect = SettleOutcome::Known { state: HoldState::Closed { spent: vec![0, 0] } };
    assert_eq!(outcome, expect, "a released hold is closed");
    audited(&store).await;
}

/// What is spent is taken from the pools in the order in which they were held.
pub async fn what_is_spent_is_taken_in_the_order_of_the_holding(store: Store) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 5), bucket("unused", 0), Pool::Purchased]);
    hold(&store, request("h", &[leg("w", pools.clone(), 9)])).await;
    let balances = settle(&store, "h", &[6]).await;
    let held: Vec<_> = balances[0].pools.iter().map(|pool| pool.pool.bucket()).collect();
    assert_eq!(held, [Some("month/1"), None], "only pools that were held are settled, in that order");
    assert_eq!(used(&store, "w", &pools).await, [(5, 0), (0, 0), (1, 0)], "the first pool is spent first");
    let turned = terms(&[Pool::Purchased, bucket("other", 5)]);
    hold(&store, request("i", &[leg("w", turned.clone(), 10)])).await;
    settle(&store, "i", &[4]).await;
    assert_eq!(used(&store, "w", &turned).await, [(5, 0), (0, 0)], "in the order of the holding, no other");
    audited(&store).await;
}

/// Every leg is settled with the figure in its place.
pub async fn each_leg_is_settled_with_its_own_figure(store: Store) {
    let legs = [leg("c", day(9), 3), leg("a", day(9), 2), leg("b", day(9), 1)];
    hold(&store, request("h", &legs)).await;
    let balances = settle(&store, "h", &[2, 0, 1]).await;
    let names: Vec<_> = balances.iter().map(|balance| balance.wallet.as_str()).collect();
    assert_eq!(names, ["c", "a", "b"], "balances come in the order of the legs");
    for (wallet, spent) in [("c", 2), ("a", 0), ("b", 1)] {
        assert_eq!(used(&store, wallet, &day(9)).await, [(spent, 0)], "each leg has its own figure");
    }
    audited(&store).await;
}

/// A hold remembers its bucket: settling it in the next period does not touch that period.
pub async fn settling_after_the_period_touches_the_old_bucket(store: Store) {
    hold(&store, request("h", &[leg("w", day(5), 4)])).await;
    let both = terms(&[bucket("day/2026-11-20", 5), bucket("day/2026-11-21", 5)]);
    hold(&store, request("i", &[leg("w", terms(&[bucket("day/2026-11-21", 5)]), 5)])).await;
    let balances = settle(&store, "h", &[3]).await;
    assert_eq!(balances[0].pools[0].pool.bucket(), Some("day/2026-11-20"), "it settles where it was held");
    assert_eq!(used(&store, "w", &both).await, [(3, 0), (0, 5)], "the new period is untouched");
    audited(&store).await;
}

/// A hold that is overdue settles as long as nobody swept it.
pub async fn an_overdue_hold_that_nobody_swept_settles(store: Store) {
    hold(&store, request("h", &[leg("w", day(5), 4)])).await;
    assert_eq!(used(&store, "w", &day(5)).await, [(0, 4)]);
    let outcome = done(store.settle(Settle { now: at(9_999), ..settlement("h", &[4]) }).await);
    assert!(matches!(outcome, SettleOutcome::Settled { .. }), "late is not too late: {outcome:?}");
    assert_eq!(used(&store, "w", &day(5)).await, [(4, 0)], "what was done is charged");
    assert_eq!(done(store.expire(at(9_999), 10).await), 0, "what was settled does not expire");
    audited(&store).await;
}

/// A hold that has expired is never charged after the fact.
pub async fn an_expired_hold_is_never_charged(store: Store) {
    hold(&store, request("h", &[leg("w", day(5), 4)])).await;
    assert_eq!(done(store.expire(at(60), 10).await), 1, "a hold is overdue at its expiry");
    for spent in [4, 0] {
        let outcome = done(store.settle(settlement("h", &[spent])).await);
        let expect = SettleOutcome::Known { state: HoldState::Expired };
        assert_eq!(outcome, expect, "an expired hold stays expired");
    }
    assert_eq!(used(&store, "w", &day(5)).await, [(0, 0)], "and costs nothing");
    let expect = [(EntryKind::Held, 4), (EntryKind::Expired, 4)];
    assert_eq!(steps(&store, "w").await, expect, "its end is in the entries");
    audited(&store).await;
}

/// Settling again changes nothing and tells what the first settlement did.
pub async fn a_hold_is_settled_once(store: Store) {
    hold(&store, request("h", &[leg("w", day(9), 5)])).await;
    settle(&store, "h", &[2]).await;
    for spent in [2, 5, 0] {
        let outcome = done(store.settle(settlement("h", &[spent])).await);
        let expect = SettleOutcome::Known { state: HoldState::Closed { spent: vec![2] } };
        assert_eq!(outcome, expect, "the first settlement stays");
    }
    assert_eq!(used(&store, "w", &day(9)).await, [(2, 0)], "settling again spends nothing");
    assert_eq!(entries(&store, "w").await.len(), 3, "settling again leaves no entry");
    audited(&store).await;
}

/// Settling a hold that was never made is answered, and extending one is an error.
pub async fn a_hold_that_nobody_made_is_unknown(store: Store) {
    let outcome = done(store.settle(settlement("nobody's", &[1])).await);
    assert_eq!(outcome, SettleOutcome::Unknown, "there is no such hold");
    let extended = store.extend(&HoldId::new("nobody's"), at(99)).await;
    refused(extended, ErrorKind::NotFound, "only a hold that was made can be extended");
}

/// A wrong number of figures, or one above its leg, is invalid; the hold stays open.
pub async fn figures_out_of_bounds_change_nothing(store: Store) {
    hold(&store, request("h", &[leg("w", day(9), 5), leg("v", day(9), 2)])).await;
    for figures in [&[][..], &[5], &[5, 2, 0], &[6, 0], &[0, 3], &[u64::MAX, 2], &[5, u64::MAX]] {
        let outcome = store.settle(settlement("h", figures)).await;
        refused(outcome, ErrorKind::Invalid, "one figure for each leg, none above what it holds");
        assert_eq!(used(&store, "w", &day(9)).await, [(0, 5)], "an invalid settlement does nothing");
        assert_eq!(used(&store, "v", &day(9)).await, [(0, 2)], "an invalid settlement does nothing");
    }
    settle(&store, "h", &[5, 2]).await;
    audited(&store).await;
}

/// A hold that has ended answers with its end, whatever the figures.
pub async fn an_ended_hold_ignores_the_figures(store: Store) {
    hold(&store, request("h", &[leg("w", day(9), 5)])).await;
    settle(&store, "h", &[1]).await;
    for figures in [&[][..], &[1, 1], &[6]] {
        let outcome = done(store.settle(settlement("h", figures)).await);
        let expect = SettleOutcome::Known { state: HoldState::Closed { spent: vec![1] } };
        assert_eq!(outcome, expect, "an ended hold is known before its figures are looked at");
    }
}

/// A hold that was extended is not overdue at its first expiry, but at its new one.
pub async fn an_extended_hold_lives_on(store: Store) {
    hold(&store, request("h", &[leg("w", day(9), 5)])).await;
    let id = HoldId::new("h");
    let state = done(store.extend(&id, at(80)).await);
    assert_eq!(state, HoldState::Open { expires_at: at(80) }, "extending answers with the new expiry");
    assert_eq!(done(store.expire(at_ms(79_999), 10).await), 0, "an extended hold is not overdue yet");
    let state = done(store.extend(&id, at(100)).await);
    assert_eq!(state, HoldState::Open { expires_at: at(100) }, "also when its first expiry has passed");
    let other = HoldRequest { now: at(99), ..request("i", &[leg("w", day(9), 4)]) };
    hold(&store, other).await;
    assert_eq!(used(&store, "w", &day(9)).await, [(0, 9)], "an extended hold holds");
    assert_eq!(done(store.expire(at(100), 10).await), 2, "it is overdue at its new expiry");
    audited(&store).await;
}

/// An extension to an earlier moment leaves the expiry as it was.
pub async fn extending_never_shortens(store: Store) {
    hold(&store, request("h", &[leg("w", day(9), 5)])).await;
    for until in [at(59), at(60), at(-9)] {
        let state = done(store.extend(&HoldId::new("h"), until).await);
        assert_eq!(state, HoldState::Open { expires_at: at(60) }, "an expiry is never brought forward");
    }
    assert_eq!(done(store.expire(at_ms(59_999), 10).await), 0, "an expiry is never brought forward");
    assert_eq!(done(store.expire(at(60), 10).await), 1);
    assert_eq!(entries(&store, "w").await.len(), 2, "extending leaves no entry");
}

/// Extending a hold that has ended tells how it ended.
pub async fn what_has_ended_is_not_extended(store: Store) {
    hold(&store, request("h", &[leg("w", day(9), 5)])).await;
    hold(&store, request("i", &[leg("w", day(9), 2)])).await;
    settle(&store, "h", &[1]).await;
    done(store.expire(at(60), 10).await);
    let state = done(store.extend(&HoldId::new("h"), at(99)).await);
    assert_eq!(state, HoldState::Closed { spent: vec![1] }, "a settled hold stays settled");
    let state = done(store.extend(&HoldId::new("i"), at(99)).await);
    assert_eq!(state, HoldState::Expired, "an expired hold stays expired");
    assert_eq!(used(&store, "w", &day(9)).await, [(1, 0)]);
}

/// Expiring goes by how long holds are overdue, at most as many as asked.
pub async fn the_longest_overdue_expire_first(store: Store) {
    for (id, expires) in [("c", 30), ("a", 10), ("d", 40), ("b", 20), ("later", 500)] {
        let asked = HoldRequest { expires_at: at(expires), ..request(id, &[leg(id, day(1), 1)]) };
        hold(&store, asked).await;
    }
    assert_eq!(done(store.expire(at(9), 10).await), 0, "nothing is overdue before its expiry");
    assert_eq!(done(store.expire(at(100), 0).await), 0, "a limit of 0 expires nothing");
    let mut expired = Vec::new();
    for expect in [1, 2, 1, 0] {
        let before = expired.len();
        assert_eq!(
            done(store.expire(at(100), expect.max(1)).await),
            expect,
            "as many as asked, as there are"
        );
        for id in ["a", "b", "c", "d", "later"] {
            let gone = used(&store, id, &day(1)).await == [(0, 0)];
            if gone && !expired.contains(&id) {
                expired.push(id);
            }
        }
        assert_eq!(expired.len() - before, expect as usize, "it expires as many as it says");
    }
    assert_eq!(expired, ["a", "b", "c", "d"], "the longest overdue first, and only what is overdue");
}

/// An expired hold returns what it held, in all its legs and pools.
pub async fn expiring_returns_what_was_held(store: Store) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 5), Pool::Purchased]);
    hold(&store, request("h", &[leg("w", pools.clone(), 9), leg("v", day(1), 1)])).await;
    assert_eq!(done(store.expire(at(61), u32::MAX).await), 1);
    assert_eq!(used(&store, "w", &pools).await, [(0, 0), (0, 0)], "all is returned");
    assert_eq!(available(&store, "w", &pools).await, 15);
    assert_eq!(available(&store, "v", &day(1)).await, 1, "in every leg");
    let last = entries(&store, "v").await.pop().expect("an expiry leaves an entry");
    assert_eq!((last.kind, last.at), (EntryKind::Expired, at(61)), "it happened when it was swept");
    audited(&store).await;
}
