//! Which storage calls fail, and how: drawn from the seed, or planned for the n-th call.

use std::{ops::RangeInclusive, time::Duration};

use transcript_core::{Error, ErrorKind, Retry};

use super::seeded_rng::SeededRng;

/// The injected behavior of one storage call.
#[derive(Clone, Debug)]
pub(crate) struct CallFault {
    /// Delay before the effect.
    pub(crate) before: Duration,
    /// Whether it takes effect.
    pub(crate) effect: bool,
    /// Whether the effect happens even when the caller stopped waiting before.
    pub(crate) unstoppable: bool,
    /// Delay after the effect.
    pub(crate) after: Duration,
    /// Result of the call.
    pub(crate) end: CallResult,
}

/// Result of a storage call.
#[derive(Clone, Debug)]
pub(crate) enum CallResult {
    /// The real result of the store.
    Answer,
    /// This error, whether or not the call took effect.
    Fault(Error),
    /// No result: the caller must time out.
    Hang,
}

impl CallFault {
    /// No fault.
    pub(crate) const NONE: Self = Self {
        before: Duration::ZERO,
        effect: true,
        unstoppable: false,
        after: Duration::ZERO,
        end: CallResult::Answer,
    };

    /// Fails immediately, before or after the effect.
    pub(crate) fn fault(effect: bool) -> Self {
        Self { effect, end: CallResult::Fault(Error::unavailable("the store is unavailable")), ..Self::NONE }
    }

    /// Never returns.
    pub(crate) fn hang(effect: bool) -> Self {
        Self { effect, end: CallResult::Hang, ..Self::NONE }
    }
}

/// A planned fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    FailBefore,
    FailAfter,
    HangBefore,
    HangAfter,
    /// The caller times out, and the effect happens much later.
    Late,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::FailBefore, Self::FailAfter, Self::HangBefore, Self::HangAfter, Self::Late];

    fn call_fault(self) -> CallFault {
        match self {
            Self::FailBefore => CallFault::fault(false),
            Self::FailAfter => CallFault::fault(true),
            Self::HangBefore => CallFault::hang(false),
            Self::HangAfter => CallFault::hang(true),
            Self::Late => {
                // Longer than the lease that a caller acquires.
                let before = Duration::from_secs(66);
                CallFault { before, unstoppable: true, ..CallFault::hang(true) }
            }
        }
    }
}

/// What happens at the n-th call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InjectedFault {
    Fault(FaultKind),
    Crash { after_effect: bool },
}

/// Runs a story with each fault at the n-th call, for n = 1, 2, …, until `run` returns that none was injected.
///
/// The story must make as many calls as `calls` contains.
pub(crate) fn every_nth_call(calls: RangeInclusive<u64>, mut run: impl FnMut(u64, InjectedFault) -> bool) {
    let faults = FaultKind::ALL.map(InjectedFault::Fault);
    let crashes = [false, true].map(|after_effect| InjectedFault::Crash { after_effect });
    for injected in faults.into_iter().chain(crashes) {
        let count = (0..=*calls.end()).find(|count| !run(count + 1, injected));
        assert!(count.is_some_and(|count| calls.contains(&count)), "{injected:?} at {count:?} calls");
    }
}

