//! Entry points of the fuzz targets.

use transcript_core::{Timestamp, transcript::TrackSelector, video::VideoId};
use url::Url;

use super::{
    classify, lists, media,
    player::{self, PlayerOutcome},
    player_data::StreamingData,
};
use crate::http::is_allowed;

/// Reads a response to a request for the player data of a video: tracks and media files.
pub fn player_response(body: &[u8], video: &VideoId, selector: &TrackSelector) {
    classify::page(body);
    match player::interpret(body, video).outcome {
        PlayerOutcome::Tracks { details, tracks } => {
            assert!(details.metadata.check().is_ok(), "{:?}", details.metadata);
            assert!(!tracks.is_empty() && !tracks.infos().is_empty());
            let choice = tracks.choose(selector);
            let substitute = tracks.choose_instead(selector, |_| true);
            assert!(substitute.is_none() || choice.is_some());
        }
        PlayerOutcome::Failed(failure) => drop(failure.error()),
    }
    let text = String::from_utf8_lossy(body);
    if let Some(data) = StreamingData::read(&text)
        && player::playable(&data, video).is_ok()
    {
        for address in media::addresses(&StreamingData::streams(&text)) {
            assert!(is_allowed(&address.url, media::FILES), "{}", address.url);
        }
    }
}

/// Classifies the target of a redirect.
pub fn redirect(location: &str) {
    if let Ok(location) = Url::parse(location) {
        classify::classify_redirect(&location);
    }
}

/// Reads a response with a page of a list, as each part of a list.
pub fn list_response(body: &[u8], now: Timestamp) {
    if let Some(response) = lists::parse(body) {
        lists::fuzz(&response, now);
    }
}
