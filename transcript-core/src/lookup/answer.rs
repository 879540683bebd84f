//! What Surface A answers.

use std::time::Duration;

use super::{FailureReason, KeyUse, LookupOptions, SourceTag};
use crate::{
    archive::StoredTranscript,
    video::{Platform, VideoLink},
};

/// The answer to a look-up, before it is put in a format.
#[derive(Clone, Debug)]
pub struct LookupAnswer {
    /// The platform.
    pub platform: Platform,
    /// The video's id; the code of a short link that could not be followed.
    pub video_id: String,
    /// Where a person can read the transcript, with the attribution tag.
    pub watch_url: String,
    /// What the caller's key has used; none without a known key.
    pub key: Option<KeyUse>,
    /// The transcript, or why there is none.
    pub availability: Availability,
}

/// The transcript, or why there is none.
#[derive(Clone, Debug)]
pub enum Availability {
    /// There is one.
    Available {
        /// The transcript.
        stored: StoredTranscript,
        /// Whether it was archived already when it was asked for.
        from_cache: bool,
    },
    /// There is none.
    Unavailable {
        /// Why.
        reason: FailureReason,
        /// The sentence for people.
        message: String,
        /// After how long it may be of use to ask again, where that is known.
        retry_after: Option<Duration>,
        /// What the reason leaves open, for programs: of a video without words the name of a
        /// [`SupplyReason`](crate::supplier::SupplyReason) or `withdrawn`, of a failure that passes
        /// `still_working` while the work goes on. None where there is no more to say.
        detail: Option<String>,
    },
}

impl Availability {
    /// No transcript, for this reason.
    pub(super) fn none(reason: FailureReason, message: impl Into<String>) -> Self {
        Self::Unavailable { reason, message: message.into(), retry_after: None, detail: None }
    }

    /// The same with what the reason leaves open; a transcript is as it is.
    pub(super) fn in_detail(self, name: &str) -> Self {
        match self {
            Self::Unavailable { reason, message, retry_after, .. } => {
                Self::Unavailable { reason, message, retry_after, detail: Some(name.to_owned()) }
            }
            available @ Self::Available { .. } => available,
        }
    }

    /// The same, of which it is known when it may be of use to ask again; a transcript is as it is.
    pub(super) fn again_after(self, wait: Option<Duration>) -> Self {
        match self {
            Self::Unavailable { reason, message, detail, .. } => {
                Self::Unavailable { reason, message, retry_after: wait, detail }
            }
            available @ Self::Available { .. } => available,
        }
    }
}

impl LookupOptions {
    /// The address of the human transcript page: `{base_url}/watch/{platform}/{id}?src={tag}`. A short link that
    /// was not followed has its name in place of an id, so that nobody takes its code for one.
    pub fn watch_url(&self, link: &VideoLink, src: Option<SourceTag>) -> String {
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
