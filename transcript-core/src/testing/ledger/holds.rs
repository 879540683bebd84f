//! Conformance cases of holds: pools, legs and the expiry of overdue holds.

use super::*;
use crate::{error::ErrorKind, testing::expect_error};

/// A hold succeeds, is in the balance, and writes an entry.
pub async fn hold_new_is_in_balance(store: LedgerStore) {
    let balances = hold(&store, request("h", &[leg("w", day_terms(10), 3)])).await;
    let pool = PoolBalance { held: 3, ..PoolBalance::unused(bucket("day/2026-11-20", 10)) };
    let expect = Balance { wallet: WalletId::new("w"), pools: vec![pool] };
    assert_eq!(balances, std::slice::from_ref(&expect), "a hold returns the new balances, one per leg");
    let balance = expect_ok(store.balance(&WalletId::new("w"), &day_terms(10)).await);
    assert_eq!(balance, expect, "the hold is in the balance");
    assert_eq!(balance.available(), 7, "held credits are not available");

    let entries = entries(&store, "w").await;
    assert_eq!(entries.len(), 1, "a hold on one pool writes one entry");
    let entry = &entries[0];
    assert_eq!(
        (entry.kind, entry.amount, entry.at),
        (EntryKind::Held, 3, at(0)),
        "the entry records the operation"
    );
    assert_eq!(entry.pool, bucket("day/2026-11-20", 10), "the entry names the pool");
    assert_eq!(entry.wallet, WalletId::new("w"), "the entry names the wallet");
    assert_eq!((entry.cause.as_str(), entry.memo.as_str()), ("h", "memo of h"), "the entry names its cause");
    check_audit(&store).await;
}

/// An unknown wallet has unused pools, and reading its balance stores nothing.
pub async fn unknown_wallet_has_unused_pools(store: LedgerStore) {
    let terms = terms(&[bucket("day/2026-11-20", 5), Pool::Purchased]);
    let balance = expect_ok(store.balance(&WalletId::new("w"), &terms).await);
    let pools = vec![PoolBalance::unused(bucket("day/2026-11-20", 5)), PoolBalance::unused(Pool::Purchased)];
    assert_eq!(balance.pools, pools, "an unknown wallet has the pools of the terms, unused, in their order");
    assert_eq!(wallets(&store).await, [], "reading a balance stores nothing");
    assert_eq!(entries(&store, "w").await, [], "an unknown wallet has no entries");
    hold(&store, request("h", &[leg("w", terms, 5)])).await;
}

/// If one leg is insufficient, no leg is held.
pub async fn hold_with_one_short_leg_holds_none(store: LedgerStore) {
    let legs = [leg("a", day_terms(5), 2), leg("b", day_terms(1), 2), leg("c", day_terms(5), 2)];
    assert_eq!(short_leg(&store, request("h", &legs), "the leg that is insufficient").await.0, 1);
    for wallet in ["a", "b", "c"] {
        assert_eq!(
            usage(&store, wallet, &day_terms(5)).await,
            [(0, 0)],
            "no leg is held if one is insufficient"
        );
        assert_eq!(entries(&store, wallet).await, [], "an insufficient hold writes no entry");
    }
    assert_eq!(wallets(&store).await, [], "an insufficient hold stores nothing");

    let legs = [leg("c", day_terms(5), 2), leg("a", day_terms(5), 3), leg("b", day_terms(5), 4)];
    let balances = hold(&store, request("i", &legs)).await;
    let held: Vec<_> =
        balances.iter().map(|balance| (balance.wallet.as_str(), balance.pools[0].held)).collect();
    assert_eq!(held, [("c", 2), ("a", 3), ("b", 4)], "balances come in the order of the legs");
    check_audit(&store).await;
}

