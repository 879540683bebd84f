//! Chat with a model, or without one.

use std::{fmt, sync::Arc, time::Duration};

use tokio::runtime::Handle;
use transcript_core::{
    Result,
    chat::{Chat, ChatOptions},
};

use crate::options::Options;

/// A chat model behind an OpenAI-compatible service (feature `chat-model`).
#[derive(Clone, PartialEq, Eq)]
pub struct ChatModelOptions {
    /// Address of the service, `/v1` included (`chat.base_url`).
    pub base_url: String,
    /// Model of the service (`chat.model`).
    pub model: String,
    /// API key, if the service needs one (`chat.api_key`).
    pub api_key: Option<String>,
    /// Context window of the model in tokens, answer included (`chat.context_tokens`).
    pub context_tokens: u32,
    /// Timeout of an answer (`chat.timeout`).
    pub timeout: Duration,
}

impl ChatModelOptions {
    /// This service and model, without an API key; 32,000 tokens and 60 s.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            context_tokens: 32_000,
            timeout: Duration::from_secs(60),
        }
    }
}

impl fmt::Debug for ChatModelOptions {
    /// Without the API key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatModelOptions")
            .field("model", &self.model)
            .field("context_tokens", &self.context_tokens)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Creates the chat: with a model, or extractive.
pub(crate) fn chat(options: &Options, runtime: Handle) -> Result<Chat> {
    if let Some(model) = &options.custom.chat_model {
        return Ok(Chat::new(runtime, Arc::clone(model), ChatOptions::default()));
    }
    match &options.chat {
        None => Ok(Chat::extractive(runtime)),
        Some(model_options) => with_model(model_options, options, runtime),
    }
}

/// Checks the options of the model without network access.
///
/// # Errors
/// [`transcript_core::ErrorKind::Invalid`], naming the invalid setting.
pub(crate) fn check(options: &Options) -> Result<()> {
    match &options.chat {
        None => Ok(()),
        Some(model_options) => model(model_options, options).map(|_| ()),
    }
}

#[cfg(feature = "chat-model")]
fn with_model(model_options: &ChatModelOptions, options: &Options, runtime: Handle) -> Result<Chat> {
    let chat_options = ChatOptions { timeout: model_options.timeout, ..ChatOptions::default() };
    Ok(Chat::new(runtime, Arc::new(model(model_options, options)?), chat_options))
}

#[cfg(feature = "chat-model")]
fn model(model_options: &ChatModelOptions, options: &Options) -> Result<upstream_reqwest::OpenAiChat> {
    upstream_reqwest::OpenAiChat::new(upstream_reqwest::ChatModelOptions {
        base_url: model_options.base_url.clone(),
        model: model_options.model.clone(),
        api_key: model_options.api_key.clone(),
        ca_file: options.upstream.ca_file.clone(),
        context_tokens: model_options.context_tokens,
        timeout: model_options.timeout,
        ..upstream_reqwest::ChatModelOptions::default()
    })
}

#[cfg(not(feature = "chat-model"))]
fn with_model(model_options: &ChatModelOptions, options: &Options, _: Handle) -> Result<Chat> {
    match model(model_options, options)? {}
}

#[cfg(not(feature = "chat-model"))]
fn model(_: &ChatModelOptions, _: &Options) -> Result<std::convert::Infallible> {
    Err(transcript_core::Error::new(
        transcript_core::ErrorKind::Unsupported,
        transcript_core::Retry::Never,
        "this build cannot call a chat model: it lacks the feature chat-model",
    ))
}
