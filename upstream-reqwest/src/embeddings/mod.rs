//! Text embeddings with an OpenAI-compatible API (feature `chat_model`).
//!
//! The operator chooses the host.
//!
//! No proxy of the platforms is used, so no proxy sees the key or the texts.

mod options;
mod wire;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use http::{HeaderValue, StatusCode};
use tokio::{task::JoinSet, time::timeout};
use transcript_core::{
    Error, ErrorKind, Result, Retry,
    chat::{EMBED_TEXTS_MAX, EmbedPurpose, Embedder},
    retry::retry,
};
use url::Url;

pub use options::EmbeddingsOptions;
use wire::{EmbeddingsRequest, EmbeddingsResponse};

use crate::http::{
    HttpError, bearer, build_service_client, parse_retry_after, post_json, read_body, retry_policy,
};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Texts in a request: Text Embeddings Inference accepts no more unless it is configured to.
const BATCH_TEXTS_MAX: usize = 32;
/// Requests at the same time for one call.
const CONCURRENCY_MAX: usize = 4;
/// Letters of a text that are sent: most models read 512 tokens, and some services reject longer texts.
const TEXT_CHARS_MAX: usize = 1_000;
/// Maximum length of a response: 32 vectors of 4,096 numbers, of up to 24 characters each.
const ANSWER_MAX: usize = 4 << 20;
/// The longest `Retry-After` that is waited for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// An embedding model behind an OpenAI-compatible service.
///
/// Texts are sent in batches of bounded size. Transient errors are retried; a call takes at most `timeout`.
#[derive(Clone)]
pub struct EmbeddingsService {
    inner: Arc<ServiceClient>,
}

struct ServiceClient {
    client: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
    name: String,
    options: EmbeddingsOptions,
}

transcript_core::debug_fields!(EmbeddingsService |this| { host: this.inner.url.host_str() });

/// Why a request failed. It contains no text of the service, which may include the key or the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EmbeddingsFailure {
    /// The service returned no response.
    Unreachable(HttpError),
    /// The service is throttling, with its `Retry-After`.
    Throttled(Option<Duration>),
    /// The service rejected the key.
    Key,
    /// The service does not know the model or the URL.
    Unknown,
    /// The service rejected the request, with this status.
    Rejected(u16),
    /// The service failed with an internal error, with this status.
    ServerError(u16),
    /// The response is no list of vectors, one for each text.
    Unreadable,
}

impl EmbeddingsFailure {
    /// Classifies an error response by its status.
    fn new(status: StatusCode, wait: Option<Duration>) -> Self {
        match status.as_u16() {
            401 | 403 => Self::Key,
            404 | 405 => Self::Unknown,
            429 => Self::Throttled(wait),
            503 if wait.is_some() => Self::Throttled(wait),
            408 | 500.. => Self::ServerError(status.as_u16()),
            status => Self::Rejected(status),
        }
    }

    /// Whether and when the same request is repeated.
    fn retry(&self) -> Retry {
        match self {
            Self::Throttled(Some(named)) if *named > RETRY_AFTER_MAX => Retry::Never,
            Self::Throttled(Some(named)) => Retry::After(*named),
            Self::Throttled(None)
            | Self::ServerError(_)
            | Self::Unreachable(HttpError::Timeout | HttpError::Unreachable(_) | HttpError::CutOff) => {
                Retry::Backoff
            }
            _ => Retry::Never,
        }
    }

    fn error(self) -> Error {
        let kind = match &self {
            Self::Unreachable(_) | Self::Throttled(_) | Self::ServerError(_) => ErrorKind::Unavailable,
            Self::Unreadable => ErrorKind::Corrupt,
            Self::Key | Self::Unknown | Self::Rejected(_) => ErrorKind::Invalid,
        };
        let message = match &self {
            Self::Unreachable(fault) => format!("the embeddings service is unavailable ({fault:?})"),
            Self::Throttled(_) => "the embeddings service receives too many requests".to_owned(),
            Self::Key => "the embeddings service rejected chat.embeddings_api_key".to_owned(),
            Self::Unknown => "the embeddings service does not know the model or the URL: check \
                              chat.embeddings_model and chat.embeddings_url"
                .to_owned(),
            Self::Rejected(status) => {
                format!("the embeddings service rejected the request (HTTP {status})")
            }
            Self::ServerError(status) => {
                format!("the embeddings service failed with an internal error (HTTP {status})")
            }
            Self::Unreadable => "the response of the embeddings service is no list of vectors, one for each \
                                 text"
                .to_owned(),
        };
        Error::new(kind, self.retry(), message)
    }
}

impl EmbeddingsService {
    /// Creates a client with these options.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], naming the setting that is wrong.
    pub fn new(options: EmbeddingsOptions) -> Result<Self> {
        let url = options.check()?;
        let authorization = options.api_key.as_deref().map(bearer).transpose();
        let authorization = authorization.map_err(|_| {
            Error::invalid("chat.embeddings_api_key has a character that a header cannot hold")
        })?;
        let client = build_service_client(options.ca_file.as_deref(), None, CONNECT_TIMEOUT, None)?;
        let name = options.name();
        Ok(Self { inner: Arc::new(ServiceClient { client, url, authorization, name, options }) })
    }

