//! Counters of settings reloads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Result of a reload of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReloadResult {
    /// All changes took effect.
    Done,
    /// Some changes require a restart; the others took effect.
    Partial,
    /// The settings are invalid: nothing changed.
    Failed,
}

impl ReloadResult {
    const ALL: [Self; 3] = [Self::Done, Self::Partial, Self::Failed];

    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// Reloads since the start, by result.
#[derive(Debug, Default)]
pub(super) struct ReloadCounters {
    counts: [AtomicU64; ReloadResult::ALL.len()],
    has_last_failed: AtomicBool,
}

impl ReloadCounters {
    pub(super) fn count(&self, result: ReloadResult) {
        if let Some(count) = self.counts.get(result as usize) {
            count.fetch_add(1, Relaxed);
        }
        self.has_last_failed.store(result == ReloadResult::Failed, Relaxed);
    }

    /// The number of reloads with each result.
    pub(super) fn results(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = ReloadResult::ALL.into_iter().map(ReloadResult::as_str);
        names.zip(self.counts.iter().map(|count| count.load(Relaxed)))
    }

    /// Whether the running settings are those of the sources, as far as these may change.
    pub(super) fn is_last_successful(&self) -> bool {
        !self.has_last_failed.load(Relaxed)
    }
}
