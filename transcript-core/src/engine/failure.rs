//! Why there is no transcript: the value that every API shows.

use std::time::Duration;

use super::{FetchOutcome, WorkInProgress};
use crate::{
    archive::{Absence, StoredTranscript},
    error::{ErrorCause, Result},
    names::names,
    supplier::{SupplyError, SupplyReason},
    time::{Timestamp, format_wait},
    transcript::TrackInfo,
    video::Platform,
};

/// Why there is no transcript: the `failureReason` of a lookup (specification 2.2; for when each applies, 7.3).
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

names!(FailureReason, from_wire {
    NeedsVerification = "needs_verification",
    NoCaptions = "no_captions",
    KeyAllowance = "key_allowance",
    Allowance = "allowance",
    DailyCap = "daily_cap",
    FairUse = "fair_use",
    RateLimited = "rate_limited",
    FetchError = "fetch_error",
    ConfigError = "config_error",
});

// The name on the wire.
crate::display::display!(FailureReason, |this| this.as_str());

impl FailureReason {
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

/// Why there is no transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTranscript {
    /// The reason.
    pub reason: FailureReason,
    /// A machine-readable detail; `None` if there is none.
    /// - Of a video without transcript: the name of a [`SupplyReason`], or `withdrawn`.
    /// - Of a failed fetch: `still_working` while the work goes on, `busy` if too many fetches wait, `storage` if a
    ///   store failed, `defect` if the code of a supplier did.
    pub detail: Option<String>,
    /// The message for people.
    pub message: String,
    /// When a retry may succeed, if known.
    pub retry_after: Option<Duration>,
    /// The tracks of the video, if it has none in the requested language; empty if unknown.
    pub languages: Vec<TrackInfo>,
    /// Whether a supplier was called; `false` if all were paused or busy, and for stored absences.
    pub attempted: bool,
    /// The error behind the failure; `None` if it is the first.
    pub cause: Option<ErrorCause>,
}

/// The words with which the message of a failure gives the operator advice, at the end of a sentence.
const ADVICE: &str = "he operator can ";

/// The detail if too many fetches wait.
const BUSY: &str = "busy";
/// The detail if a store failed.
const STORAGE: &str = "storage";
/// The detail if the video has no transcript in the requested language.
const NO_LANGUAGE: &str = "no_language";

/// What a message says about the cost of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostNote {
    /// Nothing.
    None,
    /// That nothing was charged, where a retry may succeed.
    NothingCharged,
    /// As `NothingCharged`, but work in progress is charged when it is done.
    ChargedWhenReady,
}

impl NoTranscript {
    /// The detail if the code of a supplier has a defect, which a retry meets again.
    pub const DEFECT: &str = "defect";
    /// The detail if the quota of the key is used up.
    pub const QUOTA: &str = "quota";
    /// The detail if the key has expired.
    pub const EXPIRED: &str = "expired";

