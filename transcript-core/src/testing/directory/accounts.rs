//! Conformance cases of v1 API accounts: lookup, update, erasure.

use super::*;
use crate::{
    directory::{
        EraseOutcome, PaidPeriod, Plan,
        RedeemOutcome::{Invalid, NeedsConfirmation},
        RenewRequest, RotateOutcome,
        UpdateOutcome::{self, Changed, Missing, Stale},
    },
    error::ErrorKind,
    page::PageRequest,
    testing::{call_concurrently, expect_error, read_pages},
};

const EMAIL: &str = "someone@example.org";

async fn find(store: &DirectoryStore, reference: &AccountRef) -> Option<Account> {
    expect_ok(store.account(reference).await)
}

async fn change(store: &DirectoryStore, account: Account) -> UpdateOutcome {
    expect_ok(store.update_account(account).await)
}

/// An account is found by id, address and customer.
pub async fn account_is_found_by_every_reference(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    let other = register(&store, "other@example.org", "l").await;
    let named = |name: &str| AccountRef::Customer(name.to_owned());
    assert_eq!(find(&store, &named("cus_1")).await, None, "it has no customer yet");
    let changed = Account { customer: Some("cus_1".to_owned()), ..account };
    let Changed(account) = change(&store, changed).await else {
        panic!("an update with the stored version succeeds")
    };
    let by_id = AccountRef::Id(account.id.clone());
    for reference in [by_id, AccountRef::Email(EMAIL.to_owned()), named("cus_1")] {
        assert_eq!(find(&store, &reference).await, Some(account.clone()), "found by {reference:?}");
    }
    for reference in [AccountRef::Id(AccountId::new("x")), AccountRef::Email("x".to_owned()), named("x")] {
        assert_eq!(find(&store, &reference).await, None, "no account is found by {reference:?}");
    }
    assert_eq!(
        find(&store, &AccountRef::Id(other.id.clone())).await,
        Some(other),
        "each account is found by its own id"
    );
}

/// An update succeeds only with the stored version.
pub async fn account_update_requires_latest_version(store: DirectoryStore) {
    let first = register(&store, EMAIL, "k").await;
    let paid = Account {
        plan: Plan::Scale,
        anchor: at(77),
        paid: Some(PaidPeriod {
            from: at(77),
            through: at(900),
            credits: 7,
            monthly_credits: 9,
            anchor_before: at(55),
        }),
        customer: Some("cus_1".to_owned()),
        subscription: Some("sub_1".to_owned()),
        blocked: true,
        prepaid_until: Some(at(1_000)),
        ..first.clone()
    };
    let expect = Account { version: 2, ..paid.clone() };
    assert_eq!(change(&store, paid.clone()).await, Changed(expect.clone()), "its version increases by one");
    assert_eq!(by_email(&store, EMAIL).await, Some(expect.clone()), "the account is as updated");
    assert_eq!(change(&store, paid).await, Stale, "an earlier version is stale");
    let ahead = Account { version: 3, ..expect.clone() };
    assert_eq!(change(&store, ahead).await, Stale, "a later version is stale");
    assert_eq!(by_email(&store, EMAIL).await, Some(expect), "a stale update changes nothing");
    let back = Account { version: 2, ..first.clone() };
    let expect = Account { version: 3, ..first.clone() };
    assert_eq!(change(&store, back).await, Changed(expect), "set fields can be cleared");
    let unknown = Account { id: AccountId::new("unknown"), ..first };
    assert_eq!(change(&store, unknown).await, Missing, "the account does not exist");
}

/// An update never changes the address and the wallet of an account.
pub async fn account_address_and_wallet_never_change(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    let wrong = Account {
        email: "thief@example.org".to_owned(),
        wallet: WalletId::new("another"),
        plan: Plan::Pro,
        ..account.clone()
    };
    let expect = Account { version: 2, plan: Plan::Pro, ..account };
    assert_eq!(change(&store, wrong).await, Changed(expect.clone()), "only the other fields change");
    assert_eq!(by_email(&store, EMAIL).await, Some(expect));
    assert_eq!(by_email(&store, "thief@example.org").await, None, "the address never changes on update");
}

/// A customer of the payment provider belongs to one account only.
pub async fn customer_of_other_account_is_conflict(store: DirectoryStore) {
    let one = register(&store, EMAIL, "k").await;
    let other = register(&store, "other@example.org", "l").await;
    let with = |account: Account| Account { customer: Some("cus_1".to_owned()), ..account };
    change(&store, with(one)).await;
    let taken = store.update_account(with(other.clone())).await;
    expect_error(taken, ErrorKind::Conflict, "the customer belongs to another account");
    assert_eq!(by_email(&store, &other.email).await, Some(other), "a conflict changes nothing");
    let one = by_email(&store, EMAIL).await.expect("the first account is there");
    assert!(matches!(change(&store, one).await, Changed(_)), "the account's own customer is not a conflict");
}

/// Of concurrent updates of one version exactly one takes effect.
pub async fn concurrent_account_updates_take_effect_once(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    let changed = call_concurrently(&store, 0..10, |store, n| {
        let account = Account { subscription: Some(format!("sub_{n}")), ..account.clone() };
        async move { change(&store, account).await }
    })
    .await;
    let won: Vec<_> = changed
        .into_iter()
        .filter_map(|one| match one {
            Changed(account) => Some(account),
            _ => None,
        })
        .collect();
    assert_eq!(won.len(), 1, "one update takes effect, the others are stale");
    assert_eq!(
        by_email(&store, EMAIL).await,
        won.first().cloned(),
        "the stored account is that of this update"
    );
}

