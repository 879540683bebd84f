//! Video and language from the name of a caption file.

use std::path::Path;

use transcript_core::{
    transcript::{LanguageTag, TrackKind},
    video::{Platform, VideoId},
};

/// Suffix that yt-dlp appends to the language of recognised speech.
pub(super) const ORIGINAL: &str = "-orig";

/// Begins the name of a machine translation that `archive export` wrote.
const TRANSLATION: &str = "translation_";

/// Contents of a file name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CaptionFileName {
    pub(super) video: Option<VideoId>,
    /// The language as written: `en`, `zh-Hans`, `en-orig`.
    pub(super) key: Option<String>,
    pub(super) language: Option<LanguageTag>,
    /// Whether the text was recognised from speech in its original language.
    pub(super) is_original: bool,
    /// How the text was made, if the name says so.
    pub(super) kind: Option<TrackKind>,
    /// The name without language and extension, common to all files of a video.
    pub(super) base: String,
}

impl CaptionFileName {
    /// Parses a file name and the names of the two folders above it.
    pub(super) fn read(file: &Path) -> Self {
        let Some(stem) = file.file_stem().and_then(|stem| stem.to_str()) else { return Self::default() };
        let (base, key) = match stem.rsplit_once('.') {
            Some((base, key)) if is_key(key) => (base, Some(key)),
            _ if is_key(stem) && folder_video(file).is_some() => ("", Some(stem)),
            _ => (stem, None),
        };
        let exported = folder_video(file).filter(|_| key.is_some());
        let is_translated = exported.is_some() && base.starts_with(TRANSLATION);
        let is_original = key.is_some_and(|key| key.ends_with(ORIGINAL));
        Self {
            video: exported.or_else(|| trailing_video_id(base)),
            key: key.map(str::to_owned),
            language: key.and_then(language),
            is_original,
            kind: match is_translated {
                true => Some(TrackKind::Translated),
                false => is_original.then_some(TrackKind::Generated),
            },
            base: base.to_owned(),
        }
    }
}

/// Whether a part of a name is a language: `en`, `zh-Hans`, `en-orig`.
fn is_key(text: &str) -> bool {
    let mut parts = text.split(['-', '_']);
    let first = parts.next().unwrap_or_default();
    (2..=3).contains(&first.len())
        && first.bytes().all(|c| c.is_ascii_alphabetic())
        && parts.all(|part| !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric()))
        && language(text).is_some()
}

/// Returns the language of a part of a name. yt-dlp appends a track mark if there are several tracks.
pub(super) fn language(key: &str) -> Option<LanguageTag> {
    let mut key = key.strip_suffix(ORIGINAL).unwrap_or(key);
    if let Ok(tag) = LanguageTag::parse(key) {
        return Some(tag);
    }
    // Subtags of region and script are short; a part of a track mark is not.
    loop {
        key = key.rsplit_once(['-', '_'])?.0;
        let last = key.rsplit(['-', '_']).next().unwrap_or(key);
        if last.len() <= 4
            && let Ok(tag) = LanguageTag::parse(key)
        {
            return Some(tag);
        }
    }
}

/// Returns the video of a file that `archive export` wrote: `PLATFORM/ID/LANGUAGE.vtt`.
fn folder_video(file: &Path) -> Option<VideoId> {
    let folder = file.parent()?;
    let platform = Platform::from_wire(folder.parent()?.file_name()?.to_str()?)?;
    VideoId::new(platform, folder.file_name()?.to_str()?).ok()
}

