//! Calls at the same time: whatever their order, the rules hold.

use super::*;
use crate::{ledger::RevokeOutcome, testing::together};

/// Tasks that race for one wallet take all of it, and not one more.
pub async fn many_at_once_drain_a_wallet_to_exactly_nothing(store: Store) {
    grant(&store, "g", "w", 15).await;
    let pools = terms(&[bucket("month/1", 10), Pool::Purchased]);
    let outcomes = together((0..40).map(|n| {
        let (store, pools) = (Arc::clone(&store), pools.clone());
        async move { done(store.hold(request(&format!("h{n}"), &[leg("w", pools, 1)])).await) }
    }))
    .await;
    let held = outcomes.iter().filter(|outcome| matches!(outcome, HoldOutcome::Held { .. })).count();
    assert_eq!(held, 25, "as many are held as there are credits");
    assert_eq!(used(&store, "w", &pools).await, [(0, 10), (0, 15)], "the wallet is drained to nothing");
    let settled = together((0..40).map(|n| {
        let store = Arc::clone(&store);
        async move { done(store.settle(settlement(&format!("h{n}"), &[1])).await) }
    }))
    .await;
    let settled = settled.iter().filter(|outcome| matches!(outcome, SettleOutcome::Settled { .. })).count();
    assert_eq!(settled, 25, "what was held settles, what was refused is unknown");
    assert_eq!(used(&store, "w", &pools).await, [(10, 0), (15, 0)]);
    audited(&store).await;
}

/// Of the same hold made at the same time, one is held and the others know it.
pub async fn many_at_once_with_one_id_hold_once(store: Store) {
    for (id, spend) in [("h", false), ("s", true)] {
        let outcomes = together((0..16).map(|_| {
            let store = Arc::clone(&store);
            let ask = request(id, &[leg(id, day(20), 2), leg("service", day(50), 1)]);
            async move { done(if spend { store.spend(ask).await } else { store.hold(ask).await }) }
        }))
        .await;
        let held = outcomes.iter().filter(|outcome| matches!(outcome, HoldOutcome::Held { .. })).count();
        assert_eq!(held, 1, "one id takes effect once");
        let known = outcomes.iter().filter(|outcome| matches!(outcome, HoldOutcome::Known { .. })).count();
        assert_eq!(known, 15, "the others are told what it did: {outcomes:?}");
        let balance = done(store.balance(&WalletId::new(id), &day(20)).await);
        assert_eq!(balance.pools[0].used(), 2, "one id takes effect once");
    }
    audited(&store).await;
}

/// Holds whose legs name the same wallets in opposite orders do not wait for each other.
pub async fn crossing_legs_do_not_wait_for_each_other(store: Store) {
    let outcomes = together((0..40).map(|n| {
        let store = Arc::clone(&store);
        async move {
            let (a, b, c) = (leg("a", day(500), 1), leg("b", day(500), 2), leg("c", day(500), 1));
            let legs = [vec![a.clone(), b.clone()], vec![b.clone(), a.clone()], vec![c.clone(), b, a]];
            let legs = &legs[n % 3];
            let id = format!("h{n}");
            let held = done(store.hold(request(&id, legs)).await);
            let spent: Vec<u64> = legs.iter().map(|leg| leg.amount).collect();
            (held, done(store.settle(settlement(&id, &spent)).await))
        }
    }))
    .await;
    for (held, settled) in outcomes {
        assert!(matches!(held, HoldOutcome::Held { .. }), "what is covered is held: {held:?}");
        assert!(matches!(settled, SettleOutcome::Settled { .. }), "what is held settles: {settled:?}");
    }
    for (wallet, spent) in [("a", 40), ("b", 80), ("c", 13)] {
        assert_eq!(used(&store, wallet, &day(500)).await, [(spent, 0)], "nothing is lost between them");
    }
    audited(&store).await;
}

/// A hold that is settled, released and swept at the same time ends in one of these ways.
pub async fn a_hold_ends_once_however_many_end_it(store: Store) {
    for round in 0..8 {
        let id = format!("h{round}");
        hold(&store, request(&id, &[leg(&id, day(5), 5)])).await;
        let ended = together((0..9).map(|n| {
            let (store, id) = (Arc::clone(&store), id.clone());
            async move {
                match n % 3 {
                    0 => u32::from(settles(&store, &id, 3).await),
                    1 => u32::from(settles(&store, &id, 0).await),
                    _ => done(store.expire(at(60), 10).await),
                }
            }
        }))
        .await;
        assert_eq!(ended.iter().sum::<u32>(), 1, "a hold ends once");
        let spent = match done(store.extend(&HoldId::new(&id), at(99)).await) {
            HoldState::Closed { spent } => spent[0],
            HoldState::Expired => 0,
            HoldState::Open { .. } => panic!("a hold that was ended is not open"),
        };
        assert_eq!(used(&store, &id, &day(5)).await, [(spent, 0)], "it ends the way that it tells");
    }
    audited(&store).await;
}

