//! Asking Stripe: one client, one host, requests that may be repeated.

use std::{fmt, time::Duration};

use http::{HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, de::DeserializeOwned};
use transcript_core::{Error, ErrorKind, Result as CoreResult, Retry};
use url::Url;

use super::{API_VERSION, StripeOptions, form::Form};
use crate::http::{HttpFault, bearer, own_client, pause, read_body};

/// The longest that a connection takes to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most that is read of an answer. A page of invoices is some 100 KB.
const ANSWER_MAX: usize = 2 * 1024 * 1024;
/// The longest name of an object.
const ID_MAX: usize = 255;

/// Whether a text can be the name of one of Stripe's objects: it becomes part of an address.
pub(super) fn is_id(text: &str) -> bool {
    (1..=ID_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Why Stripe gave no answer. It holds nothing that is secret: no key, no address, no sentence of Stripe's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It cannot be reached, or does not want to be asked now.
    Away(String),
    /// It refuses this very request.
    Refused(Refusal),
    /// Its answer is not what it should be; what was asked for.
    Unreadable(&'static str),
    /// A checkout was used already, or is closed.
    Closed,
}

/// What Stripe said no with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// A word such as `resource_missing`.
    pub(super) code: String,
    /// The field that is meant, such as `customer`.
    pub(super) param: String,
    /// Stripe's name for the request, by which its log has it.
    request: String,
}

impl Fault {
    /// Whether what was named does not exist, or does no more.
    pub(super) fn is_missing(&self, param: &str) -> bool {
        matches!(self, Self::Refused(no) if no.code == "resource_missing" && no.param == param)
    }

    /// Whether there is nothing of this name.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Refused(no) if no.status == 404)
    }

    /// Whether the request cannot be done as it was asked.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(no) if no.status == 400)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(how) => write!(f, "Stripe cannot be asked now: {how}"),
            Self::Refused(Refusal { status: 401, .. }) => {
                f.write_str("Stripe does not accept stripe.secret_key")
            }
            Self::Refused(Refusal { status: 403, .. }) => {
                f.write_str("stripe.secret_key may not do what is needed: give it the rights of a secret key")
            }
            Self::Refused(Refusal { status, code, param, request }) => {
                write!(f, "Stripe refuses a request (HTTP {status}")?;
                for part in [code, param, request].into_iter().filter(|part| !part.is_empty()) {
                    write!(f, ", {part}")?;
                }
                f.write_str(")")
            }
            Self::Unreadable(what) => write!(f, "Stripe's answer is not what it should be: {what}"),
            Self::Closed => f.write_str("the page of this order was used already, or is closed"),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Away(_) => Self::new(ErrorKind::Unavailable, Retry::Backoff, fault.to_string()),
            Fault::Closed => Self::new(ErrorKind::Conflict, Retry::Never, fault.to_string()),
            Fault::Refused(_) | Fault::Unreadable(_) => Self::unexpected(fault.to_string()),
        }
    }
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// Stripe's interface.
pub(super) struct Api {
    client: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
    timeout: Duration,
    retries: u32,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("host", &self.base.host_str()).finish_non_exhaustive()
    }
}

impl Api {
    pub(super) fn new(options: &StripeOptions) -> CoreResult<Self> {
        let base = options.check()?;
        let authorization = bearer(&options.secret_key)
            .map_err(|_| Error::invalid("stripe.secret_key must be Stripe's key, such as sk_live_…"))?;
        let client = own_client(options.ca_file.as_deref(), CONNECT_TIMEOUT, Some(options.timeout))?;
        Ok(Self { client, base, authorization, timeout: options.timeout, retries: options.retries })
    }

