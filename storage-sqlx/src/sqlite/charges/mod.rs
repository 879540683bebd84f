//! Charges and spends in SQLite: those that wait for the disk at the same time share a transaction, and its statements.
//!
//! The first who asks has a group queued before the connection that writes. Whoever asks until it is the
//! group's turn joins it. Then one statement loads what all of them need, each is decided in its turn with the
//! rules of the ledger and the limits ([`Batch`]), and one stores what they changed; the first begins the transaction
//! and the last commits it, where nobody else shares it. A spend that is alone is one text ([`lone`]). What is out of the
//! ordinary (a hold id that is known, a hold of the wallet that is overdue) goes its own way in the same transaction.

pub(super) mod lone;
pub(super) mod statements;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use sqlx::SqliteConnection;
use tokio::{runtime::Handle, sync::oneshot};
use transcript_core::{
    Error, ErrorKind, Result,
    accounts::{ChargeOutcome, ChargeRequest, Charges},
    ledger::{HoldOutcome, HoldRequest},
};

use super::{
    Database, SqliteStore,
    ledger::Hold,
    limits,
    writer::{Attempt, Change, Failed, Queue, busy},
};
use crate::{
    batch::{Asked, Batch, Found},
    error::Work,
};
use lone::{Lone, Turns};
use statements::Statements;

/// How many charges share their statements at most.
const GROUP_MAX: usize = 64;
/// How many may wait. Whoever comes later is told to try again.
const WAITING_MAX: usize = 16_384;

type Answer = oneshot::Sender<Result<ChargeOutcome>>;

/// Who asks for credits.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Charge(ChargeRequest),
    /// By the ledger alone.
    Spend(HoldRequest),
}

impl Asked for Ask {
    fn spend(&self) -> &HoldRequest {
        match self {
            Self::Charge(charge) => &charge.spend,
            Self::Spend(spend) => spend,
        }
    }

    fn charge(&self) -> Option<&ChargeRequest> {
        match self {
            Self::Charge(charge) => Some(charge),
            Self::Spend(_) => None,
        }
    }
}

/// Where charges are asked for, and gather.
#[derive(Debug)]
pub(super) struct Counter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Arc<Queue>,
    file: PathBuf,
    runtime: Handle,
    statements: Statements,
    lone: Turns,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    line: VecDeque<(Ask, Answer)>,
    /// How many groups will still call in whoever waits.
    groups: usize,
}

impl Counter {
    pub(super) fn new(database: &Database) -> Self {
        let (queue, file) = (Arc::clone(&database.queue), database.file.clone());
        let (runtime, statements) = (database.runtime.clone(), Statements::default());
        let (lone, waiting) = (Turns::default(), Mutex::default());
        Self { shared: Arc::new(Shared { queue, file, runtime, statements, lone, waiting }) }
    }

    /// Spends, together with whoever waits.
    pub(super) async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        match self.ask(Ask::Spend(ask)).await? {
            ChargeOutcome::Counted { spent, .. } => Ok(spent),
            ChargeOutcome::Undone(error) => Err(error),
            // Nobody asked for either.
            ChargeOutcome::Stale | ChargeOutcome::Limited { .. } => {
                Err(Error::unexpected("a spend was answered as a charge"))
            }
        }
    }

    async fn ask(&self, ask: Ask) -> Result<ChargeOutcome> {
        let (answer, outcome) = oneshot::channel();
        if let Err(error) = self.shared.join(ask, answer) {
            return Ok(ChargeOutcome::Undone(error));
        }
        outcome.await.unwrap_or_else(|_| Err(super::closed()))
    }
}

#[async_trait]
impl Charges for SqliteStore {
    async fn charge(&self, ask: ChargeRequest) -> Result<ChargeOutcome> {
        ask.check()?;
        self.counter.ask(Ask::Charge(ask)).await
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait; the first one has a group queued.
    fn join(self: &Arc<Self>, ask: Ask, answer: Answer) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.line.len() >= WAITING_MAX {
            return Err(busy(&self.file));
        }
        waiting.line.push_back((ask, answer));
        self.send_group(waiting);
        Ok(())
    }

    /// Sees to it that a group is queued for whoever waits, in a task that then answers them.
    fn send_group(self: &Arc<Self>, mut waiting: MutexGuard<'_, Waiting>) {
        if waiting.line.is_empty() || waiting.groups > 0 {
            return;
        }
        waiting.groups += 1;
        // A runtime that is gone drops the task here and now.
        drop(waiting);
        let watch = Watch { shared: Arc::clone(self), is_over: false };
        self.runtime.spawn(async move {
            let mut watch = watch;
            watch.shared.see_through(Group::default()).await;
            watch.is_over = true;
        });
    }

