//! Synthetic transcripts: a Markov chain over sentences written for this purpose.
//!
//! Enough words are random to make the text as hard to compress as prose.

use std::collections::HashMap;

use anyhow::Result;
use transcript_core::{
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

use crate::corpus::Lcg;

/// The source sentences, written for this repository.
const SPOKEN: &str = include_str!("../../storage-sqlx/dictionaries/spoken-1.txt");

/// Percentage of words that do not follow from the previous one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TalkSurprise {
    /// Close to the source sentences: the text that a dictionary should learn.
    Few = 25,
    /// As hard to compress as prose.
    Many = 75,
}

/// A Markov chain of words.
#[derive(Debug)]
pub(crate) struct MarkovText {
    words: Vec<&'static str>,
    /// The successors of a word, repeated by frequency.
    after: HashMap<&'static str, Vec<&'static str>>,
    /// Syllables of names and terms, which differ for every video.
    syllables: Vec<&'static str>,
}

impl MarkovText {
    pub(crate) fn new() -> Self {
        let lines = || SPOKEN.lines().filter(|line| !line.is_empty());
        let mut after: HashMap<_, Vec<_>> = HashMap::new();
        for line in lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            for pair in words.windows(2) {
                after.entry(pair[0]).or_default().push(pair[1]);
            }
        }
        let syllables = "an be con der en for ga hi in ja ko la mer no or per qua re st tion u ver wa ing";
        Self {
            words: lines().flat_map(str::split_whitespace).collect(),
            after,
            syllables: syllables.split(' ').collect(),
        }
    }

    fn name(&self, sequence: &mut Lcg) -> String {
        (0..2 + sequence.below(2)).map(|_| one(&self.syllables, sequence)).collect()
    }

    /// The next words.
    fn generate(&self, words: usize, surprise: TalkSurprise, sequence: &mut Lcg) -> Vec<String> {
        let names: Vec<_> = (0..60).map(|_| self.name(sequence)).collect();
        let mut chosen = Vec::with_capacity(words);
        let mut before = "";
        while chosen.len() < words {
            let chance = sequence.below(100);
            if chance >= 95 {
                chosen.push(names[sequence.below(names.len() as u64) as usize].clone());
                continue;
            }
            let follows = self.after.get(before).filter(|_| chance >= surprise as u64);
            before = one(follows.unwrap_or(&self.words), sequence);
            chosen.push(before.to_owned());
        }
        chosen
    }

    /// The transcript of the video with this number.
    ///
    /// Generated captions of eight words last until the one after the next starts. Every fourth video has captions made
    /// by people, with punctuation.
    pub(crate) fn transcript(
        &self,
        number: u64,
        captions: usize,
        surprise: TalkSurprise,
    ) -> Result<Transcript> {
        let mut sequence = Lcg::new(number + 1);
        let is_human = number % 4 == 3;
        let words = self.generate(captions * 8, surprise, &mut sequence);
        let mut starts = vec![sequence.below(2_000)];
        for index in 0..captions + 1 {
            starts.push(starts[index] + 900 + sequence.below(3_000));
        }
        let ahead = if is_human { 1 } else { 2 };
        let segments = words.chunks(8).enumerate().map(|(index, words)| {
            let text = words.join(" ");
            let text = if is_human { text } else { plain(&text) };
            Segment::new(text, starts[index], starts[index + ahead] - starts[index])
        });
        let kind = if is_human { TrackKind::Human } else { TrackKind::Generated };
        Ok(Transcript {
            video: video(number)?,
            title: Some(self.generate(6, surprise, &mut sequence).join(" ")),
            author: Some(self.name(&mut sequence)),
            duration_ms: starts.last().copied(),
            segments: segments.collect(),
            track: TrackInfo::new(LanguageTag::english(), kind),
            source: "youtube-captions".to_owned(),
        })
    }
}

fn one<'a>(words: &[&'a str], sequence: &mut Lcg) -> &'a str {
    words[sequence.below(words.len() as u64) as usize]
}

/// The text without punctuation and capitals, like automatic captions.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| !".,!?\"".contains(*letter)).flat_map(char::to_lowercase).collect()
}

pub(crate) fn video(number: u64) -> Result<VideoId> {
    // Like the platform's ids, these are in no order.
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Ok(VideoId::new(Platform::YouTube, &format!("{:04x}{number:07}", mixed >> 48))?)
}
