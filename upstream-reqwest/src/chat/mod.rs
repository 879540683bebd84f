//! Chat models that speak the interface of `OpenAI` (feature `chat_model`): the service of that name, and any other at any
//! address. One host, the operator's; no proxy of the platforms' sees the key or what is asked.

mod options;
mod stream;
mod wire;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http::{HeaderValue, StatusCode, header};
use reqwest::Response;
use tokio::time::{sleep, timeout};
use transcript_core::{
    Error, ErrorKind, Result, Retry,
    chat::{ChatMessage, ChatModel, ChatReply, ChatRequest, Deltas, Usage},
};
use url::Url;

pub use options::ChatModelOptions;
use stream::{Events, Thoughts};
use wire::{Answer, Completion, Dialect};

use crate::http::{HttpFault, bearer, named_wait, own_client, pause, read_body};

/// The longest that a connection takes to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that is read of an answer: a stream has some 300 bytes around each word.
const ANSWER_MAX: usize = 4 << 20;
const REFUSAL_MAX: usize = 64 << 10;
/// The longest wait that a service may name and is waited for.
const NAMED_MAX: Duration = Duration::from_secs(20);
/// How often a request is put differently for a service that does not understand it.
const DIALECTS_MAX: u32 = 4;

/// A chat model behind an OpenAI-compatible service.
///
/// Answers are streamed. What is not understood by a service (a temperature, the older name of the limit) is left out
/// from then on. It is asked again while nothing of an answer came; the whole takes at most `timeout`.
pub struct OpenAiChat {
    client: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
    options: ChatModelOptions,
    dialect: Mutex<Dialect>,
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChat").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// Why there is no answer. It holds nothing that the service said: that may name the key, or repeat the question.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    /// The service gave no answer.
    Away(HttpFault),
    /// The service wants to be left alone, for this time where it says so.
    Throttled(Option<Duration>),
    /// The service does not accept the key.
    Key,
    /// What the operator bought there is used up.
    UsedUp,
    /// The service does not know the model or the address.
    Unknown,
    /// What is asked is longer than the model takes.
    TooLong,
    /// The service does not understand something that can be left out.
    Dialect(Dialect),
    /// The service refuses the request, with this status.
    Refused(u16),
    /// The service has a fault of its own, with this status.
    Fault(u16),
    /// The answer is none; why.
    Unreadable(&'static str),
}

impl Refusal {
    /// Whether the same request may be answered when it is sent again.
    fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Away(HttpFault::Timeout | HttpFault::Unreachable(_) | HttpFault::CutOff)
                | Self::Throttled(_)
                | Self::Fault(_)
        )
    }

    fn error(self) -> Error {
        let (kind, retry) = match &self {
            Self::Away(_) | Self::Throttled(_) | Self::Fault(_) => (ErrorKind::Unavailable, Retry::Backoff),
            Self::Unreadable(_) => (ErrorKind::Corrupt, Retry::Backoff),
            _ => (ErrorKind::Invalid, Retry::Never),
        };
        let message = match self {
            Self::Away(fault) => format!("the chat service cannot be asked now ({fault:?})"),
            Self::Throttled(_) => "the chat service is asked too often".to_owned(),
            Self::Key => "the chat service does not accept chat.api_key".to_owned(),
            Self::UsedUp => "what was bought at the chat service is used up".to_owned(),
            Self::Unknown => {
                "the chat service knows no such model or address: see chat.model, chat.base_url".to_owned()
            }
            Self::TooLong => "the chat model takes less at once: lower chat.context_tokens".to_owned(),
            Self::Dialect(_) => "the chat service understands no form of the request".to_owned(),
            Self::Refused(status) => format!("the chat service refuses the request (HTTP {status})"),
            Self::Fault(status) => format!("the chat service has a fault of its own (HTTP {status})"),
            Self::Unreadable(what) => format!("the chat service's answer cannot be read: {what}"),
        };
        Error::new(kind, retry, message)
    }
}

/// What was understood of an answer so far.
struct Hearing {
    text: String,
    usage: Option<Usage>,
    thoughts: Thoughts,
    deltas: Option<Arc<dyn Deltas>>,
    /// Whether a piece of the answer came: then nothing is asked again.
    has_begun: bool,
}

