//! Failures of a tool call.

use std::time::Duration;

use transcript_core::{
    Error, ErrorKind,
    engine::NoTranscript,
    log_failure,
    lookup::FailureReason,
    wire::lookup::{LanguageObject, TranscriptResult},
};
use verbatim::service::{ResponseMeta, ServiceError, ServiceErrorKind};

use super::tools::GET_TRANSCRIPT;

/// Time until a retry of a call that was refused because the server is busy.
const BUSY_RETRY: Duration = Duration::from_secs(5);

/// Failure of a tool call.
#[derive(Clone, Debug)]
pub(super) enum ToolError {
    /// The lookup finished, and there is no transcript: the expected answer to a valid request.
    Missing {
        /// Failure reason, as on the wire.
        reason: String,
        /// Failure reason, as a sentence.
        message: String,
        /// Watch page of the video.
        watch_url: String,
        /// The languages of a video without a transcript in the requested one, as far as known.
        languages: Vec<LanguageObject>,
        /// Time after which a retry may succeed, if known.
        retry_after: Option<Duration>,
    },
    /// The call is invalid, was rejected, or failed.
    Refused {
        /// HTTP status code of the failure.
        code: u16,
        /// Sentence that says what the caller can do.
        message: String,
        /// Watch page, if the call names a video.
        watch_url: Option<String>,
        /// As in [`ToolError::Missing`].
        languages: Vec<LanguageObject>,
        /// Time after which a retry may succeed, if known.
        retry_after: Option<Duration>,
    },
}

impl ToolError {
    /// An argument is invalid; the message begins with its name.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::refused(400, message)
    }

    /// Internal error. The details are in the log.
    pub(super) fn fault() -> Self {
        Self::refused(500, "Internal server error. Retry in a few seconds.")
    }

    /// Too many calls do the same work.
    pub(super) fn busy(message: &str) -> Self {
        Self::refused_until(503, message, Some(BUSY_RETRY))
    }

    pub(super) fn refused(code: u16, message: impl Into<String>) -> Self {
        Self::refused_until(code, message, None)
    }

    /// A refusal, with the time after which a retry may succeed, if known.
    pub(super) fn refused_until(
        code: u16,
        message: impl Into<String>,
        retry_after: Option<Duration>,
    ) -> Self {
        let message = message.into();
        Self::Refused { code, message, watch_url: None, languages: Vec::new(), retry_after }
    }

    /// Replaces the names that the service has for arguments, at the start of a message, with those of the tool.
    #[must_use]
    pub(super) fn rename_arguments(mut self, names: &[(&str, &str)]) -> Self {
        if let Self::Refused { code: 400, message, .. } = &mut self {
            for (service, tool) in names {
                if let Some(rest) = message.strip_prefix(service).filter(|rest| rest.starts_with(':')) {
                    *message = format!("{tool}{rest}");
                    break;
                }
            }
        }
        self
    }

    /// Replaces the advice to send a key, for a caller that has sent one to a tool that fetches nothing.
    #[must_use]
    pub(super) fn for_key_holder(self) -> Self {
        self.with_advice(&format!("{GET_TRANSCRIPT} transcribes it, if the API key permits."))
    }

    /// Replaces the advice to send a key, for an account's key and a video of another platform than YouTube.
    #[must_use]
    pub(super) fn for_account_key(self) -> Self {
        self.with_advice(
            "With an account's key, start_job transcribes it; get_transcript needs a lookup API key (vbk_…).",
        )
    }

    fn with_advice(mut self, advice: &str) -> Self {
        if let Self::Missing { reason, message, .. } = &mut self
            && reason.as_str() == FailureReason::NeedsVerification.as_str()
        {
            *message = format!("This video has not been transcribed yet. {advice}");
        }
        self
    }

    /// A lookup without a transcript. If the key has expired or its quota is used up, the call was rejected: the
    /// transcript may be archived.
    pub(super) fn missing(result: TranscriptResult, meta: &ResponseMeta) -> Self {
        let message = result.failure_message.unwrap_or_default();
        let code = match meta.failure_detail.as_deref() {
            Some(NoTranscript::EXPIRED) => Some(401),
            Some(NoTranscript::QUOTA) => Some(429),
            _ => None,
        };
        if let Some(code) = code {
            return Self::refused_until(code, message, meta.retry_after);
        }
        Self::Missing {
            reason: result.failure_reason.unwrap_or_default(),
            message,
            watch_url: result.watch_url,
            languages: result.languages,
            retry_after: meta.retry_after,
        }
    }
}

