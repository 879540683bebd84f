//! The system's clock and randomness.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::SystemTime,
};

use transcript_core::{Clock, Error, Random, Result, Timestamp};

/// The system's clock. Where the system's time is set back, it stands still until that time is reached.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest_ms: AtomicI64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
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
    fn random_bytes_differ() {
        let random = SystemRandom::open().unwrap();
        assert_eq!(random.bytes(33).len(), 33);
        assert_ne!(random.bytes(16), random.bytes(16));
    }
}