/// Returns the YouTube id at the end of a name: `Title [ID]`, `Title-ID`, or the id alone.
fn trailing_video_id(base: &str) -> Option<VideoId> {
    let end = |text: &'_ str| {
        let start = text.len().checked_sub(VideoId::YOUTUBE_LENGTH)?;
        Some((text.get(..start)?.to_owned(), text.get(start..)?.to_owned()))
    };
    let (before, id) = match base.strip_suffix(']') {
        Some(inside) => end(inside).filter(|(before, _)| before.ends_with('['))?,
        None => end(base).filter(|(before, _)| before.is_empty() || before.ends_with('-'))?,
    };
    // Words of eleven letters would match; ids are unlikely to be words.
    let is_word = |id: &str| {
        let rest = id.get(1..).unwrap_or_default();
        id.bytes().all(|c| c.is_ascii_alphabetic())
            && (rest.bytes().all(|c| c.is_ascii_lowercase()) || id.bytes().all(|c| c.is_ascii_uppercase()))
    };
    if is_word(&id) && !before.ends_with('[') {
        return None;
    }
    VideoId::new(Platform::YouTube, &id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `video language`, with `-` for what the name does not say and `*` behind recognised speech.
    fn check(file: &str, expect: &str) {
        let name = CaptionFileName::read(Path::new(file));
        let video = name.video.map_or_else(|| "-".to_owned(), |video| video.to_string());
        let language = name.language.map_or_else(|| "-".to_owned(), |tag| tag.as_str().to_owned());
        let mark = if name.is_original { "*" } else { "" };
        assert_eq!(format!("{video} {language}{mark}"), expect, "{file}");
    }

    #[test]
    fn file_name_has_video_and_language() {
        for (file, expect) in [
            ("A talk [dQw4w9WgXcQ].en.vtt", "video_site/dQw4w9WgXcQ en"),
            ("A talk, vol. 2 [dQw4w9WgXcQ].zh-Hans.srt", "video_site/dQw4w9WgXcQ zh-Hans"),
            ("A talk [dQw4w9WgXcQ].en-orig.json3", "video_site/dQw4w9WgXcQ en*"),
            ("A talk [dQw4w9WgXcQ].en-j3PyPqV-e1s.vtt", "video_site/dQw4w9WgXcQ en"),
            ("A talk [dQw4w9WgXcQ].vtt", "video_site/dQw4w9WgXcQ -"),
            ("x/A-talk--wtIMTCHWuI.pt_BR.vtt", "video_site/-wtIMTCHWuI pt-BR"),
            ("A talk-dQw4w9WgXcQ.de.ttml", "video_site/dQw4w9WgXcQ de"),
            ("-wtIMTCHWuI.en.srt", "video_site/-wtIMTCHWuI en"),
            ("dyke-walk-0.srt", "video_site/dyke-walk-0 -"),
            ("backup/video_site/dQw4w9WgXcQ/en.vtt", "video_site/dQw4w9WgXcQ en"),
            ("backup/microblog/20/default.pt-BR.srt", "microblog/20 pt-BR"),
            ("reels/Cabc/und.vtt", "reels/Cabc und"),
            ("video_site/short/en.vtt", "- -"),
            ("talk.en.vtt", "- en"),
            ("en.vtt", "- -"),
            ("Mr. No.srt", "- -"),
            ("for-your-information.srt", "- -"),
            ("INFORMATION.srt", "- -"),
            ("A talk [dQw4w9WgXc].srt", "- -"),
            ("été-dQw4w9WgXcQ.fr.vtt", "video_site/dQw4w9WgXcQ fr"),
            ("ééééééééééé.fr.vtt", "- fr"),
            ("..", "- -"),
        ] {
            check(file, expect);
        }
    }

    #[test]
    fn file_name_of_exported_translation_has_kind() {
        for (file, kind) in [
            ("backup/video_site/dQw4w9WgXcQ/translation_de.de.srt", Some(TrackKind::Translated)),
            ("backup/video_site/dQw4w9WgXcQ/de.srt", None),
            ("translation_de [dQw4w9WgXcQ].de.srt", None),
            ("A talk [dQw4w9WgXcQ].en-orig.json3", Some(TrackKind::Generated)),
        ] {
            let name = CaptionFileName::read(Path::new(file));
            assert_eq!((name.kind, name.language.is_some()), (kind, true), "{file}");
        }
    }

    #[test]
    fn file_names_of_one_video_share_base() {
        for file in ["a/T [dQw4w9WgXcQ].en.vtt", "a/T [dQw4w9WgXcQ].vtt", "a/T [dQw4w9WgXcQ].de-orig.srt"] {
            assert_eq!(CaptionFileName::read(Path::new(file)).base, "T [dQw4w9WgXcQ]", "{file}");
        }
    }
}
