//! Periodic task that expires abandoned holds.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, task::AbortHandle};
use transcript_core::{Clock, FailureLog, Result, ledger::Ledger};

use crate::{server_group::ServerGroup, system::SystemClock};

/// Interval of the sweeps. A new hold also expires the overdue holds of its wallets.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Name of the leader lease: of the servers on one database, one at a time sweeps.
const LEADER_NAME: &str = "abandoned-holds";
/// Number of holds expired in one transaction.
const BATCH: u32 = 500;

/// The periodic task of one process. Drop stops it; other processes on the storage continue.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    task: AbortHandle,
}

impl Housekeeping {
    /// Starts the task. Must be called inside a runtime.
    ///
    /// The first sweep runs at once, to expire holds left by a crash.
    pub(crate) fn start(ledger: Arc<dyn Ledger>, clock: Arc<SystemClock>, servers: ServerGroup) -> Self {
        let work = async move {
            let failures = FailureLog::new();
            let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
            loop {
                ticks.tick().await;
                if let Err(error) = servers.sync_clock(&clock).await {
                    tracing::debug!(%error, "database time read failed");
                }
                if !servers.try_lead(LEADER_NAME, clock.as_ref(), SWEEP_INTERVAL).await {
                    continue;
                }
                match sweep(ledger.as_ref(), clock.as_ref()).await {
                    Ok(()) => drop(failures.succeeded()),
                    Err(error) => {
                        if let Some(failures) = failures.failed() {
                            tracing::warn!(%error, failures, "hold sweep failed");
                        }
                    }
                }
                servers.release_lead(LEADER_NAME, clock.as_ref()).await;
            }
        };
        Self { task: Handle::current().spawn(work).abort_handle() }
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Expires all overdue holds.
async fn sweep(ledger: &dyn Ledger, clock: &dyn Clock) -> Result<()> {
    loop {
        let returned = ledger.expire(clock.now(), BATCH).await?;
        if returned > 0 {
            tracing::info!(holds = returned, "abandoned holds expired");
        }
        if returned < BATCH {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        Timestamp,
        ids::{HoldId, WalletId},
        ledger::{HoldRequest, Leg, Pool, Terms},
        memory::MemoryLedger,
    };

    use super::*;

    #[derive(Debug)]
    struct FrozenClock(i64);

    impl Clock for FrozenClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0)
        }
    }

    #[tokio::test]
    async fn sweep_expires_overdue_holds() -> Result<()> {
        let ledger = MemoryLedger::default();
        let terms = Terms {
            pools: vec![Pool::Allowance { bucket: "month/2026-11".to_owned(), limit: 5_000 }],
            resets_at: None,
        };
        let wallet = WalletId::new("w");
        for number in 0..2 * BATCH + 1 {
            let hold_request = HoldRequest {
                id: HoldId::new(format!("hold-{number}")),
                legs: vec![Leg { wallet: wallet.clone(), terms: terms.clone(), amount: 1 }],
                now: Timestamp::from_millis(0),
                expires_at: Timestamp::from_millis(60_000),
                memo: String::new(),
            };
            ledger.hold(hold_request).await?;
        }
        sweep(&ledger, &FrozenClock(59_999)).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000 - u64::from(2 * BATCH + 1));
        sweep(&ledger, &FrozenClock(60_000)).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000);
        Ok(())
    }
}
