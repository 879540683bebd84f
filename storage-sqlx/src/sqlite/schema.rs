//! Schema versions of the SQLite files, and their migrations.
//!
//! All missing migrations run in one transaction, which first takes the file's write lock. Of several processes
//! that start at once, one migrates; the others wait for the lock, check again and find nothing to do. Unlike a
//! lock row in a table, the system releases this lock as soon as its holder is killed.

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use transcript_core::{Error, Result};

use super::{
    file_setup::{self, FileContent},
    options::{FileKind, FileLocking},
    session::SqliteSession,
};
#[cfg(feature = "postgres")]
use crate::error::older_target;
use crate::{
    error::{DbError, DbResult, INCOMPLETE_COPY, incomplete_copy},
    migration::last_version,
    sql::{Row, values},
};

/// The application ids of all kinds of files, with their names in messages.
const APPLICATION_IDS: [(i32, &str); 3] = [
    (super::MAIN.application_id, super::MAIN.name),
    (super::ARCHIVE.application_id, super::ARCHIVE.name),
    (SEARCH_APPLICATION_ID, "the search index"),
];
/// Also known to builds without search.
pub(super) const SEARCH_APPLICATION_ID: i32 = 0x5662_5331; // "VbS1"

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

/// Prepares the file, migrates it to the newest schema and opens its writing connection.
///
/// A file of another kind or of a newer version is rejected before anything in it changes. It blocks the thread.
pub(super) fn prepare_and_open(
    kind: &FileKind,
    path: &Path,
    timeout: Duration,
) -> Result<(PathBuf, SqliteSession)> {
    let (file, content) = file_setup::prepare(path, kind.private)?;
    let started = Instant::now();
    loop {
        match attempt(kind, &file, content, timeout) {
            // SQLite waits for most locks itself, but not for the one that changes the journal mode of a new file.
            Err(fault) if fault.is_busy() && started.elapsed() < timeout => thread::sleep(PAUSE),
            Err(fault) => return Err(fault.into_error(&file)),
            Ok(session) => return Ok((file, session)),
        }
    }
}

fn attempt(kind: &FileKind, file: &Path, content: FileContent, timeout: Duration) -> DbResult<SqliteSession> {
    if content == FileContent::Something {
        let probe = FileKind::open_probe(file, timeout)?;
        version(kind, file, &probe)?;
        probe.close()?;
    }
    let session = kind.open_writer(file, timeout, FileLocking::Normal)?;
    // The log of a process that died may be readable without being on disk, if its sync failed. Data written
    // after it would be lost with it; a checkpoint writes the log's content again. It does not wait for readers.
    session.batch(CHECKPOINT_WAL)?;
    migrate(kind, file, &session)?;
    Ok(session)
}

/// The schema version of a file; 0 without a schema.
fn version(kind: &FileKind, file: &Path, session: &SqliteSession) -> DbResult<u32> {
    let version = any_version(kind, file, session)?;
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
    last_version(kind.migrations)
}

/// The schema version of a file of this kind, without checking it.
pub(crate) fn any_version(kind: &FileKind, file: &Path, session: &SqliteSession) -> DbResult<u32> {
    let mut row = only_row(session.query_row(READ_FILE_KIND, &[])?)?;
    let (application_id, tables, versioned): (i64, i64, i64) = (row.take(0)?, row.take(1)?, row.take(2)?);
    if tables == 0 {
        return Ok(0);
    }
    if application_id != i64::from(kind.application_id) || versioned == 0 {
        return Err(DbError::Rejected(foreign_file(kind, file, application_id)));
    }
    only_row(session.query_row(READ_VERSION, &[])?)?.take(0)
}

fn only_row(row: Option<Row>) -> DbResult<Row> {
    Ok(row.ok_or_else(|| Error::unexpected("the schema of a database has no version"))?)
}

/// Rejects the target of a copy with the tables of an earlier version.
#[cfg(feature = "postgres")]
pub(crate) fn check_target(kind: &FileKind, file: &Path, version: u32) -> DbResult<()> {
    match (1..newest(kind)).contains(&version) {
        true => Err(DbError::Rejected(older_target(file.display()))),
        false => Ok(()),
    }
}

/// Rejects an incomplete copy whose tables are of another version.
#[cfg(feature = "postgres")]
pub(crate) fn check_incomplete_copy(kind: &FileKind, file: &Path, session: &SqliteSession) -> DbResult<()> {
    let below = session.query_row(READ_VERSION_BELOW, &values![INCOMPLETE_COPY])?;
    match only_row(below)?.take::<u32>(0)? == newest(kind) {
        true => Ok(()),
        false => Err(DbError::Rejected(Error::conflict(format!(
            "the copy to {} is incomplete and of another version of this program: continue it with that version, or \
             remove it and start over",
            file.display()
        )))),
    }
}

/// Runs the missing migrations. After an error the connection must be closed.
pub(crate) fn migrate(kind: &FileKind, file: &Path, session: &SqliteSession) -> DbResult<()> {
    let newest = newest(kind);
    if version(kind, file, session)? == newest {
        return Ok(());
    }
    session.batch("BEGIN IMMEDIATE")?;
    let current = version(kind, file, session)?;
    for step in kind.migrations.iter().filter(|step| step.version > current) {
        session.batch(step.sql)?;
        session.change(RECORD_MIGRATION, &values![step.version, step.name])?;
        tracing::info!(file = %file.display(), version = step.version, name = step.name, "schema migrated");
    }
    session.batch("COMMIT")
}

#[cold]
fn newer(file: &Path, version: u32, newest: u32) -> Error {
    Error::unsupported(format!(
        "{} was written by a newer version of this program (schema {version}, this one supports up to {newest}): \
         update this program; the file is unchanged",
        file.display()
    ))
}

#[cold]
fn foreign_file(kind: &FileKind, file: &Path, application_id: i64) -> Error {
    let file = file.display();
    match APPLICATION_IDS
        .iter()
        .find(|(id, _)| i64::from(*id) == application_id && *id != kind.application_id)
    {
        Some((_, other)) => Error::invalid(format!(
            "{file} is a database of {other}, not of {}: check whether two paths are swapped",
            kind.name
        )),
        None => {
            Error::invalid(format!("{file} is a SQLite database of another program: choose another file"))
        }
    }
}
