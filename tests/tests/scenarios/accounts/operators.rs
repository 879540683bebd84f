//! Account operations of operators.

use transcript_core::{
    ErrorKind, PageRequest,
    accounts::{
        Order, OrderState, ProviderRefs,
        jobs::{Job, JobLimits},
    },
    directory::Account,
    ids::{GrantId, JobId, OrderId},
    ledger::{EntryKind, RevokeOutcome, RevokeRequest},
};

use super::*;
use crate::{payments::fixture::open_order, simulation::accounts::issue_token};

#[test]
fn accounts_are_listed_and_found_by_id_and_email() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let accounts = &life.accounts[0];
        let one = SimAccount::create(&life, "one@example.org").await;
        let two = SimAccount::create(&life, "two@example.org").await;
        call(&life, &two, video()).await;
        let listed = accounts.admin.list(PageRequest::first()).await.unwrap();
        let shown: Vec<_> =
            listed.items.iter().map(|view| (view.account.id.clone(), view.credits.remaining)).collect();
        assert_eq!(shown, [(one.id.clone(), 5), (two.id.clone(), 4)]);
        for account_ref in [two.id.as_str(), "two@example.org", " TWO@Example.org "] {
            assert_eq!(accounts.admin.show(account_ref).await.unwrap(), listed.items[1], "{account_ref}");
        }
        for account_ref in ["", "unknown", "unknown@example.org"] {
            assert_eq!(
                accounts.admin.show(account_ref).await.unwrap_err().kind(),
                ErrorKind::NotFound,
                "{account_ref}"
            );
        }
    });
}

#[test]
fn grant_repeated_is_made_once() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        for _ in 0..2 {
            let view = accounts.admin.grant(&account.email, GrantId::new("g"), 7, "sorry").await.unwrap();
            assert_eq!((view.credits.remaining, view.credits.total), (12, 12));
        }
        let other = accounts.admin.grant(&account.email, GrantId::new("g"), 8, "sorry").await.unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Conflict);
        for (id, amount) in [(GrantId::new("h"), 0), (GrantId::operator_grant(""), 7)] {
            let none = accounts.admin.grant(&account.email, id, amount, "").await.unwrap_err();
            assert_eq!(none.kind(), ErrorKind::Invalid);
        }
        let again = accounts.admin.grant_or_find(&account.email, GrantId::new("g"), 7, "sorry").await;
        assert!(again.unwrap().1, "the grant exists");
        let page = accounts.admin.statement(&account.email, PageRequest::first()).await.unwrap();
        let steps: Vec<_> =
            page.items.iter().map(|entry| (entry.kind, entry.amount, entry.memo.as_str())).collect();
        assert_eq!(steps, [(EntryKind::Granted, 7, "sorry")]);
    });
}

#[test]
fn grant_is_revoked_once_as_far_as_available() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let (admin, account) = (&life.accounts[0].admin, new_account(&life).await);
        let other = SimAccount::create(&life, "other@example.org").await;
        for (name, is_found) in [("g", false), ("operator-g", true)] {
            let grant = GrantId::operator_grant(name);
            let granted = admin.grant_or_find(&account.email, grant, 7, "sorry").await;
            assert_eq!(granted.unwrap().1, is_found, "{name}");
        }
        let used = admin.grant(&other.email, GrantId::operator_grant("g"), 7, "sorry").await.unwrap_err();
        assert!(used.message().starts_with("grant g exists"), "{used}");
        // The credit of the month, and one of the grant.
        for _ in 0..2 {
            call(&life, &account, video()).await;
        }
        for (name, is_repeated) in [("g", false), ("g", true), ("operator-g", true)] {
            let revoked = admin.revoke_grant(&account.email, name).await.unwrap();
            assert_eq!(
                (revoked.taken, revoked.shortfall, revoked.is_repeated),
                (6, 1, is_repeated),
                "{name}"
            );
            assert_eq!(revoked.view.credits.remaining, 0);
        }
        let entries = admin.statement(&account.email, PageRequest::first()).await.unwrap().items;
        let revoked: Vec<_> = entries
            .iter()
            .filter(|entry| matches!(entry.kind, EntryKind::Revoked { .. }))
            .map(|entry| (entry.kind, entry.amount, entry.memo.as_str()))
            .collect();
        assert_eq!(revoked, [(EntryKind::Revoked { shortfall: 1 }, 6, "taken back by the operator")]);
        for (email, name) in [
            (&other.email, "g"),
            (&account.email, "h"),
            (&account.email, ""),
            (&account.email, "revoke-operator-g"),
        ] {
            let unknown = admin.revoke_grant(email, name).await.unwrap_err();
            assert_eq!(unknown.kind(), ErrorKind::NotFound, "{name}");
        }
        admin.grant(&account.email, GrantId::new("order-1"), 5, "pack 2k").await.unwrap();
        let purchase = admin.revoke_grant(&account.email, "order-1").await.unwrap_err();
        assert_eq!(purchase.kind(), ErrorKind::Conflict);
        assert!(purchase.message().contains("refund it at the payment provider"), "{purchase}");
        assert_eq!(remaining(&life, &account).await, 5);
    });
}

