//! Conformance cases of grants and revocations of purchased credits.

use super::*;
use crate::{
    error::ErrorKind,
    ledger::RevokeOutcome::{self, GrantNotFound},
    testing::expect_error,
};

async fn revoke(store: &LedgerStore, id: &str, grant: &str, amount: u64) -> RevokeOutcome {
    expect_ok(store.revoke(revoke_request(id, grant, amount)).await)
}

fn revoked(taken: u64, shortfall: u64) -> RevokeOutcome {
    RevokeOutcome::Revoked { taken, shortfall }
}

/// A repeated grant adds its credits once.
pub async fn grant_repeated_adds_once(store: LedgerStore) {
    let balance = grant(&store, "g", "w", 100).await;
    let pool = PoolBalance { granted: 100, ..PoolBalance::unused(Pool::Purchased) };
    let expect = Balance { wallet: WalletId::new("w"), pools: vec![pool] };
    assert_eq!(balance, expect, "a grant returns the new purchased balance");
    let again = GrantRequest { now: at(9), memo: "another".to_owned(), ..grant_request("g", "w", 100) };
    assert_eq!(expect_ok(store.grant(again).await), GrantOutcome::Exists, "a repeated grant exists");
    assert_eq!(available(&store, "w", &purchased_terms()).await, 100, "a repeated grant adds nothing");
    assert_eq!(grant(&store, "h", "w", 5).await.available(), 105, "other grants add up");
    assert_eq!(
        available(&store, "w", &day_terms(3)).await,
        3,
        "purchased credits are not part of an allowance"
    );
    let entries = entries(&store, "w").await;
    let steps: Vec<_> =
        entries.iter().map(|entry| (entry.kind, entry.amount, entry.cause.as_str())).collect();
    let expect = [(EntryKind::Granted, 100, "g"), (EntryKind::Granted, 5, "h")];
    assert_eq!(steps, expect, "each grant leaves one entry");
    assert_eq!(
        (entries[0].at, entries[0].memo.as_str()),
        (at(0), "memo of g"),
        "the entry has time and memo"
    );
    check_audit(&store).await;
}

/// The id of a grant with another wallet or amount is a conflict.
pub async fn grant_id_with_other_body_returns_conflict(store: LedgerStore) {
    grant(&store, "g", "w", 100).await;
    for other in [grant_request("g", "w", 99), grant_request("g", "v", 100)] {
        assert_eq!(
            expect_ok(store.grant(other).await),
            GrantOutcome::Conflict,
            "another body under a known id"
        );
    }
    assert_eq!(available(&store, "w", &purchased_terms()).await, 100, "a conflict adds nothing");
    assert_eq!(available(&store, "v", &purchased_terms()).await, 0, "a conflict adds nothing");
}

/// A revocation takes available credits.
pub async fn revoke_takes_available_credits(store: LedgerStore) {
    grant(&store, "g", "w", 100).await;
    assert_eq!(revoke(&store, "r", "g", 30).await, revoked(30, 0), "available credits are taken");
    let balance = expect_ok(store.balance(&WalletId::new("w"), &purchased_terms()).await);
    assert_eq!(balance.pools[0].granted, 70, "revoked credits are not counted as granted");
    let last = entries(&store, "w").await.pop().expect("a revocation leaves an entry");
    assert_eq!((last.kind, last.amount), (EntryKind::Revoked { shortfall: 0 }, 30));
    assert_eq!((last.cause.as_str(), last.memo.as_str(), last.at), ("r", "memo of r", at(20)));
    check_audit(&store).await;
}

