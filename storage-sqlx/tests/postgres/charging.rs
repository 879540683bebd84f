//! Charges that several servers make for the same accounts at the same time.

use std::sync::Arc;

use sqlx::{ConnectOptions, postgres::PgConnectOptions};
use transcript_core::{
    ErrorKind,
    accounts::{ChargeOutcome, Charges},
    ledger::{HoldOutcome, Ledger},
    limits::Take,
};

use crate::common::{
    charging::{account, ask, charged},
    check_audit, purchased,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_servers_charge_the_same_accounts_to_the_last_credit() {
    let (one, database) = crate::store().await;
    let stores = [Arc::clone(&one), crate::store_in(&database).await, crate::store_in(&database).await];
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        accounts.push(account(&*one, name).await);
    }
    // Of each account's ten credits fifteen are asked for, by all servers at once.
    let mut calls = Vec::new();
    for (account, n) in accounts.iter().flat_map(|account| (0..15).map(move |n| (account, n))) {
        let ask = ask(account, &format!("{}-{n}", account.id));
        let take = Take { count: 100, ..ask.take.clone() };
        let (store, ask) =
            (Arc::clone(&stores[n % 3]), transcript_core::accounts::ChargeRequest { take, ..ask });
        calls.push(tokio::spawn(async move { store.charge(ask).await.unwrap() }));
    }
    let (mut paid, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            ChargeOutcome::Counted { spent: HoldOutcome::Held { .. }, .. } => paid += 1,
            ChargeOutcome::Counted { spent: HoldOutcome::Refused { .. }, .. } => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((paid, refused), (50, 25));
    for account in &accounts {
        let balance = one.balance(&account.wallet, &purchased()).await.unwrap();
        assert_eq!((balance.available(), balance.pools[0].spent), (0, 10), "{}", account.id);
    }
    check_audit(&*stores[2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_damaged_row_is_its_own_charges_fault_only() {
    let (store, database) = crate::store().await;
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        accounts.push(account(&*store, name).await);
    }
    let options: PgConnectOptions = database.url.parse().unwrap();
    let mut stranger = options.connect().await.unwrap();
    let damage =
        "INSERT INTO limits (bucket, version, ends_at, taken) VALUES ('api/b', 1, 9000000000000, 'none')";
    sqlx::raw_sql(damage).execute(&mut stranger).await.unwrap();
    let calls: Vec<_> = (0..4)
        .flat_map(|n| accounts.iter().map(move |account| (n, account)))
        .map(|(n, account)| {
            let (store, ask) = (Arc::clone(&store), ask(account, &format!("{}-{n}", account.id)));
            (account.id.clone(), tokio::spawn(async move { store.charge(ask).await }))
        })
        .collect();
    for (account, call) in calls {
        let outcome = call.await.unwrap();
        if account.as_str() == "b" {
            let is_corrupt =
                matches!(&outcome, Ok(ChargeOutcome::Undone(error)) if error.kind() == ErrorKind::Corrupt);
            assert!(is_corrupt, "{outcome:?}");
        } else {
            assert!(charged(&outcome), "{account}: {outcome:?}");
        }
    }
    check_audit(&*store).await;
}

#[tokio::test]
async fn a_store_that_is_closed_has_charged_nothing() {
    let (store, _database) = crate::store().await;
    let account = account(&*store, "a").await;
    store.close().await;
    let outcome = store.charge(ask(&account, "h1")).await;
    assert!(matches!(&outcome, Ok(ChargeOutcome::Undone(error)) if error.kind() == ErrorKind::Unavailable));
}
