//! Virtual time: it advances only while every task waits.

use tokio::time::Instant;
use transcript_core::{Clock, Timestamp};

/// The clock of one process life. Timers and the time of day advance together.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    start: Timestamp,
    started_at: Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now. Must be created inside the runtime with paused time.
    pub(crate) fn starting_at(start: Timestamp) -> Self {
        Self { start, started_at: Instant::now() }
    }

    /// A copy that is ahead by `millis`; negative values are behind.
    pub(crate) fn ahead(&self, millis: i64) -> Self {
        Self { start: Timestamp::from_millis(self.start.as_millis() + millis), started_at: self.started_at }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.start.plus(self.started_at.elapsed())
    }
}
