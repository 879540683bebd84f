//! Periodic tasks: one expires abandoned holds, one stores the request counts of keys.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::runtime::Handle;
#[cfg(feature = "accounts")]
use transcript_core::accounts::Authenticator;
use transcript_core::{Clock, Result, ledger::Ledger, lookup::LookupKeys, time::LEASE_MAX};

use crate::{job::JobHandle, server_group::ServerGroup, system::SystemClock};

/// Pause between two sweeps. A new hold also expires the overdue holds of its wallets.
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
    jobs: Mutex<Vec<JobHandle>>,
}

impl Housekeeping {
    /// Starts the tasks. Must be called inside a runtime.
    ///
    /// The first sweep runs at once, to expire holds left by a crash.
    pub(crate) fn start(
        ledger: Arc<dyn Ledger>,
        clock: Arc<SystemClock>,
        servers: ServerGroup,
        request_counts: RequestCounts,
    ) -> Self {
        let sweeps = start_sweeps(ledger, clock, servers);
        let counts = JobHandle::start(&Handle::current(), |stopped| {
            let round = move || {
                let request_counts = request_counts.clone();
                async move { request_counts.flush().await }
            };
            stopped.repeat("storage of request counts", COUNT_INTERVAL, round)
        });
        Self { jobs: Mutex::new(vec![sweeps, counts]) }
    }

    /// Stops the tasks, and waits until they hold no store any more.
    pub(crate) async fn stop(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        for job in jobs {
            job.stop().await;
        }
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

/// Starts the sweeps, which also set the clock to the database time.
fn start_sweeps(ledger: Arc<dyn Ledger>, clock: Arc<SystemClock>, servers: ServerGroup) -> JobHandle {
    JobHandle::start(&Handle::current(), |stopped| {
        let round = move || {
            let (ledger, clock, servers) = (Arc::clone(&ledger), Arc::clone(&clock), servers.clone());
            async move {
                let clock = clock.as_ref();
                if let Err(error) = servers.sync_clock(clock).await {
                    tracing::debug!(%error, "database time read failed");
                }
                let round = sweep(ledger.as_ref(), clock);
                servers.run_as_leader(LEADER_NAME, clock, SWEEP_INTERVAL, round).await.unwrap_or(Ok(()))
            }
        };
        stopped.repeat("hold sweep", SWEEP_INTERVAL, round)
    })
}

/// Expires all overdue holds, then shortens those of a clock that was corrected since.
async fn sweep(ledger: &dyn Ledger, clock: &dyn Clock) -> Result<()> {
    loop {
        let returned = ledger.expire(clock.now(), BATCH).await?;
        if returned > 0 {
            tracing::info!(holds = returned, "abandoned holds expired");
        }
        if returned < BATCH {
            break;
        }
    }
    ledger.shorten_holds(clock.now().plus(LEASE_MAX)).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use transcript_core::{
        Timestamp,
        engine::{EngineObserver, FetchStage},
        ids::{HoldId, WalletId},
        ledger::{HoldRequest, LedgerOperation, Leg, Pool, Terms},
        memory::MemoryLedger,
        test_doubles::ManualClock,
    };

    use super::*;
    use crate::{SystemRandom, observed_ledger::ObservedLedger};

    /// Counts the operations of a ledger, and panics at the first one.
    #[derive(Debug, Default)]
    struct PanickingObserver(AtomicU32);

    impl EngineObserver for PanickingObserver {
        fn on_stage(&self, _: FetchStage) {}

        fn on_ledger_operation(&self, _: LedgerOperation) {
            assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "ledger panic");
        }
    }

    fn terms() -> Terms {
        let pools = vec![Pool::Allowance { bucket: "month/2026-11".to_owned(), limit: 5_000 }];
        Terms { pools, resets_at: None }
    }

    /// A hold for a minute in 1970.
    fn hold_request(number: u32) -> HoldRequest {
        HoldRequest {
            id: HoldId::new(format!("hold-{number}")),
            legs: vec![Leg { wallet: WalletId::new("w"), terms: terms(), amount: 1 }],
            now: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(60_000),
            memo: String::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sweep_after_panic_of_ledger_is_repeated() -> Result<()> {
        let counter = Arc::new(PanickingObserver::default());
        let observer: Arc<dyn EngineObserver> = Arc::clone(&counter) as _;
        let inner: Arc<dyn Ledger> = Arc::new(MemoryLedger::default());
        let _ = inner.hold(hold_request(1)).await?;
        let ledger = ObservedLedger::new(Arc::clone(&inner), &observer);
        let servers = ServerGroup::single_server(&SystemRandom::open()?);
        let sweeps = start_sweeps(ledger, Arc::default(), servers);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(counter.0.load(Ordering::SeqCst), 1, "the first sweep panicked");
        let _ = inner.hold(hold_request(2)).await?;
        tokio::time::sleep(SWEEP_INTERVAL).await;
        assert_eq!(counter.0.load(Ordering::SeqCst), 2, "the next sweep expired the hold");
        sweeps.stop().await;
        Ok(())
    }

    #[tokio::test]
    async fn sweep_expires_overdue_holds() -> Result<()> {
        let (ledger, wallet, terms) = (MemoryLedger::default(), WalletId::new("w"), terms());
        for number in 0..2 * BATCH + 1 {
            let _ = ledger.hold(hold_request(number)).await?;
        }
        let clock = ManualClock::new(Timestamp::from_millis(59_999));
        sweep(&ledger, &clock).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000 - u64::from(2 * BATCH + 1));
        clock.advance(Duration::from_millis(1));
        sweep(&ledger, &clock).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000);
        // A hold of a clock that was a day ahead.
        let _ = ledger
            .hold(HoldRequest { expires_at: Timestamp::from_millis(86_400_000), ..hold_request(u32::MAX) })
            .await?;
        sweep(&ledger, &clock).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 4_999);
        clock.advance(Duration::from_secs(900));
        sweep(&ledger, &clock).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000);
        Ok(())
    }
}
