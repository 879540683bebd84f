//! Verification tokens: redeemed once, with the making of the key.

use super::*;
use crate::{
    directory::Plan,
    error::ErrorKind,
    testing::{refused, together},
};

const EMAIL: &str = "someone@example.org";

/// A fresh token of a new address makes an account on the free plan, and its key.
pub async fn a_token_makes_an_account_with_its_key(store: Store) {
    assert_eq!(redeem(&store, "t", "k", true).await, Redeemed::Invalid, "an unknown token is invalid");
    done(store.put_token(token("t", EMAIL)).await);
    assert_eq!(by_email(&store, EMAIL).await, None, "issuing a token makes no account");
    let account = Account {
        id: AccountId::new("account of t"),
        version: 1,
        email: EMAIL.to_owned(),
        wallet: WalletId::new("wallet of t"),
        plan: Plan::Free,
        anchor: at(10),
        paid: None,
        customer: None,
        subscription: None,
        blocked: false,
    };
    let issued = Redeemed::Issued { account: account.clone(), first: true };
    assert_eq!(redeem(&store, "t", "k", false).await, issued, "a new address needs no confirmation");
    let key = KeyId::new("k");
    assert_eq!(owner(&store, "k").await, Some(Owner::Account { key, account }), "the key opens the account");
}

/// A token is used up by its first redemption.
pub async fn a_token_is_used_once(store: Store) {
    register(&store, EMAIL, "k").await;
    for confirmed in [false, true] {
        let again = redeem(&store, EMAIL, "l", confirmed).await;
        assert_eq!(again, Redeemed::Invalid, "a used token is invalid");
    }
    assert_eq!(owner(&store, "l").await, None, "and issues no key");
    assert!(owner(&store, "k").await.is_some(), "and kills none");
}

/// A redemption whose outcome is unknown can be repeated.
pub async fn the_same_redemption_again_tells_what_it_did(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    let issued = Redeemed::Issued { account: account.clone(), first: true };
    assert_eq!(redeem(&store, EMAIL, "k", false).await, issued, "the same redemption tells what it did");
    let other_digest = NewKey { digest: digest("x"), ..new_key("k", 10) };
    let other = Redeem { key: other_digest, ..redemption(EMAIL, "k", true) };
    assert_eq!(done(store.redeem(other).await), Redeemed::Invalid, "another key is another redemption");
    done(store.put_token(token("t2", EMAIL)).await);
    for _ in 0..2 {
        let issued = Redeemed::Issued { account: account.clone(), first: false };
        assert_eq!(redeem(&store, "t2", "k2", true).await, issued, "also for a known account");
    }
    assert_eq!(redeem(&store, EMAIL, "k", false).await, Redeemed::Invalid, "its key is dead by now");
    assert_eq!(owner(&store, "k").await, None, "and stays dead");
}

/// A token is invalid from its end on.
pub async fn a_token_ends_at_its_moment(store: Store) {
    done(store.put_token(Token { expires_at: at(10), ..token("late", EMAIL) }).await);
    assert_eq!(redeem(&store, "late", "k", true).await, Redeemed::Invalid, "a token that ends now has ended");
    done(store.put_token(Token { expires_at: at(11), ..token("just", EMAIL) }).await);
    let issued = redeem(&store, "just", "k", false).await;
    assert!(matches!(issued, Redeemed::Issued { first: true, .. }), "before its end it is valid: {issued:?}");
    done(store.put_token(Token { expires_at: at(10), ..token("ended", EMAIL) }).await);
    let ended = redeem(&store, "ended", "l", false).await;
    assert_eq!(ended, Redeemed::Invalid, "an ended token asks for no confirmation either");
}

/// For an address with an account nothing happens until a person confirms.
pub async fn an_address_with_an_account_needs_confirmation(store: Store) {
    register(&store, EMAIL, "k").await;
    for name in ["t2", "t3"] {
        done(store.put_token(token(name, EMAIL)).await);
    }
    for _ in 0..2 {
        let unconfirmed = redeem(&store, "t2", "l", false).await;
        assert_eq!(unconfirmed, Redeemed::NeedsConfirmation, "a person must confirm");
        assert!(owner(&store, "k").await.is_some(), "the old key lives");
        assert_eq!(owner(&store, "l").await, None, "no key is issued");
    }
    let issued = redeem(&store, "t3", "l", true).await;
    assert!(
        matches!(issued, Redeemed::Issued { first: false, .. }),
        "the tokens are not used up: {issued:?}"
    );
}

/// A confirmed redemption issues a key of the account as it is, and its old keys die.
pub async fn a_confirmed_token_replaces_the_keys(store: Store) {
    let other = register(&store, "other@example.org", "other").await;
    let account = register(&store, EMAIL, "k").await;
    let changed = Account { plan: Plan::Pro, blocked: true, ..account };
    done(store.change_account(changed.clone()).await);
    done(store.put_token(token("t2", EMAIL)).await);
    let account = Account { version: 2, ..changed };
    let issued = Redeemed::Issued { account: account.clone(), first: false };
    assert_eq!(redeem(&store, "t2", "l", true).await, issued, "the account is as it was");
    assert_eq!(owner(&store, "k").await, None, "the old key is dead");
    let key = KeyId::new("l");
    assert_eq!(owner(&store, "l").await, Some(Owner::Account { key, account }), "the new one opens it");
    let key = KeyId::new("other");
    assert_eq!(
        owner(&store, "other").await,
        Some(Owner::Account { key, account: other }),
        "others' keys live"
    );
}