impl Hearing {
    fn new(deltas: Option<Arc<dyn Deltas>>) -> Self {
        Self { text: String::new(), usage: None, thoughts: Thoughts::default(), deltas, has_begun: false }
    }

    /// Takes a part of an answer; false when no more is wanted.
    fn take(&mut self, answer: Answer) -> Result<bool, Refusal> {
        if answer.is_fault() {
            return Err(Refusal::Fault(StatusCode::OK.as_u16()));
        }
        self.usage = answer.usage().or(self.usage);
        let piece = self.thoughts.without(&answer.text());
        Ok(self.add(&piece))
    }

    fn add(&mut self, piece: &str) -> bool {
        self.has_begun |= !piece.is_empty();
        self.text.push_str(piece);
        piece.is_empty() || self.deltas.as_ref().is_none_or(|deltas| deltas.push(piece))
    }

    fn end(&mut self) {
        let rest = std::mem::take(&mut self.thoughts).rest();
        self.add(&rest);
    }
}

impl OpenAiChat {
    /// A model with these options.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], naming the setting that is wrong.
    pub fn new(options: ChatModelOptions) -> Result<Self> {
        let url = options.check()?;
        let authorization = options.api_key.as_deref().map(bearer).transpose();
        let authorization =
            authorization.map_err(|_| Error::invalid("chat.api_key holds what no key holds"))?;
        let client = own_client(options.ca_file.as_deref(), CONNECT_TIMEOUT, None)?;
        Ok(Self { client, url, authorization, options, dialect: Mutex::default() })
    }

    async fn ask(&self, messages: &[ChatMessage], tokens: u32, hearing: &mut Hearing) -> Result<(), Refusal> {
        let (mut attempt, mut dialects) = (0, 0);
        loop {
            // What an attempt that broke off left is none of the next one's.
            (hearing.thoughts, hearing.usage) = (Thoughts::default(), None);
            let refusal = match self.attempt(messages, tokens, hearing).await {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            tracing::debug!(attempt, ?refusal, "a chat service gave no answer");
            match &refusal {
                Refusal::Dialect(learned) if dialects < DIALECTS_MAX => {
                    *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = *learned;
                    dialects += 1;
                    continue;
                }
                _ if hearing.has_begun || attempt >= self.options.retries || !refusal.is_passing() => {
                    return Err(refusal);
                }
                Refusal::Throttled(Some(named)) if *named > NAMED_MAX => return Err(refusal),
                Refusal::Throttled(Some(named)) => sleep(*named).await,
                _ => sleep(pause(attempt, rand::random())).await,
            }
            attempt += 1;
        }
    }

    async fn attempt(
        &self,
        messages: &[ChatMessage],
        tokens: u32,
        hearing: &mut Hearing,
    ) -> Result<(), Refusal> {
        let dialect = *self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        let body = serde_json::to_vec(&Completion::new(&self.options.model, messages, tokens, dialect));
        let body = body.map_err(|_| Refusal::Unreadable("the question cannot be sent"))?;
        let mut request =
            self.client.post(self.url.clone()).header(header::CONTENT_TYPE, "application/json").body(body);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        let response = request.send().await.map_err(|error| Refusal::Away(HttpFault::of(&error)))?;
        let status = response.status();
        if !status.is_success() {
            let wait = named_wait(response.headers());
            // A refusal that cannot be read is one all the same.
            let body = read_body(response, REFUSAL_MAX).await.unwrap_or_default();
            return Err(judge(status, wait, &body, dialect));
        }
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream")) {
            follow(response, hearing).await
        } else {
            whole(response, hearing).await
        }
    }
}

/// An answer in one piece.
async fn whole(response: Response, hearing: &mut Hearing) -> Result<(), Refusal> {
    let body = read_body(response, ANSWER_MAX).await.map_err(|fault| match fault {
        HttpFault::TooLarge => Refusal::Unreadable("it is too long"),
        fault => Refusal::Away(fault),
    })?;
    let answer: Answer =
        serde_json::from_slice(&body).map_err(|_| Refusal::Unreadable("it is not the JSON of an answer"))?;
    if !answer.is_answer() && !answer.is_fault() {
        return Err(Refusal::Unreadable("it is not the JSON of an answer"));
    }
    hearing.take(answer)?;
    Ok(())
}

