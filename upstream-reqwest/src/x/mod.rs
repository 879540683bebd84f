//! X's captions: the post, the playlist of its video, and the captions that this names.

mod call;
mod guest;
mod media;
mod options;
mod playlist;
pub(crate) mod request;
mod signals;
mod sound;
mod syndication;
pub(crate) mod tweet;

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    time::Clock,
    video::Platform,
};

pub use options::XOptions;

use crate::{
    http::Http,
    social::{Errand, Media, MediaSource},
};
use guest::GuestPass;

/// The supplier's name.
const NAME: &str = "x-captions";
/// The most requests of one look-up, over all exits and the parts of captions.
const REQUESTS_MAX: u32 = 40;

/// The captions that X has, as a supplier named `x-captions`.
///
/// It asks for the post as a guest of X's own pages, with a pass that all look-ups share, and where X does not
/// answer guests, as other sites' pages are told of it. What X wrote down itself is marked as generated. A
/// post that only quotes one with a video has none.
#[derive(Debug)]
pub struct XCaptions {
    http: Arc<Http>,
    options: XOptions,
    clock: Arc<dyn Clock>,
    pass: GuestPass,
}

impl XCaptions {
    /// The supplier, over this transport. The clock is the one that deadlines are given by.
    pub fn new(http: Arc<Http>, options: XOptions, clock: Arc<dyn Clock>) -> Self {
        Self { http, options, clock, pass: GuestPass::default() }
    }
}

#[async_trait]
impl Supplier for XCaptions {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: NAME.to_owned(),
            platforms: vec![Platform::Microblog],
            kind: SupplierKind::Captions,
        }
    }

    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        if ask.video.platform() != Platform::Microblog {
            let message = format!("{NAME} has captions of X only.");
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let watcher = watcher.as_ref();
        let mut errand = Errand::new(&self.http, self.clock.as_ref(), &ask, watcher, REQUESTS_MAX);
        loop {
            let refusal = match call::supply(&mut errand, &ask, &self.options, &self.pass).await {
                Ok(supplied) => return Ok(supplied),
                Err(refusal) => refusal,
            };
            tracing::debug!(video = %ask.video, ?refusal, "no captions from X");
            if !errand.begins_anew(&refusal, request::PLATFORM) {
                return Err(refusal.error(Platform::Microblog));
            }
        }
    }
}

#[async_trait]
impl MediaSource for XCaptions {
    fn platform(&self) -> Platform {
        Platform::Microblog
    }

    async fn media(&self, ask: &Ask, watcher: &dyn Watcher) -> Result<Media, SupplyError> {
        let mut errand = Errand::new(&self.http, self.clock.as_ref(), ask, watcher, REQUESTS_MAX);
        loop {
            let refusal = match call::media(&mut errand, ask, &self.options, &self.pass).await {
                Ok(media) => return Ok(media),
                Err(refusal) => refusal,
            };
            if !errand.begins_anew(&refusal, request::PLATFORM) {
                return Err(refusal.error(Platform::Microblog));
            }
        }
    }
}
