//! Holds that extend themselves until they are settled or released.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use super::{Balance, HoldOutcome, HoldRequest, HoldState, Ledger, SettleOutcome, SettleRequest};
use crate::{
    error::{ErrorKind, Result, Retry},
    failure_log::log_failure,
    ids::HoldId,
    retry::{
        Backoff, EffectFlag, RetryPolicy, StorePolicy, deadline_after, is_store_failure, keep_renewed, retry,
        retry_store, retry_store_persistently, retry_uncertain, with_timeout,
    },
    tasks::BackgroundTasks,
    time::{Clock, Timestamp},
};

/// Pauses between the tries to release a hold that the ledger may still open.
const CANCELLED_BACKOFF: Backoff = Backoff { first: Duration::from_millis(250), max: Duration::from_secs(2) };

#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldTimes {
    /// How long a hold lasts without an extension.
    pub(crate) lifetime: Duration,
    /// How often a hold is extended.
    pub(crate) heartbeat: Duration,
    /// Timeout of one ledger call.
    pub(crate) store_timeout: Duration,
}

impl HoldTimes {
    /// For calls that a caller waits for: the caller must get the ledger's failure before its own timeout.
    fn request_policy(&self) -> StorePolicy {
        StorePolicy { attempt: self.store_timeout / 2, total: self.store_timeout }
    }

    /// For the end of a hold: as long as the hold lasts.
    fn end_policy(&self) -> StorePolicy {
        StorePolicy { attempt: self.store_timeout, total: self.lifetime }
    }
}

/// Opens holds in a ledger. A clone is a handle to the same one.
#[derive(Clone, Debug)]
pub(crate) struct HoldManager(Arc<HoldManagerInner>);

#[derive(Debug)]
struct HoldManagerInner {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    times: HoldTimes,
    tasks: BackgroundTasks,
}

/// Outcome of opening a hold.
#[derive(Debug)]
pub(crate) enum HoldResult {
    /// The hold is open.
    Held(Box<HoldGuard>),
    /// Nothing is held; the outcome is never `Held`.
    Refused(HoldOutcome),
}

/// Outcome of a spend.
#[derive(Debug)]
pub(crate) enum SpendResult {
    /// The amount is spent. The balances are those after it.
    Spent(Vec<Balance>),
    /// Nothing is spent; the outcome is never `Held`.
    Refused(HoldOutcome),
    /// The ledger did not confirm: the amount may be spent, now or later.
    Unknown,
}

impl SpendResult {
    /// The result of an outcome, which is certain if no earlier try may still take effect.
    pub(crate) fn new(outcome: HoldOutcome, is_certain: bool) -> Self {
        match outcome {
            HoldOutcome::Held { balances }
            | HoldOutcome::Exists { state: HoldState::Settled { .. }, balances } => Self::Spent(balances),
            outcome if is_certain => Self::Refused(outcome),
            _ => Self::Unknown,
        }
    }
}

impl HoldManager {
    pub(crate) fn new(
        ledger: &Arc<dyn Ledger>,
        clock: &Arc<dyn Clock>,
        times: HoldTimes,
        tasks: &BackgroundTasks,
    ) -> Self {
        let (ledger, clock, tasks) = (Arc::clone(ledger), Arc::clone(clock), tasks.clone());
        Self(Arc::new(HoldManagerInner { ledger, clock, times, tasks }))
    }

    /// The end of a hold that is opened or extended at `now`.
    pub(crate) fn expires_at(&self, now: Timestamp) -> Timestamp {
        now.plus(self.0.times.lifetime)
    }

    /// Opens a hold under a new ID.
    ///
    /// # Errors
    /// The ledger's: nothing is held. A hold that the ledger may have opened is released, or expires.
    ///
    /// # Cancellation
    /// Dropping the future releases the hold. One that a slow ledger opens after that expires.
    pub(crate) async fn hold(&self, request: HoldRequest) -> Result<HoldResult> {
        let mut guard = Box::new(self.prepare(&request));
        Ok(match guard.open(&request).await? {
            Ok(_) => HoldResult::Held(guard),
            Err(outcome) => HoldResult::Refused(outcome),
        })
    }

    /// The guard of a hold that is still to be opened.
    pub(crate) fn prepare(&self, request: &HoldRequest) -> HoldGuard {
        HoldGuard {
            manager: self.clone(),
            id: request.id.clone(),
            amounts: request.legs.iter().map(|leg| leg.amount).collect(),
            pending: None,
            heartbeat: JoinSet::new(),
        }
    }

