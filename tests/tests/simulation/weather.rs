//! Which storage calls fail, and how: drawn from the seed, or the n-th one as planned.

use std::time::Duration;

use transcript_core::{Error, ErrorKind, Retry};

use super::dice::Dice;

/// What becomes of one storage call.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    /// How long it takes before it takes effect.
    pub(crate) before: Duration,
    /// Whether it takes effect.
    pub(crate) effect: bool,
    /// Whether it takes effect in its time also when its caller has given up by then.
    pub(crate) unstoppable: bool,
    /// How long it takes after that.
    pub(crate) after: Duration,
    /// How it ends.
    pub(crate) end: End,
}

/// How a storage call ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// With its own answer.
    Answer,
    /// With this error, whatever happened.
    Fault(Error),
    /// Never: its caller must give up.
    Hang,
}

impl Fate {
    /// Nothing goes wrong.
    pub(crate) const FINE: Self = Self {
        before: Duration::ZERO,
        effect: true,
        unstoppable: false,
        after: Duration::ZERO,
        end: End::Answer,
    };

    /// It fails at once: before or after it took effect.
    pub(crate) fn fault(effect: bool) -> Self {
        Self { effect, end: End::Fault(Error::unavailable("the store is away")), ..Self::FINE }
    }

    /// It never answers.
    pub(crate) fn hang(effect: bool) -> Self {
        Self { effect, end: End::Hang, ..Self::FINE }
    }
}

/// How a store can go wrong at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    FailBefore,
    FailAfter,
    HangBefore,
    HangAfter,
    /// Its caller gives up, and much later it takes effect after all.
    Late,
}

impl Trouble {
    pub(crate) const ALL: [Self; 5] =
        [Self::FailBefore, Self::FailAfter, Self::HangBefore, Self::HangAfter, Self::Late];

    fn fate(self) -> Fate {
        match self {
            Self::FailBefore => Fate::fault(false),
            Self::FailAfter => Fate::fault(true),
            Self::HangBefore => Fate::hang(false),
            Self::HangAfter => Fate::hang(true),
            Self::Late => {
                // Later than the lease that a claim asks for.
                let before = Duration::from_secs(66);
                Fate { before, unstoppable: true, ..Fate::hang(true) }
            }
        }
    }
}

/// Where the fates of storage calls come from.
#[derive(Debug)]
pub(crate) enum Weather {
    /// All goes well.
    Calm,
    /// Only the n-th call, counted from 1, goes wrong.
    Nth { n: u64, trouble: Trouble },
    /// Every call of the stores whose names begin so fails, until the weather changes.
    Away { stores: &'static str },
    /// No way to any store, until the weather changes: calls hang, or they fail at once.
    Cut { hangs: bool },
    /// Chance.
    Seeded(Box<Climate>),
}

/// How much goes wrong by chance, in permille of the calls.
#[derive(Debug)]
pub(crate) struct Climate {
    pub(crate) dice: Dice,
    pub(crate) fail: u64,
    pub(crate) slow: u64,
    pub(crate) hang: u64,
    /// How long a slow call takes, in milliseconds.
    pub(crate) delays: &'static [u64],
    /// How often an outage begins: a run of calls that all fail.
    pub(crate) outage: u64,
    /// How many calls of the present outage are left.
    pub(crate) outage_left: u64,
}

impl Climate {
    /// A climate, from fair to foul.
    pub(crate) fn drawn(seed: u64) -> Self {
        let dice = Dice::new(seed, 1);
        let (fail, slow, hang, outage) = *dice.pick(&[
            (0, 0, 0, 0),
            (10, 10, 0, 0),
            (30, 20, 5, 1),
            (80, 60, 20, 4),
            (0, 150, 0, 0),
            (0, 300, 0, 0),
        ]);
        let delays = &[1, 30, 400, 4_000, 4_900, 6_000, 30_000, 70_000];
        Self { dice, delays, fail, slow, hang, outage, outage_left: 0 }
    }

    /// A climate in which calls take effect long after their callers gave up.
    pub(crate) fn late(seed: u64) -> Self {
        let (dice, delays) = (Dice::new(seed, 1), &[66_000, 70_000, 90_000]);
        Self { dice, delays, fail: 0, slow: 60, hang: 0, outage: 0, outage_left: 0 }
    }

    /// Whether nothing ever goes wrong.
    pub(crate) fn is_fair(&self) -> bool {
        self.fail + self.slow + self.hang + self.outage == 0
    }

    fn fate(&mut self) -> Fate {
        if self.is_fair() {
            return Fate::FINE;
        }
        if self.outage_left == 0 && self.dice.chance(self.outage) {
            self.outage_left = 3 + self.dice.below(30);
        }
        if self.outage_left > 0 {
            self.outage_left -= 1;
            return Fate::fault(false);
        }
        let (before, after) = (self.delay(), self.delay());
        let (effect, unstoppable) = (self.dice.chance(500), self.dice.chance(500));
        let fate = Fate { before, after, unstoppable, ..Fate::FINE };
        if self.dice.chance(self.hang) {
            return Fate { effect, end: End::Hang, ..fate };
        }
        if self.dice.chance(self.fail) {
            return Fate { effect, end: End::Fault(self.error()), ..fate };
        }
        fate
    }

    fn delay(&mut self) -> Duration {
        match self.dice.chance(self.slow) {
            true => Duration::from_millis(*self.dice.pick(self.delays)),
            false => Duration::ZERO,
        }
    }

    fn error(&mut self) -> Error {
        let (kind, retry) = match self.dice.below(10) {
            0 => (ErrorKind::Unexpected, Retry::Never),
            1 => (ErrorKind::Unavailable, Retry::After(Duration::from_secs(1))),
            2 => (ErrorKind::Unavailable, Retry::After(Duration::from_secs(3_600))),
            _ => (ErrorKind::Unavailable, Retry::Backoff),
        };
        Error::new(kind, retry, "the store is away")
    }
}

impl Weather {
    /// The fate of the call with this number, counted from 1.
    pub(crate) fn fate(&mut self, number: u64, call: &str) -> Fate {
        match self {
            Self::Calm => Fate::FINE,
            Self::Nth { n, trouble } if *n == number => trouble.fate(),
            Self::Nth { .. } => Fate::FINE,
            Self::Away { stores } if call.starts_with(*stores) => Fate::fault(false),
            Self::Away { .. } => Fate::FINE,
            Self::Cut { hangs: true } => Fate::hang(false),
            Self::Cut { hangs: false } => Fate::fault(false),
            Self::Seeded(climate) => climate.fate(),
        }
    }
}
