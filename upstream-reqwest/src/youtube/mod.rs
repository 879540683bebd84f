//! Captions of the long-form site, in two requests: what tracks a video has, and the words of one.

mod call;
mod captions;
mod clients;
mod media;
mod parts;
mod player;
#[cfg(test)]
mod recordings;
mod refusal;
pub(crate) mod request;
mod signals;
#[cfg(test)]
mod tests;
mod tracks;

#[cfg(feature = "ytdlp")]
pub(crate) use media::FILES;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::Instant;
use transcript_core::{
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    time::Clock,
    video::Platform,
};

pub use clients::{ClientIdentity, YouTubeOptions};

use crate::http::Http;
use call::Call;
use refusal::Refusal;

/// The supplier's name.
const NAME: &str = "youtube-captions";
/// How long before the caller's deadline it gives up, so that its own verdict still arrives.
const MARGIN: Duration = Duration::from_millis(250);
/// The longest that one look-up takes, and the most requests that it makes, over all clients and exits:
/// whoever asks again and again when YouTube does not want to answer is soon not answered at all.
const PATIENCE: Duration = Duration::from_secs(60);
const REQUESTS_MAX: u32 = 12;

/// The captions that YouTube has, as a supplier named `youtube-captions`.
///
/// It asks for the video's player data as one of YouTube's own clients, and then for the captions at the
/// address found there. Where one client is refused it asks as the next; where YouTube distrusts the
/// address that we ask from it stops, or goes on through another proxy.
#[derive(Debug)]
pub struct YouTubeCaptions {
    http: Arc<Http>,
    options: YouTubeOptions,
    clock: Arc<dyn Clock>,
}

impl YouTubeCaptions {
    /// The supplier, over this transport. The clock is the one that deadlines are given by.
    pub fn new(http: Arc<Http>, options: YouTubeOptions, clock: Arc<dyn Clock>) -> Self {
        Self { http, options, clock }
    }

    async fn calls(&self, ask: &Ask, watcher: &dyn Watcher, deadline: Instant) -> Result<Supplied, Refusal> {
        let clients = &self.options.clients;
        let visit = self.http.visit().at_most(REQUESTS_MAX);
        let mut call = Call { ask, watcher, clients, deadline, visit, visitor: None };
        let mut attempt = 0;
        loop {
            let refused = match call.run().await {
                Ok(supplied) => return Ok(supplied),
                Err(refused) => refused,
            };
            let others = call.is_distrusted(&refused);
            if !others || attempt >= self.http.retries() || Instant::now() >= deadline {
                return Err(refused.refusal);
            }
            // Whoever comes from another address is somebody else.
            call.visitor = None;
            attempt += 1;
        }
    }
}

/// How long a look-up may take when its caller waits for `left`.
fn patience(left: Duration) -> Duration {
    left.saturating_sub(MARGIN).min(PATIENCE)
}

#[async_trait]
impl Supplier for YouTubeCaptions {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: NAME.to_owned(),
            platforms: vec![Platform::VideoSite],
            kind: SupplierKind::Captions,
        }
    }

    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        if ask.video.platform() != Platform::VideoSite {
            let message = format!("{NAME} has captions of YouTube only.");
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let left = ask.deadline.since(self.clock.now());
        let deadline = Instant::now() + patience(left);
        self.calls(&ask, watcher.as_ref(), deadline).await.map_err(|refusal| refusal.error())
    }
}
