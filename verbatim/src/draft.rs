//! A transcript that is to be imported, with as much as is known of it.

mod json;

use transcript_core::{
    Error, Result,
    archive::Wish,
    captions::{self, Occurrences, Reading},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind},
    video::VideoId,
};

/// The largest body that is read, in bytes. It is larger than that of captions, since the JSON of the
/// longest transcript writes out what captions abbreviate.
pub const DRAFT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The longest title or author that a caller may give, in characters.
const TEXT_MAX: usize = 500;

/// A transcript that is to be imported: what its body says, to be completed with what its reader knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The video.
    pub video: Option<VideoId>,
    /// The video's title.
    pub title: Option<String>,
    /// Who published the video.
    pub author: Option<String>,
    /// The video's length in milliseconds.
    pub duration_ms: Option<u64>,
    /// The language.
    pub language: Option<LanguageTag>,
    /// How the words came to be; unknown: written by a person.
    pub kind: Option<TrackKind>,
    /// The track's own name.
    pub name: Option<String>,
    /// Whether it is known to be in the spoken language.
    pub original: bool,
    /// The supplier that it once came from; unknown: `import`.
    pub source: Option<String>,
    /// Which version of our parsers made it, where they did.
    pub parser_version: Option<u32>,
    /// The wishes that it answered in the archive that it comes from.
    pub wishes: Vec<Wish>,
    /// The tracks that the video is known to have.
    pub known_tracks: Vec<TrackInfo>,
    /// Whether it is no transcript but says that the operator took the video down.
    pub withdrawn: bool,
    /// The segments, by start.
    pub segments: Vec<Segment>,
    /// The characters of its body that could not be read, and are U+FFFD in the segments.
    pub unreadable: Occurrences,
    /// The cues with words that are no segments, since their times could not be read.
    pub left_out: Occurrences,
}

/// The kinds of text, as WebVTT names them, that nobody speaks in the video.
const UNSPOKEN: [&str; 3] = ["chapters", "descriptions", "metadata"];

impl Draft {
    /// Reads the transcripts of a body, whatever form it turns out to have; at least one.
    ///
    /// Known are captions (WebVTT, SRT, TTML, YouTube's XML and JSON), our own export, the look-up API's
    /// JSON (specification 2.2), the v1 API's (2.5), and what youtube-transcript-api writes: a list of
    /// `{text, start, duration}`, an object with `snippets`, or an object from video ids to either.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] with what was found instead.
    pub fn read(body: &[u8]) -> Result<Vec<Self>> {
        if body.len() > DRAFT_BYTES_MAX {
            let mib = DRAFT_BYTES_MAX / (1024 * 1024);
            return Err(Error::invalid(format!("it is larger than {mib} MiB")));
        }
        let text = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[' | b'{') => json::read(text),
            _ => Ok(vec![Self::of_captions(body)?]),
        }
    }

    fn of_captions(body: &[u8]) -> Result<Self> {
        let read = captions::read(body).map_err(|error| Error::invalid(error.to_string()))?;
        let Reading { segments, unreadable, left_out, language, kind } = read;
        if let Some(kind) = kind.filter(|kind| UNSPOKEN.contains(&kind.as_str())) {
            return Err(Error::invalid(format!(
                "its header says that it holds {kind}, which are no words that are spoken in the video"
            )));
        }
        let language = language.filter(|language| *language != LanguageTag::unknown());
        Ok(Self { segments, unreadable, left_out, language, ..Self::default() })
    }

    /// Says which video it is of.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when its own body says that it is of another one.
    pub fn be_of(&mut self, video: VideoId) -> Result<()> {
        match &self.video {
            Some(own) if *own != video => {
                Err(Error::invalid(format!("it says that it is of {own}, not of {video}")))
            }
            _ => {
                self.video = Some(video);
                Ok(())
            }
        }
    }

    /// Says in which language it is, whatever its body says.
    pub fn be_in(&mut self, language: LanguageTag) {
        if self.language.as_ref() != Some(&language) {
            // What it answered as another language says nothing about what it answers now.
            self.wishes.clear();
            self.language = Some(language);
        }
    }

    /// Says what the video is called and who published it, where that is given.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when one of them has more than 500 characters.
    pub fn describe(&mut self, title: Option<&str>, author: Option<&str>) -> Result<()> {
        for (name, given, own) in [("title", title, &mut self.title), ("author", author, &mut self.author)] {
            if let Some(text) = text(name, given)? {
                *own = Some(text);
            }
        }
        Ok(())
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
