//! Moves reads to other threads while the disk is slow.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A read that takes longer may have waited for a slow disk.
const LONG: Duration = Duration::from_millis(10);
/// Weight of a long read; a short read subtracts one.
///
/// Scheduling delays make one read in some hundred long, a slow disk every read that is not in memory: more than
/// one long read in seventeen adds up.
const LONG_WEIGHT: u32 = 16;
/// Reads move to other threads from this sum on.
const CLOSED_FROM: u32 = 3 * LONG_WEIGHT;
/// Upper bound of the sum, so that some twenty short reads end the slow state.
const SUM_MAX: u32 = 4 * LONG_WEIGHT;

/// Tracks how many reads took long.
#[derive(Debug, Default)]
pub(super) struct LatencyGate {
    sum: AtomicU32,
}

impl LatencyGate {
    /// Whether reads are fast enough for the caller's thread.
    pub(super) fn is_quick(&self) -> bool {
        self.sum.load(Ordering::Relaxed) < CLOSED_FROM
    }

    /// Records the duration of a read.
    pub(super) fn record(&self, time: Duration) {
        let sum = self.sum.load(Ordering::Relaxed);
        // Concurrent updates may get lost: the sum is an estimate.
        if LONG <= time {
            self.sum.store(SUM_MAX.min(sum + LONG_WEIGHT), Ordering::Relaxed);
        } else if 0 < sum {
            self.sum.store(sum - 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(9_999);

    #[test]
    fn latency_gate_slow_reads_close_until_fast_again() {
        let gate = LatencyGate::default();
        for _ in 0..100 {
            gate.record(LONG);
        }
        assert!(!gate.is_quick());
        for _ in 0..SUM_MAX - CLOSED_FROM {
            gate.record(SHORT);
        }
        assert!(!gate.is_quick());
        gate.record(SHORT);
        assert!(gate.is_quick());
    }

    #[test]
    fn latency_gate_closes_at_one_in_ten_not_one_in_hundred() {
        for (every, is_slow) in [(10, true), (100, false)] {
            let gate = LatencyGate::default();
            let mut slow = 0;
            for n in 0..10_000 {
                gate.record(if n % every == 0 { LONG } else { SHORT });
                slow += u32::from(!gate.is_quick());
            }
            assert_eq!(0 < slow, is_slow, "one in {every}");
        }
    }
}
