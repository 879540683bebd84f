//! Statements and transactions.

use transcript_core::{Error, Timestamp};

use super::{Row, Statement, Value};
use crate::error::DbResult;

/// A connection within a transaction.
///
/// On SQLite every future is ready when it is created.
pub(crate) trait Session: Send {
    /// Whether each statement is a round trip to a server.
    const IS_REMOTE: bool;

    /// The number of a new row, larger than earlier ones. `None` if the database numbers its rows itself.
    fn next_number(&self, now: Timestamp) -> Option<i64>;

    /// The rows of a statement.
    fn rows(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Vec<Row>>> + Send;

    /// The first row of a statement.
    fn row(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Option<Row>>> + Send;

    /// Runs a statement; returns the number of changed rows.
    fn execute(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<u64>> + Send;

    /// Decodes all rows of a statement.
    fn find<T>(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
        decode: impl Fn(&mut Row) -> DbResult<T> + Send,
    ) -> impl Future<Output = DbResult<Vec<T>>> + Send {
        async move { self.rows(statement, values).await?.iter_mut().map(decode).collect() }
    }

    /// The row of a statement that always has one.
    fn only_row(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Row>> + Send {
        async move {
            let row = self.row(statement, values).await?;
            Ok(row.ok_or_else(|| Error::unexpected("a statement of the database returned no row"))?)
        }
    }
}

/// A write: the work of a port's method on the database, in one transaction.
///
/// It may run more than once, each time on the state before it: when another write of the transaction is
/// rejected, or the database fails midway, all writes are undone and run again.
pub(crate) trait WriteTx: Send + Sync + 'static {
    /// The result of the method.
    type Outcome: Send + 'static;

    /// Whether the write is skipped if its caller disconnected before it began.
    #[cfg(feature = "sqlite")]
    const IS_CANCELLABLE: bool = false;
    /// Whether PostgreSQL runs it in a transaction.
    ///
    /// False for one statement, and for several that are each correct alone under READ COMMITTED.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "only PostgreSQL reads it"))]
    const NEEDS_TRANSACTION: bool = true;
    /// Whether a repetition is harmless if the connection is lost and the outcome of the first attempt is unknown.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "only PostgreSQL reads it"))]
    const IS_IDEMPOTENT: bool = true;
    /// Whether PostgreSQL reports a row that changed since it was read to the caller, which then runs another write.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "only PostgreSQL reads it"))]
    const HAS_FALLBACK: bool = false;

    /// Whether an outcome is returned only once the commit is on disk.
    ///
    /// A commit that is not survives a crash of the process, but not one of the machine. False for an outcome that
    /// promises nothing that a crash could undo, such as a refusal that changed nothing. PostgreSQL ignores this.
    #[cfg(feature = "sqlite")]
    fn needs_sync(&self, _outcome: &Self::Outcome) -> bool {
        true
    }

    /// Runs the write. An error undoes all of it.
    fn run<S: Session>(&self, db: &mut S) -> impl Future<Output = DbResult<Self::Outcome>> + Send;
}