    /// No transcript for this reason, without detail or known time of a retry.
    pub fn new(reason: FailureReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            detail: None,
            message: message.into(),
            retry_after: None,
            languages: Vec::new(),
            attempted: false,
            cause: None,
        }
    }

    /// The operator has taken the video down.
    pub fn withdrawn() -> Self {
        let message = "This transcript was withdrawn by the operator of the service.";
        Self::new(FailureReason::NoCaptions, message).with_detail("withdrawn")
    }

    /// A store failed; nothing was charged.
    pub(crate) fn storage_failure(message: &str) -> Self {
        Self::new(FailureReason::FetchError, message).with_detail(STORAGE)
    }

    /// The detail, or the reason if there is none.
    pub fn detail_or_reason(&self) -> &str {
        self.detail.as_deref().unwrap_or_else(|| self.reason.as_str())
    }

    /// Whether a store failed.
    pub fn is_storage_failure(&self) -> bool {
        self.detail.as_deref() == Some(STORAGE)
    }

    /// Whether the code of a supplier has a defect, which a retry meets again.
    pub fn is_defect(&self) -> bool {
        self.detail.as_deref() == Some(Self::DEFECT)
    }

    /// The video has no transcript in the requested language, but these tracks.
    #[cfg(feature = "lookup")]
    pub(crate) fn no_language(message: impl Into<String>, languages: Vec<TrackInfo>) -> Self {
        Self { languages, ..Self::new(FailureReason::NoCaptions, message).with_detail(NO_LANGUAGE) }
    }

    /// Whether the video has no transcript in the requested language, but others.
    pub fn lacks_language(&self) -> bool {
        self.reason == FailureReason::NoCaptions && self.detail.as_deref() == Some(NO_LANGUAGE)
    }

    /// Removes advice to the operator from the message: the callers of an API cannot change settings.
    ///
    /// The log has it.
    #[must_use]
    pub fn without_advice(self) -> Self {
        let Some((before, advice)) = self.message.split_once(ADVICE) else { return self };
        let Some(end) = [". ", "; "].iter().filter_map(|end| before.rfind(end)).max() else { return self };
        let (kept, rest) = (before.get(..end), advice.split_once(". "));
        let rest = rest.map_or(String::new(), |(_, rest)| format!(" {rest}"));
        let message = format!("{}.{rest}", kept.unwrap_or_default());
        Self { message, ..self }
    }

    pub(crate) fn with_detail(self, name: &str) -> Self {
        Self { detail: Some(name.to_owned()), ..self }
    }

    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// A stored absence, with the time until it ends.
    pub fn from_absence(absence: Absence, now: Timestamp) -> Self {
        let none = Self::new(FailureReason::NoCaptions, absence.message).with_detail(&absence.reason);
        none.with_retry_after(absence.until.since(now))
    }

    /// A supplier's failure.
    pub fn from_supply_error(failure: &SupplyError, now: Timestamp) -> Self {
        let reason = failure.reason();
        let starts_in = match reason {
            SupplyReason::Upcoming(Some(start)) if *start > now => Some(start.since(now)),
            _ => None,
        };
        let languages = match reason {
            SupplyReason::NoLanguage(languages) => languages.clone(),
            _ => Vec::new(),
        };
        let detail = if reason.is_about_video() {
            Some(reason.as_str())
        } else {
            failure.is_defect().then_some(Self::DEFECT)
        };
        Self {
            languages,
            attempted: failure.was_attempted(),
            cause: failure.cause().cloned(),
            detail: detail.map(str::to_owned),
            retry_after: failure.retry_after().or(starts_in),
            ..Self::new(FailureReason::for_supply_error(failure), failure.message())
        }
    }

    /// The operator's limit of requests of the key is used up.
    #[cfg(feature = "lookup")]
    pub(crate) fn exhausted_quota(max: u64, period: &str, retry_after: Duration) -> Self {
        let message = format!(
            "This API key has used its {max} requests of the {period}. Try again in {}.",
            format_wait(retry_after)
        );
        Self::new(FailureReason::FairUse, message).with_detail(Self::QUOTA).with_retry_after(retry_after)
    }

    #[cfg(feature = "lookup")]
    pub(crate) fn expired_key(end: Timestamp) -> Self {
        let message = format!("This API key expired at {end}. The operator of the service issues a new one.");
        Self::new(FailureReason::NeedsVerification, message).with_detail(Self::EXPIRED)
    }

    /// Whether the quota of the key is used up.
    pub fn is_over_quota(&self) -> bool {
        self.reason == FailureReason::FairUse && self.detail.as_deref() == Some(Self::QUOTA)
    }

    /// Whether the key has expired.
    pub fn is_expired_key(&self) -> bool {
        self.reason == FailureReason::NeedsVerification && self.detail.as_deref() == Some(Self::EXPIRED)
    }

    fn no_supplier(platform: Platform, cost_note: CostNote) -> Self {
        let end = match cost_note {
            CostNote::None => "",
            CostNote::NothingCharged | CostNote::ChargedWhenReady => ": nothing was charged",
        };
        let message = format!("This service has no source of new transcripts for {}{end}.", platform.name());
        Self::new(FailureReason::ConfigError, message)
    }

    fn busy(retry_after: Duration, cost_note: CostNote) -> Self {
        let charged = match cost_note {
            CostNote::None => "",
            CostNote::NothingCharged | CostNote::ChargedWhenReady => "; nothing was charged",
        };
        let message = format!(
            "The service is busy with other videos{charged}. Try again in {}.",
            format_wait(retry_after)
        );
        Self::new(FailureReason::FetchError, message).with_detail(BUSY).with_retry_after(retry_after)
    }

    /// Whether too many fetches wait.
    pub fn is_busy(&self) -> bool {
        self.reason == FailureReason::FetchError && self.detail.as_deref() == Some(BUSY)
    }

    fn in_progress(work: WorkInProgress, cost_note: CostNote) -> Self {
        let charged = match cost_note {
            CostNote::None => None,
            CostNote::NothingCharged => Some("nothing was charged"),
            // A question about it is charged besides.
            CostNote::ChargedWhenReady => Some(
                "if it is in the requested language, it is charged when ready, and your next request for the \
                 transcript is free",
            ),
        };
        let none = Self::new(FailureReason::FetchError, work.message(charged)).with_detail("still_working");
        none.with_retry_after(work.retry_after)
    }
}

