//! Test transcripts and questions about them: `tests/chat/talks`.
//!
//! A short talk is a list of lines, its facts. Longer ones of this kind are filled with sentences that are composed
//! from the talk's own words in a fixed order. Any other talk is `speech`, one paragraph a line, spoken at a steady
//! rate; with `recognised` it has the form of recognised speech: lower case, no punctuation, short segments that
//! overlap.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use transcript_core::{
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

use super::questions::{Span, TalkQuestion, plain};

/// The folder of the folders with talks.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/chat");
/// Duration of a caption in milliseconds, in a talk of lines.
const CAPTION_MS: u64 = 2_500;
/// Maximum words of a caption, or characters in languages without spaces.
const WORDS_MAX: usize = 9;
const LETTERS_MAX: usize = 18;
/// Time to say a word, or a character in languages without spaces, in milliseconds.
const WORD_MS: u64 = 550;
const LETTER_MS: u64 = 330;
/// Pause after a paragraph in milliseconds. Recognised speech has none.
const PARAGRAPH_PAUSE_MS: u64 = 800;
/// How long a recognised segment stays after the next one has begun, in milliseconds.
const OVERLAP_MS: u64 = 500;
/// Words of recognised segments, in this order, or characters divided by `LETTERS_A_WORD`.
const RECOGNISED_WORDS: [usize; 6] = [5, 7, 4, 6, 8, 3];
const LETTERS_A_WORD: usize = 2;

/// A talk as stored in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTalk {
    title: String,
    language: String,
    minutes: Option<u64>,
    canary: Option<String>,
    #[serde(default)]
    lines: Vec<String>,
    #[serde(default)]
    filler: Vec<Vec<String>>,
    #[serde(default)]
    speech: String,
    #[serde(default)]
    recognised: bool,
    question: Vec<TalkQuestion>,
}

/// A talk as a transcript with its questions.
#[derive(Clone, Debug)]
pub(super) struct TestTalk {
    pub(super) transcript: Arc<Transcript>,
    pub(super) questions: Vec<TalkQuestion>,
    /// The spoken lines, without filler; empty for longer speech.
    pub(super) lines: Vec<String>,
    /// The text that an instruction in the talk demands.
    pub(super) canary: Option<String>,
}

impl TestTalk {
    /// The primary language of the talk.
    pub(super) fn language(&self) -> &str {
        self.transcript.track.language.primary()
    }

    /// The times of the segments that contain these words.
    ///
    /// # Errors
    /// The words are not in the talk, or more than once.
    pub(super) fn place(&self, words: &str) -> Result<Span> {
        let segments = &self.transcript.segments;
        let mut all = String::new();
        let starts: Vec<usize> = segments
            .iter()
            .map(|segment| {
                let start = all.len();
                all.push_str(&plain(&segment.text));
                start
            })
            .collect();
        let words = plain(words);
        let mut found = all.match_indices(&words);
        let title = self.transcript.title.as_deref().unwrap_or("");
        let (at, _) = found.next().with_context(|| format!("{title}: nothing holds {words:?}"))?;
        ensure!(found.next().is_none(), "{title}: several places hold {words:?}");
        let first = starts.partition_point(|start| *start <= at).saturating_sub(1);
        let after = starts.partition_point(|start| *start < at + words.len());
        let end_ms = segments
            .get(after)
            .map_or_else(|| segments.last().map_or(0, Segment::end_ms), |segment| segment.start_ms);
        Ok(Span { start_ms: segments.get(first).map_or(0, |segment| segment.start_ms), end_ms })
    }
}

/// All talks with questions of every kind, in the order of their files.
pub(super) fn talks() -> Result<Vec<TestTalk>> {
    talks_of("talks")
}

/// The talks of a folder, in the order of their files.
pub(super) fn talks_of(folder: &str) -> Result<Vec<TestTalk>> {
    let files = fs::read_dir(Path::new(FOLDER).join(folder))?;
    let mut files: Vec<_> = files.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    files.iter().enumerate().map(|(index, file)| talk(index, file)).collect()
}

fn talk(index: usize, file: &Path) -> Result<TestTalk> {
    let text = fs::read_to_string(file)?;
    let written: WrittenTalk = toml::from_str(&text).with_context(|| file.display().to_string())?;
    ensure!(written.lines.is_empty() != written.speech.is_empty(), "{}: lines or speech", file.display());
    let language = LanguageTag::parse(&written.language).map_err(|error| anyhow::anyhow!("{error}"))?;
    let is_spaced = is_spaced(language.primary());
    let (segments, kind) = if written.speech.is_empty() {
        (line_segments(&written, is_spaced), TrackKind::Human)
    } else {
        let kind = if written.recognised { TrackKind::Generated } else { TrackKind::Human };
        (speech_segments(&written.speech, written.recognised, is_spaced), kind)
    };
    let spoken_ms = segments.last().map_or(0, Segment::end_ms);
    let transcript = Transcript {
        video: VideoId::new(Platform::YouTube, &format!("our-talk-{index:02}"))?,
        title: Some(written.title.clone()),
        author: Some("Unknown".to_owned()),
        duration_ms: Some(written.minutes.map_or(spoken_ms, |minutes| minutes * 60_000)),
        track: TrackInfo::new(language, kind),
        source: "our-own".to_owned(),
        segments,
    };
    let WrittenTalk { question: questions, lines, canary, .. } = written;
    Ok(TestTalk { transcript: Arc::new(transcript), questions, lines, canary })
}

