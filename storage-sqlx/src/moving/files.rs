//! A part that is in a SQLite file. The file is locked for as long as it is open here: no other process has it.

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
use transcript_core::{Error, Result};

use super::{
    row::{Column, Kind, Row, Value},
    side::{Batch, Note, Role, Side, conflict},
    table::{self, Part, Table},
    videos::OldBody,
    work::NOTES,
};
use crate::{
    books::LegRow,
    codec::json,
    error::{Fault, Work, corrupt},
    sqlite::{FileKind, kind_of_file, prepare_file, schema},
};

/// How long a lock is waited for: a command that is about to end may have it.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// How many values a statement takes at most; SQLite takes 32,766.
const VALUES_MAX: usize = 20_000;

/// A part in a file.
#[derive(Debug)]
pub(super) struct Files {
    part: &'static Part,
    file: PathBuf,
    name: String,
    db: SqliteConnection,
}

impl Files {
    /// Opens and locks the file. A source is brought to the newest schema, and so is a target that nothing is copied to
    /// yet; a target is made where it is missing.
    pub(super) async fn open(part: &'static Part, path: &Path, role: Role) -> Result<Self> {
        if role == Role::Source && !path.is_file() {
            return Err(Error::invalid(format!("there is no file {} to copy from", path.display())));
        }
        let kind = kind_of_file(part.name);
        let file = prepare_file(kind, path).await?;
        let fault = |fault: Fault| match fault.is_busy() {
            true => conflict(format!(
                "{} is in use: stop every server and command that has it open",
                file.display()
            )),
            false => fault.into_error(&file),
        };
        let begun = Instant::now();
        let db = loop {
            match Self::locked(kind, &file, role).await {
                Err(fault) if fault.is_busy() && begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await
                }
                locked => break locked.map_err(fault)?,
            }
        };
        let name = file.display().to_string();
        Ok(Self { part, name, file, db })
    }

    async fn locked(kind: &'static FileKind, file: &Path, role: Role) -> Work<SqliteConnection> {
        if file.metadata().is_ok_and(|there| there.len() > 0) {
            // Somebody else's file is left as it is, to its journal mode.
            let mut probe = kind.probe(file, PATIENCE).connect().await?;
            let version = schema::any_version(kind, file, &mut probe).await;
            probe.close().await?;
            version?;
        }
        let options = kind.writer(file, PATIENCE).locking_mode(SqliteLockingMode::Exclusive);
        let mut db = options.connect().await?;
        sqlx::raw_sql("BEGIN EXCLUSIVE; COMMIT").execute(&mut db).await?;
        let is_half = schema::any_version(kind, file, &mut db).await? == super::HALF_COPIED;
        match role {
            Role::Target if is_half => schema::check_below_half(kind, file, &mut db).await?,
            // A source that is half copied itself is refused here.
            Role::Source | Role::Target => schema::migrate(kind, file, &mut db).await?,
        }
        Ok(db)
    }

    fn fault(&self) -> impl Fn(sqlx::Error) -> Error + use<> {
        let file = self.file.clone();
        move |error| Fault::from(error).into_error(&file)
    }

    fn work_fault(&self) -> impl Fn(Fault) -> Error + use<> {
        let file = self.file.clone();
        move |fault| fault.into_error(&file)
    }

    async fn rows(&mut self, mut ask: QueryBuilder<Sqlite>) -> Result<Vec<SqliteRow>> {
        let fault = self.fault();
        ask.build().persistent(false).fetch_all(&mut self.db).await.map_err(fault)
    }

    async fn run(&mut self, statement: String) -> Result<()> {
        let fault = self.fault();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut self.db).await.map(drop).map_err(fault)
    }

    async fn is_empty(&mut self, table: &'static Table) -> Result<bool> {
        let but = if table.name == table::CHANGES { " WHERE count > 0" } else { "" };
        let ask = QueryBuilder::new(format!("SELECT 1 FROM {}{but} LIMIT 1", table.name));
        Ok(self.rows(ask).await?.is_empty())
    }

    async fn store_within(&mut self, batches: Vec<Batch>, place: &str) -> Work<()> {
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
        let mut note = QueryBuilder::<Sqlite>::new(format!("UPDATE {NOTES} SET place = "));
        note.push_bind(place).build().execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }
}

