//! Repeating a store's call whose outcome is unknown. Every port is idempotent, so repeating is safe.

use std::time::Duration;

use super::Inner;
use crate::error::{Error, Result, Retry};

/// The first wait; each further one is twice as long: 50, 100, 200, … ms.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// No wait is longer than this, whatever the fault asks for.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Makes a call once, for at most `limit`: a store that never answers must not hold anybody for ever.
pub(crate) async fn bounded<T>(limit: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(limit, call).await {
        Ok(result) => result,
        Err(_) => Err(Error::unavailable("the store did not answer in time")),
    }
}

/// How long a call and its repeats may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// One call.
    pub(crate) attempt: Duration,
    /// All of them, with the waits in between.
    pub(crate) all: Duration,
}

impl Inner {
    /// For calls that a caller waits for: a store that is away must be told while they still listen.
    pub(crate) fn brief(&self) -> Patience {
        Patience { attempt: self.options.store / 2, all: self.options.store }
    }

    /// For what must not be lost once it is there: as long as a hold and a lease last.
    pub(super) fn long(&self) -> Patience {
        Patience { attempt: self.options.store, all: self.options.lease }
    }
}

/// Makes a call until it succeeds, fails for good, or patience is at its end.
pub(crate) async fn persistently<T, F>(patience: Patience, mut call: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut last = Error::unavailable("the store did not answer in time");
    let attempts = async {
        let mut wait = FIRST_WAIT;
        loop {
            let error = match bounded(patience.attempt, call()).await {
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
    match tokio::time::timeout(patience.all, attempts).await {
        Ok(result) => result,
        Err(_) => Err(last),
    }
}
