//! Whether reading holds up a thread so often that another thread should read.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A read that takes longer may have waited for a slow disk.
const LONG: Duration = Duration::from_millis(10);
/// What a long read counts; a short one takes one of it away. A thread that the system lets wait for its turn makes one
/// in some hundred reads long, a slow disk every read of what is not in memory: more than one in seventeen adds up.
const LONG_COUNTS: u32 = 16;
/// From this sum on others read.
const OTHERS_FROM: u32 = 3 * LONG_COUNTS;
/// It grows no further, so that some twenty short reads end it.
const SUM_MAX: u32 = 4 * LONG_COUNTS;

/// Remembers how many reads took long.
#[derive(Debug, Default)]
pub(super) struct Pace {
    sum: AtomicU32,
}

impl Pace {
    /// Whether reads take no longer than whoever asks may wait.
    pub(super) fn is_quick(&self) -> bool {
        self.sum.load(Ordering::Relaxed) < OTHERS_FROM
    }

    /// Takes note of how long a read took.
    pub(super) fn took(&self, time: Duration) {
        let sum = self.sum.load(Ordering::Relaxed);
        // What others note at the same moment may get lost: it is an estimate.
        if LONG <= time {
            self.sum.store(SUM_MAX.min(sum + LONG_COUNTS), Ordering::Relaxed);
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
    fn a_slow_disk_is_left_to_other_threads_until_it_is_quick_again() {
        let pace = Pace::default();
        for _ in 0..100 {
            pace.took(LONG);
        }
        assert!(!pace.is_quick());
        for _ in 0..SUM_MAX - OTHERS_FROM {
            pace.took(SHORT);
        }
        assert!(!pace.is_quick());
        pace.took(SHORT);
        assert!(pace.is_quick());
    }

    #[test]
    fn a_tenth_of_long_reads_is_a_slow_disk_and_a_hundredth_is_none() {
        for (every, is_slow) in [(10, true), (100, false)] {
            let pace = Pace::default();
            let mut slow = 0;
            for n in 0..10_000 {
                pace.took(if n % every == 0 { LONG } else { SHORT });
                slow += u32::from(!pace.is_quick());
            }
            assert_eq!(0 < slow, is_slow, "one in {every}");
        }
    }
}
