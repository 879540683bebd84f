//! Grants and revocations: purchased credits in and out.

use super::*;
use crate::{error::ErrorKind, ledger::RevokeOutcome, testing::refused};

async fn revoke(store: &Store, id: &str, grant: &str, amount: u64) -> RevokeOutcome {
    done(store.revoke(taking(id, grant, amount)).await)
}

/// A grant adds its credits once, however often it is repeated.
pub async fn a_grant_is_added_once(store: Store) {
    let balance = grant(&store, "g", "w", 100).await;
    let pool = PoolBalance { granted: 100, ..PoolBalance::fresh(Pool::Purchased) };
    let expect = Balance { wallet: WalletId::new("w"), pools: vec![pool] };
    assert_eq!(balance, expect, "a grant answers with the purchased credits afterwards");
    let again = Grant { now: at(9), memo: "another".to_owned(), ..credits("g", "w", 100) };
    assert_eq!(done(store.grant(again).await), GrantOutcome::Known, "the same grant again is known");
    assert_eq!(available(&store, "w", &bought()).await, 100, "and adds nothing");
    assert_eq!(grant(&store, "h", "w", 5).await.available(), 105, "other grants add up");
    assert_eq!(available(&store, "w", &day(3)).await, 3, "credits are no allowance");
    let entries = entries(&store, "w").await;
    let steps: Vec<_> =
        entries.iter().map(|entry| (entry.kind, entry.amount, entry.cause.as_str())).collect();
    let expect = [(EntryKind::Granted, 100, "g"), (EntryKind::Granted, 5, "h")];
    assert_eq!(steps, expect, "each grant leaves one entry");
    assert_eq!((entries[0].at, entries[0].memo.as_str()), (at(0), "memo of g"), "with moment and memo");
    audited(&store).await;
}

/// The id of a grant with another wallet or amount is a conflict.
pub async fn the_id_of_a_grant_with_another_body_is_a_conflict(store: Store) {
    grant(&store, "g", "w", 100).await;
    for other in [credits("g", "w", 99), credits("g", "v", 100)] {
        assert_eq!(done(store.grant(other).await), GrantOutcome::Conflict, "another body under a known id");
    }
    assert_eq!(available(&store, "w", &bought()).await, 100, "a conflict adds nothing");
    assert_eq!(available(&store, "v", &bought()).await, 0, "a conflict adds nothing");
}

/// A revocation takes back what is available.
pub async fn credits_are_taken_back(store: Store) {
    grant(&store, "g", "w", 100).await;
    let outcome = revoke(&store, "r", "g", 30).await;
    assert_eq!(outcome, RevokeOutcome::Revoked { taken: 30, shortfall: 0 }, "what is there is taken");
    let balance = done(store.balance(&WalletId::new("w"), &bought()).await);
    assert_eq!(balance.pools[0].granted, 70, "granted counts what was not taken back");
    let last = entries(&store, "w").await.pop().expect("a revocation leaves an entry");
    assert_eq!((last.kind, last.amount), (EntryKind::Revoked { shortfall: 0 }, 30));
    assert_eq!((last.cause.as_str(), last.memo.as_str(), last.at), ("r", "memo of r", at(20)));
    audited(&store).await;
}

/// What is spent or held cannot be taken back; it is the shortfall, and noted.
pub async fn what_is_spent_or_held_is_a_shortfall(store: Store) {
    grant(&store, "g", "w", 10).await;
    done(store.spend(request("s", &[leg("w", bought(), 3)])).await);
    hold(&store, request("h", &[leg("w", bought(), 2)])).await;
    let outcome = revoke(&store, "r", "g", 10).await;
    assert_eq!(outcome, RevokeOutcome::Revoked { taken: 5, shortfall: 5 }, "only what is available");
    assert_eq!(used(&store, "w", &bought()).await, [(3, 2)], "what is spent and held stays so");
    assert_eq!(available(&store, "w", &bought()).await, 0);
    let last = entries(&store, "w").await.pop().expect("a revocation leaves an entry");
    assert_eq!((last.kind, last.amount), (EntryKind::Revoked { shortfall: 5 }, 5), "the shortfall is noted");

    grant(&store, "g2", "v", 4).await;
    done(store.spend(request("s2", &[leg("v", bought(), 4)])).await);
    assert_eq!(revoke(&store, "r2", "g2", 4).await, RevokeOutcome::Revoked { taken: 0, shortfall: 4 });
    let last = entries(&store, "v").await.pop().expect("a revocation leaves an entry");
    assert_eq!(
        (last.kind, last.amount),
        (EntryKind::Revoked { shortfall: 4 }, 0),
        "also when nothing is taken"
    );
    settle(&store, "h", &[2]).await;
    audited(&store).await;
}

