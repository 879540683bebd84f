//! Instagram's videos, in one request. The platform shows captions to nobody, so there is nothing to read: this
//! finds the file for whoever listens.

mod page;
mod post;
pub(crate) mod request;
mod signals;

use std::sync::Arc;

use async_trait::async_trait;
use http::StatusCode;
use transcript_core::{
    supplier::{Ask, SupplyError, Watcher},
    time::Clock,
    video::Platform,
};

use crate::{
    http::Http,
    social::{Errand, Media, MediaSource, Refusal},
};

/// The most requests of one look-up: pages are what Instagram counts.
const REQUESTS_MAX: u32 = 8;

/// Instagram's reels and video posts, as something to listen to.
///
/// It asks for the post's page as a browser would, once. What the page holds of other posts is left alone.
#[derive(Debug)]
pub struct InstagramVideos {
    http: Arc<Http>,
    clock: Arc<dyn Clock>,
}

impl InstagramVideos {
    /// The videos, over this transport. The clock is the one that deadlines are given by.
    pub fn new(http: Arc<Http>, clock: Arc<dyn Clock>) -> Self {
        Self { http, clock }
    }
}

#[async_trait]
impl MediaSource for InstagramVideos {
    fn platform(&self) -> Platform {
        Platform::Reels
    }

    async fn media(&self, ask: &Ask, watcher: &dyn Watcher) -> Result<Media, SupplyError> {
        let mut errand = Errand::new(&self.http, self.clock.as_ref(), ask, watcher, REQUESTS_MAX);
        loop {
            let refusal = match media(&mut errand, ask).await {
                Ok(media) => return Ok(media),
                Err(refusal) => refusal,
            };
            tracing::debug!(video = %ask.video, ?refusal, "no video from Instagram");
            if !errand.begins_anew(&refusal, request::PLATFORM) {
                return Err(refusal.error(Platform::Reels));
            }
        }
    }
}

/// Asks for the page, and takes from it where the sound is.
async fn media(errand: &mut Errand<'_>, ask: &Ask) -> Result<Media, Refusal> {
    let request = request::page(&ask.video);
    let request = request.ok_or_else(|| Refusal::Unreadable("the post has no address".to_owned()))?;
    let answer = errand.follow(&request, signals::detour).await?;
    let node = match answer.status {
        StatusCode::NOT_FOUND => return Err(Refusal::Gone),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return Err(Refusal::Forbidden(status.as_u16()));
        }
        status if !status.is_success() => {
            return Err(Refusal::Unreadable(format!("it has the status HTTP {}", status.as_u16())));
        }
        _ => page::post(&answer.body, ask.video.id())?,
    };
    let post = post::read(&node, ask.video.id())?;
    let found =
        Media::found(errand, ask, post.details, post.addresses, request::FILES, &request::file_headers())?;
    Ok(Media { has_audio: post.has_audio, ..found })
}
