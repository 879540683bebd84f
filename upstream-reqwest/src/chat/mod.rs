//! Chat models with an OpenAI-compatible API (feature `chat_model`).
//!
//! The operator chooses the host.
//!
//! No proxy of the platforms is used, so no proxy sees the key or the questions.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod options;
mod stream;
mod wire;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http::{StatusCode, header};
use reqwest::Response;
use tokio::time::timeout;
use transcript_core::{
    Error, ErrorKind, Result, Retry,
    chat::{ChatMessage, ChatModel, DeltaSink, ModelReply, ModelRequest, TokenUsage},
    retry::retry,
};

pub use options::ChatModelOptions;
use stream::{SseParser, ThinkFilter};
use wire::{CompletionRequest, CompletionResponse, ServiceQuirks};

use crate::{
    http::{HttpError, read_body, retry_policy},
    json,
    openai::{OpenAiEndpoint, ServiceFault, contains, read_error, throttled_retry},
};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a response: a stream has about 300 bytes per word.
const ANSWER_MAX: usize = 4 << 20;
/// The longest `Retry-After` that is waited for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(20);
/// How often a request is adapted to a service that rejects a parameter.
const ADAPTATIONS_MAX: u32 = 4;

/// A chat model behind an OpenAI-compatible service.
///
/// Answers are streamed. A parameter that the service rejects (a temperature, the older name of the token limit) is
/// omitted from then on. Errors are retried until the first text arrives; the whole call takes at most `timeout`.
pub struct OpenAiChat {
    endpoint: OpenAiEndpoint,
    options: ChatModelOptions,
    quirks: Mutex<ServiceQuirks>,
}

transcript_core::debug_fields!(OpenAiChat |this| { host: this.endpoint.host() });

/// Why a call failed. It contains no text of the service, which may include the key or the question.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ChatFailure {
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
    /// The request exceeds the model's context.
    TooLong,
    /// The service rejects a parameter that can be omitted.
    Dialect(ServiceQuirks),
    /// The service rejected the request, with this status.
    Rejected(u16),
    /// The service failed with an internal error, with this status.
    ServerError(u16),
    /// The answer of the model is invalid; the text says why. The text of a request can cause this.
    Unreadable(&'static str),
    /// The response is not one of a chat service, such as the page of a proxy; the text says why.
    Foreign(&'static str),
}

impl ChatFailure {
    /// Whether a retry of the same request may succeed.
    fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(HttpError::Timeout | HttpError::Unreachable(_) | HttpError::CutOff)
                | Self::Throttled(_)
                | Self::ServerError(_)
        )
    }

    fn error(self) -> Error {
        let (kind, retry) = match &self {
            Self::Unreachable(_) | Self::Throttled(_) | Self::ServerError(_) | Self::Foreign(_) => {
                (ErrorKind::Unavailable, Retry::Backoff)
            }
            Self::Unreadable(_) => (ErrorKind::Corrupt, Retry::Backoff),
            // The text of a request can cause this. The others are for the operator.
            Self::Rejected(400 | 422 | 451) => (ErrorKind::Unsupported, Retry::Never),
            _ => (ErrorKind::Invalid, Retry::Never),
        };
        let message = match self {
            Self::Unreachable(fault) => format!("the chat service is unavailable ({fault:?})"),
            Self::Throttled(_) => "the chat service receives too many requests".to_owned(),
            Self::Key => "the chat service rejected chat.api_key".to_owned(),
            Self::QuotaExceeded => "the quota at the chat service is used up".to_owned(),
            Self::Unknown => {
                "the chat service does not know the model or the URL: check chat.model and chat.base_url"
                    .to_owned()
            }
            Self::TooLong => {
                "the request exceeds the context of the chat model: lower chat.context_tokens".to_owned()
            }
            Self::Dialect(_) => "the chat service rejects every form of the request".to_owned(),
            Self::Rejected(status) => format!("the chat service rejected the request (HTTP {status})"),
            Self::ServerError(status) => {
                format!("the chat service failed with an internal error (HTTP {status})")
            }
            Self::Unreadable(what) | Self::Foreign(what) => {
                format!("the response of the chat service is invalid: {what}")
            }
        };
        Error::new(kind, retry, message)
    }
}

