//! The model that answers questions about a video.

use std::time::Duration;

use super::{
    reader::Reader,
    value::{BaseUrl, Secret},
};

/// `chat.*`
#[derive(Clone, Debug)]
pub struct Chat {
    /// `chat.base_url`: an OpenAI-compatible chat service; when absent, answers are passages of the transcript.
    pub base_url: Option<BaseUrl>,
    /// `chat.model`: its model.
    pub model: Option<String>,
    /// `chat.api_key`: its key.
    pub api_key: Option<Secret>,
    /// `chat.context_tokens`: how many tokens the model takes at once, its answer included.
    pub context_tokens: u64,
    /// `chat.timeout`: how long an answer may take.
    pub timeout: Duration,
}

impl Chat {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
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
