//! Captions of the long-form site, in two requests: what tracks a video has, and the words of one.

mod call;
mod captions;
mod clients;
mod parts;
mod player;
#[cfg(test)]
mod recordings;
mod refusal;
mod request;
mod signals;
#[cfg(test)]
mod tests;
mod tracks;

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
        let mut attempt = 0;
        loop {
            let clients = &self.options.clients;
            let visit = self.http.visit();
            let mut call = Call { ask, watcher, clients, deadline, visit, visitor: None };
            match call.run().await {
                Err(refusal) if refusal.is_distrust() => {
                    let others = call.visit.blocked();
                    if !others || attempt >= self.http.retries() || Instant::now() >= deadline {
                        return Err(refusal);
                    }
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
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
        let deadline = Instant::now() + left.saturating_sub(MARGIN);
        self.calls(&ask, watcher.as_ref(), deadline).await.map_err(|refusal| refusal.error())
    }
}
