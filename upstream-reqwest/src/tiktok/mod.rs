//! TikTok's captions, in two requests: the post's page, whose state lists them, and the words of one.

mod call;
mod media;
mod page;
pub(crate) mod request;
mod signals;
mod state;
mod subtitles;

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    time::Clock,
    video::Platform,
};

use crate::{
    http::Http,
    social::{Errand, Media, MediaSource},
};

/// The supplier's name.
const NAME: &str = "tiktok-captions";
/// The most requests of one look-up, over all exits, redirects and addresses of captions.
const REQUESTS_MAX: u32 = 12;

/// The captions that TikTok has, as a supplier named `tiktok-captions`.
///
/// It asks for the post's page as a browser would, and then for the captions at the addresses found in the
/// page's state, with the cookies that the page set. A page that wants a proof of being human is told as such.
#[derive(Debug)]
pub struct TikTokCaptions {
    http: Arc<Http>,
    clock: Arc<dyn Clock>,
}

impl TikTokCaptions {
    /// The supplier, over this transport. The clock is the one that deadlines are given by.
    pub fn new(http: Arc<Http>, clock: Arc<dyn Clock>) -> Self {
        Self { http, clock }
    }
}

#[async_trait]
impl Supplier for TikTokCaptions {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: NAME.to_owned(),
            platforms: vec![Platform::ShortVideo],
            kind: SupplierKind::Captions,
        }
    }

    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        if ask.video.platform() != Platform::ShortVideo {
            let message = format!("{NAME} has captions of TikTok only.");
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let watcher = watcher.as_ref();
        let mut errand = Errand::new(&self.http, self.clock.as_ref(), &ask, watcher, REQUESTS_MAX);
        loop {
            let refusal = match call::supply(&mut errand, &ask).await {
                Ok(supplied) => return Ok(supplied),
                Err(refusal) => refusal,
            };
            tracing::debug!(video = %ask.video, ?refusal, "no captions from TikTok");
            if !errand.begins_anew(&refusal, request::PLATFORM) {
                return Err(refusal.error(Platform::ShortVideo));
            }
        }
    }
}

#[async_trait]
impl MediaSource for TikTokCaptions {
    fn platform(&self) -> Platform {
        Platform::ShortVideo
    }

    async fn media(&self, ask: &Ask, watcher: &dyn Watcher) -> Result<Media, SupplyError> {
        let mut errand = Errand::new(&self.http, self.clock.as_ref(), ask, watcher, REQUESTS_MAX);
        loop {
            let refusal = match call::media(&mut errand, ask).await {
                Ok(media) => return Ok(media),
                Err(refusal) => refusal,
            };
            if !errand.begins_anew(&refusal, request::PLATFORM) {
                return Err(refusal.error(Platform::ShortVideo));
            }
        }
    }
}
