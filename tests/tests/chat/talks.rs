//! Transcripts of our own making, and questions about them: `tests/chat/talks`.
//!
//! A talk's lines are its facts. Where it is longer than they are, sentences stand between them that are put together
//! from the talk's own words, in an order that is the same each time.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use transcript_core::{
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

/// Where they lie.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/chat/talks");
/// How long a caption stays, in milliseconds.
const CAPTION_MS: u64 = 2_500;
/// The most words of a caption, and the most letters where words are not written apart.
const WORDS_MAX: usize = 9;
const LETTERS_MAX: usize = 18;

/// A talk as its file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: String,
    language: String,
    minutes: u64,
    canary: Option<String>,
    lines: Vec<String>,
    #[serde(default)]
    filler: Vec<Vec<String>>,
    question: Vec<Asked>,
}

/// A question, and words that only its answer has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) ask: String,
    pub(super) holds: String,
}

/// A talk.
#[derive(Clone, Debug)]
pub(super) struct Talk {
    pub(super) transcript: Arc<Transcript>,
    pub(super) questions: Vec<Asked>,
    /// What an instruction in it wants to be said.
    pub(super) canary: Option<String>,
}

/// All talks, in the order of their files.
pub(super) fn talks() -> Result<Vec<Talk>> {
    let mut files: Vec<_> = fs::read_dir(FOLDER)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    files.iter().enumerate().map(|(place, file)| talk(place, file)).collect()
}

fn talk(place: usize, file: &Path) -> Result<Talk> {
    let text = fs::read_to_string(file)?;
    let written: Written = toml::from_str(&text).with_context(|| file.display().to_string())?;
    for asked in &written.question {
        let holding = written.lines.iter().filter(|line| line.contains(&asked.holds)).count();
        ensure!(holding == 1, "{}: {holding} lines hold {:?}", file.display(), asked.holds);
    }
    let language = LanguageTag::parse(&written.language).map_err(|error| anyhow::anyhow!("{error}"))?;
    let transcript = Transcript {
        video: VideoId::new(Platform::VideoSite, &format!("our-talk-{place:02}"))?,
        title: Some(written.title.clone()),
        author: Some("Nobody".to_owned()),
        duration_ms: Some(written.minutes * 60_000),
        track: TrackInfo::new(language, TrackKind::Human),
        source: "our-own".to_owned(),
        segments: segments(&written),
    };
    Ok(Talk { transcript: Arc::new(transcript), questions: written.question, canary: written.canary })
}

fn segments(written: &Written) -> Vec<Segment> {
    let is_spaced = !["zh", "ja", "th"].iter().any(|language| written.language.starts_with(language));
    let wanted = (written.minutes * 60_000 / CAPTION_MS) as usize;
    let own: usize = written.lines.iter().map(|line| captions(line, is_spaced).len()).sum();
    let mut fillers = (0..).map(|n| captions(&filler(&written.filler, n, is_spaced), is_spaced));
    let gap = wanted.saturating_sub(own) / written.lines.len().max(1);
    let mut texts: Vec<String> = Vec::new();
    for line in &written.lines {
        texts.extend(captions(line, is_spaced));
        let until = texts.len() + gap;
        while !written.filler.is_empty() && texts.len() < until {
            texts.extend(fillers.next().unwrap_or_default());
        }
    }
    // A talk without more to say is said more slowly, in one go.
    let pace = written.minutes * 60_000 / texts.len().max(1) as u64;
    (0..).zip(texts).map(|(n, text)| Segment::new(text, n * pace, pace)).collect()
}

/// The n-th sentence that can be put together.
fn filler(parts: &[Vec<String>], n: usize, is_spaced: bool) -> String {
    let all: usize = parts.iter().map(Vec::len).product::<usize>().max(1);
    // A step without a common divisor reaches each of them.
    let mut rest = n * 7_919 % all;
    let mut words = Vec::new();
    for part in parts {
        words.extend(part.get(rest % part.len().max(1)).map(String::as_str));
        rest /= part.len().max(1);
    }
    words.join(if is_spaced { " " } else { "" })
}

/// A sentence as captions.
fn captions(line: &str, is_spaced: bool) -> Vec<String> {
    if is_spaced {
        let words: Vec<&str> = line.split(' ').collect();
        return words.chunks(WORDS_MAX).map(|words| words.join(" ")).collect();
    }
    let letters: Vec<char> = line.chars().collect();
    letters.chunks(LETTERS_MAX).map(|letters| letters.iter().collect()).collect()
}
