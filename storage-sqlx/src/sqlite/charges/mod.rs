//! Charges and spends in SQLite: concurrent ones share a transaction and its statements.
//!
//! The first caller queues a group at the writing connection. Later callers join it until the group runs. Then one
//! statement loads the rows of all items, each item is decided in order by the rules of the ledger and the limits
//! ([`ChargeBatch`]), and one statement stores the changes. A group that has its transaction to itself begins it with
//! the first statement and commits it with the last. A single spend is one text ([`single_spend`]). Unusual cases (an
//! existing hold id, an overdue hold of the wallet) run separately in the same transaction.

pub(super) mod single_spend;
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
    accounts::{
        ChargeOutcome, ChargeRequest, ChargeStore,
        charge_batch::{ChargeBatch, ChargeItem, ChargeRows},
    },
    ledger::{HoldOutcome, HoldRequest, rules::HoldStep},
};

use super::{
    SqliteDatabase, SqliteStore,
    ledger::LedgerTx,
    limits,
    writer::{TxError, TxResult, WriteQueue, WriteTx, busy},
};
use crate::error::DbResult;
use single_spend::{FastPathGate, SingleSpend};
use statements::StatementSet;

/// Most charges in a group.
const GROUP_MAX: usize = 64;
/// Capacity of the queue. Later callers receive an error that they can retry.
const WAITING_MAX: usize = 16_384;

type ChargeReply = oneshot::Sender<Result<ChargeOutcome>>;

/// A queued charge or spend.
#[derive(Clone, Debug)]
pub(super) enum ChargeQueueItem {
    Charge(ChargeRequest),
    /// A spend without a key or rate limit.
    Spend(HoldRequest),
}

impl ChargeItem for ChargeQueueItem {
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

/// The queue of charges and spends that wait for a group.
#[derive(Debug)]
pub(super) struct ChargeQueue {
    shared: Arc<ChargeQueueShared>,
}

#[derive(Debug)]
struct ChargeQueueShared {
    queue: Arc<WriteQueue>,
    file: PathBuf,
    runtime: Handle,
    statements: StatementSet,
    fast_path: FastPathGate,
    waiting: Mutex<QueuedCharge>,
}

#[derive(Debug, Default)]
struct QueuedCharge {
    items: VecDeque<(ChargeQueueItem, ChargeReply)>,
    /// Number of queued groups that will take items from the queue.
    groups: usize,
}

impl ChargeQueue {
    pub(super) fn new(database: &SqliteDatabase) -> Self {
        let (queue, file) = (Arc::clone(&database.queue), database.file.clone());
        let (runtime, statements) = (database.runtime.clone(), StatementSet::default());
        let (fast_path, waiting) = (FastPathGate::default(), Mutex::default());
        Self { shared: Arc::new(ChargeQueueShared { queue, file, runtime, statements, fast_path, waiting }) }
    }

    /// Spends, in a group with other queued items.
    pub(super) async fn spend(&self, item: HoldRequest) -> Result<HoldOutcome> {
        match self.submit(ChargeQueueItem::Spend(item)).await? {
            ChargeOutcome::Accepted { spent, .. } => Ok(spent),
            ChargeOutcome::NotCharged(error) => Err(error),
            // A spend has neither a key nor a limit.
            ChargeOutcome::Stale | ChargeOutcome::Limited { .. } => {
                Err(Error::unexpected("a spend returned the outcome of a charge"))
            }
        }
    }

    async fn submit(&self, item: ChargeQueueItem) -> Result<ChargeOutcome> {
        let (reply, outcome) = oneshot::channel();
        if let Err(error) = self.shared.join(item, reply) {
            return Ok(ChargeOutcome::NotCharged(error));
        }
        outcome.await.unwrap_or_else(|_| Err(super::closed()))
    }
}

#[async_trait]
impl ChargeStore for SqliteStore {
    async fn charge(&self, item: ChargeRequest) -> Result<ChargeOutcome> {
        item.check()?;
        self.charge_queue.submit(ChargeQueueItem::Charge(item)).await
    }
}

impl ChargeQueueShared {
    fn waiting(&self) -> MutexGuard<'_, QueuedCharge> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an item; the first one also queues a group.
    fn join(self: &Arc<Self>, item: ChargeQueueItem, reply: ChargeReply) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.items.len() >= WAITING_MAX {
            return Err(busy(&self.file));
        }
        waiting.items.push_back((item, reply));
        self.send_group(waiting);
        Ok(())
    }

    /// Queues a group if items wait, in a task that sends the replies.
    fn send_group(self: &Arc<Self>, mut waiting: MutexGuard<'_, QueuedCharge>) {
        if waiting.items.is_empty() || waiting.groups > 0 {
            return;
        }
        waiting.groups += 1;
        // A runtime that has shut down drops the task here, so the lock must be free.
        drop(waiting);
        let guard = DrainGuard { shared: Arc::clone(self), is_finished: false };
        self.runtime.spawn(async move {
            let mut guard = guard;
            guard.shared.run_group(ChargeGroup::default()).await;
            guard.is_finished = true;
        });
    }

