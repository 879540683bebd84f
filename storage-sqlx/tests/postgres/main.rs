//! The PostgreSQL stores, from outside: the core's conformance suite, and what only several servers can do.
//!
//! Each case has a database of its own on one server, which this binary starts and ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod away;
mod charging;
mod cold;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod cut;
mod encrypted;
mod opening;
mod pooled;
mod sharing;
mod together;
mod upgrading;

use std::{sync::Arc, time::Duration};

use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore};
use verbatim_tests_postgres::{Cluster, Database};

/// A fresh database.
fn database() -> Database<'static> {
    Cluster::shared().database().unwrap()
}

/// The options for a database, with more patience than callers have: compilers may be at work beside the tests.
fn options(database: &Database<'_>) -> PostgresOptions {
    PostgresOptions { patience: Duration::from_secs(60), ..PostgresOptions::new(&database.url) }
}

/// A fresh store in a database of its own.
async fn store() -> (Arc<PostgresStore>, Database<'static>) {
    let database = database();
    (store_in(&database).await, database)
}

/// One more store on a database.
async fn store_in(database: &Database<'_>) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(options(database)).await.unwrap())
}

/// A fresh archive in a database of its own.
async fn archive() -> (Arc<PostgresArchive>, Database<'static>) {
    let database = database();
    (archive_in(&database).await, database)
}

/// One more archive on a database.
async fn archive_in(database: &Database<'_>) -> Arc<PostgresArchive> {
    Arc::new(PostgresArchive::open(options(database)).await.unwrap())
}
