//! The port behind which a language model answers.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{Passage, Role, Turn, prompt};
use crate::error::Result;

/// What a model is asked.
///
/// A model of text is given [`ChatRequest::messages`]; one that works on the passages themselves finds them here.
#[derive(Clone)]
pub struct ChatRequest {
    /// What the answer is for.
    pub task: Task,
    /// The video's title, where it is known: somebody's text, to be believed in nothing.
    pub title: Option<String>,
    /// Who published the video, where that is known: as the title.
    pub author: Option<String>,
    /// The passages that may be cited, in the order of the transcript; numbers may be missing between them.
    pub passages: Arc<[Passage]>,
    /// What was said before, oldest first.
    pub history: Vec<Turn>,
    /// What is asked.
    pub question: String,
    /// An answer to this very question in which nothing could be verified, to be mended.
    pub rejected: Option<String>,
    /// About how many tokens the answer may have.
    pub output_tokens_max: u32,
}

impl fmt::Debug for ChatRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRequest")
            .field("task", &self.task)
            .field("passages", &self.passages.len())
            .finish_non_exhaustive()
    }
}

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// It is the answer to the question.
    Answer,
    /// The transcript is too long to be given at once: notes on one part of it, from which the answer is made.
    Notes {
        /// Which part, from 1.
        part: u32,
        /// Of how many.
        of: u32,
    },
}

/// One message to a model of text.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Speaker,
    /// What is said.
    pub content: String,
}

impl fmt::Debug for ChatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatMessage").field("role", &self.role).finish_non_exhaustive()
    }
}

/// Who speaks in a message to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The service, with the rules.
    System,
    /// Somebody in the conversation.
    Of(Role),
}

impl Speaker {
    /// The name that chat models know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Of(role) => role.as_str(),
        }
    }
}

impl ChatRequest {
    /// The messages for a model of text: the rules, the conversation, and the numbered passages with the question.
    ///
    /// Roles alternate after the rules, and the last message is the user's: the templates of some models insist.
    pub fn messages(&self) -> Vec<ChatMessage> {
        prompt::messages(self)
    }
}

/// What a model answered.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatReply {
    /// The text, in which passages are cited as `[s17]`.
    pub text: String,
    /// What it cost, where the model says.
    pub usage: Option<Usage>,
}

impl fmt::Debug for ChatReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatReply").field("usage", &self.usage).finish_non_exhaustive()
    }
}

/// The tokens that a model counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of what it was given.
    pub prompt_tokens: u64,
    /// Of what it wrote.
    pub completion_tokens: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
        }
    }
}

/// Whoever listens while a model writes.
pub trait Deltas: fmt::Debug + Send + Sync + 'static {
    /// The next piece of the text. False: the rest is not wanted, and the model should stop.
    fn push(&self, text: &str) -> bool;
}

/// A model that answers from passages.
///
/// It is believed in nothing: what it writes is checked against the transcript before anybody sees it.
#[async_trait]
pub trait ChatModel: fmt::Debug + Send + Sync + 'static {
    /// About how many tokens it takes at once, its answer included.
    fn context_tokens(&self) -> u32;

    /// Writes an answer.
    ///
    /// **Behaviour**
    /// - Pieces go to `deltas` as they come, where there is one; together they are the reply's text. A model that
    ///   cannot write by pieces hands over everything at once, or nothing.
    /// - When `deltas` wants no more, it stops and returns what there is.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] when it cannot be reached or is too slow, [`crate::ErrorKind::Invalid`]
    /// when it takes no such request, [`crate::ErrorKind::Corrupt`] when its answer cannot be read.
    ///
    /// # Cancellation
    /// Dropping the future ends the work.
    async fn complete(&self, ask: ChatRequest, deltas: Option<Arc<dyn Deltas>>) -> Result<ChatReply>;
}
