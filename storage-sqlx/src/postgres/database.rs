//! Connections to a database server, and the execution of reads and writes on them.
//!
//! Work runs in tasks of the store: a caller that disconnects leaves nothing half done, and any executor can await
//! the result. A single statement is its own transaction. Work of several statements runs in a serializable
//! transaction, so it is written as if it ran alone; on a conflict the server reports an error and the work runs
//! again, on the new state.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use sqlx::{
    ConnectOptions, Connection, PgConnection, Postgres,
    postgres::{PgArguments, PgConnectOptions, PgRow},
    query::Query,
};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout, timeout_at},
};
use transcript_core::{
    Result, Retry,
    retry::{Backoff, RetryPolicy, retry},
};

use super::{
    options::{PostgresOptions, is_private},
    session::{PgSession, bind, read_row},
    sqlstate::{
        self, Retryability, closed, connect_error, defect, describe, has_no_connection_left, is_contradicted,
        retryability, store_error_kind, to_error,
    },
};
use crate::{
    error::{DbError, DbResult},
    monitor::{StoreMonitor, StoreOperation},
    sql::{self, Database, Row, Statement, Value},
};

/// A statement with its bound values.
pub(super) type BoundQuery = Query<'static, Postgres, PgArguments>;

const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";
const BEGIN_STEP: &str = "BEGIN";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// Commits and deallocates the prepared statements.
///
/// The driver prepares named statements even without a cache. A pooler gives the connection to another client
/// afterwards, which uses the same names.
const COMMIT_POOLED: &str = "DEALLOCATE ALL; COMMIT";
const ROLLBACK_POOLED: &str = "ROLLBACK; DEALLOCATE ALL";

/// Most attempts of work with conflicts. Its timeout usually ends it earlier.
const ATTEMPTS_MAX: u32 = 64;
/// Most new attempts after a lost connection.
///
/// All idle connections may be dead at once, and then the next one is new.
const LOST_MAX: u32 = 2;
/// Idle connections that were not used for longer are closed, so that other clients find room.
const UNUSED_MAX: Duration = Duration::from_secs(20);
/// The longest pauses between two attempts.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(4), max: Duration::from_millis(100) };

/// Work on a connection to PostgreSQL: a [`sql::WriteTx`], a read, or a write of PostgreSQL only.
///
/// It may run more than once, each time on the state before it.
pub(super) trait PgTx: Send + Sync + 'static {
    /// The result of the method.
    type Outcome: Send + 'static;
    /// As [`sql::WriteTx::NEEDS_TRANSACTION`].
    const NEEDS_TRANSACTION: bool = true;
    /// Whether a repetition is harmless if the outcome of the first attempt is unknown.
    const IS_IDEMPOTENT: bool = true;
    /// Whether the caller runs another statement after a constraint violation, instead of a retry.
    const HAS_FALLBACK: bool = false;
    /// Whether it reads or writes.
    const OPERATION: StoreOperation = StoreOperation::Write;
    /// Its share of the timeout: one in this many parts.
    ///
    /// A write for several callers leaves time for separate attempts.
    const TIMEOUT_DIVISOR: u32 = 1;

    /// Runs the work. An error undoes all of it.
    fn run<'a>(
        &'a self,
        db: &'a mut PgConnection,
    ) -> impl Future<Output = DbResult<Self::Outcome>> + Send + 'a;
}

/// A statement that only reads, with its bound values: it can run again.
#[derive(Clone, Debug)]
struct ReadQuery {
    statement: &'static str,
    values: Vec<Value<'static>>,
}

impl PgTx for ReadQuery {
    type Outcome = Vec<PgRow>;
    const NEEDS_TRANSACTION: bool = false;
    const OPERATION: StoreOperation = StoreOperation::Read;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Vec<PgRow>> {
        Ok(bind(self.statement, &self.values).fetch_all(db).await?)
    }
}

/// A write that names no database.
struct SessionTx<C> {
    write: C,
    database: PgDatabase,
}

impl<C: sql::WriteTx> PgTx for SessionTx<C> {
    type Outcome = C::Outcome;
    const NEEDS_TRANSACTION: bool = C::NEEDS_TRANSACTION;
    const IS_IDEMPOTENT: bool = C::IS_IDEMPOTENT;
    const HAS_FALLBACK: bool = C::HAS_FALLBACK;

    async fn run(&self, connection: &mut PgConnection) -> DbResult<C::Outcome> {
        self.write.run(&mut PgSession { connection, database: &self.database }).await
    }
}

