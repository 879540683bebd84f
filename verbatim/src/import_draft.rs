//! A transcript to import, with its metadata.

mod details;
#[cfg(feature = "encodings")]
mod encodings;
mod json;
mod recognised;

use transcript_core::{
    Error, Result,
    archive::TrackSelector,
    captions::{self, Occurrences, ParsedCaptions},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, VideoMetadata},
    video::VideoId,
};

/// Maximum size of a body in bytes.
///
/// It is larger than that of captions, since the JSON of the longest transcript spells out what captions abbreviate.
pub const DRAFT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Maximum length of a given title or author, in characters.
const TEXT_MAX: usize = 500;

/// A transcript to import: the content of its body, completed by the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportDraft {
    /// The video.
    pub video: Option<VideoId>,
    /// Title of the video.
    pub title: Option<String>,
    /// Publisher of the video.
    pub author: Option<String>,
    /// Duration of the video in milliseconds.
    pub duration_ms: Option<u64>,
    /// Metadata of the video.
    pub metadata: VideoMetadata,
    /// The language.
    pub language: Option<LanguageTag>,
    /// How the text was made; `None`: as [`ImportDraft::is_recognised`] says.
    pub kind: Option<TrackKind>,
    /// Whether values of a recognizer in the body show that a machine recognised the speech.
    pub is_recognised: bool,
    /// Name of the track.
    pub name: Option<String>,
    /// Whether the track is known to be in the spoken language.
    pub original: bool,
    /// Supplier that the transcript came from; `None`: `import`.
    pub source: Option<String>,
    /// Version of our parsers that produced it, if one did.
    pub parser_version: Option<u32>,
    /// Selectors that it answered in the archive that it comes from.
    pub selectors: Vec<TrackSelector>,
    /// Known tracks of the video: those of an export, or the languages in the JSON of the APIs.
    pub known_tracks: Vec<TrackInfo>,
    /// Whether this is not a transcript but a withdrawal by the operator.
    pub withdrawn: bool,
    /// The segments, by start.
    pub segments: Vec<Segment>,
    /// Unreadable characters of the body, which are U+FFFD in the segments.
    pub unreadable: Occurrences,
    /// Cues with text that are left out: their times are unreadable, or they are in another language.
    pub left_out: Occurrences,
    /// Name of the encoding of the body if it is not Unicode: the one that XML declares, else a guess.
    pub encoding: Option<&'static str>,
}

/// Kinds of text in WebVTT that are not spoken in the video.
const UNSPOKEN_KINDS: [&str; 3] = ["chapters", "descriptions", "metadata"];

impl ImportDraft {
    /// Reads the transcripts of a body in any known format; at least one.
    ///
    /// Known are captions (WebVTT, SRT, SBV, TTML, YouTube's XML and JSON, TikTok's JSON), our own export, the JSON of
    /// the lookup API (specification 2.2) and of the v1 API (specification 2.5), the JSON of Whisper, and the output of
    /// youtube-transcript-api: a list of `{text, start, duration}`, an object with `snippets`, or an object from video
    /// ids to either. Several objects that name their videos are a list, or JSON lines.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`], naming what was found instead.
    pub fn read(body: &[u8]) -> Result<Vec<Self>> {
        Self::read_in(body, None)
    }

