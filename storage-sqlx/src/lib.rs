//! The storage ports of Verbatim on SQLite (with rusqlite) and PostgreSQL (with sqlx).
//!
//! Two files hold all data: [`SqliteStore`] has keys, accounts and the ledger, [`SqliteArchive`] has the
//! transcripts. Each opens in one call, which creates the file or migrates its schema:
//!
//! ```
//! use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
//! use transcript_core::{archive::Archive, directory::SecretStore};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let data = folder.path();
//! let store = SqliteStore::open(SqliteOptions::new(data.join("verbatim.db"))).await?;
//! let archive = SqliteArchive::open(SqliteOptions::new(data.join("archive.db"))).await?;
//!
//! assert_eq!(archive.stats().await?.transcripts, 0);
//! assert_eq!(store.get_or_create("cookies", vec![7; 32]).await?, [7; 32]);
//!
//! store.close().await;
//! archive.close().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Acknowledged writes are on disk: a commit is synchronised before its call returns. Commits that wait at the
//! same time share one sync. Several processes can open the same files.
//!
//! # Crate features
//! - `sqlite` (default): the stores on SQLite, which is compiled in.
//! - `postgres`: the stores on PostgreSQL 15 and newer, for several servers.
//! - `search`: the index for a search in the whole archive.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod body;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod body_v1;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod codec;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub mod cold;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
mod copy;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod error;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod migration;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod monitor;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(all(feature = "search", any(feature = "postgres", feature = "sqlite")))]
mod search;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sliding_window;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod store;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub use copy::{CopyProgress, CopySummary, StorageLocation, copy_stores};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use monitor::StoreMonitor;
#[cfg(all(feature = "postgres", feature = "search"))]
pub use postgres::PostgresSearchIndex;
#[cfg(feature = "postgres")]
pub use postgres::{
    ConnectionLimit, DatabaseReport, PostgresArchive, PostgresOptions, PostgresStore, inspect_database,
};
#[cfg(all(feature = "search", any(feature = "postgres", feature = "sqlite")))]
pub use search::SqlSearchIndex;
#[cfg(all(feature = "search", feature = "sqlite"))]
pub use sqlite::SqliteSearchIndex;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteArchive, SqliteOptions, SqliteStore};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use store::{SqlArchive, Store};

/// Doc tests of the crate's README.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../README.md")]
mod readme {}
