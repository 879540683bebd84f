//! The stores behind `PgBouncer` in transaction mode.
//!
//! There, statements prepared by one client conflict with those of the next: the conformance suite, and many callers
//! on few connections.

use std::{
    str::FromStr as _,
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};
use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore};
use transcript_core::{
    ErrorKind, Retry,
    accounts::{ChargeOutcome, ChargeStore},
    ids::WalletId,
    ledger::{HoldOutcome, Ledger},
    limits::LimitRequest,
};
use verbatim_tests_postgres::{Cluster, Durability, Pooler, TestDatabase};

use crate::common::{
    charging::{account, charge_request},
    check_audit, drain_wallet, purchased,
};

fn options(database: &TestDatabase<'_>) -> PostgresOptions {
    PostgresOptions { url: Pooler::shared().url(&database.url), pooler: true, ..crate::options(database) }
}

async fn store() -> (Arc<PostgresStore>, TestDatabase<'static>) {
    let database = crate::database();
    (store_in(&database).await, database)
}

async fn store_in(database: &TestDatabase<'_>) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(options(database)).await.unwrap())
}

async fn archive() -> (Arc<PostgresArchive>, TestDatabase<'static>) {
    let database = crate::database();
    (Arc::new(PostgresArchive::open(options(&database)).await.unwrap()), database)
}

#[cfg(feature = "search")]
async fn search_index()
-> (Arc<storage_sqlx::PostgresSearchIndex>, (Arc<PostgresArchive>, TestDatabase<'static>)) {
    let (archive, database) = archive().await;
    (Arc::new(storage_sqlx::PostgresSearchIndex::of_archive(&archive)), (archive, database))
}

mod conformance {
    all_conformance!(
        crate::pgbouncer::store().await,
        crate::pgbouncer::archive().await,
        crate::pgbouncer::search_index().await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pgbouncer_two_stores_drain_wallet_to_zero() {
    let (one, database) = store().await;
    drain_wallet(one, store_in(&database).await).await;
}

/// Thirty-two connections of two servers over four of the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pgbouncer_oversubscribed_charges_spend_exact_credits() {
    let (one, database) = store().await;
    let stores = [Arc::clone(&one), store_in(&database).await];
    let account = account(&*one, "a").await;
    let calls: Vec<_> = (0..60)
        .map(|n| {
            let plain = charge_request(&account, &format!("h{n}"));
            let limit_request = LimitRequest { max: 1_000, ..plain.limit_request.clone() };
            let (store, charge_request) = (
                Arc::clone(&stores[n % 2]),
                transcript_core::accounts::ChargeRequest { limit_request, ..plain },
            );
            tokio::spawn(async move { store.charge(charge_request).await.unwrap() })
        })
        .collect();
    let mut paid = 0;
    for call in calls {
        match call.await.unwrap() {
            ChargeOutcome::Accepted { spent: HoldOutcome::Held { .. }, .. } => paid += 1,
            ChargeOutcome::Accepted { spent: HoldOutcome::Insufficient { .. }, .. } => {}
            other => panic!("{other:?}"),
        }
    }
    let balance = one.balance(&account.wallet, &purchased()).await.unwrap();
    assert_eq!((paid, balance.available(), balance.pools[0].spent), (10, 0, 10));
    check_audit(&*one).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pgbouncer_error_names_setting_only_if_it_is_wrong() {
    let cluster = Cluster::start(Durability::None).unwrap();
    let pooler = Pooler::start(&cluster).unwrap();
    let database = cluster.database().unwrap();
    let options = |is_pooler| PostgresOptions {
        url: pooler.url(&database.url),
        pooler: is_pooler,
        timeout: Duration::from_secs(10),
        ..crate::options(&database)
    };
    let error = PostgresStore::open(options(false)).await.unwrap_err();
    assert!(error.message().contains("set storage.pooler = true"), "{error}");

    let store = PostgresStore::open(options(true)).await.unwrap();
    cluster.stop().unwrap();
    let started = Instant::now();
    // The first calls may wait in the pooler, until it knows that the server is stopped.
    loop {
        let error = store.balance(&WalletId::new("w"), &purchased()).await.unwrap_err();
        assert_eq!((error.kind(), error.retry()), (ErrorKind::Unavailable, Retry::Backoff), "{error}");
        assert!(!error.message().contains("storage.pooler"), "{error}");
        if error.message().contains("its pooler refuses connections") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pgbouncer_without_room_call_waits_for_connection() {
    let database = crate::database();
    let pooler = Pooler::start_for_clients(Cluster::shared(), 1).unwrap();
    let options = PostgresOptions { url: pooler.url(&database.url), connections: 1, ..options(&database) };
    // The pooler accepts no session settings.
    let other = PgConnectOptions::from_str(&options.url).unwrap().extra_float_digits(None);
    let other = PgConnection::connect_with(&other).await.unwrap();
    let (store, ()) = tokio::join!(PostgresStore::open(options), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        other.close().await.unwrap();
    });
    store.unwrap();
}
