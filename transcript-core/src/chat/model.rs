//! Port to a language model that answers questions.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{ChatRole, ChatTurn, Passage, prompt};
use crate::{debug_fields, error::Result};

/// Context size of a model that states none, in tokens.
pub const CONTEXT_TOKENS_DEFAULT: u32 = 32_000;

/// Request to a model.
///
/// A language model receives [`ModelRequest::messages`]; a model that works on passages reads the fields.
#[derive(Clone)]
pub struct ModelRequest {
    /// Purpose of the answer.
    pub task: ModelTask,
    /// Title of the video; `None` if unknown. It is third-party text and untrusted.
    pub title: Option<String>,
    /// Publisher of the video; `None` if unknown. Untrusted, as the title.
    pub author: Option<String>,
    /// Passages that may be cited, in transcript order; numbers may be missing between them.
    pub passages: Arc<[Passage]>,
    /// Earlier turns, oldest first.
    pub history: Vec<ChatTurn>,
    /// The question.
    pub question: String,
    /// Earlier answer to this question of which nothing could be verified; the model is to correct it.
    pub rejected: Option<String>,
    /// Approximate maximum of tokens in the answer.
    pub output_tokens_max: u32,
}

crate::debug_fields!(ModelRequest |this| { task, passages: this.passages.len() });

/// Purpose of a model's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelTask {
    /// Answer to the question.
    Answer,
    /// Notes on one chunk of a transcript that exceeds the context; the answer is made from all notes.
    Notes {
        /// Number of the chunk, from 1.
        part: u32,
        /// Number of chunks.
        total: u32,
    },
}

/// One message to a language model.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Author of the message.
    pub role: MessageRole,
    /// Text of the message.
    pub content: String,
}

debug_fields!(ChatMessage { role });

/// Author of a message to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    /// The service, with the rules.
    System,
    /// A role of the conversation.
    Conversation(ChatRole),
}

impl MessageRole {
    /// Role name that chat models expect.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Conversation(role) => role.as_str(),
        }
    }
}

impl ModelRequest {
    /// Returns the messages for a language model: rules, conversation, numbered passages and the question.
    ///
    /// Roles alternate after the rules, and the last message is the user's: some models' templates require both.
    pub fn messages(&self) -> Vec<ChatMessage> {
        prompt::messages(self)
    }
}

/// Reply of a model.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelReply {
    /// Text, in which passages are cited as `[s17]`.
    pub text: String,
    /// Token usage; `None` if the model does not report it.
    pub usage: Option<TokenUsage>,
}

debug_fields!(ModelReply { usage });

/// Tokens counted by a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the input.
    pub prompt_tokens: u64,
    /// Tokens of the output.
    pub completion_tokens: u64,
}

impl TokenUsage {
    /// Adds two usages.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
        }
    }
}

/// Receives a model's text while the model writes it.
pub trait DeltaSink: fmt::Debug + Send + Sync + 'static {
    /// Receives the next delta. Returns false if the model should stop.
    fn push(&self, text: &str) -> bool;
}

/// A model that answers from passages.
///
/// Its output is untrusted: the verifier checks it against the transcript before the caller receives it.
#[async_trait]
pub trait ChatModel: fmt::Debug + Send + Sync + 'static {
    /// Size of the context in tokens, approximately, with the answer included.
    fn context_tokens(&self) -> u32;

    /// Generates an answer.
    ///
    /// **Behaviour**
    /// - If `deltas` is present, it receives the text in pieces as they are generated; together they are the reply's
    ///   text. A model that cannot stream pushes the whole text at once, or nothing.
    /// - When `deltas` returns false, the model stops and returns the text so far.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the model cannot be reached or is too slow,
    /// [`crate::ErrorKind::Unsupported`] if it refuses the text of the request, [`crate::ErrorKind::Invalid`] if it
    /// rejects the request for another reason, [`crate::ErrorKind::Corrupt`] if its answer cannot be parsed.
    ///
    /// # Cancellation
    /// Dropping the future ends the work.
    async fn complete(&self, request: ModelRequest, deltas: Option<Arc<dyn DeltaSink>>)
    -> Result<ModelReply>;
}