#[test]
fn revoked_grant_takes_no_credits_purchased_after_it() {
    run_scenario(with_credits([1, 0, 0, 0]), |life| async move {
        let (admin, account) = (&life.accounts[0].admin, new_account(&life).await);
        for (id, credits) in
            [(GrantId::new("order-1"), 2), (GrantId::operator_grant("g"), 2), (GrantId::new("order-2"), 3)]
        {
            admin.grant(&account.email, id, credits, "credits").await.unwrap();
        }
        // The credit of the month, and the two of the first order; then one of the grant.
        for _ in 0..3 {
            call(&life, &account, video()).await;
        }
        assert_eq!(remaining(&life, &account).await, 5);
        call(&life, &account, video()).await;
        let refused = admin.revoke_grant(&account.email, "g").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(refused.message().contains("has bought 3 since"), "{refused}");
        assert_eq!(remaining(&life, &account).await, 4);
        // With room for the grant and the later purchase, it is revoked, once.
        admin.grant(&account.email, GrantId::operator_grant("h"), 1, "credits").await.unwrap();
        for is_repeated in [false, true] {
            let revoked = admin.revoke_grant(&account.email, "g").await.unwrap();
            assert_eq!((revoked.taken, revoked.shortfall, revoked.is_repeated), (2, 0, is_repeated));
            assert_eq!(revoked.view.credits.remaining, 3);
        }
    });
}

#[test]
fn revoked_grant_leaves_no_credits_to_refunded_purchase() {
    for (spent, taken, shortfall) in [(1, 2, 1), (4, 0, 3)] {
        run_scenario(with_credits([0, 0, 0, 0]), |life| async move {
            let (admin, account) = (&life.accounts[0].admin, new_account(&life).await);
            for id in [GrantId::operator_grant("g"), GrantId::new("order-2")] {
                admin.grant(&account.email, id, 3, "credits").await.unwrap();
            }
            for _ in 0..spent {
                call(&life, &account, video()).await;
            }
            let refund = async |number: u64, amount| {
                let id = GrantId::new(format!("order-2-back-{number}"));
                let (grant, memo) = (GrantId::new("order-2"), "refund".to_owned());
                let request = RevokeRequest { id, grant, amount, now: life.now(), memo };
                let outcome = life.world.ledger.revoke(request).await.unwrap();
                assert!(matches!(outcome, RevokeOutcome::Revoked { .. }), "{outcome:?}");
            };
            refund(1, 1).await;
            let refused = admin.revoke_grant(&account.email, "g").await.unwrap_err();
            assert!(refused.message().contains("has bought 2 since"), "{refused}");
            refund(2, 2).await;
            let revoked = admin.revoke_grant(&account.email, "g").await.unwrap();
            assert_eq!((revoked.taken, revoked.shortfall), (taken, shortfall));
        });
    }
}

#[test]
fn blocked_account_is_rejected_and_keeps_credits() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        for _ in 0..2 {
            assert!(accounts.admin.set_blocked(&account.email, true).await.unwrap().blocked);
        }
        let refused = call(&life, &account, video()).await;
        let AccountAnswer::Refused(refused) = refused else { panic!("{refused:?}") };
        check_refused(Err::<(), _>(refused), 401, "blocked");
        accounts.admin.set_blocked(account.id.as_str(), false).await.unwrap();
        let answer = call(&life, &account, video()).await;
        assert_eq!(answer, AccountAnswer::New { from_cache: false, left: Some(4) });
    });
}