/// Of several insufficient legs, the first one in request order is returned with its balance.
pub async fn hold_insufficient_names_first_short_leg(store: LedgerStore) {
    hold(&store, request("before", &[leg("z", day_terms(4), 3)])).await;
    let legs = [leg("m", day_terms(5), 2), leg("z", day_terms(4), 2), leg("a", day_terms(1), 2)];
    let (index, balance) =
        short_leg(&store, request("h", &legs), "a hold with insufficient legs returns Insufficient").await;
    assert_eq!(index, 1, "the leg index follows the order of the request, not that of the wallets");
    let pool = PoolBalance { held: 3, ..PoolBalance::unused(bucket("day/2026-11-20", 4)) };
    assert_eq!(
        balance,
        Balance { wallet: WalletId::new("z"), pools: vec![pool] },
        "the balance is that of the leg"
    );
}

/// A leg takes from its pools in the order of its terms.
pub async fn hold_takes_pools_in_order_of_terms(store: LedgerStore) {
    let granted = grant(&store, "g", "w", 10).await;
    assert_eq!(granted.available(), 10);
    let first = terms(&[bucket("month/1", 5), Pool::Purchased, bucket("extra", 2)]);
    hold(&store, request("h1", &[leg("w", first.clone(), 3)])).await;
    assert_eq!(usage(&store, "w", &first).await, [(0, 3), (0, 0), (0, 0)], "the first pool is used first");
    hold(&store, request("h2", &[leg("w", first.clone(), 8)])).await;
    assert_eq!(usage(&store, "w", &first).await, [(0, 5), (0, 6), (0, 0)], "the second pool covers the rest");
    let turned = terms(&[bucket("extra", 2), Pool::Purchased, bucket("month/1", 5)]);
    hold(&store, request("h3", &[leg("w", turned.clone(), 1)])).await;
    assert_eq!(
        usage(&store, "w", &turned).await,
        [(0, 1), (0, 6), (0, 5)],
        "the order of this call's terms applies"
    );
    hold(&store, request("h4", &[leg("w", first.clone(), 5)])).await;
    assert_eq!(usage(&store, "w", &first).await, [(0, 5), (0, 10), (0, 2)], "an empty pool is skipped");
    check_audit(&store).await;
}

/// A hold can take everything from all pools of a wallet, and nothing beyond.
pub async fn hold_drains_wallet_to_zero_and_no_more(store: LedgerStore) {
    grant(&store, "g", "w", 7).await;
    let terms = terms(&[bucket("month/1", 5), Pool::Purchased]);
    assert_eq!(
        short_leg(&store, request("h", &[leg("w", terms.clone(), 13)]), "more than is available").await.0,
        0
    );
    hold(&store, request("i", &[leg("w", terms.clone(), 12)])).await;
    assert_eq!(available(&store, "w", &terms).await, 0, "all available credits are held");
    assert_eq!(
        short_leg(&store, request("j", &[leg("w", terms.clone(), 1)]), "nothing is left to hold").await.0,
        0
    );
    hold(&store, request("k", &[leg("w", terms, 0)])).await;
    check_audit(&store).await;
}

/// A leg of amount 0 is accepted, but creates neither entry nor wallet.
pub async fn zero_amount_leaves_no_entry_and_no_wallet(store: LedgerStore) {
    hold(&store, request("h", &[leg("a", day_terms(0), 0), leg("b", day_terms(1), 1)])).await;
    hold(&store, request("i", &[leg("a", day_terms(0), 0)])).await;
    assert_eq!(wallet_names(&store).await, ["b"], "a wallet of open holds of nothing is not listed");
    let balances = settle(&store, "h", &[0, 1]).await;
    assert_eq!(balances[0].pools, [], "a leg that held nothing has no pools to settle");
    assert_eq!(entries(&store, "a").await, [], "zero amounts write no entry");
    assert_eq!(wallet_names(&store).await, ["b"], "an unused wallet is not listed");
}

async fn wallet_names(store: &LedgerStore) -> Vec<String> {
    wallets(store).await.iter().map(|balance| balance.wallet.as_str().to_owned()).collect()
}

