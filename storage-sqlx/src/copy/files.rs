//! A part (main or archive) in a SQLite file, as the source or target of a copy.
//!
//! The file stays locked against other processes while it is open here.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use transcript_core::{Error, Result};

use super::{
    row::{CopyColumn, CopyRow, read, set, text_at},
    side::{CopyRole, CopySide, column_index},
    statement::legs,
    table::{self, CopyTable, TablePart},
};
use crate::{
    codec::json,
    error::{DbError, DbResult, INCOMPLETE_COPY},
    sql::{Row, Value},
    sqlite::{FileKind, FileLocking, kind_of_file, prepare_file, schema, session::SqliteSession},
};

/// How long to wait for a lock: a command that is about to end may hold it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// A part in a file.
#[derive(Debug)]
pub(super) struct SqliteSide {
    part: &'static TablePart,
    file: PathBuf,
    name: String,
    db: SqliteSession,
}

impl SqliteSide {
    /// Opens and locks the file, and changes none of its tables. A missing target is created.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Conflict`] if it is in use, or a target has the tables of an earlier version.
    pub(super) async fn open(part: &'static TablePart, path: &Path, role: CopyRole) -> Result<Self> {
        if role == CopyRole::Source && !path.is_file() {
            return Err(Error::invalid(format!(
                "cannot copy from {}: the file does not exist",
                path.display()
            )));
        }
        let kind = kind_of_file(part.name);
        let file = prepare_file(kind, path)?;
        let fault = |fault: DbError| match fault.is_busy() {
            true => Error::conflict(format!(
                "{} is in use: stop every server and command that has it open",
                file.display()
            )),
            false => fault.into_error(&file),
        };
        let started = Instant::now();
        let db = loop {
            match Self::locked(kind, &file, role) {
                Err(fault) if fault.is_busy() && started.elapsed() < LOCK_TIMEOUT => {
                    tokio::time::sleep(PAUSE).await
                }
                locked => break locked.map_err(fault)?,
            }
        };
        let name = file.display().to_string();
        Ok(Self { part, name, file, db })
    }

    /// An empty part in memory, as the source in place of a missing file.
    pub(super) fn empty(part: &'static TablePart, path: &Path) -> Result<Self> {
        let kind = kind_of_file(part.name);
        let open = || -> DbResult<SqliteSession> {
            let db = kind.open_writer(Path::new(":memory:"), LOCK_TIMEOUT, FileLocking::Exclusive)?;
            schema::migrate(kind, path, &db)?;
            Ok(db)
        };
        let db = open().map_err(|fault| fault.into_error(path))?;
        // The name identifies the source of a copy that is resumed.
        let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Self { part, name: file.display().to_string(), file, db })
    }

    fn locked(kind: &FileKind, file: &Path, role: CopyRole) -> DbResult<SqliteSession> {
        if file.metadata().is_ok_and(|there| there.len() > 0) {
            // A rejected file stays unchanged, including its journal mode.
            let probe = FileKind::open_probe(file, LOCK_TIMEOUT)?;
            let version = schema::any_version(kind, file, &probe)?;
            probe.close()?;
            if role == CopyRole::Target {
                schema::check_target(kind, file, version)?;
            }
        }
        let db = kind.open_writer(file, LOCK_TIMEOUT, FileLocking::Exclusive)?;
        db.batch("BEGIN EXCLUSIVE; COMMIT")?;
        Ok(db)
    }

    fn migrate(&self, role: CopyRole) -> DbResult<()> {
        let (kind, file, db) = (kind_of_file(self.part.name), &self.file, &self.db);
        let is_incomplete = schema::any_version(kind, file, db)? == INCOMPLETE_COPY;
        match role {
            CopyRole::Target if is_incomplete => schema::check_incomplete_copy(kind, file, db),
            // A source that is itself an incomplete copy is rejected here.
            CopyRole::Source | CopyRole::Target => schema::migrate(kind, file, db),
        }
    }
}

#[async_trait]
impl CopySide for SqliteSide {
    fn name(&self) -> &str {
        &self.name
    }

    fn part(&self) -> &'static TablePart {
        self.part
    }

    fn is_files(&self) -> bool {
        true
    }

    fn holder(&self) -> Option<i64> {
        None
    }

    fn error(&self, fault: DbError) -> Error {
        fault.into_error(&self.file)
    }

    async fn query(&mut self, statement: &str, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        self.db.query_once(statement, values)
    }

    async fn table_rows(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        statement: &str,
        values: &[Value<'_>],
    ) -> DbResult<Vec<CopyRow>> {
        let rows = self.db.query_once(statement, values)?;
        let mut rows: Vec<CopyRow> =
            rows.into_iter().map(|row| read(row, columns)).collect::<DbResult<_>>()?;
        if table.name == table::LEDGER_HOLDS {
            // Statements write the fields in more than one order.
            let index = column_index(columns, "legs")?;
            for row in &mut rows {
                let normalized = json(&legs(text_at(row, index))?)?;
                set(row, index, normalized);
            }
        }
        Ok(rows)
    }

    async fn check_no_other_connections(&mut self) -> Result<()> {
        // The file is locked.
        Ok(())
    }

    async fn prepare(&mut self, role: CopyRole) -> Result<()> {
        self.migrate(role).map_err(|fault| self.error(fault))
    }

    async fn close(self: Box<Self>) {
        if let Err(error) = self.db.close() {
            tracing::debug!(?error, "database file close failed");
        }
    }
}
