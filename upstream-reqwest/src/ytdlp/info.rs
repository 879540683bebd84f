//! Metadata that yt-dlp prints: identity of the video, and its captions. No I/O.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use transcript_core::{
    transcript::{LanguageTag, TrackInfo, TrackKind, VideoMetadata},
    video::{Platform, VideoId},
};
use url::Url;

use super::{audio, metadata};
use crate::{
    http::is_allowed,
    social::{MediaAddress, TrackDetails},
    x::tweet::decode_entities,
};

/// Maximum number of tracks read: YouTube translates into about 160 languages.
const TRACKS_MAX: usize = 1_000;
/// Maximum length of a track key.
const KEY_MAX: usize = 40;
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

/// A track, with the key under which yt-dlp fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct YtDlpTrack {
    pub(super) info: TrackInfo,
    pub(super) key: String,
    /// Whether it is in the list of automatic captions.
    is_automatic: bool,
}

/// State of a live stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveStatus {
    /// Not a live stream, or a finished one.
    Past,
    Now,
    /// An upcoming stream, with its start in seconds since 1970 UTC if known.
    Later(Option<i64>),
}

impl YtDlpInfo {
    /// Parses the output of yt-dlp. Of a post with several videos the first one is used.
    pub(super) fn read(printed: &[u8]) -> Result<Self, serde_json::Error> {
        // Parsed as an object first: serde would accept a list as the fields in order.
        let object: Map<String, Value> = serde_json::from_slice(printed)?;
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
        [&self.id, &self.display_id].iter().any(|id| id.as_str() == Some(video.id()))
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
    pub(super) fn live_status_kind(&self) -> LiveStatus {
        match self.live_status.as_str() {
            Some("is_live") => LiveStatus::Now,
            Some("is_upcoming") => LiveStatus::Later(self.release_timestamp.as_i64()),
            _ => LiveStatus::Past,
        }
    }

    /// The tracks, those written by people first.
    pub(super) fn tracks(&self, platform: Platform) -> Vec<YtDlpTrack> {
        let mut tracks: Vec<YtDlpTrack> = Vec::new();
        let lists = [(&self.subtitles, false), (&self.automatic_captions, true)];
        for (list, is_automatic) in lists {
            for (key, forms) in list.as_object().into_iter().flatten().take(TRACKS_MAX) {
                let Some(kind) = kind(platform, key, forms, is_automatic) else { continue };
                let Some(language) = language(platform, key) else { continue };
                let info = TrackInfo::new(language, kind);
                if !tracks.iter().any(|track| track.info.is_same(&info)) {
                    tracks.push(YtDlpTrack { info, key: key.clone(), is_automatic });
                }
            }
        }
        let spoken = self.spoken_language(&tracks);
        for track in tracks.iter_mut().filter(|track| track.info.kind != TrackKind::Translated) {
            track.info.original = spoken.as_ref().is_some_and(|spoken| spoken.matches(&track.info.language));
        }
        tracks
    }

    /// Metadata with only these tracks and URLs on known hosts, as input for yt-dlp.
    ///
    /// `None` if a track has no such URL. The video's own URL is omitted: with it yt-dlp would start again when the
    /// tracks fail, and fetch any URL in the new metadata.
    pub(super) fn to_input(&self, video: &VideoId, tracks: &[&YtDlpTrack], hosts: &[&str]) -> Option<Value> {
        let mut lists: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for track in tracks {
            let (name, list) = match track.is_automatic {
                false => ("subtitles", &self.subtitles),
                true => ("automatic_captions", &self.automatic_captions),
            };
            let forms = list.get(&track.key).and_then(Value::as_array)?;
            let known: Vec<_> = forms.iter().filter(|form| is_known(form, hosts)).cloned().collect();
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
        let mut automatic =
            tracks.iter().filter(|track| track.is_automatic && track.info.kind == TrackKind::Generated);
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

/// The origin of a track; `None` if it is not a caption track.
fn kind(platform: Platform, key: &str, forms: &Value, is_automatic: bool) -> Option<TrackKind> {
    let forms = forms.as_array()?;
    let first = forms.iter().find_map(|form| form.get("url").and_then(Value::as_str));
    // The key is an argument and a pattern there, so characters with a meaning in patterns are rejected.
    let is_name = |key: &str| {
        let ends_well = key.bytes().next().is_some_and(|c| c.is_ascii_alphanumeric());
        ends_well
            && key.len() <= KEY_MAX
            && key.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))
    };
    // `all` selects every track.
    if !is_name(key) || matches!(key, "all" | "live_chat") {
        return None;
    }
    match platform {
        Platform::YouTube if is_automatic => {
            let url = Url::parse(first?).ok()?;
            let is_translated = url.query_pairs().any(|(name, _)| name == "tlang");
            Some(if is_translated { TrackKind::Translated } else { TrackKind::Generated })
        }
        Platform::YouTube => Some(TrackKind::Human),
        // yt-dlp does not distinguish the creator's captions from generated ones there.
        Platform::TikTok | Platform::Instagram | Platform::X => Some(TrackKind::Generated),
    }
}

fn language(platform: Platform, key: &str) -> Option<LanguageTag> {
    let tag = LanguageTag::parse(key.strip_suffix("-orig").unwrap_or(key)).ok()?;
    // TikTok adds a region to every language, whatever the speaker's.
    Some(if platform == Platform::TikTok { tag.without_likely_region() } else { tag })
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

    fn names(info: &YtDlpInfo, platform: Platform) -> Vec<(String, &'static str, bool, String)> {
        let of = |track: &YtDlpTrack| {
            (
                track.info.language.to_string(),
                track.info.kind.as_str(),
                track.info.original,
                track.key.clone(),
            )
        };
        info.tracks(platform).iter().map(of).collect()
    }

    fn read(value: &Value) -> YtDlpInfo {
        YtDlpInfo::read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn youtube_translation_differs_from_generated() {
        let at = |query: &str| form(&format!("https://www.youtube.com/api/timedtext?v=x&{query}"));
        let info = read(&json!({
            "id": "vb-tracks-0",
            "subtitles": {"en-GB": at("lang=en-GB"), "live_chat": at("")},
            "automatic_captions": {
                "de-orig": at("kind=asr&lang=de"), "de": at("kind=asr&lang=de"),
                "fr": at("kind=asr&lang=de&tlang=fr"), "zh-Hans": at("kind=asr&lang=de&tlang=zh-Hans"),
            },
        }));
        let expect = [
            ("en-GB", "human", false, "en-GB"),
            ("de", "generated", true, "de"),
            ("fr", "translated", false, "fr"),
            ("zh-Hans", "translated", false, "zh-Hans"),
        ];
        let expect =
            expect.map(|(tag, kind, original, key)| (tag.to_owned(), kind, original, key.to_owned()));
        assert_eq!(names(&info, Platform::YouTube), expect);
    }

    #[test]
    fn youtube_dubbed_language_is_not_original() {
        let at = |query: &str| form(&format!("https://www.youtube.com/api/timedtext?v=x&{query}"));
        let automatic = json!({"en": at("kind=asr&lang=en"), "es": at("kind=asr&lang=es")});
        let formats = json!([{"language": "es", "language_preference": 5}, {"language": "en-US", "language_preference": 10}]);
        let originals = |more: Value| -> Vec<String> {
            let mut info = json!({"id": "vb-tracks-0", "automatic_captions": automatic, "subtitles": {"en-GB": at("lang=en-GB")}});
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let tracks = read(&info).tracks(Platform::YouTube);
            let tracks = tracks.into_iter().filter(|track| track.info.original);
            tracks.map(|track| track.info.language.to_string()).collect()
        };
        assert_eq!(originals(json!({"language": "es", "formats": formats})), ["en-GB", "en"]);
        assert_eq!(originals(json!({"language": "es"})), ["es"]);
        assert!(originals(json!({})).is_empty());
    }

    #[test]
    fn track_key_with_pattern_characters_is_skipped() {
        let at = || form("https://video.twimg.com/a.m3u8");
        let keys = [
            "all",
            "-en",
            "en.*",
            "e|n",
            "en,de",
            "--exec",
            "",
            "live_chat",
            "_en",
            "e\nn",
            "not a language",
        ];
        let mut list: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), at())).collect();
        list.insert("en".to_owned(), at());
        list.insert("xx".to_owned(), json!("no list"));
        let info = read(
            &json!({"id": "1", "subtitles": list, "automatic_captions": 7, "title": 5, "duration": "x"}),
        );
        assert_eq!(names(&info, Platform::X), [("en".to_owned(), "generated", false, "en".to_owned())]);
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
            let to_input = info.to_input(&post, &tracks.iter().collect::<Vec<_>>(), &hosts);
            assert_eq!(to_input.is_some(), expect, "{url}");
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
        let of = |value: Value| read(&value).live_status_kind();
        assert_eq!(of(json!({"live_status": "is_live"})), LiveStatus::Now);
        assert_eq!(
            of(json!({"live_status": "is_upcoming", "release_timestamp": 7})),
            LiveStatus::Later(Some(7))
        );
        assert_eq!(of(json!({"live_status": "was_live"})), LiveStatus::Past);
        assert!(
            YtDlpInfo::read(b"null").is_err()
                && YtDlpInfo::read(b"[]").is_err()
                && YtDlpInfo::read(b"").is_err()
        );
    }
}
