//! Every way in which Surface B says no (specification 7).

use std::fmt;

use super::RateState;
use crate::{error::Error, time::in_words};

/// Why a call has no answer. Each has a sentence for the caller, who can act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Missing or invalid parameters.
    BadRequest(String),
    /// The key is missing, malformed, unknown, dead, of the other surface, or of a blocked account.
    Unauthorized(String),
    /// The credits do not suffice.
    PaymentRequired {
        /// The sentence.
        message: String,
        /// The credits that are left.
        credits_remaining: u64,
    },
    /// There is no transcript, and asking again soon will not help.
    NotFound(String),
    /// Another request with the same `Idempotency-Key` is under way, or somebody else changed what this one
    /// was about to change.
    Conflict(String),
    /// The caller's own limit.
    RateLimited {
        /// The sentence.
        message: String,
        /// After how many seconds the next request is admitted, if nobody else takes meanwhile.
        retry_after_s: u64,
        /// The account's limit; none where the limit is a network's or an address's.
        rate: Option<RateState>,
    },
    /// Something failed on our side; nothing was charged.
    Internal(String),
}

impl Refused {
    /// The sentence.
    pub fn message(&self) -> &str {
        match self {
            Self::BadRequest(message)
            | Self::Unauthorized(message)
            | Self::PaymentRequired { message, .. }
            | Self::NotFound(message)
            | Self::Conflict(message)
            | Self::RateLimited { message, .. }
            | Self::Internal(message) => message,
        }
    }

    /// The `code` of the error body: the number that HTTP has for it.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unauthorized(_) => 401,
            Self::PaymentRequired { .. } => 402,
            Self::NotFound(_) => 404,
            Self::Conflict(_) => 409,
            Self::RateLimited { .. } => 429,
            Self::Internal(_) => 500,
        }
    }

    /// After how many seconds to try again; 0 where the caller's own limit is not the reason.
    pub(super) fn retry_after_s(&self) -> u64 {
        match self {
            Self::RateLimited { retry_after_s, .. } => *retry_after_s,
            _ => 0,
        }
    }

    /// A store's fault. Its details are for the log.
    pub(crate) fn store(error: &Error) -> Self {
        tracing::error!(%error, "a call of Surface B failed in a store");
        Self::Internal(
            "The service could not reach its storage: nothing was charged, please try again in a moment."
                .to_owned(),
        )
    }

    /// The engine's runtime ended in the middle of the work.
    pub(crate) fn interrupted() -> Self {
        Self::Internal("The service is stopping: please try again in a moment.".to_owned())
    }

    /// Too many calls of somebody who has no key yet.
    pub(crate) fn too_many(what: &str, retry_after_ms: u64) -> Self {
        let retry_after_s = seconds(retry_after_ms);
        let message = format!("{what}: please try again in {}.", in_words(retry_after_s));
        Self::RateLimited { message, retry_after_s, rate: None }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Refused {}

/// Whole seconds that suffice; at least 1.
pub(crate) fn seconds(millis: u64) -> u64 {
    millis.div_ceil(1_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_so_that_they_suffice() {
        assert_eq!([0, 1, 1_000, 1_001].map(seconds), [1, 1, 1, 2]);
    }
}
