//! A part (main or archive) in a PostgreSQL database.

mod rows;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, QueryBuilder, Row as _,
    postgres::PgRow,
};
use transcript_core::{Error, Result};

use super::{
    copier::STATE_TABLE,
    row::{ColumnKind, CopyColumn, CopyRow, CopyValue},
    side::{CopyBatch, CopyRole, CopySide, CopyState},
    table::{self, CopyTable, TablePart},
    videos::LegacyBody,
};
use crate::{
    PostgresOptions,
    error::{DbError, DbResult},
    postgres::{self, decode, encode, fault_into_error},
};
use rows::{bind_key, insert, names, read};

/// Application name of a copy; servers and commands use `verbatim`.
const APPLICATION_NAME: &str = "verbatim-copy";
/// How long to wait for other connections that are about to end.
const CONNECTION_WAIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// Most parameters of a statement; the protocol permits 65,535.
const VALUES_MAX: usize = 20_000;

/// Number of other connections. On a database without this view the query fails, which counts as none.
const COUNT_CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'verbatim' AND pid <> pg_backend_pid()";
const TABLES: &str =
    "SELECT table_name::TEXT FROM information_schema.tables WHERE table_schema = current_schema()";
const COLUMNS: &str = "SELECT column_name::TEXT, data_type::TEXT FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1";
const MARK_INCOMPLETE: &str = "INSERT INTO verbatim_schema (part, version, name, applied_at)
    VALUES ($1, $2, 'half copied', (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)";
const UNMARK_INCOMPLETE: &str = "DELETE FROM verbatim_schema WHERE part = $1 AND version = $2";
/// Sets the newest entry of new pools to that of their wallets.
const SET_LAST_ENTRIES: &str = "UPDATE ledger_pools p SET last_entry = e.seq FROM (
        SELECT wallet, max(seq) AS seq FROM ledger_entries WHERE wallet = ANY ($1) GROUP BY wallet
    ) e WHERE p.wallet = e.wallet";

/// A part in a database.
#[derive(Debug)]
pub(super) struct PostgresSide {
    part: &'static TablePart,
    name: String,
    db: PgConnection,
    /// Distinguishes this copy from another one to the same database.
    holder: i64,
}

impl PostgresSide {
    /// Connects to a part.
    ///
    /// A source is migrated to the newest schema and locked against changes. In a target without an incomplete copy,
    /// the tables are created.
    pub(super) async fn open(
        part: &'static TablePart,
        options: &PostgresOptions,
        role: CopyRole,
    ) -> Result<Self> {
        // No time limit may end a statement that reads many rows, nor the long transaction of a source.
        let connect_options = PostgresOptions { pooler: true, ..options.clone() }.connection()?;
        let name = PostgresOptions::name(&connect_options);
        let connect_options = connect_options.application_name(APPLICATION_NAME);
        let connecting = tokio::time::timeout(options.connect_timeout, connect_options.connect()).await;
        let connecting = connecting
            .map_err(|_| Error::unavailable(format!("{name} did not accept a connection in time")))?;
        let db = connecting.map_err(|error| fault_into_error(error.into(), &name))?;
        let mut server = Self { part, name, db, holder: postgres::random_number() };
        match role {
            CopyRole::Target if server.is_incomplete_copy().await? => server.check_incomplete_copy().await?,
            // A source that is itself an incomplete copy is rejected here.
            CopyRole::Source | CopyRole::Target => postgres::migrate_part(options.clone(), part.name).await?,
        }
        server.check_no_other_connections().await?;
        if role == CopyRole::Source {
            server.lock_tables().await?;
        }
        Ok(server)
    }

    fn fault(&self) -> impl Fn(sqlx::Error) -> Error + use<> {
        let name = self.name.clone();
        move |error| fault_into_error(DbError::from(error), &name)
    }

    async fn rows(&mut self, mut query: QueryBuilder<Postgres>) -> Result<Vec<PgRow>> {
        let fault = self.fault();
        query.build().persistent(false).fetch_all(&mut self.db).await.map_err(fault)
    }

