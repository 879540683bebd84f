//! The `.info.json` that yt-dlp writes next to captions.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::IgnoredAny};
use transcript_core::{
    body::segments::millis,
    transcript::{LanguageTag, NAME_BYTES_MAX, TrackKind, VideoMetadata},
    video::{Platform, VideoId, VideoLink},
};
use verbatim::ytdlp_metadata;

use super::{
    super::bounded_file,
    name::{CaptionFileName, ORIGINAL, language},
};

/// The largest file that is read, in bytes; comments can make it large.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Cache of the last file: the files of one video follow each other.
#[derive(Debug, Default)]
pub(super) struct InfoFiles {
    last: Option<(PathBuf, Option<InfoFile>)>,
}

impl InfoFiles {
    /// Returns the metadata next to a file, if any.
    pub(super) fn find(&mut self, file: &Path, name: &CaptionFileName) -> Option<&InfoFile> {
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

/// Reads a file; `None` if it is unreadable.
fn read(path: &Path) -> Option<InfoFile> {
    // Reading a pipe or device could block.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    InfoFile::parse(&bounded_file::read(path, BYTES_MAX).ok()?)
}

/// Metadata of a video, by yt-dlp.
#[derive(Debug, Default, Deserialize)]
pub(super) struct InfoFile {
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
    #[serde(skip)]
    metadata: VideoMetadata,
}

/// Track of a caption file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InfoFileTrack {
    pub(super) language: LanguageTag,
    pub(super) kind: TrackKind,
    pub(super) original: bool,
}

impl InfoFile {
    /// Parses a file; `None` if it is unreadable.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        let info: Self = serde_json::from_slice(json).ok()?;
        let metadata = info.video().and_then(|video| ytdlp_metadata(json, video.platform()));
        Some(Self { metadata: metadata.unwrap_or_default(), ..info })
    }

    pub(super) fn video(&self) -> Option<VideoId> {
        match self.webpage_url.as_deref().map(VideoLink::parse) {
            Some(Ok(VideoLink::Video(video))) => Some(video),
            _ if self.extractor_key.as_deref() == Some("Youtube") => {
                self.id.as_deref().and_then(|id| VideoId::new(Platform::YouTube, id).ok())
            }
            _ => None,
        }
    }

    /// Returns the video's title.
    pub(super) fn title(&self) -> Option<String> {
        nonempty(self.title.as_ref())
    }

    /// Returns the publisher of the video.
    pub(super) fn author(&self) -> Option<String> {
        nonempty(self.channel.as_ref()).or_else(|| nonempty(self.uploader.as_ref()))
    }

    /// Returns the video's duration.
    pub(super) fn duration_ms(&self) -> Option<u64> {
        self.duration.and_then(millis)
    }

    pub(super) fn metadata(&self) -> &VideoMetadata {
        &self.metadata
    }

    /// Returns the track whose captions yt-dlp writes to a file with this language in its name.
    ///
    /// yt-dlp prefers human captions, then automatic ones: recognised from speech, or translated from those into any
    /// language (`de-en` is German from English).
    pub(super) fn track(&self, key: &str) -> Option<InfoFileTrack> {
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
            return Some(InfoFileTrack { language, kind: TrackKind::Human, original });
        }
        if !has(&self.automatic_captions, key) {
            return None;
        }
        if let Some((into, from)) = key.rsplit_once('-')
            && (has(&self.subtitles, from) || has(&self.automatic_captions, &format!("{from}{ORIGINAL}")))
        {
            return Some(InfoFileTrack {
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
        Some(InfoFileTrack { language, kind, original: is_recognised })
    }
}

fn nonempty(name: Option<&String>) -> Option<String> {
    name.filter(|name| !name.trim().is_empty() && name.len() <= NAME_BYTES_MAX).cloned()
}

#[cfg(test)]
mod tests {
    use transcript_core::time::Timestamp;

    use super::*;
    use TrackKind::{Generated, Human, Translated};

    fn info(json: &str) -> InfoFile {
        InfoFile::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn info_file_track_kind_is_detected() {
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
    fn info_file_video_is_that_of_page() {
        for (json, expect) in [
            (r#"{"id":"7","webpage_url":"https://x.com/a/status/20"}"#, Some("microblog/20")),
            (r#"{"id":"dQw4w9WgXcQ","extractor_key":"Youtube"}"#, Some("video_site/dQw4w9WgXcQ")),
            (r#"{"id":"dQw4w9WgXcQ","extractor_key":"Radio","webpage_url":"https://radio.example/1"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(info(json).video().map(|video| video.to_string()).as_deref(), expect, "{json}");
        }
        let nonempty = info(r#"{"title":" ","channel":null,"uploader":"Ann","duration":61.25}"#);
        assert_eq!((nonempty.title(), nonempty.author().as_deref()), (None, Some("Ann")));
        assert_eq!(nonempty.duration_ms(), Some(61_250));
        assert_eq!(info(r#"{"duration":-1}"#).duration_ms(), None);
    }

    #[test]
    fn info_file_metadata_is_read_if_video_is_known() {
        let day = Timestamp::parse("2023-11-14T00:00:00Z");
        for (video, expect) in [
            (r#""webpage_url":"https://youtu.be/dQw4w9WgXcQ""#, day),
            (r#""webpage_url":"https://radio.example/1""#, None),
        ] {
            let info = info(&format!(r#"{{{video},"upload_date":"20231114","chapters":7}}"#));
            assert_eq!(info.metadata().published_at, expect, "{video}");
        }
    }
}
