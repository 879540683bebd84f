//! Repeating a store's call whose outcome is unknown. Every port is idempotent, so repeating is safe.

use std::time::Duration;

use crate::error::{Result, Retry};

/// How often a call is made in all before its fault is believed.
const ATTEMPTS: u32 = 5;
/// The first wait; each further one is twice as long: 50, 100, 200, 400 ms.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// No wait is longer than this, whatever the fault asks for.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Makes a call until it succeeds, fails for good, or has failed [`ATTEMPTS`] times.
pub(super) async fn persistently<T, F>(mut call: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        let error = match call().await {
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
    call().await
}
