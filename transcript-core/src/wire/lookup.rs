//! Surface A's bodies (specification 2.1 to 2.4; design 4).

use serde::{Deserialize, Serialize};

use crate::{
    lookup::{Availability, KeyStatus as Status, KeyUse, LookupAnswer, NewLookupKey},
    transcript,
};

/// A segment (specification 2.1); times are seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// The text.
    pub text: String,
    /// When it starts, in seconds.
    pub start: f64,
    /// How long it lasts, in seconds.
    pub duration: f64,
}

impl From<&transcript::Segment> for Segment {
    fn from(segment: &transcript::Segment) -> Self {
        Self {
            text: segment.text.clone(),
            start: seconds(segment.start_ms),
            duration: seconds(segment.duration_ms),
        }
    }
}

/// Milliseconds as seconds. Exact as decimals: whole milliseconds stay whole for 285,000 years.
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// The JSON answer of a look-up (specification 2.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptResult {
    /// One of `video_site`, `short_video`, `reels`, `microblog`; empty from a server that leaves it out.
    #[serde(default)]
    pub platform: String,
    /// The video's id.
    pub video_id: String,
    /// Whether a transcript was returned.
    pub available: bool,
    /// Whether it was served from the archive.
    #[serde(default)]
    pub from_cache: bool,
    /// The address of the human transcript page.
    #[serde(default)]
    pub watch_url: String,
    /// The supplier that answered, when available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why there is none, when not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// What the caller's key has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyObject>,
    /// The segments; empty when not available.
    pub transcript: Vec<Segment>,
}

/// The key object (specification 2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyObject {
    /// One of `free`, `plus`, `plus_inactive`.
    pub plan: String,
    /// One of `month`, `day`.
    pub period: String,
    /// Allowance used in the period.
    pub used: u64,
    /// Allowance for the period.
    pub allowance: u64,
    /// Allowance left.
    pub remaining: u64,
}

impl From<&KeyUse> for KeyObject {
    fn from(usage: &KeyUse) -> Self {
        Self {
            plan: usage.plan.as_str().to_owned(),
            period: usage.period.as_str().to_owned(),
            used: usage.used,
            allowance: usage.allowance,
            remaining: usage.remaining,
        }
    }
}

impl From<&LookupAnswer> for TranscriptResult {
    fn from(answer: &LookupAnswer) -> Self {
        let mut result = Self {
            platform: answer.platform.as_str().to_owned(),
            video_id: answer.video_id.clone(),
            available: false,
            from_cache: false,
            watch_url: answer.watch_url.clone(),
            source: None,
            failure_reason: None,
            failure_message: None,
            key: answer.key.as_ref().map(KeyObject::from),
            transcript: Vec::new(),
        };
        match &answer.availability {
            Availability::Available { stored, from_cache } => {
                result.available = true;
                result.from_cache = *from_cache;
                result.source = Some(stored.transcript.source.clone());
                result.transcript = stored.transcript.segments.iter().map(Segment::from).collect();
            }
            Availability::Unavailable { reason, message } => {
                result.failure_reason = Some(reason.as_str().to_owned());
                result.failure_message = Some(message.clone());
            }
        }
        result
    }
}

/// The answer of `GET /api/keys/me` (design 4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyStatus {
    /// The key's public name.
    pub id: String,
    /// What its owner calls it.
    pub label: Option<String>,
    /// Plan, period and figures.
    #[serde(flatten)]
    pub usage: KeyObject,
    /// When the allowance is replaced by a fresh one: RFC 3339, UTC.
    pub resets_at: String,
    /// When the key was made: RFC 3339, UTC.
    pub created_at: String,
}

impl From<&Status> for KeyStatus {
    fn from(status: &Status) -> Self {
        Self {
            id: status.id.to_string(),
            label: status.label.clone(),
            usage: KeyObject::from(&status.usage),
            resets_at: status.resets_at.to_string(),
            created_at: status.created_at.to_string(),
        }
    }
}

/// The answer of `POST /api/keys`: the only time that the key is shown (design 4).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCreated {
    /// The key itself.
    pub key: String,
    /// What it may do.
    #[serde(flatten)]
    pub status: KeyStatus,
}

impl std::fmt::Debug for KeyCreated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyCreated").field("status", &self.status).finish_non_exhaustive()
    }
}

impl From<&NewLookupKey> for KeyCreated {
    fn from(created: &NewLookupKey) -> Self {
        Self { key: created.key.reveal().to_owned(), status: KeyStatus::from(&created.status) }
    }
}
