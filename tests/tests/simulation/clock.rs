//! Virtual time: it passes when everyone waits, and at no other moment.

use tokio::time::Instant;
use transcript_core::{Clock, Timestamp};

/// The clock of one life of a process. Its tasks' timers and its time of day go together.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    start: Timestamp,
    began: Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now. Made inside the runtime whose time is paused.
    pub(crate) fn starting_at(start: Timestamp) -> Self {
        Self { start, began: Instant::now() }
    }

    /// The same, so many milliseconds ahead or behind.
    pub(crate) fn ahead(&self, millis: i64) -> Self {
        Self { start: Timestamp::from_millis(self.start.as_millis() + millis), began: self.began }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.start.plus(self.began.elapsed())
    }
}
