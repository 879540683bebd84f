//! What yt-dlp says of a video: whether it is the one, and which captions it has. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use transcript_core::{
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::{Platform, VideoId},
};
use url::Url;

use super::sound;
use crate::{
    http::is_allowed,
    social::{Details, MediaAddress},
    x::tweet::unescaped,
};

/// The most tracks that are looked at: YouTube translates into about 160 languages.
const TRACKS_MAX: usize = 1_000;
/// The longest name of a language.
const KEY_MAX: usize = 40;
/// The longest title and name that is kept, in characters.
const TEXT_MAX: usize = 500;

/// What yt-dlp knows of a video. What is of another type than expected is as if it were not there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Info {
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
}

/// A track, and by which name yt-dlp fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) info: TrackInfo,
    pub(super) key: String,
    /// Whether it is one of the automatic captions.
    is_automatic: bool,
}

/// Where a live stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    /// It is no stream, or one that is over.
    Past,
    Now,
    /// It begins at this moment, in seconds since 1970 UTC, where that is known.
    Later(Option<i64>),
}

impl Info {
    /// Reads what yt-dlp printed. A post with several videos is its first one.
    pub(super) fn read(printed: &[u8]) -> Result<Self, serde_json::Error> {
        // As an object: a list would be read as its fields in their order.
        let object: Map<String, Value> = serde_json::from_slice(printed)?;
        let info: Self = serde_json::from_value(Value::Object(object))?;
        match info.entries.first() {
            Some(first) => {
                let first: Self = serde_json::from_value(first.clone())?;
                // The post's own number is with the whole.
                Ok(Self { display_id: info.id, ..first })
            }
            None => Ok(info),
        }
    }

    /// Whether it is this video. X's videos have numbers of their own beside their post's.
    pub(super) fn is_of(&self, video: &VideoId) -> bool {
        [&self.id, &self.display_id].iter().any(|id| id.as_str() == Some(video.id()))
    }

    /// Its title, author and length.
    pub(super) fn details(&self, platform: Platform) -> Details {
        let text = |values: [&Value; 2]| {
            let text =
                values.into_iter().filter_map(Value::as_str).map(str::trim).find(|text| !text.is_empty())?;
            let text = match platform {
                // As X writes it: yt-dlp leaves that.
                Platform::Microblog => unescaped(text),
                _ => text.to_owned(),
            };
            Some(text.chars().take(TEXT_MAX).collect::<String>())
        };
        Details {
            title: text([&self.fulltitle, &self.title]),
            author: text([&self.channel, &self.uploader]),
            duration_ms: self.duration.as_f64().filter(|s| (0.0..=1e9).contains(s)).map(milliseconds),
        }
    }

    /// Whether it is a live stream that has no words yet.
    pub(super) fn liveness(&self) -> Liveness {
        match self.live_status.as_str() {
            Some("is_live") => Liveness::Now,
            Some("is_upcoming") => Liveness::Later(self.release_timestamp.as_i64()),
            _ => Liveness::Past,
        }
    }

    /// Its tracks, those that people wrote first.
    pub(super) fn tracks(&self, platform: Platform) -> Vec<Track> {
        let spoken = self.spoken_language();
        let mut tracks: Vec<Track> = Vec::new();
        let lists = [(&self.subtitles, false), (&self.automatic_captions, true)];
        for (list, is_automatic) in lists {
            for (key, forms) in list.as_object().into_iter().flatten().take(TRACKS_MAX) {
                let Some(kind) = kind(platform, key, forms, is_automatic) else { continue };
                let Some(language) = language(platform, key) else { continue };
                let original =
                    kind == TrackKind::Generated && is_automatic || spoken.as_ref() == Some(&language);
                let info = TrackInfo { original, ..TrackInfo::new(language, kind) };
                if !tracks.iter().any(|track| track.info.is_same(&info)) {
                    tracks.push(Track { info, key: key.clone(), is_automatic });
                }
            }
        }
        tracks
    }

