//! Finds audio URLs in player data.
//!
//! Only plain URLs are used. Most clients receive URLs that only YouTube's own players can decode.

use async_trait::async_trait;
use http::StatusCode;
use serde_json::Value;
use transcript_core::{
    supplier::{SupplyError, SupplyMonitor, SupplyRequest},
    video::Platform,
};

use super::{
    YouTubeCaptions, classify,
    clients::ClientIdentity,
    details::YouTubeDetails,
    failure::YouTubeFailure,
    fetch::{AttemptFailure, YouTubeFetch, higher_weight},
    player,
    player_data::StreamingData,
    request,
    tracks::ORIGINAL_AUDIO,
};
use crate::{
    http::is_allowed,
    json::{field, items, number},
    social::{Media, MediaAddress, MediaSource, attempt_over_routes},
};

/// The hosts of media files.
pub(crate) const FILES: &[&str] = &[".googlevideo.com"];
/// Maximum number of formats read and URLs kept, and maximum length of a URL in bytes.
const FORMS_MAX: usize = 500;
const ADDRESSES_MAX: usize = 6;
const ADDRESS_MAX: usize = 8_192;

#[async_trait]
impl MediaSource for YouTubeCaptions {
    fn platform(&self) -> Platform {
        Platform::YouTube
    }

    async fn media(
        &self,
        request: &SupplyRequest,
        monitor: &dyn SupplyMonitor,
    ) -> Result<Media, SupplyError> {
        let mut fetch = self.begin(request, monitor);
        attempt_over_routes!(fetch, fetch.media())
    }
}

impl YouTubeFetch<'_> {
    /// Tries the clients in order, until one receives a plain URL.
    async fn media(&mut self) -> Result<Media, AttemptFailure> {
        let mut best_failure: Option<AttemptFailure> = None;
        for client in self.clients {
            let failure = match self.media_for_client(client).await {
                Ok(media) => return Ok(media),
                Err(failure) => failure,
            };
            tracing::debug!(client = %client, video = %self.request.video, ?failure, "client returned no audio");
            let attempt_failure = self.attempt_failure(failure);
            if attempt_failure.failure.is_conclusive() {
                return Err(attempt_failure);
            }
            best_failure = Some(match best_failure {
                Some(best_failure) => higher_weight(best_failure, attempt_failure),
                None => attempt_failure,
            });
        }
        Err(best_failure.unwrap_or_else(|| self.attempt_failure(YouTubeFailure::TooOld)))
    }

    async fn media_for_client(&mut self, client: &ClientIdentity) -> Result<Media, YouTubeFailure> {
        self.check_cancelled()?;
        let request = request::player(client, &self.request.video, self.visitor.as_deref());
        let response = self.send(&request).await?;
        if let Some(failure) = response.location.as_ref().and_then(classify::classify_redirect) {
            return Err(failure);
        }
        let text = String::from_utf8_lossy(&response.body);
        let none = || classify::page(&response.body).unwrap_or(YouTubeFailure::NotPlayerData);
        let data = StreamingData::read(&text).ok_or_else(none);
        let details = data.and_then(|data| player::playable(&data, &self.request.video));
        let details = details.map_err(|failure| match (&failure, response.status) {
            (YouTubeFailure::NotPlayerData, StatusCode::FORBIDDEN) => YouTubeFailure::Forbidden,
            (YouTubeFailure::NotPlayerData, status) if !status.is_success() => {
                YouTubeFailure::BadRequest(status.as_u16())
            }
            _ => failure,
        })?;
        let mut addresses = addresses(&StreamingData::streams(&text));
        if addresses.is_empty() {
            return Err(YouTubeFailure::NoPlainSound);
        }
        for address in &mut addresses {
            address.headers = request::headers(client);
        }
        let YouTubeDetails { title, author, duration_ms, metadata, .. } = details;
        Ok(Media {
            video: self.request.video.clone(),
            title,
            author,
            duration_ms,
            metadata,
            language: None,
            has_audio: Some(true),
            addresses,
            hosts: FILES,
            route: self.session.route(),
        })
    }
}

