//! Store monitor: counts the failures of a database, and logs when they begin and end.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use transcript_core::{Error, FailureLog};

/// How long a write that failed on damaged data counts, if no other write follows.
const DAMAGE_PERIOD: Duration = Duration::from_secs(60);

/// The cause of a failed call of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreErrorKind {
    /// The disk is full.
    Full,
    /// The file, its disk or the server is read-only.
    ReadOnly,
    /// The disk failed to read or write, or the file was deleted or replaced.
    Io,
    /// Stored data cannot be read back.
    Corrupt,
    /// Other writers block the call.
    Busy,
    /// The server cannot be reached, or does not respond in time.
    Unreachable,
    /// Anything else.
    Other,
}

impl StoreErrorKind {
    /// All kinds, in the order of their discriminants.
    const ALL: [Self; 7] =
        [Self::Full, Self::ReadOnly, Self::Io, Self::Corrupt, Self::Busy, Self::Unreachable, Self::Other];

    /// The name in logs and metrics.
    fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "read_only",
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Busy => "busy",
            Self::Unreachable => "unreachable",
            Self::Other => "other",
        }
    }
}

/// Whether a call of a database reads or writes. Reads may succeed while writes fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreOperation {
    /// A read.
    Read,
    /// A write.
    Write,
}

impl StoreOperation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// The failures of one database since it was opened.
#[derive(Debug)]
pub struct StoreMonitor {
    store: &'static str,
    is_open: AtomicBool,
    errors: [AtomicU64; StoreErrorKind::ALL.len()],
    /// When the last write failed, if it failed on damaged data.
    damaged_at: Mutex<Option<Instant>>,
    reads: FailureLog,
    writes: FailureLog,
}

impl StoreMonitor {
    /// The monitor of a store with this name in logs, which is not open yet.
    pub(crate) fn new(store: &'static str) -> Self {
        Self {
            store,
            is_open: AtomicBool::new(false),
            errors: Default::default(),
            damaged_at: Mutex::default(),
            reads: FailureLog::new(),
            writes: FailureLog::new(),
        }
    }

    /// Starts to count: the failure of an opening is returned, and a missing table is none.
    pub(crate) fn start(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Number of failed calls by the name of their kind.
    pub fn errors(&self) -> Vec<(&'static str, u64)> {
        let counts = self.errors.iter().map(|count| count.load(Ordering::Relaxed));
        StoreErrorKind::ALL.map(StoreErrorKind::as_str).into_iter().zip(counts).collect()
    }

    /// Whether the last write failed within a minute because stored data is damaged.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged_for(DAMAGE_PERIOD)
    }

    fn is_damaged_for(&self, period: Duration) -> bool {
        self.damaged_at().is_some_and(|at| at.elapsed() < period)
    }

    fn damaged_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.damaged_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a failed call.
    pub(crate) fn failed(&self, operation: StoreOperation, kind: StoreErrorKind, error: &Error) {
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }
        if let Some(count) = self.errors.get(kind as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if operation == StoreOperation::Write {
            *self.damaged_at() = (kind == StoreErrorKind::Corrupt).then(Instant::now);
        }
        if let Some(failures) = self.failures(operation).failed() {
            let (store, operation, kind) = (self.store, operation.as_str(), kind.as_str());
            tracing::error!(store, operation, kind, %error, failures, "store failed");
        }
    }

    /// Counts a successful call.
    pub(crate) fn succeeded(&self, operation: StoreOperation) {
        if operation == StoreOperation::Write {
            *self.damaged_at() = None;
        }
        if let Some(failures) = self.failures(operation).succeeded() {
            tracing::info!(store = self.store, operation = operation.as_str(), failures, "store recovered");
        }
    }

    fn failures(&self, operation: StoreOperation) -> &FailureLog {
        match operation {
            StoreOperation::Read => &self.reads,
            StoreOperation::Write => &self.writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_error_kind_indices_match_all() {
        for (index, kind) in StoreErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{}", kind.as_str());
        }
    }

    #[test]
    fn monitor_counts_errors_only_once_open() {
        let (monitor, error) = (StoreMonitor::new("main"), Error::unavailable("the disk is full"));
        let full = |monitor: &StoreMonitor| monitor.errors()[0];
        monitor.failed(StoreOperation::Write, StoreErrorKind::Full, &error);
        assert_eq!(full(&monitor), ("full", 0));
        monitor.start();
        monitor.failed(StoreOperation::Write, StoreErrorKind::Full, &error);
        monitor.succeeded(StoreOperation::Read);
        assert_eq!(full(&monitor), ("full", 1));
        assert_eq!(monitor.writes.succeeded(), Some(1), "a read ended the failure of writes");
    }

    #[test]
    fn monitor_is_damaged_until_write_ends_otherwise() {
        use StoreOperation::{Read, Write};
        let (monitor, error) = (StoreMonitor::new("main"), Error::unavailable("the store failed"));
        monitor.start();
        monitor.failed(Read, StoreErrorKind::Corrupt, &error);
        assert!(!monitor.is_damaged());
        for end in [None, Some(StoreErrorKind::Full)] {
            monitor.failed(Write, StoreErrorKind::Corrupt, &error);
            monitor.succeeded(Read);
            assert!(monitor.is_damaged() && !monitor.is_damaged_for(Duration::ZERO));
            match end {
                Some(kind) => monitor.failed(Write, kind, &error),
                None => monitor.succeeded(Write),
            }
            assert!(!monitor.is_damaged(), "{end:?}");
        }
    }
}