/// One part of a database, over its connections.
#[derive(Clone, Debug)]
pub struct PgDatabase {
    shared: Arc<PgDatabaseState>,
    runtime: Handle,
}

#[derive(Debug)]
struct PgDatabaseState {
    pool: Arc<PgPool>,
    numbers: AtomicI64,
    monitor: StoreMonitor,
}

/// A bounded number of connections to one database, which its parts share.
struct PgPool {
    name: String,
    connection: PgConnectOptions,
    options: PostgresOptions,
    permits: Semaphore,
    /// The least recently used connection is the first.
    idle: Mutex<Vec<IdleConnection>>,
}

// The connect options contain a password.
transcript_core::debug_fields!(PgPool { name });

/// A connection that no work uses.
struct IdleConnection {
    connection: PgConnection,
    since: Instant,
}

impl PgDatabase {
    /// Creates the database of these options, with a name of its part in logs. Opens no connection yet.
    ///
    /// Statements look rows up by key, so one plan is right for all values. Custom plans for the first executions, and
    /// for short lists, cost more than they save.
    pub(super) fn new(options: PostgresOptions, part: &'static str) -> Result<Self> {
        let options = options.bounded();
        let mut connection = options.connection()?;
        // A pooler would pass the setting on to other clients, or reject it.
        if !options.pooler {
            connection = connection.options([("plan_cache_mode", "force_generic_plan")]);
        }
        let connection = connection.application_name(&format!("verbatim {:08x}", random_below(1 << 32)));
        let name = PostgresOptions::name(&connection);
        if !is_private(&connection) {
            tracing::warn!(database = name, "connection may be unencrypted, use sslmode=verify-full");
        }
        let permits = Semaphore::new(options.connections as usize);
        let pool = PgPool { name, connection, options, permits, idle: Mutex::default() };
        Ok(Self::over(Arc::new(pool), part, Handle::current()))
    }

    /// Another part of the same database, over the same connections.
    pub(super) fn other_part(&self, part: &'static str) -> Self {
        Self::over(Arc::clone(&self.shared.pool), part, self.runtime.clone())
    }

    fn over(pool: Arc<PgPool>, part: &'static str, runtime: Handle) -> Self {
        let shared = PgDatabaseState { pool, numbers: AtomicI64::new(0), monitor: StoreMonitor::new(part) };
        Self { shared: Arc::new(shared), runtime }
    }

    /// Name in messages.
    pub(super) fn name(&self) -> &str {
        &self.shared.pool.name
    }

    /// The failures since the database was opened.
    pub(super) fn monitor(&self) -> &StoreMonitor {
        &self.shared.monitor
    }

    /// The options of its connections.
    pub(super) fn options(&self) -> &PostgresOptions {
        &self.shared.pool.options
    }

    /// The timeout of a call.
    pub(super) fn timeout(&self) -> Duration {
        self.shared.pool.options.timeout
    }

    /// The runtime of work and timers.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Converts a database error to an error of the port.
    pub(super) fn error(&self, fault: DbError) -> transcript_core::Error {
        to_error(fault, self.name())
    }

    /// Reserves this many consecutive unused numbers, larger than earlier ones; returns the first.
    ///
    /// They begin with the time, so that those of several servers are in the order of their clocks without a shared
    /// counter. Two servers rarely get the same number within a millisecond, because each adds a random offset. If they
    /// do, a unique constraint ends one of the transactions, which then runs again.
    pub(super) fn numbers(&self, now_ms: i64, count: usize) -> i64 {
        const OFFSETS: i64 = 1 << 20;
        let count = i64::try_from(count.max(1)).unwrap_or(i64::MAX);
        let process_offset = i64::try_from(random_below(1 << 20)).unwrap_or_default();
        let time_base = now_ms.clamp(0, i64::MAX / OFFSETS - 1) * OFFSETS + process_offset;
        let next = |last: i64| Some(last.max(time_base).saturating_add(count));
        let last = self.shared.numbers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.unwrap_or_else(|last| last).max(time_base).saturating_add(1)
    }

    pub(super) async fn run<C: PgTx>(&self, write: C) -> Result<C::Outcome> {
        self.attempt(write).await.map_err(|fault| self.error(fault))
    }

    /// Runs a write and returns the original database error.
    pub(super) async fn attempt<C: PgTx>(&self, write: C) -> DbResult<C::Outcome> {
        let shared = Arc::clone(&self.shared);
        // Boxed: the runtime's code for a task is compiled for each type of work.
        let work = self.runtime.spawn(async move { shared.run_with_retries(write).await }.boxed());
        work.await
            .unwrap_or_else(|ended| Err(if ended.is_panic() { defect(self.name()) } else { closed() }.into()))
    }

