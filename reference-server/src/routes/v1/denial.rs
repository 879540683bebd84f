//! Every error of Surface B: `{error, code}` (specification 7).

use axum::response::{IntoResponse, Response};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{ALLOW, CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE},
};
use transcript_core::{accounts::Refused, wire::v1::ErrorBody};

use super::{X_CREDITS_REMAINING, rate};
use crate::http::{Refusal, json};

/// A call of Surface B that is not answered as asked.
#[derive(Debug)]
pub(crate) struct Denial {
    status: StatusCode,
    message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Denial {
    /// A denial with this status and sentence.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), headers: Vec::new() }
    }

    /// A parameter or field of the request is wrong: 400, with its name first.
    pub(crate) fn bad(name: &str, what: impl AsRef<str>) -> Self {
        Refusal::bad(name, what).into()
    }

    /// A fault of ours: 500. What it was is for the log, not for the caller.
    pub(crate) fn fault() -> Self {
        Refusal::fault().into()
    }

    /// The method is none of these, which the address has: 405.
    pub(super) fn wrong_method(methods: &'static str) -> Self {
        let denial = Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("This address takes {methods} only."));
        denial.with(ALLOW, HeaderValue::from_static(methods))
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn with(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl From<Refused> for Denial {
    fn from(refused: Refused) -> Self {
        let status = StatusCode::from_u16(refused.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut denial = Self::new(status, refused.message());
        match refused {
            Refused::Unauthorized(_) => {
                let challenge = HeaderValue::from_static("Bearer realm=\"verbatim\"");
                denial = denial.with(WWW_AUTHENTICATE, challenge);
            }
            Refused::PaymentRequired { credits_remaining, .. } => {
                denial = denial.with(X_CREDITS_REMAINING, credits_remaining);
            }
            Refused::RateLimited { retry_after_s, rate: of_account, .. } => {
                denial = denial.with(RETRY_AFTER, retry_after_s);
                if let Some(of_account) = of_account {
                    denial.headers.extend(rate::fields(&of_account));
                }
            }
            Refused::BadRequest(_) | Refused::NotFound(_) | Refused::Conflict(_) | Refused::Internal(_) => {}
        }
        denial
    }
}

/// What both surfaces refuse alike: a parameter that comes twice, a body that is too large.
impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.status(), refusal.detail())
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: self.message, code: self.status.as_u16() };
        let mut response = json(self.status, &body);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.headers_mut().extend(self.headers);
        response
    }
}