/// All revocations of one grant together take no more than it gave.
pub async fn revocations_take_back_no_more_than_the_grant_gave(store: Store) {
    grant(&store, "g", "w", 10).await;
    grant(&store, "mine", "w", 50).await;
    assert_eq!(revoke(&store, "r1", "g", 4).await, RevokeOutcome::Revoked { taken: 4, shortfall: 0 });
    let outcome = revoke(&store, "r2", "g", 9).await;
    assert_eq!(
        outcome,
        RevokeOutcome::Revoked { taken: 6, shortfall: 0 },
        "what exceeds the grant is ignored"
    );
    assert_eq!(revoke(&store, "r3", "g", 1).await, RevokeOutcome::Revoked { taken: 0, shortfall: 0 });
    assert_eq!(available(&store, "w", &bought()).await, 50, "another grant's credits are not taken");
    assert_eq!(entries(&store, "w").await.len(), 4, "a revocation that wants nothing leaves no entry");
    let known = revoke(&store, "r3", "g", 1).await;
    assert_eq!(known, RevokeOutcome::Known { taken: 0, shortfall: 0 }, "but its id is known");
    audited(&store).await;
}

/// What fell short once is not taken from credits that come later.
pub async fn a_shortfall_is_never_collected_later(store: Store) {
    grant(&store, "g", "w", 10).await;
    done(store.spend(request("s", &[leg("w", bought(), 8)])).await);
    assert_eq!(revoke(&store, "r1", "g", 10).await, RevokeOutcome::Revoked { taken: 2, shortfall: 8 });
    assert_eq!(grant(&store, "g2", "w", 20).await.available(), 20, "new credits are whole");
    let outcome = revoke(&store, "r2", "g", 10).await;
    let expect = RevokeOutcome::Revoked { taken: 0, shortfall: 0 };
    assert_eq!(outcome, expect, "what fell short counts as taken back");
    assert_eq!(available(&store, "w", &bought()).await, 20);
    audited(&store).await;
}

/// A revocation is done once, and a repeat tells what it did.
pub async fn a_revocation_is_done_once(store: Store) {
    grant(&store, "g", "w", 10).await;
    done(store.spend(request("s", &[leg("w", bought(), 8)])).await);
    revoke(&store, "r", "g", 5).await;
    grant(&store, "g2", "w", 10).await;
    let outcome = revoke(&store, "r", "g", 5).await;
    assert_eq!(outcome, RevokeOutcome::Known { taken: 2, shortfall: 3 }, "what it did the first time");
    assert_eq!(available(&store, "w", &bought()).await, 10, "and takes nothing again");
    assert_eq!(revoke(&store, "r", "g", 6).await, RevokeOutcome::Conflict, "another amount");
    assert_eq!(revoke(&store, "r", "g2", 5).await, RevokeOutcome::Conflict, "another grant");
    let outcome = revoke(&store, "q", "nobody's", 5).await;
    assert_eq!(outcome, RevokeOutcome::UnknownGrant, "there is no such grant");
    let outcome = revoke(&store, "q", "g2", 5).await;
    assert_eq!(outcome, RevokeOutcome::Revoked { taken: 5, shortfall: 0 }, "and its id stays unknown");
    audited(&store).await;
}