    /// Runs a write in the current task, which must be a task of the database that is never cancelled.
    ///
    /// It saves a task for each statement of a batch queue.
    pub(super) async fn run_inline<C: PgTx>(&self, write: C) -> DbResult<C::Outcome> {
        let work = AssertUnwindSafe(self.shared.run_with_retries(write)).catch_unwind();
        work.await.unwrap_or_else(|_| Err(defect(self.name()).into()))
    }

    /// Decodes all rows of one statement, which may have values that [`Row`] has no form for.
    pub(super) async fn find_decoded<T>(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
        decode: impl Fn(&PgRow) -> DbResult<T>,
    ) -> Result<Vec<T>> {
        let rows = self.run(ReadQuery { statement, values: Value::to_owned_list(values) }).await?;
        rows.iter().map(decode).collect::<DbResult<_>>().map_err(|fault| self.error(fault))
    }

    /// Waits for running work, rejects new work and closes the connections.
    pub(super) async fn close(&self) {
        let pool = Arc::clone(&self.shared.pool);
        let closing = self.runtime.spawn(async move {
            // All permits together mean no running work. An error means that it is already closed.
            let alone = pool.permits.acquire_many(pool.options.connections).await;
            pool.permits.close();
            drop(alone);
            for idle in pool.take_idle() {
                if let Err(error) = idle.connection.close().await {
                    tracing::debug!(%error, "connection close failed");
                }
            }
        });
        // The runtime may be shutting down, and its connections with it.
        closing.await.ok();
    }
}

impl Database for PgDatabase {
    const IS_REMOTE: bool = true;

    async fn run<C: sql::WriteTx>(&self, write: C) -> Result<C::Outcome> {
        Self::run(self, SessionTx { write, database: self.clone() }).await
    }

    async fn run_or_lock<A, B>(&self, write: A, locked: B) -> Result<A::Outcome>
    where
        A: sql::WriteTx,
        B: sql::WriteTx<Outcome = A::Outcome>,
    {
        match self.attempt(SessionTx { write, database: self.clone() }).await {
            Err(fault) if is_contradicted(&fault) => <Self as Database>::run(self, locked).await,
            outcome => outcome.map_err(|fault| self.error(fault)),
        }
    }

    async fn rows(&self, statement: Statement, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        let values = Value::to_owned_list(values);
        let rows = self.attempt(ReadQuery { statement: statement.postgres, values }).await?;
        rows.iter().map(read_row).collect()
    }

    async fn row(&self, statement: Statement, values: &[Value<'_>]) -> DbResult<Option<Row>> {
        Ok(self.rows(statement, values).await?.into_iter().next())
    }

    fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn error(&self, fault: DbError) -> transcript_core::Error {
        Self::error(self, fault)
    }
}

impl PgDatabaseState {
    /// Runs a write with retries, and counts the result.
    async fn run_with_retries<C: PgTx>(&self, write: C) -> DbResult<C::Outcome> {
        let result = self.run_attempts(write).await;
        match &result {
            Ok(_) => self.monitor.succeeded(C::OPERATION),
            Err(fault) if C::HAS_FALLBACK && is_contradicted(fault) => {}
            Err(fault) => {
                if let Some(kind) = store_error_kind(fault) {
                    self.monitor.failed(C::OPERATION, kind, &describe(fault, &self.pool.name));
                }
            }
        }
        result
    }

    /// Runs a write and retries it after transient errors until its timeout.
    async fn run_attempts<C: PgTx>(&self, write: C) -> DbResult<C::Outcome> {
        let deadline = Instant::now() + self.pool.options.timeout / C::TIMEOUT_DIVISOR;
        let policy = RetryPolicy { tries: u32::MAX, deadline: Some(deadline), backoff: BACKOFF };
        let mut lost = 0;
        let judge = |attempt, fault: &DbError| match retryability(fault) {
            _ if C::HAS_FALLBACK && is_contradicted(fault) => Retry::Never,
            // Another client may close a connection.
            _ if has_no_connection_left(fault) => Retry::Backoff,
            Retryability::Retry if attempt + 1 < ATTEMPTS_MAX => Retry::Backoff,
            Retryability::Reconnect if C::IS_IDEMPOTENT && lost < LOST_MAX => {
                lost += 1;
                Retry::Backoff
            }
            _ => Retry::Never,
        };
        // A cancelled attempt drops its connection, so the server undoes it.
        let call = |_| async {
            let result = timeout_at(deadline, self.run_once(&write)).await;
            result.unwrap_or(Err(DbError::TimedOut))
        };
        retry(policy, random_share, judge, call).await
    }

