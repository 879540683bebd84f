//! Failure reasons of a lookup.

use crate::supplier::{SupplyError, SupplyReason};

/// The `failureReason` of a lookup (specification 2.2; for when each applies, 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// Not archived, and the caller has no valid key.
    NeedsVerification,
    /// No usable transcript: no captions or speech, or the video is private, removed, blocked, withdrawn.
    NoCaptions,
    /// The key's allowance for the period is spent.
    KeyAllowance,
    /// The verified visitor's allowance is spent.
    Allowance,
    /// The service's daily cap of new transcripts is spent.
    DailyCap,
    /// Too many misses from this network, or attempts with this key.
    FairUse,
    /// The platform throttles this server or blocks it as a bot.
    RateLimited,
    /// A transient failure, or the work goes on after the wait.
    FetchError,
    /// No supplier is configured for the platform, or its settings are wrong or out of date.
    ConfigError,
}

impl FailureReason {
    /// All reasons, in the specification's order.
    pub const ALL: [Self; 9] = [
        Self::NeedsVerification,
        Self::NoCaptions,
        Self::KeyAllowance,
        Self::Allowance,
        Self::DailyCap,
        Self::FairUse,
        Self::RateLimited,
        Self::FetchError,
        Self::ConfigError,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeedsVerification => "needs_verification",
            Self::NoCaptions => "no_captions",
            Self::KeyAllowance => "key_allowance",
            Self::Allowance => "allowance",
            Self::DailyCap => "daily_cap",
            Self::FairUse => "fair_use",
            Self::RateLimited => "rate_limited",
            Self::FetchError => "fetch_error",
            Self::ConfigError => "config_error",
        }
    }

    /// The reason with this wire name.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// The reason of a supplier's failure.
    pub fn for_supply_error(failure: &SupplyError) -> Self {
        match failure.reason() {
            reason if reason.is_about_video() => Self::NoCaptions,
            SupplyReason::Throttled(_) | SupplyReason::BotCheck | SupplyReason::OtherVideo => {
                Self::RateLimited
            }
            SupplyReason::Stale | SupplyReason::Misconfigured => Self::ConfigError,
            _ => Self::FetchError,
        }
    }
}