/// A hold affects only its own bucket and wallet.
pub async fn buckets_and_wallets_are_independent(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(2), 2)])).await;
    let tomorrow = terms(&[bucket("day/2026-11-21", 2)]);
    assert_eq!(available(&store, "w", &tomorrow).await, 2, "a new period is a new bucket");
    assert_eq!(available(&store, "W", &day_terms(2)).await, 2, "wallet ids are case-sensitive");
    assert_eq!(available(&store, "w ", &day_terms(2)).await, 2, "wallet ids keep their white space");
    hold(&store, request("i", &[leg("w", tomorrow, 2), leg("W", day_terms(2), 2)])).await;
    let both = terms(&[bucket("day/2026-11-20", 2), bucket("day/2026-11-21", 2)]);
    assert_eq!(usage(&store, "w", &both).await, [(0, 2), (0, 2)], "each bucket counts separately");
    check_audit(&store).await;
}

/// A limit lowered below the usage leaves zero; a raised limit adds credits.
pub async fn limit_below_usage_leaves_zero_available(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(5), 4)])).await;
    assert_eq!(
        available(&store, "w", &day_terms(3)).await,
        0,
        "a lowered limit never makes a balance negative"
    );
    short_leg(&store, request("i", &[leg("w", day_terms(3), 1)]), "nothing is left under the lowered limit")
        .await;
    assert_eq!(available(&store, "w", &day_terms(9)).await, 5, "a raised limit adds the difference");
    hold(&store, request("j", &[leg("w", day_terms(9), 5)])).await;
    settle(&store, "h", &[4]).await;
    assert_eq!(usage(&store, "w", &day_terms(9)).await, [(4, 5)]);
    check_audit(&store).await;
}

/// A new hold first expires the overdue holds of its wallets, with all their legs, and no others.
pub async fn hold_expires_overdue_holds_of_its_wallets_first(store: LedgerStore) {
    hold(&store, request("old", &[leg("w", day_terms(2), 2), leg("beside", day_terms(2), 2)])).await;
    hold(&store, request("other", &[leg("elsewhere", day_terms(2), 2)])).await;
    let early = HoldRequest { now: at_ms(59_999), ..request("early", &[leg("w", day_terms(2), 1)]) };
    short_leg(&store, early, "a hold is not overdue before its expiry").await;

    let late =
        HoldRequest { now: at(60), expires_at: at(120), ..request("late", &[leg("w", day_terms(2), 2)]) };
    hold(&store, late).await;
    assert_eq!(usage(&store, "beside", &day_terms(2)).await, [(0, 0)], "a hold expires with all its legs");
    assert_eq!(
        usage(&store, "elsewhere", &day_terms(2)).await,
        [(0, 2)],
        "holds of other wallets are untouched"
    );
    let expired = entries(&store, "beside").await.pop().expect("an expiry leaves an entry");
    assert_eq!((expired.kind, expired.amount, expired.at), (EntryKind::Expired, 2, at(60)));
    assert_eq!(
        (expired.cause.as_str(), expired.memo.as_str()),
        ("old", "memo of old"),
        "the entry has the id of the hold"
    );
    let steps = kinds_and_amounts(&store, "w").await;
    let expect = [(EntryKind::Held, 2), (EntryKind::Expired, 2), (EntryKind::Held, 2)];
    assert_eq!(steps, expect, "the overdue hold expires before the new hold");
    check_audit(&store).await;
}

/// Overdue holds stay expired when the hold itself is insufficient.
pub async fn overdue_holds_stay_expired_after_insufficient_hold(store: LedgerStore) {
    hold(&store, request("old", &[leg("w", day_terms(2), 2)])).await;
    let late = HoldRequest { now: at(60), ..request("late", &[leg("w", day_terms(2), 3)]) };
    let (_, balance) = short_leg(&store, late, "a hold above the limit is insufficient").await;
    assert_eq!(balance.available(), 2, "the returned balance includes the expiry");
    let state = expect_ok(store.extend(&HoldId::new("old"), at(90)).await);
    assert_eq!(state, HoldState::Expired, "an insufficient hold does not undo the expiry");
    check_audit(&store).await;
}

