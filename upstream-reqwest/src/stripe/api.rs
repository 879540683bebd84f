//! HTTP calls to Stripe: one client, one host, with retries.

use std::{fmt, time::Duration};

use http::{HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, de::DeserializeOwned};
use transcript_core::{Error, ErrorKind, Result as CoreResult, Retry, retry::retry};
use url::Url;

use super::{API_VERSION, StripeOptions, form::StripeForm};
use crate::http::{HttpError, bearer, build_service_client, read_body, retry_policy};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a response. A page of invoices has about 100 KB.
const ANSWER_MAX: usize = 2 * 1024 * 1024;
/// Maximum length of an object id.
const ID_MAX: usize = 255;

/// Whether a text can be the id of a Stripe object. Ids become part of a URL.
pub(super) fn is_id(text: &str) -> bool {
    (1..=ID_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A failed call. It contains no secret: no key, no URL, no message of Stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StripeError {
    /// Stripe is unreachable, or throttles.
    Unavailable(String),
    /// Stripe rejected this request.
    Rejected(StripeRejection),
    /// The response is invalid; the text says what was expected.
    Unreadable(&'static str),
    /// A checkout session is completed or expired.
    Closed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StripeRejection {
    pub(super) status: u16,
    /// The error code, such as `resource_missing`.
    pub(super) code: String,
    /// The parameter, such as `customer`.
    pub(super) param: String,
    /// Stripe's request id, which its log contains.
    request: String,
}

impl StripeError {
    /// Whether the object in this parameter does not exist.
    pub(super) fn is_missing(&self, param: &str) -> bool {
        matches!(self, Self::Rejected(rejection) if rejection.code == "resource_missing" && rejection.param == param)
    }

    /// Whether the requested object does not exist.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Rejected(rejection) if rejection.status == 404)
    }

    /// Whether the request is invalid in the current state.
    pub(super) fn is_bad_request(&self) -> bool {
        matches!(self, Self::Rejected(rejection) if rejection.status == 400)
    }
}

impl fmt::Display for StripeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(how) => write!(f, "Stripe is unavailable: {how}"),
            Self::Rejected(StripeRejection { status: 401, .. }) => {
                f.write_str("Stripe rejected stripe.secret_key")
            }
            Self::Rejected(StripeRejection { status: 403, .. }) => {
                f.write_str("stripe.secret_key lacks permissions: give it the rights of a secret key")
            }
            Self::Rejected(StripeRejection { status, code, param, request }) => {
                write!(f, "Stripe rejected a request (HTTP {status}")?;
                for part in [code, param, request].into_iter().filter(|part| !part.is_empty()) {
                    write!(f, ", {part}")?;
                }
                f.write_str(")")
            }
            Self::Unreadable(what) => write!(f, "Stripe's response is invalid: {what}"),
            Self::Closed => f.write_str("the checkout page of this order is used or closed"),
        }
    }
}

impl From<StripeError> for Error {
    fn from(fault: StripeError) -> Self {
        match fault {
            StripeError::Unavailable(_) => {
                Self::new(ErrorKind::Unavailable, Retry::Backoff, fault.to_string())
            }
            StripeError::Closed => Self::new(ErrorKind::Conflict, Retry::Never, fault.to_string()),
            StripeError::Rejected(_) | StripeError::Unreadable(_) => Self::unexpected(fault.to_string()),
        }
    }
}

pub(super) type StripeResult<T> = Result<T, StripeError>;

/// The connection to Stripe's API.
pub(super) struct StripeApi {
    client: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
    timeout: Duration,
    retries: u32,
}

transcript_core::debug_fields!(StripeApi |this| { host: this.base.host_str() });

impl StripeApi {
    pub(super) fn new(options: &StripeOptions) -> CoreResult<Self> {
        let base = options.check()?;
        let authorization = bearer(&options.secret_key)
            .map_err(|_| Error::invalid("stripe.secret_key must be Stripe's key, such as sk_live_…"))?;
        let client =
            build_service_client(options.ca_file.as_deref(), None, CONNECT_TIMEOUT, Some(options.timeout))?;
        Ok(Self { client, base, authorization, timeout: options.timeout, retries: options.retries })
    }

