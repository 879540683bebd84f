//! Entry points of the fuzz targets.

use http::StatusCode;
use transcript_core::video::{Platform, VideoLink};
use url::Url;

use super::classify::{RedirectStep, classify_response};

/// The link that a redirect of a platform's short link leads to.
pub fn redirect_target(platform: Platform, location: &str) -> Option<VideoLink> {
    let location = Url::parse(location).ok();
    match classify_response(platform, StatusCode::FOUND, location.as_ref()) {
        Ok(RedirectStep::Video(video)) => Some(VideoLink::Video(video)),
        Ok(RedirectStep::ShortLink(link)) => Some(VideoLink::Short(link)),
        Ok(RedirectStep::NotAVideo(_)) => None,
        Err(failure) => {
            assert!(!failure.error(platform).message().is_empty());
            None
        }
    }
}
