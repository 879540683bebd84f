//! Why a transcript response has no transcript, as a label.

use http::{HeaderMap, StatusCode};
use transcript_core::engine::{FailureReason, NoTranscript};

use super::X_FAILURE_DETAIL;

/// Reasons that are no [`FailureReason`]: a store failed, status 404 of the v1 API, and its 5xx without a detail.
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

    /// The reason of a response of the v1 API with status 404 or 5xx, whose body is not read again.
    ///
    /// Only a failed fetch has a detail: one of the platform, or that goes on, is no fault of the server.
    pub(crate) fn for_v1(status: StatusCode, headers: &HeaderMap) -> Self {
        let others = FailureReason::ALL.len();
        if status == StatusCode::NOT_FOUND {
            return Self(others + 1);
        }
        match headers.get(X_FAILURE_DETAIL).and_then(|detail| detail.to_str().ok()) {
            None => Self(others + 2),
            Some("storage") => Self(others),
            // Such as `still_working`, which is no reason.
            Some(detail) => {
                Self(FailureReason::from_wire(detail).unwrap_or(FailureReason::FetchError) as usize)
            }
        }
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
        for (status, detail, expected) in [
            (StatusCode::NOT_FOUND, Some("private"), "not_found"),
            (StatusCode::INTERNAL_SERVER_ERROR, None, "failed"),
            (StatusCode::SERVICE_UNAVAILABLE, None, "failed"),
            (StatusCode::INTERNAL_SERVER_ERROR, Some("storage"), "storage"),
            (StatusCode::INTERNAL_SERVER_ERROR, Some("still_working"), "fetch_error"),
            (StatusCode::INTERNAL_SERVER_ERROR, Some("rate_limited"), "rate_limited"),
            (StatusCode::INTERNAL_SERVER_ERROR, Some("config_error"), "config_error"),
        ] {
            let headers = detail.map(|detail| (X_FAILURE_DETAIL, http::HeaderValue::from_static(detail)));
            let headers = HeaderMap::from_iter(headers);
            assert_eq!(name(UnansweredReason::for_v1(status, &headers)), Some(expected), "{detail:?}");
        }
    }
}
