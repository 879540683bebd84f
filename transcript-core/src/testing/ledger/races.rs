//! Conformance cases of concurrent calls: the rules apply in every order.

use super::*;
use crate::{ledger::RevokeOutcome, testing::call_concurrently};

/// Concurrent holds on one wallet take all of it, and nothing beyond.
pub async fn concurrent_holds_drain_wallet_to_zero(store: LedgerStore) {
    grant(&store, "g", "w", 15).await;
    let pools = terms(&[bucket("month/1", 10), Pool::Purchased]);
    let outcomes = call_concurrently(&store, 0..40, |store, n| {
        let pools = pools.clone();
        async move { expect_ok(store.hold(request(&format!("h{n}"), &[leg("w", pools, 1)])).await) }
    })
    .await;
    let held = outcomes.iter().filter(|outcome| matches!(outcome, HoldOutcome::Held { .. })).count();
    assert_eq!(held, 25, "as many holds succeed as there are credits");
    assert_eq!(usage(&store, "w", &pools).await, [(0, 10), (0, 15)], "the wallet is drained to zero");
    let settled = call_concurrently(&store, 0..40, |store, n| async move {
        expect_ok(store.settle(settle_request(&format!("h{n}"), &[1])).await)
    })
    .await;
    let settled = settled.iter().filter(|outcome| matches!(outcome, SettleOutcome::Settled { .. })).count();
    assert_eq!(settled, 25, "each successful hold settles; the others are not found");
    assert_eq!(usage(&store, "w", &pools).await, [(10, 0), (15, 0)]);
    check_audit(&store).await;
}

/// Of concurrent identical holds, one is held and the others return `Exists`.
pub async fn concurrent_holds_with_one_id_hold_once(store: LedgerStore) {
    for (id, spend) in [("h", false), ("s", true)] {
        let outcomes = call_concurrently(&store, 0..16, |store, _| {
            let hold_request = request(id, &[leg(id, day_terms(20), 2), leg("service", day_terms(50), 1)]);
            async move {
                expect_ok(if spend {
                    store.spend(hold_request).await
                } else {
                    store.hold(hold_request).await
                })
            }
        })
        .await;
        let held = outcomes.iter().filter(|outcome| matches!(outcome, HoldOutcome::Held { .. })).count();
        assert_eq!(held, 1, "one id takes effect once");
        let known = outcomes.iter().filter(|outcome| matches!(outcome, HoldOutcome::Exists { .. })).count();
        assert_eq!(known, 15, "the others return the existing hold: {outcomes:?}");
        let balance = expect_ok(store.balance(&WalletId::new(id), &day_terms(20)).await);
        assert_eq!(balance.pools[0].used(), 2, "one id takes effect once");
    }
    check_audit(&store).await;
}

/// Holds that name the same wallets in opposite orders do not deadlock.
pub async fn concurrent_holds_with_crossed_legs_do_not_deadlock(store: LedgerStore) {
    let outcomes = call_concurrently(&store, 0..40, |store, n| async move {
        let (a, b, c) =
            (leg("a", day_terms(500), 1), leg("b", day_terms(500), 2), leg("c", day_terms(500), 1));
        let legs = [vec![a.clone(), b.clone()], vec![b.clone(), a.clone()], vec![c.clone(), b, a]];
        let legs = &legs[n % 3];
        let id = format!("h{n}");
        let held = expect_ok(store.hold(request(&id, legs)).await);
        let spent: Vec<u64> = legs.iter().map(|leg| leg.amount).collect();
        (held, expect_ok(store.settle(settle_request(&id, &spent)).await))
    })
    .await;
    for (held, settled) in outcomes {
        assert!(matches!(held, HoldOutcome::Held { .. }), "a covered hold is held: {held:?}");
        assert!(matches!(settled, SettleOutcome::Settled { .. }), "an open hold settles: {settled:?}");
    }
    for (wallet, spent) in [("a", 40), ("b", 80), ("c", 13)] {
        assert_eq!(usage(&store, wallet, &day_terms(500)).await, [(spent, 0)], "no update is lost");
    }
    check_audit(&store).await;
}

/// A hold that is settled, released and expired concurrently ends in exactly one of these ways.
pub async fn concurrent_settle_and_expire_end_hold_once(store: LedgerStore) {
    for round in 0..8 {
        let id = format!("h{round}");
        hold(&store, request(&id, &[leg(&id, day_terms(5), 5)])).await;
        let ended = call_concurrently(&store, 0..9, |store, n| {
            let id = id.clone();
            async move {
                match n % 3 {
                    0 => u32::from(settles(&store, &id, 3).await),
                    1 => u32::from(settles(&store, &id, 0).await),
                    _ => expect_ok(store.expire(at(60), 10).await),
                }
            }
        })
        .await;
        assert_eq!(ended.iter().sum::<u32>(), 1, "a hold ends once");
        let spent = match expect_ok(store.extend(&HoldId::new(&id), at(99)).await) {
            HoldState::Settled { spent } => spent[0],
            HoldState::Expired => 0,
            HoldState::Open { .. } => panic!("an ended hold is not open"),
        };
        assert_eq!(
            usage(&store, &id, &day_terms(5)).await,
            [(spent, 0)],
            "the balance matches the final state"
        );
    }
    check_audit(&store).await;
}

