//! Operations of the ledger: load, decide, store.
//!
//! One statement loads the rows that a step needs, the rules of the ledger decide ([`LedgerStep`]), and one statement
//! stores the changes unless any of the rows has changed in between. Then the step runs again, in a transaction that
//! locks its pools first: concurrent steps of a wallet wait in order instead of starting again and again.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use sqlx::PgConnection;
use transcript_core::{Error, Result, ledger::rules::LedgerStep};

use super::{
    load::{load, lock},
    store::{AdmittedRows, store},
};
use crate::{
    error::{DbError, DbResult},
    postgres::{
        database::{PgDatabase, PgTx},
        sqlstate::{is_contradicted, is_not_stored},
    },
};

/// Counts the failed tries of a write that may be stored: the reply or the commit was lost.
#[derive(Debug, Default)]
pub(super) struct UncertainTries(AtomicU32);

impl UncertainTries {
    /// Runs the statement that stores the write.
    pub(super) async fn track<T>(&self, statement: impl Future<Output = DbResult<T>>) -> DbResult<T> {
        self.0.fetch_add(1, Ordering::Relaxed);
        statement.await.inspect_err(|fault| {
            if is_not_stored(fault) {
                self.take_back();
            }
        })
    }

    /// Takes back the last try, which is certainly not stored.
    pub(super) fn take_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// The same tries, of one write of a batch.
    pub(super) fn split(&self) -> Arc<Self> {
        Arc::new(Self(AtomicU32::new(self.0.load(Ordering::Relaxed))))
    }

    /// The error of the port after the last try.
    pub(super) fn error(&self, database: &PgDatabase, fault: DbError) -> Error {
        let error = database.error(fault);
        if self.0.load(Ordering::Relaxed) == 0 { error.without_effect() } else { error }
    }
}

/// A step of the ledger. `LOCKS`: whether its pools are locked before they are read.
struct StepTx<S, const LOCKS: bool> {
    step: Arc<S>,
    numbers: PgDatabase,
    tries: Arc<UncertainTries>,
}

impl<S: LedgerStep, const LOCKS: bool> PgTx for StepTx<S, LOCKS> {
    type Outcome = S::Outcome;
    // Without locks: a statement that only reads, and one that stores only what follows from it.
    const NEEDS_TRANSACTION: bool = LOCKS;
    const HAS_FALLBACK: bool = !LOCKS;

    async fn run(&self, db: &mut PgConnection) -> DbResult<S::Outcome> {
        let keys = [self.step.keys()];
        let now = keys[0].now;
        if LOCKS {
            lock(db, &keys, &[]).await?;
        }
        loop {
            let mut rows = load(db, &keys, &[]).await?;
            // Separate: no statement stores ended holds and a new one.
            let has_expired = rows.ledger.expire_overdue(&keys[0])? > 0;
            let outcome = if has_expired { None } else { Some(self.step.apply(&mut rows.ledger)?) };
            let admitted = AdmittedRows::default();
            let storing = store(db, &rows, &admitted, &self.numbers, now);
            match outcome {
                Some(outcome) => return self.tries.track(storing).await.map(|()| outcome),
                None => storing.await?,
            }
        }
    }
}

pub(super) async fn run<S: LedgerStep>(database: &PgDatabase, step: S) -> Result<S::Outcome> {
    run_after(database, step, &Arc::default()).await
}

/// Runs a step after other tries of it.
pub(super) async fn run_after<S: LedgerStep>(
    database: &PgDatabase,
    step: S,
    tries: &Arc<UncertainTries>,
) -> Result<S::Outcome> {
    let (step, numbers) = (Arc::new(step), database.clone());
    let first =
        StepTx::<S, false> { step: Arc::clone(&step), numbers: numbers.clone(), tries: Arc::clone(tries) };
    let outcome = match database.attempt(first).await {
        Err(fault) if is_contradicted(&fault) => {
            database.attempt(StepTx::<S, true> { step, numbers, tries: Arc::clone(tries) }).await
        }
        outcome => outcome,
    };
    outcome.map_err(|fault| tries.error(database, fault))
}
