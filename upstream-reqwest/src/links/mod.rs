//! Where the platforms' short links lead.
//!
//! A short link is asked for its headers alone, and the address that they name is judged by the grammar of
//! links before anything else is asked. Only another short link of the same platform is ever asked next, at
//! its canonical address: so no answer, whatever it says, can lead a request elsewhere.

mod judgement;
mod refusal;
#[cfg(test)]
mod tests;
mod way;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::Instant;
use transcript_core::{
    supplier::{LinkResolver, Resolved, SupplyError, SupplyReason},
    time::{Clock, Timestamp},
    video::{Platform, ShortLink},
};
use url::Url;

use crate::http::{Answer, Http, Request, Visit};
use judgement::{Step, judge};
use refusal::Refusal;
use way::Way;

/// The most redirects that are looked at for one link.
const REDIRECTS_MAX: usize = 5;
/// How long before the caller's deadline it gives up, so that its own verdict still arrives.
const MARGIN: Duration = Duration::from_millis(250);

/// Follows the short links of TikTok, Instagram and X.
///
/// Every address that a platform names is judged before it is asked, and is asked only when it is another
/// short link of the same platform, over https and at one of that platform's few hosts for them. At most five
/// redirects are looked at. No body is read. Where the platform distrusts the address that we ask from,
/// it stops, or begins anew through another proxy.
#[derive(Debug)]
pub struct ShortLinks {
    http: Arc<Http>,
    clock: Arc<dyn Clock>,
}

impl ShortLinks {
    /// The platforms whose short links it follows. The long-form site has none: its short domain names the
    /// video.
    pub const PLATFORMS: [Platform; 3] = [Platform::ShortVideo, Platform::Reels, Platform::Microblog];

    /// The resolver, over this transport. The clock is the one that deadlines are given by.
    pub fn new(http: Arc<Http>, clock: Arc<dyn Clock>) -> Self {
        Self { http, clock }
    }

    /// Follows a link, through one exit after another as long as they are distrusted and others are there.
    async fn follow(&self, link: &ShortLink, way: &Way, deadline: Instant) -> Result<Resolved, Refusal> {
        let mut attempt = 0;
        loop {
            let mut visit = self.http.visit();
            match redirects(&mut visit, link, way, deadline).await {
                Err(refusal) if refusal.is_distrust() => {
                    let exit = visit.exit();
                    let others = visit.distrusted(exit);
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
impl LinkResolver for ShortLinks {
    async fn resolve(&self, link: &ShortLink, deadline: Timestamp) -> Result<Resolved, SupplyError> {
        let platform = link.platform();
        let Some(way) = Way::of(platform) else {
            let message = format!("{} has no short links that must be followed.", platform.name());
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        };
        let left = deadline.since(self.clock.now());
        let deadline = Instant::now() + left.saturating_sub(MARGIN);
        self.follow(link, way, deadline).await.map_err(|refusal| {
            tracing::info!(platform = %platform, link = link.code(), ?refusal, "a short link was not followed");
            refusal.error(platform)
        })
    }
}

/// Looks at one redirect after another until one says what the link means.
async fn redirects(
    visit: &mut Visit,
    link: &ShortLink,
    way: &Way,
    deadline: Instant,
) -> Result<Resolved, Refusal> {
    let mut trail = vec![link.clone()];
    while let Some(link) = trail.last() {
        let answer = ask(visit, link, way, deadline).await?;
        match judge(link.platform(), answer.status, answer.location.as_ref())? {
            Step::Video(video) => return Ok(Resolved::Video(video)),
            Step::Nowhere(why) => return Ok(Resolved::Nowhere(why)),
            Step::Onward(next) if trail.contains(&next) => break,
            Step::Onward(_) if trail.len() == REDIRECTS_MAX => break,
            Step::Onward(next) => trail.push(next),
        }
    }
    Ok(Resolved::Nowhere(judgement::astray(link.platform())))
}

/// Asks a link for its headers: with HEAD, and with GET where a platform does not take that.
async fn ask(visit: &mut Visit, link: &ShortLink, way: &Way, deadline: Instant) -> Result<Answer, Refusal> {
    let mut request = Request {
        method: Method::HEAD,
        url: Url::parse(link.address()).map_err(|_| Refusal::NoAddress)?,
        hosts: way.hosts,
        headers: way.headers(),
        body: Bytes::new(),
        answer_max: 0,
        throttled_apart: false,
    };
    let answer = visit.send(&request, deadline).await.map_err(Refusal::Fault)?;
    if answer.status != StatusCode::METHOD_NOT_ALLOWED {
        return Ok(answer);
    }
    request.method = Method::GET;
    visit.send(&request, deadline).await.map_err(Refusal::Fault)
}
