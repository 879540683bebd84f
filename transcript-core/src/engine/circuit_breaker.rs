//! Circuit breaker per supplier and platform. Pure: no clock, no I/O.
//!
//! Closed: all calls pass. After consecutive failures with different videos that count against the supplier it opens,
//! and no call passes. After the cooldown one trial call passes at a time, and a further one whenever a trial takes
//! long. A trial that gets an answer closes the breaker; one that fails starts a cooldown of twice the length.

use std::time::Duration;

use crate::{
    supplier::{SupplyError, SupplyOutput, SupplyReason},
    time::{Timestamp, format_wait},
    video::{Platform, VideoId},
};

/// Shortest time after which a second trial may run beside one that takes long.
const TRIAL_ALONE: Duration = Duration::from_secs(10);
/// Shortest wait that is named while a trial runs: most trials end at once, and then all calls pass.
const TRIAL_POLL: Duration = Duration::from_millis(200);

/// When a breaker opens, and for how long (decision 0021).
#[derive(Clone, Copy, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct BreakerPolicy {
    /// Consecutive videos that must fail (`suppliers.breaker_threshold`); with 0 it never opens.
    #[default(5)]
    pub failures: u32,
    /// The first cooldown (`suppliers.breaker_cooldown`); each consecutive one is twice as long.
    #[default(Duration::from_secs(30))]
    pub cooldown: Duration,
    /// The longest cooldown (`suppliers.breaker_cooldown_max`), whatever wait a platform requests.
    #[default(Duration::from_secs(15 * 60))]
    pub cooldown_max: Duration,
}

/// A breaker opened or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerEvent {
    /// The supplier's name.
    pub supplier: String,
    /// The platform of the breaker.
    pub platform: Platform,
    /// The cooldown of an opened breaker; `None` if it closed.
    pub cooldown: Option<Cooldown>,
}

/// Reason and end of the time in which a supplier is not called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooldown {
    /// The reason of the last failure.
    pub reason: SupplyReason,
    /// When it may be called again.
    pub expires_at: Timestamp,
    /// Number of consecutive cooldowns, this one included.
    pub consecutive: u32,
}

/// Effect of a call's result on the breaker of the supplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HealthSignal {
    /// It works: it returned a transcript, or a failure that describes the video.
    Healthy,
    /// It fails, for this reason.
    Failing(SupplyReason),
    /// It responds, but the failure may be the supplier's or the video's.
    ///
    /// It neither counts as a failure nor resets the count, but it closes an open breaker after a trial.
    Responding,
    /// No information: no upstream was reached, the call was dropped, or only the video is affected.
    ///
    /// With the wait that was requested, if any.
    Neutral(Option<Duration>),
}

impl HealthSignal {
    /// The signal of a call's result.
    pub(super) fn from_result(answer: &Result<SupplyOutput, SupplyError>) -> Self {
        match answer {
            Ok(_) => Self::Healthy,
            Err(failure) if failure.is_video_only() => Self::Neutral(None),
            Err(failure) if failure.was_attempted() && failure.reason().is_about_video() => Self::Healthy,
            Err(failure) if failure.counts_against_supplier() => Self::Failing(failure.reason().clone()),
            Err(failure) if failure.was_attempted() && is_answered(failure.reason()) => Self::Responding,
            Err(failure) => Self::Neutral(failure.retry_after()),
        }
    }
}

/// Whether a failure is a response of the upstream.
fn is_answered(reason: &SupplyReason) -> bool {
    !matches!(reason, SupplyReason::Cancelled | SupplyReason::Timeout | SupplyReason::Unreachable)
}

/// Permit for one call: whether it is a trial, and in which state of the breaker it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BreakerPermit {
    /// Whether the call is a trial after a cooldown.
    pub(super) is_trial: bool,
    generation: u64,
}

/// Breaker decision for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BreakerDecision {
    /// The call may be made.
    Permitted(BreakerPermit),
    /// No call now: the reason of the last failure, and the time to retry.
    Open(SupplyReason, Duration),
}

