//! How long to wait before a request is tried again.

use std::time::Duration;

/// The first pause after a passing fault is at most this long; it doubles with every further one.
const PAUSE_FIRST: Duration = Duration::from_millis(400);
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// A platform that throttles without naming a wait is left alone at least this long; doubling, too.
const THROTTLED_FIRST: Duration = Duration::from_secs(2);
/// The longest named wait that is waited for; whoever names more is given up on for now.
const NAMED_MAX: Duration = Duration::from_secs(15);

/// A pause between nothing and `PAUSE_FIRST`·2^`attempt`: full jitter, so that many who failed together
/// don't come back together. `random` lies in [0, 1).
pub(crate) fn pause(attempt: u32, random: f64) -> Duration {
    doubled(PAUSE_FIRST, attempt).min(PAUSE_MAX).mul_f64(random)
}

/// The pause before a platform that throttles is asked again the same way; none when it wants us gone for
/// longer than a caller would wait. A named wait is kept in full, with up to half a second on top.
pub(super) fn throttled_pause(attempt: u32, named: Option<Duration>, random: f64) -> Option<Duration> {
    match named {
        Some(named) if named > NAMED_MAX => None,
        Some(named) => Some(named + Duration::from_millis(500).mul_f64(random)),
        None => Some(doubled(THROTTLED_FIRST, attempt).min(NAMED_MAX).mul_f64(0.5 + random / 2.0)),
    }
}

fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
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
    fn a_named_wait_is_kept_or_given_up() {
        let secs = Duration::from_secs;
        assert_eq!(throttled_pause(0, Some(secs(3)), 0.0), Some(secs(3)));
        assert_eq!(throttled_pause(5, Some(secs(15)), 0.0), Some(secs(15)));
        assert_eq!(throttled_pause(0, Some(secs(16)), 0.0), None);
        assert_eq!(throttled_pause(0, None, 0.0), Some(secs(1)));
        assert_eq!(throttled_pause(1, None, 0.0), Some(secs(2)));
        assert_eq!(throttled_pause(u32::MAX, None, 0.0), Some(secs(15) / 2));
    }
}