    /// Runs a group and sends the replies of its members.
    async fn run_group(self: &Arc<Self>, group: ChargeGroup) {
        let group = Arc::new(group);
        let write = ChargeGroupTx { shared: Arc::clone(self), group: Arc::clone(&group) };
        let outcomes = self.queue.run(write).await;
        // Members of a group that never ran also receive a reply.
        let (items, replies) = (group.items(self), group.replies());
        match outcomes {
            Ok(outcomes) => {
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    // The charge is stored even if the caller has disconnected.
                    reply.send(Ok(outcome)).ok();
                }
            }
            // One member may have caused the error, so each member runs in its own group.
            Err(error)
                if items.len() > 1 && error.kind() != ErrorKind::Unavailable && !group.is_written() =>
            {
                for (item, reply) in items.iter().zip(replies) {
                    Box::pin(self.run_group(ChargeGroup::alone(item.clone(), reply))).await;
                }
            }
            Err(error) => {
                for reply in replies {
                    reply.send(group.failed(error.clone())).ok();
                }
            }
        }
    }
}

/// Drops the waiting items if a runtime shutdown ends the task of a group early.
struct DrainGuard {
    shared: Arc<ChargeQueueShared>,
    is_finished: bool,
}

impl Drop for DrainGuard {
    fn drop(&mut self) {
        if !self.is_finished {
            let mut waiting = self.shared.waiting();
            let dropped = std::mem::take(&mut *waiting);
            drop(waiting);
            // Dropped replies make the callers return that the store is closed.
            drop(dropped);
        }
    }
}

/// Charges that run together.
#[derive(Debug, Default)]
struct ChargeGroup {
    members: Mutex<Option<GroupMembers>>,
    /// Whether all rows are written, so that only the commit can still fail.
    is_written: AtomicBool,
}

#[derive(Debug)]
struct GroupMembers {
    items: Arc<[ChargeQueueItem]>,
    replies: Vec<ChargeReply>,
    /// Whether they came from the queue and can return to it.
    are_from_queue: bool,
}

impl ChargeGroup {
    fn alone(item: ChargeQueueItem, reply: ChargeReply) -> Self {
        let members = GroupMembers { items: [item].into(), replies: vec![reply], are_from_queue: false };
        Self { members: Mutex::new(Some(members)), is_written: AtomicBool::new(false) }
    }

    fn members(&self) -> MutexGuard<'_, Option<GroupMembers>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The items of the group. The first call closes the group.
    fn items(&self, shared: &Arc<ChargeQueueShared>) -> Arc<[ChargeQueueItem]> {
        let mut members = self.members();
        if let Some(members) = &*members {
            return Arc::clone(&members.items);
        }
        let mut waiting = shared.waiting();
        // Callers that disconnected are not charged.
        waiting.items.retain(|(_, reply)| !reply.is_closed());
        let count = waiting.items.len().min(GROUP_MAX);
        let (items, replies): (Vec<_>, Vec<_>) = waiting.items.drain(..count).unzip();
        waiting.groups = waiting.groups.saturating_sub(1);
        shared.send_group(waiting);
        let items: Arc<[ChargeQueueItem]> = items.into();
        *members = Some(GroupMembers { items: Arc::clone(&items), replies, are_from_queue: true });
        items
    }

    /// Returns the members to the queue because the transaction could not begin.
    ///
    /// Until the group runs again, callers can join it or disconnect.
    fn reopen(&self, shared: &ChargeQueueShared) {
        let mut members = self.members();
        if let Some(GroupMembers { items, replies, .. }) = members.take_if(|members| members.are_from_queue) {
            let mut waiting = shared.waiting();
            waiting.groups += 1;
            for member in items.iter().cloned().zip(replies).rev() {
                waiting.items.push_front(member);
            }
        }
    }

    /// Removes callers that disconnected since the group was closed: they are not charged.
    fn drop_disconnected(
        &self,
        items: Arc<[ChargeQueueItem]>,
        found: Vec<ChargeRows>,
    ) -> (Arc<[ChargeQueueItem]>, Vec<ChargeRows>) {
        let mut members = self.members();
        let Some(members) = members.as_mut() else { return (items, found) };
        if !members.replies.iter().any(ChargeReply::is_closed) {
            return (items, found);
        }
        let all = items.iter().cloned().zip(std::mem::take(&mut members.replies)).zip(found);
        let (stayed, found): (Vec<_>, Vec<_>) = all.filter(|((_, reply), _)| !reply.is_closed()).unzip();
        let (items, replies): (Vec<_>, Vec<_>) = stayed.into_iter().unzip();
        (members.items, members.replies) = (items.into(), replies);
        (Arc::clone(&members.items), found)
    }

