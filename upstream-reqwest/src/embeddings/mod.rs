//! Text embeddings with an OpenAI-compatible API (feature `chat_model`).
//!
//! The operator chooses the host.
//!
//! No proxy of the platforms is used, so no proxy sees the key or the texts.

mod options;
mod wire;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use http::StatusCode;
use tokio::{task::JoinSet, time::timeout};
use transcript_core::{
    Error, ErrorKind, Result, Retry,
    chat::{EMBED_TEXTS_MAX, EmbedPurpose, Embedder},
    retry::retry,
};

pub use options::EmbeddingsOptions;
use wire::{EmbeddingsRequest, EmbeddingsResponse};

use crate::{
    http::{HttpError, read_body, retry_policy},
    openai::{OpenAiEndpoint, ServiceFault, read_error, throttled_retry},
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
    inner: Arc<EmbeddingsClient>,
}

struct EmbeddingsClient {
    endpoint: OpenAiEndpoint,
    name: String,
    options: EmbeddingsOptions,
}

transcript_core::debug_fields!(EmbeddingsService |this| { host: this.inner.endpoint.host() });

/// Why a request failed. It contains no text of the service, which may include the key or the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EmbeddingsFailure {
    /// The service returned no response.
    Unreachable(HttpError),
    /// The service is throttling, with its `Retry-After`.
    Throttled(Option<Duration>),
    /// The service rejected the key.
    Key,
    /// The quota at the service is used up.
    QuotaExceeded,
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
    /// Classifies an error response. Its text is inspected but never reported: it may contain the key.
    fn new(status: StatusCode, wait: Option<Duration>, body: &[u8]) -> Self {
        match ServiceFault::new(status, wait, body) {
            ServiceFault::Key => Self::Key,
            ServiceFault::QuotaExceeded => Self::QuotaExceeded,
            ServiceFault::Throttled(wait) => Self::Throttled(wait),
            ServiceFault::Unknown => Self::Unknown,
            ServiceFault::TooLarge | ServiceFault::Rejected(_) => Self::Rejected(status.as_u16()),
            ServiceFault::ServerError(status) => Self::ServerError(status),
        }
    }

    /// Whether and when the same request is repeated.
    fn retry(&self) -> Retry {
        match self {
            Self::Throttled(named) => throttled_retry(*named, RETRY_AFTER_MAX),
            Self::ServerError(_)
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
            Self::Key | Self::QuotaExceeded | Self::Unknown | Self::Rejected(_) => ErrorKind::Invalid,
        };
        let message = match &self {
            Self::Unreachable(fault) => format!("the embeddings service is unavailable ({fault:?})"),
            Self::Throttled(_) => "the embeddings service receives too many requests".to_owned(),
            Self::Key => "the embeddings service rejected chat.embeddings_api_key".to_owned(),
            Self::QuotaExceeded => "the quota at the embeddings service is used up".to_owned(),
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
        let name = options.name(&url);
        let (key, ca_file) = (options.api_key.as_deref(), options.ca_file.as_deref());
        let endpoint = OpenAiEndpoint::new(url, key, "chat.embeddings_api_key", ca_file, CONNECT_TIMEOUT)?;
        Ok(Self { inner: Arc::new(EmbeddingsClient { endpoint, name, options }) })
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

impl EmbeddingsClient {
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
        let sent = self.endpoint.post("application/json", body.into()).await;
        let response = sent.map_err(EmbeddingsFailure::Unreachable)?;
        if !response.status().is_success() {
            let (status, wait, body) = read_error(response).await;
            return Err(EmbeddingsFailure::new(status, wait, &body));
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
    fn error_response_is_classified() {
        let wait = Some(Duration::from_secs(2));
        let no_quota = r#"{"error":{"code":"insufficient_quota"}}"#;
        for (status, body, expect, retry) in [
            (401, "", EmbeddingsFailure::Key, Retry::Never),
            (402, "", EmbeddingsFailure::QuotaExceeded, Retry::Never),
            (429, no_quota, EmbeddingsFailure::QuotaExceeded, Retry::Never),
            (404, "", EmbeddingsFailure::Unknown, Retry::Never),
            (400, "", EmbeddingsFailure::Rejected(400), Retry::Never),
            (413, "", EmbeddingsFailure::Rejected(413), Retry::Never),
            (429, "slow down", EmbeddingsFailure::Throttled(wait), Retry::After(Duration::from_secs(2))),
            (503, "", EmbeddingsFailure::Throttled(wait), Retry::After(Duration::from_secs(2))),
            (500, "", EmbeddingsFailure::ServerError(500), Retry::Backoff),
        ] {
            let code = StatusCode::from_u16(status).unwrap();
            let failure = EmbeddingsFailure::new(code, wait, body.as_bytes());
            assert_eq!((&failure, failure.retry()), (&expect, retry), "{status} {body}");
        }
        let long = EmbeddingsFailure::Throttled(Some(Duration::from_secs(60)));
        assert_eq!(long.retry(), Retry::Never);
    }

    #[test]
    fn options_name_service_model_and_prefixes() {
        let options = EmbeddingsOptions {
            base_url: "http://[::1]:8081/v1/".to_owned(),
            model: "e5".to_owned(),
            question_prefix: "query:".to_owned(),
            ..EmbeddingsOptions::default()
        };
        let name = |base_url: &str| {
            let options = EmbeddingsOptions { base_url: base_url.to_owned(), ..options.clone() };
            EmbeddingsService::new(options).unwrap().model().to_owned()
        };
        assert_eq!(name("http://[::1]:8081/v1/"), "http://[::1]:8081/v1/embeddings|e5|query:|");
        assert_eq!(name("http://[::1]:8081/v1"), name("http://[::1]:8081/v1/"));
        assert_ne!(name("http://[::1]:8082/v1"), name("http://[::1]:8081/v1"));
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