    /// Reads something. The path is made of words and names that [`is_id`] accepts.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, query: &Form) -> Result<T> {
        self.ask(Method::GET, path, query, None).await
    }

    /// Changes or makes something, once for each key.
    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, form: &Form, key: &str) -> Result<T> {
        self.ask(Method::POST, path, form, Some(key)).await
    }

    /// Changes or makes something that may be done once more: what is answered is never an old answer.
    pub(super) async fn post_anew<T: DeserializeOwned>(&self, path: &str, form: &Form) -> Result<T> {
        self.ask(Method::POST, path, form, None).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        form: &Form,
        key: Option<&str>,
    ) -> Result<T> {
        let mut attempt = 0;
        loop {
            let outcome = self.attempt(&method, path, form, key).await;
            let may_repeat = attempt < self.retries && outcome.as_ref().is_ok_and(Answer::is_passing);
            let lost = attempt < self.retries && outcome.is_err();
            if !may_repeat && !lost {
                return outcome.and_then(|answer| answer.read(path));
            }
            tokio::time::sleep(pause(attempt, rand::random())).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, method: &Method, path: &str, form: &Form, key: Option<&str>) -> Result<Answer> {
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
        let answer = sent.unwrap_or(Err(HttpFault::Timeout)).map_err(|fault| away(&fault));
        tracing::debug!(
            path,
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            status = answer.as_ref().ok().map(|answer| answer.status.as_u16()),
            "asked Stripe"
        );
        answer
    }
}

async fn send(request: reqwest::RequestBuilder) -> std::result::Result<Answer, HttpFault> {
    let response = request.send().await.map_err(|error| HttpFault::of(&error))?;
    let status = response.status();
    let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let (should_retry, request) = (header("stripe-should-retry"), header("request-id"));
    let body = read_body(response, ANSWER_MAX).await?;
    Ok(Answer { status, should_retry, request: word(request), body })
}

/// An answer, whatever its status.
struct Answer {
    status: StatusCode,
    should_retry: Option<String>,
    request: String,
    body: bytes::Bytes,
}

#[derive(Deserialize)]
struct Refused {
    error: RefusedWith,
}

#[derive(Deserialize, Default)]
struct RefusedWith {
    code: Option<String>,
    param: Option<String>,
}

impl Answer {
    /// Whether the same request may be answered otherwise in a moment. Stripe says so itself, where it knows.
    fn is_passing(&self) -> bool {
        match self.should_retry.as_deref() {
            Some("true") => true,
            Some("false") => false,
            // Another request with the same key is under way, or too many are.
            _ => matches!(self.status.as_u16(), 409 | 429 | 500..),
        }
    }

    fn read<T: DeserializeOwned>(self, path: &str) -> Result<T> {
        if self.status.is_success() {
            return serde_json::from_slice(&self.body).map_err(|error| {
                // What serde says quotes values; where it was is enough.
                tracing::error!(
                    path,
                    line = error.line(),
                    column = error.column(),
                    "Stripe's answer is unreadable"
                );
                Fault::Unreadable("a field is missing or of another kind")
            });
        }
        let status = self.status.as_u16();
        if status == 409 || status == 429 || status >= 500 {
            return Err(Fault::Away(format!("HTTP {status}")));
        }
        let with = serde_json::from_slice::<Refused>(&self.body).map(|body| body.error).unwrap_or_default();
        let refusal =
            Refusal { status, code: word(with.code), param: word(with.param), request: self.request };
        Err(Fault::Refused(refusal))
    }
}

/// A word of Stripe's that may stand in a message: it comes from outside.
fn word(text: Option<String>) -> String {
    let plain = |text: &String| {
        text.len() <= 100 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_[].-".contains(&byte))
    };
    text.filter(plain).unwrap_or_default()
}

fn away(fault: &HttpFault) -> Fault {
    Fault::Away(match fault {
        HttpFault::Timeout => "it took too long to answer".to_owned(),
        HttpFault::Unreachable(how) => (*how).to_owned(),
        HttpFault::TooLarge => "its answer is larger than any that is read".to_owned(),
        _ => "its answer broke off".to_owned(),
    })
}
