//! Failures of suppliers.

use std::{error::Error as StdError, time::Duration};

use crate::{error::ErrorCause, time::Timestamp, transcript::TrackInfo};

/// Reason why there is no transcript.
///
/// The first group describes the video and is stored for a while as an absence; the second is a transient state of the
/// platform or of the connection to it; the third requires the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SupplyReason {
    /// The video has no captions, or no speech.
    NoCaptions,
    /// The video has transcripts, but none in the selected language; these are its tracks.
    NoLanguage(Vec<TrackInfo>),
    /// The video is private.
    Private,
    /// The video was removed, or never existed.
    Removed,
    /// The video is not available in the server's region.
    Region,
    /// The video is only for viewers of a certain age.
    Age,
    /// The video is only for members of a channel or a subscription.
    Members,
    /// The video must be paid for.
    Payment,
    /// The platform shows the video only to logged-in users.
    Login,
    /// The video is live; a transcript exists only later.
    Live,
    /// The video has not started yet; its start time, if known.
    Upcoming(Option<Timestamp>),

    /// The platform throttles this client; the wait that it named, if any.
    Throttled(Option<Duration>),
    /// The platform requires a proof of a human user, which is not provided.
    BotCheck,
    /// The platform responded about another video, which it does to clients it suspects.
    OtherVideo,
    /// The platform took too long.
    Timeout,
    /// The platform could not be reached.
    Unreachable,
    /// The platform failed internally.
    PlatformFault,
    /// The platform's response was empty, truncated, too large or in an unknown format.
    Unreadable,
    /// The result was no longer needed.
    Cancelled,

    /// Every client identity was rejected as outdated; the settings must be renewed.
    Stale,
    /// The supplier's settings are wrong.
    Misconfigured,
}

impl SupplyReason {
    /// Stable name for storage, logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NoCaptions => "no_captions",
            Self::NoLanguage(_) => "no_language",
            Self::Private => "private",
            Self::Removed => "removed",
            Self::Region => "region",
            Self::Age => "age",
            Self::Members => "members",
            Self::Payment => "payment",
            Self::Login => "login",
            Self::Live => "live",
            Self::Upcoming(_) => "upcoming",
            Self::Throttled(_) => "throttled",
            Self::BotCheck => "bot_check",
            Self::OtherVideo => "other_video",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::PlatformFault => "platform_fault",
            Self::Unreadable => "unreadable",
            Self::Cancelled => "cancelled",
            Self::Stale => "stale",
            Self::Misconfigured => "misconfigured",
        }
    }

    /// Whether the reason describes the video itself and is stored as an absence.
    pub fn is_about_video(&self) -> bool {
        matches!(
            self,
            Self::NoCaptions
                | Self::NoLanguage(_)
                | Self::Private
                | Self::Removed
                | Self::Region
                | Self::Age
                | Self::Members
                | Self::Payment
                | Self::Login
                | Self::Live
                | Self::Upcoming(_)
        )
    }

    /// Whether a failure detail describes the video itself: `withdrawn`, or the name of such a reason.
    pub fn is_video_detail(detail: &str) -> bool {
        matches!(
            detail,
            "no_captions"
                | "no_language"
                | "private"
                | "removed"
                | "region"
                | "age"
                | "members"
                | "payment"
                | "login"
                | "live"
                | "upcoming"
                | "withdrawn"
        )
    }

    /// Whether no other supplier can succeed, because the reason applies to all of them.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Private | Self::Removed | Self::Payment | Self::Live | Self::Upcoming(_))
    }

    /// Whether the cause is the supplier, the connection or the platform as a whole rather than the video.
    ///
    /// The next request is then likely to fail too.
    pub fn is_supplier_fault(&self) -> bool {
        !self.is_about_video() && *self != Self::Cancelled
    }

    /// Wait that the platform named before the next request; `None` if it named none.
    pub fn named_wait(&self) -> Option<Duration> {
        match self {
            Self::Throttled(named) => *named,
            _ => None,
        }
    }

    /// Whether an immediate retry with the same supplier may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Timeout | Self::Unreachable | Self::PlatformFault | Self::Unreadable)
    }
}

/// Failure of a supplier: a reason for decisions and a message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplyError {
    reason: SupplyReason,
    message: String,
    attempted: bool,
    ambiguous: bool,
    video_only: bool,
    defect: bool,
    declined: bool,
    retry_after: Option<Duration>,
    cause: Option<ErrorCause>,
}

crate::display::display!(SupplyError, |this| this.message);

impl StdError for SupplyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(ErrorCause::error)
    }
}

