//! A model of the app's that answers questions.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use transcript_core::{
    Result, chat,
    chat::{ChatReply, ChatRequest, Deltas},
};

use crate::error::{VerbatimError, to_core};

/// One message to a model.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ChatMessage {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

/// A model of text. It is believed in nothing: what it writes is checked against the transcript.
#[uniffi::export(foreign)]
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Writes an answer of about so many tokens at most, in which passages are cited as `[s17]`.
    async fn complete(&self, messages: Vec<ChatMessage>, tokens_max: u32) -> Result<String, VerbatimError>;
}

/// A model of the app's as the core's port.
pub(crate) struct ForeignChatModel {
    model: Arc<dyn ChatModel>,
    context_tokens: u32,
}

impl fmt::Debug for ForeignChatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignChatModel")
            .field("context_tokens", &self.context_tokens)
            .finish_non_exhaustive()
    }
}

impl ForeignChatModel {
    pub(crate) fn new(model: Arc<dyn ChatModel>, context_tokens: u32) -> Self {
        Self { model, context_tokens }
    }
}

#[async_trait]
impl chat::ChatModel for ForeignChatModel {
    fn context_tokens(&self) -> u32 {
        self.context_tokens
    }

    async fn complete(&self, ask: ChatRequest, deltas: Option<Arc<dyn Deltas>>) -> Result<ChatReply> {
        let message = |message: chat::ChatMessage| ChatMessage {
            role: message.role.as_str().to_owned(),
            content: message.content,
        };
        let messages = ask.messages().into_iter().map(message).collect();
        let text = self.model.complete(messages, ask.output_tokens_max).await.map_err(to_core)?;
        if let Some(deltas) = deltas {
            deltas.push(&text);
        }
        Ok(ChatReply { text, usage: None })
    }
}
