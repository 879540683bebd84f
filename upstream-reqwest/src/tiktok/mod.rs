//! TikTok captions in two requests.
//!
//! The first one loads the post's page, whose state lists the tracks. The second one loads the captions of a track.

mod classify;
mod fetch;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod media;
mod page;
pub(crate) mod request;
mod state;
mod subtitles;

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    supplier::{
        Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
    },
    time::Clock,
    video::Platform,
};

use self::request::PLATFORM;
use crate::{
    http::HttpTransport,
    social::{Media, MediaSource, PlatformSession, attempt_over_routes},
};

/// The supplier's name.
const NAME: &str = "tiktok-captions";
/// Maximum number of requests per lookup, over all routes, redirects and caption URLs.
const REQUESTS_MAX: u32 = 12;

/// The captions of TikTok, as a supplier named `tiktok-captions`.
///
/// It requests the post's page like a browser, and then the captions at the URLs in the page's state, with the cookies
/// that the page set. A page with a bot check is reported as such.
#[derive(Debug)]
pub struct TikTokCaptions {
    http: Arc<HttpTransport>,
    clock: Arc<dyn Clock>,
}

impl TikTokCaptions {
    /// Creates the supplier over this transport. Deadlines refer to `clock`.
    pub fn new(http: Arc<HttpTransport>, clock: Arc<dyn Clock>) -> Self {
        Self { http, clock }
    }
}

#[async_trait]
impl Supplier for TikTokCaptions {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions(NAME, &[Platform::TikTok])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        if request.video.platform() != Platform::TikTok {
            let message = format!("{NAME} supports TikTok only.");
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let monitor = monitor.as_ref();
        let mut session =
            PlatformSession::new(&self.http, self.clock.as_ref(), &request, monitor, PLATFORM, REQUESTS_MAX);
        attempt_over_routes!(session, fetch::supply(&mut session, &request))
    }
}

#[async_trait]
impl MediaSource for TikTokCaptions {
    fn platform(&self) -> Platform {
        Platform::TikTok
    }

    async fn media(
        &self,
        request: &SupplyRequest,
        monitor: &dyn SupplyMonitor,
    ) -> Result<Media, SupplyError> {
        let mut session =
            PlatformSession::new(&self.http, self.clock.as_ref(), request, monitor, PLATFORM, REQUESTS_MAX);
        attempt_over_routes!(session, fetch::media(&mut session, request))
    }
}
