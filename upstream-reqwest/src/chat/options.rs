//! Options of the chat model: settings `chat.*`.

use std::{path::PathBuf, time::Duration};

use transcript_core::{Error, Result, chat::CONTEXT_TOKENS_DEFAULT};
use url::Url;

use crate::base_url::endpoint_url;

/// Options of [`super::OpenAiChat`].
#[derive(Clone, smart_default::SmartDefault)]
pub struct ChatModelOptions {
    /// URL of the service, including `/v1` (`chat.base_url`).
    ///
    /// The operator chooses it, so any host is allowed.
    pub base_url: String,
    /// The model (`chat.model`).
    pub model: String,
    /// The API key, if the service needs one (`chat.api_key`).
    pub api_key: Option<String>,
    /// A PEM file with root certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Context size of the model in tokens, including its answer (`chat.context_tokens`).
    #[default(CONTEXT_TOKENS_DEFAULT)]
    pub context_tokens: u32,
    /// Timeout of an answer, retries included (`chat.timeout`).
    #[default(Duration::from_secs(60))]
    pub timeout: Duration,
    /// Number of retries after a transient error, before the first text arrives.
    #[default(2)]
    pub retries: u32,
}

impl ChatModelOptions {
    /// Validates the options; returns the URL of requests.
    pub(super) fn check(&self) -> Result<Url> {
        let url = endpoint_url("chat.base_url", &self.base_url, "chat/completions")?;
        if self.model.is_empty() {
            return Err(Error::invalid("chat.model must name the model of chat.base_url"));
        }
        if self.timeout.is_zero() {
            return Err(Error::invalid("chat.timeout must be longer than zero"));
        }
        Ok(url)
    }
}

transcript_core::debug_fields!(ChatModelOptions { model, context_tokens, timeout, retries });

#[cfg(test)]
mod tests {
    use super::*;

    fn address(base_url: &str) -> Option<String> {
        let options =
            ChatModelOptions { base_url: base_url.to_owned(), model: "m".to_owned(), ..Default::default() };
        options.check().ok().map(String::from)
    }

    #[test]
    fn chat_url_is_below_base_url() {
        let expect = Some("https://llm.example/v1/chat/completions".to_owned());
        assert_eq!(address("https://llm.example/v1"), expect);
        assert_eq!(address("https://llm.example/v1/"), expect);
        assert_eq!(address("http://[::1]:11434"), Some("http://[::1]:11434/chat/completions".to_owned()));
        for wrong in
            ["", "llm.example/v1", "ftp://a/v1", "https://u:p@a/v1", "https://a/v1?key=1", "https://a/v1#x"]
        {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
