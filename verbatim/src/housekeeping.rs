//! What must happen now and then, whoever calls: abandoned holds are returned.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, task::AbortHandle};
use transcript_core::{Clock, Result, ledger::Ledger};

use crate::{servers::Servers, system::SystemClock};

/// How often it is looked for abandoned holds. Each wallet's own are returned with its next hold anyway.
const EVERY: Duration = Duration::from_secs(30);
/// What it is called among servers that share a database: one of them at a time looks.
const TURN: &str = "abandoned-holds";
/// How many are returned in one transaction.
const BATCH: u32 = 500;

/// The housekeeping of one process. Dropping it ends it; others that share the storage go on.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    task: AbortHandle,
}

impl Housekeeping {
    /// Begins at once, so that what a crash left is returned at the next start. It must be called inside a runtime.
    pub(crate) fn start(ledger: Arc<dyn Ledger>, clock: Arc<SystemClock>, servers: Servers) -> Self {
        let work = async move {
            let mut ticks = tokio::time::interval(EVERY);
            loop {
                ticks.tick().await;
                if let Err(error) = servers.set(&clock).await {
                    tracing::debug!(%error, "the database could not be asked for the time");
                }
                if !servers.is_my_turn(TURN, clock.as_ref(), EVERY).await {
                    continue;
                }
                if let Err(error) = sweep(ledger.as_ref(), clock.as_ref()).await {
                    tracing::warn!(%error, "abandoned holds could not be returned; it is tried again");
                }
                servers.end_turn(TURN, clock.as_ref()).await;
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

/// Returns everything that overdue holds have held.
async fn sweep(ledger: &dyn Ledger, clock: &dyn Clock) -> Result<()> {
    loop {
        let returned = ledger.expire(clock.now(), BATCH).await?;
        if returned > 0 {
            tracing::info!(holds = returned, "abandoned holds were returned");
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
    struct At(i64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0)
        }
    }

    #[tokio::test]
    async fn what_a_crash_left_is_returned() -> Result<()> {
        let ledger = MemoryLedger::default();
        let terms = Terms {
            pools: vec![Pool::Allowance { bucket: "month/2026-11".to_owned(), limit: 5_000 }],
            resets_at: None,
        };
        let wallet = WalletId::new("w");
        for number in 0..2 * BATCH + 1 {
            let ask = HoldRequest {
                id: HoldId::new(format!("hold-{number}")),
                legs: vec![Leg { wallet: wallet.clone(), terms: terms.clone(), amount: 1 }],
                now: Timestamp::from_millis(0),
                expires_at: Timestamp::from_millis(60_000),
                memo: String::new(),
            };
            ledger.hold(ask).await?;
        }
        sweep(&ledger, &At(59_999)).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000 - u64::from(2 * BATCH + 1));
        sweep(&ledger, &At(60_000)).await?;
        assert_eq!(ledger.balance(&wallet, &terms).await?.available(), 5_000);
        Ok(())
    }
}
