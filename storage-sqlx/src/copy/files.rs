//! A part (main or archive) in a SQLite file, as the source or target of a copy.
//!
//! The file stays locked against other processes while it is open here.

mod cold;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, QueryBuilder, Row as _, Sqlite, SqliteConnection,
    sqlite::{SqliteLockingMode, SqliteRow},
};
use transcript_core::{Error, Result, ledger::rules::LegRow};

use super::{
    copier::STATE_TABLE,
    row::{ColumnKind, CopyColumn, CopyRow, CopyValue},
    side::{CopyBatch, CopyRole, CopySide, CopyState, conflict},
    table::{self, CopyTable, TablePart},
    videos::LegacyBody,
};
use crate::{
    codec::json,
    error::{DbError, DbResult, corrupt},
    sqlite::{FileKind, kind_of_file, prepare_file, schema},
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
    db: SqliteConnection,
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
        let file = prepare_file(kind, path).await?;
        let fault = |fault: DbError| match fault.is_busy() {
            true => conflict(format!(
                "{} is in use: stop every server and command that has it open",
                file.display()
            )),
            false => fault.into_error(&file),
        };
        let started = Instant::now();
        let db = loop {
            match Self::locked(kind, &file, role).await {
                Err(fault) if fault.is_busy() && started.elapsed() < LOCK_TIMEOUT => {
                    tokio::time::sleep(PAUSE).await
                }
                locked => break locked.map_err(fault)?,
            }
        };
        let name = file.display().to_string();
        Ok(Self { part, name, file, db })
    }

    async fn locked(kind: &'static FileKind, file: &Path, role: CopyRole) -> DbResult<SqliteConnection> {
        if file.metadata().is_ok_and(|there| there.len() > 0) {
            // A file of another program stays unchanged, including its journal mode.
            let mut probe = kind.probe(file, LOCK_TIMEOUT).connect().await?;
            let version = schema::any_version(kind, file, &mut probe).await;
            probe.close().await?;
            version?;
        }
        let options = kind.writer(file, LOCK_TIMEOUT).locking_mode(SqliteLockingMode::Exclusive);
        let mut db = options.connect().await?;
        sqlx::raw_sql("BEGIN EXCLUSIVE; COMMIT").execute(&mut db).await?;
        let is_incomplete = schema::any_version(kind, file, &mut db).await? == super::INCOMPLETE_COPY;
        match role {
            CopyRole::Target if is_incomplete => schema::check_incomplete_copy(kind, file, &mut db).await?,
            // A source that is itself an incomplete copy is rejected here.
            CopyRole::Source | CopyRole::Target => schema::migrate(kind, file, &mut db).await?,
        }
        Ok(db)
    }

    fn fault(&self) -> impl Fn(sqlx::Error) -> Error + use<> {
        let file = self.file.clone();
        move |error| DbError::from(error).into_error(&file)
    }

    fn work_fault(&self) -> impl Fn(DbError) -> Error + use<> {
        let file = self.file.clone();
        move |fault| fault.into_error(&file)
    }

    async fn rows(&mut self, mut query: QueryBuilder<Sqlite>) -> Result<Vec<SqliteRow>> {
        let fault = self.fault();
        query.build().persistent(false).fetch_all(&mut self.db).await.map_err(fault)
    }

    async fn run(&mut self, statement: String) -> Result<()> {
        let fault = self.fault();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut self.db).await.map(drop).map_err(fault)
    }

    async fn is_empty(&mut self, table: &'static CopyTable) -> Result<bool> {
        let filter = if table.name == table::CHANGES { " WHERE count > 0" } else { "" };
        let query = QueryBuilder::new(format!("SELECT 1 FROM {}{filter} LIMIT 1", table.name));
        Ok(self.rows(query).await?.is_empty())
    }

    async fn store_within(&mut self, batches: Vec<CopyBatch>, position: &str) -> DbResult<()> {
        let mut transaction = self.db.begin_with("BEGIN IMMEDIATE").await?;
        for batch in &batches {
            if batch.table.name == table::COLD {
                cold::insert(batch, &mut transaction).await?;
                continue;
            }
            for rows in batch.rows.chunks((VALUES_MAX / batch.columns.len().max(1)).max(1)) {
                insert(batch.table, &batch.columns, rows)
                    .build()
                    .persistent(false)
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        let mut state = QueryBuilder::<Sqlite>::new(format!("UPDATE {STATE_TABLE} SET place = "));
        state.push_bind(position).build().execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }
}

/// A statement that stores rows.
fn insert(table: &CopyTable, columns: &[CopyColumn], rows: &[CopyRow]) -> QueryBuilder<Sqlite> {
    if table.name == table::CHANGES {
        // The only row exists from the start.
        let mut set = QueryBuilder::new("UPDATE changes SET count = ");
        let count = columns.iter().position(|column| column.name == "count").unwrap_or_default();
        set.push_bind(rows.first().and_then(|row| row.get(count)).map_or(0, CopyValue::number));
        return set;
    }
    // In a file the row of the transcript has the video, and the row of the body does not.
    let carried = |column: &CopyColumn| !(table.name == table::BODIES && column.name == "video");
    let names: Vec<String> = columns
        .iter()
        .filter(|column| carried(column))
        .map(|column| format!("\"{}\"", table.in_files(&column.name)))
        .collect();
    let mut insert = QueryBuilder::new(format!("INSERT INTO {} ({}) ", table.name, names.join(", ")));
    insert.push_values(rows, |mut tuple, row| {
        for (_, value) in columns.iter().zip(row).filter(|(column, _)| carried(column)) {
            match value {
                CopyValue::None => tuple.push_bind(None::<i64>),
                CopyValue::Number(number) => tuple.push_bind(*number),
                CopyValue::Text(text) => tuple.push_bind(text.clone()),
                CopyValue::Bytes(bytes) => tuple.push_bind(bytes.clone()),
            };
        }
    });
    insert
}

/// Decodes the columns of a row.
fn read(table: &CopyTable, row: &SqliteRow, columns: &[CopyColumn]) -> DbResult<CopyRow> {
    let value = |(index, column): (usize, &CopyColumn)| -> DbResult<CopyValue> {
        if (table.name, column.name.as_str()) == (table::LEDGER_HOLDS, "legs") {
            // Statements write the fields in more than one order.
            let legs: Vec<LegRow> = serde_json::from_str(row.try_get(index)?)
                .map_err(|_| corrupt("a hold of the ledger is damaged"))?;
            return Ok(CopyValue::Text(json(&legs)?));
        }
        Ok(match column.kind {
            ColumnKind::Number | ColumnKind::Flag => {
                row.try_get::<Option<i64>, _>(index)?.map(CopyValue::Number)
            }
            ColumnKind::Text => row.try_get::<Option<String>, _>(index)?.map(CopyValue::Text),
            ColumnKind::Bytes => row.try_get::<Option<Vec<u8>>, _>(index)?.map(CopyValue::Bytes),
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

fn bind(query: &mut QueryBuilder<Sqlite>, value: &CopyValue) {
    match value {
        CopyValue::None => query.push_bind(None::<i64>),
        CopyValue::Number(number) => query.push_bind(*number),
        CopyValue::Text(text) => query.push_bind(text.clone()),
        CopyValue::Bytes(bytes) => query.push_bind(bytes.clone()),
    };
}

fn push_list(query: &mut QueryBuilder<Sqlite>, values: impl IntoIterator<Item = CopyValue>) {
    query.push(" (");
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            query.push(", ");
        }
        bind(query, &value);
    }
    query.push(")");
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
        let mut query = QueryBuilder::new("SELECT name, type FROM pragma_table_info(");
        query.push_bind(table.name).push(")");
        let fault = self.fault();
        let mut columns = Vec::new();
        for row in self.rows(query).await? {
            let (name, kind): (String, String) =
                (row.try_get(0).map_err(&fault)?, row.try_get(1).map_err(&fault)?);
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
        let query = QueryBuilder::new("SELECT name FROM sqlite_schema WHERE type = 'table'");
        let fault = self.fault();
        self.rows(query).await?.iter().map(|row| row.try_get(0).map_err(&fault)).collect()
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
        let (rows, fault) = (self.rows(QueryBuilder::new(query)).await?, self.fault());
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)?;
        crate::codec::number(count)
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
            let mut query = QueryBuilder::new(&from);
            match (after, key.as_slice()) {
                (Some([first, second]), [one, two]) if within_first => {
                    query.push(format!(" WHERE {one} = "));
                    bind(&mut query, first);
                    query.push(format!(" AND {two} > "));
                    bind(&mut query, second);
                }
                (Some([first, ..]), [one, ..]) if !within_first => {
                    query.push(format!(" WHERE {one} > "));
                    bind(&mut query, first);
                }
                (None, _) if !within_first => {}
                _ => continue,
            }
            query.push(format!(" ORDER BY {} LIMIT {remaining}", key.join(", ")));
            let fault = self.work_fault();
            for row in self.rows(query).await? {
                rows.push(read(table, &row, columns).map_err(&fault)?);
            }
            if rows.len() >= table.batch as usize {
                break;
            }
        }
        Ok(rows)
    }

    async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>> {
        let mut query = QueryBuilder::new("SELECT DISTINCT video FROM tracks WHERE video > ");
        query.push_bind(after.unwrap_or_default().to_owned()).push(format!(" ORDER BY video LIMIT {limit}"));
        let fault = self.fault();
        self.rows(query).await?.iter().map(|row| row.try_get(0).map_err(&fault)).collect()
    }

    async fn rows_of_videos(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        videos: &[String],
    ) -> Result<Vec<CopyRow>> {
        if table.name == table::COLD {
            return cold::rows_of_videos(self, columns, videos).await;
        }
        let (from, video) = match table.name {
            table::BODIES => ("bodies x JOIN transcripts t ON t.id = x.transcript".to_owned(), "t.video"),
            name => (format!("{name} x"), "x.video"),
        };
        let mut query =
            QueryBuilder::new(format!("SELECT {} FROM {from} WHERE {video} IN", names(table, columns)));
        push_list(&mut query, videos.iter().cloned().map(CopyValue::Text));
        let last = table.key.last().copied().unwrap_or_default();
        query.push(format!(" ORDER BY {video}, x.\"{last}\""));
        let fault = self.work_fault();
        self.rows(query).await?.iter().map(|row| read(table, row, columns).map_err(&fault)).collect()
    }

    async fn legacy_bodies(&mut self, videos: &[String]) -> Result<Vec<LegacyBody>> {
        let mut query = QueryBuilder::new(
            "SELECT id, content_sha256, body_length, body FROM transcripts t
             WHERE NOT EXISTS (SELECT 1 FROM bodies b WHERE b.transcript = t.id)
                AND NOT EXISTS (SELECT 1 FROM cold WHERE id = t.id * 65536) AND video IN",
        );
        push_list(&mut query, videos.iter().cloned().map(CopyValue::Text));
        let fault = self.fault();
        let legacy_body = |row: &SqliteRow| -> Result<LegacyBody> {
            let (id, content, length, body) = (
                row.try_get(0).map_err(&fault)?,
                row.try_get(1).map_err(&fault)?,
                row.try_get(2).map_err(&fault)?,
                row.try_get(3).map_err(&fault)?,
            );
            LegacyBody::repack(id, content, length, body)
        };
        self.rows(query).await?.iter().map(legacy_body).collect()
    }

    async fn copy_state(&mut self) -> Result<Option<CopyState>> {
        if !self.tables().await?.iter().any(|name| name == STATE_TABLE) {
            return Ok(None);
        }
        let fault = self.fault();
        let rows = self.rows(QueryBuilder::new(format!("SELECT source, place FROM {STATE_TABLE}"))).await?;
        let state = |row: &SqliteRow| {
            Ok::<_, Error>(CopyState {
                source: row.try_get(0).map_err(&fault)?,
                position: row.try_get(1).map_err(&fault)?,
            })
        };
        rows.first().map(state).transpose()
    }

    async fn begin_copy(&mut self, state: &CopyState) -> Result<()> {
        for table in self.part.all() {
            if !self.is_empty(table).await? {
                return Err(conflict(format!(
                    "{} already has rows in {}: choose another file, or delete it if it is not needed",
                    self.name, table.name
                )));
            }
        }
        let fault = self.fault();
        let begin = async {
            let mut transaction = self.db.begin_with("BEGIN IMMEDIATE").await?;
            let create = format!(
                "CREATE TABLE {STATE_TABLE} (part TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL) STRICT;
                 INSERT INTO schema_version (version, name, applied_at)
                 VALUES ({}, 'half copied', CAST(unixepoch('subsec') * 1000 AS INTEGER))",
                super::INCOMPLETE_COPY
            );
            sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut *transaction).await?;
            let mut query = QueryBuilder::<Sqlite>::new(format!("INSERT INTO {STATE_TABLE} VALUES ("));
            query.push_bind(self.part.name).push(", ").push_bind(&state.source).push(", ");
            query.push_bind(&state.position).push(")").build().execute(&mut *transaction).await?;
            transaction.commit().await
        };
        begin.await.map_err(fault)
    }

    async fn take_over(&mut self) -> Result<CopyState> {
        // The file is locked, so no other copy can use it.
        let name = self.name.clone();
        self.copy_state()
            .await?
            .ok_or_else(|| conflict(format!("the copy to {name} is no longer in progress")))
    }

    async fn store(&mut self, batches: Vec<CopyBatch>, position: &str) -> Result<()> {
        let file = self.file.clone();
        self.store_within(batches, position).await.map_err(|fault| fault.into_error(&file))
    }

    async fn end_copy(&mut self) -> Result<()> {
        let incomplete = super::INCOMPLETE_COPY;
        self.run(format!(
            "BEGIN IMMEDIATE; DROP TABLE {STATE_TABLE}; DELETE FROM schema_version WHERE version = {incomplete}; COMMIT"
        ))
        .await
    }

    async fn used_numbers(&mut self, table: &'static CopyTable, numbers: &[i64]) -> Result<Vec<i64>> {
        let Some(number) = table.number else { return Ok(Vec::new()) };
        let mut used = Vec::new();
        for numbers in numbers.chunks(VALUES_MAX) {
            let column = table.in_files(number);
            let mut query =
                QueryBuilder::new(format!("SELECT \"{column}\" FROM {} WHERE \"{column}\" IN", table.name));
            push_list(&mut query, numbers.iter().copied().map(CopyValue::Number));
            let fault = self.fault();
            for row in self.rows(query).await? {
                used.push(row.try_get(0).map_err(&fault)?);
            }
        }
        Ok(used)
    }

    async fn newest_entry(&mut self, wallet: &str) -> Result<i64> {
        let mut query = QueryBuilder::new("SELECT coalesce(max(seq), 0) FROM ledger_entries WHERE wallet = ");
        query.push_bind(wallet.to_owned());
        let (rows, fault) = (self.rows(query).await?, self.fault());
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)
    }

    async fn largest_number(&mut self, table: &'static CopyTable) -> Result<i64> {
        let Some(number) = table.number else { return Ok(0) };
        let column = table.in_files(number);
        let query = QueryBuilder::new(format!("SELECT coalesce(max(\"{column}\"), 0) FROM {}", table.name));
        let (rows, fault) = (self.rows(query).await?, self.fault());
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)
    }

    async fn close(self: Box<Self>) {
        if let Err(error) = self.db.close().await {
            tracing::debug!(%error, "database file close failed");
        }
    }
}