    /// Releases a hold that the ledger did not confirm, with one try.
    ///
    /// Without a heartbeat such a hold expires. More tries would only burden a ledger that fails already.
    async fn release_unconfirmed(&self, guard: &HoldGuard) {
        let spent = vec![0; guard.amounts.len()];
        let request = SettleRequest { id: guard.id.clone(), spent, now: self.0.clock.now() };
        let released = with_timeout(self.0.times.store_timeout, self.0.ledger.settle(request)).await;
        report_end(&guard.id, &[], released);
    }

    /// Holds and spends in one step, for work that is done.
    ///
    /// After [`SpendResult::Unknown`] the caller must deliver the work, because it may be charged. If it is not, the
    /// operator bears the loss.
    ///
    /// # Errors
    /// The ledger's, if it is certain that nothing is spent.
    pub(crate) async fn spend(&self, request: &HoldRequest) -> Result<SpendResult> {
        let policy = self.0.times.request_policy();
        let spend = || self.0.ledger.spend(request.clone());
        let first_try = with_timeout(policy.attempt, spend());
        let retries = |effect: EffectFlag| async move { retry_store(policy, || effect.watch(spend())).await };
        Ok(match retry_uncertain(first_try, retries).await? {
            (Ok(outcome), is_certain) => SpendResult::new(outcome, is_certain),
            (Err(error), _) => {
                log_failure!(error, [hold = %request.id, %error], "spend outcome unknown");
                SpendResult::Unknown
            }
        })
    }

    /// Settles a hold by its ID while a caller waits, for at most the store timeout.
    ///
    /// # Errors
    /// The ledger's.
    pub(crate) async fn settle(&self, id: &HoldId, spent: Vec<u64>) -> Result<SettleOutcome> {
        let request = SettleRequest { id: id.clone(), spent, now: self.0.clock.now() };
        retry_store(self.0.times.request_policy(), || self.0.ledger.settle(request.clone())).await
    }

    /// Settles a hold that no caller waits for.
    async fn settle_detached(
        &self,
        policy: StorePolicy,
        id: &HoldId,
        spent: Vec<u64>,
    ) -> Result<SettleOutcome> {
        let request = SettleRequest { id: id.clone(), spent, now: self.0.clock.now() };
        retry_store_persistently(policy, || self.0.ledger.settle(request.clone())).await
    }

    /// Releases a hold whose opening was cancelled: the ledger may still open it, for as long as a call takes.
    async fn release_cancelled(&self, id: &HoldId, spent: Vec<u64>) -> Result<SettleOutcome> {
        let policy = self.0.times.request_policy();
        let deadline = Some(deadline_after(policy.total));
        let tries = RetryPolicy { tries: u32::MAX, deadline, backoff: CANCELLED_BACKOFF };
        let judge = |_, _: &Result<SettleOutcome>| Retry::Backoff;
        let settle = |_| async {
            match self.settle_detached(policy, id, spent.clone()).await {
                Ok(SettleOutcome::HoldNotFound) => Err(Ok(SettleOutcome::HoldNotFound)),
                ended => Ok(ended),
            }
        };
        retry(tries, || 1.0, judge, settle).await.unwrap_or_else(|not_found| not_found)
    }

    /// Extends a hold in a loop.
    async fn keep_extended(self, id: HoldId) {
        let HoldTimes { heartbeat, store_timeout, .. } = self.0.times;
        let extend = || self.0.ledger.extend(&id, self.expires_at(self.0.clock.now()));
        let log = |extended: &Result<HoldState>| {
            if let Err(error) = extended {
                log_failure!(warn, [hold = %id, %error], "hold extension failed");
            }
            false
        };
        keep_renewed(heartbeat, store_timeout, extend, log).await;
    }
}

/// An open hold, which extends itself until it ends.
///
/// It ends with [`HoldGuard::settle`] or [`HoldGuard::release`]; drop releases it in a detached task. If the ledger
/// stays unavailable for as long as a hold lasts, the hold expires: the caller is never charged, and the operator bears
/// the cost.
#[derive(Debug)]
pub(crate) struct HoldGuard {
    manager: HoldManager,
    id: HoldId,
    /// The amount held by each leg.
    amounts: Vec<u64>,
    /// What drop settles the hold with; `None` once the hold has ended.
    pending: Option<Vec<u64>>,
    /// The task that extends the hold; ends with the guard.
    heartbeat: JoinSet<()>,
}