    async fn run_once<C: PgTx>(&self, write: &C) -> DbResult<C::Outcome> {
        let mut borrowed = self.pool.borrow(C::IS_IDEMPOTENT).await?;
        let result = match (C::NEEDS_TRANSACTION, self.pool.options.pooler) {
            (false, false) => write.run(&mut borrowed.connection).await,
            // A pooler may use another server connection for each statement, but not within a transaction.
            (false, true) => run_in_transaction(BEGIN_STEP, true, write, &mut borrowed.connection).await,
            (true, pooler) => run_in_transaction(BEGIN, pooler, write, &mut borrowed.connection).await,
        };
        match &result {
            Ok(_) => borrowed.return_to_pool(),
            // The idle connections lead to the same server and are dead as well.
            Err(fault) if retryability(fault) == Retryability::Reconnect => drop(self.pool.take_idle()),
            Err(_) => borrowed.return_to_pool(),
        }
        result
    }
}

impl PgPool {
    fn take_idle(&self) -> Vec<IdleConnection> {
        std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn pop_idle(&self) -> Option<PgConnection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map(|idle| idle.connection)
    }

    /// Keeps a connection for later work. Returns one that was not used for long, which the caller closes.
    fn keep(&self, connection: PgConnection) -> Option<PgConnection> {
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(IdleConnection { connection, since: now });
        let is_unused = idle.first().is_some_and(|oldest| now.duration_since(oldest.since) > UNUSED_MAX);
        is_unused.then(|| idle.remove(0).connection)
    }

    /// A connection for work.
    ///
    /// An idle one may be dead: idempotent work retries on its own error; other work pings the connection first.
    async fn borrow(&self, is_repeatable: bool) -> DbResult<PooledConnection<'_>> {
        let permit = self.permits.acquire().await.map_err(|_| closed())?;
        let mut idle = self.pop_idle();
        while !is_repeatable && let Some(connection) = &mut idle {
            match connection.ping().await {
                Ok(()) => break,
                Err(_) => idle = self.pop_idle(),
            }
        }
        let connection = match idle {
            Some(connection) => connection,
            None => {
                // Boxed: it would make the future of every statement seven times as large.
                let opening = Box::pin(self.connection.connect());
                let opened = timeout(self.options.connect_timeout, opening).await;
                opened.map_err(|_| DbError::TimedOut)?.map_err(connect_error)?
            }
        };
        Ok(PooledConnection { pool: self, connection, _permit: permit })
    }
}

/// Runs a write within a transaction.
async fn run_in_transaction<C: PgTx>(
    begin: &'static str,
    pooler: bool,
    write: &C,
    db: &mut PgConnection,
) -> DbResult<C::Outcome> {
    let (commit, rollback) = if pooler { (COMMIT_POOLED, ROLLBACK_POOLED) } else { (COMMIT, ROLLBACK) };
    sqlx::raw_sql(begin).execute(&mut *db).await?;
    match write.run(db).await {
        Ok(outcome) => {
            // A commit that fails, such as on a conflict, has ended the transaction.
            sqlx::raw_sql(commit).execute(db).await?;
            Ok(outcome)
        }
        Err(fault) => {
            if retryability(&fault) != Retryability::Reconnect {
                sqlx::raw_sql(rollback).execute(db).await?;
            }
            Err(fault)
        }
    }
}

/// A borrowed connection that is returned only when intact. Drop makes the server roll back.
struct PooledConnection<'a> {
    pool: &'a PgPool,
    connection: PgConnection,
    _permit: SemaphorePermit<'a>,
}

impl PooledConnection<'_> {
    fn return_to_pool(self) {
        let Self { pool, connection, _permit } = self;
        if let Some(unused) = pool.keep(connection) {
            // The server notices the end of a connection that is dropped; a farewell would delay this work.
            drop(unused);
        }
    }
}

/// A random factor from 0 to 1: it spreads conflicting writes.
fn random_share() -> f64 {
    random_below(1 << 20) as f64 / f64::from(1 << 20)
}

pub(super) use crate::store::random_below;

/// Whether a table does not exist yet.
pub(super) use sqlstate::{already_exists, is_missing_table};
