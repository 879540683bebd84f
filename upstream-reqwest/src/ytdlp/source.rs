//! yt-dlp as a finder of sound, for whoever listens to videos whose own extractor gave nothing.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    supplier::{Ask, SupplyError, Watcher},
    video::Platform,
};

use super::{Call, YtDlp};
use crate::social::{Media, MediaSource};

/// The videos of a platform as yt-dlp finds them, as something to listen to.
///
/// It tells where a file is; the file itself is fetched by our own transport, from the platform's own hosts only.
#[derive(Debug)]
pub struct YtDlpSound {
    ytdlp: Arc<YtDlp>,
    platform: Platform,
}

impl YtDlpSound {
    /// The videos of this platform.
    pub fn new(ytdlp: Arc<YtDlp>, platform: Platform) -> Self {
        Self { ytdlp, platform }
    }
}

#[async_trait]
impl MediaSource for YtDlpSound {
    fn platform(&self) -> Platform {
        self.platform
    }

    async fn media(&self, ask: &Ask, watcher: &dyn Watcher) -> Result<Media, SupplyError> {
        let ytdlp = self.ytdlp.as_ref();
        let deadline = ytdlp.until(ask);
        let call = Call { program: &ytdlp.program, http: &ytdlp.http, watcher, deadline };
        let media = call.media(ask).await;
        media.inspect_err(|error| tracing::debug!(video = %ask.video, %error, "no sound from yt-dlp"))
    }
}
