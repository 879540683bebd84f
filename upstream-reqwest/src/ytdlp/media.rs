//! yt-dlp as a media source, for speech-to-text when the platform's own media source fails.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    supplier::{SupplyError, SupplyMonitor, SupplyRequest},
    video::Platform,
};

use super::{YtDlp, YtDlpFetch};
use crate::social::{Media, MediaSource};

/// The media of one platform's videos, found by yt-dlp.
///
/// yt-dlp only returns the file's URL; the transport downloads the file, from the platform's hosts only.
#[derive(Debug)]
pub struct YtDlpMedia {
    ytdlp: Arc<YtDlp>,
    platform: Platform,
}

impl YtDlpMedia {
    /// A media source for this platform.
    pub fn new(ytdlp: Arc<YtDlp>, platform: Platform) -> Self {
        Self { ytdlp, platform }
    }
}

#[async_trait]
impl MediaSource for YtDlpMedia {
    fn platform(&self) -> Platform {
        self.platform
    }

    async fn media(
        &self,
        request: &SupplyRequest,
        monitor: &dyn SupplyMonitor,
    ) -> Result<Media, SupplyError> {
        let ytdlp = self.ytdlp.as_ref();
        let deadline = ytdlp.deadline_for(request);
        let fetch = YtDlpFetch { program: &ytdlp.program, http: &ytdlp.http, monitor, deadline };
        let media = fetch.media(request).await;
        media.inspect_err(|error| tracing::debug!(video = %request.video, %error, "yt-dlp returned no audio"))
    }
}
