//! Connections to a database server, and the work that is done on them.
//!
//! Work runs in tasks of the store: a caller who goes away leaves nothing half done, and any executor may wait for
//! it. What is one statement is a transaction by itself. What takes several runs as one that is serializable: then
//! each may be written as if nobody else were there, and where somebody was, the server says so and it is made
//! anew, on the state that the other has left.

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hasher},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
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
    time::{sleep, timeout, timeout_at},
};
use transcript_core::Result;

use super::{
    fault::{self, Verdict, closed, defect, into_error, is_contradicted, late, verdict},
    options::{PostgresOptions, is_private},
    text::own,
};
use crate::error::{Fault, Work};

/// A statement with what is bound to it.
pub(super) type Ask = Query<'static, Postgres, PgArguments>;

const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";
const BEGIN_STEP: &str = "BEGIN";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// The driver prepares statements under names also where it keeps none. A pooler lends the connection to somebody else
/// afterwards, whose names are the same: so they are given back with it.
const COMMIT_POOLED: &str = "DEALLOCATE ALL; COMMIT";
const ROLLBACK_POOLED: &str = "ROLLBACK; DEALLOCATE ALL";

/// How often work is begun at most that others are in the way of. Its patience ends most of it earlier.
const ATTEMPTS_MAX: u32 = 64;
/// How often work is begun anew whose connection was lost: those that were held open may all be dead at once, and
/// then the next one is fresh.
const LOST_MAX: u32 = 2;
/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A change: what a port's method does to the database, in one transaction.
///
/// It may be made more than once, each time on the state before it.
pub(super) trait Change: Send + Sync + 'static {
    /// What the method answers.
    type Outcome: Send + 'static;
    /// Whether it is one statement, which is right by itself under READ COMMITTED.
    const IS_STEP: bool = false;
    /// Whether to make it again does no harm when nobody knows whether it was made.
    const IS_REPEATABLE: bool = true;
    /// Whether it is left to another change where rows that are stored contradict it, and not made again.
    const GIVES_WAY: bool = false;
    /// The part of the patience that it may take: one in so many. What is made for several leaves them time.
    const PATIENCE_PARTS: u32 = 1;

    /// Makes the change. A fault undoes all that it did.
    fn make<'a>(&'a self, db: &'a mut PgConnection) -> impl Future<Output = Work<Self::Outcome>> + Send + 'a;
}

/// A statement that only reads, with what is bound to it: it can be asked again.
#[derive(Clone, Debug)]
pub(super) struct Read {
    statement: &'static str,
    values: Vec<Value>,
}

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    Texts(Vec<String>),
    Number(i64),
    Bytes(Vec<u8>),
}

impl Read {
    /// This statement, still without values for `$1` and those after it.
    pub(super) fn new(statement: &'static str) -> Self {
        Self { statement, values: Vec::new() }
    }

    /// Binds a text.
    pub(super) fn text(self, value: &str) -> Self {
        self.with(Value::Text(own(value)))
    }

    /// Binds a list of texts.
    pub(super) fn texts<'a>(self, values: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(Value::Texts(values.into_iter().map(own).collect()))
    }

    /// Binds a number.
    pub(super) fn number(self, value: i64) -> Self {
        self.with(Value::Number(value))
    }

    /// Binds bytes.
    pub(super) fn bytes(self, value: &[u8]) -> Self {
        self.with(Value::Bytes(value.to_vec()))
    }

    fn with(mut self, value: Value) -> Self {
        self.values.push(value);
        self
    }
}

impl Change for Read {
    type Outcome = Vec<PgRow>;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Vec<PgRow>> {
        let bind = |ask: Ask, value: &Value| match value {
            Value::Text(text) => ask.bind(text.clone()),
            Value::Texts(texts) => ask.bind(texts.clone()),
            Value::Number(number) => ask.bind(*number),
            Value::Bytes(bytes) => ask.bind(bytes.clone()),
        };
        Ok(self.values.iter().fold(sqlx::query(self.statement), bind).fetch_all(db).await?)
    }
}

/// One database, and a bounded number of connections to it.
#[derive(Clone, Debug)]
pub(super) struct Database {
    shared: Arc<Shared>,
    runtime: Handle,
}

