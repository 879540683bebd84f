//! Asking one server: bounded in time and size, again where that is safe, and nobody else.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};
use transcript_core::{Error, Result as CoreResult};
use url::Url;

use super::{Answered, Facts, IdempotencyKey, Refusal, RefusalKind, ServiceError, ServiceOptions};
use crate::http::{HttpFault, bearer, own_client, pause, read_body};

/// The longest that a connection takes to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that is read of a transcript: as much as the largest one that a server archives.
pub(super) const TRANSCRIPT_MAX: usize = 64 << 20;
/// The most that is read of any other answer, and of a refusal.
pub(super) const ANSWER_MAX: usize = 1 << 20;
/// The first pause before a request is sent again that is still under way; it doubles.
const UNDER_WAY: Duration = Duration::from_secs(1);

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Whether a request may be sent again when nobody knows what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It changes nothing, or nothing more when it is repeated.
    Free,
    /// The server knows it again by this.
    Keyed(IdempotencyKey),
    /// It may have been done already.
    Never,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    /// Below the base address; ours, and never anything from outside.
    pub(super) path: &'static [&'static str],
    pub(super) query: Vec<(&'static str, String)>,
    /// As JSON.
    pub(super) body: Option<Bytes>,
    /// Headers of this call alone.
    pub(super) headers: HeaderMap,
    pub(super) repeat: Repeat,
    /// Whether the key goes along.
    pub(super) is_keyed: bool,
    /// The most that is read of the answer, in bytes.
    pub(super) max: usize,
    /// The statuses that are answers to it, beside those of success.
    pub(super) answers: &'static [u16],
}

impl Call {
    pub(super) fn new(method: Method, path: &'static [&'static str]) -> Self {
        Self {
            method,
            path,
            query: Vec::new(),
            body: None,
            headers: HeaderMap::new(),
            repeat: Repeat::Free,
            is_keyed: true,
            max: ANSWER_MAX,
            answers: &[],
        }
    }

    /// The same with a body.
    pub(super) fn with_body(self, body: &impl serde::Serialize) -> Result<Self, ServiceError> {
        let body = serde_json::to_vec(body).map_err(|_| ServiceError::Invalid("its body is no JSON"))?;
        Ok(Self { body: Some(body.into()), ..self })
    }
}

/// An answer, whatever its status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) facts: Facts,
    pub(super) body: Bytes,
}

impl Answer {
    /// The refusal, where it is one.
    fn accepted(self, call: &Call) -> Result<Self, ServiceError> {
        match self.status.is_success() || call.answers.contains(&self.status.as_u16()) {
            true => Ok(self),
            false => Err(ServiceError::Refused(Box::new(Refusal::of(self.status, self.facts, &self.body)))),
        }
    }

    /// The body as JSON.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<Answered<T>, ServiceError> {
        // What serde says quotes values, and a value may be a key.
        let body = serde_json::from_slice(&self.body)
            .map_err(|_| ServiceError::Unreadable("it is not what the interface says"))?;
        Ok(Answered { body, facts: self.facts })
    }
}

/// The connection to a server.
#[derive(Clone)]
pub(super) struct Api {
    client: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    retries: u32,
    named_wait_max: Duration,
}

impl fmt::Debug for Api {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("host", &self.base.host_str()).finish_non_exhaustive()
    }
}

impl Api {
    pub(super) fn new(options: &ServiceOptions) -> CoreResult<Self> {
        let base = options.check()?;
        let authorization = options.api_key.as_deref().map(authorization).transpose()?;
        let client = own_client(options.ca_file.as_deref(), CONNECT_TIMEOUT, Some(options.timeout))?;
        let ServiceOptions { timeout, retries, named_wait_max, .. } = *options;
        Ok(Self { client, base, authorization, timeout, retries, named_wait_max })
    }

    /// The same connection, with another key.
    pub(super) fn with_key(&self, key: &str) -> CoreResult<Self> {
        Ok(Self { authorization: Some(authorization(key)?), ..self.clone() })
    }

    /// The server's host.
    pub(super) fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    /// Asks, and asks again where that is safe and may help.
    ///
    /// # Errors
    /// The last failure; a status is one unless the call takes it for an answer.
    pub(super) async fn ask(&self, call: &Call) -> Result<Answer, ServiceError> {
        let mut attempt = 0;
        loop {
            let error = match self.attempt(call).await.and_then(|answer| answer.accepted(call)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(wait) = self.wait(call, attempt, &error) else { return Err(error) };
            sleep(wait).await;
            attempt += 1;
        }
    }

    /// How long to wait before the same request is sent again; none when it is not.
    fn wait(&self, call: &Call, attempt: u32, error: &ServiceError) -> Option<Duration> {
        if attempt >= self.retries || call.repeat == Repeat::Never {
            return None;
        }
        if error.kind() == Some(RefusalKind::Conflict) {
            // It is under way, since the answer to it was lost: it is repeated under the same name.
            let is_named = matches!(call.repeat, Repeat::Keyed(_));
            return is_named.then(|| UNDER_WAY.saturating_mul(1 << attempt.min(4)));
        }
        if !error.is_passing() {
            return None;
        }
        match error.retry_after() {
            Some(named) if named > self.named_wait_max => None,
            Some(named) => Some(named + pause(0, rand::random())),
            // Its own limit without a word on how long it lasts: whoever asks now is asked to stop.
            None if error.kind() == Some(RefusalKind::RateLimited) => None,
            None => Some(pause(attempt, rand::random())),
        }
    }

    async fn attempt(&self, call: &Call) -> Result<Answer, ServiceError> {
        let mut url = self.base.clone();
        // A base that can be no base has no host, and was refused.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = self.client.request(call.method.clone(), url).headers(call.headers.clone());
        request = request.header(header::ACCEPT_ENCODING, "gzip");
        if let Some(authorization) = self.authorization.as_ref().filter(|_| call.is_keyed) {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        if let Repeat::Keyed(key) = &call.repeat {
            request = request.header(IDEMPOTENCY_KEY, key.as_str());
        }
        if let Some(body) = &call.body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.clone());
        }
        let started = Instant::now();
        let sent = timeout(self.timeout, send(request, call.max)).await;
        let answer = sent.unwrap_or(Err(HttpFault::Timeout)).map_err(|fault| ServiceError::of_fault(&fault));
        tracing::debug!(
            path = call.path.join("/"),
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            status = answer.as_ref().ok().map(|answer| answer.status.as_u16()),
            "asked a Verbatim server"
        );
        answer
    }
}

fn authorization(key: &str) -> CoreResult<HeaderValue> {
    let wrong = || Error::invalid("service.api_key must be a key of the server, such as vbk_…");
    // A header could hold more than keys have: what has a space in it is no key.
    let is_plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { bearer(key).map_err(|_| wrong()) } else { Err(wrong()) }
}

async fn send(request: reqwest::RequestBuilder, max: usize) -> Result<Answer, HttpFault> {
    let response = request.send().await.map_err(|error| HttpFault::of(&error))?;
    let (status, facts) = (response.status(), Facts::of(response.headers()));
    let body = match status.is_success() {
        true => read_body(response, max).await?,
        // A refusal that cannot be read is one all the same.
        false => read_body(response, ANSWER_MAX).await.unwrap_or_default(),
    };
    Ok(Answer { status, facts, body })
}
