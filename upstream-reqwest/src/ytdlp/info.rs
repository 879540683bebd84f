//! Metadata that yt-dlp prints of a video. No I/O.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use transcript_core::{
    transcript::{LanguageTag, TrackInfo, TrackKind, VideoMetadata},
    video::{Platform, VideoId},
};
use url::Url;

use super::{
    audio, metadata,
    tracks::{self, YtDlpTrack},
};
use crate::{
    http::is_allowed,
    json::parse,
    social::{MediaAddress, TrackDetails},
    x::tweet::decode_entities,
    youtube,
};

/// Maximum length of a title or name in characters.
const TEXT_MAX: usize = 500;

/// Metadata of a video. A field of an unexpected type counts as absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct YtDlpInfo {
    id: Value,
    display_id: Value,
    title: Value,
    fulltitle: Value,
    channel: Value,
    uploader: Value,
    duration: Value,
    language: Value,
    live_status: Value,
    release_timestamp: Value,
    subtitles: Value,
    automatic_captions: Value,
    http_headers: Value,
    formats: Value,
    entries: Vec<Value>,
    #[serde(skip)]
    metadata: VideoMetadata,
}

/// The metadata in a `.info.json` of yt-dlp, within its limits; `None` if the text is no JSON object.
///
/// A field of an unexpected type counts as absent.
pub fn ytdlp_metadata(json: &[u8], platform: Platform) -> Option<VideoMetadata> {
    YtDlpInfo::read(json).ok().map(|info| info.details(platform).metadata)
}

/// The part of its life that a live stream is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LivePhase {
    /// Not a live stream, or a finished one.
    Past,
    /// A finished live stream whose recording is being processed: it may have no captions yet.
    Ended,
    Now,
    /// An upcoming stream, with its start in seconds since 1970 UTC if known.
    Later(Option<i64>),
}

impl YtDlpInfo {
    /// Parses the output of yt-dlp. Of a post with several videos the first one is used.
    pub(super) fn read(printed: &[u8]) -> Result<Self, serde_json::Error> {
        // Parsed as an object first: serde would accept a list as the fields in order.
        let object: Map<String, Value> = parse(printed)?;
        let info = Self::from_object(Value::Object(object))?;
        match info.entries.into_iter().next() {
            // The id of the post is in the outer object.
            Some(first) => Ok(Self { display_id: info.id, ..Self::from_object(first)? }),
            None => Ok(Self { entries: Vec::new(), ..info }),
        }
    }

    fn from_object(object: Value) -> Result<Self, serde_json::Error> {
        let metadata = metadata::read(&object);
        Ok(Self { metadata, ..serde_json::from_value(object)? })
    }

    /// Whether the metadata is of this video.
    ///
    /// Videos on X have ids of their own in addition to their post's.
    pub(super) fn is_of(&self, video: &VideoId) -> bool {
        let is_same = |id: &str| match video.platform() {
            Platform::YouTube => youtube::is_same(id, video.id()),
            Platform::TikTok | Platform::Instagram | Platform::X => id == video.id(),
        };
        [&self.id, &self.display_id].into_iter().filter_map(Value::as_str).any(is_same)
    }

    /// Title, author, length, and the rest within the limits of metadata.
    pub(super) fn details(&self, platform: Platform) -> TrackDetails {
        let text = |values: [&Value; 2]| {
            let text =
                values.into_iter().filter_map(Value::as_str).map(str::trim).find(|text| !text.is_empty())?;
            Some(decoded(platform, text).chars().take(TEXT_MAX).collect::<String>())
        };
        let duration_ms = self.duration.as_f64().filter(|s| (0.0..=1e9).contains(s)).map(milliseconds);
        let description =
            self.metadata.description.as_deref().map(|text| decoded(platform, text).into_owned());
        TrackDetails {
            title: text([&self.fulltitle, &self.title]),
            author: text([&self.channel, &self.uploader]),
            duration_ms,
            metadata: VideoMetadata { description, ..self.metadata.clone() }.cleaned(duration_ms),
        }
    }

    /// Whether it is a live stream without captions yet.
    pub(super) fn live_phase(&self) -> LivePhase {
        match self.live_status.as_str() {
            Some("is_live") => LivePhase::Now,
            Some("is_upcoming") => LivePhase::Later(self.release_timestamp.as_i64()),
            Some("post_live") => LivePhase::Ended,
            _ => LivePhase::Past,
        }
    }

    /// The tracks that are no translations, those written by people first.
    pub(super) fn tracks(&self, platform: Platform) -> Vec<YtDlpTrack> {
        let mut tracks = tracks::read(platform, &self.subtitles, &self.automatic_captions);
        if let Some(spoken) = self.spoken_language(&tracks) {
            for TrackInfo { language, name, original, .. } in tracks.iter_mut().map(|track| &mut track.info) {
                let is_of_dub = name.as_ref().is_some_and(|name| name.to_lowercase().contains("dub"));
                *original = spoken.matches(language) && !is_of_dub;
            }
        }
        // Recognised speech of a machine's dub has the words of a machine translation.
        let dubs = audio::machine_dubs(&self.formats);
        tracks.retain(|YtDlpTrack { info, .. }| {
            let is_of_dub = || dubs.iter().any(|dub| dub.matches(&info.language));
            info.kind != TrackKind::Generated || info.original || !is_of_dub()
        });
        tracks
    }