/// URLs of formats with the original audio, the smallest first; formats with video only if there is no
/// audio-only format.
pub(super) fn addresses(streams: &Value) -> Vec<MediaAddress> {
    let sound =
        |form: &&Value| field(form, "mimeType").as_str().is_some_and(|kind| kind.starts_with("audio/"));
    let sounds = || items(streams, "adaptiveFormats", FORMS_MAX).filter(sound);
    let track = |form: &Value, name| field(field(form, "audioTrack"), name).clone();
    // Of a dubbed video all audio tracks but one are in other languages than the original. The default one may be a
    // dubbed one, since it depends on the client.
    let is_original =
        |form: &&Value| track(form, "id").as_str().is_some_and(|id| id.ends_with(ORIGINAL_AUDIO));
    let is_default = |form: &&Value| {
        track(form, "audioIsDefault").as_bool() != Some(false)
            && track(form, "isAutoDubbed").as_bool() != Some(true)
    };
    let has_original = sounds().any(|form| is_original(&form));
    let mut found: Vec<_> = sounds()
        .filter(|form| if has_original { is_original(form) } else { is_default(form) })
        .filter_map(address)
        .collect();
    if found.is_empty() {
        found = items(streams, "formats", FORMS_MAX).filter_map(address).collect();
    }
    found.sort_by_key(|address| address.bitrate.unwrap_or(u64::MAX));
    found.truncate(ADDRESSES_MAX);
    found
}

/// The URL of a format; `None` if it is encrypted or not on a host of YouTube's files.
fn address(form: &Value) -> Option<MediaAddress> {
    let text = field(form, "url").as_str().filter(|text| text.len() <= ADDRESS_MAX)?;
    let found = MediaAddress::at("https://www.youtube.com/", text)?;
    if !is_allowed(&found.url, FILES) {
        return None;
    }
    Some(MediaAddress {
        bytes: number(field(form, "contentLength")),
        bitrate: number(field(form, "bitrate")),
        ..found
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(kind: &str, bitrate: u64, url: &str) -> Value {
        json!({"mimeType": kind, "bitrate": bitrate, "url": url, "contentLength": "700"})
    }

    #[test]
    fn audio_urls_smallest_original_comes_first() {
        let file = |name: &str| format!("https://rr1---sn-a.googlevideo.com/{name}");
        let mut dub = form("audio/mp4", 10, &file("dub"));
        dub["audioTrack"] = json!({"audioIsDefault": false});
        let streams = json!({
            "formats": [form("video/mp4; codecs=\"avc1, mp4a\"", 5, &file("both"))],
            "adaptiveFormats": [
                form("video/mp4", 1, &file("picture")),
                form("audio/mp4", 130_000, &file("large")),
                form("audio/webm; codecs=\"opus\"", 50_000, &file("small")),
                form("audio/mp4", 9, "https://evil.example/a"),
                form("audio/mp4", 9, "http://rr1---sn-a.googlevideo.com/plain"),
                {"mimeType": "audio/mp4", "signatureCipher": "s=1&url=x"},
                dub,
            ],
        });
        let found = addresses(&streams);
        let paths: Vec<_> = found.iter().map(|address| address.url.path()).collect();
        assert_eq!(paths, ["/small", "/large"]);
        assert_eq!((found[0].bytes, found[0].bitrate), (Some(700), Some(50_000)));
        let only_both = json!({"formats": streams["formats"]});
        assert_eq!(addresses(&only_both)[0].url.path(), "/both");
        for odd in [json!(null), json!({"adaptiveFormats": 5}), json!({"adaptiveFormats": [5, {"url": 1}]})] {
            assert!(addresses(&odd).is_empty(), "{odd}");
        }
    }

    #[test]
    fn audio_of_dubbed_video_is_original() {
        let paths = |tracks: &[Value]| -> Vec<String> {
            let form = |(index, track): (usize, &Value)| {
                let mut form = form("audio/mp4", 10, &format!("https://rr1---sn-a.googlevideo.com/{index}"));
                form["audioTrack"] = track.clone();
                form
            };
            let forms: Vec<_> = tracks.iter().enumerate().map(form).collect();
            let found = addresses(&json!({"adaptiveFormats": forms}));
            found.iter().map(|address| address.url.path().to_owned()).collect()
        };
        let track = |id: &str, is_default: bool, is_dubbed: bool| json!({"id": id, "audioIsDefault": is_default, "isAutoDubbed": is_dubbed});
        assert_eq!(paths(&[track("es.10", true, true), track("en.4", false, false)]), ["/1"]);
        assert_eq!(paths(&[track("es", true, true), json!({"audioIsDefault": true})]), ["/1"]);
    }

    #[test]
    fn streams_bare_or_wrapped_are_found() {
        let bare = json!({"streamingData": {"formats": [1]}});
        let wrapped = json!({"playerResponse": bare});
        for data in [&bare, &wrapped] {
            assert_eq!(StreamingData::streams(&data.to_string()), json!({"formats": [1]}));
        }
        for odd in ["", "{}", "[]", "{\"streamingData\": 5}"] {
            assert!(!StreamingData::streams(odd).is_object(), "{odd}");
        }
    }
}