/// A state transition of a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BreakerTransition {
    /// It opened, with this cooldown.
    Opened(Cooldown),
    /// It closed.
    Closed,
}

/// The breaker of one supplier and platform.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    policy: BreakerPolicy,
    state: BreakerState,
    /// Counts its transitions.
    ///
    /// The result of a call from an earlier state says little about the present one.
    generation: u64,
}

#[derive(Debug)]
enum BreakerState {
    /// Calls pass.
    ///
    /// The videos of the failures since the last success, each once: a single video, however often it is requested,
    /// must not open the breaker for all others.
    Closed { failed: Vec<VideoId> },
    /// No calls pass, or a trial has been running since `trial_started_at`.
    Open { length: Duration, cooldown: Cooldown, trial_started_at: Option<Timestamp> },
}

impl CircuitBreaker {
    pub(super) fn new(policy: BreakerPolicy) -> Self {
        Self { policy, state: BreakerState::Closed { failed: Vec::new() }, generation: 0 }
    }

    /// Why no call may be made now, and the time to retry; `None` if one may.
    ///
    /// During a trial it is at most a fifth of the policy's cooldown, whatever time the trial has left.
    /// A longer time than the longest possible one counts as none: a clock that was ahead and was corrected since set
    /// it.
    pub(super) fn remaining_cooldown(&self, now: Timestamp) -> Option<(SupplyReason, Duration)> {
        let latest = now.plus(self.policy.cooldown_max);
        match &self.state {
            BreakerState::Open { cooldown, .. }
                if now < cooldown.expires_at && cooldown.expires_at <= latest =>
            {
                Some((cooldown.reason.clone(), cooldown.expires_at.since(now)))
            }
            // The duration of a trial is unknown: after a while a second one may run at the same time.
            BreakerState::Open { cooldown, trial_started_at: Some(since), .. } => {
                let alone = self.policy.cooldown.max(TRIAL_ALONE).min(self.policy.cooldown_max);
                let left = since.plus(alone).since(now);
                let poll = (self.policy.cooldown / 5).max(TRIAL_POLL);
                (!left.is_zero() && left <= alone).then(|| (cooldown.reason.clone(), left.min(poll)))
            }
            _ => None,
        }
    }

    /// Whether a call may be made now.
    ///
    /// The result of a trial must be passed to [`CircuitBreaker::record`], or the trial ended with
    /// [`CircuitBreaker::abandon`].
    pub(super) fn admit(&mut self, now: Timestamp) -> BreakerDecision {
        if let Some((reason, left)) = self.remaining_cooldown(now) {
            return BreakerDecision::Open(reason, left);
        }
        let is_trial = match &mut self.state {
            BreakerState::Closed { .. } => false,
            BreakerState::Open { trial_started_at, .. } => {
                *trial_started_at = Some(now);
                true
            }
        };
        BreakerDecision::Permitted(BreakerPermit { is_trial, generation: self.generation })
    }

    /// Ends a trial without a result: the next call may try.
    pub(super) fn abandon(&mut self, permit: BreakerPermit) {
        if let BreakerState::Open { trial_started_at, .. } = &mut self.state
            && permit.generation == self.generation
        {
            *trial_started_at = None;
        }
    }

