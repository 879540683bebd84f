//! Responses of the lookup API.

use super::{AttributionTag, FailureReason, KeyUsage, LookupOptions, LookupRequest};
use crate::{
    archive::StoredTranscript,
    engine::NoTranscript,
    transcript::{LanguageTag, TrackInfo},
    video::{Platform, VideoLink},
};

/// The response of a lookup, before it is formatted.
#[derive(Clone, Debug)]
pub struct LookupResponse {
    /// The platform.
    pub platform: Platform,
    /// The video's ID; the code of a short link that was not resolved.
    pub video_id: String,
    /// The URL of the transcript page, with the attribution tag.
    pub watch_url: String,
    /// The usage of the caller's key; `None` without a known key.
    pub key: Option<KeyUsage>,
    /// The language that the caller requested, if any.
    pub requested_language: Option<LanguageTag>,
    /// The tracks of a video without a transcript in the requested language, as far as known.
    pub languages: Vec<TrackInfo>,
    /// The transcript, or why there is none.
    pub availability: Availability,
}

/// A request after its short link, if it has one, was resolved.
#[derive(Clone, Debug)]
pub enum ResolvedRequest {
    /// Its video is known.
    Video {
        /// The request, with the address of the video.
        request: LookupRequest,
        /// Whether its request beyond the archive was counted: then only the archive is to be read.
        counted: bool,
    },
    /// Its video is unknown; the response says why.
    Unresolved(LookupResponse),
}

/// The transcript, or why there is none.
#[derive(Clone, Debug)]
pub enum Availability {
    /// There is a transcript.
    Available {
        /// The transcript.
        stored: StoredTranscript,
        /// Whether it was archived before this request.
        from_cache: bool,
    },
    /// There is none.
    Unavailable(NoTranscript),
}

impl Availability {
    /// No transcript, for this reason.
    pub(super) fn none(reason: FailureReason, message: impl Into<String>) -> Self {
        NoTranscript::new(reason, message).into()
    }
}

impl From<NoTranscript> for Availability {
    fn from(none: NoTranscript) -> Self {
        Self::Unavailable(none.without_advice())
    }
}

impl LookupOptions {
    /// The URL of the transcript page: `{base_url}/watch/{platform}/{id}?src={tag}`.
    ///
    /// A short link that was not resolved has its name in place of an ID, so that its code is not taken for one.
    pub fn watch_url(&self, link: &VideoLink, src: Option<AttributionTag>) -> String {
        if self.base_url.is_empty() {
            return String::new();
        }
        let base = self.base_url.trim_end_matches('/');
        let page = match link {
            VideoLink::Video(video) => video.to_string(),
            VideoLink::Short(link) => format!("{}/{}", link.platform(), link.name()),
        };
        match src {
            None => format!("{base}/watch/{page}"),
            Some(tag) => format!("{base}/watch/{page}?src={}", tag.as_str()),
        }
    }
}
