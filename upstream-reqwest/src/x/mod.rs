//! X captions: the post, the playlist of its video, and the captions in the playlist.

mod audio;
mod classify;
mod fetch;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guest_token;
mod media;
mod options;
mod playlist;
pub(crate) mod request;
mod syndication;
pub(crate) mod tweet;

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    supplier::{
        Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
    },
    time::Clock,
    video::Platform,
};

#[cfg(feature = "ytdlp")]
pub(crate) use fetch::check_playlist;
pub use options::XOptions;

use crate::{
    http::HttpTransport,
    social::{Media, MediaSource, PlatformSession, attempt_over_routes},
};
use guest_token::GuestTokenCache;
use request::PLATFORM;

/// The supplier's name.
const NAME: &str = "x-captions";
/// Maximum number of requests per lookup, over all routes and caption parts.
const REQUESTS_MAX: u32 = 40;

/// The captions of X, as a supplier named `x-captions`.
///
/// It requests the post as a guest of X's own pages, with a token that all lookups share. If X does not answer guests,
/// it uses the syndication service for other sites. X's own captions count as generated. A post that only quotes one
/// with a video has none.
#[derive(Debug)]
pub struct XCaptions {
    http: Arc<HttpTransport>,
    options: XOptions,
    clock: Arc<dyn Clock>,
    guest_tokens: GuestTokenCache,
}

impl XCaptions {
    /// Creates the supplier over this transport. Deadlines refer to `clock`.
    pub fn new(http: Arc<HttpTransport>, options: XOptions, clock: Arc<dyn Clock>) -> Self {
        Self { http, options, clock, guest_tokens: GuestTokenCache::default() }
    }
}

#[async_trait]
impl Supplier for XCaptions {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions(NAME, &[Platform::X])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        if request.video.platform() != Platform::X {
            let message = format!("{NAME} supports X only.");
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let monitor = monitor.as_ref();
        let mut session =
            PlatformSession::new(&self.http, self.clock.as_ref(), &request, monitor, PLATFORM, REQUESTS_MAX);
        attempt_over_routes!(
            session,
            fetch::supply(&mut session, &request, &self.options, &self.guest_tokens)
        )
    }
}

#[async_trait]
impl MediaSource for XCaptions {
    fn platform(&self) -> Platform {
        Platform::X
    }

    async fn media(
        &self,
        request: &SupplyRequest,
        monitor: &dyn SupplyMonitor,
    ) -> Result<Media, SupplyError> {
        let mut session =
            PlatformSession::new(&self.http, self.clock.as_ref(), request, monitor, PLATFORM, REQUESTS_MAX);
        attempt_over_routes!(session, fetch::media(&mut session, request, &self.options, &self.guest_tokens))
    }
}
