//! Holding: pools, legs and what expires first.

use super::*;
use crate::{error::ErrorKind, testing::refused};

/// A hold is held, is in the balance, and leaves an entry.
pub async fn a_hold_is_held_and_seen(store: Store) {
    let balances = hold(&store, request("h", &[leg("w", day(10), 3)])).await;
    let pool = PoolBalance { held: 3, ..PoolBalance::fresh(bucket("day/2026-11-20", 10)) };
    let expect = Balance { wallet: WalletId::new("w"), pools: vec![pool] };
    assert_eq!(
        balances,
        std::slice::from_ref(&expect),
        "a hold answers with the balances afterwards, one per leg"
    );
    let balance = done(store.balance(&WalletId::new("w"), &day(10)).await);
    assert_eq!(balance, expect, "what is held is in the balance");
    assert_eq!(balance.available(), 7, "what is held is not available");

    let entries = entries(&store, "w").await;
    assert_eq!(entries.len(), 1, "a hold of one pool leaves one entry");
    let entry = &entries[0];
    assert_eq!((entry.kind, entry.amount, entry.at), (EntryKind::Held, 3, at(0)), "the entry tells the step");
    assert_eq!(entry.pool, bucket("day/2026-11-20", 10), "the entry names the pool");
    assert_eq!(entry.wallet, WalletId::new("w"), "the entry names the wallet");
    assert_eq!((entry.cause.as_str(), entry.memo.as_str()), ("h", "memo of h"), "the entry names its cause");
    audited(&store).await;
}

/// An unknown wallet has spent nothing, and asking for it changes nothing.
pub async fn an_unknown_wallet_is_a_fresh_one(store: Store) {
    let terms = terms(&[bucket("day/2026-11-20", 5), Pool::Purchased]);
    let balance = done(store.balance(&WalletId::new("w"), &terms).await);
    let pools = vec![PoolBalance::fresh(bucket("day/2026-11-20", 5)), PoolBalance::fresh(Pool::Purchased)];
    assert_eq!(balance.pools, pools, "an unknown wallet has the pools of the terms, unused, in their order");
    assert_eq!(wallets(&store).await, [], "asking for a balance stores nothing");
    assert_eq!(entries(&store, "w").await, [], "an unknown wallet has no entries");
    hold(&store, request("h", &[leg("w", terms, 5)])).await;
}

/// When one leg is refused, no leg is held.
pub async fn legs_are_held_all_or_none(store: Store) {
    let legs = [leg("a", day(5), 2), leg("b", day(1), 2), leg("c", day(5), 2)];
    let outcome = done(store.hold(request("h", &legs)).await);
    assert!(matches!(outcome, HoldOutcome::Refused { leg: 1, .. }), "the leg that is too small: {outcome:?}");
    for wallet in ["a", "b", "c"] {
        assert_eq!(used(&store, wallet, &day(5)).await, [(0, 0)], "no leg is held when one is refused");
        assert_eq!(entries(&store, wallet).await, [], "a refused hold leaves no entry");
    }
    assert_eq!(wallets(&store).await, [], "a refused hold stores nothing");

    let legs = [leg("c", day(5), 2), leg("a", day(5), 3), leg("b", day(5), 4)];
    let balances = hold(&store, request("i", &legs)).await;
    let held: Vec<_> =
        balances.iter().map(|balance| (balance.wallet.as_str(), balance.pools[0].held)).collect();
    assert_eq!(held, [("c", 2), ("a", 3), ("b", 4)], "balances come in the order of the legs");
    audited(&store).await;
}

/// Of several legs that are too small, the first in order is named, with its balance.
pub async fn the_first_leg_too_small_is_named(store: Store) {
    hold(&store, request("before", &[leg("z", day(4), 3)])).await;
    let legs = [leg("m", day(5), 2), leg("z", day(4), 2), leg("a", day(1), 2)];
    let HoldOutcome::Refused { leg: place, balance } = done(store.hold(request("h", &legs)).await) else {
        panic!("a hold whose legs are too small is refused")
    };
    assert_eq!(place, 1, "the first leg in the order of the request is named, not in that of the wallets");
    let pool = PoolBalance { held: 3, ..PoolBalance::fresh(bucket("day/2026-11-20", 4)) };
    assert_eq!(balance, Balance { wallet: WalletId::new("z"), pools: vec![pool] }, "with that leg's balance");
}

