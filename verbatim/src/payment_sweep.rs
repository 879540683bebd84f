//! Periodic reconciliation of payments whose events may be lost.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::watch};
use transcript_core::{
    Timestamp,
    accounts::payments::{Payments, SWEEP_EVERY},
};

use crate::{job::JobHandle, server_group::ServerGroup, system::SystemClock};

/// Name of the leader lease: of the servers on one database, one at a time reconciles.
const LEADER_NAME: &str = "payments";
/// Time after which another server may lead although the sweep has not ended.
const LEAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Implements [`crate::Verbatim::start_sweep`].
pub(crate) fn start_if_selling(
    payments: watch::Receiver<Payments>,
    servers: ServerGroup,
    clock: Arc<SystemClock>,
) -> Option<JobHandle> {
    let leader = SweepLeader { servers, clock };
    let is_configured = payments.borrow().is_configured();
    is_configured.then(|| start(&Handle::current(), payments, leader))
}

fn start(runtime: &Handle, payments: watch::Receiver<Payments>, leader: SweepLeader) -> JobHandle {
    let refunds_since = Arc::new(Mutex::new(None));
    let round = move || {
        let SweepLeader { servers, clock } = leader.clone();
        let sweep = sweep(payments.borrow().clone(), Arc::clone(&refunds_since));
        async move {
            // Each part logs its own error, and the pause after it is the same: an unavailable provider is not called
            // more often.
            servers.run_as_leader(LEADER_NAME, clock.as_ref(), LEAD_TIMEOUT, sweep).await;
            Ok(())
        }
    };
    JobHandle::start(runtime, |stopped| stopped.repeat("payment sweep", SWEEP_EVERY, round))
}

/// The servers on one database, and their common clock.
#[derive(Clone, Debug)]
struct SweepLeader {
    servers: ServerGroup,
    clock: Arc<SystemClock>,
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
