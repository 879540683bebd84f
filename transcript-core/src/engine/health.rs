//! Whether a supplier is asked about a platform at all: one that keeps failing rests for a while. Pure.
//!
//! Closed, it is asked by everybody. After failures in a row, of as many videos, that speak against the supplier
//! itself it rests: nobody asks it. When the rest is over, one at a time may try it, and one more whenever that takes
//! long: who gets an answer ends the rest for all, and who fails begins one of twice the length.

use std::time::Duration;

use crate::{
    supplier::{Supplied, SupplyError, SupplyReason},
    time::{Timestamp, in_words, whole_seconds},
    video::{Platform, VideoId},
};

/// When a supplier rests, and for how long (decision 0021).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthPolicy {
    /// How many videos in a row it must have failed with (`suppliers.rest_after`); with 0 none ever rests.
    pub failures: u32,
    /// How long the first rest is (`suppliers.rest`); each further one in a row is twice as long.
    pub rest: Duration,
    /// The longest rest (`suppliers.rest_max`), whatever a platform names.
    pub rest_max: Duration,
}

impl Default for HealthPolicy {
    /// After 5 videos, for 30 seconds, and 15 minutes at most.
    fn default() -> Self {
        Self { failures: 5, rest: Duration::from_secs(30), rest_max: Duration::from_secs(15 * 60) }
    }
}

/// A supplier began to rest, or works again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierHealth {
    /// The supplier's name.
    pub supplier: String,
    /// The platform that it is not asked about, or is asked about again.
    pub platform: Platform,
    /// Since when it rests, until when and why; none when it works again.
    pub rest: Option<Rest>,
}

/// Why and until when a supplier is not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The reason of the last failure.
    pub reason: SupplyReason,
    /// When it may be asked again.
    pub until: Timestamp,
    /// How many rests there were in a row, this one included.
    pub in_a_row: u32,
}

/// What an answer says of the supplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It works: words, or something true about the video.
    Works,
    /// It does not, for this reason.
    Fails(SupplyReason),
    /// It answers, though whether it fails or the video does is not known. That is no failure, nor the end of some in
    /// a row; but one that rested is there again.
    Answers,
    /// Neither: nobody was asked, nobody waited for the end, or it may be due to the video alone. Until then it is
    /// of no use to ask, where that was said.
    Open(Option<Duration>),
}

impl Verdict {
    /// What an answer says of who gave it.
    pub(super) fn of(answer: &Result<Supplied, SupplyError>) -> Self {
        match answer {
            Ok(_) => Self::Works,
            Err(failure) if failure.is_only_of_the_video() => Self::Open(None),
            Err(failure) if failure.was_asked() && failure.reason().is_about_the_video() => Self::Works,
            Err(failure) if failure.speaks_against_the_supplier() => Self::Fails(failure.reason().clone()),
            Err(failure) if failure.was_asked() && is_answered(failure.reason()) => Self::Answers,
            Err(failure) => Self::Open(failure.retry_after()),
        }
    }
}

/// Whether a failure is what somebody answered.
fn is_answered(reason: &SupplyReason) -> bool {
    !matches!(reason, SupplyReason::Cancelled | SupplyReason::Timeout | SupplyReason::Unreachable)
}

/// Who was let in: how, and in which turn of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Let {
    /// To try a supplier that rested.
    pub(super) is_trial: bool,
    turn: u64,
}

/// Whether somebody may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// They may.
    Open(Let),
    /// Not now, for this reason of the last failure, and for so long.
    Resting(SupplyReason, Duration),
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A rest began.
    Rests(Rest),
    /// It works again.
    Recovers,
}

/// The state of one supplier with one platform.
#[derive(Debug)]
pub(super) struct Breaker {
    policy: HealthPolicy,
    state: State,
    /// Counts its rests and recoveries. What was asked in an earlier turn says little of the present one.
    turn: u64,
}

#[derive(Debug)]
enum State {
    /// Everybody asks. These are the videos of the failures since the last success, each once: one video alone,
    /// however often it is asked for, must not take the supplier from all others.
    Closed { failed: Vec<VideoId> },
    /// It rests, or is being tried since a moment.
    Resting { length: Duration, rest: Rest, tried: Option<Timestamp> },
}

impl Breaker {
    pub(super) fn new(policy: HealthPolicy) -> Self {
        Self { policy, state: State::Closed { failed: Vec::new() }, turn: 0 }
    }

    /// Why it may not be asked now, and for how long; none when it may.
    pub(super) fn rests(&self, now: Timestamp) -> Option<(SupplyReason, Duration)> {
        match &self.state {
            State::Resting { rest, .. } if now < rest.until => {
                Some((rest.reason.clone(), rest.until.since(now)))
            }
            // How long the trial takes nobody knows: after a while there is another one beside it.
            State::Resting { rest, tried: Some(since), .. } => {
                let left = since.plus(self.policy.rest.min(self.policy.rest_max)).since(now);
                (!left.is_zero()).then(|| (rest.reason.clone(), left))
            }
            _ => None,
        }
    }

