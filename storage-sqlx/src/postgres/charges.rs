//! Charges in PostgreSQL: concurrent ones share their statements.
//!
//! Charges wait in a batch queue, which never runs those of one account in parallel, so that the charges of one
//! server do not conflict. A charge runs at once if a task is free; otherwise the waiting charges run as one group. One
//! statement reads their rows, each is decided in order by the rules of the limits and the ledger, and one statement
//! stores the changes, unless another server has changed any of the rows in between. Then the group runs again, and
//! locks the rows first.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use sqlx::PgConnection;
use transcript_core::{
    Error, ErrorKind, Result,
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore},
    ids::AccountId,
    ledger::rules::{HoldStep, LedgerStep as _, RowKeys},
    limits::{LimitRequest, rules},
};

use super::{
    PostgresStore,
    batch_queue::{BatchHandler, BatchQueue, QueueItem},
    database::{PgDatabase, PgTx},
    ledger::{AdmissionKeys, AdmittedRows, LoadedRows, load, lock, store},
    sqlstate::{is_contradicted, is_not_stored},
};
use crate::error::{DbError, DbResult};

pub(super) type ChargeBatchers = BatchQueue<ChargeBatcher>;

/// Runs groups of charges.
pub(super) enum ChargeBatcher {}

/// A charge: key, rate limit and spend, in this order.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    key_digest: Vec<u8>,
    account: AccountId,
    version: u64,
    limit_request: LimitRequest,
    spend: HoldStep,
}

#[async_trait]
impl ChargeStore for PostgresStore {
    async fn charge(&self, request: ChargeRequest) -> Result<ChargeOutcome> {
        request.check()?;
        let ChargeRequest { key_digest, account, version, limit_request, spend } = request;
        let (name, spend) = (account.clone(), HoldStep { request: spend, spend: true });
        let charge = Charge { key_digest, account, version, limit_request, spend };
        self.queues.charges.submit(name.as_str(), charge).await
    }
}

impl BatchHandler for ChargeBatcher {
    type Item = Charge;
    type Outcome = ChargeOutcome;

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
    let (charges, replies): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let may_be_stored = AtomicBool::new(false);
    let group = Arc::new(ChargeGroup { charges, numbers: database.clone(), may_be_stored });
    let served = match database.run_inline(ChargeGroupTx::<false>(Arc::clone(&group))).await {
        Err(fault) if is_contradicted(&fault) => {
            database.run_inline(ChargeGroupTx::<true>(Arc::clone(&group))).await
        }
        served => served,
    };
    let may_be_stored = group.may_be_stored.load(Ordering::Relaxed);
    match served.map_err(|fault| database.error(fault)) {
        Ok(outcomes) => {
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // The charge is stored even if the caller has disconnected.
                reply.send(Ok(outcome)).ok();
            }
        }
        Err(error) if group.charges.len() > 1 && error.kind() != ErrorKind::Unavailable && !may_be_stored => {
            return group.charges.iter().cloned().zip(replies).collect();
        }
        Err(error) => {
            let error = if may_be_stored { error } else { error.without_effect() };
            for reply in replies {
                reply.send(Err(error.clone())).ok();
            }
        }
    }
    Vec::new()
}

/// Charges that run together.
#[derive(Debug)]
struct ChargeGroup {
    charges: Vec<Charge>,
    numbers: PgDatabase,
    /// Whether the group may be stored: then only the database knows the outcome.
    may_be_stored: AtomicBool,
}

/// The write of a group. `LOCKS`: whether another server has conflicted, and rows are locked before they are read.
///
/// It stores with one statement, which fails if any of the rows it was computed from has changed.
struct ChargeGroupTx<const LOCKS: bool>(Arc<ChargeGroup>);

impl<const LOCKS: bool> PgTx for ChargeGroupTx<LOCKS> {
    type Outcome = Vec<ChargeOutcome>;
    const NEEDS_TRANSACTION: bool = LOCKS;
    const HAS_FALLBACK: bool = !LOCKS;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Vec<ChargeOutcome>> {
        let Self(group) = self;
        if group.may_be_stored.load(Ordering::Relaxed) {
            // The connection was lost after the statement was sent. A retry here could find rows of the first attempt:
            // a full window, an existing hold. The error makes the caller retry; the first attempt may be charged.
            let message = "the connection was lost while storing charges: retry in a few seconds";
            return Err(Error::unavailable(message).into());
        }
        let steps: Vec<RowKeys<'_>> = group.charges.iter().map(|charge| charge.spend.keys()).collect();
        let keys: Vec<AdmissionKeys<'_>> = group.charges.iter().map(Charge::keys).collect();
        if LOCKS {
            lock(db, &steps, &keys).await?;
        }
        loop {
            let rows = load(db, &steps, &keys).await?;
            if let Some(outcomes) = group.decide(db, &steps, rows).await? {
                return Ok(outcomes);
            }
        }
    }
}

impl Charge {
    fn keys(&self) -> AdmissionKeys<'_> {
        AdmissionKeys {
            digest: &self.key_digest,
            account: self.account.as_str(),
            version: self.version,
            bucket: &self.limit_request.bucket,
        }
    }
}

impl ChargeGroup {
    /// Decides the charges in order and stores them. `None` if overdue holds had to expire first.
    async fn decide(
        &self,
        db: &mut PgConnection,
        steps: &[RowKeys<'_>],
        mut rows: LoadedRows,
    ) -> DbResult<Option<Vec<ChargeOutcome>>> {
        let now = steps.iter().map(|keys| keys.now).max().unwrap_or_default();
        let mut windows = std::mem::take(&mut rows.windows);
        let admitted: Vec<_> = self
            .charges
            .iter()
            .enumerate()
            .map(|(index, charge)| {
                if !rows.live.contains(&index) {
                    return Err(ChargeOutcome::Stale);
                }
                let limit = std::slice::from_ref(&charge.limit_request);
                ChargeOutcome::allowed(rules::take(&mut windows, limit, charge.spend.request.now))
            })
            .collect();
        let mut has_expired = false;
        for (keys, _) in steps.iter().zip(&admitted).filter(|(_, admitted)| admitted.is_ok()) {
            has_expired |= rows.ledger.expire_overdue(keys)? > 0;
        }
        if has_expired {
            store(db, &rows, &AdmittedRows::default(), &self.numbers, now).await?;
            return Ok(None);
        }
        let (mut outcomes, mut keys) = (Vec::with_capacity(admitted.len()), Vec::new());
        let mut counted = HashSet::new();
        for (charge, admitted) in self.charges.iter().zip(admitted) {
            outcomes.push(match admitted {
                Ok((remaining, reset_ms)) => {
                    keys.push(charge.keys());
                    if charge.limit_request.cost > 0 {
                        counted.insert(charge.limit_request.bucket.as_str());
                    }
                    let spent = charge.spend.apply(&mut rows.ledger)?;
                    ChargeOutcome::Accepted { remaining, reset_ms, spent }
                }
                Err(outcome) => outcome,
            });
        }
        let windows = windows.iter().filter(|window| counted.contains(window.bucket.as_str())).collect();
        self.may_be_stored.store(!keys.is_empty(), Ordering::Relaxed);
        let stored = store(db, &rows, &AdmittedRows { keys, windows }, &self.numbers, now).await;
        stored.inspect_err(|fault: &DbError| {
            // A rejected statement is not stored; one whose reply was lost may be.
            self.may_be_stored.store(!is_not_stored(fault), Ordering::Relaxed);
        })?;
        Ok(Some(outcomes))
    }
}