/// State of a streamed answer.
struct StreamState {
    text: String,
    usage: Option<TokenUsage>,
    thoughts: ThinkFilter,
    deltas: Option<Arc<dyn DeltaSink>>,
    /// Whether text arrived: then the request is not retried.
    has_begun: bool,
}

impl StreamState {
    fn new(deltas: Option<Arc<dyn DeltaSink>>) -> Self {
        Self { text: String::new(), usage: None, thoughts: ThinkFilter::default(), deltas, has_begun: false }
    }

    /// Adds a part of an answer; returns false when the receiver wants no more.
    fn take(&mut self, answer: CompletionResponse) -> Result<bool, ChatFailure> {
        if answer.is_fault() {
            return Err(ChatFailure::ServerError(StatusCode::OK.as_u16()));
        }
        self.usage = answer.usage().or(self.usage);
        let piece = self.thoughts.filter(&answer.text());
        Ok(self.add(&piece))
    }

    fn add(&mut self, piece: &str) -> bool {
        self.has_begun |= !piece.is_empty();
        self.text.push_str(piece);
        piece.is_empty() || self.deltas.as_ref().is_none_or(|deltas| deltas.push(piece))
    }

    fn end(&mut self) {
        let rest = std::mem::take(&mut self.thoughts).finish();
        self.add(&rest);
    }
}

impl OpenAiChat {
    /// Creates a model with these options.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], naming the setting that is wrong.
    pub fn new(options: ChatModelOptions) -> Result<Self> {
        let url = options.check()?;
        let (key, ca_file) = (options.api_key.as_deref(), options.ca_file.as_deref());
        let endpoint = OpenAiEndpoint::new(url, key, "chat.api_key", ca_file, CONNECT_TIMEOUT)?;
        Ok(Self { endpoint, options, quirks: Mutex::default() })
    }

    async fn complete_with_retries(
        &self,
        messages: &[ChatMessage],
        tokens: u32,
        state: &mut StreamState,
    ) -> Result<(), ChatFailure> {
        // Each try borrows the state and the number of adaptations so far.
        let shared = tokio::sync::Mutex::new((state, 0));
        let judge = |_, (failure, has_begun): &(ChatFailure, bool)| match failure {
            failure if *has_begun || !failure.is_transient() => Retry::Never,
            ChatFailure::Throttled(named) => throttled_retry(*named, RETRY_AFTER_MAX),
            _ => Retry::Backoff,
        };
        let call = |attempt| {
            let shared = &shared;
            async move {
                let (state, adaptations) = &mut *shared.lock().await;
                let result = self.attempt_adapted(messages, tokens, state, adaptations).await;
                result.map_err(|failure| {
                    tracing::debug!(attempt, ?failure, "chat request failed");
                    (failure, state.has_begun)
                })
            }
        };
        let result = retry(retry_policy(self.options.retries), rand::random, judge, call).await;
        result.map_err(|(failure, _)| failure)
    }

    /// One try, repeated at once while the service rejects parameters that can be omitted.
    async fn attempt_adapted(
        &self,
        messages: &[ChatMessage],
        tokens: u32,
        state: &mut StreamState,
        adaptations: &mut u32,
    ) -> Result<(), ChatFailure> {
        loop {
            // Discard the partial state of a failed attempt.
            (state.thoughts, state.usage) = (ThinkFilter::default(), None);
            match self.attempt(messages, tokens, state).await {
                Err(ChatFailure::Dialect(learned)) if *adaptations < ADAPTATIONS_MAX => {
                    *self.quirks.lock().unwrap_or_else(PoisonError::into_inner) = learned;
                    *adaptations += 1;
                }
                result => return result,
            }
        }
    }

