//! Repeating a store's call whose outcome is unknown. Every port is idempotent, so repeating is safe.

use std::time::Duration;

use crate::error::{Error, Result, Retry};

/// How often a call is made in all before its fault is believed.
const ATTEMPTS: u32 = 5;
/// The first wait; each further one is twice as long: 50, 100, 200, 400 ms.
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

/// Makes a call, each time for at most `limit`, until it succeeds, fails for good, or has failed
/// [`ATTEMPTS`] times.
pub(crate) async fn persistently<T, F>(limit: Duration, mut call: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        let error = match bounded(limit, call()).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let pause = match error.retry() {
            Retry::Never => return Err(error),
            Retry::Backoff => wait,
            Retry::After(pause) => pause.min(WAIT_MAX),
        };
        tokio::time::sleep(pause).await;
        wait *= 2;
    }
    bounded(limit, call()).await
}
