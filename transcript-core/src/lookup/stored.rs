//! The shortest way of a look-up: an archived transcript, for someone without a key.

use super::{Lookup, Reference, SourceTag};
use crate::{
    archive::{StoredBody, Wish},
    video::{Platform, VideoLink},
};

/// The answer that has an archived transcript, as it is stored; the same as a
/// [`super::LookupAnswer`] to someone without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The platform.
    pub platform: Platform,
    /// The video's id.
    pub video_id: String,
    /// Where a person can read the transcript, with the attribution tag.
    pub watch_url: String,
    /// The transcript.
    pub body: StoredBody,
}

impl Lookup {
    /// The archived answer to someone without a key, where it is stored in the form in which it is sent.
    ///
    /// With none nothing is said: [`Lookup::look_up`] has the answer then, be it a transcript, a reason why
    /// there is none, or a fault. Any executor may poll this.
    pub async fn stored(&self, reference: &Reference, src: Option<SourceTag>) -> Option<StoredAnswer> {
        // A short link has to be followed first.
        let link = reference.link().ok()?;
        let VideoLink::Video(video) = &link else { return None };
        let body = match self.parts.transcripts.body(video, &Wish::Default).await {
            Ok(body) => body?,
            Err(error) => {
                tracing::debug!(%error, "a stored transcript could not be sent as it is");
                return None;
            }
        };
        let watch_url = self.parts.options.watch_url(&link, src);
        Some(StoredAnswer { platform: video.platform(), video_id: video.id().to_owned(), watch_url, body })
    }
}