    /// Has a group charged and its members answered.
    async fn see_through(self: &Arc<Self>, group: Group) {
        let group = Arc::new(group);
        let change = Together { shared: Arc::clone(self), group: Arc::clone(&group) };
        let outcomes = self.queue.make(change).await;
        // Those who waited for a group that never had its turn are answered as well.
        let (asks, answers) = (group.asks(self), group.answers());
        match outcomes {
            Ok(outcomes) => {
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    // Nobody may be waiting any more; it is charged all the same.
                    answer.send(Ok(outcome)).ok();
                }
            }
            // One of them may be to blame: nobody pays for another's fault.
            Err(error) if asks.len() > 1 && error.kind() != ErrorKind::Unavailable && !group.is_made() => {
                for (ask, answer) in asks.iter().zip(answers) {
                    Box::pin(self.see_through(Group::alone(ask.clone(), answer))).await;
                }
            }
            Err(error) => {
                for answer in answers {
                    answer.send(group.failed(error.clone())).ok();
                }
            }
        }
    }
}

/// Sees to it that nobody waits for a group whose task ended early, with the runtime.
struct Watch {
    shared: Arc<Shared>,
    is_over: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.shared.waiting();
            let left = std::mem::take(&mut *waiting);
            drop(waiting);
            // Whoever asked hears that the store is closed.
            drop(left);
        }
    }
}

/// Charges that are made together.
#[derive(Debug, Default)]
struct Group {
    members: Mutex<Option<Members>>,
    /// Whether all was made and waits for its commit: from then on only the commit tells what became of it.
    is_made: AtomicBool,
}

#[derive(Debug)]
struct Members {
    asks: Arc<[Ask]>,
    answers: Vec<Answer>,
    /// Whether they came from the line, and may go back to it.
    are_from_line: bool,
}

impl Group {
    fn alone(ask: Ask, answer: Answer) -> Self {
        let members = Members { asks: [ask].into(), answers: vec![answer], are_from_line: false };
        Self { members: Mutex::new(Some(members)), is_made: AtomicBool::new(false) }
    }

    fn members(&self) -> MutexGuard<'_, Option<Members>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is in the group. The first call closes it.
    fn asks(&self, shared: &Arc<Shared>) -> Arc<[Ask]> {
        let mut members = self.members();
        if let Some(members) = &*members {
            return Arc::clone(&members.asks);
        }
        let mut waiting = shared.waiting();
        // Whoever left need not be charged.
        waiting.line.retain(|(_, answer)| !answer.is_closed());
        let count = waiting.line.len().min(GROUP_MAX);
        let (asks, answers): (Vec<_>, Vec<_>) = waiting.line.drain(..count).unzip();
        waiting.groups = waiting.groups.saturating_sub(1);
        shared.send_group(waiting);
        let asks: Arc<[Ask]> = asks.into();
        *members = Some(Members { asks: Arc::clone(&asks), answers, are_from_line: true });
        asks
    }

    /// Opens the group again, before anything was made: it is not its turn yet. Until it is, others may join and some may
    /// leave.
    fn reopen(&self, shared: &Shared) {
        let mut members = self.members();
        if let Some(Members { asks, answers, .. }) = members.take_if(|members| members.are_from_line) {
            let mut waiting = shared.waiting();
            waiting.groups += 1;
            for member in asks.iter().cloned().zip(answers).rev() {
                waiting.line.push_front(member);
            }
        }
    }

    /// Parts with those who left since the group was closed: they need not be charged.
    fn without_who_left(&self, asks: Arc<[Ask]>, found: Vec<Found>) -> (Arc<[Ask]>, Vec<Found>) {
        let mut members = self.members();
        let Some(members) = members.as_mut() else { return (asks, found) };
        if !members.answers.iter().any(Answer::is_closed) {
            return (asks, found);
        }
        let all = asks.iter().cloned().zip(std::mem::take(&mut members.answers)).zip(found);
        let (stayed, found): (Vec<_>, Vec<_>) = all.filter(|((_, answer), _)| !answer.is_closed()).unzip();
        let (asks, answers): (Vec<_>, Vec<_>) = stayed.into_iter().unzip();
        (members.asks, members.answers) = (asks.into(), answers);
        (Arc::clone(&members.asks), found)
    }

