//! Operations of the ledger: load, decide, store.
//!
//! One statement loads the rows that a step needs, the rules of the ledger decide ([`LedgerStep`]), and one statement
//! stores the changes unless any of the rows has changed in between. Then the step runs again, in a transaction that
//! locks its pools first: concurrent steps of a wallet wait in order instead of starting again and again.

use std::sync::Arc;

use sqlx::PgConnection;
use transcript_core::{Result, ledger::rules::LedgerStep};

use super::{
    load::{load, lock},
    store::{AdmittedRows, store},
};
use crate::{
    error::DbResult,
    postgres::{
        database::{PgDatabase, WriteTx},
        sqlstate::is_contradicted,
    },
};

/// A step of the ledger. `LOCKS`: whether its pools are locked before they are read.
struct StepTx<S, const LOCKS: bool> {
    step: Arc<S>,
    numbers: PgDatabase,
}

impl<S: LedgerStep, const LOCKS: bool> WriteTx for StepTx<S, LOCKS> {
    type Outcome = S::Outcome;
    // Without locks: a statement that only reads, and one that stores only what follows from it.
    const IS_SINGLE_STATEMENT: bool = !LOCKS;
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
            store(db, &rows, &AdmittedRows::default(), &self.numbers, now).await?;
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
    }
}

/// Runs a step.
pub(super) async fn run<S: LedgerStep>(database: &PgDatabase, step: S) -> Result<S::Outcome> {
    let (step, numbers) = (Arc::new(step), database.clone());
    let first = StepTx::<S, false> { step: Arc::clone(&step), numbers: numbers.clone() };
    let outcome = match database.attempt(first).await {
        Err(fault) if is_contradicted(&fault) => database.attempt(StepTx::<S, true> { step, numbers }).await,
        outcome => outcome,
    };
    outcome.map_err(|fault| database.error(fault))
}