/// A statement that stores rows.
fn insert(table: &Table, columns: &[Column], rows: &[Row]) -> QueryBuilder<Sqlite> {
    if table.name == table::CHANGES {
        // The one row is there from the beginning.
        let mut set = QueryBuilder::new("UPDATE changes SET count = ");
        let count = columns.iter().position(|column| column.name == "count").unwrap_or_default();
        set.push_bind(rows.first().and_then(|row| row.get(count)).map_or(0, Value::number));
        return set;
    }
    // Whose video it is, its transcript says.
    let carried = |column: &Column| !(table.name == table::BODIES && column.name == "video");
    let names: Vec<String> = columns
        .iter()
        .filter(|column| carried(column))
        .map(|column| format!("\"{}\"", table.in_files(&column.name)))
        .collect();
    let mut insert = QueryBuilder::new(format!("INSERT INTO {} ({}) ", table.name, names.join(", ")));
    insert.push_values(rows, |mut tuple, row| {
        for (_, value) in columns.iter().zip(row).filter(|(column, _)| carried(column)) {
            match value {
                Value::None => tuple.push_bind(None::<i64>),
                Value::Number(number) => tuple.push_bind(*number),
                Value::Text(text) => tuple.push_bind(text.clone()),
                Value::Bytes(bytes) => tuple.push_bind(bytes.clone()),
            };
        }
    });
    insert
}

/// The columns of a row.
fn read(table: &Table, row: &SqliteRow, columns: &[Column]) -> Work<Row> {
    let value = |(place, column): (usize, &Column)| -> Work<Value> {
        if (table.name, column.name.as_str()) == (table::LEDGER_HOLDS, "legs") {
            // Statements write them in more than one order.
            let legs: Vec<LegRow> = serde_json::from_str(row.try_get(place)?)
                .map_err(|_| corrupt("a hold of the ledger is damaged"))?;
            return Ok(Value::Text(json(&legs)?));
        }
        Ok(match column.kind {
            Kind::Number | Kind::Flag => row.try_get::<Option<i64>, _>(place)?.map(Value::Number),
            Kind::Text => row.try_get::<Option<String>, _>(place)?.map(Value::Text),
            Kind::Bytes => row.try_get::<Option<Vec<u8>>, _>(place)?.map(Value::Bytes),
        }
        .unwrap_or(Value::None))
    };
    columns.iter().enumerate().map(value).collect()
}

