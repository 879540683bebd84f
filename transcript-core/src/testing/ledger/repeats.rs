//! Repeats: the same id never takes effect twice.

use super::*;

/// A repeat of a hold tells that it is open, and holds nothing again.
pub async fn the_same_hold_again_is_known(store: Store) {
    let asked = request("h", &[leg("w", day(10), 3), leg("v", day(10), 1)]);
    hold(&store, asked.clone()).await;
    let later = HoldRequest { now: at(5), expires_at: at(99), memo: "another".to_owned(), ..asked };
    let HoldOutcome::Known { state, balances } = done(store.hold(later).await) else {
        panic!("the same wallets and amounts, in order, are the same body")
    };
    let expect = HoldState::Open { expires_at: at(60) };
    assert_eq!(state, expect, "a repeat tells the state and changes no expiry");
    let held: Vec<_> = balances.iter().map(|balance| balance.pools[0].held).collect();
    assert_eq!(held, [3, 1], "a repeat holds nothing again and tells the present balances");
    assert_eq!(entries(&store, "w").await.len(), 1, "a repeat leaves no entry");

    let other_terms = request("h", &[leg("w", bought(), 3), leg("v", day(1), 1)]);
    let HoldOutcome::Known { balances, .. } = done(store.hold(other_terms).await) else {
        panic!("the terms are no part of the body")
    };
    assert_eq!(balances[0].pools, [PoolBalance::fresh(Pool::Purchased)], "balances are those of its terms");
    audited(&store).await;
}

/// A repeat of a hold that has ended tells how.
pub async fn a_repeat_after_the_end_tells_the_end(store: Store) {
    let asked = request("h", &[leg("w", day(10), 3)]);
    hold(&store, asked.clone()).await;
    settle(&store, "h", &[2]).await;
    let outcome = done(store.hold(asked.clone()).await);
    let HoldOutcome::Known { state, balances } = outcome else {
        panic!("a settled hold is known: {outcome:?}")
    };
    assert_eq!(state, HoldState::Closed { spent: vec![2] }, "the figures with which it was settled");
    assert_eq!((balances[0].pools[0].spent, balances[0].pools[0].held), (2, 0), "nothing is held again");
}

/// A repeat of a hold that is overdue expires it first, as any hold on its wallet does.
pub async fn a_repeat_of_an_overdue_hold_finds_it_expired(store: Store) {
    let asked = request("h", &[leg("w", day(3), 3)]);
    hold(&store, asked.clone()).await;
    let outcome = done(store.hold(HoldRequest { now: at(60), ..asked }).await);
    let HoldOutcome::Known { state, balances } = outcome else {
        panic!("an expired hold is known, its id is never used again: {outcome:?}")
    };
    assert_eq!(state, HoldState::Expired, "the overdue holds of the wallets expire first");
    assert_eq!(balances[0].available(), 3, "what it held is returned");
    audited(&store).await;
}

/// An id with other wallets or amounts, or in another order, is a conflict, and nothing is held.
pub async fn the_same_id_with_another_body_is_a_conflict(store: Store) {
    let (a, b) = (leg("a", day(10), 3), leg("b", day(10), 2));
    hold(&store, request("h", &[a.clone(), b.clone()])).await;
    for legs in [
        vec![a.clone()],
        vec![b.clone(), a.clone()],
        vec![a.clone(), b.clone(), leg("c", day(10), 1)],
        vec![a.clone(), leg("b", day(10), 3)],
        vec![a.clone(), leg("c", day(10), 2)],
        vec![leg("a", day(10), 99), b.clone()],
    ] {
        let outcome = done(store.hold(request("h", &legs)).await);
        assert_eq!(outcome, HoldOutcome::Conflict, "another body under a known id: {legs:?}");
        let outcome = done(store.spend(request("h", &legs)).await);
        assert_eq!(outcome, HoldOutcome::Conflict, "another body under a known id, spent: {legs:?}");
    }
    settle(&store, "h", &[3, 2]).await;
    let outcome = done(store.hold(request("h", &[a])).await);
    assert_eq!(outcome, HoldOutcome::Conflict, "also when the hold has ended");
    assert_eq!(used(&store, "a", &day(10)).await, [(3, 0)], "a conflict holds nothing");
    audited(&store).await;
}

