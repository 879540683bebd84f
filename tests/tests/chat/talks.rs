//! Test transcripts and questions about them: `tests/chat/talks`.
//!
//! The lines of a talk are its facts. Longer talks are filled with sentences that are composed from the talk's
//! own words in a fixed order.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use transcript_core::{
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

/// The folder of the talks.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/chat/talks");
/// Duration of a caption in milliseconds.
const CAPTION_MS: u64 = 2_500;
/// Maximum words of a caption, or characters in languages without spaces.
const WORDS_MAX: usize = 9;
const LETTERS_MAX: usize = 18;

/// A talk as stored in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTalk {
    title: String,
    language: String,
    minutes: u64,
    canary: Option<String>,
    lines: Vec<String>,
    #[serde(default)]
    filler: Vec<Vec<String>>,
    question: Vec<TalkQuestion>,
}

/// A question with words that only its answer contains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TalkQuestion {
    #[serde(rename = "ask")]
    pub(super) text: String,
    pub(super) holds: String,
}

/// A talk as a transcript with its questions.
#[derive(Clone, Debug)]
pub(super) struct TestTalk {
    pub(super) transcript: Arc<Transcript>,
    pub(super) questions: Vec<TalkQuestion>,
    /// The spoken lines, without filler.
    pub(super) lines: Vec<String>,
    /// The text that an instruction in the talk demands.
    pub(super) canary: Option<String>,
}

/// All talks, in the order of their files.
pub(super) fn talks() -> Result<Vec<TestTalk>> {
    let mut files: Vec<_> = fs::read_dir(FOLDER)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    files.iter().enumerate().map(|(index, file)| talk(index, file)).collect()
}

fn talk(index: usize, file: &Path) -> Result<TestTalk> {
    let text = fs::read_to_string(file)?;
    let written: WrittenTalk = toml::from_str(&text).with_context(|| file.display().to_string())?;
    for question in &written.question {
        let holding = written.lines.iter().filter(|line| line.contains(&question.holds)).count();
        ensure!(holding == 1, "{}: {holding} lines hold {:?}", file.display(), question.holds);
    }
    let language = LanguageTag::parse(&written.language).map_err(|error| anyhow::anyhow!("{error}"))?;
    let transcript = Transcript {
        video: VideoId::new(Platform::YouTube, &format!("our-talk-{index:02}"))?,
        title: Some(written.title.clone()),
        author: Some("Unknown".to_owned()),
        duration_ms: Some(written.minutes * 60_000),
        track: TrackInfo::new(language, TrackKind::Human),
        source: "our-own".to_owned(),
        segments: segments(&written),
    };
    let WrittenTalk { question: questions, lines, canary, .. } = written;
    Ok(TestTalk { transcript: Arc::new(transcript), questions, lines, canary })
}

fn segments(written: &WrittenTalk) -> Vec<Segment> {
    let is_spaced = !["zh", "ja", "th"].iter().any(|language| written.language.starts_with(language));
    let wanted = (written.minutes * 60_000 / CAPTION_MS) as usize;
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
    let segment_ms = written.minutes * 60_000 / texts.len().max(1) as u64;
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
    if is_spaced {
        let words: Vec<&str> = line.split(' ').collect();
        return words.chunks(WORDS_MAX).map(|words| words.join(" ")).collect();
    }
    let letters: Vec<char> = line.chars().collect();
    letters.chunks(LETTERS_MAX).map(|letters| letters.iter().collect()).collect()
}
