//! Errors of the v1 API: `{error, code}` (specification 7.2).

use axum::response::{IntoResponse, Response};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{ALLOW, CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE},
};
use transcript_core::{
    accounts::V1Error,
    headers,
    transcript::TrackInfo,
    wire::{lookup::LanguageObject, v1::ErrorBody},
};

use super::{INVALID_TOKEN, ProblemResponse, header_name, json, rate_limit_headers};

/// Whether a transcript is from the archive: `HIT` or `MISS`.
pub(crate) const X_CACHE: HeaderName = header_name!(headers::X_CACHE);
/// Remaining credits (specification 4.16).
pub(crate) const X_CREDITS_REMAINING: HeaderName = header_name!(headers::X_CREDITS_REMAINING);

/// Detail of the failure reason, of both APIs; of the v1 API the reason, if it has no detail.
/// Other servers need it to store the absence for the right time and to wait for running work.
pub(crate) const X_FAILURE_DETAIL: HeaderName = header_name!(headers::X_FAILURE_DETAIL);

/// Error response of the v1 API.
#[derive(Debug)]
pub(crate) struct V1ErrorResponse {
    status: StatusCode,
    message: String,
    /// The tracks of a video without a transcript in the requested language.
    languages: Vec<TrackInfo>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl V1ErrorResponse {
    /// Creates an error with this status and message.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), languages: Vec::new(), headers: Vec::new() }
    }

    /// Response 400 for an invalid parameter or field; the message begins with its name.
    pub(crate) fn bad(name: &str, what: impl AsRef<str>) -> Self {
        ProblemResponse::bad(name, what).into()
    }

    /// Response 500. The cause is in the log only.
    pub(crate) fn fault() -> Self {
        ProblemResponse::fault().into()
    }

    /// Response 415 for a body of another content type than JSON.
    pub(crate) fn not_json() -> Self {
        let message = "The body must be JSON: send Content-Type: application/json.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// Response 405 with the supported methods.
    pub(crate) fn wrong_method(methods: &'static str) -> Self {
        let denial = Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("This address takes {methods} only."));
        denial.with(ALLOW, HeaderValue::from_static(methods))
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The body of the response.
    pub(crate) fn body(&self) -> ErrorBody {
        let languages = self.languages.iter().map(LanguageObject::from).collect();
        ErrorBody { languages, ..ErrorBody::new(self.message.as_str(), self.status.as_u16()) }
    }

    fn with(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl From<V1Error> for V1ErrorResponse {
    fn from(error: V1Error) -> Self {
        let status = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut denial = Self::new(status, error.message());
        match error {
            V1Error::Unauthorized(_) => {
                denial = denial.with(WWW_AUTHENTICATE, HeaderValue::from_static(INVALID_TOKEN));
            }
            V1Error::PaymentRequired { credits_remaining, .. } => {
                denial = denial.with(X_CREDITS_REMAINING, credits_remaining);
            }
            V1Error::RateLimited { retry_after_s, rate: account_rate, .. } => {
                denial = denial.with(RETRY_AFTER, retry_after_s);
                if let Some(account_rate) = account_rate {
                    denial.headers.extend(rate_limit_headers(&account_rate));
                }
            }
            V1Error::Unavailable(none) => {
                // Details are letters and underscores.
                if let Ok(detail) = HeaderValue::from_str(none.detail_or_reason()) {
                    denial = denial.with(X_FAILURE_DETAIL, detail);
                }
                denial.languages = none.languages;
            }
            V1Error::BadRequest(_)
            | V1Error::NotFound(_)
            | V1Error::Conflict(_)
            | V1Error::Damaged
            | V1Error::Internal(_) => {}
        }
        denial
    }
}

/// Errors that both APIs share, such as a repeated parameter or a body that is too large.
impl From<ProblemResponse> for V1ErrorResponse {
    fn from(refusal: ProblemResponse) -> Self {
        let denial = Self::new(refusal.status(), refusal.detail());
        match refusal.retry_after() {
            // Of this API only a 429 has the header (specification 4.16).
            Some(retry_after) if refusal.status() == StatusCode::TOO_MANY_REQUESTS => {
                denial.with(RETRY_AFTER, retry_after)
            }
            _ => denial,
        }
    }
}

impl IntoResponse for V1ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &self.body());
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.headers_mut().extend(self.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    #[test]
    fn unauthorized_error_of_admitted_call_names_its_token() {
        // A call that loses to a concurrent rotation of its key is refused after its admission.
        let response = V1ErrorResponse::from(V1Error::Unauthorized("No.".to_owned())).into_response();
        assert_eq!(
            response.headers()[WWW_AUTHENTICATE],
            "Bearer realm=\"verbatim\", error=\"invalid_token\""
        );
    }
}