/// Ids and memos of up to 256 bytes round-trip in any script.
pub async fn ids_of_any_text_round_trip(store: LedgerStore) {
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
        let mut hold_request = request(text, &[leg(text, terms.clone(), 3)]);
        hold_request.memo.clone_from(text);
        hold(&store, hold_request).await;
        settle(&store, text, &[2]).await;
        let grant = GrantRequest { memo: text.clone(), ..grant_request(text, text, 4) };
        let _ = expect_ok(store.grant(grant).await);
        assert_eq!(usage(&store, text, &terms).await, [(2, 0)], "{text:?} names a wallet and a bucket");
        let entries = entries(&store, text).await;
        assert_eq!(entries.len(), 4, "{text:?} has its own entries");
        assert!(entries.iter().all(|entry| entry.cause == *text), "{text:?} comes back as the cause");
        assert_eq!(entries[0].memo, *text, "{text:?} comes back as the memo");
        assert_eq!(entries[0].pool.bucket(), Some(text.as_str()), "{text:?} comes back as the bucket");
    }
    assert_eq!(wallets(&store).await.len(), texts.len(), "every text is a separate wallet");
    check_audit(&store).await;
}

/// Requests outside the bounds are invalid and change nothing; requests at the bounds are held.
pub async fn hold_out_of_bounds_changes_nothing(store: LedgerStore) {
    let one = || leg("w", day_terms(5), 1);
    let long = "x".repeat(257);
    let most = 1_000_000_000_000;
    let nine_pools: Vec<Pool> = (0..9).map(|n| bucket(&format!("b{n}"), 1)).collect();
    let nine_legs: Vec<Leg> = (0..9).map(|n| leg(&format!("w{n}"), day_terms(5), 1)).collect();
    let mut wrong = vec![
        ("no leg", request("h", &[])),
        ("nine legs", request("h", &nine_legs)),
        ("a wallet twice", request("h", &[one(), leg("v", day_terms(5), 1), one()])),
        ("no pool", request("h", &[one(), leg("v", terms(&[]), 1)])),
        ("nine pools", request("h", &[leg("w", terms(&nine_pools), 1)])),
        ("a pool twice", request("h", &[leg("w", terms(&[bucket("b", 1), bucket("b", 2)]), 1)])),
        ("purchased twice", request("h", &[leg("w", terms(&[Pool::Purchased, Pool::Purchased]), 1)])),
        ("an amount too large", request("h", &[leg("w", day_terms(most), most + 1)])),
        ("the largest amount", request("h", &[leg("w", day_terms(most), u64::MAX)])),
        ("a limit too large", request("h", &[leg("w", day_terms(most + 1), 1)])),
        ("an empty id", request("", &[one()])),
        ("a long id", request(&long, &[one()])),
        ("an empty wallet", request("h", &[leg("", day_terms(5), 1)])),
        ("a long wallet", request("h", &[leg(&long, day_terms(5), 1)])),
        ("an empty bucket", request("h", &[leg("w", terms(&[bucket("", 5)]), 1)])),
        ("a long bucket", request("h", &[leg("w", terms(&[bucket(&long, 5)]), 1)])),
        ("a long memo", HoldRequest { memo: long.clone(), ..request("h", &[one()]) }),
    ];
    for (what, request) in wrong.drain(..) {
        expect_error(store.hold(request.clone()).await, ErrorKind::Invalid, what);
        expect_error(store.spend(request).await, ErrorKind::Invalid, what);
    }
    let wallet = WalletId::new("w");
    expect_error(store.balance(&wallet, &terms(&[])).await, ErrorKind::Invalid, "a balance of no pools");
    expect_error(
        store.balance(&wallet, &terms(&nine_pools)).await,
        ErrorKind::Invalid,
        "a balance of nine pools",
    );
    assert_eq!(wallets(&store).await, [], "an invalid request stores nothing");
    hold(&store, request("h", &nine_legs[..8])).await;
    hold(&store, request("i", &[leg("w", terms(&nine_pools[..8]), 8)])).await;
    hold(&store, request("j", &[leg("v", day_terms(most), most)])).await;
    check_audit(&store).await;
}