/// Whether a language separates words by spaces.
pub(super) fn is_spaced(language: &str) -> bool {
    !["zh", "ja", "th"].contains(&language)
}

fn line_segments(written: &WrittenTalk, is_spaced: bool) -> Vec<Segment> {
    let duration_ms = written.minutes.unwrap_or(1) * 60_000;
    let wanted = (duration_ms / CAPTION_MS) as usize;
    let own: usize = written.lines.iter().map(|line| captions(line, is_spaced).len()).sum();
    let mut fillers = (0..).map(|n| captions(&filler(&written.filler, n, is_spaced), is_spaced));
    let gap = wanted.saturating_sub(own) / written.lines.len().max(1);
    let mut texts: Vec<String> = Vec::new();
    for line in &written.lines {
        texts.extend(captions(line, is_spaced));
        let target = texts.len() + gap;
        while !written.filler.is_empty() && texts.len() < target {
            texts.extend(fillers.next().unwrap_or_default());
        }
    }
    // A talk without filler is stretched over its duration.
    let segment_ms = duration_ms / texts.len().max(1) as u64;
    (0..).zip(texts).map(|(n, text)| Segment::new(text, n * segment_ms, segment_ms)).collect()
}

/// The n-th composed sentence.
fn filler(parts: &[Vec<String>], n: usize, is_spaced: bool) -> String {
    let all: usize = parts.iter().map(Vec::len).product::<usize>().max(1);
    // A step without a common divisor reaches every combination.
    let mut rest = n * 7_919 % all;
    let mut words = Vec::new();
    for part in parts {
        words.extend(part.get(rest % part.len().max(1)).map(String::as_str));
        rest /= part.len().max(1);
    }
    words.join(if is_spaced { " " } else { "" })
}

/// Splits a sentence into captions.
fn captions(line: &str, is_spaced: bool) -> Vec<String> {
    split(line, is_spaced, |_| if is_spaced { WORDS_MAX } else { LETTERS_MAX })
}

/// Splits a text into pieces; `size` is the number of words or letters of the n-th one.
fn split(text: &str, is_spaced: bool, size: impl Fn(usize) -> usize) -> Vec<String> {
    let (units, separator): (Vec<String>, _) = if is_spaced {
        (text.split_whitespace().map(str::to_owned).collect(), " ")
    } else {
        (text.chars().map(String::from).collect(), "")
    };
    let mut pieces = Vec::new();
    let mut rest = units.as_slice();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(size(pieces.len()).clamp(1, rest.len()));
        pieces.push(piece.join(separator));
        rest = after;
    }
    pieces
}

fn speech_segments(speech: &str, is_recognised: bool, is_spaced: bool) -> Vec<Segment> {
    let paragraphs = speech.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut segments = Vec::new();
    let mut start_ms = 0;
    let mut add = |pieces: Vec<String>, pause_ms: u64| {
        for piece in pieces {
            let length_ms = if is_spaced {
                piece.split_whitespace().count() as u64 * WORD_MS
            } else {
                piece.chars().count() as u64 * LETTER_MS
            };
            let overlap_ms = if is_recognised { OVERLAP_MS } else { 0 };
            segments.push(Segment::new(piece, start_ms, length_ms + overlap_ms));
            start_ms += length_ms;
        }
        start_ms += pause_ms;
    };
    if is_recognised {
        let separator = if is_spaced { " " } else { "" };
        let text = recognised(&paragraphs.collect::<Vec<_>>().join(separator));
        let factor = if is_spaced { 1 } else { LETTERS_A_WORD };
        let size = |n: usize| RECOGNISED_WORDS.get(n % RECOGNISED_WORDS.len()).unwrap_or(&1) * factor;
        add(split(&text, is_spaced, size), 0);
    } else {
        paragraphs.for_each(|paragraph| add(captions(paragraph, is_spaced), PARAGRAPH_PAUSE_MS));
    }
    segments
}

/// A text as a machine recognises it: in lower case, and punctuation only inside words and numbers.
fn recognised(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_letter = |index: Option<usize>| {
        index.and_then(|index| letters.get(index)).is_some_and(|c| c.is_alphanumeric())
    };
    let is_mark =
        |c: char| c.is_ascii_punctuation() || "。，、！？；：「」『』（）…—–“”„«»¿¡،؛؟।".contains(c);
    let is_inside = |index: usize, c: char| {
        "'-.,:".contains(c) && is_letter(index.checked_sub(1)) && is_letter(Some(index + 1))
    };
    let spoken = letters.iter().enumerate().filter(|(index, c)| !is_mark(**c) || is_inside(*index, **c));
    // The Turkish capital leaves a combining dot.
    spoken.flat_map(|(_, c)| c.to_lowercase()).filter(|c| *c != '\u{307}').collect()
}