/// Spent or held credits cannot be revoked; they are recorded as the shortfall.
pub async fn revoke_of_spent_or_held_credits_is_shortfall(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let _ = expect_ok(store.spend(request("s", &[leg("w", purchased_terms(), 3)])).await);
    hold(&store, request("h", &[leg("w", purchased_terms(), 2)])).await;
    assert_eq!(revoke(&store, "r", "g", 10).await, revoked(5, 5), "only available credits are taken");
    assert_eq!(usage(&store, "w", &purchased_terms()).await, [(3, 2)], "spent and held credits stay");
    assert_eq!(available(&store, "w", &purchased_terms()).await, 0);
    let last = entries(&store, "w").await.pop().expect("a revocation leaves an entry");
    assert_eq!(
        (last.kind, last.amount),
        (EntryKind::Revoked { shortfall: 5 }, 5),
        "the shortfall is recorded"
    );

    grant(&store, "g2", "v", 4).await;
    let _ = expect_ok(store.spend(request("s2", &[leg("v", purchased_terms(), 4)])).await);
    assert_eq!(revoke(&store, "r2", "g2", 4).await, revoked(0, 4));
    let last = entries(&store, "v").await.pop().expect("a revocation leaves an entry");
    assert_eq!(
        (last.kind, last.amount),
        (EntryKind::Revoked { shortfall: 4 }, 0),
        "the shortfall is recorded even if nothing is taken"
    );
    settle(&store, "h", &[2]).await;
    check_audit(&store).await;
}

/// All revocations of one grant take no more than it granted.
pub async fn revocations_never_exceed_their_grant(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    grant(&store, "mine", "w", 50).await;
    assert_eq!(revoke(&store, "r1", "g", 4).await, revoked(4, 0));
    assert_eq!(revoke(&store, "r2", "g", 9).await, revoked(6, 0), "the amount beyond the grant is ignored");
    assert_eq!(revoke(&store, "r3", "g", 1).await, revoked(0, 0));
    assert_eq!(available(&store, "w", &purchased_terms()).await, 50, "another grant's credits are not taken");
    assert_eq!(entries(&store, "w").await.len(), 4, "a revocation of nothing writes no entry");
    let known = revoke(&store, "r3", "g", 1).await;
    assert_eq!(known, RevokeOutcome::Exists { taken: 0, shortfall: 0 }, "the id exists");
    check_audit(&store).await;
}

/// A shortfall is not taken from credits granted later.
pub async fn shortfall_is_never_collected_later(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let _ = expect_ok(store.spend(request("s", &[leg("w", purchased_terms(), 8)])).await);
    assert_eq!(revoke(&store, "r1", "g", 10).await, revoked(2, 8));
    assert_eq!(grant(&store, "g2", "w", 20).await.available(), 20, "new credits are complete");
    let outcome = revoke(&store, "r2", "g", 10).await;
    let expect = revoked(0, 0);
    assert_eq!(outcome, expect, "a shortfall counts as revoked");
    assert_eq!(available(&store, "w", &purchased_terms()).await, 20);
    check_audit(&store).await;
}

/// A repeated revocation changes nothing and returns the first result.
pub async fn revoke_repeated_changes_nothing(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let _ = expect_ok(store.spend(request("s", &[leg("w", purchased_terms(), 8)])).await);
    let _ = revoke(&store, "r", "g", 5).await;
    grant(&store, "g2", "w", 10).await;
    let outcome = revoke(&store, "r", "g", 5).await;
    assert_eq!(outcome, RevokeOutcome::Exists { taken: 2, shortfall: 3 }, "the first result");
    assert_eq!(available(&store, "w", &purchased_terms()).await, 10, "a repeated revocation takes nothing");
    assert_eq!(revoke(&store, "r", "g", 6).await, RevokeOutcome::Conflict, "another amount");
    assert_eq!(revoke(&store, "r", "g2", 5).await, RevokeOutcome::Conflict, "another grant");
    assert_eq!(revoke(&store, "q", "unknown", 5).await, GrantNotFound, "the grant does not exist");
    assert_eq!(
        revoke(&store, "q", "g2", 5).await,
        revoked(5, 0),
        "the id of a rejected revocation stays unused"
    );
    check_audit(&store).await;
}

/// An id belongs to a grant or to a revocation, never to both.
pub async fn grants_and_revocations_share_ids(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let _ = revoke(&store, "r", "g", 5).await;
    assert_eq!(revoke(&store, "g", "g", 10).await, RevokeOutcome::Conflict, "the id belongs to a grant");
    let outcome = expect_ok(store.grant(grant_request("r", "w", 5)).await);
    assert_eq!(outcome, GrantOutcome::Conflict, "the id belongs to a revocation");
    assert_eq!(revoke(&store, "q", "r", 5).await, GrantNotFound, "a revocation is not a grant");
    hold(&store, request("g", &[leg("w", purchased_terms(), 5)])).await;
    check_audit(&store).await;
}