async fn settles(store: &LedgerStore, id: &str, spent: u64) -> bool {
    let outcome = expect_ok(store.settle(settle_request(id, &[spent])).await);
    matches!(outcome, SettleOutcome::Settled { .. })
}

/// Concurrent expire calls expire each overdue hold once.
pub async fn concurrent_expire_ends_each_hold_once(store: LedgerStore) {
    for n in 0..30 {
        hold(&store, request(&format!("h{n}"), &[leg("w", day_terms(30), 1)])).await;
    }
    let counts = call_concurrently(&store, 0..8, |store, _| async move {
        let mut count = 0;
        loop {
            match expect_ok(store.expire(at(60), 3).await) {
                0 => return count,
                swept => count += swept,
            }
        }
    })
    .await;
    assert_eq!(counts.iter().sum::<u32>(), 30, "each overdue hold is counted by one call");
    assert_eq!(usage(&store, "w", &day_terms(30)).await, [(0, 0)]);
    assert_eq!(entries(&store, "w").await.len(), 60, "each hold expires once");
    check_audit(&store).await;
}

/// Concurrent identical grants add credits once; concurrent identical revocations take them once.
pub async fn concurrent_grants_with_one_id_add_once(store: LedgerStore) {
    let outcomes = call_concurrently(&store, 0..12, |store, _| async move {
        expect_ok(store.grant(grant_request("g", "w", 10)).await)
    })
    .await;
    let granted = outcomes.iter().filter(|outcome| matches!(outcome, GrantOutcome::Granted { .. })).count();
    assert_eq!(granted, 1, "one id is granted once");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == GrantOutcome::Exists).count(), 11);
    let outcomes = call_concurrently(&store, 0..12, |store, n| async move {
        expect_ok(store.revoke(revoke_request(&format!("r{}", n % 3), "g", 4)).await)
    })
    .await;
    let taken: u64 = outcomes
        .iter()
        .map(|outcome| match outcome {
            RevokeOutcome::Revoked { taken, .. } => *taken,
            _ => 0,
        })
        .sum();
    assert_eq!(taken, 10, "three revocations of 4 take the 10 granted credits and no more");
    assert_eq!(available(&store, "w", &purchased_terms()).await, 0);
    check_audit(&store).await;
}

/// No credit is both spent and revoked when both run concurrently.
pub async fn concurrent_revoke_and_spend_never_overdraw(store: LedgerStore) {
    grant(&store, "g", "w", 20).await;
    let counted = call_concurrently(&store, 0..24, |store, n| async move {
        if n % 2 == 0 {
            let hold_request = request(&format!("s{n}"), &[leg("w", purchased_terms(), 2)]);
            let spent = matches!(expect_ok(store.spend(hold_request).await), HoldOutcome::Held { .. });
            return 2 * u64::from(spent);
        }
        match expect_ok(store.revoke(revoke_request(&format!("r{n}"), "g", 3)).await) {
            RevokeOutcome::Revoked { taken, .. } => taken,
            other => panic!("a new revocation of a known grant succeeds: {other:?}"),
        }
    })
    .await;
    let left = available(&store, "w", &purchased_terms()).await;
    assert_eq!(
        counted.iter().sum::<u64>() + left,
        20,
        "every credit is spent, revoked or left, exactly once"
    );
    check_audit(&store).await;
}

/// A dropped call is applied fully or not at all; a repeat returns which.
pub async fn dropped_call_is_applied_fully_or_not_at_all(store: LedgerStore) {
    grant(&store, "g", "w", 100).await;
    let pools = terms(&[bucket("month/1", 10), Pool::Purchased]);
    for n in 0..24 {
        let hold_request =
            request(&format!("h{n}"), &[leg("w", pools.clone(), 3), leg("v", day_terms(100), 1)]);
        // The first call is dropped immediately, each later one 60 µs later than the one before.
        let timeout = std::time::Duration::from_micros(n * 60);
        let dropped = tokio::time::timeout(timeout, store.hold(hold_request.clone())).await;
        assert!(!matches!(dropped, Ok(Err(_))), "a valid call succeeds: {dropped:?}");
        let outcome = expect_ok(store.hold(hold_request).await);
        let known = matches!(&outcome, HoldOutcome::Exists { state: HoldState::Open { .. }, .. });
        let held = matches!(&outcome, HoldOutcome::Held { .. });
        assert!(known || (held && dropped.is_err()), "applied fully or not at all: {outcome:?}");
        let settle = settle_request(&format!("h{n}"), &[2, 1]);
        drop(tokio::time::timeout(timeout, store.settle(settle.clone())).await);
        let outcome = expect_ok(store.settle(settle).await);
        assert!(outcome != SettleOutcome::HoldNotFound, "a dropped settle does not lose the hold");
    }
    assert_eq!(usage(&store, "w", &pools).await, [(10, 0), (38, 0)], "each call took effect once");
    assert_eq!(usage(&store, "v", &day_terms(100)).await, [(24, 0)], "in all legs");
    check_audit(&store).await;
}
