//! How far the work of an errand is, and so when it is of use to ask after it again.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::time::{Timestamp, in_words, whole_seconds};

/// Nobody is told to come back sooner, nor later.
const AGAIN_MIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(300);
/// The longest guess, where nothing is known of how far the work is.
const GUESS_MAX: Duration = Duration::from_secs(60);
/// The stage that is the work itself: what comes before it tells nothing of how long it will take.
const TRANSCRIBING: &str = "transcribing";

/// Work that goes on after its caller has waited for long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillWorking {
    /// After how long to ask again, from 2 seconds to 5 minutes: estimated from how far the work is.
    pub again_after: Duration,
    /// How much is transcribed, in percent; none where that is not known.
    pub percent: Option<u8>,
}

impl StillWorking {
    /// Work of which nothing is known.
    pub(super) fn soon() -> Self {
        Self { again_after: AGAIN_MIN, percent: None }
    }

    /// The sentence for people; `charged` says what it costs so far, where that is to be said.
    pub fn sentence(&self, charged: Option<&str>) -> String {
        let percent = self.percent.map(|percent| format!(" ({percent} % is done)")).unwrap_or_default();
        let charged = charged.map(|charged| format!("{charged}, ")).unwrap_or_default();
        let again = in_words(whole_seconds(self.again_after));
        format!("The video is still being transcribed{percent}: {charged}please ask again in {again}.")
    }
}

/// How far work is, for whoever waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is in line: nobody was asked yet.
    InLine,
    /// A supplier is at work.
    AtWork {
        /// The supplier's name; empty until it tells of anything.
        supplier: String,
        /// The stage, as in [`Stage::name`](super::Stage::name); empty until there is one.
        stage: String,
        /// How much of the stage is done, in percent up to 99; none where that is not known.
        percent: Option<u8>,
    },
}

impl Progress {
    /// The sentence for people.
    pub fn sentence(&self) -> String {
        let (stage, percent) = match self {
            Self::InLine => return "Waiting for a free place.".to_owned(),
            Self::AtWork { stage, percent, .. } => (stage.as_str(), *percent),
        };
        let what = match stage {
            "tracks" | "looking" => "Looking for captions",
            "captions" => "Fetching the captions",
            "audio" | "media" => "Fetching the sound",
            "decoding" => "Preparing the sound",
            TRANSCRIBING => "Listening to the video",
            _ => "Asking for the transcript",
        };
        match percent.filter(|_| matches!(stage, "audio" | "media" | TRANSCRIBING)) {
            Some(percent) => format!("{what}: {percent} % is done."),
            None => format!("{what}."),
        }
    }
}

/// How far an errand is.
#[derive(Debug)]
pub(super) struct Pace {
    began: Timestamp,
    /// Whether any supplier was asked: until then the work is in line, and costs nobody anything.
    asked: AtomicBool,
    step: Mutex<Option<Step>>,
}

/// A stage of the work, as its supplier tells it.
#[derive(Debug)]
struct Step {
    supplier: String,
    name: String,
    /// When the stage began, and how much was done then.
    began: (Timestamp, u64),
    /// When most was told of it last, and how much is done.
    now: (Timestamp, u64),
    /// How much there is to do; 0 when nobody knows.
    of: u64,
}

