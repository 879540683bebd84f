//! Concurrent charges of several servers to the same accounts.

use std::sync::Arc;

use sqlx::{ConnectOptions, postgres::PgConnectOptions};
use transcript_core::{
    ErrorKind,
    accounts::{ChargeOutcome, ChargeStore},
    ledger::{HoldOutcome, Ledger},
    limits::LimitRequest,
};

use crate::common::{
    charging::{account, charge_request, charged},
    check_audit, purchased,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn charge_several_servers_spend_exact_credits() {
    let (one, database) = crate::store().await;
    let stores = [Arc::clone(&one), crate::store_in(&database).await, crate::store_in(&database).await];
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        accounts.push(account(&*one, name).await);
    }
    // Each account has ten credits and receives fifteen charges, from all servers concurrently.
    let mut calls = Vec::new();
    for (account, n) in accounts.iter().flat_map(|account| (0..15).map(move |n| (account, n))) {
        let charge_request = charge_request(account, &format!("{}-{n}", account.id));
        let limit_request = LimitRequest { max: 100, ..charge_request.limit_request.clone() };
        let (store, charge_request) = (
            Arc::clone(&stores[n % 3]),
            transcript_core::accounts::ChargeRequest { limit_request, ..charge_request },
        );
        calls.push(tokio::spawn(async move { store.charge(charge_request).await.unwrap() }));
    }
    let (mut paid, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            ChargeOutcome::Accepted { spent: HoldOutcome::Held { .. }, .. } => paid += 1,
            ChargeOutcome::Accepted { spent: HoldOutcome::Insufficient { .. }, .. } => refused += 1,
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
async fn charge_damaged_limit_row_fails_only_its_charge() {
    let (store, database) = crate::store().await;
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        accounts.push(account(&*store, name).await);
    }
    let options: PgConnectOptions = database.url.parse().unwrap();
    let mut foreign_connection = options.connect().await.unwrap();
    let damage =
        "INSERT INTO limits (bucket, version, ends_at, taken) VALUES ('api/b', 1, 9000000000000, 'none')";
    sqlx::raw_sql(damage).execute(&mut foreign_connection).await.unwrap();
    let calls: Vec<_> = (0..4)
        .flat_map(|n| accounts.iter().map(move |account| (n, account)))
        .map(|(n, account)| {
            let (store, charge_request) =
                (Arc::clone(&store), charge_request(account, &format!("{}-{n}", account.id)));
            (account.id.clone(), tokio::spawn(async move { store.charge(charge_request).await }))
        })
        .collect();
    for (account, call) in calls {
        let outcome = call.await.unwrap();
        if account.as_str() == "b" {
            let is_corrupt = matches!(&outcome, Ok(ChargeOutcome::NotCharged(error)) if error.kind() == ErrorKind::Corrupt);
            assert!(is_corrupt, "{outcome:?}");
        } else {
            assert!(charged(&outcome), "{account}: {outcome:?}");
        }
    }
    check_audit(&*store).await;
}

#[tokio::test]
async fn charge_closed_store_is_not_charged() {
    let (store, _database) = crate::store().await;
    let account = account(&*store, "a").await;
    store.close().await;
    let outcome = store.charge(charge_request(&account, "h1")).await;
    assert!(
        matches!(&outcome, Ok(ChargeOutcome::NotCharged(error)) if error.kind() == ErrorKind::Unavailable)
    );
}
