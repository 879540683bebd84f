//! Transcripts that nobody spoke, of the size and the compressibility of real ones.

use std::{fs::File, path::Path, sync::Arc};

use anyhow::Result;
use transcript_core::{
    Timestamp,
    archive::{Keep, Wish},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

/// A sequence of numbers that is the same in every run (Knuth's constants).
#[derive(Clone, Debug)]
pub(crate) struct Sequence(u64);

impl Sequence {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// Words, some of them far more frequent than others.
#[derive(Debug)]
pub(crate) struct Speaker {
    words: Vec<String>,
    sequence: Sequence,
}

impl Speaker {
    pub(crate) fn new(seed: u64) -> Self {
        const SYLLABLES: [&str; 24] = [
            "an", "be", "con", "der", "en", "for", "ga", "hi", "in", "ja", "ko", "la", "mer", "no", "or",
            "per", "qua", "re", "st", "tion", "u", "ver", "wa", "ing",
        ];
        // Everybody speaks the same language.
        let mut letters = Sequence::new(7);
        let word = |_| {
            let syllables = 1 + letters.below(3);
            (0..syllables).map(|_| SYLLABLES[letters.below(24) as usize]).collect()
        };
        Self { words: (0..3_000).map(word).collect(), sequence: Sequence::new(seed) }
    }

    /// Some words.
    pub(crate) fn say(&mut self, words: u64) -> String {
        let count = self.words.len() as u64;
        let word = |_| {
            let most = 1 + self.sequence.below(count);
            let most = 1 + self.sequence.below(most);
            self.words[self.sequence.below(most) as usize].as_str()
        };
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The name of the video with this number.
pub(crate) fn video(number: u64) -> Result<VideoId> {
    Ok(VideoId::new(Platform::VideoSite, &format!("bench-{number:05}"))?)
}

/// Half an hour of speech: some 58 KB of JSON.
pub(crate) fn transcript(number: u64) -> Result<Transcript> {
    speech(number, 690)
}

/// Speech of this many lines, of 2.6 seconds each.
fn speech(number: u64, lines: u64) -> Result<Transcript> {
    let mut speaker = Speaker::new(number + 1);
    let segments = (0..lines).map(|n| Segment::new(speaker.say(8), n * 2_611 + 40, 2_570)).collect();
    Ok(Transcript {
        video: video(number)?,
        title: Some(speaker.say(5)),
        author: Some(speaker.say(2)),
        duration_ms: Some(lines * 2_611),
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Generated),
        source: "youtube-captions".to_owned(),
        segments,
    })
}

/// To archive it as its video's default.
pub(crate) fn keep(number: u64) -> Result<Keep> {
    Ok(as_default(transcript(number)?))
}

/// To archive an hour of speech as its video's default.
pub(crate) fn keep_an_hour(number: u64) -> Result<Keep> {
    Ok(as_default(speech(number, 1_380)?))
}

fn as_default(transcript: Transcript) -> Keep {
    Keep {
        video: transcript.video.clone(),
        wishes: vec![Wish::Default],
        known_tracks: vec![transcript.track.clone()],
        transcript: Arc::new(transcript),
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(1_795_132_800_000),
    }
}

/// Reads a file whole, before each round that needs it in memory: a system that is short of memory, or takes unused
/// pages back, would have them read from the disk.
pub(crate) fn into_page_cache(file: &Path) -> Result<()> {
    std::io::copy(&mut File::open(file)?, &mut std::io::sink())?;
    Ok(())
}