struct Shared {
    name: String,
    connection: PgConnectOptions,
    options: PostgresOptions,
    places: Semaphore,
    free: Mutex<Vec<PgConnection>>,
    numbers: AtomicI64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // How it is connected to names a password.
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Database {
    /// The database of these options. Nothing is opened yet.
    pub(super) fn new(options: PostgresOptions) -> Result<Self> {
        Self::with(options, None)
    }

    /// The same, where each statement looks rows up by their keys: one plan is right for all values. A plan of its own
    /// for each of the first ones, and again where short lists are bound, costs more than what it plans.
    pub(super) fn of_keys(options: PostgresOptions) -> Result<Self> {
        Self::with(options, Some(("plan_cache_mode", "force_generic_plan")))
    }

    /// The database of these options, of whose sessions this is set.
    fn with(options: PostgresOptions, setting: Option<(&str, &str)>) -> Result<Self> {
        let options = options.bounded();
        let mut connection = options.connection()?;
        // A pooler would give the setting to others, or refuse it.
        if let Some(setting) = setting.filter(|_| !options.pooler) {
            connection = connection.options([setting]);
        }
        let name = PostgresOptions::name(&connection);
        if !is_private(&connection) {
            tracing::warn!(
                database = name,
                "the connection may not be encrypted: sslmode=verify-full sees to it"
            );
        }
        let places = Semaphore::new(options.connections as usize);
        let (free, numbers) = (Mutex::default(), AtomicI64::new(0));
        let shared = Shared { name, connection, options, places, free, numbers };
        Ok(Self { shared: Arc::new(shared), runtime: Handle::current() })
    }

    /// What people call it.
    pub(super) fn name(&self) -> &str {
        &self.shared.name
    }

    /// How long a call waits.
    pub(super) fn patience(&self) -> Duration {
        self.shared.options.patience
    }

    /// Where work and timers run.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The error that a port returns for this fault.
    pub(super) fn error(&self, fault: Fault) -> transcript_core::Error {
        into_error(fault, self.name())
    }

    /// So many numbers in a row that nothing in the database has been given yet, larger than those that were given
    /// before; the first of them.
    ///
    /// They begin with the moment, so that those of several servers are in the order of their clocks, and no counter
    /// is shared. Two servers hardly ever get the same within a millisecond: each begins at a place of its own, and
    /// where they do, uniqueness ends one of the transactions, which then is made anew.
    pub(super) fn numbers(&self, now_ms: i64, count: usize) -> i64 {
        const PLACES: i64 = 1 << 20;
        let count = i64::try_from(count.max(1)).unwrap_or(i64::MAX);
        let mine = i64::try_from(chance(1 << 20)).unwrap_or_default();
        let moment = now_ms.clamp(0, i64::MAX / PLACES - 1) * PLACES + mine;
        let next = |last: i64| Some(last.max(moment).saturating_add(count));
        let last = self.shared.numbers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.unwrap_or_else(|last| last).max(moment).saturating_add(1)
    }

    /// Makes a change.
    pub(super) async fn make<C: Change>(&self, change: C) -> Result<C::Outcome> {
        self.attempt(change).await.map_err(|fault| self.error(fault))
    }

    /// Makes a change; a fault is told as it is.
    pub(super) async fn attempt<C: Change>(&self, change: C) -> Work<C::Outcome> {
        let shared = Arc::clone(&self.shared);
        let work = self.runtime.spawn(async move { shared.see_through(change).await });
        work.await
            .unwrap_or_else(|ended| Err(if ended.is_panic() { defect(self.name()) } else { closed() }.into()))
    }

    /// Makes a change in the task that asks for it: one of the database's own, which nobody breaks off. A task less for
    /// each statement of a line.
    pub(super) async fn attempt_here<C: Change>(&self, change: C) -> Work<C::Outcome> {
        let work = AssertUnwindSafe(self.shared.see_through(change)).catch_unwind();
        work.await.unwrap_or_else(|_| Err(defect(self.name()).into()))
    }

    /// What one statement finds, each row brought into its form.
    pub(super) async fn find<T>(&self, read: Read, form: impl Fn(&PgRow) -> Work<T>) -> Result<Vec<T>> {
        let rows = self.make(read).await?;
        rows.iter().map(form).collect::<Work<_>>().map_err(|fault| self.error(fault))
    }

    /// The first row that one statement finds, brought into its form.
    pub(super) async fn find_first<T>(
        &self,
        read: Read,
        form: impl Fn(&PgRow) -> Work<T>,
    ) -> Result<Option<T>> {
        let rows = self.make(read).await?;
        rows.first().map(form).transpose().map_err(|fault| self.error(fault))
    }

    /// Waits for what is under way, ends all work and closes the connections.
    pub(super) async fn close(&self) {
        let shared = Arc::clone(&self.shared);
        let closing = self.runtime.spawn(async move {
            // Whoever has all places is alone. An error means that it is closed already.
            let alone = shared.places.acquire_many(shared.options.connections).await;
            shared.places.close();
            drop(alone);
            for connection in shared.take_free() {
                if let Err(error) = connection.close().await {
                    tracing::debug!(%error, "a connection did not close in order");
                }
            }
        });
        // The runtime may be stopping, and its connections with it.
        closing.await.ok();
    }
}

impl Shared {
    fn take_free(&self) -> Vec<PgConnection> {
        std::mem::take(&mut *self.free.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn pop_free(&self) -> Option<PgConnection> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Makes a change, anew as long as that may help and its patience lasts.
    async fn see_through<C: Change>(&self, change: C) -> Work<C::Outcome> {
        let ends = Instant::now() + self.options.patience / C::PATIENCE_PARTS;
        let (mut attempts, mut lost) = (0, 0);
        loop {
            // What is broken off in its middle takes its connection along, so that the server undoes it.
            let made = timeout_at(ends.into(), self.make_once(&change)).await;
            let fault = match made.unwrap_or_else(|_| Err(late(&self.name).into())) {
                Ok(outcome) => return Ok(outcome),
                Err(fault) => fault,
            };
            attempts += 1;
            match verdict(&fault) {
                _ if C::GIVES_WAY && is_contradicted(&fault) => return Err(fault),
                Verdict::Again if attempts < ATTEMPTS_MAX && Instant::now() < ends => {
                    sleep(pause(attempts)).await;
                }
                Verdict::Lost if C::IS_REPEATABLE && lost < LOST_MAX && Instant::now() < ends => {
                    lost += 1;
                    sleep(pause(lost)).await;
                }
                _ => return Err(fault),
            }
        }
    }

    async fn make_once<C: Change>(&self, change: &C) -> Work<C::Outcome> {
        let mut borrowed = self.borrow(C::IS_REPEATABLE).await?;
        let made = match (C::IS_STEP, self.options.pooler) {
            (true, false) => change.make(&mut borrowed.connection).await,
            // A pooler may lend each statement another connection of the server, but not within a transaction.
            (true, true) => within(BEGIN_STEP, true, change, &mut borrowed.connection).await,
            (false, pooler) => within(BEGIN, pooler, change, &mut borrowed.connection).await,
        };
        match &made {
            Ok(_) => borrowed.give_back(),
            // Those that are free were opened to the same server, and are as dead.
            Err(fault) if verdict(fault) == Verdict::Lost => drop(self.take_free()),
            Err(_) => borrowed.give_back(),
        }
        made
    }

    /// A connection for work. One that was held open may be dead: work that may be repeated finds out by itself, and
    /// for other work it is asked first.
    async fn borrow(&self, is_repeatable: bool) -> Work<Borrowed<'_>> {
        let place = self.places.acquire().await.map_err(|_| closed())?;
        let mut free = self.pop_free();
        while !is_repeatable && let Some(connection) = &mut free {
            match connection.ping().await {
                Ok(()) => break,
                Err(_) => free = self.pop_free(),
            }
        }
        let connection = match free {
            Some(connection) => connection,
            None => {
                // In a place of its own: every statement's future would be seven times as large.
                let opening = Box::pin(self.connection.connect());
                let opened = timeout(self.options.connect_timeout, opening).await;
                opened.map_err(|_| late(&self.name))??
            }
        };
        Ok(Borrowed { shared: self, connection, _place: place })
    }
}

/// Makes a change within a transaction.
async fn within<C: Change>(
    begin: &'static str,
    pooler: bool,
    change: &C,
    db: &mut PgConnection,
) -> Work<C::Outcome> {
    let (commit, rollback) = if pooler { (COMMIT_POOLED, ROLLBACK_POOLED) } else { (COMMIT, ROLLBACK) };
    sqlx::raw_sql(begin).execute(&mut *db).await?;
    let made = match change.make(db).await {
        Ok(outcome) => sqlx::raw_sql(commit).execute(&mut *db).await.map(|_| outcome).map_err(Fault::from),
        Err(fault) => Err(fault),
    };
    match made {
        Err(fault) if verdict(&fault) != Verdict::Lost => {
            sqlx::raw_sql(rollback).execute(db).await?;
            Err(fault)
        }
        made => made,
    }
}

/// A connection that goes back when it is sound; else it is dropped, and its server undoes what was not committed.
struct Borrowed<'a> {
    shared: &'a Shared,
    connection: PgConnection,
    _place: SemaphorePermit<'a>,
}

impl Borrowed<'_> {
    fn give_back(self) {
        let Self { shared, connection, _place } = self;
        shared.free.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

/// How long to wait before work is begun again: longer with each attempt, and for everybody else another while.
fn pause(attempts: u32) -> Duration {
    let longest = Duration::from_millis(2).saturating_mul(1 << attempts.min(10)).min(PAUSE_MAX);
    let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(chance(longest.max(1)))
}

/// A number below another one, by chance: so that those who met do not meet again.
pub(super) fn chance(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below.max(1)
}

/// Whether a table is not there yet.
pub(super) use fault::{is_made_already, is_missing_table};
