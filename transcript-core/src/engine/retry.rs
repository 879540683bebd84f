//! Retries of store calls with unknown outcome. Every port is idempotent, so a retry is safe.

use std::time::Duration;

use super::EngineInner;
use crate::error::{Error, Result, Retry};

/// The first pause; each further one is twice as long: 50, 100, 200, … ms.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest pause, whatever the error requests.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Runs a call once, for at most `limit`, because a store may never respond.
pub(crate) async fn with_timeout<T>(limit: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(limit, call).await {
        Ok(result) => result,
        Err(_) => Err(Error::unavailable("the store did not respond in time")),
    }
}

/// Time for a call and its retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBudget {
    /// Timeout of one call.
    pub(crate) attempt: Duration,
    /// Timeout of all calls and the pauses between them.
    pub(crate) total: Duration,
}

impl EngineInner {
    /// For calls that a caller waits for: the caller must get the store's failure before its own timeout.
    pub(crate) fn request_budget(&self) -> RetryBudget {
        RetryBudget { attempt: self.options.store_timeout / 2, total: self.options.store_timeout }
    }

    /// For data that must not be lost: as long as a hold and a lease last.
    pub(super) fn lease_budget(&self) -> RetryBudget {
        RetryBudget { attempt: self.options.store_timeout, total: self.options.lease }
    }
}

/// Retries a call until it succeeds, fails permanently, or the budget is spent.
pub(crate) async fn with_retries<T, F>(budget: RetryBudget, mut call: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut last = Error::unavailable("the store did not respond in time");
    let attempts = async {
        let mut wait = FIRST_WAIT;
        loop {
            let error = match with_timeout(budget.attempt, call()).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let pause = match error.retry() {
                Retry::Never => return Err(error),
                Retry::Backoff => wait,
                Retry::After(pause) => pause,
            };
            last = error;
            tokio::time::sleep(pause.min(WAIT_MAX)).await;
            wait *= 2;
        }
    };
    match tokio::time::timeout(budget.total, attempts).await {
        Ok(result) => result,
        Err(_) => Err(last),
    }
}
