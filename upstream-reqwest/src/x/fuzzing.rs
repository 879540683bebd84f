//! Entry points of the fuzz targets.

use transcript_core::video::{Platform, VideoId};

use super::{audio, classify, playlist, syndication, tweet};

/// Reads a response to a request for a post, in the formats of both services.
pub fn post(body: &[u8], video: &VideoId) {
    classify::errors(body);
    for result in [tweet::interpret(body, video).map(Some), syndication::interpret(body, video)] {
        match result {
            Ok(None) => {}
            Ok(Some(post)) => {
                assert!(post.files.is_sorted_by_key(|(rate, _)| *rate));
                assert!(post.details.metadata.cleaned(post.details.duration_ms).check().is_ok());
            }
            Err(failure) => drop(failure.error(Platform::X)),
        }
    }
}

/// The text of a post without HTML entities.
pub fn decode_entities(text: &str) -> String {
    tweet::decode_entities(text)
}

/// Reads an HLS playlist, of captions and of audio.
pub fn playlist(text: &str) {
    if let Ok(tracks) = playlist::tracks(text) {
        assert!(tracks.0.iter().all(|track| track.addresses.len() == 1));
    }
    for parts in [playlist::parts(text), audio::parts(text)].into_iter().flatten() {
        assert!(!parts.is_empty());
    }
    if let Ok(Some(address)) = audio::smallest(text) {
        assert!(text.contains(&address));
    }
}