#[test]
fn erased_account_keeps_entries_without_personal_data() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        call(&life, &account, video()).await;
        let token = issue_token(&life, &account.email).await.unwrap();
        let entries = accounts.admin.statement(&account.email, PageRequest::first()).await.unwrap().items;
        assert_eq!(entries.len(), 2, "{entries:?}");
        accounts.keys.register(&account.email, None).await.unwrap();
        let read = accounts.admin.show(&account.email).await.unwrap().account;
        accounts.admin.delete(&read, false).await.unwrap();
        assert_eq!(accounts.admin.delete(&read, true).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(life.world.outbox.lease_due(life.now(), life.now(), 9).await.unwrap(), []);
        for account_ref in [account.id.as_str(), &account.email] {
            assert_eq!(accounts.admin.show(account_ref).await.unwrap_err().kind(), ErrorKind::NotFound);
        }
        check_refused(accounts.authenticator.authenticate(Some(&account.key())).await, 401, "unknown");
        check_refused(accounts.keys.verify(&token, true, None).await, 400, "invalid");
        assert_eq!(life.world.oracle.sums(&account.wallet).spent, 1);
        let recreated = SimAccount::create(&life, &account.email).await;
        assert!(recreated.id != account.id && recreated.wallet != account.wallet);
        assert_eq!(remaining(&life, &recreated).await, 5);
    });
}

#[test]
fn key_for_account_erased_at_same_time_creates_no_account() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let read = accounts.admin.show(&account.email).await.unwrap().account;
        let delay = Duration::from_millis(100);
        life.world.gate.set_faults(FaultPlan::SlowStore { stores: "directory.put_token", delay });
        let (issued, erased) =
            tokio::join!(accounts.admin.issue_key(&account.email), accounts.admin.delete(&read, false));
        erased.unwrap();
        assert_eq!(issued.unwrap_err().kind(), ErrorKind::Conflict);
        for account_ref in [account.id.as_str(), &account.email] {
            assert_eq!(accounts.admin.show(account_ref).await.unwrap_err().kind(), ErrorKind::NotFound);
        }
    });
}

/// An unpaid order of a pack.
fn order(account: &SimAccount, life: &ProcessLife) -> Order {
    open_order("order-1", account.id.clone(), life.now())
}

#[test]
fn account_with_open_payments_is_erased_only_by_force() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, orders) = (&life.accounts[0], &life.world.orders);
        let account = new_account(&life).await;
        let other = SimAccount::create(&life, "other@example.org").await;
        orders.open(Order { id: OrderId::new("order-2"), ..order(&other, &life) }).await.unwrap();
        let read = async || accounts.admin.show(&account.email).await.unwrap().account;
        assert!(
            accounts.admin.provider_refs(&read().await).await.unwrap().is_empty(),
            "an order of another account is listed"
        );

        let subscribe = |account: &Account| Account { subscription: Some("s".to_owned()), ..account.clone() };
        accounts.admin.change(&account.id, subscribe).await.unwrap();
        orders.open(order(&account, &life)).await.unwrap();
        let sandbox = Order {
            id: OrderId::new("order-3"),
            payment: Some("sandbox-order-3".to_owned()),
            ..order(&account, &life)
        };
        orders.open(sandbox).await.unwrap();
        // The second order of a payment, which grants its credits.
        let credit_order = Order {
            id: OrderId::new("in_1-beside"),
            state: OrderState::Fulfilled,
            payment: Some("in_1".to_owned()),
            ..order(&account, &life)
        };
        orders.open(credit_order.clone()).await.unwrap();
        let exported = accounts.admin.export_without_entries(&read().await).await.unwrap().orders;
        let listed = accounts.admin.recent_orders(&read().await).await.unwrap();
        assert!(listed.iter().rev().eq(&exported), "{listed:?}");
        let exported: Vec<_> = exported.iter().map(|order| order.id.as_str()).collect();
        assert_eq!(exported, ["order-1", "order-3"], "an export has each payment of its account once");
        assert_eq!(accounts.admin.order_of(&read().await, &credit_order.id).await.unwrap(), None);
        let ties = ProviderRefs { subscription: Some("s".to_owned()), orders: vec![OrderId::new("order-1")] };
        assert_eq!(accounts.admin.provider_refs(&read().await).await.unwrap(), ties);
        let tied = accounts.admin.delete(&read().await, false).await.unwrap_err();
        assert_eq!(tied.kind(), ErrorKind::Conflict);
        let cancel = |account: &Account| Account { subscription: None, ..account.clone() };
        accounts.admin.change(&account.id, cancel).await.unwrap();
        let tied = accounts.admin.delete(&read().await, false).await.unwrap_err();
        assert!(tied.to_string().contains("may still be paid"), "{tied}");
        accounts.admin.delete(&read().await, true).await.unwrap();
        assert_eq!(accounts.admin.show(&account.email).await.unwrap_err().kind(), ErrorKind::NotFound);
        // The order stays; its account id identifies no person.
        assert_eq!(orders.order(&OrderId::new("order-1")).await.unwrap().unwrap().account, account.id);
    });
}