impl Pace {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { began: now, asked: AtomicBool::default(), step: Mutex::default() }
    }

    /// A supplier is asked now.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether any supplier was asked so far.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// A supplier came so far in a stage.
    pub(super) fn note(&self, supplier: &str, name: &str, (done, of): (u64, u64), now: Timestamp) {
        let mut step = self.step();
        match &mut *step {
            // What begins anew under the same name is another stage.
            Some(step)
                if step.supplier == supplier && step.name == name && step.of == of && step.now.1 <= done =>
            {
                if step.now.1 < done {
                    step.now = (now, done);
                }
            }
            _ => {
                let (supplier, name) = (supplier.to_owned(), name.to_owned());
                *step = Some(Step { supplier, name, began: (now, done), now: (now, done), of });
            }
        }
    }

    /// What to tell whoever asks after the work.
    pub(super) fn still_working(&self, now: Timestamp) -> StillWorking {
        // Without any sign, work that took so long takes as long again.
        let guess = now.since(self.began).min(GUESS_MAX);
        let step = self.step();
        let is_transcribing = step.as_ref().is_some_and(|step| step.name == TRANSCRIBING);
        let again_after = match step.as_ref().and_then(|step| step.left(now)) {
            Some(left) if is_transcribing => left,
            Some(left) => left.max(guess),
            None => guess,
        };
        let percent = step.as_ref().filter(|step| is_transcribing && step.of > 0).map(Step::percent);
        StillWorking { again_after: again_after.clamp(AGAIN_MIN, AGAIN_MAX), percent }
    }

    /// How far it is.
    pub(super) fn progress(&self) -> Progress {
        let step = self.step();
        match step.as_ref() {
            Some(step) => Progress::AtWork {
                supplier: step.supplier.clone(),
                stage: step.name.clone(),
                percent: (step.of > 0).then(|| step.percent()),
            },
            None if self.was_asked() => {
                Progress::AtWork { supplier: String::new(), stage: String::new(), percent: None }
            }
            None => Progress::InLine,
        }
    }

    fn step(&self) -> MutexGuard<'_, Option<Step>> {
        // A few numbers, whole at every moment.
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Step {
    /// How long the stage will still take at the pace it has had so far, where it has had any.
    fn left(&self, now: Timestamp) -> Option<Duration> {
        let done = self.now.1.checked_sub(self.began.1).filter(|done| *done > 0)?;
        let left = self.of.checked_sub(self.now.1).filter(|_| self.of > 0)?;
        let took_ms = self.now.0.since(self.began.0).as_millis();
        let left_ms = took_ms.saturating_mul(u128::from(left)) / u128::from(done);
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(u64::MAX));
        // A part that takes longer than those before it does not make the rest any shorter.
        let since = now.since(self.now.0);
        Some(left.saturating_sub(since.min(left / 2)))
    }

    /// Never all of it: what is done altogether is archived.
    fn percent(&self) -> u8 {
        let percent = u128::from(self.now.1) * 100 / u128::from(self.of.max(1));
        u8::try_from(percent).unwrap_or(u8::MAX).min(99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000_000).plus(Duration::from_secs(second))
    }

    /// What is told at a second, of work that began at 0 and came so far at these seconds.
    fn told(notes: &[(u64, &str, u64, u64)], second: u64) -> (u64, Option<u8>) {
        let pace = Pace::new(at(0));
        for (second, name, done, of) in notes {
            pace.note("speech-to-text", name, (*done, *of), at(*second));
        }
        let still = pace.still_working(at(second));
        (still.again_after.as_secs(), still.percent)
    }

    #[test]
    fn without_a_sign_it_takes_as_long_again() {
        for (second, again) in [(0, 2), (1, 2), (25, 25), (60, 60), (1_000, 60)] {
            assert_eq!(told(&[], second), (again, None));
            assert_eq!(told(&[(0, "decoding", 0, 0)], second), (again, None));
        }
    }

    #[test]
    fn the_pace_of_the_parts_tells_how_long_it_takes() {
        let begun = [(5, "audio", 900, 1_000), (10, "transcribing", 0, 10)];
        assert_eq!(told(&begun, 20), (20, Some(0)));
        // Four parts in twenty seconds: thirty more for the other six.
        let mut notes = begun.to_vec();
        notes.push((30, "transcribing", 4, 10));
        assert_eq!(told(&notes, 30), (30, Some(40)));
        assert_eq!(told(&notes, 40), (20, Some(40)));
        // It halts: not shorter than half.
        assert_eq!(told(&notes, 500), (15, Some(40)));
        notes.push((100, "transcribing", 10, 10));
        assert_eq!(told(&notes, 100), (2, Some(99)));
    }

    #[test]
    fn what_comes_before_the_work_tells_the_least_that_it_takes() {
        let audio = [(0, "audio", 0, 1_000), (10, "audio", 100, 1_000)];
        assert_eq!(told(&audio, 10), (90, None));
        assert_eq!(told(&[audio[0], (10, "audio", 999, 1_000)], 10), (10, None));
    }

    #[test]
    fn nobody_is_told_to_wait_for_ever() {
        assert_eq!(told(&[(0, "transcribing", 0, 1_000), (100, "transcribing", 1, 1_000)], 100).0, 300);
        let hostile = [(0, "transcribing", 0, u64::MAX), (1, "transcribing", u64::MAX - 1, u64::MAX)];
        assert_eq!(told(&hostile, 1), (2, Some(99)));
        assert_eq!(told(&[(0, "transcribing", 7, 3), (1, "transcribing", 9, 3)], 1), (2, Some(99)));
    }

    #[test]
    fn what_begins_anew_has_a_pace_of_its_own() {
        let notes = [
            (0, "transcribing", 0, 2),
            (50, "transcribing", 1, 2),
            (60, "transcribing", 0, 10),
            (62, "transcribing", 1, 10),
        ];
        assert_eq!(told(&notes, 62), (18, Some(10)));
    }

    #[test]
    fn progress_is_told_in_sentences() {
        let pace = Pace::new(at(0));
        assert_eq!(pace.progress(), Progress::InLine);
        pace.ask();
        assert_eq!(pace.progress().sentence(), "Asking for the transcript.");
        for (stage, done, of, sentence) in [
            ("tracks", 1, 2, "Looking for captions."),
            ("captions", 0, 0, "Fetching the captions."),
            ("audio", 1, 4, "Fetching the sound: 25 % is done."),
            ("audio", 1, 0, "Fetching the sound."),
            ("decoding", 0, 0, "Preparing the sound."),
            ("transcribing", 4, 4, "Listening to the video: 99 % is done."),
            ("<b>", 1, 2, "Asking for the transcript."),
        ] {
            pace.note("speech-to-text", stage, (done, of), at(1));
            assert_eq!(pace.progress().sentence(), sentence);
        }
    }

    #[test]
    fn it_is_said_in_a_sentence() {
        let still = StillWorking { again_after: Duration::from_millis(39_100), percent: Some(33) };
        assert_eq!(
            still.sentence(None),
            "The video is still being transcribed (33 % is done): please ask again in 40 seconds."
        );
        assert_eq!(
            StillWorking::soon().sentence(Some("nothing was charged")),
            "The video is still being transcribed: nothing was charged, please ask again in 2 seconds."
        );
    }
}
