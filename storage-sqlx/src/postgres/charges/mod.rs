//! Charges in PostgreSQL: concurrent ones share a transaction and its statements.
//!
//! Charges wait in a batch queue, which never runs those of one account in parallel, so that the charges of one
//! server do not conflict. A charge runs at once if a task is free; otherwise the waiting charges run as one group. One
//! statement reads their rows, each is decided in order by the rules of the ledger and the limits ([`ChargeBatch`]),
//! and one statement stores the changes, unless another server has changed any of the rows in between. Then the group
//! runs again, and locks the rows first. Unusual cases (an existing hold id, an overdue hold of the wallet) run
//! separately.

mod statements;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use sqlx::PgConnection;
use transcript_core::{
    Error, ErrorKind, Result,
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore, charge_batch::ChargeBatch},
};

use super::{
    PostgresStore,
    batch_queue::{BatchHandler, BatchQueue, QueueItem},
    database::{PgDatabase, WriteTx},
    ledger, limits,
    sqlstate::{Retryability, retryability},
};
use crate::error::{DbError, DbResult};

/// The batch queue of charges.
pub(super) type ChargeBatchers = BatchQueue<ChargeBatcher>;

/// Runs groups of charges.
pub(super) enum ChargeBatcher {}

#[async_trait]
impl ChargeStore for PostgresStore {
    async fn charge(&self, request: ChargeRequest) -> Result<ChargeOutcome> {
        request.check()?;
        let account = request.account.clone();
        self.charge_queue.submit(account.as_str(), request).await
    }
}

impl BatchHandler for ChargeBatcher {
    type Item = ChargeRequest;
    type Outcome = ChargeOutcome;

    fn rejected(error: Error) -> Result<ChargeOutcome> {
        Ok(ChargeOutcome::NotCharged(error))
    }

    async fn serve(database: &PgDatabase, members: Vec<QueueItem<Self>>) {
        // One member may have caused the error, so each member runs in its own group.
        for member in run_group(database, members).await {
            run_group(database, vec![member]).await;
        }
    }
}

/// Runs a group. Returns the members of a failed group, which must run one by one.
async fn run_group(
    database: &PgDatabase,
    members: Vec<QueueItem<ChargeBatcher>>,
) -> Vec<QueueItem<ChargeBatcher>> {
    let (requests, replies): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let group = Arc::new(ChargeGroup::new(requests, database));
    let served = database.run_inline(ChargeGroupTx(Arc::clone(&group))).await;
    let served = served.map_err(|fault| database.error(fault));
    match served {
        Ok(outcomes) => {
            for ((request, reply), outcome) in group.requests.iter().zip(replies).zip(outcomes) {
                let outcome = match outcome {
                    Some(outcome) => Ok(outcome),
                    None => run_separately(database, request).await,
                };
                // The charge is stored even if the caller has disconnected.
                reply.send(outcome).ok();
            }
        }
        Err(error)
            if group.requests.len() > 1
                && error.kind() != ErrorKind::Unavailable
                && !group.may_be_stored.load(Ordering::Relaxed) =>
        {
            return group.requests.iter().cloned().zip(replies).collect();
        }
        Err(error) => {
            for reply in replies {
                reply.send(group.failed(error.clone())).ok();
            }
        }
    }
    Vec::new()
}

/// Charges that run together.
#[derive(Debug)]
struct ChargeGroup {
    requests: Vec<ChargeRequest>,
    numbers: PgDatabase,
    /// Whether another server has conflicted: from then on rows are locked before they are read.
    is_contended: AtomicBool,
    /// Whether the group may be stored: then only the database knows the outcome.
    may_be_stored: AtomicBool,
}

impl ChargeGroup {
    fn new(requests: Vec<ChargeRequest>, numbers: &PgDatabase) -> Self {
        let (is_contended, may_be_stored) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { requests, numbers: numbers.clone(), is_contended, may_be_stored }
    }

    /// The reply to the members after an error.
    fn failed(&self, error: Error) -> Result<ChargeOutcome> {
        if self.may_be_stored.load(Ordering::Relaxed) {
            Err(error)
        } else {
            Ok(ChargeOutcome::NotCharged(error))
        }
    }
}

/// The write of a group.
///
/// It stores with one statement, which fails if any of the rows it was computed from has changed.
struct ChargeGroupTx(Arc<ChargeGroup>);

impl WriteTx for ChargeGroupTx {
    /// `None` for charges that must run separately.
    type Outcome = Vec<Option<ChargeOutcome>>;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Vec<Option<ChargeOutcome>>> {
        let Self(group) = self;
        if group.may_be_stored.load(Ordering::Relaxed) {
            // The connection was lost after the statement was sent. A retry here could find rows of the first attempt:
            // a full window, an existing hold. The error makes the caller retry; the first attempt may be charged.
            let message = "the connection was lost while storing charges: retry in a few seconds";
            return Err(Error::unavailable(message).into());
        }
        if !group.is_contended.load(Ordering::Relaxed) {
            return group.run(db).await;
        }
        sqlx::raw_sql("BEGIN ISOLATION LEVEL READ COMMITTED").execute(&mut *db).await?;
        let result = match statements::lock(db, &group.requests).await {
            Ok(()) => group.run(db).await,
            Err(fault) => Err(fault),
        };
        match result {
            Ok(outcomes) => {
                group.may_be_stored.store(true, Ordering::Relaxed);
                let committed = sqlx::raw_sql("COMMIT").execute(db).await.map_err(DbError::from);
                committed.inspect_err(|fault| group.record_error(fault))?;
                Ok(outcomes)
            }
            Err(fault) => {
                if retryability(&fault) != Retryability::Reconnect {
                    sqlx::raw_sql("ROLLBACK").execute(db).await?;
                }
                Err(fault)
            }
        }
    }
}

impl ChargeGroup {
    async fn run(&self, db: &mut PgConnection) -> DbResult<Vec<Option<ChargeOutcome>>> {
        let (found, read) = statements::load(db, &self.requests).await?;
        let batch = ChargeBatch::decide(&self.requests, found)?;
        if !batch.is_empty() {
            self.may_be_stored.store(true, Ordering::Relaxed);
            let stored = statements::store(db, &self.requests, &batch, &read, &self.numbers).await;
            stored.inspect_err(|fault| self.record_error(fault))?;
        }
        Ok(batch.outcomes)
    }

    /// Evaluates the error of the storing statement.
    ///
    /// No attempt begins if an earlier one may be stored, so the state of this one is decisive.
    fn record_error(&self, fault: &DbError) {
        let retryability = retryability(fault);
        // A rejected statement is not stored; a commit whose reply was lost may be.
        self.may_be_stored.store(retryability == Retryability::Reconnect, Ordering::Relaxed);
        self.is_contended.fetch_or(retryability == Retryability::Retry, Ordering::Relaxed);
    }
}

/// Runs one charge whose key is already checked, step by step.
async fn run_separately(database: &PgDatabase, request: &ChargeRequest) -> Result<ChargeOutcome> {
    let taken = limits::take(database, vec![request.limit_request.clone()], request.spend.now).await;
    let (remaining, reset_ms) = match taken.map(ChargeOutcome::allowed) {
        Ok(Ok(left)) => left,
        Ok(Err(limited)) => return Ok(limited),
        Err(error) => return Ok(ChargeOutcome::NotCharged(error)),
    };
    let spent = ledger::take(database, request.spend.clone(), true).await?;
    Ok(ChargeOutcome::Accepted { remaining, reset_ms, spent })
}
