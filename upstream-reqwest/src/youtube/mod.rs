//! YouTube captions in two requests: one for the video's tracks, one for a track's captions. `lists`: playlists and
//! channels.

mod captions;
mod chapters;
mod classify;
mod clients;
mod details;
mod failure;
mod fetch;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod id_spelling;
mod lists;
mod media;
mod player;
mod player_data;
#[cfg(test)]
mod recordings;
pub(crate) mod request;
#[cfg(test)]
mod tests;
mod tracks;

#[cfg(feature = "ytdlp")]
pub(crate) use failure::{just_ended, translations_throttled};
#[cfg(feature = "ytdlp")]
pub(crate) use id_spelling::{canonical, is_same};
#[cfg(feature = "ytdlp")]
pub(crate) use media::FILES;

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    supplier::{
        Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
    },
    time::Clock,
    video::Platform,
};

pub use clients::{ClientIdentity, YouTubeOptions};
pub use lists::YouTubeLists;
#[cfg(feature = "ytdlp")]
pub(crate) use lists::{absence, by_alert, no_tab};

use crate::{deadline::lookup_end, http::HttpTransport, social::attempt_over_routes};
use fetch::YouTubeFetch;

/// The supplier's name.
const NAME: &str = "youtube-captions";
/// Maximum number of requests of one lookup, over all clients and routes.
///
/// YouTube soon blocks an address that repeats requests which it does not want to answer.
const REQUESTS_MAX: u32 = 12;

/// The captions of YouTube, as a supplier named `youtube-captions`.
///
/// It requests the video's player data as one of YouTube's own clients, then the captions at the URL in it. If
/// YouTube rejects a client, the next one is used. If YouTube blocks the egress route, the supplier stops or
/// continues over another proxy.
#[derive(Debug)]
pub struct YouTubeCaptions {
    http: Arc<HttpTransport>,
    options: YouTubeOptions,
    clock: Arc<dyn Clock>,
}

impl YouTubeCaptions {
    /// Creates the supplier over this transport. Deadlines refer to `clock`.
    pub fn new(http: Arc<HttpTransport>, options: YouTubeOptions, clock: Arc<dyn Clock>) -> Self {
        Self { http, options, clock }
    }

    /// Begins a fetch for this request, until shortly before its deadline.
    fn begin<'a>(&'a self, request: &'a SupplyRequest, monitor: &'a dyn SupplyMonitor) -> YouTubeFetch<'a> {
        YouTubeFetch {
            request,
            monitor,
            clients: &self.options.clients,
            deadline: lookup_end(self.clock.as_ref(), request.deadline),
            session: self.http.session().with_request_limit(REQUESTS_MAX),
            visitor: None,
        }
    }
}

#[async_trait]
impl Supplier for YouTubeCaptions {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions(NAME, &[Platform::YouTube])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        if request.video.platform() != Platform::YouTube {
            let message = format!("{NAME} supports YouTube only.");
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let mut fetch = self.begin(&request, monitor.as_ref());
        attempt_over_routes!(fetch, fetch.run())
    }
}