impl HoldGuard {
    /// Opens the hold under its new ID; returns the balances after it, or the outcome that refuses it.
    ///
    /// # Errors
    /// As [`HoldManager::hold`].
    ///
    /// # Cancellation
    /// If the future is dropped, the end of the guard also ends a hold that the ledger may have opened.
    pub(crate) async fn open(&mut self, request: &HoldRequest) -> Result<Result<Vec<Balance>, HoldOutcome>> {
        self.pending = Some(vec![0; self.amounts.len()]);
        let HoldManagerInner { ledger, times, .. } = &*self.manager.0;
        match retry_store(times.request_policy(), || ledger.hold(request.clone())).await {
            // Exists: an earlier try of this call took effect.
            Ok(
                HoldOutcome::Held { balances }
                | HoldOutcome::Exists { state: HoldState::Open { .. }, balances },
            ) => {
                self.start_heartbeat();
                Ok(Ok(balances))
            }
            Ok(outcome) => {
                self.pending = None;
                Ok(Err(outcome))
            }
            Err(error) => {
                self.pending = None;
                if error.kind() != ErrorKind::Invalid {
                    self.manager.release_unconfirmed(self).await;
                }
                Err(error)
            }
        }
    }

    pub(crate) fn id(&self) -> &HoldId {
        &self.id
    }

    /// The amount held by each leg.
    pub(crate) fn amounts(&self) -> &[u64] {
        &self.amounts
    }

    /// Spends an amount of each leg, and returns the rest.
    ///
    /// Returns once the ledger has confirmed it, or after the store timeout: then a detached task goes on for as long
    /// as the hold lasts.
    ///
    /// # Cancellation
    /// Once polled, the hold is settled also if the future is dropped.
    pub(crate) async fn settle(mut self, spent: Vec<u64>) {
        self.pending = Some(spent.clone());
        let settled = self.manager.settle(&self.id, spent.clone()).await;
        let is_final = settled
            .as_ref()
            .err()
            .is_none_or(|error| error.retry() == Retry::Never && !is_store_failure(error));
        // A hold that the ledger did not confirm has no heartbeat: it expires soon. If its opening was cancelled, the
        // ledger may still open it.
        let is_unconfirmed = self.heartbeat.is_empty();
        let may_open = is_unconfirmed && matches!(settled, Ok(SettleOutcome::HoldNotFound));
        if !may_open && (is_final || is_unconfirmed) {
            self.pending = None;
            report_end(&self.id, &spent, settled);
        }
        // Else drop goes on.
    }

    /// Spends all amounts; otherwise as [`HoldGuard::settle`].
    pub(crate) async fn settle_in_full(self) {
        let amounts = self.amounts.clone();
        self.settle(amounts).await;
    }

    /// Returns all amounts; otherwise as [`HoldGuard::settle`].
    pub(crate) async fn release(self) {
        let nothing = vec![0; self.amounts.len()];
        self.settle(nothing).await;
    }

    fn start_heartbeat(&mut self) {
        let work = self.manager.clone().keep_extended(self.id.clone());
        self.heartbeat.spawn_on(work, self.manager.0.tasks.runtime());
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let Some(spent) = self.pending.take() else { return };
        let (manager, id) = (self.manager.clone(), self.id.clone());
        let heartbeat = std::mem::take(&mut self.heartbeat);
        self.manager.0.tasks.detach(async move {
            // A hold that the ledger did not confirm has no heartbeat: it expires soon.
            let settled = match heartbeat.is_empty() {
                true => manager.release_cancelled(&id, spent.clone()).await,
                false => manager.settle_detached(manager.0.times.end_policy(), &id, spent.clone()).await,
            };
            drop(heartbeat);
            report_end(&id, &spent, settled);
        });
    }
}

/// Logs a hold that could not be settled or released as requested.
fn report_end(id: &HoldId, spent: &[u64], settled: Result<SettleOutcome>) {
    let is_release = spent.iter().all(|amount| *amount == 0);
    match settled {
        // Exists and settled: an earlier try of this call took effect.
        Ok(SettleOutcome::Settled { .. } | SettleOutcome::Exists { state: HoldState::Settled { .. } }) => {}
        // A hold that the ledger never opened, or that has expired.
        Ok(_) if is_release => {}
        Ok(outcome) => tracing::warn!(hold = %id, ?outcome, "hold ended before its work"),
        Err(error) if is_release => {
            log_failure!(warn, [hold = %id, %error], "hold release failed");
        }
        Err(error) => {
            log_failure!(error, [hold = %id, %error], "hold settle failed");
        }
    }
}

#[cfg(test)]
mod tests;
