//! Conformance cases of verification tokens: each is redeemed once, together with its new key.

use super::*;
use crate::{
    directory::{
        Plan,
        RedeemOutcome::{Invalid, NeedsConfirmation},
    },
    error::ErrorKind,
    testing::{call_concurrently, expect_error},
};

const EMAIL: &str = "someone@example.org";

fn check_issued(outcome: RedeemOutcome, is_first: bool, rule: &str) {
    let is_issued = matches!(outcome, RedeemOutcome::Issued { first, .. } if first == is_first);
    assert!(is_issued, "{rule}: {outcome:?}");
}

/// A new token of a new address creates a free account and its key.
pub async fn token_of_new_address_creates_account_and_key(store: DirectoryStore) {
    assert_eq!(redeem(&store, "t", "k", true).await, Invalid, "an unknown token is invalid");
    expect_ok(store.put_token(token("t", EMAIL)).await);
    assert_eq!(by_email(&store, EMAIL).await, None, "issuing a token creates no account");
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
        prepaid_until: None,
    };
    let issued = RedeemOutcome::Issued { account: account.clone(), first: true };
    assert_eq!(redeem(&store, "t", "k", false).await, issued, "a new address needs no confirmation");
    assert_eq!(owner(&store, "k").await, v1_owner("k", &account), "the key returns the account");
}

/// A token is used up by its first redemption.
pub async fn token_is_used_once(store: DirectoryStore) {
    register(&store, EMAIL, "k").await;
    for confirmed in [false, true] {
        let again = redeem(&store, EMAIL, "l", confirmed).await;
        assert_eq!(again, Invalid, "a used token is invalid");
    }
    assert_eq!(owner(&store, "l").await, None, "it issues no key");
    assert!(owner(&store, "k").await.is_some(), "it revokes no key");
}

/// A redemption whose outcome is unknown can be repeated.
pub async fn redeem_repeated_returns_first_outcome(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    let issued = RedeemOutcome::Issued { account: account.clone(), first: true };
    assert_eq!(redeem(&store, EMAIL, "k", false).await, issued, "a repeat returns the first outcome");
    let other_digest = NewKeyRecord { digest: digest("x"), ..new_key("k", 10) };
    let other = RedeemRequest { key: other_digest, ..redemption(EMAIL, "k", true) };
    assert_eq!(expect_ok(store.redeem(other).await), Invalid, "another key is another redemption");
    expect_ok(store.put_token(token("t2", EMAIL)).await);
    for _ in 0..2 {
        let issued = RedeemOutcome::Issued { account: account.clone(), first: false };
        assert_eq!(redeem(&store, "t2", "k2", true).await, issued, "also for an existing account");
    }
    assert_eq!(redeem(&store, EMAIL, "k", false).await, Invalid, "its key is dead");
    assert_eq!(owner(&store, "k").await, None, "the key stays dead");
}

/// A token is invalid from its expiry on.
pub async fn token_is_invalid_at_expiry(store: DirectoryStore) {
    expect_ok(store.put_token(VerificationToken { expires_at: at(10), ..token("late", EMAIL) }).await);
    assert_eq!(redeem(&store, "late", "k", true).await, Invalid, "a token is invalid at its expiry");
    expect_ok(store.put_token(VerificationToken { expires_at: at(11), ..token("just", EMAIL) }).await);
    check_issued(redeem(&store, "just", "k", false).await, true, "a token is valid before its expiry");
    expect_ok(store.put_token(VerificationToken { expires_at: at(10), ..token("ended", EMAIL) }).await);
    let ended = redeem(&store, "ended", "l", false).await;
    assert_eq!(ended, Invalid, "an expired token does not request confirmation");
}

/// A token that a clock made which was ahead is invalid until the time of that clock comes.
pub async fn token_of_corrected_clock_is_invalid(store: DirectoryStore) {
    expect_ok(store.put_token(VerificationToken { expires_at: at(300_000), ..token("ahead", EMAIL) }).await);
    assert_eq!(redeem(&store, "ahead", "k", true).await, Invalid, "it would be valid for days");
    let request = RedeemRequest { key: new_key("k", 200_000), ..redemption("ahead", "k", false) };
    check_issued(expect_ok(store.redeem(request).await), true, "its last day");
}

/// For an address with an account nothing changes until the user confirms.
pub async fn redeem_for_existing_account_needs_confirmation(store: DirectoryStore) {
    register(&store, EMAIL, "k").await;
    for name in ["t2", "t3"] {
        expect_ok(store.put_token(token(name, EMAIL)).await);
    }
    for _ in 0..2 {
        let unconfirmed = redeem(&store, "t2", "l", false).await;
        assert_eq!(unconfirmed, NeedsConfirmation, "confirmation is required");
        assert!(owner(&store, "k").await.is_some(), "the old key stays live");
        assert_eq!(owner(&store, "l").await, None, "no key is issued");
    }
    check_issued(redeem(&store, "t3", "l", true).await, false, "the tokens are not used up");
}