    async fn attempt(
        &self,
        messages: &[ChatMessage],
        tokens: u32,
        state: &mut StreamState,
    ) -> Result<(), ChatFailure> {
        let quirks = *self.quirks.lock().unwrap_or_else(PoisonError::into_inner);
        let body = serde_json::to_vec(&CompletionRequest::new(&self.options.model, messages, tokens, quirks));
        let body = body.map_err(|_| ChatFailure::Foreign("the request cannot be encoded"))?;
        let sent = self.endpoint.post("application/json", body.into()).await;
        let response = sent.map_err(ChatFailure::Unreachable)?;
        if !response.status().is_success() {
            let (status, wait, body) = read_error(response).await;
            return Err(classify_error(status, wait, &body, quirks));
        }
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream")) {
            read_stream(response, state).await
        } else {
            read_complete(response, state).await
        }
    }
}

/// Reads an answer in one JSON body.
async fn read_complete(response: Response, state: &mut StreamState) -> Result<(), ChatFailure> {
    let body = read_body(response, ANSWER_MAX).await.map_err(|fault| match fault {
        HttpError::TooLarge => ChatFailure::Unreadable("it is too long"),
        fault => ChatFailure::Unreachable(fault),
    })?;
    let answer: CompletionResponse =
        json::parse(&body).map_err(|_| ChatFailure::Foreign("it is not a JSON answer"))?;
    if !answer.has_content() && !answer.is_fault() {
        return Err(ChatFailure::Foreign("it is not a JSON answer"));
    }
    state.take(answer)?;
    Ok(())
}

/// Reads a streamed answer.
async fn read_stream(mut response: Response, state: &mut StreamState) -> Result<(), ChatFailure> {
    let (mut events, mut taken) = (SseParser::default(), 0_usize);
    let (mut has_content, mut is_finished) = (false, false);
    loop {
        let chunk = match response.chunk().await {
            Ok(chunk) => chunk,
            // The answer is complete; at most its usage is missing.
            Err(_) if is_finished && has_content => return Ok(()),
            Err(error) => return Err(ChatFailure::Unreachable(HttpError::from_reqwest(&error))),
        };
        let is_last = chunk.is_none();
        if let Some(chunk) = chunk {
            taken = taken.saturating_add(chunk.len());
            if taken > ANSWER_MAX {
                return Err(ChatFailure::Unreadable("it is too long"));
            }
            events.take(&chunk);
        }
        loop {
            let next = if is_last { events.last() } else { events.next_event() };
            let answer = match next {
                Ok(None) => break,
                Ok(Some(data)) if data == "[DONE]" => {
                    return if has_content {
                        Ok(())
                    } else {
                        Err(ChatFailure::Foreign("it contains no answer"))
                    };
                }
                Ok(Some(data)) => json::parse(data.as_bytes()).map_err(|_| "an event is not a JSON answer"),
                Err(_) => Err("it is not an event stream"),
            };
            let answer: CompletionResponse = match answer {
                Ok(answer) => answer,
                // The body ended inside a line. That of a complete answer is at most its usage.
                Err(_) if is_last && is_finished => return Ok(()),
                Err(_) if is_last => return Err(ChatFailure::Unreachable(HttpError::CutOff)),
                Err(what) => return Err(ChatFailure::Foreign(what)),
            };
            has_content |= answer.has_content();
            is_finished |= answer.is_finished();
            if !state.take(answer)? {
                return Ok(());
            }
        }
        if is_last {
            return match has_content {
                true if is_finished => Ok(()),
                // The body ended in order, but the answer did not.
                true => Err(ChatFailure::Unreachable(HttpError::CutOff)),
                false => Err(ChatFailure::Foreign("it contains no answer")),
            };
        }
    }
}

