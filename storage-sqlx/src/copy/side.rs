//! One side of a copy, source or target: a part (main or archive) in a file or in a database.

use async_trait::async_trait;
use transcript_core::{Error, Result};

use super::{
    copier::STATE_TABLE,
    row::{CopyColumn, CopyRow, text_at},
    statement::insert,
    table::{self, CopyTable, TablePart},
};
use crate::{
    error::{DbError, DbResult, INCOMPLETE_COPY},
    postgres,
    sql::{Row, Value, values},
};

const SERVER_TABLES: &str =
    "SELECT table_name::TEXT FROM information_schema.tables WHERE table_schema = current_schema()";
const MARK_FILE: &str = "INSERT INTO schema_version (version, name, applied_at)
    VALUES ($1, 'half copied', CAST(unixepoch('subsec') * 1000 AS INTEGER))";
const MARK_SERVER: &str = "INSERT INTO verbatim_schema (version, part, name, applied_at)
    VALUES ($1, $2, 'half copied', (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)";
/// Sets the newest entry of new pools to that of their wallets.
const SET_LAST_ENTRIES: &str = "UPDATE ledger_pools p SET last_entry = e.seq FROM (
        SELECT wallet, max(seq) AS seq FROM ledger_entries WHERE wallet = ANY ($1) GROUP BY wallet
    ) e WHERE p.wallet = e.wallet";

/// Role of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyRole {
    Source,
    Target,
}

/// The state of a copy, stored in its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyState {
    /// Description of the source.
    pub(super) source: String,
    /// The position of the copy, as written by [`super::copier`].
    pub(super) position: String,
}

/// A part as the source or the target of a copy.
#[async_trait]
pub(super) trait CopySide: Send {
    /// Name in messages.
    fn name(&self) -> &str;

    fn part(&self) -> &'static TablePart;

    /// Whether it is a file, in which the numbers of a table's rows are unique.
    fn is_files(&self) -> bool;

    /// On a server, the number that distinguishes this copy from another one to the same database.
    fn holder(&self) -> Option<i64>;

    /// The error of a failed statement.
    fn error(&self, fault: DbError) -> Error;