    /// Records the result of a call for a video.
    pub(super) fn record(
        &mut self,
        video: &VideoId,
        signal: HealthSignal,
        permit: BreakerPermit,
        now: Timestamp,
    ) -> Option<BreakerTransition> {
        let policy = self.policy;
        let is_current = permit.generation == self.generation;
        let is_trial = permit.is_trial && is_current;
        match (&mut self.state, signal) {
            (BreakerState::Closed { failed }, HealthSignal::Healthy) => {
                failed.clear();
                None
            }
            (BreakerState::Closed { failed }, HealthSignal::Failing(reason)) => {
                if policy.failures == 0 || !is_current {
                    return None;
                }
                if !failed.contains(video) {
                    failed.push(video.clone());
                }
                let is_enough = failed.len() >= policy.failures as usize;
                is_enough.then(|| self.open(reason, policy.cooldown, 1, now))
            }
            (BreakerState::Closed { .. }, HealthSignal::Responding | HealthSignal::Neutral(_)) => None,
            // Also for a call that started before the breaker opened: the supplier works.
            (BreakerState::Open { .. }, HealthSignal::Healthy) => Some(self.close()),
            (BreakerState::Open { .. }, HealthSignal::Responding) => is_trial.then(|| self.close()),
            (BreakerState::Open { length, cooldown, .. }, HealthSignal::Failing(reason)) if is_trial => {
                let (longer, consecutive) =
                    (length.saturating_mul(2), cooldown.consecutive.saturating_add(1));
                Some(self.open(reason, longer, consecutive, now))
            }
            // The call started before the breaker opened: no new failure, but it may extend the cooldown.
            (BreakerState::Open { cooldown, .. }, HealthSignal::Failing(reason)) => {
                extend_cooldown(cooldown, reason.named_wait(), policy, now);
                None
            }
            (
                BreakerState::Open { cooldown, trial_started_at, .. },
                HealthSignal::Neutral(requested_wait),
            ) => {
                if is_trial {
                    *trial_started_at = None;
                    extend_cooldown(cooldown, requested_wait, policy, now);
                }
                None
            }
        }
    }

    fn close(&mut self) -> BreakerTransition {
        self.generation += 1;
        self.state = BreakerState::Closed { failed: Vec::new() };
        BreakerTransition::Closed
    }

    fn open(
        &mut self,
        reason: SupplyReason,
        length: Duration,
        consecutive: u32,
        now: Timestamp,
    ) -> BreakerTransition {
        let length = length.min(self.policy.cooldown_max);
        let requested_wait = reason.named_wait().unwrap_or_default().min(self.policy.cooldown_max);
        let cooldown = Cooldown { reason, expires_at: now.plus(length.max(requested_wait)), consecutive };
        self.generation += 1;
        self.state = BreakerState::Open { length, cooldown: cooldown.clone(), trial_started_at: None };
        BreakerTransition::Opened(cooldown)
    }
}

/// Extends a cooldown by a wait that an upstream requested, up to the longest cooldown.
fn extend_cooldown(
    cooldown: &mut Cooldown,
    requested_wait: Option<Duration>,
    policy: BreakerPolicy,
    now: Timestamp,
) {
    let until = now.plus(requested_wait.unwrap_or_default().min(policy.cooldown_max));
    cooldown.expires_at = cooldown.expires_at.max(until);
}

/// The error of a call that an open breaker prevents: the last reason, and when to retry.
///
/// Nothing is charged.
pub(super) fn cooldown_error(
    supplier: &str,
    platform: Platform,
    reason: SupplyReason,
    left: Duration,
) -> SupplyError {
    let cause = match &reason {
        SupplyReason::Throttled(_) => "too many requests from this server",
        SupplyReason::BotCheck => "the platform requires proof that the client is not a bot",
        SupplyReason::OtherVideo => "the platform returns other videos",
        SupplyReason::Timeout => "it timed out",
        SupplyReason::Unreachable => "it was unreachable",
        SupplyReason::Unreadable => "its responses can no longer be parsed",
        SupplyReason::Stale => "its settings are out of date",
        SupplyReason::Misconfigured => "its settings are wrong",
        _ => "the platform has faults",
    };
    // A requested wait is replaced by the remaining cooldown.
    let reason = match reason {
        SupplyReason::Throttled(_) => SupplyReason::Throttled(Some(left)),
        reason => reason,
    };
    let message = format!(
        "The source {supplier} failed for several {} videos in a row ({cause}) and is paused. Try again in {}.",
        platform.name(),
        format_wait(left),
    );
    SupplyError::before_request(reason, message).with_retry_after(left)
}

#[cfg(test)]
mod tests;