/// The names of columns in a statement, of a table that is called `x` there.
fn names(table: &Table, columns: &[Column]) -> String {
    let name = |column: &Column| match (table.name, column.name.as_str()) {
        (table::BODIES, "video") => "t.video".to_owned(),
        (_, name) => format!("x.\"{}\"", table.in_files(name)),
    };
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn bind(ask: &mut QueryBuilder<Sqlite>, value: &Value) {
    match value {
        Value::None => ask.push_bind(None::<i64>),
        Value::Number(number) => ask.push_bind(*number),
        Value::Text(text) => ask.push_bind(text.clone()),
        Value::Bytes(bytes) => ask.push_bind(bytes.clone()),
    };
}

fn listed(ask: &mut QueryBuilder<Sqlite>, values: impl IntoIterator<Item = Value>) {
    ask.push(" (");
    for (place, value) in values.into_iter().enumerate() {
        if place > 0 {
            ask.push(", ");
        }
        bind(ask, &value);
    }
    ask.push(")");
}

#[async_trait]
impl Side for Files {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_files(&self) -> bool {
        true
    }

    async fn columns(&mut self, table: &'static Table) -> Result<Vec<Column>> {
        if table.name == table::COLD {
            let column = |name: &str, kind| Column { name: name.to_owned(), kind };
            return Ok(vec![
                column("body", Kind::Bytes),
                column("transcript", Kind::Number),
                column("video", Kind::Text),
            ]);
        }
        let mut ask = QueryBuilder::new("SELECT name, type FROM pragma_table_info(");
        ask.push_bind(table.name).push(")");
        let fault = self.fault();
        let mut columns = Vec::new();
        for row in self.rows(ask).await? {
            let (name, kind): (String, String) =
                (row.try_get(0).map_err(&fault)?, row.try_get(1).map_err(&fault)?);
            let kind = match kind.as_str() {
                "INTEGER" => Kind::Number,
                "BLOB" => Kind::Bytes,
                _ => Kind::Text,
            };
            let renamed = table.number.filter(|number| table.in_files(number) == name);
            if table.carries_from_files(&name) {
                columns.push(Column { name: renamed.map_or(name, str::to_owned), kind });
            }
        }
        if table.name == table::BODIES {
            columns.push(Column { name: "video".to_owned(), kind: Kind::Text });
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(columns)
    }

    async fn tables(&mut self) -> Result<Vec<String>> {
        let ask = QueryBuilder::new("SELECT name FROM sqlite_schema WHERE type = 'table'");
        let fault = self.fault();
        self.rows(ask).await?.iter().map(|row| row.try_get(0).map_err(&fault)).collect()
    }

    async fn count(&mut self, table: &'static Table) -> Result<u64> {
        let mut ask = format!("SELECT count(*) FROM {}", table.name);
        if table.name == table::BODIES {
            // Those that are in no table of bodies yet are one each.
            ask = "SELECT (SELECT count(*) FROM transcripts) - (SELECT count(*) FROM cold WHERE id % 65536 = 0)"
                .to_owned();
        }
        if table.name == table::COLD {
            ask.push_str(" WHERE id % 65536 = 0");
        }
        let (rows, fault) = (self.rows(QueryBuilder::new(ask)).await?, self.fault());
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)?;
        crate::codec::number(count)
    }

    async fn page(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        after: Option<&[Value]>,
    ) -> Result<Vec<Row>> {
        let key: Vec<String> =
            table.key.iter().map(|name| format!("x.\"{}\"", table.in_files(name))).collect();
        let from = format!("SELECT {} FROM {} x", names(table, columns), table.name);
        let mut found = Vec::new();
        // The rest of what begins alike, then what comes after it: each is a range of an index.
        for rest in [true, false] {
            let left = (table.batch as usize).saturating_sub(found.len());
            let mut ask = QueryBuilder::new(&from);
            match (after, key.as_slice()) {
                (Some([first, second]), [one, two]) if rest => {
                    ask.push(format!(" WHERE {one} = "));
                    bind(&mut ask, first);
                    ask.push(format!(" AND {two} > "));
                    bind(&mut ask, second);
                }
                (Some([first, ..]), [one, ..]) if !rest => {
                    ask.push(format!(" WHERE {one} > "));
                    bind(&mut ask, first);
                }
                (None, _) if !rest => {}
                _ => continue,
            }
            ask.push(format!(" ORDER BY {} LIMIT {left}", key.join(", ")));
            let fault = self.work_fault();
            for row in self.rows(ask).await? {
                found.push(read(table, &row, columns).map_err(&fault)?);
            }
            if found.len() >= table.batch as usize {
                break;
            }
        }
        Ok(found)
    }

    async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>> {
        let mut ask = QueryBuilder::new("SELECT DISTINCT video FROM tracks WHERE video > ");
        ask.push_bind(after.unwrap_or_default().to_owned()).push(format!(" ORDER BY video LIMIT {limit}"));
        let fault = self.fault();
        self.rows(ask).await?.iter().map(|row| row.try_get(0).map_err(&fault)).collect()
    }

    async fn of_videos(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        videos: &[String],
    ) -> Result<Vec<Row>> {
        if table.name == table::COLD {
            return cold::of_videos(self, columns, videos).await;
        }
        let (from, video) = match table.name {
            table::BODIES => ("bodies x JOIN transcripts t ON t.id = x.transcript".to_owned(), "t.video"),
            name => (format!("{name} x"), "x.video"),
        };
        let mut ask =
            QueryBuilder::new(format!("SELECT {} FROM {from} WHERE {video} IN", names(table, columns)));
        listed(&mut ask, videos.iter().cloned().map(Value::Text));
        let last = table.key.last().copied().unwrap_or_default();
        ask.push(format!(" ORDER BY {video}, x.\"{last}\""));
        let fault = self.work_fault();
        self.rows(ask).await?.iter().map(|row| read(table, row, columns).map_err(&fault)).collect()
    }

    async fn old_bodies(&mut self, videos: &[String]) -> Result<Vec<OldBody>> {
        let mut ask = QueryBuilder::new(
            "SELECT id, content_sha256, body_length, body FROM transcripts t
             WHERE NOT EXISTS (SELECT 1 FROM bodies b WHERE b.transcript = t.id)
                AND NOT EXISTS (SELECT 1 FROM cold WHERE id = t.id * 65536) AND video IN",
        );
        listed(&mut ask, videos.iter().cloned().map(Value::Text));
        let fault = self.fault();
        let old = |row: &SqliteRow| -> Result<OldBody> {
            let (id, content, length, body) = (
                row.try_get(0).map_err(&fault)?,
                row.try_get(1).map_err(&fault)?,
                row.try_get(2).map_err(&fault)?,
                row.try_get(3).map_err(&fault)?,
            );
            OldBody::packed_anew(id, content, length, body)
        };
        self.rows(ask).await?.iter().map(old).collect()
    }

    async fn note(&mut self) -> Result<Option<Note>> {
        if !self.tables().await?.iter().any(|name| name == NOTES) {
            return Ok(None);
        }
        let fault = self.fault();
        let rows = self.rows(QueryBuilder::new(format!("SELECT source, place FROM {NOTES}"))).await?;
        let note = |row: &SqliteRow| {
            Ok::<_, Error>(Note {
                source: row.try_get(0).map_err(&fault)?,
                place: row.try_get(1).map_err(&fault)?,
            })
        };
        rows.first().map(note).transpose()
    }

    async fn begin_copy(&mut self, note: &Note) -> Result<()> {
        for table in self.part.all() {
            if !self.is_empty(table).await? {
                return Err(conflict(format!(
                    "{} holds something already, in {}: choose another file, or remove it if nobody needs it",
                    self.name, table.name
                )));
            }
        }
        let fault = self.fault();
        let begin = async {
            let mut transaction = self.db.begin_with("BEGIN IMMEDIATE").await?;
            let make = format!(
                "CREATE TABLE {NOTES} (part TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL) STRICT;
                 INSERT INTO schema_version (version, name, applied_at)
                 VALUES ({}, 'half copied', CAST(unixepoch('subsec') * 1000 AS INTEGER))",
                super::HALF_COPIED
            );
            sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut *transaction).await?;
            let mut ask = QueryBuilder::<Sqlite>::new(format!("INSERT INTO {NOTES} VALUES ("));
            ask.push_bind(self.part.name).push(", ").push_bind(&note.source).push(", ");
            ask.push_bind(&note.place).push(")").build().execute(&mut *transaction).await?;
            transaction.commit().await
        };
        begin.await.map_err(fault)
    }

    async fn take_over(&mut self) -> Result<Note> {
        // The file is locked, so nobody else copies to it.
        let name = self.name.clone();
        self.note().await?.ok_or_else(|| conflict(format!("{name} was being copied to, and is no more")))
    }

    async fn store(&mut self, batches: Vec<Batch>, place: &str) -> Result<()> {
        let file = self.file.clone();
        self.store_within(batches, place).await.map_err(|fault| fault.into_error(&file))
    }

    async fn end_copy(&mut self) -> Result<()> {
        let half = super::HALF_COPIED;
        self.run(format!(
            "BEGIN IMMEDIATE; DROP TABLE {NOTES}; DELETE FROM schema_version WHERE version = {half}; COMMIT"
        ))
        .await
    }

    async fn taken(&mut self, table: &'static Table, numbers: &[i64]) -> Result<Vec<i64>> {
        let Some(number) = table.number else { return Ok(Vec::new()) };
        let mut taken = Vec::new();
        for numbers in numbers.chunks(VALUES_MAX) {
            let column = table.in_files(number);
            let mut ask =
                QueryBuilder::new(format!("SELECT \"{column}\" FROM {} WHERE \"{column}\" IN", table.name));
            listed(&mut ask, numbers.iter().copied().map(Value::Number));
            let fault = self.fault();
            for row in self.rows(ask).await? {
                taken.push(row.try_get(0).map_err(&fault)?);
            }
        }
        Ok(taken)
    }

    async fn newest_entry(&mut self, wallet: &str) -> Result<i64> {
        let mut ask = QueryBuilder::new("SELECT coalesce(max(seq), 0) FROM ledger_entries WHERE wallet = ");
        ask.push_bind(wallet.to_owned());
        let (rows, fault) = (self.rows(ask).await?, self.fault());
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)
    }

    async fn largest(&mut self, table: &'static Table) -> Result<i64> {
        let Some(number) = table.number else { return Ok(0) };
        let column = table.in_files(number);
        let ask = QueryBuilder::new(format!("SELECT coalesce(max(\"{column}\"), 0) FROM {}", table.name));
        let (rows, fault) = (self.rows(ask).await?, self.fault());
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)
    }

    async fn close(self: Box<Self>) {
        if let Err(error) = self.db.close().await {
            tracing::debug!(%error, "a file did not close in order");
        }
    }
}
