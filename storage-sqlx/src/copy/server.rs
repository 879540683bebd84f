//! A part (main or archive) in a PostgreSQL database.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, postgres::PgRow};
use transcript_core::{Error, Result};

use super::{
    row::{CopyColumn, CopyRow, read},
    side::{CopyRole, CopySide},
    table::{self, CopyTable, TablePart},
};
use crate::{
    PostgresOptions,
    codec::json,
    error::{DbError, DbResult, INCOMPLETE_COPY, older_target},
    postgres::{self, bind, fault_to_error, opening_error, read_row},
    sql::{Row, Value, values},
};

/// Application name of a copy; servers and commands use `verbatim` and a number.
const APPLICATION_NAME: &str = "verbatim-copy";
/// How long to wait for other connections that are about to end.
const CONNECTION_WAIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// The programs of other connections. On a database without this view the query fails, which counts as none.
const OTHER_PROGRAMS: &str = "SELECT DISTINCT application_name || coalesce(' from ' || host(client_addr), '')
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND (application_name = 'verbatim' OR application_name LIKE 'verbatim %') ORDER BY 1 LIMIT 5";

/// A part in a database.
#[derive(Debug)]
pub(super) struct PostgresSide {
    part: &'static TablePart,
    name: String,
    options: PostgresOptions,
    db: PgConnection,
    /// Distinguishes this copy from another one to the same database.
    holder: i64,
}

impl PostgresSide {
    /// Connects to a part, and changes nothing in it.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Conflict`] if it is in use, or a target has the tables of an earlier version.
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
        let db = connecting.map_err(|error| opening_error(fault_to_error(error.into(), &name)))?;
        let (options, holder) = (options.clone(), postgres::random_number());
        let mut server = Self { part, name, options, db, holder };
        // A role or a database may limit the time of statements.
        server.side().run("SET statement_timeout = 0", &[]).await?;
        server.check_no_other_connections().await?;
        let newest = postgres::newest_version(part.name);
        if role == CopyRole::Target && (1..newest).contains(&server.version("").await?) {
            return Err(older_target(&server.name));
        }
        Ok(server)
    }

    fn side(&mut self) -> &mut dyn CopySide {
        self
    }

    async fn fetch(&mut self, statement: &str, values: &[Value<'_>]) -> DbResult<Vec<PgRow>> {
        let query = bind(AssertSqlSafe(statement.to_owned()), values);
        Ok(query.persistent(false).fetch_all(&mut self.db).await?)
    }

    /// Locks the source against changes; all reads use one snapshot.
    async fn lock_tables(&mut self) -> Result<()> {
        let tables: Vec<&str> = self.part.all().map(|table| table.name).collect();
        // A role or a database may limit the time of idle transactions.
        let lock = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ;
            SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '3s';
            LOCK TABLE {} IN SHARE MODE",
            tables.join(", ")
        );
        let locked = sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut self.db).await;
        locked.map(drop).map_err(|error| {
            tracing::debug!(%error, "source table lock failed");
            Error::conflict(format!("{} is in use for writes: stop every server that uses it", self.name))
        })
    }

    async fn version(&mut self, filter: &str) -> Result<i64> {
        if !self.side().tables().await?.iter().any(|table| table == "verbatim_schema") {
            return Ok(0);
        }
        let statement =
            format!("SELECT coalesce(max(version), 0) FROM verbatim_schema WHERE part = $1{filter}");
        let part = self.part.name;
        self.side().find_number(&statement, &values![part]).await
    }

    async fn is_incomplete_copy(&mut self) -> Result<bool> {
        Ok(self.version("").await? == i64::from(INCOMPLETE_COPY))
    }

    /// Rejects an incomplete copy with tables of another version.
    async fn check_incomplete_copy(&mut self) -> Result<()> {
        let version = self.version(&format!(" AND version < {INCOMPLETE_COPY}")).await?;
        match version == postgres::newest_version(self.part.name) {
            true => Ok(()),
            false => Err(Error::conflict(format!(
                "the copy to {} is incomplete and of another version of this program: continue it with that version, or \
                 empty the database and start over",
                self.name
            ))),
        }
    }
}

#[async_trait]
impl CopySide for PostgresSide {
    fn name(&self) -> &str {
        &self.name
    }

    fn part(&self) -> &'static TablePart {
        self.part
    }

    fn is_files(&self) -> bool {
        false
    }

    fn holder(&self) -> Option<i64> {
        Some(self.holder)
    }

    fn error(&self, fault: DbError) -> Error {
        fault_to_error(fault, &self.name)
    }

    async fn query(&mut self, statement: &str, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        self.fetch(statement, values).await?.iter().map(read_row).collect()
    }

    async fn table_rows(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        statement: &str,
        values: &[Value<'_>],
    ) -> DbResult<Vec<CopyRow>> {
        let rows = self.fetch(statement, values).await?;
        match table.name {
            table::LEDGER_HOLDS => rows.iter().map(|row| hold_values(row, columns)).collect(),
            _ => rows.iter().map(|row| read(read_row(row)?, columns)).collect(),
        }
    }

    async fn check_no_other_connections(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            // On a database that does not list connections, the check passes.
            let programs = self.side().find(OTHER_PROGRAMS, &[], |row| row.take::<String>(0)).await;
            let programs = programs.unwrap_or_default();
            if programs.is_empty() {
                return Ok(());
            }
            if started.elapsed() > CONNECTION_WAIT {
                return Err(Error::conflict(format!(
                    "{} is in use by {}: stop every server and command that is connected to it, and a pooler, which \
                     keeps the connections of stopped servers",
                    self.name,
                    programs.join(", ")
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn prepare(&mut self, role: CopyRole) -> Result<()> {
        match role {
            CopyRole::Target if self.is_incomplete_copy().await? => self.check_incomplete_copy().await,
            CopyRole::Target => postgres::migrate_part(self.options.clone(), self.part.name).await,
            CopyRole::Source => {
                // A server may have started since it was opened.
                self.check_no_other_connections().await?;
                // A source that is itself an incomplete copy is rejected here.
                postgres::migrate_part(self.options.clone(), self.part.name).await?;
                self.lock_tables().await
            }
        }
    }

    async fn close(mut self: Box<Self>) {
        // Ends the transaction of a locked source. Without a transaction the server only sends a warning.
        self.query("ROLLBACK", &[]).await.ok();
        self.db.close().await.ok();
    }
}

/// The values of a hold, whose legs are one text here.
fn hold_values(row: &PgRow, columns: &[CopyColumn]) -> DbResult<CopyRow> {
    let hold = postgres::hold(row)?;
    let value = |column: &CopyColumn| {
        Ok(match column.name.as_str() {
            "id" => hold.id.clone().into(),
            "state" => hold.state.name().into(),
            "expires_at" => hold.expires_at.into(),
            "memo" => hold.memo.clone().into(),
            "legs" => json(&hold.legs)?.into(),
            other => return Err(Error::unexpected(format!("a hold has no column {other}")).into()),
        })
    };
    columns.iter().map(value).collect()
}
