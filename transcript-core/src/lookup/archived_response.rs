//! The fast path of a lookup: an archived transcript for a caller without a key.

use super::{AttributionTag, Lookup, VideoReference};
use crate::{
    archive::{StoredBody, TrackSelector},
    video::{VideoId, VideoLink},
};

/// The response with an archived transcript as a stored body.
///
/// Equal to the [`super::LookupResponse`] of a caller without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedResponse {
    /// The video.
    pub video: VideoId,
    /// The URL of the transcript page, with the attribution tag.
    pub watch_url: String,
    /// The stored body.
    pub body: StoredBody,
}

impl Lookup {
    /// The response with an archived transcript for a caller without a key, if its stored body can be sent.
    ///
    /// `None` says nothing about the transcript: [`Lookup::look_up`] then has the response. Any executor can poll this.
    pub async fn archived_response(
        &self,
        reference: &VideoReference,
        src: Option<AttributionTag>,
    ) -> Option<ArchivedResponse> {
        // A short link must be resolved first.
        let link = reference.link().ok()?;
        let VideoLink::Video(video) = &link else { return None };
        let body = self.transcripts.stored_body(video, &TrackSelector::Default).await;
        let body = body.inspect_err(|error| tracing::debug!(%error, "stored body read failed")).ok()??;
        let watch_url = self.options.watch_url(&link, src);
        Some(ArchivedResponse { video: video.clone(), watch_url, body })
    }
}
