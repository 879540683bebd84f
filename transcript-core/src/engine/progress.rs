//! Progress of a flight, and the estimate of when to retry that follows from it.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::time::{Timestamp, format_wait};

/// Bounds of `retry_after`.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(2);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);
/// The longest estimate without known progress.
const ESTIMATE_MAX: Duration = Duration::from_secs(60);
/// The stage of the work itself; earlier stages say nothing about the total time.
const TRANSCRIBING: &str = "transcribing";

/// Work that goes on after its caller's wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkInProgress {
    /// When to retry, from 2 seconds to 5 minutes: estimated from the progress.
    pub retry_after: Duration,
    /// The transcribed part in percent; `None` if unknown.
    pub percent: Option<u8>,
}

impl WorkInProgress {
    /// Work without known progress.
    pub(super) fn retry_soon() -> Self {
        Self { retry_after: RETRY_AFTER_MIN, percent: None }
    }

    /// The message for people; `charged` is a clause about the cost so far.
    pub fn message(&self, charged: Option<&str>) -> String {
        let percent = self.percent.map(|percent| format!(" ({percent} % done)")).unwrap_or_default();
        let charged = charged.map(|charged| format!("; {charged}")).unwrap_or_default();
        let wait = format_wait(self.retry_after);
        format!("The video is still being transcribed{percent}{charged}. Try again in {wait}.")
    }
}

/// Progress of a fetch, for its waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchProgress {
    /// In the queue: no supplier was called yet.
    Queued,
    /// A supplier is working.
    Running {
        /// The supplier's name; empty until it reports.
        supplier: String,
        /// The stage, as in [`FetchStage::name`](super::FetchStage::name); empty until the first one.
        stage: String,
        /// The finished part of the stage in percent, at most 99; `None` if unknown.
        percent: Option<u8>,
    },
}

impl FetchProgress {
    /// The message for people.
    pub fn message(&self) -> String {
        let (stage, percent) = match self {
            Self::Queued => return "Waiting in the queue.".to_owned(),
            Self::Running { stage, percent, .. } => (stage.as_str(), *percent),
        };
        let what = match stage {
            "tracks" | "looking" => "Looking for captions",
            "captions" => "Fetching the captions",
            "audio" | "media" => "Fetching the audio",
            "decoding" => "Preparing the audio",
            TRANSCRIBING => "Transcribing the audio",
            _ => "Requesting the transcript",
        };
        match percent.filter(|_| matches!(stage, "audio" | "media" | TRANSCRIBING)) {
            Some(percent) => format!("{what}: {percent} % done."),
            None => format!("{what}."),
        }
    }
}

/// Collects the progress of one flight.
#[derive(Debug)]
pub(super) struct ProgressTracker {
    started_at: Timestamp,
    /// Whether any supplier was called: until then the flight is queued and nothing is charged.
    has_started: AtomicBool,
    stage: Mutex<Option<StageProgress>>,
}

/// A stage of the work, as its supplier reports it.
#[derive(Debug)]
struct StageProgress {
    supplier: String,
    name: String,
    /// When the stage started, and the amount that was done then.
    started_at: (Timestamp, u64),
    /// When the amount last grew, and the amount that is done.
    latest: (Timestamp, u64),
    /// The total amount; 0 if unknown.
    total: u64,
}

