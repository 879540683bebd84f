//! Instagram's videos, in one request.
//!
//! Instagram publishes no captions, so this finds the file for speech-to-text.

mod classify;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod page;
mod post;
pub(crate) mod request;

use std::sync::Arc;

use async_trait::async_trait;
use http::StatusCode;
use transcript_core::{
    supplier::{SupplyError, SupplyMonitor, SupplyRequest},
    time::Clock,
    video::Platform,
};

use self::request::PLATFORM;
use crate::{
    http::HttpTransport,
    social::{Media, MediaSource, PlatformSession, SocialFailure, attempt_over_routes},
};

/// Maximum number of requests per lookup: Instagram rate-limits pages.
const REQUESTS_MAX: u32 = 8;

/// Media of Instagram's reels and video posts.
///
/// It requests the post's page once, like a browser. Other posts on the page are ignored.
#[derive(Debug)]
pub struct InstagramMedia {
    http: Arc<HttpTransport>,
    clock: Arc<dyn Clock>,
}

impl InstagramMedia {
    /// Creates the source over this transport. Deadlines refer to `clock`.
    pub fn new(http: Arc<HttpTransport>, clock: Arc<dyn Clock>) -> Self {
        Self { http, clock }
    }
}

#[async_trait]
impl MediaSource for InstagramMedia {
    fn platform(&self) -> Platform {
        Platform::Instagram
    }

    async fn media(
        &self,
        request: &SupplyRequest,
        monitor: &dyn SupplyMonitor,
    ) -> Result<Media, SupplyError> {
        let mut session =
            PlatformSession::new(&self.http, self.clock.as_ref(), request, monitor, PLATFORM, REQUESTS_MAX);
        attempt_over_routes!(session, media(&mut session, request))
    }
}

/// Fetches the page and finds the video in it.
async fn media(session: &mut PlatformSession<'_>, request: &SupplyRequest) -> Result<Media, SocialFailure> {
    let page_request = request::page(&request.video);
    let page_request =
        page_request.ok_or_else(|| SocialFailure::Unreadable("the post has no URL".to_owned()))?;
    let response = session.follow(&page_request, classify::classify_redirect).await?;
    let node = match response.status {
        StatusCode::NOT_FOUND => return Err(SocialFailure::Removed),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return Err(SocialFailure::Forbidden(status.as_u16()));
        }
        status if !status.is_success() => {
            return Err(SocialFailure::Unreadable(format!("it returned HTTP {}", status.as_u16())));
        }
        _ => page::post(&response.body, request.video.id())?,
    };
    let post = post::read(&node, request.video.id())?;
    let found = Media::found(
        session,
        request,
        post.details,
        post.addresses,
        request::FILES,
        &request::file_headers(),
    )?;
    Ok(Media { has_audio: post.has_audio, ..found })
}
