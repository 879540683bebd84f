//! Conformance cases of repeated requests: an id never takes effect twice.

use super::*;

/// A repeated hold returns its open state and holds nothing again.
pub async fn hold_repeated_returns_exists(store: LedgerStore) {
    let hold_request = request("h", &[leg("w", day_terms(10), 3), leg("v", day_terms(10), 1)]);
    hold(&store, hold_request.clone()).await;
    let later = HoldRequest { now: at(5), expires_at: at(99), memo: "another".to_owned(), ..hold_request };
    let HoldOutcome::Exists { state, balances } = expect_ok(store.hold(later).await) else {
        panic!("the same wallets and amounts in the same order are the same body")
    };
    let expect = HoldState::Open { expires_at: at(60) };
    assert_eq!(state, expect, "a repeat returns the state and does not change the expiry");
    let held: Vec<_> = balances.iter().map(|balance| balance.pools[0].held).collect();
    assert_eq!(held, [3, 1], "a repeat holds nothing again and returns the current balances");
    assert_eq!(entries(&store, "w").await.len(), 1, "a repeat writes no entry");

    let other_terms = request("h", &[leg("w", purchased_terms(), 3), leg("v", day_terms(1), 1)]);
    let HoldOutcome::Exists { balances, .. } = expect_ok(store.hold(other_terms).await) else {
        panic!("the terms are not part of the body")
    };
    assert_eq!(
        balances[0].pools,
        [PoolBalance::unused(Pool::Purchased)],
        "the balances follow the terms of the repeat"
    );
    check_audit(&store).await;
}

/// A repeat of an ended hold returns how it ended.
pub async fn hold_repeated_after_settle_returns_settled(store: LedgerStore) {
    let hold_request = request("h", &[leg("w", day_terms(10), 3)]);
    hold(&store, hold_request.clone()).await;
    settle(&store, "h", &[2]).await;
    let outcome = expect_ok(store.hold(hold_request.clone()).await);
    let HoldOutcome::Exists { state, balances } = outcome else {
        panic!("a settled hold exists: {outcome:?}")
    };
    assert_eq!(state, HoldState::Settled { spent: vec![2] }, "the amounts of the settle");
    assert_eq!((balances[0].pools[0].spent, balances[0].pools[0].held), (2, 0), "nothing is held again");
}

/// A repeat of an overdue hold expires it first, like any hold on its wallet.
pub async fn hold_repeated_when_overdue_returns_expired(store: LedgerStore) {
    let hold_request = request("h", &[leg("w", day_terms(3), 3)]);
    hold(&store, hold_request.clone()).await;
    let outcome = expect_ok(store.hold(HoldRequest { now: at(60), ..hold_request }).await);
    let HoldOutcome::Exists { state, balances } = outcome else {
        panic!("an expired hold exists, and its id is never reused: {outcome:?}")
    };
    assert_eq!(state, HoldState::Expired, "the overdue holds of the wallets expire first");
    assert_eq!(balances[0].available(), 3, "the held amount is returned");
    check_audit(&store).await;
}

/// The same id with other wallets, amounts or order is a conflict, and nothing is held.
pub async fn hold_id_with_other_body_returns_conflict(store: LedgerStore) {
    let (a, b) = (leg("a", day_terms(10), 3), leg("b", day_terms(10), 2));
    hold(&store, request("h", &[a.clone(), b.clone()])).await;
    for legs in [
        vec![a.clone()],
        vec![b.clone(), a.clone()],
        vec![a.clone(), b.clone(), leg("c", day_terms(10), 1)],
        vec![a.clone(), leg("b", day_terms(10), 3)],
        vec![a.clone(), leg("c", day_terms(10), 2)],
        vec![leg("a", day_terms(10), 99), b.clone()],
    ] {
        let outcome = expect_ok(store.hold(request("h", &legs)).await);
        assert_eq!(outcome, HoldOutcome::Conflict, "another body under a known id: {legs:?}");
        let outcome = expect_ok(store.spend(request("h", &legs)).await);
        assert_eq!(outcome, HoldOutcome::Conflict, "another body under a known id, spent: {legs:?}");
    }
    settle(&store, "h", &[3, 2]).await;
    let outcome = expect_ok(store.hold(request("h", &[a])).await);
    assert_eq!(outcome, HoldOutcome::Conflict, "also after the hold has ended");
    assert_eq!(usage(&store, "a", &day_terms(10)).await, [(3, 0)], "a conflict holds nothing");
    check_audit(&store).await;
}