/// Classifies an error response. Its text is inspected but never reported: it may contain the key.
fn classify_error(
    status: StatusCode,
    wait: Option<Duration>,
    body: &[u8],
    quirks: ServiceQuirks,
) -> ChatFailure {
    let is_too_long =
        || ["context_length", "context window", "exceed_context"].iter().any(|word| contains(body, word));
    match ServiceFault::new(status, wait, body) {
        ServiceFault::Key => ChatFailure::Key,
        ServiceFault::QuotaExceeded => ChatFailure::QuotaExceeded,
        ServiceFault::Throttled(wait) => ChatFailure::Throttled(wait),
        ServiceFault::Unknown => ChatFailure::Unknown,
        ServiceFault::TooLarge => ChatFailure::TooLong,
        ServiceFault::Rejected(400 | 422) if is_too_long() => ChatFailure::TooLong,
        ServiceFault::Rejected(status @ (400 | 422)) => {
            quirks.adapted_to(body).map_or(ChatFailure::Rejected(status), ChatFailure::Dialect)
        }
        ServiceFault::Rejected(status) => ChatFailure::Rejected(status),
        ServiceFault::ServerError(status) => ChatFailure::ServerError(status),
    }
}

#[async_trait]
impl ChatModel for OpenAiChat {
    fn context_tokens(&self) -> u32 {
        self.options.context_tokens
    }

    async fn complete(
        &self,
        request: ModelRequest,
        deltas: Option<Arc<dyn DeltaSink>>,
    ) -> Result<ModelReply> {
        let messages = request.messages();
        let mut state = StreamState::new(deltas);
        let call = self.complete_with_retries(&messages, request.output_tokens_max, &mut state);
        let result = timeout(self.options.timeout, call).await;
        result.unwrap_or(Err(ChatFailure::Unreachable(HttpError::Timeout))).map_err(ChatFailure::error)?;
        state.end();
        if let Some(usage) = state.usage {
            let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
            tracing::debug!(prompt, completion, "chat token usage reported");
        }
        Ok(ModelReply { text: state.text, usage: state.usage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stream_without_end_is_cut_off() {
        let text = r#"data: {"choices":[{"delta":{"content":"Ice [s1]"},"finish_reason":null}]}"#;
        let stop = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
        let cut_off = || Err(ChatFailure::Unreachable(HttpError::CutOff));
        for (body, expect) in [
            (text.to_owned(), cut_off()),
            (text.replace("null", r#""""#), cut_off()),
            (format!("{text}\n\n{stop}"), Ok(())),
            (format!("{text}\n\ndata: [DONE]"), Ok(())),
            // The body ends inside a line.
            (r#"data: {"choi"#.to_owned(), cut_off()),
            (format!("{text}\n\ndat"), cut_off()),
            (format!("{text}\n\n{stop}\n\ndata: {{"), Ok(())),
            ("data: {\n\n".to_owned(), Err(ChatFailure::Foreign("an event is not a JSON answer"))),
        ] {
            let response = Response::from(http::Response::new(body.clone()));
            let result = read_stream(response, &mut StreamState::new(None)).await;
            assert_eq!(result, expect, "{body}");
        }
    }

    #[test]
    fn error_response_is_classified_without_its_text() {
        let wait = Some(Duration::from_secs(7));
        for (status, body, expect) in [
            (401, "", ChatFailure::Key),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, ChatFailure::QuotaExceeded),
            (429, "slow down", ChatFailure::Throttled(wait)),
            (503, "", ChatFailure::Throttled(wait)),
            (502, "", ChatFailure::ServerError(502)),
            (404, "", ChatFailure::Unknown),
            (400, r#"{"error":{"code":"context_length_exceeded"}}"#, ChatFailure::TooLong),
            (400, "nonsense", ChatFailure::Rejected(400)),
            (302, "", ChatFailure::Rejected(302)),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let failure = classify_error(status, wait, body.as_bytes(), ServiceQuirks::default());
            assert_eq!(failure, expect, "{status} {body}");
            let message = failure.error().to_string();
            assert!(!message.contains("slow down") && !message.contains("nonsense"), "{message}");
        }
        assert_eq!(ChatFailure::Rejected(400).error().kind(), ErrorKind::Unsupported);
        assert_eq!(ChatFailure::Rejected(302).error().kind(), ErrorKind::Invalid);
        let newer = classify_error(StatusCode::BAD_REQUEST, None, b"max_tokens", ServiceQuirks::default());
        assert!(matches!(newer, ChatFailure::Dialect(ServiceQuirks { newer_limit: true, .. })));
    }
}
