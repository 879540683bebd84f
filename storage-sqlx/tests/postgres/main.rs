//! The PostgreSQL stores: the tests of all databases, and tests with several servers.
//!
//! Each case has its own database on one server, which this binary starts and stops.

#![allow(clippy::unwrap_used, reason = "a failed test should panic")]

mod charging;
mod cold;
#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod concurrency;
mod connections;
mod disconnect;
mod migration;
mod opening;
mod outage;
mod pgbouncer;
#[cfg(feature = "search")]
mod search;
mod spend_batch;
mod tls;
mod vectors;
mod words;

use std::{sync::Arc, time::Duration};

use sqlx::AssertSqlSafe;
use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore};
use verbatim_tests_postgres::{Cluster, TestDatabase};

fn database() -> TestDatabase<'static> {
    Cluster::shared().database().unwrap()
}

/// Options with longer timeouts than in production: compilers may run beside the tests.
fn options(database: &TestDatabase<'_>) -> PostgresOptions {
    options_at(&database.url)
}

/// As [`options`], for a URL.
fn options_at(url: &str) -> PostgresOptions {
    let (connect_timeout, timeout) = (Duration::from_secs(20), Duration::from_secs(60));
    PostgresOptions { connect_timeout, timeout, ..PostgresOptions::new(url) }
}

/// A new store in its own database.
async fn store() -> (Arc<PostgresStore>, TestDatabase<'static>) {
    let database = database();
    (store_in(&database).await, database)
}

async fn store_in(database: &TestDatabase<'_>) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(options(database)).await.unwrap())
}

/// A new archive in its own database.
async fn archive() -> (Arc<PostgresArchive>, TestDatabase<'static>) {
    let database = database();
    (archive_in(&database).await, database)
}

async fn archive_in(database: &TestDatabase<'_>) -> Arc<PostgresArchive> {
    Arc::new(PostgresArchive::open(options(database)).await.unwrap())
}

/// A new search index in its own database.
#[cfg(feature = "search")]
async fn search_index()
-> (Arc<storage_sqlx::PostgresSearchIndex>, (Arc<PostgresArchive>, TestDatabase<'static>)) {
    let (archive, database) = archive().await;
    (Arc::new(storage_sqlx::PostgresSearchIndex::of_archive(&archive)), (archive, database))
}

/// What makes the row of a hold unreadable.
const DAMAGED_HOLD: &str = "amounts = '{-1}'";

/// Runs statements on another connection to the database of the store.
async fn run_on_store(database: &TestDatabase<'_>, statements: &str) {
    let mut connection = opening::foreign_connection(database).await;
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
}

/// As [`run_on_store`]: the database of the archive.
async fn run_on_archive(database: &TestDatabase<'_>, statements: &str) {
    run_on_store(database, statements).await;
}