    /// YouTube's translation into a language, of the best of these tracks that it translates.
    pub(super) fn translation(&self, tracks: &[YtDlpTrack], language: &LanguageTag) -> Option<YtDlpTrack> {
        tracks::translation(&self.automatic_captions, tracks, language)
    }

    /// Metadata with only these tracks and URLs on known hosts, as input for yt-dlp.
    ///
    /// `None` if a track has no such URL. The video's own URL is omitted: with it yt-dlp would start again when the
    /// tracks fail, and fetch any URL in the new metadata.
    pub(super) fn to_input(&self, video: &VideoId, tracks: &[YtDlpTrack], hosts: &[&str]) -> Option<Value> {
        let mut lists: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for track in tracks {
            let name = if track.is_automatic { "automatic_captions" } else { "subtitles" };
            let known: Vec<_> = track.forms.iter().filter(|form| is_known(form, hosts)).cloned().collect();
            if known.is_empty() {
                return None;
            }
            lists.entry(name).or_default().insert(track.key.clone(), Value::Array(known));
        }
        Some(json!({
            "_type": "video",
            "id": video.id(),
            "title": "captions",
            "ext": "mp4",
            "extractor": "verbatim",
            "extractor_key": "Verbatim",
            "formats": [],
            "http_headers": self.http_headers,
            "subtitles": lists.remove("subtitles").unwrap_or_default(),
            "automatic_captions": lists.remove("automatic_captions").unwrap_or_default(),
        }))
    }

    /// Whether there are neither files nor captions.
    pub(super) fn has_no_media(&self) -> bool {
        let is_none = |list: &Value| match list {
            Value::Array(list) => list.is_empty(),
            Value::Object(list) => list.is_empty(),
            _ => true,
        };
        [&self.formats, &self.subtitles, &self.automatic_captions].into_iter().all(is_none)
    }

    /// URLs of the audio on these hosts, the smallest format first.
    pub(super) fn audio_urls(&self, platform: Platform, hosts: &[&str]) -> Vec<MediaAddress> {
        audio::addresses(platform, &self.formats, hosts)
    }

    /// The spoken language: of the original audio track, else of the metadata, else of the automatic captions if all
    /// are in one language.
    ///
    /// The language in the metadata is that of a format, which may be dubbed.
    fn spoken_language(&self, tracks: &[YtDlpTrack]) -> Option<LanguageTag> {
        if let Some(original) = audio::original_language(&self.formats) {
            return Some(original);
        }
        if let Some(language) = self.language.as_str().and_then(|tag| LanguageTag::parse(tag).ok()) {
            return Some(language);
        }
        let mut automatic = tracks.iter().filter(|track| track.is_automatic);
        let first = &automatic.next()?.info.language;
        automatic.all(|track| track.info.language == *first).then(|| first.clone())
    }
}

/// A text with the HTML entities of X decoded, which yt-dlp leaves.
fn decoded(platform: Platform, text: &str) -> Cow<'_, str> {
    match platform {
        Platform::X => Cow::Owned(decode_entities(text)),
        _ => Cow::Borrowed(text),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is within 0 and 1e9 seconds"
)]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}

