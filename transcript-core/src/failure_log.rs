//! Failure log: reports a lasting failure when it begins, once a minute, and when it ends.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::retry::{deadline_after, is_over};

/// The shortest time between two reports of failures.
const INTERVAL: Duration = Duration::from_secs(60);

/// Decides which failures of one kind of call are logged, so that an outage does not fill the log.
///
/// ```
/// use transcript_core::FailureLog;
///
/// static FAILURES: FailureLog = FailureLog::new();
/// assert_eq!(FAILURES.failed(), Some(1));
/// assert_eq!(FAILURES.failed(), None);
/// assert_eq!(FAILURES.succeeded(), Some(2));
/// assert_eq!(FAILURES.succeeded(), None);
/// ```
#[derive(Debug)]
pub struct FailureLog {
    /// Read without the lock by each success.
    is_failing: AtomicBool,
    state: Mutex<FailureState>,
}

#[derive(Debug)]
struct FailureState {
    /// Failures since the last report.
    unreported: u64,
    /// Failures since the last success.
    total: u64,
    /// When the next report is due; `None` before the first.
    due_at: Option<Instant>,
    /// Whether a failure since the last success was reported.
    is_reported: bool,
}

impl FailureLog {
    /// A log without failures.
    pub const fn new() -> Self {
        let state = FailureState { unreported: 0, total: 0, due_at: None, is_reported: false };
        Self { is_failing: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Counts a failure. Returns the number of failures to report if a report is due.
    ///
    /// The first failure is reported at once, and later ones at most once a minute, also if successes are in between.
    pub fn failed(&self) -> Option<u64> {
        let mut state = self.state();
        self.is_failing.store(true, Ordering::Relaxed);
        state.unreported = state.unreported.saturating_add(1);
        state.total = state.total.saturating_add(1);
        if state.due_at.is_some_and(|due_at| !is_over(due_at)) {
            return None;
        }
        state.due_at = Some(deadline_after(INTERVAL));
        state.is_reported = true;
        Some(std::mem::take(&mut state.unreported))
    }

    /// Counts a success. Returns the number of failures before it if one of them was reported.
    pub fn succeeded(&self) -> Option<u64> {
        if !self.is_failing.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state();
        self.is_failing.store(false, Ordering::Relaxed);
        let total = std::mem::take(&mut state.total);
        if !std::mem::take(&mut state.is_reported) {
            return None;
        }
        // The total contains them.
        state.unreported = 0;
        Some(total)
    }

    fn state(&self) -> MutexGuard<'_, FailureState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs a failure with its fields and the number of failures, by a [`FailureLog`] of this place.
///
/// It needs the crate `tracing`.
#[macro_export]
macro_rules! log_failure {
    ($level:ident, [$($field:tt)*], $message:literal) => {{
        static FAILURES: $crate::FailureLog = $crate::FailureLog::new();
        if let Some(failures) = FAILURES.failed() {
            tracing::$level!($($field)*, failures, $message);
        }
    }};
}
pub(crate) use log_failure;

impl Default for FailureLog {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, atomic::AtomicUsize};

    use tracing::{Event, Level, Metadata, Subscriber, span};

    use super::*;

    /// Counts the warnings and errors that a thread logs.
    #[derive(Debug, Default)]
    pub(crate) struct WarningCounter(pub(crate) Arc<AtomicUsize>);

    impl Subscriber for WarningCounter {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::WARN
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn failure_log_outage_is_reported_each_minute_and_at_its_end() {
        let log = FailureLog::new();
        assert_eq!(log.succeeded(), None);
        // 40 failures a second for 90 seconds.
        let reports: Vec<u64> = {
            let mut reports = Vec::new();
            for _ in 0..90 * 40 {
                reports.extend(log.failed());
                tokio::time::advance(Duration::from_millis(25)).await;
            }
            reports
        };
        assert_eq!(reports, [1, 60 * 40]);
        assert_eq!((log.succeeded(), log.succeeded()), (Some(90 * 40), None));
    }

    #[tokio::test(start_paused = true)]
    async fn failure_log_alternating_calls_are_reported_each_minute() {
        let log = FailureLog::new();
        let mut reports = 0;
        for _ in 0..120 {
            reports += usize::from(log.failed().is_some()) + usize::from(log.succeeded().is_some());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(reports, 4, "a beginning and an end in each minute");
    }
}
