//! The system's clock and randomness.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Instant, SystemTime},
};

use transcript_core::{Clock, Error, Random, Result, Timestamp};

/// The system's clock. Where the system's time is set back, it stands still until that time is reached.
///
/// Where several servers share a database it is set by that one's, and goes by the time that has passed since: what
/// becomes of the machine's clock is no matter then. See `Servers`.
#[derive(Debug)]
pub struct SystemClock {
    began: Instant,
    /// The latest moment that was told.
    latest_ms: AtomicI64,
    /// What the common time was when this clock began; [`UNSET`] where it goes by the machine's.
    origin_ms: AtomicI64,
}

/// How far a clock may be off before people are told, and before it steps back to the right time.
#[cfg(any(feature = "postgres", test))]
const OFF_MS: i64 = 2_000;
/// The origin of a clock that was never set.
const UNSET: i64 = i64::MIN;

impl Default for SystemClock {
    fn default() -> Self {
        let (latest_ms, origin_ms) = (AtomicI64::new(0), AtomicI64::new(UNSET));
        Self { began: Instant::now(), latest_ms, origin_ms }
    }
}

impl SystemClock {
    /// What the machine's own clock says, in milliseconds since 1970.
    fn of_the_machine() -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// How long ago this clock began, in milliseconds, whoever sets the machine's clock meanwhile.
    pub(crate) fn passed(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Sets it by another clock, which said `theirs` at some moment between `begun` and `ended`, both as
    /// [`SystemClock::passed`] has them.
    ///
    /// It is left as it is where it could be right. Where it has told moments that are far ahead, it steps back: a
    /// machine's clock that once jumped must not end everybody's leases and holds until that time is reached.
    #[cfg(any(feature = "postgres", test))]
    pub(crate) fn set(&self, theirs: i64, begun: i64, ended: i64) {
        let known = self.origin_ms.load(Ordering::Relaxed);
        let before =
            if known == UNSET { Self::of_the_machine().saturating_sub(self.passed()) } else { known };
        let (least, most) = (theirs.saturating_sub(ended), theirs.saturating_sub(begun));
        let origin = if (least..=most).contains(&before) { before } else { least.midpoint(most) };
        self.origin_ms.store(origin, Ordering::Relaxed);
        let off = origin.saturating_sub(before);
        if off.unsigned_abs() > OFF_MS.unsigned_abs() {
            let (seconds, whose) = (off.unsigned_abs() / 1_000, if off > 0 { "ahead of" } else { "behind" });
            tracing::warn!(seconds, "the database's clock is {whose} this server's, and is followed");
        }
        let now = origin.saturating_add(self.passed());
        let stepped = |latest: i64| (now.saturating_add(OFF_MS) < latest).then_some(now);
        if let Ok(latest) = self.latest_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, stepped) {
            let seconds = latest.saturating_sub(now) / 1_000;
            tracing::warn!(seconds, "this server's time was ahead of the database's, and steps back");
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = match self.origin_ms.load(Ordering::Relaxed) {
            UNSET => Self::of_the_machine(),
            origin => origin.saturating_add(self.passed()),
        };
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
        let origin = |theirs, begun, ended| {
            clock.set(theirs, begun, ended);
            clock.origin_ms.load(Ordering::Relaxed)
        };
        assert_eq!(origin(301_000, 995, 1_005), 300_000);
        assert_eq!(origin(301_004, 995, 1_005), 300_000);
        assert_eq!(origin(201_000, 990, 994), 200_008);
        let right = SystemClock::default();
        let machine = SystemClock::of_the_machine();
        right.set(machine, -60_000, 60_000);
        assert!(
            right.now().as_millis().abs_diff(machine) < 10_000,
            "one that could be right is left as it is"
        );
    }

    #[test]
    fn a_clock_that_jumped_ahead_is_set_back_by_the_common_one() {
        let clock = SystemClock::default();
        let theirs = clock.now().as_millis();
        clock.latest_ms.store(theirs + 86_400_000, Ordering::Relaxed);
        assert_eq!(clock.now().as_millis(), theirs + 86_400_000);
        clock.set(theirs, clock.passed(), clock.passed());
        assert!(clock.now().as_millis().abs_diff(theirs) < 10_000);
        // A little ahead it stands still instead.
        let latest = clock.now().as_millis() + OFF_MS / 2;
        clock.latest_ms.store(latest, Ordering::Relaxed);
        clock.set(theirs, 0, clock.passed());
        assert!(latest <= clock.now().as_millis());
    }

    #[test]
    fn random_bytes_differ() {
        let random = SystemRandom::open().unwrap();
        assert_eq!(random.bytes(33).len(), 33);
        assert_ne!(random.bytes(16), random.bytes(16));
    }
}
