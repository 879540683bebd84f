//! Why a transcript response has no transcript, as a label.

use http::StatusCode;
use transcript_core::engine::{FailureReason, NoTranscript};

/// Reasons that are no [`FailureReason`]: a store failed, status 404 of the v1 API, and its status 5xx.
const OTHERS: [&str; 3] = ["storage", "not_found", "failed"];

/// The reason of a response without a transcript: an index of [`UnansweredReason::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnansweredReason(pub(crate) usize);

impl UnansweredReason {
    /// Number of reasons.
    pub(crate) const COUNT: usize = FailureReason::ALL.len() + OTHERS.len();

    /// The names in metrics.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        FailureReason::ALL.map(FailureReason::as_str).into_iter().chain(OTHERS)
    }

    /// The reason of a response of the lookup API.
    pub(crate) fn new(none: &NoTranscript) -> Self {
        Self(if none.is_storage_failure() { FailureReason::ALL.len() } else { none.reason as usize })
    }

    /// The reason of a response of the v1 API, whose body is not read again.
    pub(crate) fn for_v1(status: StatusCode) -> Self {
        Self(FailureReason::ALL.len() + if status == StatusCode::NOT_FOUND { 1 } else { 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_reason_indices_match_names() {
        let name = |reason: UnansweredReason| UnansweredReason::names().nth(reason.0);
        for reason in FailureReason::ALL {
            assert_eq!(
                name(UnansweredReason::new(&NoTranscript::new(reason, "none"))),
                Some(reason.as_str())
            );
        }
        assert_eq!(name(UnansweredReason::for_v1(StatusCode::NOT_FOUND)), Some("not_found"));
        assert_eq!(name(UnansweredReason::for_v1(StatusCode::INTERNAL_SERVER_ERROR)), Some("failed"));
    }
}
