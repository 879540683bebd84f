//! The PostgreSQL stores, from outside: the core's conformance suite, and what only several servers can do.
//!
//! Each case has a database of its own on one server, which this binary starts and ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod conformance;

use std::sync::Arc;

use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore};
use verbatim_tests_postgres::Cluster;

/// The address of a fresh database.
fn database() -> String {
    Cluster::shared().database().unwrap()
}

/// A fresh store in a database of its own.
async fn store() -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(PostgresOptions::new(database())).await.unwrap())
}

/// A fresh archive in a database of its own.
async fn archive() -> Arc<PostgresArchive> {
    Arc::new(PostgresArchive::open(PostgresOptions::new(database())).await.unwrap())
}
