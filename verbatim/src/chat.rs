//! Who answers questions about videos.

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
    /// Where the service is, `/v1` included (`chat.base_url`).
    pub base_url: String,
    /// Its model (`chat.model`).
    pub model: String,
    /// Its key, where it wants one (`chat.api_key`).
    pub api_key: Option<String>,
    /// How many tokens the model takes at once, its answer included (`chat.context_tokens`).
    pub context_tokens: u32,
    /// How long an answer may take (`chat.timeout`).
    pub timeout: Duration,
}

impl ChatModelOptions {
    /// This service and model, without a key; 32,000 tokens and 60 s.
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
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatModelOptions")
            .field("model", &self.model)
            .field("context_tokens", &self.context_tokens)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The chat that the options name: over a model, or over the transcript's own passages.
pub(crate) fn chat(options: &Options, runtime: Handle) -> Result<Chat> {
    if let Some(model) = &options.own.chat_model {
        return Ok(Chat::new(runtime, Arc::clone(model), ChatOptions::default()));
    }
    match &options.chat {
        None => Ok(Chat::extractive(runtime)),
        Some(wanted) => with_model(wanted, options, runtime),
    }
}

/// Whether the options of the model are sound; asks nobody.
///
/// # Errors
/// [`transcript_core::ErrorKind::Invalid`], naming the setting that is wrong.
pub(crate) fn check(options: &Options) -> Result<()> {
    match &options.chat {
        None => Ok(()),
        Some(wanted) => model(wanted, options).map(|_| ()),
    }
}

#[cfg(feature = "chat-model")]
fn with_model(wanted: &ChatModelOptions, options: &Options, runtime: Handle) -> Result<Chat> {
    let answering = ChatOptions { timeout: wanted.timeout, ..ChatOptions::default() };
    Ok(Chat::new(runtime, Arc::new(model(wanted, options)?), answering))
}

#[cfg(feature = "chat-model")]
fn model(wanted: &ChatModelOptions, options: &Options) -> Result<upstream_reqwest::OpenAiChat> {
    upstream_reqwest::OpenAiChat::new(upstream_reqwest::ChatModelOptions {
        base_url: wanted.base_url.clone(),
        model: wanted.model.clone(),
        api_key: wanted.api_key.clone(),
        ca_file: options.upstream.ca_file.clone(),
        context_tokens: wanted.context_tokens,
        timeout: wanted.timeout,
        ..upstream_reqwest::ChatModelOptions::default()
    })
}

#[cfg(not(feature = "chat-model"))]
fn with_model(wanted: &ChatModelOptions, options: &Options, _: Handle) -> Result<Chat> {
    match model(wanted, options)? {}
}

#[cfg(not(feature = "chat-model"))]
fn model(_: &ChatModelOptions, _: &Options) -> Result<std::convert::Infallible> {
    Err(transcript_core::Error::new(
        transcript_core::ErrorKind::Unsupported,
        transcript_core::Retry::Never,
        "this build asks no chat model: it lacks the feature chat-model",
    ))
}