#[test]
fn account_changed_since_read_is_not_erased() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let read = accounts.admin.show(&account.email).await.unwrap().account;
        let job = Job::new(JobId::new("job_a"), account.id.clone(), None, &[], life.now());
        let limits = JobLimits { unfinished: 9, stored: 9 };
        accounts.jobs.store().create(job.clone(), Vec::new(), limits).await.unwrap();
        accounts.webhooks.store().rotate_secret(&account.id, life.now()).await.unwrap();
        accounts.keys.register(&account.email, None).await.unwrap();
        // A plan is bought while the operator confirms.
        let subscribe = |account: &Account| Account { subscription: Some("s".to_owned()), ..account.clone() };
        accounts.admin.change(&account.id, subscribe).await.unwrap();
        for anyway in [false, true] {
            let stale = accounts.admin.delete(&read, anyway).await.unwrap_err();
            assert_eq!(stale.kind(), ErrorKind::Conflict);
            assert!(stale.to_string().contains("has changed"), "{stale}");
        }
        assert_eq!(accounts.jobs.store().job(&job.id).await.unwrap(), Some(job), "nothing is deleted");
        let secret = accounts.webhooks.store().secret_generation(&account.id).await.unwrap();
        assert_eq!(secret.number, 2);
        let mails = life.world.outbox.lease_due(life.now(), life.now(), 9).await.unwrap();
        assert_eq!(mails.len(), 1, "its mail is sent");
        assert_eq!(remaining(&life, &account).await, 5);
    });
}

#[test]
fn account_changed_during_erasure_is_erased_unless_plan_is_bought() {
    run_scenario(with_credits([5, 0, 0, 0]), |life| async move {
        let accounts = &life.accounts[0];
        let delay = Duration::from_millis(500);
        life.world.gate.set_faults(FaultPlan::SlowStore { stores: "directory.erase_account", delay });
        for (email, subscription) in [("one@example.org", None), ("two@example.org", Some("s".to_owned()))] {
            let account = SimAccount::create(&life, email).await;
            let read = accounts.admin.show(email).await.unwrap().account;
            let is_erased = subscription.is_none();
            let change = move |account: &Account| Account {
                subscription: subscription.clone(),
                customer: Some(account.id.as_str().to_owned()),
                ..account.clone()
            };
            let change = async {
                tokio::time::sleep(Duration::from_millis(250)).await;
                accounts.admin.change(&account.id, change).await.unwrap();
            };
            let (erased, ()) = tokio::join!(accounts.admin.delete(&read, false), change);
            let conflict = (!is_erased).then_some(ErrorKind::Conflict);
            assert_eq!(erased.err().map(|error| error.kind()), conflict, "{email}");
            assert_eq!(accounts.admin.show(email).await.is_err(), is_erased, "{email}");
        }
    });
}

#[test]
fn account_concurrent_changes_all_take_effect() {
    run_scenario(WorldConfig::default(), |life| async move {
        let (accounts, account) = (&life.accounts[0], new_account(&life).await);
        let anchor_before = accounts.admin.show(&account.email).await.unwrap().account.anchor;
        let changes = (1..=12).map(|_| {
            // Each change adds a day to the stored value.
            let day = Duration::from_secs(24 * 3_600);
            accounts.admin.change(&account.id, move |account| Account {
                anchor: account.anchor.plus(day),
                ..account.clone()
            })
        });
        for changed in futures_util::future::join_all(changes).await {
            changed.unwrap();
        }
        let anchor = accounts.admin.show(&account.email).await.unwrap().account.anchor;
        assert_eq!(anchor.since(anchor_before), Duration::from_secs(12 * 24 * 3_600));
    });
}