    async fn query_number(&mut self, query: QueryBuilder<Postgres>) -> Result<i64> {
        let (rows, fault) = (self.rows(query).await?, self.fault());
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(fault)
    }

    async fn run(&mut self, statements: &'static str) -> Result<()> {
        let fault = self.fault();
        sqlx::raw_sql(statements).execute(&mut self.db).await.map(drop).map_err(fault)
    }

    /// Locks the source against changes; all reads use one snapshot.
    async fn lock_tables(&mut self) -> Result<()> {
        let tables: Vec<&str> = self.part.all().map(|table| table.name).collect();
        let lock = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '3s'; LOCK TABLE {} IN SHARE MODE",
            tables.join(", ")
        );
        let locked = sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut self.db).await;
        locked.map(drop).map_err(|error| {
            tracing::debug!(%error, "source table lock failed");
            Error::conflict(format!("{} is in use for writes: stop every server that uses it", self.name))
        })
    }

    /// Checks that no server or command is connected.
    async fn check_no_other_connections(&mut self) -> Result<()> {
        let started = Instant::now();
        // On a database that does not list connections, the check passes.
        while let Ok(1..) = self.query_number(QueryBuilder::new(COUNT_CONNECTIONS)).await {
            if started.elapsed() > CONNECTION_WAIT {
                return Err(Error::conflict(format!(
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

    async fn version(&mut self, filter: &str) -> Result<i64> {
        if !self.has_table("verbatim_schema").await? {
            return Ok(0);
        }
        let mut query =
            QueryBuilder::new("SELECT coalesce(max(version), 0) FROM verbatim_schema WHERE part = ");
        query.push_bind(self.part.name).push(filter);
        self.query_number(query).await
    }

    async fn is_incomplete_copy(&mut self) -> Result<bool> {
        Ok(self.version("").await? == i64::from(super::INCOMPLETE_COPY))
    }

    /// Rejects an incomplete copy with tables of another version.
    async fn check_incomplete_copy(&mut self) -> Result<()> {
        let version = self.version(&format!(" AND version < {}", super::INCOMPLETE_COPY)).await?;
        match version == postgres::newest_version(self.part.name) {
            true => Ok(()),
            false => Err(Error::conflict(format!(
                "the copy to {} is incomplete and of another version of this program: continue it with that version, or \
                 empty the database and start over",
                self.name
            ))),
        }
    }

    async fn begin_within(&mut self, state: &CopyState) -> DbResult<()> {
        let mut transaction = self.db.begin().await?;
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {STATE_TABLE} (part TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL,
                holder BIGINT NOT NULL)"
        );
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut *transaction).await?;
        let incomplete = i64::from(super::INCOMPLETE_COPY);
        sqlx::query(MARK_INCOMPLETE)
            .bind(self.part.name)
            .bind(incomplete)
            .persistent(false)
            .execute(&mut *transaction)
            .await?;
        let mut query = QueryBuilder::<Postgres>::new(format!(
            "INSERT INTO {STATE_TABLE} (part, source, place, holder) VALUES ("
        ));
        query.push_bind(self.part.name).push(", ").push_bind(encode(&state.source)).push(", ");
        query.push_bind(encode(&state.position)).push(", ").push_bind(self.holder).push(")");
        query.build().persistent(false).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Undoes `begin_copy`.
    async fn undo_begin(&mut self) -> Result<()> {
        self.end_copy().await
    }

    async fn store_within(&mut self, batches: Vec<CopyBatch>, position: &str) -> DbResult<bool> {
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
                let wallet = super::side::column_index(&batch.columns, "wallet")?;
                let wallets: Vec<String> =
                    batch.rows.iter().filter_map(|row| Some(encode(row.get(wallet)?.text()))).collect();
                sqlx::query(SET_LAST_ENTRIES)
                    .bind(wallets)
                    .persistent(false)
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        let mut state = QueryBuilder::<Postgres>::new(format!("UPDATE {STATE_TABLE} SET place = "));
        state.push_bind(encode(position)).push(" WHERE part = ").push_bind(part);
        state.push(" AND holder = ").push_bind(holder);
        let updated = state.build().persistent(false).execute(&mut *transaction).await?;
        if updated.rows_affected() == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl CopySide for PostgresSide {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_files(&self) -> bool {
        false
    }

    async fn columns(&mut self, table: &'static CopyTable) -> Result<Vec<CopyColumn>> {
        let fault = self.fault();
        let rows = sqlx::query(COLUMNS).bind(table.name).persistent(false).fetch_all(&mut self.db).await;
        let mut columns = Vec::new();
        for row in rows.map_err(&fault)? {
            let (name, kind): (String, String) =
                (row.try_get(0).map_err(&fault)?, row.try_get(1).map_err(&fault)?);
            let kind = match kind.as_str() {
                "bigint" => ColumnKind::Number,
                "boolean" => ColumnKind::Flag,
                "bytea" => ColumnKind::Bytes,
                _ => ColumnKind::Text,
            };
            if table.carries_from_server(&name) {
                columns.push(CopyColumn { name, kind });
            }
        }
        if table.name == table::LEDGER_HOLDS {
            columns.push(CopyColumn { name: "legs".to_owned(), kind: ColumnKind::Text });
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(columns)
    }

    async fn tables(&mut self) -> Result<Vec<String>> {
        let fault = self.fault();
        self.rows(QueryBuilder::new(TABLES)).await?.iter().map(|row| row.try_get(0).map_err(&fault)).collect()
    }

    async fn count(&mut self, table: &'static CopyTable) -> Result<u64> {
        let count =
            self.query_number(QueryBuilder::new(format!("SELECT count(*) FROM {}", table.name))).await?;
        crate::codec::number(count)
    }

    async fn page(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        after: Option<&[CopyValue]>,
    ) -> Result<Vec<CopyRow>> {
        let key: Vec<String> = table.key.iter().map(|name| format!("h.\"{name}\"")).collect();
        let from = format!("SELECT {} FROM {} h", names(table, columns), table.name);
        let mut rows = Vec::new();
        // First the remaining rows with the same first key column, then those after it: each is a range of an index.
        for rest in [true, false] {
            let remaining = (table.batch as usize).saturating_sub(rows.len());
            let mut query = QueryBuilder::new(&from);
            match (after, key.as_slice()) {
                (Some([first, second]), [one, two]) if rest => {
                    query.push(format!(" WHERE {one} = "));
                    bind_key(&mut query, first);
                    query.push(format!(" AND {two} > "));
                    bind_key(&mut query, second);
                }
                (Some([first, ..]), [one, ..]) if !rest => {
                    query.push(format!(" WHERE {one} > "));
                    bind_key(&mut query, first);
                }
                (None, _) if !rest => {}
                _ => continue,
            }
            query.push(format!(" ORDER BY {} LIMIT {remaining}", key.join(", ")));
            for row in self.rows(query).await? {
                rows.push(read(table, &row, columns).map_err(|fault| fault_into_error(fault, &self.name))?);
            }
            if rows.len() >= table.batch as usize {
                break;
            }
        }
        Ok(rows)
    }

    async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>> {
        let mut query = QueryBuilder::new("SELECT DISTINCT video FROM tracks WHERE video > ");
        query.push_bind(encode(after.unwrap_or_default())).push(format!(" ORDER BY video LIMIT {limit}"));
        let fault = self.fault();
        let video = |row: &PgRow| row.try_get(0).map(decode).map_err(&fault);
        self.rows(query).await?.iter().map(video).collect()
    }

    async fn rows_of_videos(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        videos: &[String],
    ) -> Result<Vec<CopyRow>> {
        let mut query = QueryBuilder::new(format!(
            "SELECT {} FROM {} h WHERE h.video = ANY (",
            names(table, columns),
            table.name
        ));
        query.push_bind(videos.iter().map(|video| encode(video)).collect::<Vec<_>>());
        let last = table.key.last().copied().unwrap_or_default();
        query.push(format!(") ORDER BY h.video, h.\"{last}\""));
        let rows = self.rows(query).await?;
        let read =
            |row: &PgRow| read(table, row, columns).map_err(|fault| fault_into_error(fault, &self.name));
        rows.iter().map(read).collect()
    }

    async fn legacy_bodies(&mut self, _: &[String]) -> Result<Vec<LegacyBody>> {
        Ok(Vec::new())
    }

    async fn copy_state(&mut self) -> Result<Option<CopyState>> {
        if !self.has_table(STATE_TABLE).await? {
            return Ok(None);
        }
        let mut query = QueryBuilder::new(format!("SELECT source, place FROM {STATE_TABLE} WHERE part = "));
        query.push_bind(self.part.name);
        let fault = self.fault();
        let state = |row: &PgRow| {
            Ok::<_, Error>(CopyState {
                source: row.try_get(0).map(decode).map_err(&fault)?,
                position: row.try_get(1).map(decode).map_err(&fault)?,
            })
        };
        self.rows(query).await?.first().map(state).transpose()
    }

    async fn begin_copy(&mut self, state: &CopyState) -> Result<()> {
        let name = self.name.clone();
        self.begin_within(state).await.map_err(|fault| fault_into_error(fault, &name))?;
        // From here on the database cannot be opened. A program that opened it before is connected, or has left rows.
        let mut problem = self.check_no_other_connections().await.err();
        for table in self.part.all() {
            let filter = if table.name == table::CHANGES { " WHERE count > 0" } else { "" };
            let query = QueryBuilder::new(format!("SELECT 1 FROM {}{filter} LIMIT 1", table.name));
            if problem.is_none() && !self.rows(query).await?.is_empty() {
                problem = Some(Error::conflict(format!(
                    "{name} already has rows in {}: create another database, or drop it if it is not needed",
                    table.name
                )));
            }
        }
        match problem {
            Some(problem) => {
                self.undo_begin().await?;
                Err(problem)
            }
            None => Ok(()),
        }
    }

    async fn take_over(&mut self) -> Result<CopyState> {
        let mut query = QueryBuilder::new(format!("UPDATE {STATE_TABLE} SET holder = "));
        query.push_bind(self.holder).push(" WHERE part = ").push_bind(self.part.name);
        query.push(" RETURNING 1");
        self.rows(query).await?;
        let name = self.name.clone();
        self.copy_state()
            .await?
            .ok_or_else(|| Error::conflict(format!("the copy to {name} is no longer in progress")))
    }

    async fn store(&mut self, batches: Vec<CopyBatch>, position: &str) -> Result<()> {
        let name = self.name.clone();
        match self.store_within(batches, position).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(Error::conflict(format!("another process continues the copy to {name}: this one stops")))
            }
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
            let incomplete = i64::from(super::INCOMPLETE_COPY);
            sqlx::query(UNMARK_INCOMPLETE)
                .bind(part)
                .bind(incomplete)
                .persistent(false)
                .execute(&mut *transaction)
                .await?;
            let mut query = QueryBuilder::<Postgres>::new(format!("DELETE FROM {STATE_TABLE} WHERE part = "));
            query.push_bind(part).build().persistent(false).execute(&mut *transaction).await?;
            let remaining = format!("SELECT 1 FROM {STATE_TABLE}");
            if sqlx::raw_sql(AssertSqlSafe(remaining)).fetch_optional(&mut *transaction).await?.is_none() {
                let drop = format!("DROP TABLE {STATE_TABLE}");
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut *transaction).await?;
            }
            transaction.commit().await
        };
        end.await.map_err(fault)
    }

    async fn used_numbers(&mut self, _: &'static CopyTable, _: &[i64]) -> Result<Vec<i64>> {
        Ok(Vec::new())
    }

    async fn newest_entry(&mut self, _: &str) -> Result<i64> {
        Ok(0)
    }

    async fn largest_number(&mut self, _: &'static CopyTable) -> Result<i64> {
        Ok(0)
    }

    async fn close(mut self: Box<Self>) {
        // Ends the transaction of a locked source. Without a transaction the server only sends a warning.
        self.run("ROLLBACK").await.ok();
        self.db.close().await.ok();
    }
}
