//! A question about a video, and its answer.

use serde::{Deserialize, Serialize};

use crate::{
    accounts::{ChatCredits, ChatReady},
    chat::Citation,
    wire::segments::seconds,
};

/// The body of `POST /api/v1/chat` (specification 4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A question about a video.")
)]
pub struct ChatQuestion {
    /// The video's 11-character id.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = r"^[A-Za-z0-9_-]{11}$")))]
    pub video_id: String,
    /// The question: at most 2,000 Unicode scalar values.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = 2_000)))]
    pub message: String,
    /// What was said before, oldest first; nothing else is remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(length(max = 20)))]
    pub conversation_history: Option<Vec<ChatTurn>>,
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "One turn of a conversation.")
)]
pub struct ChatTurn {
    /// Who said it.
    pub role: ChatRole,
    /// What was said.
    pub content: String,
}

/// Who says something in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "Who says something in a conversation.")
)]
pub enum ChatRole {
    /// The person who asks.
    User,
    /// Whoever answers.
    Assistant,
}

/// The answer of `POST /api/v1/chat` (specification 2.6); `citations` and `coverage` are extensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "An answer about a video. Each quotation in it is the transcript's own text.")
)]
pub struct ChatAnswer {
    /// The video's id.
    pub video_id: String,
    /// The answer, with a marker such as `[1:05]` or `[1:02:03]` for each moment that it rests on.
    pub response: String,
    /// The credits of the account.
    pub credits: ChatBalance,
    /// The moments that it rests on, in the order of their markers; each once.
    #[serde(default)]
    pub citations: Vec<ChatCitation>,
    /// The share of the transcript that was read for the answer, from 0 to 1.
    #[serde(default)]
    pub coverage: f64,
}

/// What is left of an account's credits after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "What is left of an account's credits after an answer.")
)]
pub struct ChatBalance {
    /// How many are used.
    pub used: u64,
    /// The plan's credits for this period, and those bought that it began with or that came since.
    pub limit: u64,
    /// How many can be spent now.
    pub remaining: u64,
}

/// A moment of the video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A moment of a video: whole segments of its transcript.")
)]
pub struct ChatCitation {
    /// When its first segment starts, in seconds.
    pub start: f64,
    /// When its last segment ends, in seconds.
    pub end: f64,
    /// What its segments say.
    pub text: String,
    /// A link to that moment.
    pub url: String,
}

impl From<&Citation> for ChatCitation {
    fn from(citation: &Citation) -> Self {
        Self {
            start: seconds(citation.start_ms),
            end: seconds(citation.end_ms),
            text: citation.text.clone(),
            url: citation.url.clone(),
        }
    }
}

impl From<ChatCredits> for ChatBalance {
    fn from(credits: ChatCredits) -> Self {
        Self { used: credits.used, limit: credits.limit, remaining: credits.remaining }
    }
}

impl From<&ChatReady> for ChatAnswer {
    fn from(ready: &ChatReady) -> Self {
        Self {
            video_id: ready.video.id().to_owned(),
            response: ready.answer.response.clone(),
            credits: ready.credits.into(),
            citations: ready.answer.citations.iter().map(ChatCitation::from).collect(),
            // Three digits say enough, and a part is never told as the whole.
            coverage: (ready.answer.coverage * 1_000.0).floor() / 1_000.0,
        }
    }
}