/// Issuing a token voids none; redeeming one voids the others of its address.
pub async fn redeeming_voids_the_other_tokens_of_the_address(store: Store) {
    for name in ["t1", "t2", "t3"] {
        done(store.put_token(token(name, EMAIL)).await);
    }
    done(store.put_token(token("theirs", "other@example.org")).await);
    let issued = redeem(&store, "t2", "k", false).await;
    assert!(matches!(issued, Redeemed::Issued { .. }), "issuing a token voids none: {issued:?}");
    for name in ["t1", "t3"] {
        assert_eq!(redeem(&store, name, "l", true).await, Redeemed::Invalid, "the others are void");
    }
    let issued = redeem(&store, "theirs", "m", false).await;
    assert!(matches!(issued, Redeemed::Issued { first: true, .. }), "another address's are not: {issued:?}");
}

/// A token's digest is one address's only; the same token again is success.
pub async fn a_token_of_another_address_is_a_conflict(store: Store) {
    done(store.put_token(token("t", EMAIL)).await);
    done(store.put_token(token("t", EMAIL)).await);
    let other = store.put_token(token("t", "other@example.org")).await;
    refused(other, ErrorKind::Conflict, "the digest is stored for another address");
    let Redeemed::Issued { account, .. } = redeem(&store, "t", "k", false).await else {
        panic!("a conflict changes nothing")
    };
    assert_eq!(account.email, EMAIL, "a conflict changes nothing");
}

/// A used or void token stays so when it is put again.
pub async fn a_used_token_is_not_made_fresh_by_putting_it_again(store: Store) {
    done(store.put_token(token("void", EMAIL)).await);
    register(&store, EMAIL, "k").await;
    for name in [EMAIL, "void"] {
        done(store.put_token(token(name, EMAIL)).await);
        assert_eq!(redeem(&store, name, "l", true).await, Redeemed::Invalid, "it stays used, or void");
    }
}

/// A redemption whose key or account contradicts what is stored changes nothing.
pub async fn a_redemption_that_contradicts_changes_nothing(store: Store) {
    register(&store, "other@example.org", "taken").await;
    done(store.add_key(lookup_key("lookup", 0), 3).await);
    done(store.put_token(token("t", EMAIL)).await);
    let ask = redemption("t", "k", false);
    let taken_account = AccountId::new("account of other@example.org");
    for (what, wrong) in [
        ("a key of an account", redemption("t", "taken", false)),
        ("a key of Surface A", redemption("t", "lookup", false)),
        ("an account's id", Redeem { new_account: taken_account, ..ask.clone() }),
    ] {
        refused(store.redeem(wrong).await, ErrorKind::Conflict, what);
        assert_eq!(by_email(&store, EMAIL).await, None, "a conflict makes no account");
    }
    let issued = done(store.redeem(ask).await);
    assert!(matches!(issued, Redeemed::Issued { first: true, .. }), "the token is not used up: {issued:?}");
}

/// Of many redemptions of one token exactly one is issued.
pub async fn redeeming_at_once_is_won_by_one(store: Store) {
    done(store.put_token(token("t", EMAIL)).await);
    let redeemed = together((0..10).map(|n| {
        let store = Arc::clone(&store);
        async move { redeem(&store, "t", &format!("k{n}"), true).await }
    }))
    .await;
    let issued = redeemed.iter().filter(|one| matches!(one, Redeemed::Issued { first: true, .. })).count();
    assert_eq!(issued, 1, "one wins");
    assert_eq!(redeemed.iter().filter(|one| **one == Redeemed::Invalid).count(), 9, "others find it used");
    for (n, one) in redeemed.iter().enumerate() {
        let live = owner(&store, &format!("k{n}")).await.is_some();
        assert_eq!(live, *one != Redeemed::Invalid, "only the winner's key is live");
    }
}

/// Two tokens of one new address, redeemed at once, make one account with one key.
pub async fn two_tokens_at_once_make_one_account(store: Store) {
    for name in ["t0", "t1", "t2", "t3"] {
        done(store.put_token(token(name, EMAIL)).await);
    }
    let redeemed = together((0..4).map(|n| {
        let store = Arc::clone(&store);
        async move { redeem(&store, &format!("t{n}"), &format!("k{n}"), true).await }
    }))
    .await;
    let issued = redeemed.iter().filter(|one| matches!(one, Redeemed::Issued { .. })).count();
    assert_eq!(issued, 1, "the first voids the others: {redeemed:?}");
    let mut live = 0;
    for n in 0..4 {
        live += u32::from(owner(&store, &format!("k{n}")).await.is_some());
    }
    assert_eq!(live, 1, "one account, one key");
}
