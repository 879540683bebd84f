//! Bodies of the lookup API (specification 2.1 to 2.4).

use serde::{Deserialize, Serialize};

pub use super::details::{ChapterObject, ChunkObject, LanguageObject, MetadataObject};
use super::{AFTER_SEGMENTS, details};
pub use crate::body::segments::{Segment, Word};
use crate::{
    archive::view::TranscriptView,
    debug_fields,
    engine::NoTranscript,
    error::Result,
    lookup::{
        ArchivedResponse, Availability, IssuedLookupKey, KeyStatus as Status, KeyUsage, LookupResponse,
    },
    transcript::{Transcript, VideoDetails},
};
#[cfg(feature = "openapi")]
use crate::{
    ledger::terms::AllowancePeriod,
    lookup::{CreateKeyRequest, FailureReason, KeyPlan},
    video::Platform,
};

/// JSON response of a lookup (specification 2.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The JSON response of a lookup.")
)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptResult {
    /// One of `video_site`, `short_video`, `reels`, `microblog`; empty if the server omits it.
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
    /// The address of the transcript page for people.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub watch_url: String,
    /// The supplier of the transcript, if available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub source: Option<String>,
    /// The reason for the failure, if not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(with = "String", extend("enum" = FailureReason::ALL.map(FailureReason::as_str)))
    )]
    pub failure_reason: Option<String>,
    /// The reason as a message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub failure_message: Option<String>,
    /// The usage of the caller's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "KeyObject"))]
    pub key: Option<KeyObject>,
    /// Extension: the language of the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub language: Option<String>,
    /// Extension: the language that the caller requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub requested_language: Option<String>,
    /// Extension: the languages in which the video has tracks, as far as known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<LanguageObject>,
    /// Extension: what is known of the video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "MetadataObject"))]
    pub metadata: Option<MetadataObject>,
    /// Extension: the chapters, ordered by start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<ChapterObject>,
    /// Extension: the chunks of the segments, if they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<ChunkObject>,
    /// Extension: the start of the next page, if pages were requested and there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub next_cursor: Option<String>,
    /// Extension: the number of characters of all segments' texts, if pages were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "u64"))]
    pub total_chars: Option<u64>,
    /// The segments; empty if not available.
    pub transcript: Vec<Segment>,
}

/// Key object (specification 2.2).
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
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = AllowancePeriod::ALL.map(AllowancePeriod::as_str))))]
    pub period: String,
    /// Allowance used in the period.
    pub used: u64,
    /// Allowance for the period.
    pub allowance: u64,
    /// Allowance left.
    pub remaining: u64,
}

impl From<&KeyUsage> for KeyObject {
    fn from(usage: &KeyUsage) -> Self {
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
    /// Returns the JSON of this result before its segments; [`AFTER_SEGMENTS`] follows them.
    ///
    /// A caller that has the segments as JSON joins the three parts.
    ///
    /// # Errors
    /// Only if the serializer fails; no result causes that.
    pub fn before_segments(self) -> Result<Vec<u8>> {
        details::before_last_list(&Self { transcript: Vec::new(), ..self })
    }
}

impl From<&ArchivedResponse> for TranscriptResult {
    fn from(response: &ArchivedResponse) -> Self {
        Self {
            platform: response.video.platform().as_str().to_owned(),
            video_id: response.video.id().to_owned(),
            available: true,
            from_cache: true,
            watch_url: response.watch_url.clone(),
            source: Some(response.body.source.clone()),
            ..Self::default()
        }
        .with_details(&response.body.header, &response.body.details)
    }
}

impl TranscriptResult {
    /// Serializes a response to the JSON of its result, with this view of the transcript.
    ///
    /// Segments without words are written without copies.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the view has a cursor of another transcript or an invalid size of chunks.
    pub fn json(response: &LookupResponse, view: TranscriptView) -> Result<Vec<u8>> {
        let mut result = Self::without_segments(response);
        let segments = match &response.availability {
            Availability::Available { stored, .. } => {
                let parts = details::view(stored, view)?;
                MetadataObject::describe(&mut result.metadata, &stored.details, view);
                (result.chunks, result.next_cursor, result.total_chars) =
                    (parts.chunks, parts.next_cursor, parts.total_chars);
                parts.segments
            }
            Availability::Unavailable(_) => b"[]".to_vec(),
        };
        let mut json = result.before_segments()?;
        json.extend(segments);
        json.extend_from_slice(AFTER_SEGMENTS);
        Ok(json)
    }

