//! The SQLite stores through their public API: the tests of all databases, and tests specific to files.

#![allow(clippy::unwrap_used, reason = "a failed test should panic")]

mod charging;
mod cold;
#[path = "../common/mod.rs"]
mod common;
mod concurrency;
mod crash;
mod housekeeping;
mod migration;
mod opening;
mod point_reads;
#[cfg(feature = "search")]
mod search;
mod stored;
mod sync;
mod vectors;
mod words;

use std::{path::Path, sync::Arc};

use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub(crate) use common::put_request;

/// A new store in its own folder.
async fn store() -> (Arc<SqliteStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (store_in(folder.path()).await, folder)
}

async fn store_in(folder: impl AsRef<Path>) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(SqliteOptions::new(folder.as_ref().join("verbatim.db"))).await.unwrap())
}

/// A new archive in its own folder.
async fn archive() -> (Arc<SqliteArchive>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (archive_in(folder.path()).await, folder)
}

async fn archive_in(folder: impl AsRef<Path>) -> Arc<SqliteArchive> {
    Arc::new(SqliteArchive::open(SqliteOptions::new(folder.as_ref().join("archive.db"))).await.unwrap())
}

/// A new search index in its own folder.
#[cfg(feature = "search")]
async fn search_index() -> (Arc<storage_sqlx::SqliteSearchIndex>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("search/index.db"));
    (Arc::new(storage_sqlx::SqliteSearchIndex::open(options).await.unwrap()), folder)
}

/// What makes the row of a hold unreadable.
const DAMAGED_HOLD: &str = "legs = 'damaged'";

/// Runs statements on another connection to the file of the store.
async fn run_on_store(folder: &TempDir, statements: &str) {
    opening::run(&folder.path().join("verbatim.db"), statements);
}

/// Runs statements on another connection to the file of the archive.
async fn run_on_archive(folder: &TempDir, statements: &str) {
    opening::run(&folder.path().join("archive.db"), statements);
}
