//! The SQLite stores, from outside: the core's conformance suite, and what only files can do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod charging;
mod cold;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod crash;
mod housekeeping;
mod lookups;
mod opening;
mod sharing;
mod stored;
mod upgrading;

use std::{path::Path, sync::Arc};

use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub(crate) use common::keep;

/// A fresh store in a folder of its own.
async fn store() -> (Arc<SqliteStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (store_in(folder.path()).await, folder)
}

/// The store in a folder.
async fn store_in(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(SqliteOptions::new(folder.join("verbatim.db"))).await.unwrap())
}

/// A fresh archive in a folder of its own.
async fn archive() -> (Arc<SqliteArchive>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (archive_in(folder.path()).await, folder)
}

/// The archive in a folder.
async fn archive_in(folder: &Path) -> Arc<SqliteArchive> {
    Arc::new(SqliteArchive::open(SqliteOptions::new(folder.join("archive.db"))).await.unwrap())
}