fn is_known(form: &Value, hosts: &[&str]) -> bool {
    let url = form.get("url").and_then(Value::as_str).and_then(|url| Url::parse(url).ok());
    url.is_some_and(|url| is_allowed(&url, hosts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video(platform: Platform, id: &str) -> VideoId {
        VideoId::new(platform, id).unwrap()
    }

    fn form(url: &str) -> Value {
        json!([{"ext": "json3", "url": url}])
    }

    fn read(value: &Value) -> YtDlpInfo {
        YtDlpInfo::read(value.to_string().as_bytes()).unwrap()
    }

    /// The languages of the tracks in the spoken language.
    fn originals(info: &Value) -> Vec<String> {
        let tracks = read(info).tracks(Platform::YouTube);
        let tracks = tracks.into_iter().filter(|track| track.info.original);
        tracks.map(|track| track.info.language.to_string()).collect()
    }

    #[test]
    fn youtube_dubbed_language_is_not_original() {
        let at = |query: &str| form(&format!("https://www.youtube.com/api/timedtext?v=x&{query}"));
        let automatic = json!({"en": at("kind=asr&lang=en"), "es": at("kind=asr&lang=es")});
        let captions =
            json!({"en-GB": at("lang=en-GB"), "en-AbC1dEf2_Gh": at("name=English+(dubbed)&lang=en")});
        let formats = json!([{"language": "es", "language_preference": 5}, {"language": "en-US", "language_preference": 10}]);
        let originals = |more: Value| {
            let mut info =
                json!({"id": "vb-tracks-0", "automatic_captions": automatic, "subtitles": captions});
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            originals(&info)
        };
        assert_eq!(originals(json!({"language": "es", "formats": formats})), ["en-GB", "en"]);
        assert_eq!(originals(json!({"language": "es"})), ["es"]);
        assert!(originals(json!({})).is_empty());
        let dub = "https://r.googlevideo.com/videoplayback?xtags=acont%3Ddubbed-auto%3Alang%3Des-US";
        let formats =
            json!([{"language": "es-US", "url": dub}, {"language": "en", "language_preference": 10}]);
        let info = json!({"id": "vb-tracks-0", "automatic_captions": automatic, "formats": formats});
        let tracks = read(&info).tracks(Platform::YouTube);
        let languages: Vec<_> = tracks.iter().map(|track| track.info.language.as_str()).collect();
        assert_eq!(languages, ["en"], "captions of a machine's dub are a translation");
    }

    #[test]
    fn youtube_only_generated_language_is_original() {
        let at = |query: &str| form(&format!("https://www.youtube.com/api/timedtext?v=x&{query}"));
        let captions = json!({"de": at("lang=de"), "en": at("lang=en")});
        let automatic = json!({
            "de": at("kind=asr&lang=de"), "de-orig": at("kind=asr&lang=de"),
            "fr": at("kind=asr&lang=de&tlang=fr"), "en-en": at("lang=en"), "fr-en": at("lang=en&tlang=fr-en"),
        });
        let info = json!({"id": "vb-tracks-0", "subtitles": captions, "automatic_captions": automatic});
        assert_eq!(originals(&info), ["de", "de"]);
        // yt-dlp's translation of a track into its own language is no generated track.
        let automatic = json!({"en-en": at("lang=en"), "fr-en": at("lang=en&tlang=fr-en")});
        let info = json!({"subtitles": {"en": at("lang=en")}, "automatic_captions": automatic});
        assert!(originals(&info).is_empty());
    }

    #[test]
    fn info_field_of_unexpected_type_is_absent() {
        let info =
            read(&json!({"id": "1", "subtitles": 7, "automatic_captions": [], "title": 5, "duration": "x"}));
        assert!(info.tracks(Platform::X).is_empty());
        assert_eq!(info.details(Platform::X), TrackDetails::default());
    }

    #[test]
    fn captions_at_foreign_host_are_not_fetched() {
        let hosts = ["video.twimg.com"];
        let post = video(Platform::X, "20");
        for (url, expect) in [
            ("https://video.twimg.com/a.m3u8", true),
            ("http://video.twimg.com/a.m3u8", false),
            ("https://169.254.169.254/latest", false),
            ("file:///etc/passwd", false),
            ("nonsense", false),
        ] {
            let info = read(&json!({"id": "9", "display_id": "20", "subtitles": {"en": form(url)}}));
            assert!(info.is_of(&post) && !info.is_of(&video(Platform::X, "21")));
            let tracks = info.tracks(Platform::X);
            let input = info.to_input(&post, &tracks, &hosts);
            assert_eq!(input.is_some(), expect, "{url}");
        }
    }

    #[test]
    fn info_first_of_several_videos_is_used() {
        let info = read(&json!({"_type": "playlist", "id": "20", "entries": [
            {"id": "1", "title": "a &amp; b", "uploader": " ", "channel": null, "duration": 1.2345,
                "description": "a &amp; b"}, {"id": "2"}]}));
        assert!(info.is_of(&video(Platform::X, "20")));
        let metadata = VideoMetadata { description: Some("a & b".to_owned()), ..VideoMetadata::default() };
        let (title, duration_ms) = (Some("a & b".to_owned()), Some(1_235));
        let details = TrackDetails { title, author: None, duration_ms, metadata };
        assert_eq!(info.details(Platform::X), details);
        let of = |value: Value| read(&value).live_phase();
        assert_eq!(of(json!({"live_status": "is_live"})), LivePhase::Now);
        assert_eq!(
            of(json!({"live_status": "is_upcoming", "release_timestamp": 7})),
            LivePhase::Later(Some(7))
        );
        assert_eq!(of(json!({"live_status": "was_live"})), LivePhase::Past);
        assert_eq!(of(json!({"live_status": "post_live"})), LivePhase::Ended);
        let half = YtDlpInfo::read(br#"{"id": "20", "title": "a \ud83d"}"#).unwrap();
        assert_eq!(half.details(Platform::X).title.as_deref(), Some("a \u{FFFD}"));
        assert!(
            YtDlpInfo::read(b"null").is_err()
                && YtDlpInfo::read(b"[]").is_err()
                && YtDlpInfo::read(b"").is_err()
        );
    }
}
