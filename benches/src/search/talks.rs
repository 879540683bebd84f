//! Generated talks, and queries for each as people type them.

use anyhow::Result;
use transcript_core::{
    archive::PutRequest,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::VideoId,
};

use super::languages::{CorpusLanguage, languages};
use crate::{
    corpus::{Lcg, as_default},
    markov_text,
};

/// Segments of a talk, and words of a segment: half a minute.
const SEGMENTS: u64 = 12;
const SEGMENT_WORDS: u64 = 8;
/// Words that a talk is about.
const TOPICS: usize = 4;
const QUERY_WORDS: usize = 3;

/// How a query differs from what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryKind {
    /// The words are out of order.
    Order,
    /// One word has one wrong or misplaced letter, too.
    Typo,
    /// The words are in other forms, too; without spaces in languages that have none.
    Forms,
}

impl QueryKind {
    pub(super) const ALL: [Self; 3] = [Self::Order, Self::Typo, Self::Forms];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Order => "words out of order",
            Self::Typo => "one typo",
            Self::Forms => "other forms",
        }
    }
}

/// A corpus of talks in all languages. Every talk is generated again on each use.
#[derive(Debug)]
pub(super) struct Talks {
    languages: Vec<CorpusLanguage>,
    pub(super) count: u64,
}

impl Talks {
    pub(super) fn new(count: u64) -> Self {
        Self { languages: languages(), count }
    }

    pub(super) fn languages(&self) -> impl Iterator<Item = &'static str> {
        self.languages.iter().map(|language| language.tag)
    }

    fn language(&self, number: u64) -> &CorpusLanguage {
        &self.languages[(number % self.languages.len() as u64) as usize]
    }

    /// The language of the talk with this number.
    pub(super) fn language_of(&self, number: u64) -> &'static str {
        self.language(number).tag
    }

    /// The words that the talk with this number is about.
    fn topics(&self, number: u64) -> Vec<usize> {
        let mut sequence = Lcg::new(number.wrapping_mul(2) + 1);
        let mut topics = Vec::with_capacity(TOPICS);
        while topics.len() < TOPICS {
            let topic = sequence.below(self.language(number).stems.len() as u64) as usize;
            if !topics.contains(&topic) {
                topics.push(topic);
            }
        }
        topics
    }

    /// The lines of a talk. Each of its topics occurs in the same form throughout.
    pub(super) fn lines(&self, number: u64) -> Vec<String> {
        let (language, topics) = (self.language(number), self.topics(number));
        let mut sequence = Lcg::new(number.wrapping_mul(2));
        let mut next = 0;
        let mut line = || {
            let words: Vec<String> = (0..SEGMENT_WORDS)
                .map(|_| match sequence.below(20) {
                    0..=2 => {
                        next = (next + 1) % TOPICS;
                        language.form(topics[next], number as usize + next)
                    }
                    3..=10 => {
                        let common = sequence.below(language.common.len() as u64);
                        language.common[common as usize].to_owned()
                    }
                    _ => blend(language, &mut sequence),
                })
                .collect();
            words.join(separator(language))
        };
        let mut lines: Vec<String> = (0..SEGMENTS).map(|_| line()).collect();
        // Every topic occurs, however the words fell.
        let words = (0..TOPICS).map(|topic| language.form(topics[topic], number as usize + topic));
        lines.push(words.collect::<Vec<_>>().join(separator(language)));
        lines
    }

    /// The request that archives a talk.
    pub(super) fn put_request(&self, number: u64) -> Result<PutRequest> {
        let lines = self.lines(number).into_iter().zip(0..);
        let track = TrackInfo::new(LanguageTag::parse(self.language_of(number))?, TrackKind::Generated);
        Ok(as_default(Transcript {
            video: markov_text::video(number)?,
            title: None,
            author: None,
            duration_ms: Some((SEGMENTS + 1) * 2_611),
            track,
            source: "youtube-captions".to_owned(),
            segments: lines.map(|(line, index)| Segment::new(line, index * 2_611 + 40, 2_570)).collect(),
        }))
    }

    /// A query for the talk with this number.
    pub(super) fn query(&self, number: u64, kind: QueryKind) -> String {
        let (language, mut topics) = (self.language(number), self.topics(number));
        // Not the order of the talk: its lines name the topics in turn.
        topics.reverse();
        topics.swap(0, 1);
        let said = |topic: usize| {
            let place = self.topics(number).iter().position(|other| *other == topic).unwrap_or_default();
            number as usize + place
        };
        let other = usize::from(kind == QueryKind::Forms);
        let mut words: Vec<String> = topics
            .iter()
            .take(QUERY_WORDS)
            .map(|topic| language.form(*topic, said(*topic) + other).to_lowercase())
            .collect();
        if kind == QueryKind::Typo {
            let longest = (0..words.len()).max_by_key(|index| words[*index].chars().count());
            let index = longest.unwrap_or_default();
            words[index] = with_typo(&words[index], language, number);
        }
        let is_joined = kind == QueryKind::Forms && !language.is_spaced;
        words.join(if is_joined { "" } else { " " })
    }
}

/// The number of the talk with this video.
pub(super) fn number_of(video: &VideoId) -> Option<u64> {
    video.id().get(4..)?.parse().ok()
}

fn separator(language: &CorpusLanguage) -> &'static str {
    if language.is_spaced { " " } else { "" }
}

/// A rarer word of the language: the beginning of one word and the end of another.
fn blend(language: &CorpusLanguage, sequence: &mut Lcg) -> String {
    let mut word = || {
        // Some words are far more frequent than others.
        let most = 1 + sequence.below(language.stems.len() as u64);
        language.stems[sequence.below(most) as usize].chars().collect::<Vec<_>>()
    };
    let (first, second) = (word(), word());
    let first_half = &first[..first.len().div_ceil(2)];
    first_half.iter().chain(&second[second.len() / 2..]).collect()
}

/// A word with two neighbouring letters swapped; a short word of Chinese or Japanese with a wrong character.
fn with_typo(word: &str, language: &CorpusLanguage, number: u64) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let middle = letters.len() / 2;
    if language.is_spaced {
        // The first pair from the middle on that differs.
        let pair = (middle..letters.len()).find(|at| *at > 1 && letters[*at] != letters[*at - 1]);
        if let Some(at) = pair {
            letters.swap(at, at - 1);
        }
    } else {
        let mut sequence = Lcg::new(number);
        let wrong = blend(language, &mut sequence).chars().next();
        if let (Some(last), Some(wrong)) = (letters.last_mut(), wrong) {
            *last = wrong;
        }
    }
    letters.into_iter().collect()
}
