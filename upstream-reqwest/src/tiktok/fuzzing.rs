//! Entry points of the fuzz targets.

use transcript_core::video::{Platform, VideoId};

use super::{media, page, request, state, subtitles};
use crate::json::{field, path, text};

/// Reads the page of a post: tracks and media files.
pub fn page(body: &[u8]) {
    let detail = match page::detail(body) {
        Ok(detail) => detail,
        Err(failure) => return drop(failure.error(Platform::TikTok)),
    };
    // The post that the page is about, so that all of it is read.
    let id = text(path(&detail, &["itemInfo", "itemStruct", "id"]), 30).unwrap_or_default();
    let video = VideoId::new(Platform::TikTok, &id)
        .or_else(|_| VideoId::new(Platform::TikTok, "7123456789012345678"));
    let Ok(video) = video else { return };
    let item = match state::interpret(&detail, &video) {
        Ok(item) => item,
        Err(failure) => return drop(failure.error(Platform::TikTok)),
    };
    let details = state::details(item);
    assert!(details.metadata.cleaned(details.duration_ms).check().is_ok());
    if let Ok(post) = state::post(item) {
        for address in post.tracks.0.iter().flat_map(|track| &track.addresses) {
            // The transport checks its host.
            request::captions(address);
        }
    }
    let video = field(item, "video");
    media::addresses(video);
    subtitles::original_language(field(video, "claInfo"));
}
