//! Where the sound of a video is: among the forms that player data lists with a plain address. Most clients are
//! told addresses that only YouTube's own players can make good; those are left alone.

use async_trait::async_trait;
use http::StatusCode;
use serde_json::Value;
use tokio::time::Instant;
use transcript_core::{
    supplier::{Ask, SupplyError, Watcher},
    time::Timestamp,
    video::Platform,
};

use super::{
    REQUESTS_MAX, YouTubeCaptions,
    call::{Call, Refused, more_telling},
    clients::ClientIdentity,
    parts::Data,
    patience,
    player::{self, Details, field, items},
    refusal::Refusal,
    request, signals,
};
use crate::{
    http::is_allowed,
    social::{Media, MediaAddress, MediaSource, json::number},
};

/// The hosts of files.
pub(crate) const FILES: &[&str] = &[".googlevideo.com"];
/// The most forms that are looked at, and addresses that are kept; the longest address, in bytes.
const FORMS_MAX: usize = 500;
const ADDRESSES_MAX: usize = 6;
const ADDRESS_MAX: usize = 8_192;

#[async_trait]
impl MediaSource for YouTubeCaptions {
    fn platform(&self) -> Platform {
        Platform::VideoSite
    }

    async fn media(&self, ask: &Ask, watcher: &dyn Watcher) -> Result<Media, SupplyError> {
        let deadline = Instant::now() + patience(ask.deadline.since(self.clock.now()));
        let visit = self.http.visit().at_most(REQUESTS_MAX);
        let clients = &self.options.clients;
        let mut call = Call { ask, watcher, clients, deadline, visit, visitor: None };
        let mut attempt = 0;
        loop {
            let refused = match call.media().await {
                Ok(media) => return Ok(media),
                Err(refused) => refused,
            };
            let others = call.is_distrusted(&refused);
            if !others || attempt >= self.http.retries() || Instant::now() >= deadline {
                return Err(refused.refusal.error());
            }
            call.visitor = None;
            attempt += 1;
        }
    }
}

impl Call<'_> {
    /// Asks the clients in order, until one is told a plain address.
    async fn media(&mut self) -> Result<Media, Refused> {
        let mut told: Option<Refused> = None;
        for client in self.clients {
            let refusal = match self.media_as(client).await {
                Ok(media) => return Ok(media),
                Err(refusal) => refusal,
            };
            tracing::debug!(client = %client, video = %self.ask.video, ?refusal, "no sound from this client");
            let refused = self.refused(refusal);
            if refused.refusal.is_conclusive() {
                return Err(refused);
            }
            told = Some(match told {
                Some(told) => more_telling(told, refused),
                None => refused,
            });
        }
        Err(told.unwrap_or_else(|| self.refused(Refusal::TooOld)))
    }

    async fn media_as(&mut self, client: &ClientIdentity) -> Result<Media, Refusal> {
        self.check_cancelled()?;
        let request = request::player(client, &self.ask.video, self.visitor.as_deref());
        let answer = self.send(&request).await?;
        if let Some(refusal) = answer.location.as_ref().and_then(signals::detour) {
            return Err(refusal);
        }
        let text = String::from_utf8_lossy(&answer.body);
        let none = || signals::page(&answer.body).unwrap_or(Refusal::NotPlayerData);
        let data = Data::read(&text).ok_or_else(none);
        let details = data.and_then(|data| player::playable(&data, &self.ask.video));
        let details = details.map_err(|refusal| match (&refusal, answer.status) {
            (Refusal::NotPlayerData, StatusCode::FORBIDDEN) => Refusal::Forbidden,
            (Refusal::NotPlayerData, status) if !status.is_success() => Refusal::BadRequest(status.as_u16()),
            _ => refusal,
        })?;
        let mut addresses = addresses(&Data::streams(&text));
        if addresses.is_empty() {
            return Err(Refusal::NoPlainSound);
        }
        for address in &mut addresses {
            address.headers = request::headers(client);
        }
        let Details { title, author, duration_ms, .. } = details;
        let exit = self.visit.exit();
        let video = self.ask.video.clone();
        let (language, has_audio) = (None, Some(true));
        Ok(Media { video, title, author, duration_ms, language, has_audio, addresses, hosts: FILES, exit })
    }
}

/// The addresses of forms with the original sound, the smallest first; forms with a picture only where there is
/// none without.
fn addresses(streams: &Value) -> Vec<MediaAddress> {
    let sound =
        |form: &&Value| field(form, "mimeType").as_str().is_some_and(|kind| kind.starts_with("audio/"));
    // Of a dubbed video all but one are in languages that nobody speaks in it.
    let is_default =
        |form: &&Value| field(field(form, "audioTrack"), "audioIsDefault").as_bool() != Some(false);
    let mut found: Vec<_> = items(streams, "adaptiveFormats")
        .take(FORMS_MAX)
        .filter(sound)
        .filter(is_default)
        .filter_map(address)
        .collect();
    if found.is_empty() {
        found = items(streams, "formats").take(FORMS_MAX).filter_map(address).collect();
    }
    found.sort_by_key(|address| address.bitrate.unwrap_or(u64::MAX));
    found.truncate(ADDRESSES_MAX);
    found
}

/// The address of a form; none when it is locked, or not of YouTube's own files.
fn address(form: &Value) -> Option<MediaAddress> {
    let text = field(form, "url").as_str().filter(|text| text.len() <= ADDRESS_MAX)?;
    let found = MediaAddress::at("https://www.youtube.com/", text)?;
    if !is_allowed(&found.url, FILES) {
        return None;
    }
    let expires = found.url.query_pairs().find(|(name, _)| name == "expire");
    let expires = expires.and_then(|(_, seconds)| seconds.parse::<i64>().ok());
    let expires = expires.filter(|seconds| (0..1 << 40).contains(seconds));
    Some(MediaAddress {
        bytes: number(field(form, "contentLength")),
        bitrate: number(field(form, "bitrate")),
        expires: expires.map(|seconds| Timestamp::from_millis(seconds * 1_000)),
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
    fn the_smallest_original_sound_comes_first() {
        let file = |name: &str| format!("https://rr1---sn-a.googlevideo.com/{name}?expire=1795000000");
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
        assert_eq!(found[0].expires, Some(Timestamp::from_millis(1_795_000_000_000)));
        let only_both = json!({"formats": streams["formats"]});
        assert_eq!(addresses(&only_both)[0].url.path(), "/both");
        for odd in [json!(null), json!({"adaptiveFormats": 5}), json!({"adaptiveFormats": [5, {"url": 1}]})] {
            assert!(addresses(&odd).is_empty(), "{odd}");
        }
    }

    #[test]
    fn streams_are_found_bare_and_wrapped() {
        let bare = json!({"streamingData": {"formats": [1]}});
        let wrapped = json!({"playerResponse": bare});
        for data in [&bare, &wrapped] {
            assert_eq!(Data::streams(&data.to_string()), json!({"formats": [1]}));
        }
        for odd in ["", "{}", "[]", "{\"streamingData\": 5}"] {
            assert!(!Data::streams(odd).is_object(), "{odd}");
        }
    }
}
