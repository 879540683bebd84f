//! Synthetic transcripts with the size and the compressibility of real ones.

use std::{fs::File, path::Path, sync::Arc};

use anyhow::Result;
use transcript_core::{
    Timestamp,
    archive::{PutRequest, TrackSelector},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

/// A sequence of numbers that is the same in every run (Knuth's constants).
#[derive(Clone, Debug)]
pub(crate) struct Lcg(u64);

impl Lcg {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// A source of words with very different frequencies.
#[derive(Debug)]
pub(crate) struct WordSource {
    words: Vec<String>,
    sequence: Lcg,
}

impl WordSource {
    pub(crate) fn new(seed: u64) -> Self {
        const SYLLABLES: [&str; 24] = [
            "an", "be", "con", "der", "en", "for", "ga", "hi", "in", "ja", "ko", "la", "mer", "no", "or",
            "per", "qua", "re", "st", "tion", "u", "ver", "wa", "ing",
        ];
        // All sources have the same vocabulary.
        let mut letters = Lcg::new(7);
        let word = |_| {
            let syllables = 1 + letters.below(3);
            (0..syllables).map(|_| SYLLABLES[letters.below(24) as usize]).collect()
        };
        Self { words: (0..3_000).map(word).collect(), sequence: Lcg::new(seed) }
    }

    /// The next words, separated by spaces.
    pub(crate) fn generate(&mut self, words: u64) -> String {
        let count = self.words.len() as u64;
        let word = |_| {
            let most = 1 + self.sequence.below(count);
            let most = 1 + self.sequence.below(most);
            self.words[self.sequence.below(most) as usize].as_str()
        };
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn video(number: u64) -> Result<VideoId> {
    Ok(VideoId::new(Platform::YouTube, &format!("bench-{number:05}"))?)
}

/// Half an hour of speech: some 58 KB of JSON.
pub(crate) fn transcript(number: u64) -> Result<Transcript> {
    speech(number, 690)
}

/// Speech with this many segments of 2.6 seconds each.
fn speech(number: u64, lines: u64) -> Result<Transcript> {
    let mut word_source = WordSource::new(number + 1);
    let segments = (0..lines).map(|n| Segment::new(word_source.generate(8), n * 2_611 + 40, 2_570)).collect();
    Ok(Transcript {
        video: video(number)?,
        title: Some(word_source.generate(5)),
        author: Some(word_source.generate(2)),
        duration_ms: Some(lines * 2_611),
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Generated),
        source: "youtube-captions".to_owned(),
        segments,
    })
}

/// Archives a video's transcript as its default.
pub(crate) fn put_request(number: u64) -> Result<PutRequest> {
    Ok(as_default(transcript(number)?))
}

/// Archives an hour of speech as a video's default.
pub(crate) fn put_hour_request(number: u64) -> Result<PutRequest> {
    Ok(as_default(speech(number, 1_380)?))
}

/// The request that archives a transcript as its video's default.
pub(crate) fn as_default(transcript: Transcript) -> PutRequest {
    PutRequest {
        video: transcript.video.clone(),
        selectors: vec![TrackSelector::Default],
        known_tracks: vec![transcript.track.clone()],
        transcript: Arc::new(transcript),
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(1_795_132_800_000),
    }
}

/// Reads a whole file, before each round that needs it in memory.
///
/// A system short of memory, or one that reclaims unused pages, would otherwise read it from the disk.
pub(crate) fn into_page_cache(file: &Path) -> Result<()> {
    std::io::copy(&mut File::open(file)?, &mut std::io::sink())?;
    Ok(())
}
