//! The model that is none: it answers with the transcript's own best passages.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use async_trait::async_trait;

use super::{
    ChatModel, ChatReply, ChatRequest, Deltas, Passage, Question,
    intent::{Intent, intent},
    prompt::NOT_COVERED,
    rank::best,
    retrieve::fitting,
    terms::{Term, terms},
};
use crate::error::{Error, Result};

/// How many passages an answer has at most.
const PASSAGES_MAX: usize = 3;
/// A further passage fits at least this well beside the best one.
const BESIDE_BEST: f32 = 0.55;
/// Into how many parts a whole video is told.
const PARTS: usize = 5;
/// The longest quotation, in characters. A longer passage is one long segment.
const QUOTED_CHARS_MAX: usize = 600;

/// Answers with passages, word for word: honest, at once, without a network.
///
/// It is the default where no language model is configured, and it answers when nothing that one wrote could be
/// verified.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractiveModel;

impl ExtractiveModel {
    /// The places of all passages with a word of the question, the best first.
    pub fn ranked(passages: &[Passage], question: &Question) -> Vec<usize> {
        best(&fitting(passages, question))
    }

    /// The passages with which it answers, the best first, by their places among those of the request; for a
    /// question about a whole video, in the order of the video.
    pub fn pick(passages: &[Passage], question: &Question) -> Vec<usize> {
        match intent(question, passages) {
            Intent::Whole => parts(passages),
            Intent::After(moment_ms) => {
                let later = passages.iter().position(|passage| passage.start_ms / 1_000 > moment_ms / 1_000);
                later.map_or_else(Vec::new, |place| (place..passages.len()).take(PASSAGES_MAX).collect())
            }
            Intent::Before(moment_ms) => {
                let end = passages.partition_point(|passage| passage.start_ms / 1_000 < moment_ms / 1_000);
                (end.saturating_sub(PASSAGES_MAX)..end).collect()
            }
            Intent::Words => {
                let scores = fitting(passages, question);
                let places = best(&scores);
                let score = |place: &usize| scores.get(*place).copied().unwrap_or(0.0);
                let enough = places.first().map_or(0.0, score) * BESIDE_BEST;
                places.into_iter().take(PASSAGES_MAX).take_while(|place| score(place) >= enough).collect()
            }
        }
    }
}

/// The most telling passage of each part of a video.
fn parts(passages: &[Passage]) -> Vec<usize> {
    let mut with: HashMap<String, f32> = HashMap::new();
    let each = |passage: &Passage, act: &mut dyn FnMut(&str)| {
        let mut seen: HashSet<String> = HashSet::new();
        terms(&passage.text, |term| {
            if let Term::Stem(text) | Term::Gram(text) = term
                && seen.insert(text.to_owned())
            {
                act(text);
            }
        });
        seen.len()
    };
    for passage in passages {
        each(passage, &mut |term| *with.entry(term.to_owned()).or_default() += 1.0);
    }
    let all = passages.len() as f32;
    // Words that come back, but not everywhere, are what a part is about.
    let telling = |count: f32| if count < 2.0 { 0.0 } else { count.sqrt() * (all / count).ln() };
    let scores: Vec<f32> = passages
        .iter()
        .map(|passage| {
            let mut sum = 0.0;
            let count = each(passage, &mut |term| sum += telling(with.get(term).copied().unwrap_or(0.0)));
            sum / (count.max(1) as f32).sqrt()
        })
        .collect();
    let length = passages.len().div_ceil(PARTS).max(1);
    let best_of = |(part, scores): (usize, &[f32])| {
        let place =
            scores.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1).then(other.0.cmp(&one.0)));
        place.map(|(place, _)| part * length + place)
    };
    scores.chunks(length).enumerate().filter_map(best_of).collect()
}