/// An id is a grant's or a revocation's, never both.
pub async fn grants_and_revocations_share_their_ids(store: Store) {
    grant(&store, "g", "w", 10).await;
    revoke(&store, "r", "g", 5).await;
    assert_eq!(revoke(&store, "g", "g", 10).await, RevokeOutcome::Conflict, "the id is a grant's");
    let outcome = done(store.grant(credits("r", "w", 5)).await);
    assert_eq!(outcome, GrantOutcome::Conflict, "the id is a revocation's");
    assert_eq!(revoke(&store, "q", "r", 5).await, RevokeOutcome::UnknownGrant, "a revocation is no grant");
    hold(&store, request("g", &[leg("w", bought(), 5)])).await;
    audited(&store).await;
}

/// Grants and revocations outside their bounds are invalid and do nothing.
pub async fn transfers_out_of_bounds_change_nothing(store: Store) {
    let long = "x".repeat(257);
    let most = 1_000_000_000_000;
    for (what, wrong) in [
        ("nothing granted", credits("g", "w", 0)),
        ("too much granted", credits("g", "w", most + 1)),
        ("no id", credits("", "w", 1)),
        ("a long id", Grant { memo: String::new(), ..credits(&long, "w", 1) }),
        ("no wallet", credits("g", "", 1)),
        ("a long wallet", credits("g", &long, 1)),
        ("a long memo", Grant { memo: long.clone(), ..credits("g", "w", 1) }),
    ] {
        refused(store.grant(wrong).await, ErrorKind::Invalid, what);
    }
    assert_eq!(wallets(&store).await, [], "an invalid grant stores nothing");
    grant(&store, "g", "w", most).await;
    for (what, wrong) in [
        ("nothing revoked", taking("r", "g", 0)),
        ("too much revoked", taking("r", "g", most + 1)),
        ("no id", taking("", "g", 1)),
        ("a long id", Revoke { memo: String::new(), ..taking(&long, "g", 1) }),
        ("no grant", taking("r", "", 1)),
        ("a long memo", Revoke { memo: long.clone(), ..taking("r", "g", 1) }),
    ] {
        refused(store.revoke(wrong).await, ErrorKind::Invalid, what);
    }
    assert_eq!(available(&store, "w", &bought()).await, most, "an invalid revocation takes nothing");
    assert_eq!(revoke(&store, "r", "g", most).await, RevokeOutcome::Revoked { taken: most, shortfall: 0 });
}

/// What was spent of the purchased credits is told since any moment, that moment included.
pub async fn what_was_bought_is_spent_since_a_moment(store: Store) {
    let both = terms(&[bucket("month", 3), Pool::Purchased]);
    let wallet = WalletId::new("w");
    let since = async |moment| done(store.balance_since(&wallet, &both, at(moment)).await);
    assert_eq!(since(0).await.purchased_spent, 0, "an unknown wallet has spent nothing");
    grant(&store, "g", "w", 100).await;
    for (id, moment, amount) in [("a", 10, 5), ("b", 20, 4), ("c", 30, 7)] {
        let ask = HoldRequest { now: at(moment), ..request(id, &[leg("w", both.clone(), amount)]) };
        if id == "b" {
            hold(&store, ask).await;
            done(store.settle(Settle { now: at(moment), ..settlement(id, &[amount]) }).await);
        } else {
            done(store.spend(ask).await);
        }
    }
    hold(&store, request("held", &[leg("w", both.clone(), 6)])).await;
    let of_another = request("other", &[leg("v", both.clone(), 1)]);
    grant(&store, "h", "v", 9).await;
    done(store.spend(of_another).await);
    done(store.revoke(taking("r", "g", 1)).await);
    for (moment, spent) in [(0, 13), (10, 13), (11, 11), (20, 11), (21, 7), (30, 7), (31, 0)] {
        assert_eq!(since(moment).await.purchased_spent, spent, "since {moment}");
    }
    let balance = done(store.balance(&wallet, &both).await);
    assert_eq!(since(15).await.balance, balance, "with the balance under the same terms");
    let invalid = store.balance_since(&wallet, &terms(&[]), at(0)).await;
    refused(invalid, ErrorKind::Invalid, "terms have a pool");
}
