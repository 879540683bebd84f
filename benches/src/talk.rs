//! Transcripts of talk that nobody gave: of sentences of our own making, in the words and the order in which people say
//! such things, with as many surprises as make it as hard to compress as prose is.

use std::{collections::HashMap, sync::Arc};

use anyhow::Result;
use transcript_core::{
    Timestamp,
    archive::{Keep, Wish},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

use crate::corpus::Sequence;

/// What is said: sentences of our own making.
const SPOKEN: &str = include_str!("../../storage-sqlx/dictionaries/spoken-1.txt");

/// How many words of a hundred follow from nothing that was said.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Surprise {
    /// As one says things oneself: what a dictionary should learn.
    Few = 25,
    /// As hard to compress as prose is.
    Many = 75,
}

/// Says what follows from the word before, mostly.
#[derive(Debug)]
pub(crate) struct Talk {
    words: Vec<&'static str>,
    /// What comes after a word, as often as it does.
    after: HashMap<&'static str, Vec<&'static str>>,
    /// Names and terms, which every video has its own of.
    syllables: Vec<&'static str>,
}

impl Talk {
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

    fn name(&self, sequence: &mut Sequence) -> String {
        (0..2 + sequence.below(2)).map(|_| one(&self.syllables, sequence)).collect()
    }

    /// Some words.
    fn say(&self, words: usize, surprise: Surprise, sequence: &mut Sequence) -> Vec<String> {
        let names: Vec<_> = (0..60).map(|_| self.name(sequence)).collect();
        let mut said = Vec::with_capacity(words);
        let mut before = "";
        while said.len() < words {
            let chance = sequence.below(100);
            if chance >= 95 {
                said.push(names[sequence.below(names.len() as u64) as usize].clone());
                continue;
            }
            let follows = self.after.get(before).filter(|_| chance >= surprise as u64);
            before = one(follows.unwrap_or(&self.words), sequence);
            said.push(before.to_owned());
        }
        said
    }

    /// The transcript of the video with this number: captions of eight words, which a machine made and which stay until
    /// the one after the next; each fourth is of a person's, with its sentences' signs.
    pub(crate) fn transcript(&self, number: u64, captions: usize, surprise: Surprise) -> Result<Transcript> {
        let mut sequence = Sequence::new(number + 1);
        let is_human = number % 4 == 3;
        let words = self.say(captions * 8, surprise, &mut sequence);
        let mut starts = vec![sequence.below(2_000)];
        for place in 0..captions + 1 {
            starts.push(starts[place] + 900 + sequence.below(3_000));
        }
        let ahead = if is_human { 1 } else { 2 };
        let segments = words.chunks(8).enumerate().map(|(place, words)| {
            let text = words.join(" ");
            let text = if is_human { text } else { plain(&text) };
            Segment::new(text, starts[place], starts[place + ahead] - starts[place])
        });
        let kind = if is_human { TrackKind::Human } else { TrackKind::Generated };
        Ok(Transcript {
            video: video(number)?,
            title: Some(self.say(6, surprise, &mut sequence).join(" ")),
            author: Some(self.name(&mut sequence)),
            duration_ms: starts.last().copied(),
            segments: segments.collect(),
            track: TrackInfo::new(LanguageTag::english(), kind),
            source: "youtube-captions".to_owned(),
        })
    }
}

fn one<'a>(words: &[&'a str], sequence: &mut Sequence) -> &'a str {
    words[sequence.below(words.len() as u64) as usize]
}

/// Words as a machine writes them that knows no signs.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| !".,!?\"".contains(*letter)).flat_map(char::to_lowercase).collect()
}

/// The name of the video with this number.
pub(crate) fn video(number: u64) -> Result<VideoId> {
    // As the platform's own are: in no order.
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Ok(VideoId::new(Platform::VideoSite, &format!("{:04x}{number:07}", mixed >> 48))?)
}

/// To archive it as its video's default.
pub(crate) fn keep(transcript: Transcript) -> Keep {
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
