//! Why there is no transcript, in the language and the words of the pages.

use transcript_core::{engine::NoTranscript, lookup::FailureReason};

use super::PageContext;

/// Message about a failure; `None` for work that goes on, whose own message has a time.
pub(crate) fn failure_text<'a>(context: &'a PageContext, none: &NoTranscript) -> Option<&'a str> {
    let key = match (none.detail.as_deref(), none.reason) {
        (Some("still_working"), _) => return None,
        (Some("private"), _) => "failure.private",
        (Some("removed"), _) => "failure.removed",
        (Some("region"), _) => "failure.region",
        (Some("age"), _) => "failure.age",
        (Some("members" | "payment"), _) => "failure.members",
        (Some("login"), _) => "failure.login",
        (Some("live" | "upcoming"), _) => "failure.live",
        (Some("withdrawn"), _) => "missing.withdrawn",
        (_, FailureReason::NeedsVerification) => "failure.needs_verification",
        (_, FailureReason::NoCaptions) => "failure.no_captions",
        (_, FailureReason::KeyAllowance | FailureReason::Allowance) => "failure.allowance",
        (_, FailureReason::DailyCap) => "failure.daily_cap",
        (_, FailureReason::FairUse) => "failure.fair_use",
        (_, FailureReason::RateLimited) => "failure.rate_limited",
        (_, FailureReason::FetchError) => "failure.fetch_error",
        (_, FailureReason::ConfigError) => "failure.config_error",
    };
    Some(context.text(key))
}
