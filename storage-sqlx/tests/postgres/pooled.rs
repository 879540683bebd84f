//! By way of `PgBouncer` in transaction mode, where whatever one client has prepared is in the next one's way: the core's
//! conformance suite, and many at once on few connections.

use std::sync::Arc;

use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore};
use transcript_core::{
    accounts::{ChargeOutcome, Charges},
    ledger::{HoldOutcome, Ledger},
    limits::Take,
};
use verbatim_tests_postgres::{Database, Pooler};

use crate::common::{
    charging::{account, ask},
    check_audit, drain, purchased,
};

fn options(database: &Database<'_>) -> PostgresOptions {
    PostgresOptions { url: Pooler::shared().url(&database.url), pooler: true, ..crate::options(database) }
}

async fn store() -> (Arc<PostgresStore>, Database<'static>) {
    let database = crate::database();
    (store_in(&database).await, database)
}

async fn store_in(database: &Database<'_>) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(options(database)).await.unwrap())
}

async fn archive() -> (Arc<PostgresArchive>, Database<'static>) {
    let database = crate::database();
    (Arc::new(PostgresArchive::open(options(&database)).await.unwrap()), database)
}

mod archives {
    transcript_core::archive_conformance!(super::archive().await);
}

mod charges {
    transcript_core::charges_conformance!(super::store().await);
}

mod directory {
    transcript_core::directory_conformance!(super::store().await);
}

mod ledger {
    transcript_core::ledger_conformance!(super::store().await);
}

mod limits {
    transcript_core::limits_conformance!(super::store().await);
}

mod orders {
    transcript_core::orders_conformance!(super::store().await);
}

mod outbox {
    transcript_core::outbox_conformance!(super::store().await);
}

mod replies {
    transcript_core::replies_conformance!(super::store().await);
}

mod secrets {
    transcript_core::secrets_conformance!(super::store().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_drain_a_wallet_to_nothing() {
    let (one, database) = store().await;
    drain(one, store_in(&database).await).await;
}

/// Thirty-two connections of two servers on four of the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn more_connections_than_the_pooler_has_charge_to_the_last_credit() {
    let (one, database) = store().await;
    let stores = [Arc::clone(&one), store_in(&database).await];
    let account = account(&*one, "a").await;
    let calls: Vec<_> = (0..60)
        .map(|n| {
            let plain = ask(&account, &format!("h{n}"));
            let take = Take { count: 1_000, ..plain.take.clone() };
            let (store, ask) =
                (Arc::clone(&stores[n % 2]), transcript_core::accounts::ChargeRequest { take, ..plain });
            tokio::spawn(async move { store.charge(ask).await.unwrap() })
        })
        .collect();
    let mut paid = 0;
    for call in calls {
        match call.await.unwrap() {
            ChargeOutcome::Counted { spent: HoldOutcome::Held { .. }, .. } => paid += 1,
            ChargeOutcome::Counted { spent: HoldOutcome::Refused { .. }, .. } => {}
            other => panic!("{other:?}"),
        }
    }
    let balance = one.balance(&account.wallet, &purchased()).await.unwrap();
    assert_eq!((paid, balance.available(), balance.pools[0].spent), (10, 0, 10));
    check_audit(&*one).await;
}
