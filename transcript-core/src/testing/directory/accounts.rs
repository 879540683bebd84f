//! Accounts of Surface B: finding, changing, erasing.

use super::*;
use crate::{
    directory::{Changed, Entitle, Erased, PaidPeriod, Plan, Rotated},
    error::ErrorKind,
    page::PageRequest,
    testing::{pages, refused, together},
};

const EMAIL: &str = "someone@example.org";

async fn change(store: &Store, account: Account) -> Changed {
    done(store.change_account(account).await)
}

/// An account is found by id, address and customer.
pub async fn an_account_is_found_by_every_reference(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    let other = register(&store, "other@example.org", "l").await;
    let named = |name: &str| AccountRef::Customer(name.to_owned());
    assert_eq!(done(store.account(&named("cus_1")).await), None, "it has no customer yet");
    let changed = Account { customer: Some("cus_1".to_owned()), ..account };
    let Changed::Changed(account) = change(&store, changed).await else {
        panic!("an account changes when its version is the stored one")
    };
    let by_id = AccountRef::Id(account.id.clone());
    for who in [by_id, AccountRef::Email(EMAIL.to_owned()), named("cus_1")] {
        assert_eq!(done(store.account(&who).await), Some(account.clone()), "found by {who:?}");
    }
    for who in [AccountRef::Id(AccountId::new("x")), AccountRef::Email("x".to_owned()), named("x")] {
        assert_eq!(done(store.account(&who).await), None, "nobody is found by {who:?}");
    }
    assert_eq!(
        done(store.account(&AccountRef::Id(other.id.clone())).await),
        Some(other),
        "others are others"
    );
}

/// An account is changed by whoever read its latest version.
pub async fn an_account_is_changed_by_who_read_it_last(store: Store) {
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
        ..first.clone()
    };
    let expect = Account { version: 2, ..paid.clone() };
    assert_eq!(
        change(&store, paid.clone()).await,
        Changed::Changed(expect.clone()),
        "its version grows by one"
    );
    assert_eq!(by_email(&store, EMAIL).await, Some(expect.clone()), "as it was changed");
    assert_eq!(change(&store, paid).await, Changed::Stale, "an earlier version is stale");
    let ahead = Account { version: 3, ..expect.clone() };
    assert_eq!(change(&store, ahead).await, Changed::Stale, "and so is a later one");
    assert_eq!(by_email(&store, EMAIL).await, Some(expect), "a stale change changes nothing");
    let back = Account { version: 2, ..first.clone() };
    let expect = Account { version: 3, ..first.clone() };
    assert_eq!(change(&store, back).await, Changed::Changed(expect), "what was set can be cleared");
    let nobody = Account { id: AccountId::new("nobody"), ..first };
    assert_eq!(change(&store, nobody).await, Changed::Missing, "there is no such account");
}

/// The address and the wallet of an account stay, whatever a change says.
pub async fn address_and_wallet_never_change(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    let wrong = Account {
        email: "thief@example.org".to_owned(),
        wallet: WalletId::new("another"),
        plan: Plan::Pro,
        ..account.clone()
    };
    let expect = Account { version: 2, plan: Plan::Pro, ..account };
    assert_eq!(change(&store, wrong).await, Changed::Changed(expect.clone()), "only the rest is changed");
    assert_eq!(by_email(&store, EMAIL).await, Some(expect));
    assert_eq!(by_email(&store, "thief@example.org").await, None, "the address never changes this way");
}

/// A customer of the payment provider is one account's only.
pub async fn a_customer_is_one_accounts(store: Store) {
    let one = register(&store, EMAIL, "k").await;
    let other = register(&store, "other@example.org", "l").await;
    let with = |account: Account| Account { customer: Some("cus_1".to_owned()), ..account };
    change(&store, with(one)).await;
    let taken = store.change_account(with(other.clone())).await;
    refused(taken, ErrorKind::Conflict, "the customer is another account's");
    assert_eq!(by_email(&store, &other.email).await, Some(other), "a conflict changes nothing");
    let one = by_email(&store, EMAIL).await.expect("the first account is there");
    assert!(matches!(change(&store, one).await, Changed::Changed(_)), "its own is no conflict");
}

/// Of many changes of one version exactly one takes effect.
pub async fn changing_at_once_is_won_by_one(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    let changed = together((0..10).map(|n| {
        let store = Arc::clone(&store);
        let account = Account { subscription: Some(format!("sub_{n}")), ..account.clone() };
        async move { change(&store, account).await }
    }))
    .await;
    let won: Vec<_> = changed
        .into_iter()
        .filter_map(|one| match one {
            Changed::Changed(account) => Some(account),
            _ => None,
        })
        .collect();
    assert_eq!(won.len(), 1, "one wins, the others are stale");
    assert_eq!(by_email(&store, EMAIL).await, won.first().cloned(), "what is stored is the winner's");
}

/// Blocking changes the account, not its key: the caller decides what a blocked one may.
pub async fn a_blocked_account_keeps_its_key(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    change(&store, Account { blocked: true, ..account.clone() }).await;
    let account = Account { blocked: true, version: 2, ..account };
    let key = KeyId::new("k");
    assert_eq!(owner(&store, "k").await, Some(Owner::Account { key, account }), "the key tells the account");
}