    async fn query(&mut self, statement: &str, values: &[Value<'_>]) -> DbResult<Vec<Row>>;

    /// The rows of a statement that begins with [`super::statement::select`].
    async fn table_rows(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        statement: &str,
        values: &[Value<'_>],
    ) -> DbResult<Vec<CopyRow>>;

    /// Checks that no server or command uses it.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Conflict`] if there are other connections.
    async fn check_no_other_connections(&mut self) -> Result<()>;

    /// Migrates it to the newest schema, unless it is a target with an incomplete copy.
    ///
    /// A source on a server is locked against changes.
    async fn prepare(&mut self, role: CopyRole) -> Result<()>;

    /// Releases all locks and connections.
    async fn close(self: Box<Self>);
}

/// Rows for a table.
#[derive(Debug)]
pub(super) struct CopyBatch {
    pub(super) table: &'static CopyTable,
    pub(super) columns: Vec<CopyColumn>,
    pub(super) rows: Vec<CopyRow>,
}

pub(super) fn column_index(columns: &[CopyColumn], name: &str) -> Result<usize> {
    columns
        .iter()
        .position(|column| column.name == name)
        .ok_or_else(|| Error::unexpected(format!("a table has no column {name}")))
}

impl dyn CopySide + '_ {
    /// Decodes the rows of a statement.
    pub(super) async fn find<T>(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        decode: impl Fn(&mut Row) -> DbResult<T> + Send,
    ) -> Result<Vec<T>> {
        let rows = self.query(statement, values).await;
        let found = rows.and_then(|mut rows| rows.iter_mut().map(decode).collect());
        found.map_err(|fault| self.error(fault))
    }

    /// The number in the first row of a statement; 0 without a row.
    pub(super) async fn find_number(&mut self, statement: &str, values: &[Value<'_>]) -> Result<i64> {
        Ok(self.find(statement, values, |row| row.take(0)).await?.first().copied().unwrap_or_default())
    }

    /// Runs a statement; returns whether it had rows.
    pub(super) async fn run(&mut self, statement: &str, values: &[Value<'_>]) -> Result<bool> {
        self.query(statement, values).await.map(|rows| !rows.is_empty()).map_err(|fault| self.error(fault))
    }

    /// The names of all tables.
    pub(super) async fn tables(&mut self) -> Result<Vec<String>> {
        let in_files = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let statement = if self.is_files() { in_files } else { SERVER_TABLES };
        self.find(statement, &[], |row| row.take(0)).await
    }

    /// The stored state of an unfinished copy, if there is one.
    pub(super) async fn copy_state(&mut self) -> Result<Option<CopyState>> {
        if !self.tables().await?.iter().any(|name| name == STATE_TABLE) {
            return Ok(None);
        }
        let statement = format!("SELECT source, place FROM {STATE_TABLE} WHERE part = $1");
        let decode = |row: &mut Row| Ok(CopyState { source: row.take(0)?, position: row.take(1)? });
        Ok(self.find(&statement, &values![self.part().name], decode).await?.into_iter().next())
    }

    /// Begins a copy to this side: from now on it cannot be opened.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Conflict`] if there are other connections or existing rows.
    pub(super) async fn begin_copy(&mut self, state: &CopyState) -> Result<()> {
        self.check_empty().await?;
        self.run("BEGIN", &[]).await?;
        let marked = self.mark(state).await;
        self.end_transaction(marked).await?;
        // From here on the database cannot be opened. A program that opened it before is connected, or has left rows.
        let unused = self.check_no_other_connections().await;
        let outcome = if unused.is_ok() { self.check_empty().await } else { unused };
        if outcome.is_err() {
            self.end_copy().await?;
        }
        outcome
    }

    /// Checks that a target has no rows.
    pub(super) async fn check_empty(&mut self) -> Result<()> {
        for table in self.part().all() {
            let filter = if table.name == table::CHANGES { " WHERE count > 0" } else { "" };
            if self.run(&format!("SELECT 1 FROM {}{filter} LIMIT 1", table.name), &[]).await? {
                let help = match self.is_files() {
                    true => "choose another file, or delete it if it is not needed",
                    false => "create another database, or drop it if it is not needed",
                };
                return Err(Error::conflict(format!(
                    "{} already has rows in {}: {help}",
                    self.name(),
                    table.name
                )));
            }
        }
        Ok(())
    }

    async fn mark(&mut self, state: &CopyState) -> Result<()> {
        let (part, holder) = (self.part().name, self.holder());
        let (mark, last_column, last_value) = match self.is_files() {
            true => (MARK_FILE, ") STRICT", ""),
            false => (MARK_SERVER, ", holder BIGINT NOT NULL)", ", $4"),
        };
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {STATE_TABLE}
                (part TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL{last_column}"
        );
        self.run(&create, &[]).await?;
        self.run(mark, &values![INCOMPLETE_COPY, part]).await?;
        let insert = format!("INSERT INTO {STATE_TABLE} VALUES ($1, $2, $3{last_value})");
        self.run(&insert, &values![part, &state.source, &state.position, holder]).await?;
        Ok(())
    }

    /// Continues a copy, exclusively from now on. Returns its stored state.
    pub(super) async fn take_over(&mut self) -> Result<CopyState> {
        // A file is locked, so no other copy can use it.
        if let Some(holder) = self.holder() {
            let statement = format!("UPDATE {STATE_TABLE} SET holder = $1 WHERE part = $2");
            self.run(&statement, &values![holder, self.part().name]).await?;
        }
        let state = self.copy_state().await?;
        state.ok_or_else(|| Error::conflict(format!("the copy to {} is no longer in progress", self.name())))
    }

    /// Stores rows and the new position in one transaction.
    pub(super) async fn store(&mut self, batches: Vec<CopyBatch>, position: &str) -> Result<()> {
        self.run("BEGIN", &[]).await?;
        let stored = self.store_within(batches, position).await;
        self.end_transaction(stored).await
    }

    async fn store_within(&mut self, batches: Vec<CopyBatch>, position: &str) -> Result<()> {
        let (part, holder) = (self.part().name, self.holder());
        for batch in batches {
            let mut wallets = None;
            if !self.is_files() && batch.table.name == table::LEDGER_POOLS {
                let wallet = column_index(&batch.columns, "wallet")?;
                let names = batch.rows.iter().map(|row| text_at(row, wallet).to_owned().into());
                wallets = Some(Value::Texts(names.collect()));
            }
            for (statement, values) in insert(self.is_files(), batch)? {
                self.run(&statement, &values).await?;
            }
            if let Some(wallets) = wallets {
                self.run(SET_LAST_ENTRIES, &[wallets]).await?;
            }
        }
        let of_holder = if holder.is_some() { " AND holder = $3" } else { "" };
        let update = format!("UPDATE {STATE_TABLE} SET place = $1 WHERE part = $2{of_holder} RETURNING 1");
        if self.run(&update, &values![position, part, holder]).await? {
            return Ok(());
        }
        Err(Error::conflict(format!("another process continues the copy to {}: this one stops", self.name())))
    }

    /// Counts the copied rows of an archive on a server.
    ///
    /// It reads all transcripts, so it comes before the comparison: nothing after that takes long.
    pub(super) async fn count_archive(&mut self) -> Result<()> {
        if !self.is_files() && self.part().name == table::ARCHIVE.name {
            self.run(postgres::COUNT_ARCHIVE, &[]).await?;
        }
        Ok(())
    }

    /// Ends the copy: the side can be opened.
    pub(super) async fn end_copy(&mut self) -> Result<()> {
        self.run("BEGIN", &[]).await?;
        let unmarked = self.unmark().await;
        self.end_transaction(unmarked).await
    }

    async fn unmark(&mut self) -> Result<()> {
        let part = self.part().name;
        let unmark = match self.is_files() {
            true => "DELETE FROM schema_version WHERE version = $1",
            false => "DELETE FROM verbatim_schema WHERE version = $1 AND part = $2",
        };
        self.run(unmark, &values![INCOMPLETE_COPY, part]).await?;
        self.run(&format!("DELETE FROM {STATE_TABLE} WHERE part = $1"), &values![part]).await?;
        if !self.run(&format!("SELECT 1 FROM {STATE_TABLE} LIMIT 1"), &[]).await? {
            self.run(&format!("DROP TABLE {STATE_TABLE}"), &[]).await?;
        }
        Ok(())
    }

    /// Commits, or rolls back after an error.
    async fn end_transaction(&mut self, outcome: Result<()>) -> Result<()> {
        let outcome = match outcome {
            Ok(()) => self.run("COMMIT", &[]).await.map(drop),
            failed => failed,
        };
        if outcome.is_err() {
            // After some errors SQLite has rolled back itself.
            self.run("ROLLBACK", &[]).await.ok();
        }
        outcome
    }
}
