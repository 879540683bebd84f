//! Charges in PostgreSQL: those that wait at the same time share a transaction, and its statements.
//!
//! Charges wait in a line, and an account's are never served side by side, so that those of one server are never in
//! each other's way. Whoever asks is served at once where a task is free; else they wait, and those who
//! have gathered are served together: one statement reads what they need, each is decided in its turn with the
//! rules of the ledger and the limits ([`Batch`]), and one stores what they changed, unless another server has changed
//! any of it in between. Then it is done again, and from then on the rows are locked first. What is out of the
//! ordinary (a hold id that is known, a hold of the wallet that is overdue) goes its own way.

mod statements;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use sqlx::PgConnection;
use transcript_core::{
    Error, ErrorKind, Result,
    accounts::{ChargeOutcome, ChargeRequest, Charges},
};

use super::{
    PostgresStore,
    database::{Change, Database},
    fault::{Verdict, verdict},
    ledger, limits,
    line::{Line, Member, Serve},
};
use crate::{
    batch::Batch,
    error::{Fault, Work},
};

/// Where charges are asked for, and gather.
pub(super) type Tellers = Line<Teller>;

/// Who serves charges.
pub(super) enum Teller {}

#[async_trait]
impl Charges for PostgresStore {
    async fn charge(&self, ask: ChargeRequest) -> Result<ChargeOutcome> {
        ask.check()?;
        let account = ask.account.clone();
        self.tellers.ask(account.as_str(), ask).await
    }
}

impl Serve for Teller {
    type Ask = ChargeRequest;
    type Outcome = ChargeOutcome;

    fn undone(error: Error) -> Result<ChargeOutcome> {
        Ok(ChargeOutcome::Undone(error))
    }

    async fn serve(database: &Database, members: Vec<Member<Self>>) {
        // One of them may be to blame: nobody pays for another's fault.
        for member in serve_together(database, members).await {
            serve_together(database, vec![member]).await;
        }
    }
}

/// Serves these; returned are those of several that failed together, and must be served one by one.
async fn serve_together(database: &Database, members: Vec<Member<Teller>>) -> Vec<Member<Teller>> {
    let (asks, answers): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let group = Arc::new(Group::of(asks, database));
    let served = database.attempt_here(Together(Arc::clone(&group))).await;
    let served = served.map_err(|fault| database.error(fault));
    match served {
        Ok(outcomes) => {
            for ((ask, answer), outcome) in group.asks.iter().zip(answers).zip(outcomes) {
                let outcome = match outcome {
                    Some(outcome) => Ok(outcome),
                    None => by_itself(database, ask).await,
                };
                // Nobody may be waiting any more; it is charged all the same.
                answer.send(outcome).ok();
            }
        }
        Err(error)
            if group.asks.len() > 1
                && error.kind() != ErrorKind::Unavailable
                && !group.may_be_stored.load(Ordering::Relaxed) =>
        {
            return group.asks.iter().cloned().zip(answers).collect();
        }
        Err(error) => {
            for answer in answers {
                answer.send(group.failed(error.clone())).ok();
            }
        }
    }
    Vec::new()
}

/// Charges that are made together.
#[derive(Debug)]
struct Group {
    asks: Vec<ChargeRequest>,
    numbers: Database,
    /// Whether another server was in the way: from then on rows are locked before they are read.
    is_contended: AtomicBool,
    /// Whether they may have been stored: from then on only the database knows.
    may_be_stored: AtomicBool,
}

impl Group {
    fn of(asks: Vec<ChargeRequest>, numbers: &Database) -> Self {
        let (is_contended, may_be_stored) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { asks, numbers: numbers.clone(), is_contended, may_be_stored }
    }

    /// What its members are told when it failed.
    fn failed(&self, error: Error) -> Result<ChargeOutcome> {
        if self.may_be_stored.load(Ordering::Relaxed) { Err(error) } else { Ok(ChargeOutcome::Undone(error)) }
    }
}

/// The change that a group is. What it stores is one statement, which ends itself where anything that it was computed
/// of has changed.
struct Together(Arc<Group>);

impl Change for Together {
    /// None for those that must go their own way.
    type Outcome = Vec<Option<ChargeOutcome>>;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Vec<Option<ChargeOutcome>>> {
        let Self(group) = self;
        if group.may_be_stored.load(Ordering::Relaxed) {
            // The connection was lost after they were sent, and the same again would find its own traces: a window
            // that is full, a hold that is known. Whoever asked has to ask anew, knowing that they may be charged.
            let message = "the connection was lost while charges were stored: try again in a moment";
            return Err(Error::unavailable(message).into());
        }
        if !group.is_contended.load(Ordering::Relaxed) {
            return group.make(db).await;
        }
        sqlx::raw_sql("BEGIN ISOLATION LEVEL READ COMMITTED").execute(&mut *db).await?;
        let made = match statements::lock(db, &group.asks).await {
            Ok(()) => group.make(db).await,
            Err(fault) => Err(fault),
        };
        match made {
            Ok(outcomes) => {
                group.may_be_stored.store(true, Ordering::Relaxed);
                let committed = sqlx::raw_sql("COMMIT").execute(db).await.map_err(Fault::from);
                committed.inspect_err(|fault| group.sent(fault))?;
                Ok(outcomes)
            }
            Err(fault) => {
                if verdict(&fault) != Verdict::Lost {
                    sqlx::raw_sql("ROLLBACK").execute(db).await?;
                }
                Err(fault)
            }
        }
    }
}

impl Group {
    async fn make(&self, db: &mut PgConnection) -> Work<Vec<Option<ChargeOutcome>>> {
        let (found, read) = statements::load(db, &self.asks).await?;
        let batch = Batch::decide(&self.asks, found)?;
        if !batch.is_empty() {
            self.may_be_stored.store(true, Ordering::Relaxed);
            let stored = statements::store(db, &self.asks, &batch, &read, &self.numbers).await;
            stored.inspect_err(|fault| self.sent(fault))?;
        }
        Ok(batch.outcomes)
    }

    /// Notes what the fault of a statement says that would have stored them. No attempt begins where an earlier one may
    /// have stored them, so what is known of this one is all that is known.
    fn sent(&self, fault: &Fault) {
        let verdict = verdict(fault);
        // What the server has refused, it has not stored; a commit that nobody heard of may have been.
        self.may_be_stored.store(verdict == Verdict::Lost, Ordering::Relaxed);
        self.is_contended.fetch_or(verdict == Verdict::Again, Ordering::Relaxed);
    }
}

/// Charges a call whose key is known to open its account, step by step.
async fn by_itself(database: &Database, ask: &ChargeRequest) -> Result<ChargeOutcome> {
    let taken = limits::take(database, vec![ask.take.clone()], ask.spend.now).await;
    let (remaining, reset_ms) = match taken.map(ChargeOutcome::allowed) {
        Ok(Ok(left)) => left,
        Ok(Err(limited)) => return Ok(limited),
        Err(error) => return Ok(ChargeOutcome::Undone(error)),
    };
    let spent = ledger::take(database, ask.spend.clone(), true).await?;
    Ok(ChargeOutcome::Counted { remaining, reset_ms, spent })
}