/// A refused request can be made again under its id, with another body too.
pub async fn a_refused_request_leaves_its_id_unknown(store: Store) {
    let asked = request("h", &[leg("w", bought(), 3)]);
    let outcome = done(store.hold(asked.clone()).await);
    assert!(matches!(outcome, HoldOutcome::Refused { leg: 0, .. }), "nothing was bought: {outcome:?}");
    let outcome = done(store.settle(settlement("h", &[0])).await);
    assert_eq!(outcome, SettleOutcome::Unknown, "a refused hold is no hold");
    grant(&store, "g", "w", 2).await;
    let outcome = done(store.spend(asked).await);
    assert!(matches!(outcome, HoldOutcome::Refused { leg: 0, .. }), "too little was bought: {outcome:?}");
    hold(&store, request("h", &[leg("w", bought(), 2)])).await;
    audited(&store).await;
}

/// A spend is held and settled in full at once.
pub async fn a_spend_holds_and_settles_in_one(store: Store) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 5), Pool::Purchased]);
    let mut asked = request("h", &[leg("w", pools.clone(), 7), leg("v", day(1), 1)]);
    asked.expires_at = at(-5);
    let HoldOutcome::Held { balances } = done(store.spend(asked.clone()).await) else {
        panic!("a spend that is covered is held, whatever its expiry")
    };
    let figures: Vec<_> = balances[0].pools.iter().map(|pool| (pool.spent, pool.held)).collect();
    assert_eq!(figures, [(5, 0), (2, 0)], "it answers with the balances of its terms after the spending");
    assert_eq!(used(&store, "w", &pools).await, [(5, 0), (2, 0)], "all is spent, nothing is held");
    let expect = [(EntryKind::Granted, 10), (EntryKind::Charged, 5), (EntryKind::Charged, 2)];
    assert_eq!(steps(&store, "w").await, expect, "it leaves one entry for each pool that gives");
    let entries = entries(&store, "v").await;
    let [entry] = entries.as_slice() else { panic!("one pool gave: {entries:?}") };
    assert_eq!((entry.kind, entry.amount, &entry.pool), (EntryKind::Charged, 1, &day(1).pools[0]));
    let memo = asked.memo.as_str();
    assert_eq!(
        (entry.at, entry.cause.as_str(), entry.memo.as_str()),
        (at(0), "h", memo),
        "it tells the whole"
    );
    assert_eq!(done(store.expire(at(1_000), 10).await), 0, "a spend never expires");

    let HoldOutcome::Known { state, .. } = done(store.spend(asked).await) else {
        panic!("a spend under a known id is known")
    };
    assert_eq!(state, HoldState::Closed { spent: vec![7, 1] }, "a repeat tells what was spent");
    assert_eq!(used(&store, "w", &pools).await, [(5, 0), (2, 0)], "and spends nothing again");
    let outcome = done(store.settle(settlement("h", &[0, 0])).await);
    let expect = SettleOutcome::Known { state: HoldState::Closed { spent: vec![7, 1] } };
    assert_eq!(outcome, expect, "what was spent cannot be released");
    let outcome = done(store.spend(request("i", &[leg("u", day(5), 1), leg("v", day(1), 1)])).await);
    assert!(matches!(outcome, HoldOutcome::Refused { leg: 1, .. }), "all legs or none: {outcome:?}");
    assert_eq!(used(&store, "u", &day(5)).await, [(0, 0)], "a refused spend spends nothing");
    assert_eq!(steps(&store, "v").await, [(EntryKind::Charged, 1)], "and leaves no entry, as a repeat does");
    audited(&store).await;
}

/// A hold's id is known to spend, and a spend's to hold.
pub async fn holds_and_spends_share_their_ids(store: Store) {
    let asked = request("h", &[leg("w", day(10), 3)]);
    hold(&store, asked.clone()).await;
    let HoldOutcome::Known { state, .. } = done(store.spend(asked).await) else {
        panic!("a spend under the id of a hold with its body is known")
    };
    assert_eq!(state, HoldState::Open { expires_at: at(60) }, "and does not settle it");
    let asked = request("s", &[leg("w", day(10), 3)]);
    done(store.spend(asked.clone()).await);
    let HoldOutcome::Known { state, .. } = done(store.hold(asked).await) else {
        panic!("a hold under the id of a spend with its body is known")
    };
    assert_eq!(state, HoldState::Closed { spent: vec![3] });
    assert_eq!(used(&store, "w", &day(10)).await, [(3, 3)]);
}
