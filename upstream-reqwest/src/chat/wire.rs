//! The JSON of chat completions, as the interface of `OpenAI` has it and others speak it.

use serde::{Deserialize, Serialize};
use transcript_core::chat::{ChatMessage, Usage};

/// What a service was found not to understand: it is asked without that from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    /// The name of the limit is `max_completion_tokens`.
    pub(super) newer_limit: bool,
    /// No temperature is taken.
    pub(super) no_temperature: bool,
    /// The tokens of a stream are not counted on request.
    pub(super) no_stream_options: bool,
    /// No streams are made.
    pub(super) no_stream: bool,
}

impl Dialect {
    /// What a refusal says is not understood; none when that is nothing that can be left out.
    pub(super) fn learned(self, refusal: &[u8]) -> Option<Self> {
        let says = |word: &str| refusal.windows(word.len()).any(|window| window == word.as_bytes());
        let learned = if says("max_tokens") || says("max_completion_tokens") {
            Self { newer_limit: !self.newer_limit, ..self }
        } else if says("temperature") {
            Self { no_temperature: true, ..self }
        } else if says("stream_options") {
            Self { no_stream_options: true, ..self }
        } else if says("stream") {
            Self { no_stream: true, ..self }
        } else {
            self
        };
        (learned != self).then_some(learned)
    }
}

/// A request.
#[derive(Debug, Serialize)]
pub(super) struct Completion<'a> {
    pub(super) model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Completion<'a> {
    pub(super) fn new(model: &'a str, messages: &'a [ChatMessage], tokens: u32, dialect: Dialect) -> Self {
        let messages =
            messages.iter().map(|message| Message { role: message.role.as_str(), content: &message.content });
        let counts = !dialect.no_stream && !dialect.no_stream_options;
        Self {
            model,
            messages: messages.collect(),
            stream: !dialect.no_stream,
            stream_options: counts.then_some(StreamOptions { include_usage: true }),
            // The likeliest words: nothing here is to be made up.
            temperature: (!dialect.no_temperature).then_some(0.0),
            max_tokens: (!dialect.newer_limit).then_some(tokens),
            max_completion_tokens: dialect.newer_limit.then_some(tokens),
        }
    }
}

/// An answer, or a piece of one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Counted>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<Content>,
    #[serde(default)]
    delta: Option<Content>,
}

#[derive(Debug, Default, Deserialize)]
struct Content {
    #[serde(default)]
    content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Counted {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl Answer {
    /// Whether it tells a fault instead.
    pub(super) fn is_fault(&self) -> bool {
        self.error.is_some()
    }

    /// Whether it is of the form that answers have.
    pub(super) fn is_answer(&self) -> bool {
        !self.choices.is_empty() || self.usage.is_some()
    }

    /// The text of its first choice.
    pub(super) fn text(self) -> String {
        let first = self.choices.into_iter().next().unwrap_or_default();
        first.delta.or(first.message).and_then(|content| content.content).unwrap_or_default()
    }

    /// What it counted.
    pub(super) fn usage(&self) -> Option<Usage> {
        let counted = self.usage.as_ref()?;
        Some(Usage { prompt_tokens: counted.prompt_tokens, completion_tokens: counted.completion_tokens })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript_core::chat::{Role, Speaker};

    use super::*;

    #[test]
    fn what_is_not_understood_is_left_out() {
        let messages = [ChatMessage { role: Speaker::Of(Role::User), content: "Hi".to_owned() }];
        let sent = |dialect| serde_json::to_value(Completion::new("m", &messages, 9, dialect)).unwrap();
        let plain = Dialect::default();
        assert_eq!(
            sent(plain),
            json!({
                "model": "m", "messages": [{ "role": "user", "content": "Hi" }], "stream": true,
                "stream_options": { "include_usage": true }, "temperature": 0.0, "max_tokens": 9
            })
        );
        let newer = plain.learned(b"Unsupported parameter: 'max_tokens'").unwrap();
        let newer = newer.learned(b"'temperature' does not support 0").unwrap();
        let newer = newer.learned(b"stream_options: extra fields").unwrap();
        let newer = newer.learned(b"stream must be false").unwrap();
        assert_eq!(
            sent(newer),
            json!({
                "model": "m", "messages": [{ "role": "user", "content": "Hi" }], "stream": false,
                "max_completion_tokens": 9
            })
        );
        assert_eq!(newer.learned(b"stream must be true"), None);
        assert_eq!(plain.learned(b"context_length_exceeded"), None);
    }

    #[test]
    fn answers_are_read_whole_and_in_pieces() {
        let read = |body: &str| serde_json::from_str::<Answer>(body).unwrap();
        assert_eq!(read(r#"{"choices":[{"message":{"role":"assistant","content":"a"}}]}"#).text(), "a");
        assert_eq!(read(r#"{"choices":[{"delta":{"content":"b"},"finish_reason":null}]}"#).text(), "b");
        assert_eq!(read(r#"{"choices":[{"delta":{"content":null}}]}"#).text(), "");
        let last = read(r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"x":1}}"#);
        assert_eq!(last.usage(), Some(Usage { prompt_tokens: 7, completion_tokens: 2 }));
        assert!(
            last.is_answer() && !read("{}").is_answer() && read(r#"{"error":{"message":"no"}}"#).is_fault()
        );
    }
}
