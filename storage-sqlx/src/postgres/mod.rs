//! The storage ports on PostgreSQL 15 and newer, for as many servers at once as are wanted.
//!
//! Only what engines that speak its protocol have as well is used; the decision record 0024 lists it. No work rests
//! on the state of a session, so a pooler may stand between.

mod archive;
mod charges;
mod database;
mod directory;
mod fault;
mod ledger;
mod limits;
mod line;
mod options;
mod orders;
mod outbox;
mod replies;
mod schema;
mod secrets;
mod text;
mod turns;

use transcript_core::Result;

pub use options::PostgresOptions;

use database::Database;
use schema::{Migration, Part};

macro_rules! migration {
    ($version:literal, $folder:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../migrations/", $folder, "/", $name, ".sql")),
        }
    };
}

/// Money and people.
const MAIN: Part = Part {
    name: "main",
    migrations: &[
        migration!(1, "postgres-main", "0001_create_main"),
        migration!(2, "postgres-main", "0002_tell_charges_in_one_entry"),
    ],
};

/// Transcripts.
const ARCHIVE: Part = Part {
    name: "archive",
    migrations: &[
        migration!(1, "postgres-archive", "0001_create_archive"),
        migration!(2, "postgres-archive", "0002_keep_cold_rows"),
    ],
};

/// Counts the figures of an archive anew, for whoever has filled it row by row; in the one part, so that others are 0.
#[cfg(feature = "sqlite")]
pub(crate) const COUNT_ARCHIVE: &str = "UPDATE figures SET
    videos = CASE part WHEN 0 THEN (SELECT count(DISTINCT video) FROM transcripts) ELSE 0 END,
    transcripts = CASE part WHEN 0 THEN (SELECT count(*) FROM transcripts) ELSE 0 END,
    bytes = CASE part WHEN 0 THEN (SELECT coalesce(sum(body_bytes), 0)::BIGINT FROM transcripts) ELSE 0 END,
    compact = CASE part WHEN 0 THEN (SELECT count(*) FROM cold) ELSE 0 END,
    links = CASE part WHEN 0 THEN (SELECT count(*) FROM links) ELSE 0 END";

/// What whoever copies a database needs of the stores.
#[cfg(feature = "sqlite")]
pub(crate) use {
    fault::into_error as fault_into_error,
    ledger::rows::{HOLD_COLUMNS, hold},
    text::{own, plain},
};

#[cfg(feature = "sqlite")]
fn part(name: &str) -> &'static Part {
    if name == ARCHIVE.name { &ARCHIVE } else { &MAIN }
}

/// The newest version of a part that this program knows.
#[cfg(feature = "sqlite")]
pub(crate) fn newest_version(name: &str) -> i64 {
    part(name).migrations.last().map_or(0, |last| last.version)
}

/// Brings a part of a database to its newest version, and lets it go.
#[cfg(feature = "sqlite")]
pub(crate) async fn migrate_part(options: PostgresOptions, name: &str) -> Result<()> {
    let database = Database::new(options)?;
    let migrated = schema::migrate(&database, part(name)).await;
    database.close().await;
    migrated
}

/// A number that nobody else has, by chance.
#[cfg(feature = "sqlite")]
pub(crate) fn any_number() -> i64 {
    i64::try_from(database::chance(1 << 62)).unwrap_or_default()
}

/// Ledger, directory, secrets, rate limits, replies, outbox and orders, in a PostgreSQL database.
///
/// It implements [`transcript_core::ledger::Ledger`], [`transcript_core::directory::Directory`],
/// [`transcript_core::directory::Secrets`], [`transcript_core::limits::RateLimiter`],
/// [`transcript_core::accounts::Charges`], [`transcript_core::accounts::Replies`], [`transcript_core::accounts::Outbox`] and
/// [`transcript_core::accounts::Orders`].
///
/// Any number of servers may work on the same database. Nothing of it is kept in memory, so each sees at once what
/// the others have done.
///
/// # Cancellation
/// A change whose future is dropped is made whole or not at all: it runs in a task of the store.
#[derive(Debug)]
pub struct PostgresStore {
    database: Database,
    tellers: charges::Tellers,
    spenders: ledger::Spenders,
}

impl PostgresStore {
    /// Connects, makes the tables where they are missing, and brings them up to date. Several servers may do so at
    /// the same time: one migrates, the others wait.
    ///
    /// It must be called inside a tokio runtime with time and I/O, whose tasks then do the work. The futures of the
    /// ports' methods may be polled by any executor.
    ///
    /// # Errors
    /// - [`transcript_core::ErrorKind::Invalid`]: the address is none.
    /// - [`transcript_core::ErrorKind::Unsupported`]: the server refuses the user, there is no such database, or it
    ///   is of a newer version of this program; it is left as it is.
    /// - [`transcript_core::ErrorKind::Unavailable`]: the server cannot be reached.
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        let alone = options.spends_alone;
        let database = Database::of_keys(options)?;
        schema::migrate(&database, &MAIN).await?;
        let (tellers, spenders) = (charges::Tellers::new(&database), ledger::Spenders::new(&database, alone));
        Ok(Self { tellers, spenders, database })
    }

    /// Finishes what is under way and closes the connections. Calls that come later fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// The archive, in a PostgreSQL database: the same one or another. It implements
/// [`transcript_core::archive::Archive`].
///
/// Any number of servers may work on the same database; see [`PostgresStore`] for cancellation.
#[derive(Debug)]
pub struct PostgresArchive {
    database: Database,
}

impl PostgresArchive {
    /// Connects, makes the tables where they are missing, and brings them up to date.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        let database = Database::new(options)?;
        schema::migrate(&database, &ARCHIVE).await?;
        Ok(Self { database })
    }

    /// Finishes what is under way and closes the connections. Calls that come later fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}
