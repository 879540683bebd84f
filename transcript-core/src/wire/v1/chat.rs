//! Question about a video, and its answer.

use serde::{Deserialize, Serialize};

use crate::{
    accounts::{ChatCredits, PreparedChat},
    body::segments::seconds,
    chat::Citation,
};

/// Body of `POST /api/v1/chat` (specification 4.5).
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
    /// The earlier turns, oldest first. The server keeps no history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(length(max = 20)))]
    pub conversation_history: Option<Vec<ChatTurn>>,
}

/// Turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "One turn of a conversation.")
)]
pub struct ChatTurn {
    /// The author of the turn.
    pub role: ChatRole,
    /// The text of the turn.
    pub content: String,
}

/// Author of a turn in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The author of a turn in a conversation.")
)]
pub enum ChatRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Response of `POST /api/v1/chat` (specification 2.6); `citations` and `coverage` are extensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "An answer about a video. Each quotation in it is the transcript's own text.")
)]
pub struct ChatAnswer {
    /// The video's id.
    pub video_id: String,
    /// The answer, with a marker such as `[1:05]` or `[1:02:03]` for each cited moment.
    pub response: String,
    /// The credits of the account.
    pub credits: ChatBalance,
    /// The cited moments, in the order of their markers; each once.
    #[serde(default)]
    pub citations: Vec<ChatCitation>,
    /// The share of the transcript that was read for the answer, from 0 to 1.
    #[serde(default)]
    pub coverage: f64,
}

/// Credits of an account after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The credits of an account after an answer.")
)]
pub struct ChatBalance {
    /// The credits used.
    pub used: u64,
    /// The plan's credits for this period, plus purchased ones left at its start or bought since.
    pub limit: u64,
    /// The credits that can be spent now.
    pub remaining: u64,
}

/// Moment of a video.
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
    /// The text of its segments; of very long ones the first 4,096 bytes.
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

impl From<&PreparedChat> for ChatAnswer {
    fn from(prepared: &PreparedChat) -> Self {
        Self {
            video_id: prepared.video.id().to_owned(),
            response: prepared.answer.response.clone(),
            credits: prepared.credits.into(),
            citations: prepared.answer.citations.iter().map(ChatCitation::from).collect(),
            // Three digits are enough, and rounding down never shows a part as the whole.
            coverage: (prepared.answer.coverage * 1_000.0).floor() / 1_000.0,
        }
    }
}
