//! A database, in which writes run and from which rows are read.

use std::fmt;

use tokio::runtime::Handle;
use transcript_core::{Error, Result};

use super::{Row, Session, Statement, Value, WriteTx};
use crate::error::{DbError, DbResult};

pub(crate) trait Database: fmt::Debug + Send + Sync + 'static {
    /// Whether each statement is a round trip to a server.
    const IS_REMOTE: bool;

    /// Runs a write, in its own transaction or one shared with others.
    fn run<C: WriteTx>(&self, write: C) -> impl Future<Output = Result<C::Outcome>> + Send;

    /// Runs a write, and another one instead if a row has changed since the first one read it.
    ///
    /// The other one locks the rows that it reads, so that writes of a busy row wait in order instead of starting again
    /// and again. In a file, writes run one by one and never conflict.
    fn run_or_lock<A, B>(&self, write: A, _locked: B) -> impl Future<Output = Result<A::Outcome>> + Send
    where
        A: WriteTx,
        B: WriteTx<Outcome = A::Outcome>,
    {
        self.run(write)
    }

    /// Runs a write of one statement, again if the connection is lost; returns the number of changed rows.
    fn execute(
        &self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64>> + Send {
        self.run(ExecuteTx::<true> { statement: statement.into(), values: Value::to_owned_list(values) })
    }

    /// As [`Database::execute`], for a statement whose repetition would report a wrong number.
    fn execute_once(
        &self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64>> + Send {
        self.run(ExecuteTx::<false> { statement: statement.into(), values: Value::to_owned_list(values) })
    }

    /// The rows of one statement.
    fn rows(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Vec<Row>>> + Send;

    /// The first row of one statement, which must be quick to find.
    fn row(
        &self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Option<Row>>> + Send;

    /// Runs blocking work, so that any executor can poll the futures of the ports.
    fn runtime(&self) -> &Handle;

    /// The error that a port returns; its message names the database.
    fn error(&self, fault: DbError) -> Error;

    /// Decodes all rows of one statement.
    fn find<T>(
        &self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
        decode: impl Fn(&mut Row) -> DbResult<T> + Send,
    ) -> impl Future<Output = Result<Vec<T>>> + Send {
        async move {
            let rows = self.rows(statement.into(), values).await;
            let found = rows.and_then(|mut rows| rows.iter_mut().map(decode).collect());
            found.map_err(|fault| self.error(fault))
        }
    }

    /// Decodes the first row of one statement, which must be quick to find.
    fn find_first<T>(
        &self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
        decode: impl FnOnce(&mut Row) -> DbResult<T> + Send,
    ) -> impl Future<Output = Result<Option<T>>> + Send {
        async move {
            let row = self.row(statement.into(), values).await;
            let found = row.and_then(|row| row.map(|mut row| decode(&mut row)).transpose());
            found.map_err(|fault| self.error(fault))
        }
    }
}

/// A write of one statement.
struct ExecuteTx<const REPEAT: bool> {
    statement: Statement,
    values: Vec<Value<'static>>,
}

impl<const REPEAT: bool> WriteTx for ExecuteTx<REPEAT> {
    type Outcome = u64;
    const NEEDS_TRANSACTION: bool = false;
    const IS_IDEMPOTENT: bool = REPEAT;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<u64> {
        db.execute(self.statement, &self.values).await
    }
}