impl SupplyError {
    /// Creates a failure. The message begins with a capital and ends with a full stop.
    pub fn new(reason: SupplyReason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            reason,
            message,
            attempted: true,
            ambiguous: false,
            video_only: false,
            defect: false,
            declined: false,
            retry_after: None,
            cause: None,
        }
    }

    /// Sets the error behind this failure.
    #[must_use]
    pub fn with_cause(self, cause: ErrorCause) -> Self {
        Self { cause: Some(cause), ..self }
    }

    /// The error behind this failure; `None` if it is the first.
    pub fn cause(&self) -> Option<&ErrorCause> {
        self.cause.as_ref()
    }

    /// As [`SupplyError::new`], for a supplier that sent no request.
    ///
    /// It sends none while a recent failure still applies. Such a failure is never charged.
    pub fn before_request(reason: SupplyReason, message: impl Into<String>) -> Self {
        Self { attempted: false, ..Self::new(reason, message) }
    }

    /// As [`SupplyError::before_request`], for a supplier that is not responsible for this request.
    ///
    /// The results of the other suppliers decide, as if it were not configured.
    pub fn declined(reason: SupplyReason, message: impl Into<String>) -> Self {
        Self { declined: true, ..Self::before_request(reason, message) }
    }

    /// Whether the supplier is not responsible for the request.
    pub fn is_declined(&self) -> bool {
        self.declined
    }

    /// Whether a request reached an upstream before the failure.
    pub fn was_attempted(&self) -> bool {
        self.attempted
    }

    /// Marks a failure as possibly caused by the video alone, whatever its reason.
    ///
    /// It does not count against the supplier, so requests for odd videos cannot open its circuit breaker.
    #[must_use]
    pub fn ambiguous(self) -> Self {
        Self { ambiguous: true, ..self }
    }

    /// Marks a failure as without information about the supplier, such as one found before the supplier was tried.
    ///
    /// It neither opens nor closes the supplier's circuit breaker.
    #[must_use]
    pub fn video_only(self) -> Self {
        Self { video_only: true, ..self }
    }

    /// Whether the failure carries no information about the supplier.
    pub fn is_video_only(&self) -> bool {
        self.video_only
    }

    /// Marks a failure as a defect of the supplier's code, which a retry meets again.
    ///
    /// As [`SupplyError::video_only`], it carries no information about the platform.
    #[must_use]
    pub fn defect(self) -> Self {
        Self { defect: true, ..self.video_only() }
    }

    /// Whether the failure is a defect of the supplier's code.
    pub fn is_defect(&self) -> bool {
        self.defect
    }

    /// Sets the wait after which a retry may succeed.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Whether the failure counts against the supplier: a request was sent, and the cause is not the video.
    pub fn counts_against_supplier(&self) -> bool {
        let is_the_video = self.ambiguous || self.video_only;
        self.attempted && !is_the_video && self.reason.is_supplier_fault()
    }

    /// Wait after which a retry may succeed; `None` if unknown.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.or(self.reason.named_wait())
    }

    /// Marks the failure as one after a request was sent.
    #[must_use]
    pub fn mark_attempted(self) -> Self {
        Self { attempted: true, ..self }
    }

    /// Reason why there is no transcript.
    pub fn reason(&self) -> &SupplyReason {
        &self.reason
    }

    /// Message, as [`Display`](std::fmt::Display) prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn video_details_are_names_of_video_reasons() {
        let reasons = [
            SupplyReason::NoCaptions,
            SupplyReason::NoLanguage(Vec::new()),
            SupplyReason::Private,
            SupplyReason::Removed,
            SupplyReason::Region,
            SupplyReason::Age,
            SupplyReason::Members,
            SupplyReason::Payment,
            SupplyReason::Login,
            SupplyReason::Live,
            SupplyReason::Upcoming(None),
            SupplyReason::Throttled(None),
            SupplyReason::BotCheck,
            SupplyReason::OtherVideo,
            SupplyReason::Timeout,
            SupplyReason::Unreachable,
            SupplyReason::PlatformFault,
            SupplyReason::Unreadable,
            SupplyReason::Cancelled,
            SupplyReason::Stale,
            SupplyReason::Misconfigured,
        ];
        for reason in &reasons {
            assert_eq!(SupplyReason::is_video_detail(reason.as_str()), reason.is_about_video(), "{reason:?}");
        }
        assert!(SupplyReason::is_video_detail("withdrawn"));
        for other in ["", "still_working", "expired", "quota", "PRIVATE"] {
            assert!(!SupplyReason::is_video_detail(other), "{other}");
        }
    }
}
