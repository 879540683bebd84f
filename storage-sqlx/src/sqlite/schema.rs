//! The schema's versions, and the steps from one to the next.
//!
//! All missing steps run in one transaction that begins by taking the file's write lock. That lock is
//! what makes several processes that start at once migrate once: the others wait for it, look again, and
//! find nothing left to do. Unlike a row that says who migrates, the system gives it back at once when
//! its holder is killed.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use transcript_core::{Error, ErrorKind, Result, Retry};

use super::{
    options::FileKind,
    place::{self, Content},
};
#[cfg(feature = "postgres")]
use crate::error::conflict;
use crate::error::{Fault, HALF_COPIED, Work, half_copied};

/// One step of a schema. What a published step says is never changed afterwards.
#[derive(Debug)]
pub(crate) struct Migration {
    /// The version that the schema has after it: 1 for the first.
    pub(crate) version: u32,
    /// The name of its file.
    pub(crate) name: &'static str,
    /// Its statements.
    pub(crate) sql: &'static str,
}

/// The marks of all kinds of files, with what people call them.
const MARKS: [(i32, &str); 2] =
    [(super::MAIN.application_id, super::MAIN.name), (super::ARCHIVE.application_id, super::ARCHIVE.name)];

/// How long to wait between two looks at a file that another process holds.
const PAUSE: Duration = Duration::from_millis(20);

const MARK: &str = "SELECT (SELECT application_id FROM pragma_application_id),
    (SELECT count(*) FROM sqlite_schema),
    (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version')";
/// Copies the log into the file, and waits for the disk.
const COPY_LOG: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const VERSION: &str = "SELECT coalesce(max(version), 0) FROM schema_version";
#[cfg(feature = "postgres")]
const VERSION_BELOW: &str = "SELECT coalesce(max(version), 0) FROM schema_version WHERE version < ?1";
const NOTE: &str = "INSERT INTO schema_version (version, name, applied_at)
    VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER))";

/// Brings a file to the newest schema and returns the connection that writes to it.
///
/// A file that is not of this kind, or of a newer version, is refused before anything is changed in it.
pub(crate) async fn open(
    kind: &FileKind,
    file: &Path,
    content: Content,
    patience: Duration,
) -> Result<SqliteConnection> {
    let begun = Instant::now();
    loop {
        match attempt(kind, file, content, patience).await {
            // SQLite waits by itself for most locks, but not for the one that changes a fresh file's
            // journal mode.
            Err(fault) if fault.is_busy() && begun.elapsed() < patience => tokio::time::sleep(PAUSE).await,
            outcome => return outcome.map_err(|fault| fault.into_error(file)),
        }
    }
}

async fn attempt(
    kind: &FileKind,
    file: &Path,
    content: Content,
    patience: Duration,
) -> Work<SqliteConnection> {
    if content == Content::Something {
        probe(kind, file, patience).await?;
    }
    let mut connection = kind.writer(file, patience).connect().await?;
    // The log of a process that died may be there to be read and yet not be on the disk, if that refused to keep it. What
    // is written behind it would be lost with it; copied it is written anew. Where others read nobody waits for them.
    sqlx::raw_sql(COPY_LOG).execute(&mut connection).await?;
    migrate(kind, file, &mut connection).await?;
    Ok(connection)
}

async fn probe(kind: &FileKind, file: &Path, patience: Duration) -> Work<()> {
    let mut connection = kind.probe(file, patience).connect().await?;
    let version = version(kind, file, &mut connection).await;
    connection.close().await?;
    version.map(drop)
}

/// The version of the schema in a file; 0 for none yet.
async fn version(kind: &FileKind, file: &Path, connection: &mut SqliteConnection) -> Work<u32> {
    let version = any_version(kind, file, connection).await?;
    let known = newest(kind);
    if version == HALF_COPIED {
        return Err(Fault::Refused(half_copied(file.display())));
    }
    if version > known {
        return Err(Fault::Refused(newer(file, version, known)));
    }
    Ok(version)
}

/// The newest version that this program knows.
fn newest(kind: &FileKind) -> u32 {
    kind.migrations.last().map_or(0, |last| last.version)
}

/// The version of the schema in a file of this kind, whatever it is.
pub(crate) async fn any_version(
    kind: &FileKind,
    file: &Path,
    connection: &mut SqliteConnection,
) -> Work<u32> {
    let mark = sqlx::query(MARK).fetch_one(&mut *connection).await?;
    let (application_id, tables, versioned): (i32, i64, i64) =
        (mark.try_get(0)?, mark.try_get(1)?, mark.try_get(2)?);
    if tables == 0 {
        return Ok(0);
    }
    if application_id != kind.application_id || versioned == 0 {
        return Err(Fault::Refused(stranger(kind, file, application_id)));
    }
    Ok(sqlx::query(VERSION).fetch_one(connection).await?.try_get(0)?)
}

/// Refuses a file that is half copied with tables of another version.
#[cfg(feature = "postgres")]
pub(crate) async fn check_below_half(
    kind: &FileKind,
    file: &Path,
    connection: &mut SqliteConnection,
) -> Work<()> {
    let below = sqlx::query(VERSION_BELOW).bind(HALF_COPIED).fetch_one(connection).await?;
    match below.try_get::<u32, _>(0)? == newest(kind) {
        true => Ok(()),
        false => Err(Fault::Refused(conflict(&format!(
            "{} is half copied by another version of this program: go on with that one, or remove it and begin anew",
            file.display()
        )))),
    }
}

/// Makes the steps that are missing.
pub(crate) async fn migrate(kind: &FileKind, file: &Path, connection: &mut SqliteConnection) -> Work<()> {
    let newest = newest(kind);
    if version(kind, file, connection).await? == newest {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let begun_at = version(kind, file, &mut transaction).await?;
    for step in kind.migrations.iter().filter(|step| step.version > begun_at) {
        sqlx::raw_sql(step.sql).execute(&mut *transaction).await?;
        sqlx::query(NOTE).bind(step.version).bind(step.name).execute(&mut *transaction).await?;
        tracing::info!(file = %file.display(), version = step.version, name = step.name, "migrated");
    }
    transaction.commit().await?;
    Ok(())
}

#[cold]
fn newer(file: &Path, version: u32, known: u32) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Retry::Never,
        format!(
            "{} was written by a newer version of this program (schema {version}, this one knows {known}): \
             update this program; the file was left as it is",
            file.display()
        ),
    )
}

#[cold]
fn stranger(kind: &FileKind, file: &Path, application_id: i32) -> Error {
    let file = file.display();
    match MARKS.iter().find(|(mark, _)| *mark == application_id && *mark != kind.application_id) {
        Some((_, other)) => Error::invalid(format!(
            "{file} is a database of {other}, not one of {}: are two paths mixed up?",
            kind.name
        )),
        None => {
            Error::invalid(format!("{file} is a SQLite database of another program: choose another file"))
        }
    }
}

/// Makes the file ready and opens it; see [`place::prepare`] and [`open`].
pub(crate) async fn prepare_and_open(
    kind: &'static FileKind,
    path: &Path,
    patience: Duration,
) -> Result<(std::path::PathBuf, SqliteConnection)> {
    let (path, private) = (path.to_owned(), kind.private);
    let (file, content) = tokio::task::spawn_blocking(move || place::prepare(&path, private))
        .await
        .map_err(|error| Error::unexpected(format!("looking at the file of a database failed: {error}")))??;
    let connection = open(kind, &file, content, patience).await?;
    Ok((file, connection))
}