    fn answers(&self) -> Vec<Answer> {
        self.members().as_mut().map(|members| std::mem::take(&mut members.answers)).unwrap_or_default()
    }

    /// What its members are told when it failed.
    fn failed(&self, error: Error) -> Result<ChargeOutcome> {
        if self.is_made() { Err(error) } else { Ok(ChargeOutcome::Undone(error)) }
    }

    fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Relaxed)
    }
}

/// The change that a group is.
struct Together {
    shared: Arc<Shared>,
    group: Arc<Group>,
}

impl Change for Together {
    type Outcome = Vec<ChargeOutcome>;

    async fn make(&self, db: &mut SqliteConnection) -> Work<Vec<ChargeOutcome>> {
        self.group.is_made.store(false, Ordering::Relaxed);
        let asks = self.group.asks(&self.shared);
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let batch = Batch::decide(&asks, self.shared.statements.load(db, &asks).await?)?;
        self.store(db, &asks, batch).await
    }

    async fn make_alone(&self, db: &mut SqliteConnection) -> Option<Attempt<Vec<ChargeOutcome>>> {
        Some(self.make_at_once(db).await)
    }
}

impl Together {
    /// Makes it in a transaction of its own, with one hop or two.
    async fn make_at_once(&self, db: &mut SqliteConnection) -> Attempt<Vec<ChargeOutcome>> {
        self.group.is_made.store(false, Ordering::Relaxed);
        let asks = self.group.asks(&self.shared);
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let reopen = |failed: &Failed| {
            if let Failed::Blocked(_) = failed {
                self.group.reopen(&self.shared);
            }
        };
        if let [Ask::Spend(ask)] = &*asks
            && let Some(lone) = Lone::of(ask)
            && self.shared.lone.next()
        {
            let spent = lone.make(db, &self.group.is_made).await;
            if let Ok(None) | Err(Failed::Blocked(_)) = spent {
                self.shared.lone.pass();
            }
            if let Some(spent) = spent.inspect_err(reopen)? {
                return Ok(vec![ChargeOutcome::Counted { remaining: 0, reset_ms: 0, spent }]);
            }
        }
        let statements = &self.shared.statements;
        let found = statements.begin_and_load(db, &asks).await.map_err(Failed::at_first);
        let found = found.inspect_err(reopen)?;
        // Waiting for the lock may have taken a while.
        let (asks, found) = self.group.without_who_left(asks, found);
        let mut batch = Batch::decide(&asks, found).map_err(Failed::of)?;
        if !batch.entries.is_empty() && batch.outcomes.iter().all(Option::is_some) {
            let outcomes = std::mem::take(&mut batch.outcomes).into_iter().flatten().collect();
            statements.store_and_commit(db, &batch, &self.group.is_made).await?;
            return Ok(outcomes);
        }
        let outcomes = self.store(db, &asks, batch).await.map_err(Failed::of)?;
        sqlx::raw_sql("COMMIT").execute(db).await.map_err(Failed::to_commit)?;
        Ok(outcomes)
    }

    /// Stores what was decided, and makes what goes its own way. Only the commit is missing then.
    async fn store(&self, db: &mut SqliteConnection, asks: &[Ask], batch: Batch) -> Work<Vec<ChargeOutcome>> {
        self.shared.statements.store(db, &batch).await?;
        let mut outcomes = Vec::with_capacity(asks.len());
        for (ask, outcome) in asks.iter().zip(batch.outcomes) {
            outcomes.push(match outcome {
                Some(outcome) => outcome,
                None => by_itself(db, ask).await?,
            });
        }
        self.group.is_made.store(true, Ordering::Relaxed);
        Ok(outcomes)
    }
}

/// Charges a call whose key is known to open its account, or spends, with the statements of limits and ledger.
async fn by_itself(db: &mut SqliteConnection, ask: &Ask) -> Work<ChargeOutcome> {
    let (remaining, reset_ms) = match ask.charge() {
        None => (0, 0),
        Some(charge) => {
            let take = limits::Request { takes: vec![charge.take.clone()], now: charge.spend.now };
            match ChargeOutcome::allowed(take.make(db).await?) {
                Ok(left) => left,
                Err(limited) => return Ok(limited),
            }
        }
    };
    let spent = Hold { ask: ask.spend().clone(), spend: true }.make(db).await?;
    Ok(ChargeOutcome::Counted { remaining, reset_ms, spent })
}
