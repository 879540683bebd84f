//! How good answers are, over transcripts and questions of our own: what is found, and what may leave.
//!
//! `cargo test -p verbatim-tests --test all chat::quality -- --nocapture` prints the figures of `docs/chat.md`.
#![expect(clippy::print_stdout, reason = "the figures are what this is for")]

use std::sync::Arc;

use anyhow::{Result, ensure};
use tokio::runtime::Handle;
use transcript_core::{
    chat::{Chat, ChatOptions, ExtractiveModel, Passage, Question, passages},
    transcript::Transcript,
};

use super::{
    hostile::{Hostile, TRICKS},
    talks::{Talk, talks},
};

/// Letters and digits alone, in lower case: written for this test, apart from the code that it tests.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[test]
fn the_set_is_what_it_is_said_to_be() -> Result<()> {
    let talks = talks()?;
    let minutes = |talk: &Talk| talk.transcript.duration_ms.unwrap_or(0) / 60_000;
    let mut languages: Vec<_> =
        talks.iter().map(|talk| talk.transcript.track.language.primary().to_owned()).collect();
    languages.sort();
    languages.dedup();
    ensure!(talks.len() >= 12 && languages.len() >= 9, "{} talks, {languages:?}", talks.len());
    ensure!(talks.iter().map(minutes).min() <= Some(6) && talks.iter().map(minutes).max() == Some(180));
    ensure!(talks.iter().filter(|talk| talk.canary.is_some()).count() == 2);
    let longest = talks.iter().max_by_key(|talk| talk.transcript.segments.len()).map(|talk| &talk.transcript);
    let words = |transcript: &Transcript| -> usize {
        transcript.segments.iter().map(|segment| segment.text.split_whitespace().count()).sum()
    };
    ensure!(longest.is_some_and(|transcript| words(transcript) > 25_000), "{:?}", longest.map(|t| words(t)));
    for talk in &talks {
        talk.transcript.check()?;
    }
    Ok(())
}

/// The share of questions whose answer is among the first `count` passages.
fn recall(talks: &[Talk], count: usize, missed: &mut Vec<String>) -> (usize, usize) {
    let (mut found, mut all) = (0, 0);
    for talk in talks {
        let passages = passages(&talk.transcript.segments);
        for asked in &talk.questions {
            let Ok(question) = Question::new(&asked.ask, Vec::new()) else { continue };
            let ranked = ExtractiveModel::ranked(&passages, &question);
            all += 1;
            if ranked.iter().take(count).any(|place| holds(&passages, *place, &asked.holds)) {
                found += 1;
            } else {
                let best = ranked.first().and_then(|place| passages.get(*place));
                missed.push(format!("{} — {}", asked.ask, best.map_or("", |passage| passage.text.as_str())));
            }
        }
    }
    (found, all)
}

/// Whether a passage has these words; they may end in the next one.
fn holds(passages: &[Passage], place: usize, words: &str) -> bool {
    let own = passages.get(place).map(|passage| plain(&passage.text)).unwrap_or_default();
    let next = passages.get(place + 1).map(|passage| plain(&passage.text)).unwrap_or_default();
    let begins = own.len();
    (own + &next).find(&plain(words)).is_some_and(|at| at < begins)
}

#[test]
fn the_passage_with_the_answer_is_found() -> Result<()> {
    let talks = talks()?;
    let (mut missed, mut beyond) = (Vec::new(), Vec::new());
    let (first, all) = recall(&talks, 1, &mut missed);
    let (fifth, _) = recall(&talks, 5, &mut beyond);
    println!(
        "{} talks, {all} questions: the best passage holds {first} answers, the best five hold {fifth}",
        talks.len()
    );
    missed.iter().for_each(|question| println!("  not first: {question}"));
    beyond.iter().for_each(|question| println!("  not among five: {question}"));
    ensure!(first * 100 >= all * RECALL_AT_1, "{first} of {all}");
    ensure!(fifth * 100 >= all * RECALL_AT_5, "{fifth} of {all}");
    Ok(())
}