/// The words of a passage between quotation marks, without marks that would end them.
fn quoted(text: &str, question: &str) -> String {
    let plain: String = text
        .chars()
        .take(LOOKED_CHARS_MAX)
        .map(|c| match c {
            '"' | '“' | '”' | '„' | '«' | '»' | '‹' | '›' | '「' | '」' | '『' | '』' | '[' | ']' | '<'
            | '>' => ' ',
            '【' | '】' | '［' | '］' | '\\' | '`' | '&' | '＂' | '〝' | '〞' | '❝' | '❞' | '″' => {
                ' '
            }
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    excerpt(plain.trim(), question)
}

/// How much of a passage is looked at for what to quote, in characters.
const LOOKED_CHARS_MAX: usize = 60_000;

/// A text, or the part of a long one that has the words of the question.
fn excerpt(text: &str, question: &str) -> String {
    if text.chars().nth(QUOTED_CHARS_MAX).is_none() {
        return text.to_owned();
    }
    let mut asked: HashSet<String> = HashSet::new();
    terms(question, |term| {
        asked.insert(term.text().to_owned());
    });
    let letters: Vec<char> = text.chars().take(LOOKED_CHARS_MAX).collect();
    let score = |piece: &str| {
        let mut hits = 0;
        terms(piece, |term| hits += usize::from(asked.contains(term.text())));
        hits
    };
    let pieces = letters.chunks(QUOTED_CHARS_MAX).map(|piece| piece.iter().collect::<String>());
    let best =
        pieces.reduce(|best, next| if score(&next) > score(&best) { next } else { best }).unwrap_or_default();
    // A piece begins and ends inside of words where these are written apart.
    match (best.find(char::is_whitespace), best.rfind(char::is_whitespace)) {
        (Some(start), Some(end)) if start < end => best.get(start..end).unwrap_or_default().trim().to_owned(),
        _ => best,
    }
}

impl ExtractiveModel {
    /// What it answers to a request.
    pub(super) fn written(ask: ChatRequest) -> Result<String> {
        let question =
            Question::new(&ask.question, ask.history).map_err(|error| Error::invalid(error.to_string()))?;
        let picked = Self::pick(&ask.passages, &question);
        let lines = picked
            .iter()
            .filter_map(|place| ask.passages.get(*place))
            .map(|passage| format!("“{}” [s{}]", quoted(&passage.text, question.message()), passage.number));
        let text = lines.collect::<Vec<_>>().join("\n");
        Ok(if text.is_empty() { NOT_COVERED.to_owned() } else { text })
    }
}

#[async_trait]
impl ChatModel for ExtractiveModel {
    fn context_tokens(&self) -> u32 {
        u32::MAX
    }

    async fn complete(&self, ask: ChatRequest, deltas: Option<Arc<dyn Deltas>>) -> Result<ChatReply> {
        let text = Self::written(ask)?;
        if let Some(deltas) = deltas {
            deltas.push(&text);
        }
        Ok(ChatReply { text, usage: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::passages, transcript::Segment};

    fn talk(count: u64) -> Vec<Passage> {
        let segments: Vec<_> = (0..count)
            .map(|n| Segment::new(format!("The harbour of part {n} has ships and ships."), n * 60_000, 1_000))
            .collect();
        passages(&segments)
    }

    fn picked(count: u64, question: &str) -> Vec<usize> {
        ExtractiveModel::pick(&talk(count), &Question::new(question, Vec::new()).unwrap())
    }

    #[test]
    fn a_whole_video_is_told_by_its_parts() {
        let places = picked(50, "Summarise it");
        assert_eq!(places.iter().map(|place| place / 10).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(picked(2, "Summarise it").len(), 2);
        assert!(picked(0, "Summarise it").is_empty());
    }

    #[test]
    fn words_that_nobody_said_pick_nothing() {
        assert!(picked(5, "xylophone?").is_empty());
        assert_eq!(picked(50, "part 7").first(), Some(&7));
    }

    #[test]
    fn of_a_long_segment_the_part_with_the_words_is_quoted() {
        let text = format!("{} the kettle boils {}", "filler ".repeat(300), "more ".repeat(300));
        let quote = quoted(&text, "When does the kettle boil?");
        assert!(quote.contains("kettle") && quote.chars().count() <= QUOTED_CHARS_MAX, "{quote}");
        assert_eq!(quoted("a “b” [c]", ""), "a  b   c");
    }
}