impl ProgressTracker {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { started_at: now, has_started: AtomicBool::default(), stage: Mutex::default() }
    }

    /// Records that a supplier is called.
    pub(super) fn mark_started(&self) {
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Whether any supplier was called so far.
    pub(super) fn has_started(&self) -> bool {
        self.has_started.load(Ordering::Relaxed)
    }

    /// Records a supplier's progress in a stage.
    pub(super) fn record(&self, supplier: &str, name: &str, (done, total): (u64, u64), now: Timestamp) {
        let mut stage = self.lock_stage();
        match &mut *stage {
            // A restart under the same name is another stage.
            Some(stage)
                if stage.supplier == supplier
                    && stage.name == name
                    && stage.total == total
                    && stage.latest.1 <= done =>
            {
                if stage.latest.1 < done {
                    stage.latest = (now, done);
                }
            }
            _ => {
                let (supplier, name) = (supplier.to_owned(), name.to_owned());
                *stage = Some(StageProgress {
                    supplier,
                    name,
                    started_at: (now, done),
                    latest: (now, done),
                    total,
                });
            }
        }
    }

    /// Estimate for a caller whose wait has ended.
    pub(super) fn work_in_progress(&self, now: Timestamp) -> WorkInProgress {
        // Without known progress, the estimate is the time that has passed.
        let elapsed = now.since(self.started_at).min(ESTIMATE_MAX);
        let stage = self.lock_stage();
        let is_transcribing = stage.as_ref().is_some_and(|stage| stage.name == TRANSCRIBING);
        let retry_after = match stage.as_ref().and_then(|stage| stage.remaining(now)) {
            Some(remaining) if is_transcribing => remaining,
            Some(remaining) => remaining.max(elapsed),
            None => elapsed,
        };
        let percent =
            stage.as_ref().filter(|stage| is_transcribing && stage.total > 0).map(StageProgress::percent);
        WorkInProgress { retry_after: retry_after.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX), percent }
    }

    /// The current progress.
    pub(super) fn progress(&self) -> FetchProgress {
        let stage = self.lock_stage();
        match stage.as_ref() {
            Some(stage) => FetchProgress::Running {
                supplier: stage.supplier.clone(),
                stage: stage.name.clone(),
                percent: (stage.total > 0).then(|| stage.percent()),
            },
            None if self.has_started() => {
                FetchProgress::Running { supplier: String::new(), stage: String::new(), percent: None }
            }
            None => FetchProgress::Queued,
        }
    }

    fn lock_stage(&self) -> MutexGuard<'_, Option<StageProgress>> {
        // A few numbers, consistent after every statement.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StageProgress {
    /// Remaining time of the stage at its average speed so far; `None` before any progress.
    fn remaining(&self, now: Timestamp) -> Option<Duration> {
        let done = self.latest.1.checked_sub(self.started_at.1).filter(|done| *done > 0)?;
        let remaining = self.total.checked_sub(self.latest.1).filter(|_| self.total > 0)?;
        let took_ms = self.latest.0.since(self.started_at.0).as_millis();
        let left_ms = took_ms.saturating_mul(u128::from(remaining)) / u128::from(done);
        let remaining = Duration::from_millis(u64::try_from(left_ms).unwrap_or(u64::MAX));
        // A part that takes longer than those before it does not shorten the estimate of the rest.
        let since = now.since(self.latest.0);
        Some(remaining.saturating_sub(since.min(remaining / 2)))
    }

    /// At most 99: a finished transcript is archived and no longer in progress.
    fn percent(&self) -> u8 {
        let percent = u128::from(self.latest.1) * 100 / u128::from(self.total.max(1));
        u8::try_from(percent).unwrap_or(u8::MAX).min(99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000_000).plus(Duration::from_secs(second))
    }

    /// The estimate at a second, for work that started at 0 and reported these stages.
    fn estimate(notes: &[(u64, &str, u64, u64)], second: u64) -> (u64, Option<u8>) {
        let tracker = ProgressTracker::new(at(0));
        for (second, name, done, total) in notes {
            tracker.record("speech-to-text", name, (*done, *total), at(*second));
        }
        let work = tracker.work_in_progress(at(second));
        (work.retry_after.as_secs(), work.percent)
    }

    #[test]
    fn estimate_without_progress_equals_elapsed_time() {
        for (second, retry_after_s) in [(0, 2), (1, 2), (25, 25), (60, 60), (1_000, 60)] {
            assert_eq!(estimate(&[], second), (retry_after_s, None));
            assert_eq!(estimate(&[(0, "decoding", 0, 0)], second), (retry_after_s, None));
        }
    }

    #[test]
    fn estimate_follows_transcription_speed() {
        let started = [(5, "audio", 900, 1_000), (10, "transcribing", 0, 10)];
        assert_eq!(estimate(&started, 20), (20, Some(0)));
        // Four parts in twenty seconds: thirty more for the other six.
        let mut notes = started.to_vec();
        notes.push((30, "transcribing", 4, 10));
        assert_eq!(estimate(&notes, 30), (30, Some(40)));
        assert_eq!(estimate(&notes, 40), (20, Some(40)));
        // Without progress the estimate shrinks at most to half.
        assert_eq!(estimate(&notes, 500), (15, Some(40)));
        notes.push((100, "transcribing", 10, 10));
        assert_eq!(estimate(&notes, 100), (2, Some(99)));
    }

    #[test]
    fn estimate_of_earlier_stage_is_lower_bound() {
        let audio = [(0, "audio", 0, 1_000), (10, "audio", 100, 1_000)];
        assert_eq!(estimate(&audio, 10), (90, None));
        assert_eq!(estimate(&[audio[0], (10, "audio", 999, 1_000)], 10), (10, None));
    }

    #[test]
    fn estimate_is_capped() {
        assert_eq!(estimate(&[(0, "transcribing", 0, 1_000), (100, "transcribing", 1, 1_000)], 100).0, 300);
        let hostile = [(0, "transcribing", 0, u64::MAX), (1, "transcribing", u64::MAX - 1, u64::MAX)];
        assert_eq!(estimate(&hostile, 1), (2, Some(99)));
        assert_eq!(estimate(&[(0, "transcribing", 7, 3), (1, "transcribing", 9, 3)], 1), (2, Some(99)));
    }

    #[test]
    fn estimate_of_restarted_stage_uses_new_speed() {
        let notes = [
            (0, "transcribing", 0, 2),
            (50, "transcribing", 1, 2),
            (60, "transcribing", 0, 10),
            (62, "transcribing", 1, 10),
        ];
        assert_eq!(estimate(&notes, 62), (18, Some(10)));
    }

    #[test]
    fn progress_message_names_stage() {
        let tracker = ProgressTracker::new(at(0));
        assert_eq!(tracker.progress(), FetchProgress::Queued);
        tracker.mark_started();
        assert_eq!(tracker.progress().message(), "Requesting the transcript.");
        for (stage, done, total, sentence) in [
            ("tracks", 1, 2, "Looking for captions."),
            ("captions", 0, 0, "Fetching the captions."),
            ("audio", 1, 4, "Fetching the audio: 25 % done."),
            ("audio", 1, 0, "Fetching the audio."),
            ("decoding", 0, 0, "Preparing the audio."),
            ("transcribing", 4, 4, "Transcribing the audio: 99 % done."),
            ("<b>", 1, 2, "Requesting the transcript."),
        ] {
            tracker.record("speech-to-text", stage, (done, total), at(1));
            assert_eq!(tracker.progress().message(), sentence);
        }
    }

    #[test]
    fn work_in_progress_message_has_retry_time() {
        let work = WorkInProgress { retry_after: Duration::from_millis(39_100), percent: Some(33) };
        assert_eq!(
            work.message(None),
            "The video is still being transcribed (33 % done). Try again in 40 seconds."
        );
        assert_eq!(
            WorkInProgress::retry_soon().message(Some("nothing was charged")),
            "The video is still being transcribed; nothing was charged. Try again in 2 seconds."
        );
    }
}