impl FetchOutcome {
    /// The transcript and whether it was archived before, or why there is none.
    ///
    /// # Errors
    /// The error of [`FetchOutcome::StoreFailed`].
    pub fn into_transcript(
        self,
        platform: Platform,
        now: Timestamp,
        cost_note: CostNote,
    ) -> Result<Result<(StoredTranscript, bool), NoTranscript>> {
        Ok(Err(match self {
            Self::Archived(stored) => return Ok(Ok((stored, true))),
            Self::Fetched(stored) => return Ok(Ok((stored, false))),
            Self::StoreFailed(error) => return Err(error),
            Self::Absent(absence) => NoTranscript::from_absence(absence, now),
            Self::Withdrawn => NoTranscript::withdrawn(),
            Self::Refused(refusal) => refusal,
            Self::NoSupplier => NoTranscript::no_supplier(platform, cost_note),
            Self::InProgress(work) => NoTranscript::in_progress(work, cost_note),
            Self::Busy(retry_after) => NoTranscript::busy(retry_after, cost_note),
            Self::SupplyFailed(failure) => {
                let mut none = NoTranscript::from_supply_error(&failure, now);
                if cost_note != CostNote::None && none.reason != FailureReason::NoCaptions {
                    none.message.push_str(" Nothing was charged.");
                }
                none
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(outcome: FetchOutcome, cost_note: CostNote) -> NoTranscript {
        outcome.into_transcript(Platform::X, Timestamp::from_millis(1_000), cost_note).unwrap().unwrap_err()
    }

    #[test]
    fn advice_to_operator_is_removed() {
        for (message, public) in [
            ("The proxy rejected it. The operator can correct upstream.proxy.", "The proxy rejected it."),
            (
                "It blocks the address (HTTP 403). Try again later; the operator can set upstream.proxy. Nothing was \
                 charged.",
                "It blocks the address (HTTP 403). Try again later. Nothing was charged.",
            ),
            ("Try later; if it persists, the operator can update youtube.clients.", "Try later."),
            ("This video has no captions.", "This video has no captions."),
            ("The operator can do it.", "The operator can do it."),
        ] {
            let none = NoTranscript::new(FailureReason::ConfigError, message).without_advice();
            assert_eq!(none.message, public);
        }
    }

    #[test]
    fn no_transcript_has_reason_detail_and_cost_note() {
        let failed = |reason| FetchOutcome::SupplyFailed(SupplyError::new(reason, "It failed."));
        let work = || FetchOutcome::InProgress(WorkInProgress::retry_soon());
        let start = Timestamp::from_millis(61_000);
        let minute = Some(Duration::from_secs(60));
        for (outcome, reason, detail, retry_after, message) in [
            (
                failed(SupplyReason::Timeout),
                FailureReason::FetchError,
                None,
                None,
                "It failed. Nothing was charged.",
            ),
            (failed(SupplyReason::Private), FailureReason::NoCaptions, Some("private"), None, "It failed."),
            (
                failed(SupplyReason::Upcoming(Some(start))),
                FailureReason::NoCaptions,
                Some("upcoming"),
                minute,
                "It failed.",
            ),
            (
                FetchOutcome::NoSupplier,
                FailureReason::ConfigError,
                None,
                None,
                "This service has no source of new transcripts for X: nothing was charged.",
            ),
            (
                work(),
                FailureReason::FetchError,
                Some("still_working"),
                Some(Duration::from_secs(2)),
                "The video is still being transcribed; nothing was charged. Try again in 2 seconds.",
            ),
            (
                FetchOutcome::Busy(Duration::from_secs(10)),
                FailureReason::FetchError,
                Some("busy"),
                Some(Duration::from_secs(10)),
                "The service is busy with other videos; nothing was charged. Try again in 10 seconds.",
            ),
        ] {
            let none = none(outcome, CostNote::NothingCharged);
            assert_eq!(
                (none.reason, none.detail.as_deref(), none.retry_after),
                (reason, detail, retry_after)
            );
            assert_eq!(none.message, message);
        }
        assert_eq!(none(failed(SupplyReason::Timeout), CostNote::None).message, "It failed.");
        assert_eq!(FailureReason::NoCaptions.to_string(), "no_captions");
        assert!(none(work(), CostNote::None).message.ends_with("transcribed. Try again in 2 seconds."));
        let defect = SupplyError::new(SupplyReason::PlatformFault, "It failed.").defect();
        assert!(none(FetchOutcome::SupplyFailed(defect), CostNote::None).is_defect());
        assert!(!none(failed(SupplyReason::PlatformFault), CostNote::None).is_defect());
        let error = FetchOutcome::StoreFailed(crate::Error::unavailable("busy"));
        assert!(error.into_transcript(Platform::X, start, CostNote::None).is_err());
    }
}