impl From<Error> for ToolError {
    /// Invalid arguments are described, internal errors are not.
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::Invalid {
            return Self::invalid(error.message());
        }
        log_failure!(error, [%error], "MCP tool failed");
        Self::fault()
    }
}

impl From<ServiceError> for ToolError {
    /// Converts the failure of a call that names a video: without a status, an invalid argument is the video.
    fn from(error: ServiceError) -> Self {
        let languages = error.languages.iter().map(LanguageObject::from).collect();
        let error = ServiceError { reason: reason(&error), ..error };
        match error {
            ServiceError { reason: Some(reason), watch_url: Some(watch_url), message, meta, .. } => {
                let (reason, retry_after) = (reason.as_str().to_owned(), meta.retry_after);
                Self::Missing { reason, message, watch_url, languages, retry_after }
            }
            ServiceError { status: Some(code), message, watch_url, meta, .. } => {
                Self::Refused { code, message, watch_url, languages, retry_after: meta.retry_after }
            }
            ServiceError { kind: ServiceErrorKind::Core(ErrorKind::Invalid), message, .. } => {
                Self::invalid(format!("video: {message}"))
            }
            error => {
                tracing::error!(%error, "MCP tool failed");
                Self::fault()
            }
        }
    }
}

/// Why there is no transcript, if that is the failure. The v1 API names a detail, and the reason only without one.
fn reason(error: &ServiceError) -> Option<FailureReason> {
    let of_detail = |detail: &str| match (FailureReason::from_wire(detail), error.status) {
        (Some(reason), _) => reason,
        // The v1 API has this status for this reason only.
        (None, Some(404)) => FailureReason::NoCaptions,
        (None, _) => FailureReason::FetchError,
    };
    error.reason.or_else(|| error.meta.failure_detail.as_deref().map(of_detail))
}

#[cfg(test)]
mod tests {
    use transcript_core::accounts::V1Error;

    use super::*;

    #[test]
    fn v1_error_without_transcript_has_reason_and_page() {
        let working = Some("still_working".to_owned());
        let wait = Some(Duration::from_secs(2));
        for (reason, detail, expect) in [
            (FailureReason::NoCaptions, Some("private".to_owned()), "no_captions"),
            (FailureReason::NoCaptions, None, "no_captions"),
            (FailureReason::RateLimited, None, "rate_limited"),
            (FailureReason::FetchError, working, "fetch_error"),
            (FailureReason::ConfigError, None, "config_error"),
        ] {
            let none =
                NoTranscript { detail, retry_after: wait, ..NoTranscript::new(reason, "It is not there.") };
            let error = ServiceError::from(V1Error::from(none));
            let page = "https://v.example/watch/video_site/a".to_owned();
            match ToolError::from(ServiceError { watch_url: Some(page.clone()), ..error.clone() }) {
                ToolError::Missing { reason, message, watch_url, retry_after, .. } => {
                    assert_eq!((reason.as_str(), watch_url, retry_after), (expect, page, wait));
                    assert_eq!(message, "It is not there.");
                }
                refused @ ToolError::Refused { .. } => panic!("{refused:?}"),
            }
            // Without a page to name it is an error with the status of the v1 API.
            assert!(matches!(ToolError::from(error), ToolError::Refused { .. }));
        }
        let spent = V1Error::PaymentRequired { message: "Spent.".to_owned(), credits_remaining: 0 };
        let spent = ServiceError { watch_url: Some("page".to_owned()), ..spent.into() };
        assert!(matches!(ToolError::from(spent), ToolError::Refused { code: 402, .. }));
    }
}