/// Grants and revocations outside the bounds are invalid and change nothing.
pub async fn grant_and_revoke_out_of_bounds_change_nothing(store: LedgerStore) {
    let long = "x".repeat(257);
    let most = 1_000_000_000_000;
    for (what, wrong) in [
        ("nothing granted", grant_request("g", "w", 0)),
        ("too much granted", grant_request("g", "w", most + 1)),
        ("no id", grant_request("", "w", 1)),
        ("a long id", GrantRequest { memo: String::new(), ..grant_request(&long, "w", 1) }),
        ("no wallet", grant_request("g", "", 1)),
        ("a long wallet", grant_request("g", &long, 1)),
        ("a long memo", GrantRequest { memo: long.clone(), ..grant_request("g", "w", 1) }),
    ] {
        expect_error(store.grant(wrong).await, ErrorKind::Invalid, what);
    }
    assert_eq!(wallets(&store).await, [], "an invalid grant stores nothing");
    grant(&store, "g", "w", most).await;
    for (what, wrong) in [
        ("nothing revoked", revoke_request("r", "g", 0)),
        ("too much revoked", revoke_request("r", "g", most + 1)),
        ("no id", revoke_request("", "g", 1)),
        ("a long id", RevokeRequest { memo: String::new(), ..revoke_request(&long, "g", 1) }),
        ("no grant", revoke_request("r", "", 1)),
        ("a long memo", RevokeRequest { memo: long.clone(), ..revoke_request("r", "g", 1) }),
    ] {
        expect_error(store.revoke(wrong).await, ErrorKind::Invalid, what);
    }
    assert_eq!(available(&store, "w", &purchased_terms()).await, most, "an invalid revocation takes nothing");
    assert_eq!(revoke(&store, "r", "g", most).await, revoked(most, 0));
}

/// `balance_since` returns the purchased credits spent since a time, inclusive.
pub async fn period_balance_counts_spend_since_start(store: LedgerStore) {
    let both = terms(&[bucket("month", 3), Pool::Purchased]);
    let wallet = WalletId::new("w");
    let since = async |time| expect_ok(store.balance_since(&wallet, &both, at(time)).await);
    assert_eq!(since(0).await.purchased_spent, 0, "an unknown wallet has spent nothing");
    grant(&store, "g", "w", 100).await;
    for (id, time, amount) in [("a", 10, 5), ("b", 20, 4), ("c", 30, 7)] {
        let hold_request = HoldRequest { now: at(time), ..request(id, &[leg("w", both.clone(), amount)]) };
        if id == "b" {
            hold(&store, hold_request).await;
            let settle = SettleRequest { now: at(time), ..settle_request(id, &[amount]) };
            let _ = expect_ok(store.settle(settle).await);
        } else {
            let _ = expect_ok(store.spend(hold_request).await);
        }
    }
    hold(&store, request("held", &[leg("w", both.clone(), 6)])).await;
    let other_wallet = request("other", &[leg("v", both.clone(), 1)]);
    grant(&store, "h", "v", 9).await;
    let _ = expect_ok(store.spend(other_wallet).await);
    let _ = expect_ok(store.revoke(revoke_request("r", "g", 1)).await);
    for (time, spent) in [(0, 13), (10, 13), (11, 11), (20, 11), (21, 7), (30, 7), (31, 0)] {
        assert_eq!(since(time).await.purchased_spent, spent, "since {time}");
    }
    let balance = expect_ok(store.balance(&wallet, &both).await);
    assert_eq!(since(15).await.balance, balance, "the balance is that of the same terms");
    let invalid = store.balance_since(&wallet, &terms(&[]), at(0)).await;
    expect_error(invalid, ErrorKind::Invalid, "terms need at least one pool");
}
