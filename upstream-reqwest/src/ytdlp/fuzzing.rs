//! Entry points of the fuzz targets.

use std::slice;

use serde_json::Value;
use transcript_core::{
    transcript::{LanguageTag, TrackKind},
    video::VideoId,
};

use super::lists;
use super::{
    classify::{caption_failure, classify_exit, explain_missing},
    info::YtDlpInfo,
};
use crate::http::is_allowed;

/// Hosts of captions and of files in the tests.
const HOSTS: &[&str] = &["www.youtube.com", ".googlevideo.com", ".tiktokcdn.com", "video.twimg.com"];

/// Reads the metadata of a video that yt-dlp prints.
pub fn info(printed: &[u8], video: &VideoId) {
    let Ok(info) = YtDlpInfo::read(printed) else { return };
    let platform = video.platform();
    info.is_of(video);
    let details = info.details(platform);
    assert!(details.metadata.check().is_ok(), "{:?}", details.metadata);
    info.live_phase();
    info.has_no_media();
    let mut tracks = info.tracks(platform);
    assert!(tracks.iter().all(|track| track.info.kind != TrackKind::Translated), "{tracks:?}");
    tracks.extend(info.translation(&tracks, &LanguageTag::english()));
    for track in &tracks {
        // The key is an argument and a pattern there.
        assert!(!track.key.starts_with('-') && !track.key.contains(['*', '.', ',']), "{}", track.key);
        let Some(input) = info.to_input(video, slice::from_ref(track), HOSTS) else { continue };
        for list in ["subtitles", "automatic_captions"] {
            let forms = input[list].as_object().into_iter().flat_map(|list| list.values());
            for form in forms.filter_map(Value::as_array).flatten() {
                let url = form["url"].as_str().and_then(|url| url::Url::parse(url).ok());
                assert!(url.is_some_and(|url| is_allowed(&url, HOSTS)), "{form}");
            }
        }
    }
    for address in info.audio_urls(platform, HOSTS) {
        assert!(is_allowed(&address.url, HOSTS), "{}", address.url);
    }
}

/// Reads the entries of a list that yt-dlp prints.
pub fn list(printed: &[u8], video: &VideoId) {
    lists::fuzz_entries(printed, video.platform());
}

/// Classifies the error output of yt-dlp.
pub fn errors(status: Option<i32>, errors: &str, video: &VideoId) {
    let platform = video.platform();
    let failure = classify_exit(status, errors, platform);
    assert!(!failure.error(platform).message().is_empty());
    assert!(!caption_failure(failure).error(platform).message().is_empty());
    lists::fuzz_errors(status, errors, platform);
    if let Some(failure) = explain_missing(errors, platform) {
        assert!(!failure.error(platform).message().is_empty());
    }
}