/// The key of an account rotates and is revoked like any other.
pub async fn an_account_key_is_rotated_and_revoked(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    assert_eq!(done(store.rotate(&digest("k"), new_key("l", 20)).await), Rotated::Rotated);
    assert_eq!(owner(&store, "k").await, None, "the old key is dead at once");
    let key = KeyId::new("l");
    assert_eq!(
        owner(&store, "l").await,
        Some(Owner::Account { key: key.clone(), account }),
        "the same account"
    );
    let ask =
        Entitle { key: key.clone(), subject: "s".to_owned(), until: at(99), now: at(1), live_per_subject: 3 };
    assert!(!done(store.entitle(ask).await), "an account's key has no subject");
    assert!(done(store.revoke_key(&key, at(30)).await), "it was live");
    assert!(!done(store.revoke_key(&key, at(31)).await), "it is dead already");
    assert_eq!(owner(&store, "l").await, None, "a revoked key opens nothing");
    assert!(by_email(&store, EMAIL).await.is_some(), "the account stays");
}

/// An erased account is found by nothing; its keys and tokens are dead.
pub async fn an_erased_account_is_gone(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    let other = register(&store, "other@example.org", "other").await;
    let customer = Some("cus_1".to_owned());
    change(&store, Account { customer: customer.clone(), ..account.clone() }).await;
    done(store.put_token(token("pending", EMAIL)).await);
    for version in [0, 1, 3] {
        let stale = done(store.erase_account(&account.id, version, at(50)).await);
        assert_eq!(stale, Erased::Stale, "the account is in its second version");
    }
    assert!(owner(&store, "k").await.is_some(), "nothing was erased");
    assert_eq!(redeem(&store, "pending", "l", false).await, Redeemed::NeedsConfirmation, "no token either");
    for expect in [Erased::Erased, Erased::Missing] {
        assert_eq!(done(store.erase_account(&account.id, 2, at(50)).await), expect);
    }
    for who in [
        AccountRef::Id(account.id.clone()),
        AccountRef::Email(EMAIL.to_owned()),
        AccountRef::Customer("cus_1".to_owned()),
    ] {
        assert_eq!(done(store.account(&who).await), None, "an erased account is not found by {who:?}");
    }
    assert_eq!(owner(&store, "k").await, None, "its keys are dead");
    let rotated = done(store.rotate(&digest("k"), new_key("l", 52)).await);
    assert_eq!(rotated, Rotated::Stale, "a dead key is not rotated");
    assert!(!done(store.revoke_key(&KeyId::new("k"), at(52)).await), "nor revoked");
    for (token, key) in [("pending", "l"), (EMAIL, "k")] {
        assert_eq!(redeem(&store, token, key, true).await, Redeemed::Invalid, "its tokens are dead");
    }
    let changed = change(&store, Account { version: 2, ..account }).await;
    assert_eq!(changed, Changed::Missing, "an erased account is not changed");
    let all = pages(10, async |page| store.accounts(page).await).await;
    assert_eq!(all, std::slice::from_ref(&other), "nor listed");
    assert!(owner(&store, "other").await.is_some(), "others stay");
    let theirs = Account { customer, ..other };
    assert!(matches!(change(&store, theirs).await, Changed::Changed(_)), "its customer's name is free");
}

/// The address of an erased account can register anew, as another account.
pub async fn an_erased_address_registers_anew(store: Store) {
    let account = register(&store, EMAIL, "k").await;
    done(store.erase_account(&account.id, account.version, at(50)).await);
    done(store.put_token(token("anew", EMAIL)).await);
    let Redeemed::Issued { account: anew, first } = redeem(&store, "anew", "l", false).await else {
        panic!("the address of an erased account is a new address")
    };
    assert!(first && anew.id != account.id && anew.version == 1, "a new account is made: {anew:?}");
    assert_eq!(by_email(&store, EMAIL).await, Some(anew));
}

/// Accounts come page by page, oldest first.
pub async fn accounts_come_in_pages(store: Store) {
    assert_eq!(pages(5, async |page| store.accounts(page).await).await, [], "at first there are none");
    let mut expect = Vec::new();
    for n in 0..15 {
        let name = format!("{n:02}@example.org");
        done(store.put_token(token(&name, &name)).await);
        let mut ask = redemption(&name, &format!("k{n}"), false);
        ask.key.now = at(10 + n);
        done(store.redeem(ask).await);
        expect.push(name);
    }
    for limit in [1, 4, 14, 15, 16, u32::MAX] {
        let all = pages(limit, async |page| store.accounts(page).await).await;
        let emails: Vec<_> = all.into_iter().map(|account| account.email).collect();
        assert_eq!(emails, expect, "pages of {limit} give every account once, oldest first");
    }
    let page = done(store.accounts(PageRequest { after: None, limit: 15 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    let page = done(store.accounts(PageRequest { after: None, limit: 5 }).await);
    let fourth = page.items.get(4).expect("the page is full").id.clone();
    assert_eq!(done(store.erase_account(&fourth, 1, at(99)).await), Erased::Erased);
    let rest = done(store.accounts(PageRequest { after: page.next, limit: 100 }).await);
    assert_eq!(rest.items.len(), 10, "a cursor goes on where its page ended, also when that item is gone");
}
