//! What the clients of OpenAI-compatible services share: the connection to one URL, and the meaning of statuses.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use reqwest::{Client, Response};
use transcript_core::{Error, Result, Retry};
use url::Url;

use crate::http::{HttpError, bearer, build_service_client, parse_retry_after, read_body};

/// Maximum length of an error response that is read.
const ERROR_BODY_MAX: usize = 64 << 10;

/// One URL of a service on a host that the operator chose, with its key.
pub(crate) struct OpenAiEndpoint {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
}

impl OpenAiEndpoint {
    /// Creates a client of this URL. The key is the value of `key_setting`.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if a header cannot hold the key, or the file of root certificates is
    /// unreadable.
    pub(crate) fn new(
        url: Url,
        key: Option<&str>,
        key_setting: &str,
        ca_file: Option<&Path>,
        connect_timeout: Duration,
    ) -> Result<Self> {
        let authorization = key.map(bearer).transpose();
        let authorization = authorization.map_err(|_| {
            Error::invalid(format!("{key_setting} has a character that a header cannot hold"))
        })?;
        let client = build_service_client(ca_file, None, connect_timeout, None)?;
        Ok(Self { client, url, authorization })
    }

    pub(crate) fn host(&self) -> Option<&str> {
        self.url.host_str()
    }

    /// Sends a request body of this media type.
    ///
    /// # Errors
    /// The service sent no response.
    pub(crate) async fn post(
        &self,
        media_type: &str,
        body: Bytes,
    ) -> std::result::Result<Response, HttpError> {
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, media_type).body(body);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        request.send().await.map_err(|error| HttpError::from_reqwest(&error))
    }
}

/// What an error response means. It contains no text of the service, which may include the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceFault {
    /// The service rejected the key.
    Key,
    /// The quota at the service is used up.
    QuotaExceeded,
    /// The service is throttling, with its `Retry-After`.
    Throttled(Option<Duration>),
    /// The service does not know the model or the URL.
    Unknown,
    /// The request is too large for the service.
    TooLarge,
    /// The service rejected the request, with this status.
    Rejected(u16),
    /// The service failed with an internal error, with this status.
    ServerError(u16),
}

impl ServiceFault {
    /// Classifies an error response by its status, its `Retry-After` and its text.
    pub(crate) fn new(status: StatusCode, wait: Option<Duration>, body: &[u8]) -> Self {
        match status.as_u16() {
            401 | 403 => Self::Key,
            402 => Self::QuotaExceeded,
            429 if contains(body, "insufficient_quota") => Self::QuotaExceeded,
            429 => Self::Throttled(wait),
            404 | 405 => Self::Unknown,
            413 => Self::TooLarge,
            503 if wait.is_some() => Self::Throttled(wait),
            status @ (408 | 500..) => Self::ServerError(status),
            status => Self::Rejected(status),
        }
    }
}

/// Reads an error response: its status, `Retry-After` and text.
pub(crate) async fn read_error(response: Response) -> (StatusCode, Option<Duration>, Bytes) {
    let (status, wait) = (response.status(), parse_retry_after(response.headers()));
    // An error response is valid without a readable body.
    let body = read_body(response, ERROR_BODY_MAX).await.unwrap_or_default();
    (status, wait, body)
}

/// Whether the text of a response contains a word.
pub(crate) fn contains(body: &[u8], word: &str) -> bool {
    body.windows(word.len()).any(|window| window == word.as_bytes())
}

/// Whether and when a throttled request is repeated: a `Retry-After` above `max` ends the tries.
pub(crate) fn throttled_retry(named: Option<Duration>, max: Duration) -> Retry {
    match named {
        Some(named) if named > max => Retry::Never,
        Some(named) => Retry::After(named),
        None => Retry::Backoff,
    }
}
