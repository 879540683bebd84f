//! Settings of the chat model.

use std::time::Duration;

use super::{
    reader::SettingsReader,
    value::{BaseUrl, Secret},
};

/// `chat.*`
#[derive(Clone, Debug)]
pub struct ChatSettings {
    /// `chat.base_url`: an OpenAI-compatible chat service.
    ///
    /// If unset, answers are passages of the transcript.
    pub base_url: Option<BaseUrl>,
    /// `chat.model`: model name.
    pub model: Option<String>,
    /// `chat.api_key`: API key.
    pub api_key: Option<Secret>,
    /// `chat.context_tokens`: context size of the model in tokens, its answer included.
    pub context_tokens: u64,
    /// `chat.timeout`: timeout of an answer, retries included.
    pub timeout: Duration,
}

impl ChatSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        let chat = Self {
            base_url: reader.optional("chat.base_url"),
            model: reader.optional("chat.model"),
            api_key: reader.optional("chat.api_key"),
            context_tokens: reader.number("chat.context_tokens", 32_000, 1_000..=10_000_000),
            timeout: reader.duration(
                "chat.timeout",
                Duration::from_secs(60),
                Duration::from_secs(1)..=Duration::from_secs(600),
            ),
        };
        reader.needs(("chat.base_url", chat.base_url.is_some()), ("chat.model", chat.model.is_some()));
        chat
    }
}