/// A leg takes from its pools in the order of its terms.
pub async fn pools_are_taken_in_the_order_of_the_terms(store: Store) {
    let granted = grant(&store, "g", "w", 10).await;
    assert_eq!(granted.available(), 10);
    let first = terms(&[bucket("month/1", 5), Pool::Purchased, bucket("extra", 2)]);
    hold(&store, request("h1", &[leg("w", first.clone(), 3)])).await;
    assert_eq!(used(&store, "w", &first).await, [(0, 3), (0, 0), (0, 0)], "the first pool gives first");
    hold(&store, request("h2", &[leg("w", first.clone(), 8)])).await;
    assert_eq!(used(&store, "w", &first).await, [(0, 5), (0, 6), (0, 0)], "then the second gives the rest");
    let turned = terms(&[bucket("extra", 2), Pool::Purchased, bucket("month/1", 5)]);
    hold(&store, request("h3", &[leg("w", turned.clone(), 1)])).await;
    assert_eq!(used(&store, "w", &turned).await, [(0, 1), (0, 6), (0, 5)], "the terms of the call decide");
    hold(&store, request("h4", &[leg("w", first.clone(), 5)])).await;
    assert_eq!(used(&store, "w", &first).await, [(0, 5), (0, 10), (0, 2)], "a drained pool is passed over");
    audited(&store).await;
}

/// All of a wallet can be held, over all its pools, and not one more.
pub async fn a_wallet_is_spent_to_exactly_nothing(store: Store) {
    grant(&store, "g", "w", 7).await;
    let terms = terms(&[bucket("month/1", 5), Pool::Purchased]);
    let outcome = done(store.hold(request("h", &[leg("w", terms.clone(), 13)])).await);
    assert!(matches!(outcome, HoldOutcome::Refused { leg: 0, .. }), "no more than there is: {outcome:?}");
    hold(&store, request("i", &[leg("w", terms.clone(), 12)])).await;
    assert_eq!(available(&store, "w", &terms).await, 0, "all that there is can be held");
    let outcome = done(store.hold(request("j", &[leg("w", terms.clone(), 1)])).await);
    assert!(matches!(outcome, HoldOutcome::Refused { leg: 0, .. }), "nothing more is held: {outcome:?}");
    hold(&store, request("k", &[leg("w", terms, 0)])).await;
    audited(&store).await;
}

/// A leg of amount 0 is held, but leaves neither entry nor wallet.
pub async fn an_amount_of_zero_leaves_no_trace(store: Store) {
    hold(&store, request("h", &[leg("a", day(0), 0), leg("b", day(1), 1)])).await;
    let balances = settle(&store, "h", &[0, 1]).await;
    assert_eq!(balances[0].pools, [], "a leg that held nothing has no pools to settle");
    assert_eq!(entries(&store, "a").await, [], "steps of amount 0 are left out");
    let wallets = wallets(&store).await;
    let names: Vec<_> = wallets.iter().map(|balance| balance.wallet.as_str()).collect();
    assert_eq!(names, ["b"], "a wallet of which nothing was ever used is not listed");
}

/// Another bucket, or another wallet, is untouched.
pub async fn buckets_and_wallets_are_apart(store: Store) {
    hold(&store, request("h", &[leg("w", day(2), 2)])).await;
    let tomorrow = terms(&[bucket("day/2026-11-21", 2)]);
    assert_eq!(available(&store, "w", &tomorrow).await, 2, "a new period is a new bucket");
    assert_eq!(available(&store, "W", &day(2)).await, 2, "ids that differ in letter case are different");
    assert_eq!(available(&store, "w ", &day(2)).await, 2, "ids that differ in white space are different");
    hold(&store, request("i", &[leg("w", tomorrow, 2), leg("W", day(2), 2)])).await;
    let both = terms(&[bucket("day/2026-11-20", 2), bucket("day/2026-11-21", 2)]);
    assert_eq!(used(&store, "w", &both).await, [(0, 2), (0, 2)], "each bucket counts for itself");
    audited(&store).await;
}

