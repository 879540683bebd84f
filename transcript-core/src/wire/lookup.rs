//! Surface A's bodies (specification 2.1 to 2.4; design 4).

use serde::{Deserialize, Serialize};

use super::segments::{self, seconds};
use crate::{
    error::{Error, Result},
    lookup::{Availability, KeyStatus as Status, KeyUse, LookupAnswer, NewLookupKey, StoredAnswer},
    transcript,
};
#[cfg(feature = "openapi")]
use crate::{
    ledger::terms::Period,
    lookup::{CreateKey, FailureReason, KeyPlan},
    video::Platform,
};

/// A segment (specification 2.1); times are seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A segment; times are seconds.")
)]
pub struct Segment {
    /// The text.
    pub text: String,
    /// When it starts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub start: f64,
    /// How long it lasts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
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

/// The JSON answer of a look-up (specification 2.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The JSON answer of a look-up.")
)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptResult {
    /// One of `video_site`, `short_video`, `reels`, `microblog`; empty from a server that leaves it out.
    #[serde(default)]
    #[cfg_attr(
        feature = "openapi",
        schemars(description = "The platform of the video."),
        schemars(extend("enum" = Platform::ALL.map(Platform::as_str)))
    )]
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
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub watch_url: String,
    /// The supplier that answered, when available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub source: Option<String>,
    /// Why there is none, when not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(with = "String", extend("enum" = FailureReason::ALL.map(FailureReason::as_str)))
    )]
    pub failure_reason: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub failure_message: Option<String>,
    /// What the caller's key has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "KeyObject"))]
    pub key: Option<KeyObject>,
    /// The segments; empty when not available.
    pub transcript: Vec<Segment>,
}

/// The key object (specification 2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "What a key has used of its allowance.")
)]
pub struct KeyObject {
    /// One of `free`, `plus`, `plus_inactive`.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = KeyPlan::ALL.map(KeyPlan::as_str))))]
    pub plan: String,
    /// One of `month`, `day`.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = Period::ALL.map(Period::as_str))))]
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

impl TranscriptResult {
    /// The JSON of this result before its segments; [`AFTER_SEGMENTS`] comes after them. Whoever has the
    /// segments as JSON puts the three together.
    ///
    /// # Errors
    /// None that a result can cause; one that the serialiser has.
    pub fn before_segments(self) -> Result<Vec<u8>> {
        let none = Self { transcript: Vec::new(), ..self };
        let json = serde_json::to_vec(&none);
        let mut json = json.map_err(|error| Error::unexpected(format!("an answer is no JSON: {error}")))?;
        // The segments come last, so what ends here is their empty list and the result.
        json.truncate(json.len().saturating_sub("[]".len() + AFTER_SEGMENTS.len()));
        Ok(json)
    }
}

/// The JSON of a [`TranscriptResult`] after its segments.
pub const AFTER_SEGMENTS: &[u8] = b"}";

impl From<&StoredAnswer> for TranscriptResult {
    fn from(answer: &StoredAnswer) -> Self {
        Self {
            platform: answer.platform.as_str().to_owned(),
            video_id: answer.video_id.clone(),
            available: true,
            from_cache: true,
            watch_url: answer.watch_url.clone(),
            source: Some(answer.body.source.clone()),
            failure_reason: None,
            failure_message: None,
            key: None,
            transcript: Vec::new(),
        }
    }
}

impl TranscriptResult {
    /// The JSON of an answer, the same as its result's, with its segments written without copies.
    ///
    /// # Errors
    /// None that an answer can cause; one that the serialiser has.
    pub fn json(answer: &LookupAnswer) -> Result<Vec<u8>> {
        let result = Self::without_segments(answer);
        let segments = match &answer.availability {
            Availability::Available { stored, .. } => &stored.transcript.segments[..],
            Availability::Unavailable { .. } => &[],
        };
        let mut json = result.before_segments()?;
        json.extend(segments::write(segments)?);
        json.extend_from_slice(AFTER_SEGMENTS);
        Ok(json)
    }

    fn without_segments(answer: &LookupAnswer) -> Self {
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
            }
            Availability::Unavailable { reason, message, .. } => {
                result.failure_reason = Some(reason.as_str().to_owned());
                result.failure_message = Some(message.clone());
            }
        }
        result
    }
}

impl From<&LookupAnswer> for TranscriptResult {
    fn from(answer: &LookupAnswer) -> Self {
        let mut result = Self::without_segments(answer);
        if let Availability::Available { stored, .. } = &answer.availability {
            result.transcript = stored.transcript.segments.iter().map(Segment::from).collect();
        }
        result
    }
}

/// The body of `POST /api/keys`; every field may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct KeyRequest {
    /// What its owner calls the key: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(length(max = CreateKey::LABEL_LENGTH_MAX)),
        schemars(regex(pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$"))
    )]
    pub label: Option<String>,
    /// Its owner's e-mail address; nothing is sent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(length(max = CreateKey::EMAIL_LENGTH_MAX), regex(pattern = EMAIL_PATTERN))
    )]
    pub email: Option<String>,
}

/// An `@` with something on both sides, and neither white space nor control characters; or nothing at all.
#[cfg(feature = "openapi")]
const EMAIL_PATTERN: &str = concat!(
    r"^(?:[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+",
    r"@[^@\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+)?$"
);

/// The answer of `GET /api/keys/me` (design 4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A key and what is left of its allowance.")
)]
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
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub resets_at: String,
    /// When the key was made: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
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
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A new key. Only this answer ever shows it.")
)]
pub struct KeyCreated {
    /// The key itself.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = r"^vbk_[0-9A-Za-z]{36}$")))]
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
