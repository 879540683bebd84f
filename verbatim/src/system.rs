//! System clock and randomness.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Instant, SystemTime},
};

use transcript_core::{Clock, Error, Random, Result, Timestamp, time::CLOCK_STEP_MS};

/// The system clock.
///
/// If the system time is set back by up to two seconds, it stands still until that time is reached. If it is set back
/// further, this clock steps back too, with a warning: its time was wrong.
///
/// If several servers share a database, the clock is set to the database time and advances with the elapsed time; later
/// changes of the machine clock have no effect. See `ServerGroup`.
#[derive(Debug)]
pub struct SystemClock {
    began: Instant,
    /// The latest returned time.
    latest_ms: AtomicI64,
    /// Common time when this clock started; [`UNSET`] if it follows the machine clock.
    origin_ms: AtomicI64,
}

/// Origin of a clock that was never set.
const UNSET: i64 = i64::MIN;

impl Default for SystemClock {
    fn default() -> Self {
        let (latest_ms, origin_ms) = (AtomicI64::new(0), AtomicI64::new(UNSET));
        Self { began: Instant::now(), latest_ms, origin_ms }
    }
}

impl SystemClock {
    /// Time of the machine clock in milliseconds since 1970.
    fn machine_time_ms() -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Milliseconds since this clock started, independent of changes of the machine clock.
    pub(crate) fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Sets this clock to another clock, which showed `theirs` at some time between `started` and `ended`.
    ///
    /// Both are on the scale of [`SystemClock::elapsed_ms`]. A clock that could be right is left unchanged. A clock
    /// that has returned times far ahead steps back: after a jump of a machine clock, leases and holds must not end
    /// until that time is reached.
    #[cfg(any(feature = "postgres", test))]
    pub(crate) fn set(&self, theirs: i64, started: i64, ended: i64) {
        let known = self.origin_ms.load(Ordering::Relaxed);
        let before =
            if known == UNSET { Self::machine_time_ms().saturating_sub(self.elapsed_ms()) } else { known };
        let (least, most) = (theirs.saturating_sub(ended), theirs.saturating_sub(started));
        let origin = if (least..=most).contains(&before) { before } else { least.midpoint(most) };
        self.origin_ms.store(origin, Ordering::Relaxed);
        let off = origin.saturating_sub(before);
        if off.unsigned_abs() > CLOCK_STEP_MS.unsigned_abs() {
            let (seconds, relation) =
                (off.unsigned_abs() / 1_000, if off > 0 { "ahead of" } else { "behind" });
            tracing::warn!(
                seconds,
                "the database clock is {relation} the clock of this server and is used instead"
            );
        }
        self.step_back(origin.saturating_add(self.elapsed_ms()), "database time");
    }

    /// Steps back to `now`, the time of `source`, if the latest returned time is far ahead of it.
    fn step_back(&self, now: i64, source: &str) {
        let stepped = |latest: i64| (now.saturating_add(CLOCK_STEP_MS) < latest).then_some(now);
        if let Ok(latest) = self.latest_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, stepped) {
            let seconds = latest.saturating_sub(now) / 1_000;
            tracing::warn!(seconds, "server time was ahead of the {source} and stepped back");
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = match self.origin_ms.load(Ordering::Relaxed) {
            UNSET => {
                let now = Self::machine_time_ms();
                if now.saturating_add(CLOCK_STEP_MS) < self.latest_ms.load(Ordering::Relaxed) {
                    // Read again: this thread may have waited since it read the time.
                    self.step_back(Self::machine_time_ms(), "machine clock");
                }
                now
            }
            origin => origin.saturating_add(self.elapsed_ms()),
        };
        let before = self.latest_ms.fetch_max(now, Ordering::Relaxed);
        Timestamp::from_millis(now.max(before))
    }
}

/// The system's source of unpredictable bytes.
#[derive(Debug)]
pub struct SystemRandom(());

impl SystemRandom {
    /// Opens the source and reads one byte to check that it works.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the system provides no randomness.
    pub fn open() -> Result<Self> {
        let mut probe = [0; 1];
        getrandom::fill(&mut probe).map_err(|error| {
            Error::unavailable(format!("the system provides no random numbers, which keys need: {error}"))
        })?;
        Ok(Self(()))
    }
}

impl Random for SystemRandom {
    /// # Panics
    /// If the source has failed since the start: guessable keys must not be created.
    fn bytes(&self, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        if let Err(error) = getrandom::fill(&mut bytes) {
            panic!("the system provides no more random numbers: {error}");
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_slightly_ahead_stands_still() {
        let clock = SystemClock::default();
        let ahead = clock.now().as_millis() + CLOCK_STEP_MS / 2;
        clock.latest_ms.store(ahead, Ordering::Relaxed);
        assert!(ahead <= clock.now().as_millis());
    }

    #[test]
    fn clock_steps_back_with_machine_clock() {
        let clock = SystemClock::default();
        let before = clock.now().as_millis();
        clock.latest_ms.store(before + 86_400_000, Ordering::Relaxed);
        assert!(clock.now().as_millis().abs_diff(before) < 10_000);
    }

    #[test]
    fn clock_set_changes_only_wrong_clock() {
        let clock = SystemClock::default();
        let origin = |theirs, started, ended| {
            clock.set(theirs, started, ended);
            clock.origin_ms.load(Ordering::Relaxed)
        };
        assert_eq!(origin(301_000, 995, 1_005), 300_000);
        assert_eq!(origin(301_004, 995, 1_005), 300_000);
        assert_eq!(origin(201_000, 990, 994), 200_008);
        let right = SystemClock::default();
        let machine = SystemClock::machine_time_ms();
        right.set(machine, -60_000, 60_000);
        assert!(
            right.now().as_millis().abs_diff(machine) < 10_000,
            "a clock that could be right is unchanged"
        );
    }

    #[test]
    fn clock_set_steps_back_after_jump_ahead() {
        let clock = SystemClock::default();
        let theirs = clock.now().as_millis();
        clock.set(theirs + 86_400_000, clock.elapsed_ms(), clock.elapsed_ms());
        assert!(theirs + 86_400_000 <= clock.now().as_millis());
        clock.set(theirs, clock.elapsed_ms(), clock.elapsed_ms());
        assert!(clock.now().as_millis().abs_diff(theirs) < 10_000);
        // Slightly ahead, it stands still instead.
        let latest = clock.now().as_millis() + CLOCK_STEP_MS / 2;
        clock.latest_ms.store(latest, Ordering::Relaxed);
        clock.set(theirs, 0, clock.elapsed_ms());
        assert!(latest <= clock.now().as_millis());
    }

    #[test]
    fn random_bytes_differ() {
        let random = SystemRandom::open().unwrap();
        assert_eq!(random.bytes(33).len(), 33);
        assert_ne!(random.bytes(16), random.bytes(16));
    }
}