    /// Reads an object. The path contains only constants and ids that [`is_id`] accepts.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, query: &StripeForm) -> StripeResult<T> {
        self.send_with_retries(Method::GET, path, query, None).await
    }

    /// Changes or creates an object, once per idempotency key.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        form: &StripeForm,
        key: &str,
    ) -> StripeResult<T> {
        self.send_with_retries(Method::POST, path, form, Some(key)).await
    }

    /// Changes or creates an object without an idempotency key, so that the response is never a stored one.
    pub(super) async fn post_unkeyed<T: DeserializeOwned>(
        &self,
        path: &str,
        form: &StripeForm,
    ) -> StripeResult<T> {
        self.send_with_retries(Method::POST, path, form, None).await
    }

    async fn send_with_retries<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        form: &StripeForm,
        key: Option<&str>,
    ) -> StripeResult<T> {
        let call = |_| async {
            match self.attempt(&method, path, form, key).await {
                Ok(answer) if answer.is_transient() => Err(Ok(answer)),
                outcome => outcome.map_err(Err),
            }
        };
        match retry(retry_policy(self.retries), rand::random, |_, _| Retry::Backoff, call).await {
            Ok(answer) | Err(Ok(answer)) => answer.read(path),
            Err(Err(error)) => Err(error),
        }
    }

    async fn attempt(
        &self,
        method: &Method,
        path: &str,
        form: &StripeForm,
        key: Option<&str>,
    ) -> StripeResult<StripeResponse> {
        let mut url = self.base.clone();
        url.set_path(path);
        let mut request = match *method {
            Method::GET => {
                url.set_query(Some(&form.encode()));
                self.client.get(url)
            }
            _ => self
                .client
                .post(url)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form.encode()),
        };
        request = request
            .header(header::AUTHORIZATION, self.authorization.clone())
            .header("stripe-version", API_VERSION);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let started = tokio::time::Instant::now();
        let sent = tokio::time::timeout(self.timeout, send(request)).await;
        let answer = sent.unwrap_or(Err(HttpError::Timeout)).map_err(|fault| unavailable(&fault));
        tracing::debug!(
            path,
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            status = answer.as_ref().ok().map(|answer| answer.status.as_u16()),
            "Stripe request finished"
        );
        answer
    }
}

async fn send(request: reqwest::RequestBuilder) -> Result<StripeResponse, HttpError> {
    let response = request.send().await.map_err(|error| HttpError::from_reqwest(&error))?;
    let status = response.status();
    let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let (should_retry, request) = (header("stripe-should-retry"), header("request-id"));
    let body = read_body(response, ANSWER_MAX).await?;
    Ok(StripeResponse { status, should_retry, request: safe_identifier(request), body })
}

/// A response of any status.
struct StripeResponse {
    status: StatusCode,
    should_retry: Option<String>,
    request: String,
    body: bytes::Bytes,
}

#[derive(Deserialize)]
struct StripeErrorBody {
    error: StripeErrorDetails,
}

#[derive(Deserialize, Default)]
struct StripeErrorDetails {
    code: Option<String>,
    param: Option<String>,
}

impl StripeResponse {
    /// Whether a retry of the same request may succeed. Stripe's own header takes precedence.
    fn is_transient(&self) -> bool {
        match self.should_retry.as_deref() {
            Some("true") => true,
            Some("false") => false,
            // Another request with the same key is running, or there are too many.
            _ => matches!(self.status.as_u16(), 409 | 429 | 500..),
        }
    }

    fn read<T: DeserializeOwned>(self, path: &str) -> StripeResult<T> {
        if self.status.is_success() {
            return serde_json::from_slice(&self.body).map_err(|error| {
                // serde's message quotes values; the position is enough.
                tracing::error!(
                    path,
                    line = error.line(),
                    column = error.column(),
                    "Stripe response unreadable"
                );
                StripeError::Unreadable("a field is missing or has another type")
            });
        }
        let status = self.status.as_u16();
        if status == 409 || status == 429 || status >= 500 {
            return Err(StripeError::Unavailable(format!("HTTP {status}")));
        }
        let with =
            serde_json::from_slice::<StripeErrorBody>(&self.body).map(|body| body.error).unwrap_or_default();
        let rejection = StripeRejection {
            status,
            code: safe_identifier(with.code),
            param: safe_identifier(with.param),
            request: self.request,
        };
        Err(StripeError::Rejected(rejection))
    }
}

/// An identifier in Stripe's response that is safe in a message, since it comes from outside.
fn safe_identifier(text: Option<String>) -> String {
    let plain = |text: &String| {
        text.len() <= 100 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_[].-".contains(&byte))
    };
    text.filter(plain).unwrap_or_default()
}

fn unavailable(fault: &HttpError) -> StripeError {
    StripeError::Unavailable(match fault {
        HttpError::Timeout => "it took too long to respond".to_owned(),
        HttpError::Unreachable(how) => (*how).to_owned(),
        HttpError::TooLarge => "its response is too large".to_owned(),
        _ => "its response ended early".to_owned(),
    })
}