    /// The same for yt-dlp to go on with: these tracks, as far as their addresses are of known hosts, and nothing
    /// else. None when no address of one of them is. With the video's own address yt-dlp would begin anew where the
    /// tracks fail, and fetch whatever it is told of then.
    pub(super) fn only(&self, video: &VideoId, tracks: &[&Track], hosts: &[&str]) -> Option<Value> {
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

    /// Whether it has neither files nor captions.
    pub(super) fn is_bare(&self) -> bool {
        let is_none = |list: &Value| match list {
            Value::Array(list) => list.is_empty(),
            Value::Object(list) => list.is_empty(),
            _ => true,
        };
        [&self.formats, &self.subtitles, &self.automatic_captions].into_iter().all(is_none)
    }

    /// Where its sound is, the smallest form first; only at these hosts.
    pub(super) fn sound(&self, platform: Platform, hosts: &[&str]) -> Vec<MediaAddress> {
        sound::addresses(platform, &self.formats, hosts)
    }

    /// The language that is spoken, where yt-dlp tells it or its automatic captions do.
    fn spoken_language(&self) -> Option<LanguageTag> {
        if let Some(language) = self.language.as_str().and_then(|tag| LanguageTag::parse(tag).ok()) {
            return Some(language);
        }
        let keys = self.automatic_captions.as_object()?.keys();
        keys.filter_map(|key| key.strip_suffix("-orig")).find_map(|tag| LanguageTag::parse(tag).ok())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within 0 and 1e9 seconds")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}

/// How the words of a track came to be; none for what is no captions.
fn kind(platform: Platform, key: &str, forms: &Value, is_automatic: bool) -> Option<TrackKind> {
    let forms = forms.as_array()?;
    let first = forms.iter().find_map(|form| form.get("url").and_then(Value::as_str));
    // The name is an argument, and a pattern there: whatever has a meaning in patterns is no language's name.
    let is_name = |key: &str| {
        let ends_well = key.bytes().next().is_some_and(|c| c.is_ascii_alphanumeric());
        ends_well
            && key.len() <= KEY_MAX
            && key.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))
    };
    // `all` stands for every track.
    if !is_name(key) || matches!(key, "all" | "live_chat") {
        return None;
    }
    match platform {
        Platform::VideoSite if is_automatic => {
            let url = Url::parse(first?).ok()?;
            let is_translated = url.query_pairs().any(|(name, _)| name == "tlang");
            Some(if is_translated { TrackKind::Translated } else { TrackKind::Generated })
        }
        Platform::VideoSite => Some(TrackKind::Human),
        // yt-dlp does not tell the creator's captions from those of a machine there.
        Platform::ShortVideo | Platform::Reels | Platform::Microblog => Some(TrackKind::Generated),
    }
}

fn language(platform: Platform, key: &str) -> Option<LanguageTag> {
    let tag = LanguageTag::parse(key.strip_suffix("-orig").unwrap_or(key)).ok()?;
    // TikTok puts a region behind every language, whoever speaks.
    Some(if platform == Platform::ShortVideo { tag.without_likely_region() } else { tag })
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

    fn names(info: &Info, platform: Platform) -> Vec<(String, &'static str, bool, String)> {
        let of = |track: &Track| {
            (
                track.info.language.to_string(),
                track.info.kind.as_str(),
                track.info.original,
                track.key.clone(),
            )
        };
        info.tracks(platform).iter().map(of).collect()
    }

    fn read(value: &Value) -> Info {
        Info::read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn youtubes_translations_are_told_from_what_was_heard() {
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
        assert_eq!(names(&info, Platform::VideoSite), expect);
    }

    #[test]
    fn names_that_mean_something_to_yt_dlp_are_no_tracks() {
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
        assert_eq!(
            names(&info, Platform::Microblog),
            [("en".to_owned(), "generated", false, "en".to_owned())]
        );
        assert_eq!(info.details(Platform::Microblog), Details::default());
    }

    #[test]
    fn only_captions_at_known_hosts_are_fetched() {
        let hosts = ["video.twimg.com"];
        let post = video(Platform::Microblog, "20");
        for (url, expect) in [
            ("https://video.twimg.com/a.m3u8", true),
            ("http://video.twimg.com/a.m3u8", false),
            ("https://169.254.169.254/latest", false),
            ("file:///etc/passwd", false),
            ("nonsense", false),
        ] {
            let info = read(&json!({"id": "9", "display_id": "20", "subtitles": {"en": form(url)}}));
            assert!(info.is_of(&post) && !info.is_of(&video(Platform::Microblog, "21")));
            let tracks = info.tracks(Platform::Microblog);
            let only = info.only(&post, &tracks.iter().collect::<Vec<_>>(), &hosts);
            assert_eq!(only.is_some(), expect, "{url}");
        }
    }

    #[test]
    fn the_first_of_several_videos_counts_and_streams_are_told() {
        let info = read(&json!({"_type": "playlist", "id": "20", "entries": [
            {"id": "1", "title": "a &amp; b", "uploader": " ", "channel": null, "duration": 1.2345}, {"id": "2"}]}));
        assert!(info.is_of(&video(Platform::Microblog, "20")));
        let details = Details { title: Some("a & b".to_owned()), author: None, duration_ms: Some(1_235) };
        assert_eq!(info.details(Platform::Microblog), details);
        let of = |value: Value| read(&value).liveness();
        assert_eq!(of(json!({"live_status": "is_live"})), Liveness::Now);
        assert_eq!(
            of(json!({"live_status": "is_upcoming", "release_timestamp": 7})),
            Liveness::Later(Some(7))
        );
        assert_eq!(of(json!({"live_status": "was_live"})), Liveness::Past);
        assert!(Info::read(b"null").is_err() && Info::read(b"[]").is_err() && Info::read(b"").is_err());
    }
}
