//! Errors of the v1 API (specification 7.2).

use std::time::Duration;

use super::RateLimitStatus;
use crate::{
    engine::{FailureReason, NoTranscript},
    error::Error,
    failure_log::log_failure,
    time::{ceil_seconds, format_wait},
    transcript::TrackInfo,
};

/// The message of [`V1Error::Damaged`].
const DAMAGED: &str =
    "Stored data is damaged: nothing was charged. The operator of this service must repair it.";

/// Error of a v1 call. Each variant has a message that states the reason and how to proceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum V1Error {
    /// Missing or invalid parameters.
    BadRequest(String),
    /// The key is missing, malformed, unknown, revoked, of the lookup API, or of a blocked account.
    Unauthorized(String),
    /// Too few credits.
    PaymentRequired {
        /// The message.
        message: String,
        /// The remaining credits.
        credits_remaining: u64,
    },
    /// There is no such thing.
    NotFound(String),
    /// There is no transcript. A limit of the service is [`V1Error::RateLimited`] instead.
    Unavailable(Box<NoTranscript>),
    /// Another request is running with the same `Idempotency-Key`, or changed the same data first.
    Conflict(String),
    /// A rate limit refused the call.
    RateLimited {
        /// The message.
        message: String,
        /// After how many seconds the next request is admitted, if no other request uses the slot.
        retry_after_s: u64,
        /// The account's limit of requests; `None` for any other limit.
        rate: Option<RateLimitStatus>,
    },
    /// Stored data cannot be read; nothing was charged.
    Damaged,
    /// The service failed; nothing was charged.
    Internal(String),
}

crate::display::display!(V1Error, |this| this.message());

impl std::error::Error for V1Error {}

impl V1Error {
    /// The message.
    pub fn message(&self) -> &str {
        match self {
            Self::BadRequest(message)
            | Self::Unauthorized(message)
            | Self::PaymentRequired { message, .. }
            | Self::NotFound(message)
            | Self::Conflict(message)
            | Self::RateLimited { message, .. }
            | Self::Internal(message) => message,
            Self::Unavailable(none) => &none.message,
            Self::Damaged => DAMAGED,
        }
    }

    /// The tracks of a video without a transcript in the requested language, as far as known.
    pub fn languages(&self) -> &[TrackInfo] {
        match self {
            Self::Unavailable(none) => &none.languages,
            _ => &[],
        }
    }

    /// The `code` of the error body: the HTTP status.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unauthorized(_) => 401,
            Self::PaymentRequired { .. } => 402,
            Self::NotFound(_) => 404,
            Self::Unavailable(none) if none.reason == FailureReason::NoCaptions => 404,
            Self::Conflict(_) => 409,
            Self::RateLimited { .. } => 429,
            Self::Unavailable(_) | Self::Damaged | Self::Internal(_) => 500,
        }
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(message.into())
    }

    /// Seconds until a retry; 0 if the reason is not a rate limit.
    pub(super) fn retry_after_s(&self) -> u64 {
        match self {
            Self::RateLimited { retry_after_s, .. } => *retry_after_s,
            _ => 0,
        }
    }

    /// Maps a store error and logs its details.
    pub(crate) fn from_store_error(error: Error) -> Self {
        log_failure!(error, [%error], "v1 API store call failed");
        if error.is_unreadable() {
            return Self::Damaged;
        }
        let message =
            "The service could not reach its storage: nothing was charged, please try again in a moment.";
        Self::Internal(message.to_owned())
    }

    /// The engine's runtime ended during the work.
    pub(crate) fn interrupted() -> Self {
        Self::Internal("The service is stopping: please try again in a moment.".to_owned())
    }

    /// A rate limit of callers without a key.
    pub(crate) fn rate_limited(reason: &str, retry_after_ms: u64) -> Self {
        let wait = Duration::from_millis(retry_after_ms);
        let message = format!("{reason}: please try again in {}.", format_wait(wait));
        Self::RateLimited { message, retry_after_s: ceil_seconds(wait), rate: None }
    }
}

impl From<NoTranscript> for V1Error {
    /// 404 if the video has no transcript, 429 at the daily cap and if too many fetches wait, else 500.
    fn from(none: NoTranscript) -> Self {
        let none = none.without_advice();
        if none.reason == FailureReason::DailyCap || none.is_busy() {
            let retry_after_s = none.retry_after.map_or(1, ceil_seconds);
            return Self::RateLimited { message: none.message, retry_after_s, rate: None };
        }
        Self::Unavailable(Box::new(none))
    }
}