    fn replies(&self) -> Vec<ChargeReply> {
        self.members().as_mut().map(|members| std::mem::take(&mut members.replies)).unwrap_or_default()
    }

    /// The reply to the members after an error.
    fn failed(&self, error: Error) -> Result<ChargeOutcome> {
        if self.is_written() { Err(error) } else { Ok(ChargeOutcome::NotCharged(error)) }
    }

    fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Relaxed)
    }
}

/// The write of a group.
struct ChargeGroupTx {
    shared: Arc<ChargeQueueShared>,
    group: Arc<ChargeGroup>,
}

impl WriteTx for ChargeGroupTx {
    type Outcome = Vec<ChargeOutcome>;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<Vec<ChargeOutcome>> {
        self.group.is_written.store(false, Ordering::Relaxed);
        let items = self.group.items(&self.shared);
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let batch = ChargeBatch::decide(&items, self.shared.statements.load(db, &items).await?)?;
        self.store(db, &items, batch).await
    }

    async fn run_standalone(&self, db: &mut SqliteConnection) -> Option<TxResult<Vec<ChargeOutcome>>> {
        Some(self.run_in_own_transaction(db).await)
    }
}

impl ChargeGroupTx {
    /// Runs in its own transaction, with one or two round trips.
    async fn run_in_own_transaction(&self, db: &mut SqliteConnection) -> TxResult<Vec<ChargeOutcome>> {
        self.group.is_written.store(false, Ordering::Relaxed);
        let items = self.group.items(&self.shared);
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let reopen = |failed: &TxError| {
            if let TxError::Blocked(_) = failed {
                self.group.reopen(&self.shared);
            }
        };
        if let [ChargeQueueItem::Spend(item)] = &*items
            && let Some(fast_path) = SingleSpend::for_request(item)
            && self.shared.fast_path.next()
        {
            let spent = fast_path.run(db, &self.group.is_written).await;
            if let Ok(None) | Err(TxError::Blocked(_)) = spent {
                self.shared.fast_path.pass();
            }
            if let Some(spent) = spent.inspect_err(reopen)? {
                return Ok(vec![ChargeOutcome::Accepted { remaining: 0, reset_ms: 0, spent }]);
            }
        }
        let statements = &self.shared.statements;
        let found = statements.begin_and_load(db, &items).await.map_err(TxError::at_first);
        let found = found.inspect_err(reopen)?;
        // Callers may have disconnected while the transaction waited for the lock.
        let (items, found) = self.group.drop_disconnected(items, found);
        let mut batch = ChargeBatch::decide(&items, found).map_err(TxError::from_write)?;
        if !batch.entries.is_empty() && batch.outcomes.iter().all(Option::is_some) {
            let outcomes = std::mem::take(&mut batch.outcomes).into_iter().flatten().collect();
            statements.store_and_commit(db, &batch, &self.group.is_written).await?;
            return Ok(outcomes);
        }
        let outcomes = self.store(db, &items, batch).await.map_err(TxError::from_write)?;
        sqlx::raw_sql("COMMIT").execute(db).await.map_err(TxError::to_commit)?;
        Ok(outcomes)
    }

    /// Stores the batch and runs the separate items. Only the commit is missing afterwards.
    async fn store(
        &self,
        db: &mut SqliteConnection,
        items: &[ChargeQueueItem],
        batch: ChargeBatch,
    ) -> DbResult<Vec<ChargeOutcome>> {
        self.shared.statements.store(db, &batch).await?;
        let mut outcomes = Vec::with_capacity(items.len());
        for (item, outcome) in items.iter().zip(batch.outcomes) {
            outcomes.push(match outcome {
                Some(outcome) => outcome,
                None => run_separately(db, item).await?,
            });
        }
        self.group.is_written.store(true, Ordering::Relaxed);
        Ok(outcomes)
    }
}

/// Runs one charge whose key is already checked, or a spend, with the statements of limits and ledger.
async fn run_separately(db: &mut SqliteConnection, item: &ChargeQueueItem) -> DbResult<ChargeOutcome> {
    let (remaining, reset_ms) = match item.charge() {
        None => (0, 0),
        Some(charge) => {
            let take = limits::AcquireLimitTx {
                requests: vec![charge.limit_request.clone()],
                now: charge.spend.now,
            };
            match ChargeOutcome::allowed(take.run(db).await?) {
                Ok(dropped) => dropped,
                Err(limited) => return Ok(limited),
            }
        }
    };
    let spent = LedgerTx(HoldStep { request: item.spend().clone(), spend: true }).run(db).await?;
    Ok(ChargeOutcome::Accepted { remaining, reset_ms, spent })
}