/// Source of the faults of storage calls.
#[derive(Debug)]
pub(crate) enum FaultPlan {
    /// No faults.
    NoFaults,
    /// Only the n-th call, counted from 1, fails.
    Nth { n: u64, fault: FaultKind },
    /// Every call whose name starts with `stores` fails until the plan changes.
    StoreDown { stores: &'static str },
    /// Every call whose name starts with `stores` waits for `delay` before its effect, and again after it.
    SlowStore { stores: &'static str, delay: Duration },
    /// No store is reachable until the plan changes: calls hang, or they fail immediately.
    Disconnected { hangs: bool },
    /// Random faults.
    Seeded(Box<FaultRates>),
}

/// Rates of random faults, in permille of the calls.
#[derive(Debug)]
pub(crate) struct FaultRates {
    pub(crate) rng: SeededRng,
    pub(crate) fail: u64,
    pub(crate) slow: u64,
    pub(crate) hang: u64,
    /// Possible durations of a slow call, in milliseconds.
    pub(crate) delays: &'static [u64],
    /// Rate at which an outage begins: a run of calls that all fail.
    pub(crate) outage: u64,
    /// Remaining calls of the current outage.
    pub(crate) outage_left: u64,
}

impl FaultRates {
    /// Random rates, from no faults to many.
    pub(crate) fn random(seed: u64) -> Self {
        let rng = SeededRng::new(seed, 1);
        let (fail, slow, hang, outage) = *rng.pick(&[
            (0, 0, 0, 0),
            (10, 10, 0, 0),
            (30, 20, 5, 1),
            (80, 60, 20, 4),
            (0, 150, 0, 0),
            (0, 300, 0, 0),
        ]);
        let delays = &[1, 30, 400, 4_000, 4_900, 6_000, 30_000, 70_000];
        Self { rng, delays, fail, slow, hang, outage, outage_left: 0 }
    }

    /// Rates with which calls take effect long after their callers timed out.
    pub(crate) fn late(seed: u64) -> Self {
        let (rng, delays) = (SeededRng::new(seed, 1), &[66_000, 70_000, 90_000]);
        Self { rng, delays, fail: 0, slow: 60, hang: 0, outage: 0, outage_left: 0 }
    }

    /// Whether no fault is possible.
    pub(crate) fn is_fair(&self) -> bool {
        self.fail + self.slow + self.hang + self.outage == 0
    }

    fn call_fault(&mut self) -> CallFault {
        if self.is_fair() {
            return CallFault::NONE;
        }
        if self.outage_left == 0 && self.rng.chance(self.outage) {
            self.outage_left = 3 + self.rng.below(30);
        }
        if self.outage_left > 0 {
            self.outage_left -= 1;
            return CallFault::fault(false);
        }
        let (before, after) = (self.delay(), self.delay());
        let (effect, unstoppable) = (self.rng.chance(500), self.rng.chance(500));
        let call_fault = CallFault { before, after, unstoppable, ..CallFault::NONE };
        if self.rng.chance(self.hang) {
            return CallFault { effect, end: CallResult::Hang, ..call_fault };
        }
        if self.rng.chance(self.fail) {
            return CallFault { effect, end: CallResult::Fault(self.error()), ..call_fault };
        }
        call_fault
    }

    fn delay(&mut self) -> Duration {
        match self.rng.chance(self.slow) {
            true => Duration::from_millis(*self.rng.pick(self.delays)),
            false => Duration::ZERO,
        }
    }

    fn error(&mut self) -> Error {
        let (kind, retry) = match self.rng.below(10) {
            0 => (ErrorKind::Unexpected, Retry::Never),
            1 => (ErrorKind::Unavailable, Retry::After(Duration::from_secs(1))),
            2 => (ErrorKind::Unavailable, Retry::After(Duration::from_secs(3_600))),
            _ => (ErrorKind::Unavailable, Retry::Backoff),
        };
        Error::new(kind, retry, "the store is unavailable")
    }
}

impl FaultPlan {
    /// The fault of the call with this number, counted from 1.
    pub(crate) fn call_fault(&mut self, number: u64, call: &str) -> CallFault {
        match self {
            Self::NoFaults => CallFault::NONE,
            Self::Nth { n, fault } if *n == number => fault.call_fault(),
            Self::Nth { .. } => CallFault::NONE,
            Self::StoreDown { stores } if call.starts_with(*stores) => CallFault::fault(false),
            Self::SlowStore { stores, delay } if call.starts_with(*stores) => {
                CallFault { before: *delay, after: *delay, ..CallFault::NONE }
            }
            Self::StoreDown { .. } | Self::SlowStore { .. } => CallFault::NONE,
            Self::Disconnected { hangs: true } => CallFault::hang(false),
            Self::Disconnected { hangs: false } => CallFault::fault(false),
            Self::Seeded(rates) => rates.call_fault(),
        }
    }
}