/// A limit that was lowered below what is used leaves nothing; one that was raised gives more.
pub async fn a_limit_below_what_is_used_leaves_nothing(store: Store) {
    hold(&store, request("h", &[leg("w", day(5), 4)])).await;
    assert_eq!(available(&store, "w", &day(3)).await, 0, "a lowered limit never makes a balance negative");
    let outcome = done(store.hold(request("i", &[leg("w", day(3), 1)])).await);
    assert!(matches!(outcome, HoldOutcome::Refused { .. }), "nothing is left under it: {outcome:?}");
    assert_eq!(available(&store, "w", &day(9)).await, 5, "a raised limit gives what it adds");
    hold(&store, request("j", &[leg("w", day(9), 5)])).await;
    settle(&store, "h", &[4]).await;
    assert_eq!(used(&store, "w", &day(9)).await, [(4, 5)]);
    audited(&store).await;
}

/// A new hold first expires the overdue holds of its wallets, whole, and no others.
pub async fn overdue_holds_of_these_wallets_expire_first(store: Store) {
    hold(&store, request("old", &[leg("w", day(2), 2), leg("beside", day(2), 2)])).await;
    hold(&store, request("other", &[leg("elsewhere", day(2), 2)])).await;
    let early = HoldRequest { now: at_ms(59_999), ..request("early", &[leg("w", day(2), 1)]) };
    let outcome = done(store.hold(early).await);
    assert!(matches!(outcome, HoldOutcome::Refused { .. }), "not overdue before its expiry: {outcome:?}");

    let late = HoldRequest { now: at(60), expires_at: at(120), ..request("late", &[leg("w", day(2), 2)]) };
    hold(&store, late).await;
    assert_eq!(used(&store, "beside", &day(2)).await, [(0, 0)], "a hold expires with all its legs");
    assert_eq!(used(&store, "elsewhere", &day(2)).await, [(0, 2)], "other wallets' holds are left alone");
    let expired = entries(&store, "beside").await.pop().expect("an expiry leaves an entry");
    assert_eq!((expired.kind, expired.amount, expired.at), (EntryKind::Expired, 2, at(60)));
    assert_eq!(
        (expired.cause.as_str(), expired.memo.as_str()),
        ("old", "memo of old"),
        "of the hold's own id"
    );
    let steps = steps(&store, "w").await;
    let expect = [(EntryKind::Held, 2), (EntryKind::Expired, 2), (EntryKind::Held, 2)];
    assert_eq!(steps, expect, "expired before it is held again");
    audited(&store).await;
}

/// What a request's first step expired stays expired when the request itself is refused.
pub async fn overdue_holds_stay_expired_when_the_request_is_refused(store: Store) {
    hold(&store, request("old", &[leg("w", day(2), 2)])).await;
    let late = HoldRequest { now: at(60), ..request("late", &[leg("w", day(2), 3)]) };
    let HoldOutcome::Refused { balance, .. } = done(store.hold(late).await) else {
        panic!("more than the limit is refused")
    };
    assert_eq!(balance.available(), 2, "the refusal's balance is the one after the expiry");
    let state = done(store.extend(&HoldId::new("old"), at(90)).await);
    assert_eq!(state, HoldState::Expired, "an expiry is not undone by the refusal after it");
    audited(&store).await;
}

