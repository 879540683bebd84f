//! Asking now and then about payments of which no event told.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};
use transcript_core::{
    Timestamp,
    accounts::payments::{Payments, SWEEP_EVERY},
};

use crate::{Verbatim, servers::Servers, system::SystemClock};

/// What it is called among servers that share a database: one of them at a time asks.
const TURN: &str = "payments";
/// How long a sweep may take before another server no longer waits for its end.
const TURN_LASTS: Duration = Duration::from_secs(600);

impl Verbatim {
    /// Begins to ask about open orders, renewals and refunds whose event may have been lost: at once, and then every
    /// half hour. None where nothing is sold.
    ///
    /// Without it a payment whose event is lost gives nothing: whoever serves Surface B calls this once. It
    /// must be called inside a tokio runtime.
    pub fn start_sweep(&self) -> Option<RunningSweep> {
        let payments = self.payments();
        let among = Among { servers: self.servers.clone(), clock: self.system_clock() };
        payments.is_configured().then(|| RunningSweep::start(&Handle::current(), payments.clone(), among))
    }
}

/// The sweep at work. Dropping it ends it at once; the next one goes on where it broke off.
#[derive(Debug)]
pub struct RunningSweep {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl RunningSweep {
    fn start(runtime: &Handle, payments: Payments, among: Among) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop: Some(stop), task: runtime.spawn(run(payments, among, stopped)) }
    }

    /// Ends it, and waits until it has: a question that is under way is left unanswered.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        // An end by a panic was logged where it happened.
        let _ = (&mut self.task).await;
    }
}

impl Drop for RunningSweep {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The servers on one database, and the time that they have in common.
#[derive(Clone, Debug)]
struct Among {
    servers: Servers,
    clock: Arc<SystemClock>,
}

async fn run(payments: Payments, among: Among, mut stopped: oneshot::Receiver<()>) {
    let returned = Arc::new(Mutex::new(None));
    loop {
        // In a task of its own, so that a defect ends one sweep and not all.
        let mut alone = JoinSet::new();
        alone.spawn(sweep_in_turn(payments.clone(), among.clone(), Arc::clone(&returned)));
        tokio::select! {
            _ = &mut stopped => {
                alone.shutdown().await;
                return;
            }
            ended = alone.join_next() => if let Some(Err(error)) = ended {
                tracing::error!(%error, "a sweep of payments ended in a defect; there is another one later");
            }
        }
        tokio::select! {
            _ = &mut stopped => return,
            // Whatever came of it: a provider that is away is not asked more often.
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}

async fn sweep_in_turn(payments: Payments, among: Among, returned: Arc<Mutex<Option<Timestamp>>>) {
    let Among { servers, clock } = &among;
    if servers.is_my_turn(TURN, clock.as_ref(), TURN_LASTS).await {
        sweep(payments, returned).await;
        servers.end_turn(TURN, clock.as_ref()).await;
    }
}

/// One sweep. `returned` is since when the next asks about money that went back.
async fn sweep(payments: Payments, returned: Arc<Mutex<Option<Timestamp>>>) {
    if let Err(error) = payments.sweep_orders().await {
        tracing::warn!(%error, "open orders could not all be asked about; it is tried again");
    }
    if let Err(error) = payments.sweep_plans().await {
        tracing::warn!(%error, "renewals could not all be asked about; it is tried again");
    }
    let since = *lock(&returned);
    match payments.sweep_returned(since).await {
        Ok(next) => *lock(&returned) = Some(next),
        Err(error) => tracing::warn!(%error, "refunds could not all be asked about; it is tried again"),
    }
}

fn lock(returned: &Mutex<Option<Timestamp>>) -> MutexGuard<'_, Option<Timestamp>> {
    // It is one number, whole at every moment.
    returned.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
