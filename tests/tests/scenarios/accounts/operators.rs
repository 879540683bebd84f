//! What operators do with accounts.

use transcript_core::{ErrorKind, PageRequest, directory::Account, ids::GrantId, ledger::EntryKind};

use super::*;
use crate::simulation::accounts::issue_token;

#[test]
fn accounts_are_listed_and_found_by_id_and_address() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let accounts = &life.accounts[0];
        let one = SimAccount::made(&life, "one@example.org").await;
        let two = SimAccount::made(&life, "two@example.org").await;
        call(&life, &two, video()).await;
        let listed = accounts.list(PageRequest::first()).await.unwrap();
        let shown: Vec<_> =
            listed.items.iter().map(|view| (view.account.id.clone(), view.credits.remaining)).collect();
        assert_eq!(shown, [(one.id.clone(), 5), (two.id.clone(), 4)]);
        for who in [two.id.as_str(), "two@example.org", " TWO@Example.org "] {
            assert_eq!(accounts.show(who).await.unwrap(), listed.items[1], "{who}");
        }
        for who in ["", "nobody", "nobody@example.org"] {
            assert_eq!(accounts.show(who).await.unwrap_err().kind(), ErrorKind::NotFound, "{who}");
        }
    });
}

#[test]
fn a_grant_is_made_once() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        for _ in 0..2 {
            let view = accounts.grant(&account.email, GrantId::new("g"), 7, "sorry").await.unwrap();
            assert_eq!((view.credits.remaining, view.credits.total), (12, 12));
        }
        let other = accounts.grant(&account.email, GrantId::new("g"), 8, "sorry").await.unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Conflict);
        let none = accounts.grant(&account.email, GrantId::new("h"), 0, "").await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::Invalid);
        let page = accounts.statement(&account.email, PageRequest::first()).await.unwrap();
        let steps: Vec<_> =
            page.items.iter().map(|entry| (entry.kind, entry.amount, entry.memo.as_str())).collect();
        assert_eq!(steps, [(EntryKind::Granted, 7, "sorry")]);
    });
}

#[test]
fn a_blocked_account_opens_nothing_and_keeps_all() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        for _ in 0..2 {
            assert!(accounts.set_blocked(&account.email, true).await.unwrap().blocked);
        }
        let refused = call(&life, &account, video()).await;
        let Answer::Refused(refused) = refused else { panic!("{refused:?}") };
        check_refused(Err::<(), _>(refused), 401, "blocked");
        accounts.set_blocked(account.id.as_str(), false).await.unwrap();
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, Answer::New { from_cache: false, left: Some(4) });
    });
}

#[test]
fn an_erased_account_leaves_its_journal_and_nothing_of_the_person() {
    play(plan([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        call(&life, &account, video()).await;
        let token = issue_token(&life, &account.email).await.unwrap();
        let export = accounts.export(&account.email).await.unwrap();
        assert_eq!(export.view.account.email, account.email);
        assert_eq!(export.entries.len(), 2, "{:?}", export.entries);
        let subscribe = |account: &Account| Account { subscription: Some("s".to_owned()), ..account.clone() };
        accounts.change(&account.id, subscribe).await.unwrap();
        assert_eq!(accounts.delete(&account.email).await.unwrap_err().kind(), ErrorKind::Conflict);
        let cancel = |account: &Account| Account { subscription: None, ..account.clone() };
        accounts.change(&account.id, cancel).await.unwrap();
        assert_eq!(accounts.delete(&account.email).await.unwrap(), account.id);
        for who in [account.id.as_str(), &account.email] {
            assert_eq!(accounts.show(who).await.unwrap_err().kind(), ErrorKind::NotFound);
        }
        check_refused(accounts.authenticate(Some(&account.key())).await, 401, "unknown");
        check_refused(accounts.verify(&token, true, None).await, 400, "invalid");
        assert_eq!(life.world.oracle.sums(&account.wallet).spent, 1);
        let anew = SimAccount::made(&life, &account.email).await;
        assert!(anew.id != account.id && anew.wallet != account.wallet);
        assert_eq!(remaining(&life, &anew).await, 5);
    });
}

#[test]
fn changes_at_once_all_take_effect() {
    play(Plan::default(), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let begun = accounts.show(&account.email).await.unwrap().account.anchor;
        let changes = (1..=12).map(|_| {
            // Each adds a day to what it finds.
            let day = Duration::from_secs(24 * 3_600);
            accounts.change(&account.id, move |account| Account {
                anchor: account.anchor.plus(day),
                ..account.clone()
            })
        });
        for changed in futures_util::future::join_all(changes).await {
            changed.unwrap();
        }
        let anchor = accounts.show(&account.email).await.unwrap().account.anchor;
        assert_eq!(anchor.since(begun), Duration::from_secs(12 * 24 * 3_600));
    });
}
