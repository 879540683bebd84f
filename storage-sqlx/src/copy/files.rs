//! A part (main or archive) in a SQLite file, as the source or target of a copy.
//!
//! The file stays locked against other processes while it is open here.

mod cold;

use std::{
    iter,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use transcript_core::{Error, Result, ledger::rules::LegRow};

use super::{
    copier::STATE_TABLE,
    row::{ColumnKind, CopyColumn, CopyRow, CopyValue},
    side::{CopyBatch, CopyRole, CopySide, CopyState},
    table::{self, CopyTable, TablePart},
    videos::LegacyBody,
};
use crate::{
    codec::json,
    error::{DbError, DbResult, corrupt},
    sql::{Row, Value, values},
    sqlite::{FileKind, FileLocking, kind_of_file, prepare_file, schema, session::SqliteSession},
};

/// How long to wait for a lock: a command that is about to end may hold it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// Most parameters of a statement; SQLite permits 32,766.
const VALUES_MAX: usize = 20_000;

/// A part in a file.
#[derive(Debug)]
pub(super) struct SqliteSide {
    part: &'static TablePart,
    file: PathBuf,
    name: String,
    db: SqliteSession,
}

impl SqliteSide {
    /// Opens and locks the file.
    ///
    /// A source is migrated to the newest schema, and so is a target without an incomplete copy. A missing target is
    /// created.
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

    fn locked(kind: &FileKind, file: &Path, role: CopyRole) -> DbResult<SqliteSession> {
        if file.metadata().is_ok_and(|there| there.len() > 0) {
            // A file of another program stays unchanged, including its journal mode.
            let probe = FileKind::open_probe(file, LOCK_TIMEOUT)?;
            schema::any_version(kind, file, &probe)?;
            probe.close()?;
        }
        let db = kind.open_writer(file, LOCK_TIMEOUT, FileLocking::Exclusive)?;
        db.batch("BEGIN EXCLUSIVE; COMMIT")?;
        let is_incomplete = schema::any_version(kind, file, &db)? == super::INCOMPLETE_COPY;
        match role {
            CopyRole::Target if is_incomplete => schema::check_incomplete_copy(kind, file, &db)?,
            // A source that is itself an incomplete copy is rejected here.
            CopyRole::Source | CopyRole::Target => schema::migrate(kind, file, &db)?,
        }
        Ok(db)
    }

    /// Decodes the rows of a statement.
    fn find<T>(
        &self,
        statement: &str,
        values: &[Value<'_>],
        form: impl Fn(&mut Row) -> DbResult<T>,
    ) -> Result<Vec<T>> {
        let rows = self.db.query_once(statement, values);
        let found = rows.and_then(|mut rows| rows.iter_mut().map(form).collect());
        found.map_err(|fault| fault.into_error(&self.file))
    }

    /// The number in the first row of a statement; 0 without a row.
    fn find_number(&self, statement: &str, values: &[Value<'_>]) -> Result<i64> {
        Ok(self.find(statement, values, |row| row.take(0))?.first().copied().unwrap_or_default())
    }

    fn is_empty(&self, table: &'static CopyTable) -> Result<bool> {
        let filter = if table.name == table::CHANGES { " WHERE count > 0" } else { "" };
        let rows = self.find(&format!("SELECT 1 FROM {}{filter} LIMIT 1", table.name), &[], |_| Ok(()))?;
        Ok(rows.is_empty())
    }

    /// Runs work in one transaction.
    fn transact(&mut self, work: impl FnOnce(&mut SqliteSession) -> DbResult<()>) -> Result<()> {
        let outcome = self.db.batch("BEGIN IMMEDIATE").and_then(|()| {
            let outcome = work(&mut self.db).and_then(|()| self.db.batch("COMMIT"));
            if outcome.is_err() {
                // After some errors SQLite has rolled back itself.
                self.db.batch("ROLLBACK").ok();
            }
            outcome
        });
        outcome.map_err(|fault| fault.into_error(&self.file))
    }
}

fn store(db: &mut SqliteSession, batches: &[CopyBatch], position: &str) -> DbResult<()> {
    for batch in batches {
        if batch.table.name == table::COLD {
            cold::insert(batch, db)?;
            continue;
        }
        for rows in batch.rows.chunks((VALUES_MAX / batch.columns.len().max(1)).max(1)) {
            let (statement, values) = insert(batch.table, &batch.columns, rows);
            db.query_once(&statement, &values)?;
        }
    }
    db.query_once(&format!("UPDATE {STATE_TABLE} SET place = ?1"), &values![position])?;
    Ok(())
}

/// A statement that stores rows, with its values.
fn insert<'a>(table: &CopyTable, columns: &[CopyColumn], rows: &'a [CopyRow]) -> (String, Vec<Value<'a>>) {
    if table.name == table::CHANGES {
        // The only row exists from the start.
        let count = columns.iter().position(|column| column.name == "count").unwrap_or_default();
        let count = rows.first().and_then(|row| row.get(count)).map_or(0, CopyValue::number);
        return ("UPDATE changes SET count = ?1".to_owned(), values![count].into());
    }
    // In a file the row of the transcript has the video, and the row of the body does not.
    let carried = |column: &CopyColumn| !(table.name == table::BODIES && column.name == "video");
    let names: Vec<String> = columns
        .iter()
        .filter(|column| carried(column))
        .map(|column| format!("\"{}\"", table.in_files(&column.name)))
        .collect();
    let tuples = vec![placeholders(names.len()); rows.len()].join(", ");
    let values = rows.iter().flat_map(|row| columns.iter().zip(row));
    let values = values.filter(|(column, _)| carried(column)).map(|(_, value)| bind(value)).collect();
    (format!("INSERT INTO {} ({}) VALUES {tuples}", table.name, names.join(", ")), values)
}

/// A list of parameters in brackets.
fn placeholders(count: usize) -> String {
    format!("({})", iter::repeat_n("?", count).collect::<Vec<_>>().join(", "))
}

/// Decodes the columns of a row.
fn read(table: &CopyTable, row: &mut Row, columns: &[CopyColumn]) -> DbResult<CopyRow> {
    let value = |(index, column): (usize, &CopyColumn)| -> DbResult<CopyValue> {
        if (table.name, column.name.as_str()) == (table::LEDGER_HOLDS, "legs") {
            // Statements write the fields in more than one order.
            let legs: Vec<LegRow> = serde_json::from_str(row.get(index)?)
                .map_err(|_| corrupt("a hold of the ledger is damaged"))?;
            return Ok(CopyValue::Text(json(&legs)?));
        }
        Ok(match column.kind {
            ColumnKind::Number | ColumnKind::Flag => row.take::<Option<i64>>(index)?.map(CopyValue::Number),
            ColumnKind::Text => row.take::<Option<String>>(index)?.map(CopyValue::Text),
            ColumnKind::Bytes => row.take::<Option<Vec<u8>>>(index)?.map(CopyValue::Bytes),
        }
        .unwrap_or(CopyValue::None))
    };
    columns.iter().enumerate().map(value).collect()
}

/// Column names for a statement in which the table has the alias `x`.
fn names(table: &CopyTable, columns: &[CopyColumn]) -> String {
    let name = |column: &CopyColumn| match (table.name, column.name.as_str()) {
        (table::BODIES, "video") => "t.video".to_owned(),
        (_, name) => format!("x.\"{}\"", table.in_files(name)),
    };
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn bind(value: &CopyValue) -> Value<'_> {
    match value {
        CopyValue::None => Value::Null,
        CopyValue::Number(number) => Value::from(*number),
        CopyValue::Text(text) => Value::from(text),
        CopyValue::Bytes(bytes) => Value::from(bytes),
    }
}

/// The names of videos as statement parameters.
fn bind_all(videos: &[String]) -> Vec<Value<'_>> {
    videos.iter().map(Value::from).collect()
}

#[async_trait]
impl CopySide for SqliteSide {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_files(&self) -> bool {
        true
    }

    async fn columns(&mut self, table: &'static CopyTable) -> Result<Vec<CopyColumn>> {
        if table.name == table::COLD {
            let column = |name: &str, kind| CopyColumn { name: name.to_owned(), kind };
            return Ok(vec![
                column("body", ColumnKind::Bytes),
                column("transcript", ColumnKind::Number),
                column("video", ColumnKind::Text),
            ]);
        }
        let statement = "SELECT name, type FROM pragma_table_info(?1)";
        let found =
            self.find(statement, &values![table.name], |row| Ok((row.take(0)?, row.take::<String>(1)?)))?;
        let mut columns = Vec::new();
        for (name, kind) in found {
            let name: String = name;
            let kind = match kind.as_str() {
                "INTEGER" => ColumnKind::Number,
                "BLOB" => ColumnKind::Bytes,
                _ => ColumnKind::Text,
            };
            let renamed = table.number.filter(|number| table.in_files(number) == name);
            if table.carries_from_files(&name) {
                columns.push(CopyColumn { name: renamed.map_or(name, str::to_owned), kind });
            }
        }
        if table.name == table::BODIES {
            columns.push(CopyColumn { name: "video".to_owned(), kind: ColumnKind::Text });
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(columns)
    }

    async fn tables(&mut self) -> Result<Vec<String>> {
        self.find("SELECT name FROM sqlite_schema WHERE type = 'table'", &[], |row| row.take(0))
    }

    async fn count(&mut self, table: &'static CopyTable) -> Result<u64> {
        let mut query = format!("SELECT count(*) FROM {}", table.name);
        if table.name == table::BODIES {
            // Transcripts without a row in the table of bodies count as one body each.
            query = "SELECT (SELECT count(*) FROM transcripts) - (SELECT count(*) FROM cold WHERE id % 65536 = 0)"
                .to_owned();
        }
        if table.name == table::COLD {
            query.push_str(" WHERE id % 65536 = 0");
        }
        crate::codec::number(self.find_number(&query, &[])?)
    }

    async fn page(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        after: Option<&[CopyValue]>,
    ) -> Result<Vec<CopyRow>> {
        let key: Vec<String> =
            table.key.iter().map(|name| format!("x.\"{}\"", table.in_files(name))).collect();
        let from = format!("SELECT {} FROM {} x", names(table, columns), table.name);
        let mut rows = Vec::new();
        // First the remaining rows with the same first key column, then those after it: each is a range of an index.
        for within_first in [true, false] {
            let remaining = (table.batch as usize).saturating_sub(rows.len());
            let (filter, values) = match (after, key.as_slice()) {
                (Some([first, second]), [one, two]) if within_first => {
                    (format!(" WHERE {one} = ?1 AND {two} > ?2"), vec![bind(first), bind(second)])
                }
                (Some([first, ..]), [one, ..]) if !within_first => {
                    (format!(" WHERE {one} > ?1"), vec![bind(first)])
                }
                (None, _) if !within_first => (String::new(), Vec::new()),
                _ => continue,
            };
            let statement = format!("{from}{filter} ORDER BY {} LIMIT {remaining}", key.join(", "));
            rows.extend(self.find(&statement, &values, |row| read(table, row, columns))?);
            if rows.len() >= table.batch as usize {
                break;
            }
        }
        Ok(rows)
    }

    async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>> {
        let statement = "SELECT DISTINCT video FROM tracks WHERE video > ?1 ORDER BY video LIMIT ?2";
        self.find(statement, &values![after.unwrap_or_default(), limit], |row| row.take(0))
    }

    async fn rows_of_videos(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        videos: &[String],
    ) -> Result<Vec<CopyRow>> {
        if table.name == table::COLD {
            return cold::rows_of_videos(self, columns, videos);
        }
        let (from, video) = match table.name {
            table::BODIES => ("bodies x JOIN transcripts t ON t.id = x.transcript".to_owned(), "t.video"),
            name => (format!("{name} x"), "x.video"),
        };
        let last = table.key.last().copied().unwrap_or_default();
        let statement = format!(
            "SELECT {} FROM {from} WHERE {video} IN {} ORDER BY {video}, x.\"{last}\"",
            names(table, columns),
            placeholders(videos.len())
        );
        self.find(&statement, &bind_all(videos), |row| read(table, row, columns))
    }

    async fn legacy_bodies(&mut self, videos: &[String]) -> Result<Vec<LegacyBody>> {
        let statement = format!(
            "SELECT id, content_sha256, body_length, body FROM transcripts t
             WHERE NOT EXISTS (SELECT 1 FROM bodies b WHERE b.transcript = t.id)
                AND NOT EXISTS (SELECT 1 FROM cold WHERE id = t.id * 65536) AND video IN {}",
            placeholders(videos.len())
        );
        self.find(&statement, &bind_all(videos), |row| {
            Ok(LegacyBody::repack(row.take(0)?, row.take(1)?, row.take(2)?, row.take(3)?)?)
        })
    }

    async fn copy_state(&mut self) -> Result<Option<CopyState>> {
        if !self.tables().await?.iter().any(|name| name == STATE_TABLE) {
            return Ok(None);
        }
        let states = self.find(&format!("SELECT source, place FROM {STATE_TABLE}"), &[], |row| {
            Ok(CopyState { source: row.take(0)?, position: row.take(1)? })
        });
        Ok(states?.into_iter().next())
    }

    async fn begin_copy(&mut self, state: &CopyState) -> Result<()> {
        for table in self.part.all() {
            if !self.is_empty(table)? {
                return Err(Error::conflict(format!(
                    "{} already has rows in {}: choose another file, or delete it if it is not needed",
                    self.name, table.name
                )));
            }
        }
        let create = format!(
            "CREATE TABLE {STATE_TABLE} (part TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL) STRICT;
             INSERT INTO schema_version (version, name, applied_at)
             VALUES ({}, 'half copied', CAST(unixepoch('subsec') * 1000 AS INTEGER))",
            super::INCOMPLETE_COPY
        );
        let row = values![self.part.name, &state.source, &state.position];
        self.transact(|db| {
            db.batch(&create)?;
            db.query_once(&format!("INSERT INTO {STATE_TABLE} VALUES (?1, ?2, ?3)"), &row)?;
            Ok(())
        })
    }

    async fn take_over(&mut self) -> Result<CopyState> {
        // The file is locked, so no other copy can use it.
        let name = self.name.clone();
        self.copy_state()
            .await?
            .ok_or_else(|| Error::conflict(format!("the copy to {name} is no longer in progress")))
    }

    async fn store(&mut self, batches: Vec<CopyBatch>, position: &str) -> Result<()> {
        self.transact(|db| store(db, &batches, position))
    }

    async fn end_copy(&mut self) -> Result<()> {
        let incomplete = super::INCOMPLETE_COPY;
        self.transact(|db| {
            db.batch(&format!(
                "DROP TABLE {STATE_TABLE}; DELETE FROM schema_version WHERE version = {incomplete}"
            ))
        })
    }

    async fn used_numbers(&mut self, table: &'static CopyTable, numbers: &[i64]) -> Result<Vec<i64>> {
        let Some(number) = table.number else { return Ok(Vec::new()) };
        let mut used = Vec::new();
        for numbers in numbers.chunks(VALUES_MAX) {
            let column = table.in_files(number);
            let list = placeholders(numbers.len());
            let statement = format!("SELECT \"{column}\" FROM {} WHERE \"{column}\" IN {list}", table.name);
            let values: Vec<Value<'_>> = numbers.iter().copied().map(Value::from).collect();
            used.extend(self.find(&statement, &values, |row| row.take::<i64>(0))?);
        }
        Ok(used)
    }

    async fn newest_entry(&mut self, wallet: &str) -> Result<i64> {
        let statement = "SELECT coalesce(max(seq), 0) FROM ledger_entries WHERE wallet = ?1";
        self.find_number(statement, &values![wallet])
    }

    async fn largest_number(&mut self, table: &'static CopyTable) -> Result<i64> {
        let Some(number) = table.number else { return Ok(0) };
        let column = table.in_files(number);
        self.find_number(&format!("SELECT coalesce(max(\"{column}\"), 0) FROM {}", table.name), &[])
    }

    async fn close(self: Box<Self>) {
        if let Err(error) = self.db.close() {
            tracing::debug!(?error, "database file close failed");
        }
    }
}