    /// Embeds all batches, a few at a time.
    async fn embed_batches(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbeddingsFailure> {
        let mut batches: Vec<Vec<Vec<f32>>> = vec![Vec::new(); texts.len().div_ceil(BATCH_TEXTS_MAX)];
        let mut pending = texts.chunks(BATCH_TEXTS_MAX).map(<[String]>::to_vec).enumerate();
        let mut running = JoinSet::new();
        loop {
            while running.len() < CONCURRENCY_MAX {
                let Some((number, batch)) = pending.next() else { break };
                let client = Arc::clone(&self.inner);
                running.spawn(async move { (number, client.embed_with_retries(&batch).await) });
            }
            match running.join_next().await {
                None => return Ok(batches.into_iter().flatten().collect()),
                Some(Ok((number, vectors))) => {
                    let vectors = vectors?;
                    batches.get_mut(number).into_iter().for_each(|batch| batch.clone_from(&vectors));
                }
                // The runtime is stopping.
                Some(Err(_)) => return Err(EmbeddingsFailure::Unreachable(HttpError::CutOff)),
            }
        }
    }
}

impl ServiceClient {
    async fn embed_with_retries(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingsFailure> {
        let judge = |_, failure: &EmbeddingsFailure| failure.retry();
        let call = |attempt| async move {
            self.embed(texts).await.inspect_err(|failure| {
                tracing::debug!(attempt, ?failure, "embeddings request failed");
            })
        };
        retry(retry_policy(self.options.retries), rand::random, judge, call).await
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingsFailure> {
        let body = EmbeddingsRequest { model: &self.options.model, input: texts, encoding_format: "float" };
        let body = serde_json::to_vec(&body).map_err(|_| EmbeddingsFailure::Unreadable)?;
        let sent = post_json(&self.client, &self.url, self.authorization.as_ref(), body).await;
        let response = sent.map_err(EmbeddingsFailure::Unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(EmbeddingsFailure::new(status, parse_retry_after(response.headers())));
        }
        let body = read_body(response, ANSWER_MAX).await.map_err(|fault| match fault {
            HttpError::TooLarge => EmbeddingsFailure::Unreadable,
            fault => EmbeddingsFailure::Unreachable(fault),
        })?;
        let answer: EmbeddingsResponse =
            serde_json::from_slice(&body).map_err(|_| EmbeddingsFailure::Unreadable)?;
        answer.vectors(texts.len()).ok_or(EmbeddingsFailure::Unreadable)
    }
}

#[async_trait]
impl Embedder for EmbeddingsService {
    fn model(&self) -> &str {
        &self.inner.name
    }

    async fn embed(&self, texts: Vec<String>, purpose: EmbedPurpose) -> Result<Vec<Vec<f32>>> {
        if texts.len() > EMBED_TEXTS_MAX {
            return Err(Error::invalid(format!("{} texts; allowed: {EMBED_TEXTS_MAX}", texts.len())));
        }
        let options = &self.inner.options;
        let prefix = match purpose {
            EmbedPurpose::Question => &options.question_prefix,
            EmbedPurpose::Passage => &options.passage_prefix,
        };
        let prefixed = |text: String| {
            let letters: String = text.chars().take(TEXT_CHARS_MAX).collect();
            if prefix.is_empty() { letters } else { format!("{prefix} {letters}") }
        };
        let texts = texts.into_iter().map(prefixed).collect();
        let result = timeout(options.timeout, self.embed_batches(texts)).await;
        result
            .unwrap_or(Err(EmbeddingsFailure::Unreachable(HttpError::Timeout)))
            .map_err(EmbeddingsFailure::error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_response_is_classified_by_status() {
        let wait = Some(Duration::from_secs(2));
        for (status, expect, retry) in [
            (401, EmbeddingsFailure::Key, Retry::Never),
            (404, EmbeddingsFailure::Unknown, Retry::Never),
            (400, EmbeddingsFailure::Rejected(400), Retry::Never),
            (429, EmbeddingsFailure::Throttled(wait), Retry::After(Duration::from_secs(2))),
            (503, EmbeddingsFailure::Throttled(wait), Retry::After(Duration::from_secs(2))),
            (500, EmbeddingsFailure::ServerError(500), Retry::Backoff),
        ] {
            let failure = EmbeddingsFailure::new(StatusCode::from_u16(status).unwrap(), wait);
            assert_eq!((&failure, failure.retry()), (&expect, retry), "{status}");
        }
        let long = EmbeddingsFailure::Throttled(Some(Duration::from_secs(60)));
        assert_eq!(long.retry(), Retry::Never);
    }

    #[test]
    fn options_name_model_and_prefixes() {
        let options = EmbeddingsOptions {
            base_url: "http://[::1]:8081/v1/".to_owned(),
            model: "e5".to_owned(),
            question_prefix: "query:".to_owned(),
            ..EmbeddingsOptions::default()
        };
        assert_eq!(EmbeddingsService::new(options.clone()).unwrap().model(), "e5|query:|");
        assert_eq!(options.check().unwrap().as_str(), "http://[::1]:8081/v1/embeddings");
        for (wrong, message) in [
            (EmbeddingsOptions { base_url: "ftp://a".to_owned(), ..options.clone() }, "chat.embeddings_url"),
            (EmbeddingsOptions { model: String::new(), ..options.clone() }, "chat.embeddings_model"),
            (EmbeddingsOptions { timeout: Duration::ZERO, ..options.clone() }, "chat.embeddings_timeout"),
            (EmbeddingsOptions { api_key: Some("a\n".to_owned()), ..options }, "chat.embeddings_api_key"),
        ] {
            assert!(EmbeddingsService::new(wrong).unwrap_err().message().contains(message), "{message}");
        }
    }
}
