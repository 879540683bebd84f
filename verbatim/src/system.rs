//! The system's clock and randomness.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::SystemTime,
};

use transcript_core::{Clock, Error, Random, Result, Timestamp};

/// The system's clock. Where the system's time is set back, it stands still until that time is reached.
///
/// Where several servers share a database it is set by that one's: see `Servers`.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest_ms: AtomicI64,
    /// How far the common time is ahead of the machine's.
    ahead_ms: AtomicI64,
}

/// How far a clock may be off before people are told.
const OFF_MS: i64 = 2_000;

impl SystemClock {
    /// What the machine's own clock says, in milliseconds since 1970.
    pub(crate) fn of_the_machine() -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Sets it by another clock, which said `theirs` at some moment between `begun` and `ended` of the machine's.
    ///
    /// It is left as it is where it could be right.
    pub(crate) fn set(&self, theirs: i64, begun: i64, ended: i64) {
        let before = self.ahead_ms.load(Ordering::Relaxed);
        let (least, most) = (theirs.saturating_sub(ended), theirs.saturating_sub(begun));
        if (least..=most).contains(&before) {
            return;
        }
        let ahead = least.saturating_add(most) / 2;
        self.ahead_ms.store(ahead, Ordering::Relaxed);
        if ahead.abs_diff(before) > OFF_MS.unsigned_abs() {
            tracing::warn!(
                seconds = ahead / 1_000,
                "the database's clock is ahead of this machine's, and is followed"
            );
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Self::of_the_machine().saturating_add(self.ahead_ms.load(Ordering::Relaxed));
        let before = self.latest_ms.fetch_max(now, Ordering::Relaxed);
        Timestamp::from_millis(now.max(before))
    }
}

/// The system's source of unpredictable bytes.
#[derive(Debug)]
pub struct SystemRandom(());

impl SystemRandom {
    /// The source, once it has shown that it works.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] when the system has no randomness to give.
    pub fn open() -> Result<Self> {
        let mut probe = [0; 1];
        getrandom::fill(&mut probe).map_err(|error| {
            Error::unavailable(format!("the system gives no random numbers, and keys need them: {error}"))
        })?;
        Ok(Self(()))
    }
}

impl Random for SystemRandom {
    /// # Panics
    /// When a source that worked at the start has failed: keys that can be guessed must not be made.
    fn bytes(&self, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        if let Err(error) = getrandom::fill(&mut bytes) {
            panic!("the system gives no random numbers any more: {error}");
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_runs_backwards() {
        let clock = SystemClock::default();
        let ahead = clock.now().as_millis() + 60_000;
        clock.latest_ms.store(ahead, Ordering::Relaxed);
        assert_eq!(clock.now().as_millis(), ahead);
    }

    #[test]
    fn a_clock_is_set_by_another_one_where_it_must_be_wrong() {
        let clock = SystemClock::default();
        let ahead = |theirs, begun, ended| {
            clock.set(theirs, begun, ended);
            clock.ahead_ms.load(Ordering::Relaxed)
        };
        assert_eq!(ahead(1_000, 995, 1_005), 0);
        assert_eq!(ahead(301_000, 995, 1_005), 300_000);
        assert_eq!(ahead(301_004, 995, 1_005), 300_000);
        assert_eq!(ahead(201_000, 200_990, 200_994), 8);
    }

    #[test]
    fn random_bytes_differ() {
        let random = SystemRandom::open().unwrap();
        assert_eq!(random.bytes(33).len(), 33);
        assert_ne!(random.bytes(16), random.bytes(16));
    }
}
