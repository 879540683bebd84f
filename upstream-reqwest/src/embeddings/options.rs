//! Options of the embeddings service: settings `chat.embeddings_*`.

use std::{path::PathBuf, time::Duration};

use transcript_core::{Error, Result};
use url::Url;

use crate::base_url::endpoint_url;

/// Options of [`super::EmbeddingsService`].
#[derive(Clone, smart_default::SmartDefault)]
pub struct EmbeddingsOptions {
    /// URL of the service, including `/v1` (`chat.embeddings_url`).
    ///
    /// The operator chooses it, so any host is allowed.
    pub base_url: String,
    /// The model (`chat.embeddings_model`).
    pub model: String,
    /// The API key, if the service needs one (`chat.embeddings_api_key`).
    pub api_key: Option<String>,
    /// A PEM file with root certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Text before each question, such as `query:` for E5 models (`chat.embeddings_question_prefix`).
    pub question_prefix: String,
    /// Text before each passage, such as `passage:` for E5 models (`chat.embeddings_passage_prefix`).
    pub passage_prefix: String,
    /// Timeout of one call with all its texts, retries included (`chat.embeddings_timeout`).
    #[default(Duration::from_secs(20))]
    pub timeout: Duration,
    /// Number of retries after a transient error.
    #[default(2)]
    pub retries: u32,
}

impl EmbeddingsOptions {
    /// Validates the options; returns the URL of requests.
    pub(super) fn check(&self) -> Result<Url> {
        let url = endpoint_url("chat.embeddings_url", &self.base_url, "embeddings")?;
        if self.model.is_empty() {
            return Err(Error::invalid("chat.embeddings_model must name the model of chat.embeddings_url"));
        }
        if self.timeout.is_zero() {
            return Err(Error::invalid("chat.embeddings_timeout must be longer than zero"));
        }
        Ok(url)
    }

    /// Name under which vectors are stored: the model, and the prefixes, which change its vectors.
    ///
    /// `url` is that of requests: some services serve one model and ignore its name.
    pub(super) fn name(&self, url: &Url) -> String {
        let Self { model, question_prefix, passage_prefix, .. } = self;
        format!("{url}|{model}|{question_prefix}|{passage_prefix}")
    }
}

transcript_core::debug_fields!(EmbeddingsOptions { model, timeout, retries });