async fn settles(store: &Store, id: &str, spent: u64) -> bool {
    let outcome = done(store.settle(settlement(id, &[spent])).await);
    matches!(outcome, SettleOutcome::Settled { .. })
}

/// Sweeping in many places at once expires each overdue hold once.
pub async fn sweeping_in_many_places_expires_each_once(store: Store) {
    for n in 0..30 {
        hold(&store, request(&format!("h{n}"), &[leg("w", day(30), 1)])).await;
    }
    let counts = together((0..8).map(|_| {
        let store = Arc::clone(&store);
        async move {
            let mut count = 0;
            loop {
                match done(store.expire(at(60), 3).await) {
                    0 => return count,
                    swept => count += swept,
                }
            }
        }
    }))
    .await;
    assert_eq!(counts.iter().sum::<u32>(), 30, "each overdue hold is counted by one sweep");
    assert_eq!(used(&store, "w", &day(30)).await, [(0, 0)]);
    assert_eq!(entries(&store, "w").await.len(), 60, "and expires once");
    audited(&store).await;
}

/// The same grant made many times at once is added once, and so is a revocation.
pub async fn a_grant_at_once_is_added_once(store: Store) {
    let outcomes = together((0..12).map(|_| {
        let store = Arc::clone(&store);
        async move { done(store.grant(credits("g", "w", 10)).await) }
    }))
    .await;
    let granted = outcomes.iter().filter(|outcome| matches!(outcome, GrantOutcome::Granted { .. })).count();
    assert_eq!(granted, 1, "one id is granted once");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == GrantOutcome::Known).count(), 11);
    let outcomes = together((0..12).map(|n| {
        let store = Arc::clone(&store);
        async move { done(store.revoke(taking(&format!("r{}", n % 3), "g", 4)).await) }
    }))
    .await;
    let taken: u64 = outcomes
        .iter()
        .map(|outcome| match outcome {
            RevokeOutcome::Revoked { taken, .. } => *taken,
            _ => 0,
        })
        .sum();
    assert_eq!(taken, 10, "three revocations of 4 take back the 10 that were granted, no more");
    assert_eq!(available(&store, "w", &bought()).await, 0);
    audited(&store).await;
}

/// However spending and revoking race, no credit is both spent and taken back.
pub async fn revoking_while_spending_never_overdraws(store: Store) {
    grant(&store, "g", "w", 20).await;
    let counted = together((0..24).map(|n| {
        let store = Arc::clone(&store);
        async move {
            if n % 2 == 0 {
                let ask = request(&format!("s{n}"), &[leg("w", bought(), 2)]);
                let spent = matches!(done(store.spend(ask).await), HoldOutcome::Held { .. });
                return 2 * u64::from(spent);
            }
            match done(store.revoke(taking(&format!("r{n}"), "g", 3)).await) {
                RevokeOutcome::Revoked { taken, .. } => taken,
                other => panic!("a new revocation of a known grant is done: {other:?}"),
            }
        }
    }))
    .await;
    let left = available(&store, "w", &bought()).await;
    assert_eq!(counted.iter().sum::<u64>() + left, 20, "every credit is spent, taken back or left, once");
    audited(&store).await;
}

/// A call that is dropped while it runs is done or not done, and a repeat tells which.
pub async fn a_dropped_call_is_done_or_not_done(store: Store) {
    grant(&store, "g", "w", 100).await;
    let pools = terms(&[bucket("month/1", 10), Pool::Purchased]);
    for n in 0..24 {
        let ask = request(&format!("h{n}"), &[leg("w", pools.clone(), 3), leg("v", day(100), 1)]);
        // The first is dropped at once, later ones after a little longer.
        let patience = std::time::Duration::from_micros(n * 60);
        let dropped = tokio::time::timeout(patience, store.hold(ask.clone())).await;
        assert!(!matches!(dropped, Ok(Err(_))), "a call within its contract succeeds: {dropped:?}");
        let outcome = done(store.hold(ask).await);
        let known = matches!(&outcome, HoldOutcome::Known { state: HoldState::Open { .. }, .. });
        let held = matches!(&outcome, HoldOutcome::Held { .. });
        assert!(known || (held && dropped.is_err()), "done or not done, nothing in between: {outcome:?}");
        let settle = settlement(&format!("h{n}"), &[2, 1]);
        drop(tokio::time::timeout(patience, store.settle(settle.clone())).await);
        let outcome = done(store.settle(settle).await);
        assert!(outcome != SettleOutcome::Unknown, "a hold is not lost by a dropped settlement");
    }
    assert_eq!(used(&store, "w", &pools).await, [(10, 0), (38, 0)], "each took effect once");
    assert_eq!(used(&store, "v", &day(100)).await, [(24, 0)], "in all its legs");
    audited(&store).await;
}
