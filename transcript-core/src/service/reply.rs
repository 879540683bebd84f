//! Replies of the service.

use std::{sync::Arc, time::Duration};

use super::{SERVICE_SUPPLIER, TextFormat};
use crate::{
    archive::{ArchivedTrack, StoredTranscript},
    captions::PARSER_VERSION,
    engine::NoTranscript,
    lookup::{Availability, FailureReason, LookupResponse},
    time::Timestamp,
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
    video::Platform,
    wire::lookup::TranscriptResult,
};

/// A reply with its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReply<T> {
    /// The body.
    pub body: T,
    /// The metadata.
    pub meta: ResponseMeta,
}

impl<T> From<T> for ServiceReply<T> {
    /// A reply without metadata.
    fn from(body: T) -> Self {
        Self { body, meta: ResponseMeta::default() }
    }
}

/// Metadata of a reply, in the headers of a server's response; `None` if absent or invalid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseMeta {
    /// The server's id of the request (`x-request-id`), for questions to its operator.
    pub request_id: Option<String>,
    /// The remaining credits (`X-Credits-Remaining`, specification 4.16).
    pub credits_remaining: Option<u64>,
    /// The credits that the call cost; `None` from a server, and for a replay.
    pub credits_charged: Option<u64>,
    /// Whether the response came from the archive (`X-Cache`, specification 4.16).
    pub is_cached: Option<bool>,
    /// The account's rate limit and its remaining requests (`RateLimit` and `RateLimit-Policy`).
    pub rate: Option<RateLimit>,
    /// How long to wait before a retry (`Retry-After`, specification 4.16).
    pub retry_after: Option<Duration>,
    /// Whether this is a stored response, which is not charged again (`Idempotent-Replayed`).
    pub is_replayed: bool,
    /// The language of the transcript (`Content-Language`), in the response to a lookup with a key.
    pub language: Option<LanguageTag>,
    /// Whether the captions are generated (`X-Is-Generated`), in the response to a lookup with a key.
    pub is_generated: Option<bool>,
    /// Detail of a failure reason (`X-Failure-Detail`), in the response to a call with a key: at most 32
    /// lowercase letters and underscores. The reason itself where it has no detail and the body does not name it.
    pub failure_detail: Option<String>,
}

/// A rate limit of the account and its remaining requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The limit's name: `account`, or `repeats` for replays by `Idempotency-Key`.
    pub name: String,
    /// Number of further requests that are admitted now.
    pub remaining: u64,
    /// Time until more requests are admitted.
    pub reset: Duration,
    /// Requests per window, if the server sends its policy.
    pub limit: Option<u64>,
    /// The window, if the server sends its policy.
    pub window: Option<Duration>,
}

/// Reply to a lookup.
#[derive(Clone, Debug, PartialEq)]
pub struct LookupReply {
    /// The response without its segments.
    pub result: TranscriptResult,
    /// The transcript; `None` if it is not available. From a server it has revision 0 and no digest.
    pub transcript: Option<StoredTranscript>,
}

impl LookupReply {
    /// The platform; `None` if the server omits it.
    pub fn platform(&self) -> Option<Platform> {
        Platform::from_wire(&self.result.platform)
    }
}

impl From<LookupResponse> for ServiceReply<LookupReply> {
    fn from(response: LookupResponse) -> Self {
        let result = TranscriptResult::without_segments(&response);
        let mut meta = ResponseMeta::default();
        let transcript = match response.availability {
            Availability::Available { stored, .. } => Some(stored),
            Availability::Unavailable(NoTranscript { retry_after, detail, .. }) => {
                (meta.retry_after, meta.failure_detail) = (retry_after, detail);
                None
            }
        };
        Self { body: LookupReply { result, transcript }, meta }
    }
}

/// A transcript as text, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextResponse {
    /// The transcript.
    Text(String),
    /// No transcript (specification 4.1: 402 and 404).
    Missing {
        /// Whether the key's allowance is used up.
        is_allowance_spent: bool,
        /// The reason, as the service wrote it.
        message: String,
        /// Page where a person can read the transcript, unchanged. Empty if the server sent none.
        watch_url: String,
    },
}

impl TextResponse {
    /// The response to a lookup in this format.
    pub(super) fn new(reply: LookupReply, format: TextFormat) -> Self {
        let LookupReply { result, transcript } = reply;
        match transcript {
            Some(stored) => Self::Text(format.format(&stored.transcript)),
            None => Self::Missing {
                is_allowance_spent: result.failure_reason.as_deref()
                    == Some(FailureReason::KeyAllowance.as_str()),
                message: result.failure_message.unwrap_or_default(),
                watch_url: result.watch_url,
            },
        }
    }
}

/// Tracks of a video.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackList {
    /// The lookup of the default track, with the video's title and author. Without its transcript there are no tracks.
    pub lookup: LookupReply,
    /// Archived and known tracks.
    pub tracks: Vec<ArchivedTrack>,
}

/// A transcript without revision, digest and time, such as that of a server.
pub fn unarchived(transcript: Transcript) -> StoredTranscript {
    StoredTranscript {
        details: Arc::default(),
        transcript: Arc::new(transcript),
        revision: 0,
        content_sha256: Vec::new(),
        parser_version: PARSER_VERSION,
        stored_at: Timestamp::from_millis(0),
    }
}

/// A transcript of the v1 API with the fields that the API sends.
///
/// So a transcript, its replay and that of a server are equal. Metadata and tracks of the video are in the details.
pub fn v1_transcript(stored: StoredTranscript) -> Transcript {
    let transcript = Arc::unwrap_or_clone(stored.transcript);
    let kind = if transcript.track.is_generated() { TrackKind::Generated } else { TrackKind::Human };
    Transcript {
        title: transcript.title.filter(|title| !title.is_empty()),
        author: transcript.author.filter(|author| !author.is_empty()),
        track: TrackInfo::new(transcript.track.language, kind),
        source: SERVICE_SUPPLIER.to_owned(),
        ..transcript
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{transcript::Segment, video::VideoId, wire::v1::VideoTranscript};

    #[test]
    fn v1_transcript_equals_its_replay() {
        let track = TrackInfo {
            name: Some("CC".to_owned()),
            original: true,
            ..TrackInfo::new(LanguageTag::english(), TrackKind::Translated)
        };
        let mut transcript = Transcript {
            video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
            title: Some("Gate".to_owned()),
            author: Some("Ann".to_owned()),
            duration_ms: Some(9_000),
            track,
            source: "youtube-captions".to_owned(),
            segments: vec![Segment::new("Hello.", 61_001, 1_499)],
        };
        for title in [Some("Gate".to_owned()), Some(String::new()), None] {
            transcript.title = title;
            let replayed = VideoTranscript::from(&unarchived(transcript.clone()))
                .into_transcript(SERVICE_SUPPLIER)
                .unwrap();
            assert_eq!(v1_transcript(unarchived(transcript.clone())), replayed);
        }
    }
}