/// Ids and memos of up to 256 bytes in any script come back as they were.
pub async fn any_text_is_an_id(store: Store) {
    let texts = [
        "ü".repeat(128),
        "🦀".repeat(64),
        "x".repeat(256),
        "a'b\"c;--%_\\".to_owned(),
        " leading\ttab\n".to_owned(),
        "שלום \u{202e}evil".to_owned(),
    ];
    for text in &texts {
        let terms = terms(&[bucket(text, 5)]);
        let mut asked = request(text, &[leg(text, terms.clone(), 3)]);
        asked.memo.clone_from(text);
        hold(&store, asked).await;
        settle(&store, text, &[2]).await;
        done(store.grant(Grant { memo: text.clone(), ..credits(text, text, 4) }).await);
        assert_eq!(used(&store, text, &terms).await, [(2, 0)], "{text:?} names a wallet and a bucket");
        let entries = entries(&store, text).await;
        assert_eq!(entries.len(), 4, "{text:?} has its own entries");
        assert!(entries.iter().all(|entry| entry.cause == *text), "{text:?} comes back as the cause");
        assert_eq!(entries[0].memo, *text, "{text:?} comes back as the memo");
        assert_eq!(entries[0].pool.bucket(), Some(text.as_str()), "{text:?} comes back as the bucket");
    }
    assert_eq!(wallets(&store).await.len(), texts.len(), "every text is a wallet of its own");
    audited(&store).await;
}

/// Requests outside their bounds are invalid and do nothing; those at the bounds are held.
pub async fn requests_out_of_bounds_change_nothing(store: Store) {
    let one = || leg("w", day(5), 1);
    let long = "x".repeat(257);
    let most = 1_000_000_000_000;
    let nine_pools: Vec<Pool> = (0..9).map(|n| bucket(&format!("b{n}"), 1)).collect();
    let nine_legs: Vec<Leg> = (0..9).map(|n| leg(&format!("w{n}"), day(5), 1)).collect();
    let mut wrong = vec![
        ("no leg", request("h", &[])),
        ("nine legs", request("h", &nine_legs)),
        ("a wallet twice", request("h", &[one(), leg("v", day(5), 1), one()])),
        ("no pool", request("h", &[one(), leg("v", terms(&[]), 1)])),
        ("nine pools", request("h", &[leg("w", terms(&nine_pools), 1)])),
        ("a pool twice", request("h", &[leg("w", terms(&[bucket("b", 1), bucket("b", 2)]), 1)])),
        ("purchased twice", request("h", &[leg("w", terms(&[Pool::Purchased, Pool::Purchased]), 1)])),
        ("an amount too large", request("h", &[leg("w", day(most), most + 1)])),
        ("the largest amount", request("h", &[leg("w", day(most), u64::MAX)])),
        ("a limit too large", request("h", &[leg("w", day(most + 1), 1)])),
        ("an empty id", request("", &[one()])),
        ("a long id", request(&long, &[one()])),
        ("an empty wallet", request("h", &[leg("", day(5), 1)])),
        ("a long wallet", request("h", &[leg(&long, day(5), 1)])),
        ("an empty bucket", request("h", &[leg("w", terms(&[bucket("", 5)]), 1)])),
        ("a long bucket", request("h", &[leg("w", terms(&[bucket(&long, 5)]), 1)])),
        ("a long memo", HoldRequest { memo: long.clone(), ..request("h", &[one()]) }),
    ];
    for (what, request) in wrong.drain(..) {
        refused(store.hold(request.clone()).await, ErrorKind::Invalid, what);
        refused(store.spend(request).await, ErrorKind::Invalid, what);
    }
    let wallet = WalletId::new("w");
    refused(store.balance(&wallet, &terms(&[])).await, ErrorKind::Invalid, "a balance of no pools");
    refused(store.balance(&wallet, &terms(&nine_pools)).await, ErrorKind::Invalid, "a balance of nine pools");
    assert_eq!(wallets(&store).await, [], "an invalid request stores nothing");
    hold(&store, request("h", &nine_legs[..8])).await;
    hold(&store, request("i", &[leg("w", terms(&nine_pools[..8]), 8)])).await;
    hold(&store, request("j", &[leg("v", day(most), most)])).await;
    audited(&store).await;
}