    /// Reads like [`ImportDraft::read`]; of TTML in several languages, the one that matches `language` is read.
    ///
    /// The language also helps to guess an encoding.
    ///
    /// # Errors
    /// As [`ImportDraft::read`].
    pub fn read_in(body: &[u8], language: Option<&LanguageTag>) -> Result<Vec<Self>> {
        if body.len() > DRAFT_BYTES_MAX {
            let mib = DRAFT_BYTES_MAX / (1024 * 1024);
            return Err(Error::invalid(format!("the body is larger than {mib} MiB")));
        }
        // Shells of Windows write the output of a program in UTF-16.
        let first = utf16_chars(body).and_then(|mut text| text.find(|c| !c.is_ascii_whitespace()));
        let is_json = matches!(first, Some('[' | '{'));
        let converted: Option<String> = utf16_chars(body).filter(|_| is_json).map(Iterator::collect);
        let text = match &converted {
            Some(text) => text.as_bytes(),
            None => body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body),
        };
        match text.trim_ascii_start() {
            text if is_other_format(text) => Err(Error::invalid(
                "the text looks like ASS, LRC, MicroDVD, SubViewer or the console text of a recognizer: convert it \
                 to SRT or WebVTT",
            )),
            [b'[' | b'{', ..] => json::read(text),
            _ => Ok(vec![Self::from_captions(body, language)?]),
        }
    }

    fn from_captions(body: &[u8], language: Option<&LanguageTag>) -> Result<Self> {
        #[cfg(feature = "encodings")]
        let (body, encoding) = encodings::to_utf8(body, language);
        #[cfg(not(feature = "encodings"))]
        let (body, encoding) = (std::borrow::Cow::Borrowed(body), None);
        let read = captions::parse_with_report_in(&body, language);
        let read = read.map_err(|error| Error::invalid(error.to_string()))?;
        let ParsedCaptions { segments, unreadable, left_out, language, kind } = read;
        if let Some(kind) = kind.as_deref().filter(|kind| UNSPOKEN_KINDS.contains(kind)) {
            return Err(Error::invalid(format!(
                "the header declares {kind}, which are not spoken in the video"
            )));
        }
        let language = language.filter(|language| *language != LanguageTag::unknown());
        let decoded: Option<String> = utf16_chars(&body).map(Iterator::collect);
        let text = decoded.as_deref().map_or(&*body, str::as_bytes);
        let is_recognised = recognised::is_recognised(text, kind.as_deref());
        Ok(Self { segments, unreadable, left_out, encoding, language, is_recognised, ..Self::default() })
    }

    /// Sets the video.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if the body names another video.
    pub fn set_video(&mut self, video: VideoId) -> Result<()> {
        match &self.video {
            Some(own) if *own != video => {
                let name = |video: &VideoId| format!("{} {}", video.platform().name(), video.id());
                let message = format!("the body names the video {}, not {}", name(own), name(&video));
                Err(Error::invalid(message))
            }
            _ => {
                self.video = Some(video);
                Ok(())
            }
        }
    }

    /// Sets the language, whatever the body names.
    pub fn set_language(&mut self, language: LanguageTag) {
        if self.language.as_ref() != Some(&language) {
            // The selectors of one language do not apply to another.
            self.selectors.clear();
            self.language = Some(language);
        }
    }

    /// Sets title and author, if they are given.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if one of them has more than 500 characters.
    pub fn set_metadata(&mut self, title: Option<&str>, author: Option<&str>) -> Result<()> {
        for (name, given, own) in [("title", title, &mut self.title), ("author", author, &mut self.author)] {
            if let Some(text) = text(name, given)? {
                *own = Some(text);
            }
        }
        Ok(())
    }
}

/// The text of a body in UTF-16 with a byte order mark; `None` for another body.
fn utf16_chars(body: &[u8]) -> Option<impl Iterator<Item = char>> {
    let unit: fn([u8; 2]) -> u16 = match body {
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let (pairs, _) = body.get(2..)?.as_chunks::<2>();
    let text = char::decode_utf16(pairs.iter().map(move |&pair| unit(pair)));
    Some(text.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)))
}

/// Whether a text is no JSON but begins with a name, a time or a frame number in brackets.
///
/// Such are `[Script Info]`, `[00:12.00]` and `{25}`.
fn is_other_format(text: &[u8]) -> bool {
    let Some((open, rest)) = text.split_first() else { return false };
    let end = rest.iter().position(|byte| b"]}\n\"{[".contains(byte));
    let Some((inner, rest)) = end.and_then(|end| rest.split_at_checked(end)) else { return false };
    match open {
        b'[' => {
            let is_name = inner.eq_ignore_ascii_case(b"Script Info")
                || !inner.is_empty() && inner.iter().all(u8::is_ascii_uppercase);
            rest.starts_with(b"]") && (inner.contains(&b':') || is_name)
        }
        b'{' => rest.starts_with(b"}") && !inner.is_empty() && inner.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn text(name: &str, text: Option<&str>) -> Result<Option<String>> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    match text {
        Some(text) if text.chars().count() > TEXT_MAX => {
            Err(Error::invalid(format!("the {name} is too long: at most {TEXT_MAX} characters")))
        }
        text => Ok(text.map(str::to_owned)),
    }
}
