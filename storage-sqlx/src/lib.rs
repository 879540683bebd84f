//! The storage ports of Verbatim on SQLite and on PostgreSQL, through sqlx.
//!
//! Two files hold everything: [`SqliteStore`] is the one of money and people, [`SqliteArchive`] the one of
//! transcripts. Each opens in one call, which makes the file or brings its schema up to date:
//!
//! ```
//! use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
//! use transcript_core::{archive::Archive, directory::Secrets};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let data = folder.path();
//! let store = SqliteStore::open(SqliteOptions::new(data.join("verbatim.db"))).await?;
//! let archive = SqliteArchive::open(SqliteOptions::new(data.join("archive.db"))).await?;
//!
//! assert_eq!(archive.stats().await?.transcripts, 0);
//! assert_eq!(store.secret("cookies", vec![7; 32]).await?, [7; 32]);
//!
//! store.close().await;
//! archive.close().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is acknowledged is on disk: a commit is synchronised before its call returns. Commits that wait at
//! the same time share one. Several processes may have the same files open.
//!
//! # Crate features
//! - `sqlite` (default): the stores on SQLite, which is compiled in.
//! - `postgres`: the stores on PostgreSQL 15 and newer, for several servers at once.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod batch;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod body;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod books;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod codec;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub mod cold;
#[cfg(feature = "sqlite")]
mod columns;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod error;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
mod moving;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod window;

#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub use moving::{Copied, CopyStep, Stores, copy_stores};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresArchive, PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteArchive, SqliteOptions, SqliteStore};
