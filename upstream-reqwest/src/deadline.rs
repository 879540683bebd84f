//! The deadlines of callers as times of the runtime.

use std::time::Duration;

use tokio::time::Instant;
use transcript_core::{
    retry::deadline_after,
    time::{Clock, Timestamp},
};

/// Safety margin before the caller's deadline, so that the supplier's own error still arrives.
const MARGIN: Duration = Duration::from_millis(250);
/// Time limit of one lookup on a platform, over all clients and routes.
const LOOKUP_MAX: Duration = Duration::from_secs(60);

/// The end of a call: shortly before its deadline, which refers to `clock`.
pub(crate) fn call_end(clock: &dyn Clock, deadline: Timestamp) -> Instant {
    deadline_after(deadline.since(clock.now()).saturating_sub(MARGIN))
}

/// As [`call_end`], and at most a minute from now.
pub(crate) fn lookup_end(clock: &dyn Clock, deadline: Timestamp) -> Instant {
    call_end(clock, deadline).min(deadline_after(LOOKUP_MAX))
}

#[cfg(test)]
mod tests {
    use transcript_core::test_doubles::ManualClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lookup_end_is_before_deadline() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000));
        for (left_ms, expect_ms) in
            [(0, 0), (100, 0), (25_000, 24_750), (60_250, 60_000), (3_600_000, 60_000)]
        {
            let end = lookup_end(&clock, Timestamp::from_millis(1_000 + left_ms));
            assert_eq!(end - Instant::now(), Duration::from_millis(expect_ms), "{left_ms}");
        }
        let end = call_end(&clock, Timestamp::from_millis(3_601_000));
        assert_eq!(end - Instant::now(), Duration::from_millis(3_599_750));
    }
}
