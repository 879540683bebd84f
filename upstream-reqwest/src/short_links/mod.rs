//! Resolves the platforms' short links.
//!
//! Only the headers of a short link are requested, and the redirect target is checked by the link grammar before the
//! next request. The next request goes only to another short link of the same platform, at its canonical URL. So no
//! response can direct a request to another host.

mod classify;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod request_profile;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::Instant;
use transcript_core::{
    supplier::{LinkResolver, ResolveOutcome, SupplyError, SupplyReason},
    time::{Clock, Timestamp},
    video::{Platform, ShortLink},
};
use url::Url;

use crate::{
    deadline::call_end,
    http::{EgressSession, HttpRequest, HttpResponse, HttpTransport},
};
use classify::{RedirectStep, classify_response};
use failure::ShortLinkFailure;
use request_profile::RequestProfile;

/// Maximum number of redirects per link.
const REDIRECTS_MAX: usize = 5;

/// Follows the short links of TikTok, Instagram and X.
///
/// Every redirect target is checked before a request. It is requested only if it is another short link of the same
/// platform, over https and on one of the platform's few hosts for them. At most five redirects are followed. No
/// body is read. If the platform blocks the egress route, the resolver stops, or retries over another proxy.
#[derive(Debug)]
pub struct HttpShortLinkResolver {
    http: Arc<HttpTransport>,
    clock: Arc<dyn Clock>,
}

impl HttpShortLinkResolver {
    /// The platforms whose short links are followed.
    ///
    /// YouTube needs none: its short domain contains the video id.
    pub const PLATFORMS: [Platform; 3] = [Platform::TikTok, Platform::Instagram, Platform::X];

    /// Creates the resolver over this transport. Deadlines refer to `clock`.
    pub fn new(http: Arc<HttpTransport>, clock: Arc<dyn Clock>) -> Self {
        Self { http, clock }
    }

    /// Follows a link, over further egress routes while they are blocked and others are available.
    async fn follow(
        &self,
        link: &ShortLink,
        profile: &RequestProfile,
        deadline: Instant,
    ) -> Result<ResolveOutcome, ShortLinkFailure> {
        let mut session = self.http.session();
        loop {
            match follow_redirects(&mut session, link, profile, deadline).await {
                Err(failure) if failure.is_route_blocked() => {
                    let has_others = session.leave_route(session.route(), None);
                    if !has_others || !session.take_retry(Duration::ZERO, deadline) {
                        return Err(failure);
                    }
                }
                result => return result,
            }
        }
    }
}

#[async_trait]
impl LinkResolver for HttpShortLinkResolver {
    async fn resolve(&self, link: &ShortLink, deadline: Timestamp) -> Result<ResolveOutcome, SupplyError> {
        let platform = link.platform();
        let Some(profile) = RequestProfile::for_platform(platform) else {
            let message = format!("{} has no short links that need a request.", platform.name());
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        };
        let deadline = call_end(self.clock.as_ref(), deadline);
        self.follow(link, profile, deadline).await.map_err(|failure| {
            tracing::info!(platform = %platform, link = link.code(), ?failure, "short link resolution failed");
            failure.error(platform)
        })
    }
}

/// Follows redirects until one determines the target of the link.
async fn follow_redirects(
    session: &mut EgressSession,
    link: &ShortLink,
    profile: &RequestProfile,
    deadline: Instant,
) -> Result<ResolveOutcome, ShortLinkFailure> {
    let mut visited = vec![link.clone()];
    while let Some(link) = visited.last() {
        let response = request_headers(session, link, profile, deadline).await?;
        match classify_response(link.platform(), response.status, response.location.as_ref())? {
            RedirectStep::Video(video) => return Ok(ResolveOutcome::Video(video)),
            RedirectStep::NotAVideo(why) => return Ok(ResolveOutcome::NotAVideo(why)),
            RedirectStep::ShortLink(next) if visited.contains(&next) => break,
            RedirectStep::ShortLink(_) if visited.len() == REDIRECTS_MAX => break,
            RedirectStep::ShortLink(next) => visited.push(next),
        }
    }
    Ok(ResolveOutcome::NotAVideo(classify::redirect_loop_message(link.platform())))
}

/// Requests the headers of a link: with HEAD, and with GET if the platform rejects that.
async fn request_headers(
    session: &mut EgressSession,
    link: &ShortLink,
    profile: &RequestProfile,
    deadline: Instant,
) -> Result<HttpResponse, ShortLinkFailure> {
    let mut request = HttpRequest {
        method: Method::HEAD,
        url: Url::parse(link.address()).map_err(|_| ShortLinkFailure::NoAddress)?,
        hosts: profile.hosts,
        headers: profile.headers(),
        body: Bytes::new(),
        response_max: 0,
        has_own_rate_limit: false,
    };
    let response = session.send(&request, deadline).await.map_err(ShortLinkFailure::Transport)?;
    if response.status != StatusCode::METHOD_NOT_ALLOWED {
        return Ok(response);
    }
    request.method = Method::GET;
    session.send(&request, deadline).await.map_err(ShortLinkFailure::Transport)
}
