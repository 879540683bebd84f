//! Schema versions of the SQLite files, and their migrations.
//!
//! All missing migrations run in one transaction, which first takes the file's write lock. Of several processes
//! that start at once, one migrates; the others wait for the lock, check again and find nothing to do. Unlike a
//! lock row in a table, the system releases this lock as soon as its holder is killed.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use transcript_core::{Error, ErrorKind, Result, Retry};

use super::{
    file_setup::{self, FileContent},
    options::FileKind,
};
#[cfg(feature = "postgres")]
use crate::error::conflict;
use crate::error::{DbError, DbResult, INCOMPLETE_COPY, incomplete_copy};

/// One migration of a schema. A published migration never changes.
#[derive(Debug)]
pub(crate) struct Migration {
    /// The schema version after it: 1 for the first.
    pub(crate) version: u32,
    /// The name of its file.
    pub(crate) name: &'static str,
    /// Its statements.
    pub(crate) sql: &'static str,
}

/// The application ids of all kinds of files, with their names in messages.
const APPLICATION_IDS: [(i32, &str); 2] =
    [(super::MAIN.application_id, super::MAIN.name), (super::ARCHIVE.application_id, super::ARCHIVE.name)];

/// Pause between two attempts on a file that another process locks.
const PAUSE: Duration = Duration::from_millis(20);

const READ_FILE_KIND: &str = "SELECT (SELECT application_id FROM pragma_application_id),
    (SELECT count(*) FROM sqlite_schema),
    (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version')";
/// Copies the write-ahead log into the database file and syncs it to disk.
const CHECKPOINT_WAL: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const READ_VERSION: &str = "SELECT coalesce(max(version), 0) FROM schema_version";
#[cfg(feature = "postgres")]
const READ_VERSION_BELOW: &str = "SELECT coalesce(max(version), 0) FROM schema_version WHERE version < ?1";
const RECORD_MIGRATION: &str = "INSERT INTO schema_version (version, name, applied_at)
    VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER))";

/// Migrates a file to the newest schema and returns its writing connection.
///
/// A file of another kind or of a newer version is rejected before anything in it changes.
pub(crate) async fn open(
    kind: &FileKind,
    file: &Path,
    content: FileContent,
    timeout: Duration,
) -> Result<SqliteConnection> {
    let started = Instant::now();
    loop {
        match attempt(kind, file, content, timeout).await {
            // SQLite waits for most locks itself, but not for the one that changes the journal mode of a new file.
            Err(fault) if fault.is_busy() && started.elapsed() < timeout => tokio::time::sleep(PAUSE).await,
            outcome => return outcome.map_err(|fault| fault.into_error(file)),
        }
    }
}

async fn attempt(
    kind: &FileKind,
    file: &Path,
    content: FileContent,
    timeout: Duration,
) -> DbResult<SqliteConnection> {
    if content == FileContent::Something {
        probe(kind, file, timeout).await?;
    }
    let mut connection = kind.writer(file, timeout).connect().await?;
    // The log of a process that died may be readable without being on disk, if its sync failed. Data written
    // after it would be lost with it; a checkpoint writes the log's content again. It does not wait for readers.
    sqlx::raw_sql(CHECKPOINT_WAL).execute(&mut connection).await?;
    migrate(kind, file, &mut connection).await?;
    Ok(connection)
}

async fn probe(kind: &FileKind, file: &Path, timeout: Duration) -> DbResult<()> {
    let mut connection = kind.probe(file, timeout).connect().await?;
    let version = version(kind, file, &mut connection).await;
    connection.close().await?;
    version.map(drop)
}

/// The schema version of a file; 0 without a schema.
async fn version(kind: &FileKind, file: &Path, connection: &mut SqliteConnection) -> DbResult<u32> {
    let version = any_version(kind, file, connection).await?;
    let newest = newest(kind);
    if version == INCOMPLETE_COPY {
        return Err(DbError::Rejected(incomplete_copy(file.display())));
    }
    if version > newest {
        return Err(DbError::Rejected(newer(file, version, newest)));
    }
    Ok(version)
}

/// The newest schema version of this program.
fn newest(kind: &FileKind) -> u32 {
    kind.migrations.last().map_or(0, |last| last.version)
}

/// The schema version of a file of this kind, without checking it.
pub(crate) async fn any_version(
    kind: &FileKind,
    file: &Path,
    connection: &mut SqliteConnection,
) -> DbResult<u32> {
    let row = sqlx::query(READ_FILE_KIND).fetch_one(&mut *connection).await?;
    let (application_id, tables, versioned): (i32, i64, i64) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if tables == 0 {
        return Ok(0);
    }
    if application_id != kind.application_id || versioned == 0 {
        return Err(DbError::Rejected(foreign_file(kind, file, application_id)));
    }
    Ok(sqlx::query(READ_VERSION).fetch_one(connection).await?.try_get(0)?)
}

/// Rejects an incomplete copy whose tables are of another version.
#[cfg(feature = "postgres")]
pub(crate) async fn check_incomplete_copy(
    kind: &FileKind,
    file: &Path,
    connection: &mut SqliteConnection,
) -> DbResult<()> {
    let below = sqlx::query(READ_VERSION_BELOW).bind(INCOMPLETE_COPY).fetch_one(connection).await?;
    match below.try_get::<u32, _>(0)? == newest(kind) {
        true => Ok(()),
        false => Err(DbError::Rejected(conflict(&format!(
            "the copy to {} is incomplete and of another version of this program: continue it with that version, or \
             remove it and start over",
            file.display()
        )))),
    }
}

/// Runs the missing migrations.
pub(crate) async fn migrate(kind: &FileKind, file: &Path, connection: &mut SqliteConnection) -> DbResult<()> {
    let newest = newest(kind);
    if version(kind, file, connection).await? == newest {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let current = version(kind, file, &mut transaction).await?;
    for step in kind.migrations.iter().filter(|step| step.version > current) {
        sqlx::raw_sql(step.sql).execute(&mut *transaction).await?;
        sqlx::query(RECORD_MIGRATION).bind(step.version).bind(step.name).execute(&mut *transaction).await?;
        tracing::info!(file = %file.display(), version = step.version, name = step.name, "schema migrated");
    }
    transaction.commit().await?;
    Ok(())
}

#[cold]
fn newer(file: &Path, version: u32, newest: u32) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Retry::Never,
        format!(
            "{} was written by a newer version of this program (schema {version}, this one supports up to {newest}): \
             update this program; the file is unchanged",
            file.display()
        ),
    )
}

#[cold]
fn foreign_file(kind: &FileKind, file: &Path, application_id: i32) -> Error {
    let file = file.display();
    match APPLICATION_IDS.iter().find(|(row, _)| *row == application_id && *row != kind.application_id) {
        Some((_, other)) => Error::invalid(format!(
            "{file} is a database of {other}, not of {}: check whether two paths are swapped",
            kind.name
        )),
        None => {
            Error::invalid(format!("{file} is a SQLite database of another program: choose another file"))
        }
    }
}

/// Prepares the file and opens it; see [`file_setup::prepare`] and [`open`].
pub(crate) async fn prepare_and_open(
    kind: &'static FileKind,
    path: &Path,
    timeout: Duration,
) -> Result<(std::path::PathBuf, SqliteConnection)> {
    let (path, private) = (path.to_owned(), kind.private);
    let (file, content) =
        tokio::task::spawn_blocking(move || file_setup::prepare(&path, private))
            .await
            .map_err(|error| Error::unexpected(format!("checking a database file failed: {error}")))??;
    let connection = open(kind, &file, content, timeout).await?;
    Ok((file, connection))
}
