//! The plan of a key.

use super::LookupOptions;
use crate::{directory::LookupKey, ledger::terms::AllowancePeriod, names::names, time::Timestamp};

/// The plan of a lookup API key (specification 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyPlan {
    /// A free key.
    Free,
    /// A key whose owner has a paid plan.
    Plus,
    /// A key whose owner's paid plan has ended: it has the free allowance.
    PlusInactive,
}

names!(KeyPlan {
    Free = "free",
    Plus = "plus",
    PlusInactive = "plus_inactive",
});

impl KeyPlan {
    /// The plan of a key at a time.
    pub fn for_key(key: &LookupKey, now: Timestamp) -> Self {
        match key.entitled_until {
            None => Self::Free,
            Some(until) if now < until => Self::Plus,
            Some(_) => Self::PlusInactive,
        }
    }

    /// The period of its allowance.
    pub fn period(self) -> AllowancePeriod {
        match self {
            Self::Plus => AllowancePeriod::Day,
            Self::Free | Self::PlusInactive => AllowancePeriod::Month,
        }
    }

    /// New transcripts per period.
    pub fn allowance(self, options: &LookupOptions) -> u64 {
        match self {
            Self::Plus => options.plus_per_day,
            Self::Free | Self::PlusInactive => options.free_per_month,
        }
    }
}
