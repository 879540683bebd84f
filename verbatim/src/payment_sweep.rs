//! Periodic reconciliation of payments whose events may be lost.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
};
use transcript_core::{
    Timestamp,
    accounts::payments::{Payments, SWEEP_EVERY},
};

use crate::{server_group::ServerGroup, system::SystemClock};

/// Name of the leader lease: of the servers on one database, one at a time reconciles.
const LEADER_NAME: &str = "payments";
/// Time after which another server may lead although the sweep has not ended.
const LEAD_TIMEOUT: Duration = Duration::from_secs(600);

/// The running sweep. Drop stops it at once; the next sweep continues where it stopped.
#[derive(Debug)]
pub struct PaymentSweepHandle {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl PaymentSweepHandle {
    /// Implements [`crate::Verbatim::start_sweep`].
    pub(crate) fn start_if_selling(
        payments: watch::Receiver<Payments>,
        servers: ServerGroup,
        clock: Arc<SystemClock>,
    ) -> Option<Self> {
        let leader = SweepLeader { servers, clock };
        let is_configured = payments.borrow().is_configured();
        is_configured.then(|| Self::start(&Handle::current(), payments, leader))
    }

    fn start(runtime: &Handle, payments: watch::Receiver<Payments>, leader: SweepLeader) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop: Some(stop), task: runtime.spawn(run(payments, leader, stopped)) }
    }

    /// Stops the sweep and waits for its end; a running provider call is dropped.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        // A panic was logged where it happened.
        let _ = (&mut self.task).await;
    }
}

impl Drop for PaymentSweepHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The servers on one database, and their common clock.
#[derive(Clone, Debug)]
struct SweepLeader {
    servers: ServerGroup,
    clock: Arc<SystemClock>,
}

async fn run(payments: watch::Receiver<Payments>, leader: SweepLeader, mut stopped: oneshot::Receiver<()>) {
    let refunds_since = Arc::new(Mutex::new(None));
    loop {
        // A separate task, so that a panic ends one sweep and not all.
        let mut tasks = JoinSet::new();
        let newest = payments.borrow().clone();
        tasks.spawn(sweep_as_leader(newest, leader.clone(), Arc::clone(&refunds_since)));
        tokio::select! {
            _ = &mut stopped => {
                tasks.shutdown().await;
                return;
            }
            result = tasks.join_next() => if let Some(Err(error)) = result {
                tracing::error!(%error, "payment sweep panicked");
            }
        }
        tokio::select! {
            _ = &mut stopped => return,
            // The pause is the same after an error: an unavailable provider is not called more often.
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}

async fn sweep_as_leader(
    payments: Payments,
    leader: SweepLeader,
    refunds_since: Arc<Mutex<Option<Timestamp>>>,
) {
    let SweepLeader { servers, clock } = &leader;
    if servers.try_lead(LEADER_NAME, clock.as_ref(), LEAD_TIMEOUT).await {
        sweep(payments, refunds_since).await;
        servers.release_lead(LEADER_NAME, clock.as_ref()).await;
    }
}

/// Runs one sweep. `refunds_since` is the start of the next refund query.
async fn sweep(payments: Payments, refunds_since: Arc<Mutex<Option<Timestamp>>>) {
    if let Err(error) = payments.reconcile_orders().await {
        tracing::warn!(%error, "order reconciliation failed");
    }
    if let Err(error) = payments.reconcile_renewals().await {
        tracing::warn!(%error, "renewal reconciliation failed");
    }
    let since = *lock(&refunds_since);
    match payments.reconcile_refunds(since).await {
        Ok(next) => *lock(&refunds_since) = Some(next),
        Err(error) => tracing::warn!(%error, "refund reconciliation failed"),
    }
}

fn lock(refunds_since: &Mutex<Option<Timestamp>>) -> MutexGuard<'_, Option<Timestamp>> {
    // A single number is valid at any time.
    refunds_since.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