/// What was reached, in percent: less is a step back.
const RECALL_AT_1: usize = 90;
const RECALL_AT_5: usize = 97;

/// What an answer must not be: a list of what is wrong with it.
fn wrongs(transcript: &Transcript, response: &str) -> Vec<String> {
    let said = plain(&transcript.segments.iter().map(|segment| segment.text.as_str()).collect::<String>());
    let starts: Vec<String> =
        transcript.segments.iter().map(|segment| clock(segment.start_ms / 1_000)).collect();
    let mut wrongs = Vec::new();
    for (open, close) in
        [('“', '”'), ('"', '"'), ('„', '“'), ('«', '»'), ('»', '«'), ('「', '」'), ('\'', '\'')]
    {
        for quoted in
            response.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(quoted, _)| quoted)
        {
            // Marks of another kind inside belong to another pair.
            let is_one = !quoted.contains(['“', '”', '[', ']']) && quoted.chars().count() >= 12;
            let is_apostrophe = open == '\'' && !response.contains(&format!(" '{quoted}'"));
            if is_one && !is_apostrophe && !said.contains(&plain(quoted)) {
                wrongs.push(format!("nobody said {quoted:?}"));
            }
        }
    }
    for inside in response.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or("")) {
        if !starts.iter().any(|start| start == inside) {
            wrongs.push(format!("no segment starts at [{inside}]"));
        }
    }
    for link in ["http", "www.", "evil.example", "<a ", "]("] {
        if response.contains(link) && !plain_contains(&said, link) {
            wrongs.push(format!("a link: {link}"));
        }
    }
    wrongs
}

fn plain_contains(said: &str, text: &str) -> bool {
    !plain(text).is_empty() && said.contains(&plain(text))
}

fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[tokio::test]
async fn nothing_that_a_hostile_model_makes_up_leaves() -> Result<()> {
    let (mut answers, mut own) = (0, 0);
    for talk in talks()? {
        // Long ones take their time where nothing is optimised.
        let is_long = talk.transcript.duration_ms > Some(40 * 60_000);
        for (n, asked) in talk.questions.iter().take(if is_long { 1 } else { 3 }).enumerate() {
            for trick in TRICKS {
                let model = Arc::new(Hostile { trick: *trick, n, canary: talk.canary.clone() });
                let chat = Chat::new(Handle::current(), model, ChatOptions::default());
                let question = Question::new(&asked.ask, Vec::new())?;
                let answer = chat.ask(Arc::clone(&talk.transcript), question).await?;
                let context = format!("{trick:?}, {}: {}", asked.ask, answer.response);
                let wrongs = wrongs(&talk.transcript, &answer.response);
                ensure!(wrongs.is_empty(), "{wrongs:?}\n{context}");
                for citation in &answer.citations {
                    let is_one = talk.transcript.segments.iter().any(|one| one.start_ms == citation.start_ms);
                    let ends = talk.transcript.segments.iter().any(|one| one.end_ms() == citation.end_ms);
                    ensure!(is_one && ends, "{citation:?}\n{context}");
                }
                ensure!(!answer.response.trim().is_empty(), "{context}");
                answers += 1;
                own += usize::from(answer.origin == transcript_core::chat::Origin::Model);
                // An instruction in a transcript is no more than its own words.
                let obeys = talk.canary.as_ref().is_some_and(|canary| {
                    let quoted = quotes(&answer.response);
                    answer.response.replace(&quoted, "").contains(canary.as_str())
                        && !quoted.contains(canary.as_str())
                });
                ensure!(!obeys, "{context}");
            }
        }
    }
    println!(
        "{answers} answers of hostile models: 0 unverified quotations, 0 unknown citations; {own} kept something true"
    );
    Ok(())
}

/// What stands between quotation marks, all of it.
fn quotes(response: &str) -> String {
    response.split('“').skip(1).filter_map(|rest| rest.split_once('”')).map(|(quoted, _)| quoted).collect()
}
