//! Periodic tasks: one expires abandoned holds, one stores the request counts of keys.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{task::JoinSet, time::MissedTickBehavior};
#[cfg(feature = "accounts")]
use transcript_core::accounts::Authenticator;
use transcript_core::{Clock, FailureLog, Result, ledger::Ledger, lookup::LookupKeys};

use crate::{server_group::ServerGroup, system::SystemClock};

/// Interval of the sweeps. A new hold also expires the overdue holds of its wallets.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Name of the leader lease: of the servers on one database, one at a time sweeps.
const LEADER_NAME: &str = "abandoned-holds";
/// Number of holds expired in one transaction.
const BATCH: u32 = 500;

/// Interval at which request counts are stored: how far several servers may exceed a quota together, and what a crash
/// loses.
const COUNT_INTERVAL: Duration = Duration::from_secs(5);

/// The periodic tasks of one process. Drop stops them; other processes on the storage continue.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    tasks: Mutex<JoinSet<()>>,
}

impl Housekeeping {
    /// Starts the tasks. Must be called inside a runtime.
    ///
    /// The first sweep runs at once, to expire holds left by a crash.
    pub(crate) fn start(
        ledger: Arc<dyn Ledger>,
        clock: Arc<SystemClock>,
        servers: ServerGroup,
        keys: RequestCounts,
    ) -> Self {
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
        let mut tasks = JoinSet::new();
        tasks.spawn(work);
        tasks.spawn(store_counts(keys));
        Self { tasks: Mutex::new(tasks) }
    }

    /// Stops the tasks, and waits until they hold no store any more.
    pub(crate) async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }
}

/// The counted requests of the keys of both APIs.
#[derive(Clone, Debug)]
pub(crate) struct RequestCounts {
    pub(crate) lookup: LookupKeys,
    #[cfg(feature = "accounts")]
    pub(crate) accounts: Arc<Authenticator>,
}

impl RequestCounts {
    /// Stores what was counted since the last call.
    pub(crate) async fn flush(&self) -> Result<()> {
        self.lookup.flush_requests().await?;
        #[cfg(feature = "accounts")]
        self.accounts.flush_requests().await?;
        Ok(())
    }
}

/// Stores the request counts of keys at each interval.
async fn store_counts(keys: RequestCounts) {
    let mut ticks = tokio::time::interval(COUNT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = keys.flush().await {
            tracing::warn!(%error, "request counts not stored; the next attempt is in a few seconds");
        }
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
            let _ = ledger.hold(hold_request).await?;
        }
        sweep(&ledger, &FrozenClock(59_999)).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000 - u64::from(2 * BATCH + 1));
        sweep(&ledger, &FrozenClock(60_000)).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000);
        Ok(())
    }
}