/// An insufficient hold can be retried under its id, also with another body.
pub async fn hold_insufficient_leaves_id_unused(store: LedgerStore) {
    let hold_request = request("h", &[leg("w", purchased_terms(), 3)]);
    assert_eq!(short_leg(&store, hold_request.clone(), "no credits were purchased").await.0, 0);
    let outcome = expect_ok(store.settle(settle_request("h", &[0])).await);
    assert_eq!(outcome, SettleOutcome::HoldNotFound, "an insufficient hold does not exist");
    grant(&store, "g", "w", 2).await;
    let outcome = expect_ok(store.spend(hold_request).await);
    assert!(
        matches!(outcome, HoldOutcome::Insufficient { leg: 0, .. }),
        "too few credits were purchased: {outcome:?}"
    );
    hold(&store, request("h", &[leg("w", purchased_terms(), 2)])).await;
    check_audit(&store).await;
}

/// A spend is held and settled in full in one step.
pub async fn spend_holds_and_settles_in_one_step(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 5), Pool::Purchased]);
    let mut hold_request = request("h", &[leg("w", pools.clone(), 7), leg("v", day_terms(1), 1)]);
    hold_request.expires_at = at(-5);
    let HoldOutcome::Held { balances } = expect_ok(store.spend(hold_request.clone()).await) else {
        panic!("a covered spend is held, whatever its expiry")
    };
    let figures: Vec<_> = balances[0].pools.iter().map(|pool| (pool.spent, pool.held)).collect();
    assert_eq!(figures, [(5, 0), (2, 0)], "a spend returns the balances of its terms after spending");
    assert_eq!(usage(&store, "w", &pools).await, [(5, 0), (2, 0)], "all is spent, nothing is held");
    let expect = [(EntryKind::Granted, 10), (EntryKind::Charged, 5), (EntryKind::Charged, 2)];
    assert_eq!(
        kinds_and_amounts(&store, "w").await,
        expect,
        "a spend writes one entry per pool that it uses"
    );
    let entries = entries(&store, "v").await;
    let [entry] = entries.as_slice() else { panic!("one pool was used: {entries:?}") };
    assert_eq!((entry.kind, entry.amount, &entry.pool), (EntryKind::Charged, 1, &day_terms(1).pools[0]));
    let memo = hold_request.memo.as_str();
    assert_eq!(
        (entry.at, entry.cause.as_str(), entry.memo.as_str()),
        (at(0), "h", memo),
        "the entry is complete"
    );
    assert_eq!(expect_ok(store.expire(at(1_000), 10).await), 0, "a spend never expires");

    let HoldOutcome::Exists { state, .. } = expect_ok(store.spend(hold_request).await) else {
        panic!("a repeated spend exists")
    };
    assert_eq!(state, HoldState::Settled { spent: vec![7, 1] }, "a repeat returns the spent amounts");
    assert_eq!(usage(&store, "w", &pools).await, [(5, 0), (2, 0)], "a repeat spends nothing");
    let outcome = expect_ok(store.settle(settle_request("h", &[0, 0])).await);
    let expect = SettleOutcome::Exists { state: HoldState::Settled { spent: vec![7, 1] } };
    assert_eq!(outcome, expect, "a spend cannot be released");
    let outcome =
        expect_ok(store.spend(request("i", &[leg("u", day_terms(5), 1), leg("v", day_terms(1), 1)])).await);
    assert!(matches!(outcome, HoldOutcome::Insufficient { leg: 1, .. }), "all legs or none: {outcome:?}");
    assert_eq!(usage(&store, "u", &day_terms(5)).await, [(0, 0)], "an insufficient spend spends nothing");
    assert_eq!(
        kinds_and_amounts(&store, "v").await,
        [(EntryKind::Charged, 1)],
        "neither a repeat nor an insufficient spend writes an entry"
    );
    check_audit(&store).await;
}

/// A hold id exists for spends, and a spend id exists for holds.
pub async fn holds_and_spends_share_ids(store: LedgerStore) {
    let hold_request = request("h", &[leg("w", day_terms(10), 3)]);
    hold(&store, hold_request.clone()).await;
    let HoldOutcome::Exists { state, .. } = expect_ok(store.spend(hold_request).await) else {
        panic!("a spend under the id of a hold with the same body exists")
    };
    assert_eq!(state, HoldState::Open { expires_at: at(60) }, "the spend does not settle the hold");
    let hold_request = request("s", &[leg("w", day_terms(10), 3)]);
    let _ = expect_ok(store.spend(hold_request.clone()).await);
    let HoldOutcome::Exists { state, .. } = expect_ok(store.hold(hold_request).await) else {
        panic!("a hold under the id of a spend with the same body exists")
    };
    assert_eq!(state, HoldState::Settled { spent: vec![3] });
    assert_eq!(usage(&store, "w", &day_terms(10)).await, [(3, 3)]);
}
