//! The `.info.json` that yt-dlp writes beside captions.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::IgnoredAny};
use transcript_core::{
    captions::TIME_MAX_MS,
    transcript::{LanguageTag, NAME_BYTES_MAX, TrackKind},
    video::{Platform, VideoId, VideoLink},
};

use super::name::{Name, ORIGINAL, language};

/// The largest file that is read, in bytes: comments can make it large.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The last file that was looked for: the files of one video come one after the other.
#[derive(Debug, Default)]
pub(super) struct Infos {
    last: Option<(PathBuf, Option<Info>)>,
}

impl Infos {
    /// What is said about the video of a file, when it lies beside it.
    pub(super) fn beside(&mut self, file: &Path, name: &Name) -> Option<&Info> {
        if name.base.is_empty() {
            return None;
        }
        let path = file.with_file_name(format!("{}.info.json", name.base));
        if self.last.as_ref().is_none_or(|(last, _)| *last != path) {
            let info = read(&path);
            self.last = Some((path, info));
        }
        self.last.as_ref().and_then(|(_, info)| info.as_ref())
    }
}

/// Reads a file; what cannot be read says nothing.
fn read(path: &Path) -> Option<Info> {
    // A pipe would be waited for, and a device never end.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// What yt-dlp says about a video.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Info {
    id: Option<String>,
    extractor_key: Option<String>,
    webpage_url: Option<String>,
    title: Option<String>,
    channel: Option<String>,
    uploader: Option<String>,
    duration: Option<f64>,
    language: Option<String>,
    #[serde(default)]
    subtitles: Option<HashMap<String, IgnoredAny>>,
    #[serde(default)]
    automatic_captions: Option<HashMap<String, IgnoredAny>>,
}

/// The track that a file's captions are of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InfoTrack {
    pub(super) language: LanguageTag,
    pub(super) kind: TrackKind,
    pub(super) original: bool,
}

impl Info {
    /// The video.
    pub(super) fn video(&self) -> Option<VideoId> {
        match self.webpage_url.as_deref().map(VideoLink::parse) {
            Some(Ok(VideoLink::Video(video))) => Some(video),
            _ if self.extractor_key.as_deref() == Some("Youtube") => {
                self.id.as_deref().and_then(|id| VideoId::new(Platform::VideoSite, id).ok())
            }
            _ => None,
        }
    }

    /// The video's title.
    pub(super) fn title(&self) -> Option<String> {
        named(self.title.as_ref())
    }

    /// Who published the video.
    pub(super) fn author(&self) -> Option<String> {
        named(self.channel.as_ref()).or_else(|| named(self.uploader.as_ref()))
    }

    /// The video's length.
    pub(super) fn duration_ms(&self) -> Option<u64> {
        let millis = (self.duration? * 1000.0).round();
        // It lies within the bounds, and has no fraction.
        (0.0..=TIME_MAX_MS as f64).contains(&millis).then_some(millis as u64)
    }

    /// The track whose captions yt-dlp wrote into a file with this language in its name.
    ///
    /// It writes a person's captions where there are any, else a machine's: recognised from speech, or
    /// translated into any language from those (`de-en` is German from English).
    pub(super) fn track(&self, key: &str) -> Option<InfoTrack> {
        let has = |captions: &Option<HashMap<_, _>>, key: &str| {
            captions.as_ref().is_some_and(|captions| captions.contains_key(key))
        };
        let spoken = self.language.as_deref().and_then(language);
        let is_spoken = |language: &LanguageTag| {
            spoken.as_ref().is_some_and(|spoken| spoken.primary() == language.primary())
        };
        if has(&self.subtitles, key) {
            let language = language(key)?;
            let original = is_spoken(&language);
            return Some(InfoTrack { language, kind: TrackKind::Human, original });
        }
        if !has(&self.automatic_captions, key) {
            return None;
        }
        if let Some((into, from)) = key.rsplit_once('-')
            && (has(&self.subtitles, from) || has(&self.automatic_captions, &format!("{from}{ORIGINAL}")))
        {
            return Some(InfoTrack {
                language: language(into)?,
                kind: TrackKind::Translated,
                original: false,
            });
        }
        let language = language(key)?;
        let is_recognised = key.ends_with(ORIGINAL)
            || has(&self.automatic_captions, &format!("{key}{ORIGINAL}"))
            || is_spoken(&language)
            || (spoken.is_none() && self.automatic_captions.as_ref().is_some_and(|all| all.len() == 1));
        let kind = if is_recognised { TrackKind::Generated } else { TrackKind::Translated };
        Some(InfoTrack { language, kind, original: is_recognised })
    }
}

fn named(name: Option<&String>) -> Option<String> {
    name.filter(|name| !name.trim().is_empty() && name.len() <= NAME_BYTES_MAX).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use TrackKind::{Generated, Human, Translated};

    fn info(json: &str) -> Info {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_track_is_a_persons_or_a_machines() {
        let info = info(
            r#"{"language":"en","subtitles":{"fr":[],"live_chat":[]},
                "automatic_captions":{"en":[],"en-orig":[],"de":[],"ja-fr":[],"fr":[]}}"#,
        );
        let check = |key: &str, expect: Option<(&str, TrackKind, bool)>| {
            let found = info.track(key);
            let found = found.as_ref().map(|track| (track.language.as_str(), track.kind, track.original));
            assert_eq!(found, expect, "{key}");
        };
        check("fr", Some(("fr", Human, false)));
        check("en", Some(("en", Generated, true)));
        check("en-orig", Some(("en", Generated, true)));
        check("de", Some(("de", Translated, false)));
        check("ja-fr", Some(("ja", Translated, false)));
        check("es", None);
    }

    #[test]
    fn the_video_is_that_of_the_page() {
        for (json, expect) in [
            (r#"{"id":"7","webpage_url":"https://x.com/a/status/20"}"#, Some("microblog/20")),
            (r#"{"id":"dQw4w9WgXcQ","extractor_key":"Youtube"}"#, Some("video_site/dQw4w9WgXcQ")),
            (r#"{"id":"dQw4w9WgXcQ","extractor_key":"Radio","webpage_url":"https://radio.example/1"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(info(json).video().map(|video| video.to_string()).as_deref(), expect, "{json}");
        }
        let named = info(r#"{"title":" ","channel":null,"uploader":"Ann","duration":61.25}"#);
        assert_eq!((named.title(), named.author().as_deref()), (None, Some("Ann")));
        assert_eq!(named.duration_ms(), Some(61_250));
        assert_eq!(info(r#"{"duration":-1}"#).duration_ms(), None);
    }
}