    /// Adds what is known of the video besides the segments.
    fn with_details(self, header: &Transcript, details: &VideoDetails) -> Self {
        Self {
            language: Some(header.track.language.as_str().to_owned()),
            languages: details::languages(header, details),
            metadata: MetadataObject::new(header, details),
            chapters: details::chapters(details),
            ..self
        }
    }

    /// The details of the video, within the limits of metadata.
    pub fn details(&self) -> VideoDetails {
        let metadata = self.metadata.as_ref();
        details::to_details(
            &self.languages,
            metadata.map(MetadataObject::to_metadata).unwrap_or_default(),
            &self.chapters,
            metadata.and_then(MetadataObject::duration_ms),
        )
    }

    pub(crate) fn without_segments(response: &LookupResponse) -> Self {
        let mut result = Self {
            platform: response.platform.as_str().to_owned(),
            video_id: response.video_id.clone(),
            watch_url: response.watch_url.clone(),
            key: response.key.as_ref().map(KeyObject::from),
            requested_language: response.requested_language.as_ref().map(|tag| tag.as_str().to_owned()),
            languages: response.languages.iter().map(LanguageObject::from).collect(),
            ..Self::default()
        };
        match &response.availability {
            Availability::Available { stored, from_cache } => {
                result.available = true;
                result.from_cache = *from_cache;
                result.source = Some(stored.transcript.source.clone());
                return result.with_details(&stored.transcript, &stored.details);
            }
            Availability::Unavailable(NoTranscript { reason, message, .. }) => {
                result.failure_reason = Some(reason.as_str().to_owned());
                result.failure_message = Some(message.clone());
            }
        }
        result
    }
}

impl From<&LookupResponse> for TranscriptResult {
    fn from(response: &LookupResponse) -> Self {
        let mut result = Self::without_segments(response);
        if let Availability::Available { stored, .. } = &response.availability {
            result.transcript = stored.transcript.segments.iter().map(Segment::from).collect();
        }
        result
    }
}

/// The body of `POST /api/keys`; every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct KeyRequest {
    /// The label of the key: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(length(max = CreateKeyRequest::LABEL_LENGTH_MAX)),
        schemars(regex(pattern = r"^[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$"))
    )]
    pub label: Option<String>,
    /// The email address of the owner; no mail is sent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schemars(length(max = CreateKeyRequest::EMAIL_LENGTH_MAX), regex(pattern = EMAIL_PATTERN))
    )]
    pub email: Option<String>,
}

/// Empty, or an `@` with text on both sides, without white space and control characters.
#[cfg(feature = "openapi")]
const EMAIL_PATTERN: &str = concat!(
    r"^(?:[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+",
    r"@[^@\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+)?$"
);

/// Response of `GET /api/keys/me` (specification 2.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A key and what is left of its allowance.")
)]
#[serde(rename_all = "camelCase")]
pub struct KeyStatus {
    /// The public id of the key.
    pub id: String,
    /// The label of the key.
    pub label: Option<String>,
    /// Plan, period and usage.
    #[serde(flatten)]
    pub usage: KeyObject,
    /// When the allowance renews: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub resets_at: String,
    /// When the key was created: RFC 3339, UTC.
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

/// Response of `POST /api/keys` (specification 2.3), the only one that shows the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A new key. Only this response shows it.", rename = "KeyCreated")
)]
pub struct CreateKeyResponse {
    /// The key.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = r"^vbk_[0-9A-Za-z]{36}$")))]
    pub key: String,
    /// Plan and usage of the key.
    #[serde(flatten)]
    pub status: KeyStatus,
}

debug_fields!(CreateKeyResponse { status });

impl From<&IssuedLookupKey> for CreateKeyResponse {
    fn from(created: &IssuedLookupKey) -> Self {
        Self { key: created.key.reveal().to_owned(), status: KeyStatus::from(&created.status) }
    }
}
