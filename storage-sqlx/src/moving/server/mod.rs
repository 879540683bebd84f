//! A part that is in a PostgreSQL database.

mod rows;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, QueryBuilder, Row as _,
    postgres::PgRow,
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
    PostgresOptions,
    error::{Fault, Work},
    postgres::{self, fault_into_error, own, plain},
};
use rows::{bind_key, insert, names, read};

/// How a copy calls itself; servers and commands call themselves `verbatim`.
const CALLED: &str = "verbatim-copy";
/// How long connections are waited for that are about to end.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// How many values a statement takes at most; the protocol takes 65,535.
const VALUES_MAX: usize = 20_000;

/// Who else is connected. Where the engine does not tell, nobody is known to be.
const CONNECTED: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'verbatim' AND pid <> pg_backend_pid()";
const TABLES: &str =
    "SELECT table_name::TEXT FROM information_schema.tables WHERE table_schema = current_schema()";
const COLUMNS: &str = "SELECT column_name::TEXT, data_type::TEXT FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1";
const MARK: &str = "INSERT INTO verbatim_schema (part, version, name, applied_at)
    VALUES ($1, $2, 'half copied', (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)";
const UNMARK: &str = "DELETE FROM verbatim_schema WHERE part = $1 AND version = $2";
/// New pools are numbered after all that their wallets have.
const NEWEST: &str = "UPDATE ledger_pools p SET last_entry = e.seq FROM (
        SELECT wallet, max(seq) AS seq FROM ledger_entries WHERE wallet = ANY ($1) GROUP BY wallet
    ) e WHERE p.wallet = e.wallet";

/// A part in a database.
#[derive(Debug)]
pub(super) struct Server {
    part: &'static Part,
    name: String,
    db: PgConnection,
    /// Tells this copy from another one to the same database.
    holder: i64,
}

impl Server {
    /// Connects. A source is brought to the newest schema and locked against changes; a target that nothing is copied
    /// to yet gets its tables.
    pub(super) async fn open(part: &'static Part, options: &PostgresOptions, role: Role) -> Result<Self> {
        // No limit of time may end a statement that reads many rows, nor the long transaction of a source.
        let known = PostgresOptions { pooler: true, ..options.clone() }.connection()?;
        let name = PostgresOptions::name(&known);
        let known = known.application_name(CALLED);
        let connecting = tokio::time::timeout(options.connect_timeout, known.connect()).await;
        let connecting = connecting.map_err(|_| Error::unavailable(format!("{name} does not answer")))?;
        let db = connecting.map_err(|error| fault_into_error(error.into(), &name))?;
        let mut server = Self { part, name, db, holder: postgres::any_number() };
        match role {
            Role::Target if server.is_half_copied().await? => server.check_below_half().await?,
            // A source that is half copied itself is refused here.
            Role::Source | Role::Target => postgres::migrate_part(options.clone(), part.name).await?,
        }
        server.check_alone().await?;
        if role == Role::Source {
            server.rest().await?;
        }
        Ok(server)
    }

    fn fault(&self) -> impl Fn(sqlx::Error) -> Error + use<> {
        let name = self.name.clone();
        move |error| fault_into_error(Fault::from(error), &name)
    }

    async fn rows(&mut self, mut ask: QueryBuilder<Postgres>) -> Result<Vec<PgRow>> {
        let fault = self.fault();
        ask.build().persistent(false).fetch_all(&mut self.db).await.map_err(fault)
    }

