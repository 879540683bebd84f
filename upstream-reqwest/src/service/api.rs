//! HTTP calls to one server: bounded in time and size, with retries where they are safe.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};
use transcript_core::{
    Error, Result as CoreResult,
    headers::IDEMPOTENCY_KEY,
    service::{ResponseMeta, ServiceReply},
};
use url::Url;

use super::{
    ServiceOptions,
    call_error::{CallError, rejection, single_line},
    response_meta,
    retries::{CallRetries, RetrySafety},
};
use crate::{
    http::{HttpError, bearer, build_service_client, read_body},
    json,
};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a transcript response: the size of the largest transcript that a server archives.
pub(super) const TRANSCRIPT_MAX: usize = 64 << 20;
/// Maximum length of any other response, and of an error response.
pub(super) const ANSWER_MAX: usize = 1 << 20;

/// One request.
#[derive(Clone, Debug)]
pub(super) struct ServiceCall {
    pub(super) method: Method,
    /// Path below the base URL. External input in it is a checked id.
    pub(super) path: Vec<Cow<'static, str>>,
    pub(super) query: Vec<(&'static str, String)>,
    /// JSON body.
    pub(super) body: Option<Bytes>,
    /// Additional headers of this call.
    pub(super) headers: HeaderMap,
    pub(super) repeat: RetrySafety,
    /// Whether the API key is sent.
    pub(super) is_keyed: bool,
    /// Maximum length of the response in bytes.
    pub(super) max: usize,
    /// Statuses that count as a success, in addition to 2xx.
    pub(super) answers: &'static [u16],
}

impl ServiceCall {
    pub(super) fn new(method: Method, path: &[&'static str]) -> Self {
        Self {
            method,
            path: path.iter().copied().map(Cow::Borrowed).collect(),
            query: Vec::new(),
            body: None,
            headers: HeaderMap::new(),
            repeat: RetrySafety::Free,
            is_keyed: true,
            max: ANSWER_MAX,
            answers: &[],
        }
    }

    /// The same call with a body.
    pub(super) fn with_body(self, body: &impl serde::Serialize) -> Result<Self, CallError> {
        let body =
            serde_json::to_vec(body).map_err(|_| CallError::Invalid("its body cannot be encoded as JSON"))?;
        Ok(Self { body: Some(body.into()), ..self })
    }
}

/// A response of any status.
#[derive(Debug)]
pub(super) struct ServiceResponse {
    pub(super) status: StatusCode,
    /// The media type without its parameters, in lower case.
    pub(super) media_type: Option<String>,
    pub(super) meta: ResponseMeta,
    /// The target of a redirect, without its query.
    pub(super) location: Option<String>,
    pub(super) body: Bytes,
}

impl ServiceResponse {
    /// Returns an error for a rejected call.
    fn check_status(self, call: &ServiceCall) -> Result<Self, CallError> {
        if self.status.is_success() || call.answers.contains(&self.status.as_u16()) {
            return Ok(self);
        }
        let Self { status, meta, location, body, .. } = self;
        let mut error = rejection(status, meta, &body);
        if let Some(address) = location.filter(|_| status.is_redirection()) {
            let status = status.as_u16();
            error.message =
                format!("The server redirects to {address} (HTTP {status}). Correct the base URL.");
        }
        Err(CallError::Rejected(Box::new(error)))
    }

    /// Parses the body as JSON.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<ServiceReply<T>, CallError> {
        // serde's message quotes values, and a value may be a key.
        let body = json::parse(&self.body).map_err(|_| CallError::Unreadable("it does not match the API"))?;
        Ok(ServiceReply { body, meta: self.meta })
    }
}

/// The connection to one server.
#[derive(Clone)]
pub(super) struct ServiceConnection {
    client: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    retries: CallRetries,
}

// Omits the key.
transcript_core::debug_fields!(ServiceConnection |this| { host: this.base.host_str() });

impl ServiceConnection {
    pub(super) fn new(options: &ServiceOptions) -> CoreResult<Self> {
        let base = options.check()?;
        let authorization = options.api_key.as_deref().map(authorization).transpose()?;
        let client = build_service_client(
            options.ca_file.as_deref(),
            options.proxy_variables.as_ref(),
            CONNECT_TIMEOUT,
            Some(options.timeout),
        )?;
        let ServiceOptions { timeout, retries, named_wait_max, .. } = *options;
        let retries = CallRetries { count: retries, named_wait_max };
        Ok(Self { client, base, authorization, timeout, retries })
    }

    /// The same connection with another key.
    pub(super) fn with_key(&self, key: &str) -> CoreResult<Self> {
        Ok(Self { authorization: Some(authorization(key)?), ..self.clone() })
    }

    /// The server's host.
    pub(super) fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    /// Sends a call, with retries where they are safe and may help.
    ///
    /// # Errors
    /// The last error; a status is one unless the call accepts it.
    pub(super) async fn execute(&self, call: &ServiceCall) -> Result<ServiceResponse, CallError> {
        let send = || async { self.attempt(call).await?.check_status(call) };
        self.retries.run(&call.repeat, send).await
    }

    async fn attempt(&self, call: &ServiceCall) -> Result<ServiceResponse, CallError> {
        let mut url = self.base.clone();
        // A cannot-be-a-base URL has no host and was rejected before.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = self.client.request(call.method.clone(), url).headers(call.headers.clone());
        request = request.header(header::ACCEPT_ENCODING, "gzip");
        if let Some(authorization) = self.authorization.as_ref().filter(|_| call.is_keyed) {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        if let RetrySafety::Keyed(key) = &call.repeat {
            request = request.header(IDEMPOTENCY_KEY, key.as_str());
        }
        if let Some(body) = &call.body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.clone());
        }
        let started = Instant::now();
        let sent = timeout(self.timeout, send(request, call.max)).await;
        let answer =
            sent.unwrap_or(Err(HttpError::Timeout)).map_err(|fault| CallError::from_http_error(&fault));
        tracing::debug!(
            path = call.path.join("/"),
            elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            status = answer.as_ref().ok().map(|answer| answer.status.as_u16()),
            "Verbatim server called"
        );
        answer
    }
}

fn authorization(key: &str) -> CoreResult<HeaderValue> {
    let wrong = || Error::invalid("service.api_key must be an API key of the server, such as vbk_…");
    // A header may hold more than a key: a text with a space is not a key.
    let is_plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { bearer(key).map_err(|_| wrong()) } else { Err(wrong()) }
}

/// The media type of a response without its parameters, in lower case.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|kind| kind.trim().to_ascii_lowercase())
}

/// The target of a redirect. Its query may contain the parameters of the call.
pub(super) fn location(headers: &HeaderMap) -> Option<String> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let address = location.split(['?', '#']).next()?;
    single_line(address).filter(|address| !address.contains('@'))
}

async fn send(request: reqwest::RequestBuilder, max: usize) -> Result<ServiceResponse, HttpError> {
    let response = request.send().await.map_err(|error| HttpError::from_reqwest(&error))?;
    let (status, headers) = (response.status(), response.headers());
    let (media_type, meta) = (media_type(headers), response_meta::from_headers(headers));
    let location = location(headers);
    let body = match status.is_success() {
        true => read_body(response, max).await?,
        // An error response is valid without a readable body.
        false => read_body(response, ANSWER_MAX).await.unwrap_or_default(),
    };
    Ok(ServiceResponse { status, media_type, meta, location, body })
}