    /// Whether it may be asked now. Whoever gets a trial must [`Breaker::learn`] what came of it, or
    /// [`Breaker::abandon`] it.
    pub(super) fn admit(&mut self, now: Timestamp) -> Admission {
        if let Some((reason, left)) = self.rests(now) {
            return Admission::Resting(reason, left);
        }
        let is_trial = match &mut self.state {
            State::Closed { .. } => false,
            State::Resting { tried, .. } => {
                *tried = Some(now);
                true
            }
        };
        Admission::Open(Let { is_trial, turn: self.turn })
    }

    /// A trial of which nothing was learnt lets the next one try.
    pub(super) fn abandon(&mut self, given: Let) {
        if let State::Resting { tried, .. } = &mut self.state
            && given.turn == self.turn
        {
            *tried = None;
        }
    }

    /// Learns what came of asking about a video.
    pub(super) fn learn(
        &mut self,
        video: &VideoId,
        verdict: Verdict,
        given: Let,
        now: Timestamp,
    ) -> Option<Change> {
        let policy = self.policy;
        let is_of_now = given.turn == self.turn;
        let is_trial = given.is_trial && is_of_now;
        match (&mut self.state, verdict) {
            (State::Closed { failed }, Verdict::Works) => {
                failed.clear();
                None
            }
            (State::Closed { failed }, Verdict::Fails(reason)) => {
                if policy.failures == 0 || !is_of_now {
                    return None;
                }
                if !failed.contains(video) {
                    failed.push(video.clone());
                }
                let is_enough = failed.len() >= policy.failures as usize;
                is_enough.then(|| self.begin_rest(reason, policy.rest, 1, now))
            }
            (State::Closed { .. }, Verdict::Answers | Verdict::Open(_)) => None,
            // Also one that was asked before the rest began: it works.
            (State::Resting { .. }, Verdict::Works) => Some(self.recover()),
            (State::Resting { .. }, Verdict::Answers) => is_trial.then(|| self.recover()),
            (State::Resting { length, rest, .. }, Verdict::Fails(reason)) if is_trial => {
                let (longer, in_a_row) = (length.saturating_mul(2), rest.in_a_row.saturating_add(1));
                Some(self.begin_rest(reason, longer, in_a_row, now))
            }
            // Asked before the rest began: no new failure, but it may say when to come back.
            (State::Resting { rest, .. }, Verdict::Fails(reason)) => {
                put_off(rest, reason.named_wait(), policy, now);
                None
            }
            (State::Resting { rest, tried, .. }, Verdict::Open(named)) => {
                if is_trial {
                    *tried = None;
                    put_off(rest, named, policy, now);
                }
                None
            }
        }
    }

    fn recover(&mut self) -> Change {
        self.turn += 1;
        self.state = State::Closed { failed: Vec::new() };
        Change::Recovers
    }

    fn begin_rest(
        &mut self,
        reason: SupplyReason,
        length: Duration,
        in_a_row: u32,
        now: Timestamp,
    ) -> Change {
        let length = length.min(self.policy.rest_max);
        let named = reason.named_wait().unwrap_or_default().min(self.policy.rest_max);
        let rest = Rest { reason, until: now.plus(length.max(named)), in_a_row };
        self.turn += 1;
        self.state = State::Resting { length, rest: rest.clone(), tried: None };
        Change::Rests(rest)
    }
}

/// Heeds a wait that was named, within bounds.
fn put_off(rest: &mut Rest, named: Option<Duration>, policy: HealthPolicy, now: Timestamp) {
    let until = now.plus(named.unwrap_or_default().min(policy.rest_max));
    rest.until = rest.until.max(until);
}

/// What is told instead of asking a supplier that rests: the true reason, and when to come back. It costs nobody
/// anything.
pub(super) fn resting(
    supplier: &str,
    platform: Platform,
    reason: SupplyReason,
    left: Duration,
) -> SupplyError {
    let why = match &reason {
        SupplyReason::Throttled(_) => "too many requests came from this server",
        SupplyReason::BotCheck => "it is asked for a proof that no bot is asking",
        SupplyReason::OtherVideo => "it is answered about other videos",
        SupplyReason::Timeout => "it took too long",
        SupplyReason::Unreachable => "nobody could be reached",
        SupplyReason::Unreadable => "what it is answered can no longer be read",
        SupplyReason::Stale => "its settings are too old",
        SupplyReason::Misconfigured => "its settings are wrong",
        _ => "there are faults that are not its own",
    };
    // What waits for a moment that is named, waits for the same as everybody now.
    let reason = match reason {
        SupplyReason::Throttled(_) => SupplyReason::Throttled(Some(left)),
        reason => reason,
    };
    let message = format!(
        "The source {supplier} failed with several videos of {} in a row ({why}), so it is left alone for now: please \
         ask again in {}.",
        platform.name(),
        in_words(whole_seconds(left)),
    );
    SupplyError::unasked(reason, message).again_after(left)
}

#[cfg(test)]
mod tests;