    async fn figure(&mut self, ask: QueryBuilder<Postgres>) -> Result<i64> {
        let (rows, fault) = (self.rows(ask).await?, self.fault());
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)
    }

    async fn run(&mut self, statements: &'static str) -> Result<()> {
        let fault = self.fault();
        sqlx::raw_sql(statements).execute(&mut self.db).await.map(drop).map_err(fault)
    }

    /// Nobody else may change the source from now on, and what is read of it is of one moment.
    async fn rest(&mut self) -> Result<()> {
        let tables: Vec<&str> = self.part.all().map(|table| table.name).collect();
        let lock = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '3s'; LOCK TABLE {} IN SHARE MODE",
            tables.join(", ")
        );
        let locked = sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut self.db).await;
        locked.map(drop).map_err(|error| {
            tracing::debug!(%error, "the tables of a source");
            conflict(format!("{} is being written to: stop every server that uses it", self.name))
        })
    }

    /// Nobody else is connected: no server, and no command.
    async fn check_alone(&mut self) -> Result<()> {
        let begun = Instant::now();
        // An engine that does not tell who is connected is believed to be alone.
        while let Ok(1..) = self.figure(QueryBuilder::new(CONNECTED)).await {
            if begun.elapsed() > PATIENCE {
                return Err(conflict(format!(
                    "{} is in use: stop every server and command that is connected to it",
                    self.name
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn has_table(&mut self, name: &str) -> Result<bool> {
        Ok(self.tables().await?.iter().any(|table| table == name))
    }

    async fn version(&mut self, but: &str) -> Result<i64> {
        if !self.has_table("verbatim_schema").await? {
            return Ok(0);
        }
        let mut ask =
            QueryBuilder::new("SELECT coalesce(max(version), 0) FROM verbatim_schema WHERE part = ");
        ask.push_bind(self.part.name).push(but);
        self.figure(ask).await
    }

    async fn is_half_copied(&mut self) -> Result<bool> {
        Ok(self.version("").await? == i64::from(super::HALF_COPIED))
    }

    /// What was begun with tables of another version cannot be gone on with.
    async fn check_below_half(&mut self) -> Result<()> {
        let version = self.version(&format!(" AND version < {}", super::HALF_COPIED)).await?;
        match version == postgres::newest_version(self.part.name) {
            true => Ok(()),
            false => Err(conflict(format!(
                "{} is half copied by another version of this program: go on with that one, or empty it and begin anew",
                self.name
            ))),
        }
    }

    async fn begin_within(&mut self, note: &Note) -> Work<()> {
        let mut transaction = self.db.begin().await?;
        let make = format!(
            "CREATE TABLE IF NOT EXISTS {NOTES} (part TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL,
                holder BIGINT NOT NULL)"
        );
        sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut *transaction).await?;
        let half = i64::from(super::HALF_COPIED);
        sqlx::query(MARK)
            .bind(self.part.name)
            .bind(half)
            .persistent(false)
            .execute(&mut *transaction)
            .await?;
        let mut ask = QueryBuilder::<Postgres>::new(format!(
            "INSERT INTO {NOTES} (part, source, place, holder) VALUES ("
        ));
        ask.push_bind(self.part.name).push(", ").push_bind(own(&note.source)).push(", ");
        ask.push_bind(own(&note.place)).push(", ").push_bind(self.holder).push(")");
        ask.build().persistent(false).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Takes back the beginning, so that all is as it was.
    async fn give_up(&mut self) -> Result<()> {
        self.end_copy().await
    }

    async fn store_within(&mut self, batches: Vec<Batch>, place: &str) -> Work<bool> {
        let (part, holder) = (self.part.name, self.holder);
        let mut transaction = self.db.begin().await?;
        for batch in &batches {
            let width = batch.columns.len().max(1) + 8;
            for rows in batch.rows.chunks(VALUES_MAX / width) {
                insert(batch.table, &batch.columns, rows)?
                    .build()
                    .persistent(false)
                    .execute(&mut *transaction)
                    .await?;
            }
            if batch.table.name == table::LEDGER_POOLS {
                let wallet = super::side::place(&batch.columns, "wallet")?;
                let wallets: Vec<String> =
                    batch.rows.iter().filter_map(|row| Some(own(row.get(wallet)?.text()))).collect();
                sqlx::query(NEWEST).bind(wallets).persistent(false).execute(&mut *transaction).await?;
            }
        }
        let mut note = QueryBuilder::<Postgres>::new(format!("UPDATE {NOTES} SET place = "));
        note.push_bind(own(place)).push(" WHERE part = ").push_bind(part);
        note.push(" AND holder = ").push_bind(holder);
        let noted = note.build().persistent(false).execute(&mut *transaction).await?;
        if noted.rows_affected() == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl Side for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_files(&self) -> bool {
        false
    }

    async fn columns(&mut self, table: &'static Table) -> Result<Vec<Column>> {
        let fault = self.fault();
        let rows = sqlx::query(COLUMNS).bind(table.name).persistent(false).fetch_all(&mut self.db).await;
        let mut columns = Vec::new();
        for row in rows.map_err(&fault)? {
            let (name, kind): (String, String) =
                (row.try_get(0).map_err(&fault)?, row.try_get(1).map_err(&fault)?);
            let kind = match kind.as_str() {
                "bigint" => Kind::Number,
                "boolean" => Kind::Flag,
                "bytea" => Kind::Bytes,
                _ => Kind::Text,
            };
            if table.carries_from_server(&name) {
                columns.push(Column { name, kind });
            }
        }
        if table.name == table::LEDGER_HOLDS {
            columns.push(Column { name: "legs".to_owned(), kind: Kind::Text });
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(columns)
    }

    async fn tables(&mut self) -> Result<Vec<String>> {
        let fault = self.fault();
        self.rows(QueryBuilder::new(TABLES)).await?.iter().map(|row| row.try_get(0).map_err(&fault)).collect()
    }

    async fn count(&mut self, table: &'static Table) -> Result<u64> {
        let count = self.figure(QueryBuilder::new(format!("SELECT count(*) FROM {}", table.name))).await?;
        crate::codec::number(count)
    }

    async fn page(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        after: Option<&[Value]>,
    ) -> Result<Vec<Row>> {
        let key: Vec<String> = table.key.iter().map(|name| format!("h.\"{name}\"")).collect();
        let from = format!("SELECT {} FROM {} h", names(table, columns), table.name);
        let mut found = Vec::new();
        // The rest of what begins alike, then what comes after it: each is a range of an index.
        for rest in [true, false] {
            let left = (table.batch as usize).saturating_sub(found.len());
            let mut ask = QueryBuilder::new(&from);
            match (after, key.as_slice()) {
                (Some([first, second]), [one, two]) if rest => {
                    ask.push(format!(" WHERE {one} = "));
                    bind_key(&mut ask, first);
                    ask.push(format!(" AND {two} > "));
                    bind_key(&mut ask, second);
                }
                (Some([first, ..]), [one, ..]) if !rest => {
                    ask.push(format!(" WHERE {one} > "));
                    bind_key(&mut ask, first);
                }
                (None, _) if !rest => {}
                _ => continue,
            }
            ask.push(format!(" ORDER BY {} LIMIT {left}", key.join(", ")));
            for row in self.rows(ask).await? {
                found.push(read(table, &row, columns).map_err(|fault| fault_into_error(fault, &self.name))?);
            }
            if found.len() >= table.batch as usize {
                break;
            }
        }
        Ok(found)
    }

    async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>> {
        let mut ask = QueryBuilder::new("SELECT DISTINCT video FROM tracks WHERE video > ");
        ask.push_bind(own(after.unwrap_or_default())).push(format!(" ORDER BY video LIMIT {limit}"));
        let fault = self.fault();
        let video = |row: &PgRow| row.try_get(0).map(plain).map_err(&fault);
        self.rows(ask).await?.iter().map(video).collect()
    }

    async fn of_videos(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        videos: &[String],
    ) -> Result<Vec<Row>> {
        let mut ask = QueryBuilder::new(format!(
            "SELECT {} FROM {} h WHERE h.video = ANY (",
            names(table, columns),
            table.name
        ));
        ask.push_bind(videos.iter().map(|video| own(video)).collect::<Vec<_>>());
        let last = table.key.last().copied().unwrap_or_default();
        ask.push(format!(") ORDER BY h.video, h.\"{last}\""));
        let rows = self.rows(ask).await?;
        let read =
            |row: &PgRow| read(table, row, columns).map_err(|fault| fault_into_error(fault, &self.name));
        rows.iter().map(read).collect()
    }

    async fn old_bodies(&mut self, _: &[String]) -> Result<Vec<OldBody>> {
        Ok(Vec::new())
    }

    async fn note(&mut self) -> Result<Option<Note>> {
        if !self.has_table(NOTES).await? {
            return Ok(None);
        }
        let mut ask = QueryBuilder::new(format!("SELECT source, place FROM {NOTES} WHERE part = "));
        ask.push_bind(self.part.name);
        let fault = self.fault();
        let note = |row: &PgRow| {
            Ok::<_, Error>(Note {
                source: row.try_get(0).map(plain).map_err(&fault)?,
                place: row.try_get(1).map(plain).map_err(&fault)?,
            })
        };
        self.rows(ask).await?.first().map(note).transpose()
    }

    async fn begin_copy(&mut self, note: &Note) -> Result<()> {
        let name = self.name.clone();
        self.begin_within(note).await.map_err(|fault| fault_into_error(fault, &name))?;
        // From here on nobody opens it. Whoever did so before is connected, or has left something.
        let mut problem = self.check_alone().await.err();
        for table in self.part.all() {
            let but = if table.name == table::CHANGES { " WHERE count > 0" } else { "" };
            let ask = QueryBuilder::new(format!("SELECT 1 FROM {}{but} LIMIT 1", table.name));
            if problem.is_none() && !self.rows(ask).await?.is_empty() {
                problem = Some(conflict(format!(
                    "{name} holds something already, in {}: make another database, or drop it if nobody needs it",
                    table.name
                )));
            }
        }
        match problem {
            Some(problem) => {
                self.give_up().await?;
                Err(problem)
            }
            None => Ok(()),
        }
    }

    async fn take_over(&mut self) -> Result<Note> {
        let mut ask = QueryBuilder::new(format!("UPDATE {NOTES} SET holder = "));
        ask.push_bind(self.holder).push(" WHERE part = ").push_bind(self.part.name);
        ask.push(" RETURNING 1");
        self.rows(ask).await?;
        let name = self.name.clone();
        self.note().await?.ok_or_else(|| conflict(format!("{name} was being copied to, and is no more")))
    }

    async fn store(&mut self, batches: Vec<Batch>, place: &str) -> Result<()> {
        let name = self.name.clone();
        match self.store_within(batches, place).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(conflict(format!("another copy goes on with {name}: this one ends"))),
            Err(fault) => Err(fault_into_error(fault, &name)),
        }
    }

    async fn end_copy(&mut self) -> Result<()> {
        let (fault, part) = (self.fault(), self.part.name);
        let end = async {
            let mut transaction = self.db.begin().await?;
            if part == table::ARCHIVE.name {
                sqlx::query(postgres::COUNT_ARCHIVE).persistent(false).execute(&mut *transaction).await?;
            }
            let half = i64::from(super::HALF_COPIED);
            sqlx::query(UNMARK).bind(part).bind(half).persistent(false).execute(&mut *transaction).await?;
            let mut ask = QueryBuilder::<Postgres>::new(format!("DELETE FROM {NOTES} WHERE part = "));
            ask.push_bind(part).build().persistent(false).execute(&mut *transaction).await?;
            let left = format!("SELECT 1 FROM {NOTES}");
            if sqlx::raw_sql(AssertSqlSafe(left)).fetch_optional(&mut *transaction).await?.is_none() {
                let drop = format!("DROP TABLE {NOTES}");
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut *transaction).await?;
            }
            transaction.commit().await
        };
        end.await.map_err(fault)
    }

    async fn taken(&mut self, _: &'static Table, _: &[i64]) -> Result<Vec<i64>> {
        Ok(Vec::new())
    }

    async fn newest_entry(&mut self, _: &str) -> Result<i64> {
        Ok(0)
    }

    async fn largest(&mut self, _: &'static Table) -> Result<i64> {
        Ok(0)
    }

    async fn close(mut self: Box<Self>) {
        // Of a source that rests. Elsewhere there is no transaction, and the server only says so.
        self.run("ROLLBACK").await.ok();
        self.db.close().await.ok();
    }
}
