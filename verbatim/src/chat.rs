//! Chat with a model, or without one.

use std::sync::Arc;

use tokio::runtime::Handle;
use transcript_core::{
    Result,
    chat::{Chat, ChatOptions},
};

use crate::options::Options;

/// Creates the chat: with a model, or extractive.
pub(crate) fn chat(options: &Options, runtime: Handle) -> Result<Chat> {
    if let Some(model) = &options.custom.chat_model {
        return Ok(Chat::new(runtime, Arc::clone(model), ChatOptions::default()));
    }
    #[cfg(feature = "chat-model")]
    if let Some(service) = &options.chat {
        let chat_options = ChatOptions { timeout: service.timeout, ..ChatOptions::default() };
        return Ok(Chat::new(runtime, Arc::new(model(service, options)?), chat_options));
    }
    Ok(Chat::extractive(runtime))
}

/// Checks the options of the model without network access.
///
/// # Errors
/// [`transcript_core::ErrorKind::Invalid`], naming the invalid setting.
#[cfg(feature = "chat-model")]
pub(crate) fn check(options: &Options) -> Result<()> {
    options.chat.as_ref().map_or(Ok(()), |service| model(service, options).map(drop))
}

#[cfg(feature = "chat-model")]
fn model(
    service: &upstream_reqwest::ChatModelOptions,
    options: &Options,
) -> Result<upstream_reqwest::OpenAiChat> {
    let ca_file = service.ca_file.clone().or_else(|| options.upstream.ca_file.clone());
    upstream_reqwest::OpenAiChat::new(upstream_reqwest::ChatModelOptions { ca_file, ..service.clone() })
}