/// A confirmed redemption issues a key for the unchanged account and revokes its old keys.
pub async fn confirmed_redeem_replaces_keys(store: DirectoryStore) {
    let other = register(&store, "other@example.org", "other").await;
    let account = register(&store, EMAIL, "k").await;
    let changed = Account { plan: Plan::Pro, blocked: true, ..account };
    expect_ok(store.update_account(changed.clone()).await);
    expect_ok(store.put_token(token("t2", EMAIL)).await);
    let account = Account { version: 2, ..changed };
    let issued = RedeemOutcome::Issued { account: account.clone(), first: false };
    assert_eq!(redeem(&store, "t2", "l", true).await, issued, "the account is unchanged");
    assert_eq!(owner(&store, "k").await, None, "the old key is dead");
    assert_eq!(owner(&store, "l").await, v1_owner("l", &account), "the new key returns the account");
    assert_eq!(owner(&store, "other").await, v1_owner("other", &other), "keys of other accounts stay live");
}

/// Issuing a token voids no token; redeeming one voids the others of its address.
pub async fn redeem_voids_other_tokens_of_address(store: DirectoryStore) {
    for name in ["t1", "t2", "t3"] {
        expect_ok(store.put_token(token(name, EMAIL)).await);
    }
    expect_ok(store.put_token(token("theirs", "other@example.org")).await);
    let issued = redeem(&store, "t2", "k", false).await;
    assert!(matches!(issued, RedeemOutcome::Issued { .. }), "issuing a token voids none: {issued:?}");
    for name in ["t1", "t3"] {
        assert_eq!(redeem(&store, name, "l", true).await, Invalid, "the others are void");
    }
    check_issued(redeem(&store, "theirs", "m", false).await, true, "tokens of other addresses stay valid");
}

/// A token digest belongs to one address; storing the same token again succeeds.
pub async fn token_of_other_address_is_conflict(store: DirectoryStore) {
    expect_ok(store.put_token(token("t", EMAIL)).await);
    expect_ok(store.put_token(token("t", EMAIL)).await);
    let other = store.put_token(token("t", "other@example.org")).await;
    expect_error(other, ErrorKind::Conflict, "the digest is stored for another address");
    let RedeemOutcome::Issued { account, .. } = redeem(&store, "t", "k", false).await else {
        panic!("a conflict changes nothing")
    };
    assert_eq!(account.email, EMAIL, "a conflict changes nothing");
}

/// A used or void token stays so when it is stored again.
pub async fn used_token_put_again_stays_used(store: DirectoryStore) {
    expect_ok(store.put_token(token("void", EMAIL)).await);
    register(&store, EMAIL, "k").await;
    for name in [EMAIL, "void"] {
        expect_ok(store.put_token(token(name, EMAIL)).await);
        assert_eq!(redeem(&store, name, "l", true).await, Invalid, "it stays used or void");
    }
}

/// A redemption with a used key or account id is a conflict and changes nothing.
pub async fn redeem_with_used_key_or_account_is_conflict(store: DirectoryStore) {
    register(&store, "other@example.org", "taken").await;
    expect_ok(store.add_key(lookup_key("lookup", 0), 3).await);
    expect_ok(store.put_token(token("t", EMAIL)).await);
    let request = redemption("t", "k", false);
    let taken_account = AccountId::new("account of other@example.org");
    for (what, wrong) in [
        ("a key of an account", redemption("t", "taken", false)),
        ("a lookup key", redemption("t", "lookup", false)),
        ("an account's id", RedeemRequest { new_account: taken_account, ..request.clone() }),
    ] {
        expect_error(store.redeem(wrong).await, ErrorKind::Conflict, what);
        assert_eq!(by_email(&store, EMAIL).await, None, "a conflict creates no account");
    }
    check_issued(expect_ok(store.redeem(request).await), true, "the token is not used up");
}

/// Of concurrent redemptions of one token exactly one issues a key.
pub async fn concurrent_redeems_of_one_token_issue_once(store: DirectoryStore) {
    expect_ok(store.put_token(token("t", EMAIL)).await);
    let redeemed = call_concurrently(&store, 0..10, |store, n| async move {
        redeem(&store, "t", &format!("k{n}"), true).await
    })
    .await;
    let issued =
        redeemed.iter().filter(|one| matches!(one, RedeemOutcome::Issued { first: true, .. })).count();
    assert_eq!(issued, 1, "one redemption succeeds");
    assert_eq!(redeemed.iter().filter(|one| **one == Invalid).count(), 9, "the others find the token used");
    for (n, one) in redeemed.iter().enumerate() {
        let live = owner(&store, &format!("k{n}")).await.is_some();
        assert_eq!(live, *one != Invalid, "only the key of that redemption is live");
    }
}

/// Concurrent redemptions of one new address create one account with one key.
pub async fn concurrent_redeems_of_one_address_create_one_account(store: DirectoryStore) {
    for name in ["t0", "t1", "t2", "t3"] {
        expect_ok(store.put_token(token(name, EMAIL)).await);
    }
    let redeemed = call_concurrently(&store, 0..4, |store, n| async move {
        redeem(&store, &format!("t{n}"), &format!("k{n}"), true).await
    })
    .await;
    let issued = redeemed.iter().filter(|one| matches!(one, RedeemOutcome::Issued { .. })).count();
    assert_eq!(issued, 1, "the first redemption voids the other tokens: {redeemed:?}");
    let mut live = 0;
    for n in 0..4 {
        live += u32::from(owner(&store, &format!("k{n}")).await.is_some());
    }
    assert_eq!(live, 1, "one account, one key");
}
