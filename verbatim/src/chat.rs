//! Chat with a model, or without one; search by meaning with an embedding model.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;
use transcript_core::{
    Error, Result,
    archive::Archive,
    chat::{Chat, ChatOptions, Embedder},
};

use crate::options::Options;

/// Creates the chat: with a model, or extractive. The archive keeps the vectors of passages.
pub(crate) fn chat(options: &Options, archive: &Arc<dyn Archive>, runtime: Handle) -> Result<Chat> {
    let chat = answering_chat(options, runtime)?;
    Ok(match embedder(options)? {
        Some(embedder) => chat.with_embedder(embedder).with_archive(Arc::clone(archive)),
        None => chat,
    })
}

fn answering_chat(options: &Options, runtime: Handle) -> Result<Chat> {
    let timeout = custom_timeout(options)?;
    if let Some(model) = &options.custom.chat_model {
        let chat_options = ChatOptions { timeout, ..ChatOptions::default() };
        return Ok(Chat::new(runtime, Arc::clone(model), chat_options));
    }
    #[cfg(feature = "chat-model")]
    if let Some(service) = &options.chat {
        let chat_options = ChatOptions { timeout: service.timeout, ..ChatOptions::default() };
        return Ok(Chat::new(runtime, Arc::new(model(service, options)?), chat_options));
    }
    Ok(Chat::extractive(runtime))
}

/// The timeout of a custom model.
fn custom_timeout(options: &Options) -> Result<Duration> {
    match options.custom.chat_timeout {
        Some(timeout) if timeout.is_zero() => Err(Error::invalid("chat_timeout must be longer than zero")),
        timeout => Ok(timeout.unwrap_or(ChatOptions::default().timeout)),
    }
}

/// Checks the options of both models without network access.
///
/// # Errors
/// [`transcript_core::ErrorKind::Invalid`], naming the invalid setting.
pub(crate) fn check(options: &Options) -> Result<()> {
    custom_timeout(options)?;
    #[cfg(feature = "chat-model")]
    if let Some(service) = &options.chat {
        model(service, options)?;
    }
    embedder(options).map(drop)
}

/// Opens the embedding model, if one is selected.
fn embedder(options: &Options) -> Result<Option<Arc<dyn Embedder>>> {
    if let Some(embedder) = &options.custom.embedder {
        return Ok(Some(Arc::clone(embedder)));
    }
    #[cfg(feature = "static-embeddings")]
    if let Some(folder) = &options.embedding_model {
        let opened = embedder_model2vec::StaticEmbedder::open(folder).map_err(|error| {
            let message = format!("chat.embedding_model: {error}");
            error.with_message(message)
        });
        return Ok(Some(Arc::new(opened?)));
    }
    #[cfg(feature = "chat-model")]
    if let Some(service) = &options.embeddings {
        let ca_file = service.ca_file.clone().or_else(|| options.upstream.ca_file.clone());
        let service = upstream_reqwest::EmbeddingsOptions { ca_file, ..service.clone() };
        return Ok(Some(Arc::new(upstream_reqwest::EmbeddingsService::new(service)?)));
    }
    Ok(None)
}

#[cfg(feature = "chat-model")]
fn model(
    service: &upstream_reqwest::ChatModelOptions,
    options: &Options,
) -> Result<upstream_reqwest::OpenAiChat> {
    let ca_file = service.ca_file.clone().or_else(|| options.upstream.ca_file.clone());
    upstream_reqwest::OpenAiChat::new(upstream_reqwest::ChatModelOptions { ca_file, ..service.clone() })
}

#[cfg(all(test, feature = "chat-model", feature = "static-embeddings"))]
mod tests {
    use transcript_core::ErrorKind;

    use super::*;
    use crate::{EmbeddingsOptions, Verbatim};

    #[tokio::test]
    async fn chat_timeout_zero_is_refused() {
        let mut options = Options::default();
        options.custom.chat_timeout = Some(Duration::ZERO);
        for error in [options.check().unwrap_err(), Verbatim::open(options).await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert_eq!(error.message(), "chat_timeout must be longer than zero");
        }
    }

    #[tokio::test]
    async fn embedding_options_are_checked() {
        let service = EmbeddingsOptions { base_url: "http://[::1]:9/v1".to_owned(), ..Default::default() };
        let named = EmbeddingsOptions { model: "e5".to_owned(), ..service.clone() };
        let folder = Some("/nonexistent/model".into());
        let options = |embeddings: Option<EmbeddingsOptions>, embedding_model| Options {
            embeddings,
            embedding_model,
            ..Options::default()
        };
        for (wrong, part) in [
            (options(Some(service), None), "chat.embeddings_model must name the model"),
            (
                options(None, folder.clone()),
                "chat.embedding_model: cannot read the embedding model /nonexistent/model/tokenizer.json",
            ),
            (options(Some(named.clone()), folder), "the options select several embedding models"),
        ] {
            for error in [wrong.check().unwrap_err(), Verbatim::open(wrong).await.unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.message().contains(part), "{error}");
            }
        }
        let verbatim = Verbatim::open(options(Some(named), None)).await.unwrap();
        assert!(!verbatim.chat().is_extractive());
        verbatim.close().await;
    }
}