/// Blocking changes the account, not its key; the caller decides what a blocked account may do.
pub async fn blocked_account_keeps_its_key(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    change(&store, Account { blocked: true, ..account.clone() }).await;
    let account = Account { blocked: true, version: 2, ..account };
    assert_eq!(owner(&store, "k").await, v1_owner("k", &account), "the key returns the blocked account");
}

/// The key of an account can be rotated and revoked like any other.
pub async fn account_key_is_rotated_and_revoked(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    assert_eq!(expect_ok(store.rotate(&digest("k"), new_key("l", 20)).await), RotateOutcome::Rotated);
    assert_eq!(owner(&store, "k").await, None, "the old key is dead at once");
    let key = KeyId::new("l");
    assert_eq!(owner(&store, "l").await, v1_owner("l", &account), "the same account");
    let request = RenewRequest {
        key: key.clone(),
        subject: "s".to_owned(),
        until: at(99),
        now: at(1),
        live_per_subject: 3,
    };
    assert!(!expect_ok(store.renew_entitlement(request).await), "an account key has no subject");
    assert!(expect_ok(store.revoke_key(&key, at(30)).await), "the key was live");
    assert!(!expect_ok(store.revoke_key(&key, at(31)).await), "the key is already dead");
    assert_eq!(owner(&store, "l").await, None, "a revoked key has no owner");
    assert!(by_email(&store, EMAIL).await.is_some(), "the account stays");
}

/// An erased account is not found; its keys and tokens are dead.
pub async fn erased_account_is_not_found(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    let other = register(&store, "other@example.org", "other").await;
    let customer = Some("cus_1".to_owned());
    change(&store, Account { customer: customer.clone(), ..account.clone() }).await;
    expect_ok(store.put_token(token("pending", EMAIL)).await);
    for version in [0, 1, 3] {
        let stale = expect_ok(store.erase_account(&account.id, version, at(50)).await);
        assert_eq!(stale, EraseOutcome::Stale, "the stored version is 2");
    }
    assert!(owner(&store, "k").await.is_some(), "nothing was erased");
    assert_eq!(redeem(&store, "pending", "l", false).await, NeedsConfirmation, "the token is still valid");
    for expect in [EraseOutcome::Erased, EraseOutcome::Missing] {
        assert_eq!(expect_ok(store.erase_account(&account.id, 2, at(50)).await), expect);
    }
    for reference in [
        AccountRef::Id(account.id.clone()),
        AccountRef::Email(EMAIL.to_owned()),
        AccountRef::Customer("cus_1".to_owned()),
    ] {
        assert_eq!(find(&store, &reference).await, None, "an erased account is not found by {reference:?}");
    }
    assert_eq!(owner(&store, "k").await, None, "its keys are dead");
    let rotated = expect_ok(store.rotate(&digest("k"), new_key("l", 52)).await);
    assert_eq!(rotated, RotateOutcome::Stale, "a dead key is not rotated");
    assert!(!expect_ok(store.revoke_key(&KeyId::new("k"), at(52)).await), "a dead key is not revoked");
    for (token, key) in [("pending", "l"), (EMAIL, "k")] {
        assert_eq!(redeem(&store, token, key, true).await, Invalid, "its tokens are dead");
    }
    let changed = change(&store, Account { version: 2, ..account }).await;
    assert_eq!(changed, Missing, "an erased account is not updated");
    let all = read_pages(10, async |page| store.accounts(page).await).await;
    assert_eq!(all, std::slice::from_ref(&other), "an erased account is not listed");
    assert!(owner(&store, "other").await.is_some(), "other accounts stay");
    let theirs = Account { customer, ..other };
    assert!(
        matches!(change(&store, theirs).await, Changed(_)),
        "its customer can be used by another account"
    );
}

/// The address of an erased account can register again, as another account.
pub async fn erased_address_registers_as_new_account(store: DirectoryStore) {
    let account = register(&store, EMAIL, "k").await;
    expect_ok(store.erase_account(&account.id, account.version, at(50)).await);
    expect_ok(store.put_token(token("again", EMAIL)).await);
    let RedeemOutcome::Issued { account: registered, first } = redeem(&store, "again", "l", false).await
    else {
        panic!("the address of an erased account is free")
    };
    assert!(
        first && registered.id != account.id && registered.version == 1,
        "a new account is created: {registered:?}"
    );
    assert_eq!(by_email(&store, EMAIL).await, Some(registered));
}

/// Accounts are paged, oldest first.
pub async fn accounts_are_paged_oldest_first(store: DirectoryStore) {
    assert_eq!(
        read_pages(5, async |page| store.accounts(page).await).await,
        [],
        "a new store has no accounts"
    );
    let mut expect = Vec::new();
    for n in 0..15 {
        let name = format!("{n:02}@example.org");
        expect_ok(store.put_token(token(&name, &name)).await);
        let mut request = redemption(&name, &format!("k{n}"), false);
        request.key.now = at(10 + n);
        expect_ok(store.redeem(request).await);
        expect.push(name);
    }
    for limit in [1, 4, 14, 15, 16, u32::MAX] {
        let all = read_pages(limit, async |page| store.accounts(page).await).await;
        let emails: Vec<_> = all.into_iter().map(|account| account.email).collect();
        assert_eq!(emails, expect, "pages of {limit} give every account once, oldest first");
    }
    let page = expect_ok(store.accounts(PageRequest { after: None, limit: 15 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    let page = expect_ok(store.accounts(PageRequest { after: None, limit: 5 }).await);
    let fourth = page.items.get(4).expect("the page is full").id.clone();
    assert_eq!(expect_ok(store.erase_account(&fourth, 1, at(99)).await), EraseOutcome::Erased);
    let rest = expect_ok(store.accounts(PageRequest { after: page.next, limit: 100 }).await);
    assert_eq!(rest.items.len(), 10, "a cursor continues after its page, even if its item was erased");
}
