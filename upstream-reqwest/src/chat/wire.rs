//! The JSON of chat completions in the API of `OpenAI`, which other services share.

use serde::{Deserialize, Deserializer, Serialize};
use transcript_core::chat::{ChatMessage, TokenUsage};

use crate::openai::contains;

/// Parameters that a service was found to reject. They are omitted from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceQuirks {
    /// The token limit is named `max_completion_tokens`.
    pub(super) newer_limit: bool,
    /// `temperature` is not supported.
    pub(super) no_temperature: bool,
    /// Token counts of a stream are not supported.
    pub(super) no_stream_options: bool,
    /// Streaming is not supported.
    pub(super) no_stream: bool,
}

impl ServiceQuirks {
    /// Learns a rejected parameter from an error response; `None` if there is none that can be omitted.
    pub(super) fn adapted_to(self, body: &[u8]) -> Option<Self> {
        let mentions = |word| contains(body, word);
        let adapted = if mentions("max_tokens") || mentions("max_completion_tokens") {
            Self { newer_limit: !self.newer_limit, ..self }
        } else if mentions("temperature") {
            Self { no_temperature: true, ..self }
        } else if mentions("stream_options") {
            Self { no_stream_options: true, ..self }
        } else if mentions("stream") {
            Self { no_stream: true, ..self }
        } else {
            self
        };
        (adapted != self).then_some(adapted)
    }
}

#[derive(Debug, Serialize)]
pub(super) struct CompletionRequest<'a> {
    pub(super) model: &'a str,
    messages: Vec<CompletionMessage<'a>>,
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
struct CompletionMessage<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> CompletionRequest<'a> {
    pub(super) fn new(
        model: &'a str,
        messages: &'a [ChatMessage],
        tokens: u32,
        quirks: ServiceQuirks,
    ) -> Self {
        let messages = messages
            .iter()
            .map(|message| CompletionMessage { role: message.role.as_str(), content: &message.content });
        let counts = !quirks.no_stream && !quirks.no_stream_options;
        Self {
            model,
            messages: messages.collect(),
            stream: !quirks.no_stream,
            stream_options: counts.then_some(StreamOptions { include_usage: true }),
            // Deterministic: the model must not invent anything.
            temperature: (!quirks.no_temperature).then_some(0.0),
            max_tokens: (!quirks.newer_limit).then_some(tokens),
            max_completion_tokens: quirks.newer_limit.then_some(tokens),
        }
    }
}

/// A completion response, or a chunk of one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CompletionResponse {
    #[serde(default, deserialize_with = "or_default")]
    choices: Vec<CompletionChoice>,
    #[serde(default)]
    usage: Option<CompletionUsage>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionChoice {
    #[serde(default)]
    message: Option<MessageContent>,
    #[serde(default)]
    delta: Option<MessageContent>,
    #[serde(default)]
    finish_reason: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
struct MessageContent {
    #[serde(default)]
    content: Option<ContentText>,
}

/// The text of a message: a string, or a list of parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ContentText {
    Whole(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Deserialize)]
struct ContentPart {
    /// `text` for a part of the answer; others are reasoning, images or references.
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
}

impl ContentText {
    fn text(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Parts(parts) => {
                let is_answer = |part: &ContentPart| part.kind.as_deref().is_none_or(|kind| kind == "text");
                parts.into_iter().filter(is_answer).filter_map(|part| part.text).collect()
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct CompletionUsage {
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens: u64,
}

/// Reads `null` as the default: some services send it in the last chunk.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl CompletionResponse {
    /// Whether it is an error object.
    pub(super) fn is_fault(&self) -> bool {
        self.error.is_some()
    }

    /// Whether it has the form of an answer.
    pub(super) fn has_content(&self) -> bool {
        !self.choices.is_empty() || self.usage.is_some()
    }

    /// Whether it names a reason for the end of the answer.
    pub(super) fn is_finished(&self) -> bool {
        let mut reasons = self.choices.iter().filter_map(|choice| choice.finish_reason.as_ref()?.as_str());
        // A gateway that writes a plain string has an empty one in every chunk.
        reasons.any(|reason| !matches!(reason, "" | "null"))
    }

    /// The text of its first choice.
    pub(super) fn text(self) -> String {
        let first = self.choices.into_iter().next().unwrap_or_default();
        let content = first.delta.or(first.message).and_then(|content| content.content);
        content.map(ContentText::text).unwrap_or_default()
    }

    /// The token counts.
    pub(super) fn usage(&self) -> Option<TokenUsage> {
        let counted = self.usage.as_ref()?;
        Some(TokenUsage {
            prompt_tokens: counted.prompt_tokens,
            completion_tokens: counted.completion_tokens,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript_core::chat::{ChatRole, MessageRole};

    use super::*;

    #[test]
    fn rejected_parameter_is_omitted() {
        let messages =
            [ChatMessage { role: MessageRole::Conversation(ChatRole::User), content: "Hi".to_owned() }];
        let sent = |quirks| serde_json::to_value(CompletionRequest::new("m", &messages, 9, quirks)).unwrap();
        let plain = ServiceQuirks::default();
        assert_eq!(
            sent(plain),
            json!({
                "model": "m", "messages": [{ "role": "user", "content": "Hi" }], "stream": true,
                "stream_options": { "include_usage": true }, "temperature": 0.0, "max_tokens": 9
            })
        );
        let newer = plain.adapted_to(b"Unsupported parameter: 'max_tokens'").unwrap();
        let newer = newer.adapted_to(b"'temperature' does not support 0").unwrap();
        let newer = newer.adapted_to(b"stream_options: extra fields").unwrap();
        let newer = newer.adapted_to(b"stream must be false").unwrap();
        assert_eq!(
            sent(newer),
            json!({
                "model": "m", "messages": [{ "role": "user", "content": "Hi" }], "stream": false,
                "max_completion_tokens": 9
            })
        );
        assert_eq!(newer.adapted_to(b"stream must be true"), None);
        assert_eq!(plain.adapted_to(b"context_length_exceeded"), None);
    }

    #[test]
    fn response_complete_or_chunked_is_read() {
        let read = |body: &str| serde_json::from_str::<CompletionResponse>(body).unwrap();
        assert_eq!(read(r#"{"choices":[{"message":{"role":"assistant","content":"a"}}]}"#).text(), "a");
        assert_eq!(read(r#"{"choices":[{"delta":{"content":"b"},"finish_reason":null}]}"#).text(), "b");
        assert_eq!(read(r#"{"choices":[{"delta":{"content":null}}]}"#).text(), "");
        let parts = r#"[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"text":"b"}]"#;
        assert_eq!(read(&format!(r#"{{"choices":[{{"message":{{"content":{parts}}}}}]}}"#)).text(), "ab");
        let nulls = read(r#"{"choices":null,"usage":{"prompt_tokens":null,"completion_tokens":2}}"#);
        assert_eq!(nulls.usage(), Some(TokenUsage { prompt_tokens: 0, completion_tokens: 2 }));
        assert!(read(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#).is_finished());
        for reason in ["null", r#""""#, r#""null""#, "false"] {
            let body = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":{reason}}}]}}"#);
            assert!(!read(&body).is_finished(), "{reason}");
        }
        let last = read(r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"x":1}}"#);
        assert_eq!(last.usage(), Some(TokenUsage { prompt_tokens: 7, completion_tokens: 2 }));
        assert!(
            last.has_content()
                && !read("{}").has_content()
                && read(r#"{"error":{"message":"no"}}"#).is_fault()
        );
    }
}
