//! Statements and transactions.

use transcript_core::Error;

use super::{Row, Value};
use crate::error::DbResult;

/// A connection within a transaction.
///
/// On SQLite every future is ready when it is created.
pub(crate) trait Session: Send {
    /// The rows of a statement.
    fn rows(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Vec<Row>>> + Send;

    /// The first row of a statement.
    fn row(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Option<Row>>> + Send;

    /// Runs a statement; returns the number of changed rows.
    fn execute(
        &mut self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<u64>> + Send;

    /// The row of a statement that always has one.
    fn only_row(
        &mut self,
        statement: &'static str,
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
    const IS_CANCELLABLE: bool = false;

    /// Runs the write. An error undoes all of it.
    fn run<S: Session>(&self, db: &mut S) -> impl Future<Output = DbResult<Self::Outcome>> + Send;
}
