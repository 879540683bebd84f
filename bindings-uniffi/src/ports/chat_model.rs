//! Chat model of the app.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result, chat,
    chat::{DeltaSink, ModelReply, ModelRequest},
};

use crate::error::{VerbatimError, to_core};

/// One message to a model.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ChatMessage {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// Text of the message.
    pub content: String,
}

/// A text model. Its output is untrusted: quotes and citations are verified against the transcript.
#[uniffi::export(foreign)]
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Writes an answer of at most about `tokens_max` tokens, with citations of passages such as `[s17]`.
    async fn complete(&self, messages: Vec<ChatMessage>, tokens_max: u32) -> Result<String, VerbatimError>;
}

/// A model of the app as a port of the core.
pub(crate) struct ForeignChatModel {
    model: Arc<dyn ChatModel>,
    context_tokens: u32,
}

transcript_core::debug_fields!(ForeignChatModel { context_tokens });

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

    async fn complete(
        &self,
        request: ModelRequest,
        deltas: Option<Arc<dyn DeltaSink>>,
    ) -> Result<ModelReply> {
        let message = |message: chat::ChatMessage| ChatMessage {
            role: message.role.as_str().to_owned(),
            content: message.content,
        };
        let messages = request.messages().into_iter().map(message).collect();
        let text = self.model.complete(messages, request.output_tokens_max).await.map_err(to_core)?;
        if let Some(deltas) = deltas {
            deltas.push(&text);
        }
        Ok(ModelReply { text, usage: None })
    }
}