/// An answer in pieces.
async fn follow(mut response: Response, hearing: &mut Hearing) -> Result<(), Refusal> {
    let (mut events, mut taken, mut is_answer) = (Events::default(), 0_usize, false);
    let unreadable = |_| Refusal::Unreadable("it is no stream of events");
    loop {
        let chunk = response.chunk().await.map_err(|error| Refusal::Away(HttpFault::of(&error)))?;
        let is_last = chunk.is_none();
        if let Some(chunk) = chunk {
            taken = taken.saturating_add(chunk.len());
            if taken > ANSWER_MAX {
                return Err(Refusal::Unreadable("it is too long"));
            }
            events.take(&chunk);
        }
        loop {
            let next = if is_last { events.last() } else { events.next() };
            let Some(data) = next.map_err(unreadable)? else { break };
            if data == "[DONE]" {
                return if is_answer {
                    Ok(())
                } else {
                    Err(Refusal::Unreadable("it has no piece of an answer"))
                };
            }
            let answer: Answer = serde_json::from_str(&data)
                .map_err(|_| Refusal::Unreadable("an event of it is not the JSON of an answer"))?;
            is_answer |= answer.is_answer();
            if !hearing.take(answer)? {
                return Ok(());
            }
        }
        if is_last {
            return if is_answer { Ok(()) } else { Err(Refusal::Unreadable("it has no piece of an answer")) };
        }
    }
}

/// What a refusal means. Its own words are looked at, but never told: they may name the key.
fn judge(status: StatusCode, wait: Option<Duration>, body: &[u8], dialect: Dialect) -> Refusal {
    let says = |word: &str| body.windows(word.len()).any(|window| window == word.as_bytes());
    match status.as_u16() {
        401 | 403 => Refusal::Key,
        402 => Refusal::UsedUp,
        429 if says("insufficient_quota") => Refusal::UsedUp,
        429 => Refusal::Throttled(wait),
        404 | 405 => Refusal::Unknown,
        413 => Refusal::TooLong,
        400 | 422 if says("context_length") || says("context window") || says("exceed_context") => {
            Refusal::TooLong
        }
        400 | 422 => dialect.learned(body).map_or(Refusal::Refused(status.as_u16()), Refusal::Dialect),
        503 if wait.is_some() => Refusal::Throttled(wait),
        408 | 500.. => Refusal::Fault(status.as_u16()),
        status => Refusal::Refused(status),
    }
}

#[async_trait]
impl ChatModel for OpenAiChat {
    fn context_tokens(&self) -> u32 {
        self.options.context_tokens
    }

    async fn complete(&self, ask: ChatRequest, deltas: Option<Arc<dyn Deltas>>) -> Result<ChatReply> {
        let messages = ask.messages();
        let mut hearing = Hearing::new(deltas);
        let asking = self.ask(&messages, ask.output_tokens_max, &mut hearing);
        let asked = timeout(self.options.timeout, asking).await;
        asked.unwrap_or(Err(Refusal::Away(HttpFault::Timeout))).map_err(Refusal::error)?;
        hearing.end();
        if let Some(usage) = hearing.usage {
            let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
            tracing::debug!(prompt, completion, "a chat service counted its tokens");
        }
        Ok(ChatReply { text: hearing.text, usage: hearing.usage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_and_tell_nothing_of_the_service() {
        let wait = Some(Duration::from_secs(7));
        for (status, body, expect) in [
            (401, "", Refusal::Key),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, Refusal::UsedUp),
            (429, "slow down", Refusal::Throttled(wait)),
            (503, "", Refusal::Throttled(wait)),
            (502, "", Refusal::Fault(502)),
            (404, "", Refusal::Unknown),
            (400, r#"{"error":{"code":"context_length_exceeded"}}"#, Refusal::TooLong),
            (400, "nonsense", Refusal::Refused(400)),
            (302, "", Refusal::Refused(302)),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let refusal = judge(status, wait, body.as_bytes(), Dialect::default());
            assert_eq!(refusal, expect, "{status} {body}");
            let message = refusal.error().to_string();
            assert!(!message.contains("slow down") && !message.contains("nonsense"), "{message}");
        }
        let newer = judge(StatusCode::BAD_REQUEST, None, b"max_tokens", Dialect::default());
        assert!(matches!(newer, Refusal::Dialect(Dialect { newer_limit: true, .. })));
    }
}
