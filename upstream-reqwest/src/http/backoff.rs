//! Pauses between retries.

use std::time::Duration;

use transcript_core::retry::{Backoff, RetryPolicy};

/// Upper bounds of the pauses after a transient error.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(400), max: Duration::from_secs(8) };
/// Bounds of the pauses for a platform that throttles without a `Retry-After`.
const THROTTLED: Backoff = Backoff { first: Duration::from_secs(2), max: RETRY_AFTER_MAX };
/// The longest `Retry-After` that is waited for. A longer one ends the retries.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(15);

/// The policy of a request that is repeated at most `retries` times.
pub(crate) fn retry_policy(retries: u32) -> RetryPolicy {
    RetryPolicy { tries: retries.saturating_add(1), deadline: None, backoff: BACKOFF }
}

/// Random pause of the backoff; `random` is in [0, 1).
///
/// Full jitter keeps clients that failed together from retrying together.
pub(crate) fn pause(attempt: u32, random: f64) -> Duration {
    BACKOFF.pause(attempt, random)
}

/// Pause before a retry to a platform that throttles.
///
/// `None` when its `Retry-After` is above [`RETRY_AFTER_MAX`].
///
/// A `Retry-After` is kept in full, with up to 500 ms on top.
pub(super) fn throttled_pause(attempt: u32, named: Option<Duration>, random: f64) -> Option<Duration> {
    match named {
        Some(named) if named > RETRY_AFTER_MAX => None,
        Some(named) => Some(named + Duration::from_millis(500).mul_f64(random)),
        None => Some(THROTTLED.pause(attempt, 0.5 + random / 2.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_later_attempt_grows_to_limit() {
        for (attempt, random, expect_ms) in [
            (0, 0.0, 0),
            (0, 0.5, 200),
            (1, 0.5, 400),
            (3, 0.5, 1_600),
            (9, 0.5, 4_000),
            (u32::MAX, 0.5, 4_000),
        ] {
            assert_eq!(pause(attempt, random).as_millis(), expect_ms, "{attempt}");
        }
    }

    #[test]
    fn throttled_pause_long_retry_after_returns_none() {
        let secs = Duration::from_secs;
        assert_eq!(throttled_pause(0, Some(secs(3)), 0.0), Some(secs(3)));
        assert_eq!(throttled_pause(5, Some(secs(15)), 0.0), Some(secs(15)));
        assert_eq!(throttled_pause(0, Some(secs(16)), 0.0), None);
        assert_eq!(throttled_pause(0, None, 0.0), Some(secs(1)));
        assert_eq!(throttled_pause(1, None, 0.0), Some(secs(2)));
        assert_eq!(throttled_pause(u32::MAX, None, 0.0), Some(secs(15) / 2));
    }
}
