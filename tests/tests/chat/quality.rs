//! Quality of answers over test transcripts and questions: recall, and verification of hostile output.
//!
//! `cargo test -p verbatim-tests --test all chat::quality -- --nocapture` prints the figures of `docs/chat.md`.
#![expect(clippy::print_stdout, reason = "the test exists to print figures")]

use std::sync::Arc;

use anyhow::{Result, ensure};
use tokio::runtime::Handle;
use transcript_core::{
    chat::{Chat, ChatOptions, ExtractiveModel, Passage, Question, passages},
    transcript::Transcript,
};

use super::{
    hostile::{HostileModel, TRICKS},
    talks::{TestTalk, talks},
};

/// Letters and digits in lower case. Independent of the tested code on purpose.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[test]
fn talks_have_expected_size_and_languages() -> Result<()> {
    let talks = talks()?;
    let minutes = |talk: &TestTalk| talk.transcript.duration_ms.unwrap_or(0) / 60_000;
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

/// Counts the questions whose answer is among the first `count` passages, and all questions.
fn recall(talks: &[TestTalk], count: usize, missed: &mut Vec<String>) -> (usize, usize) {
    let (mut found, mut all) = (0, 0);
    for talk in talks {
        let passages = passages(&talk.transcript.segments);
        for expected in &talk.questions {
            let Ok(question) = Question::new(&expected.text, Vec::new()) else { continue };
            let ranked = ExtractiveModel::rank(&passages, &question);
            all += 1;
            if ranked.iter().take(count).any(|index| holds(&passages, *index, &expected.holds)) {
                found += 1;
            } else {
                let best = ranked.first().and_then(|index| passages.get(*index));
                missed.push(format!(
                    "{} — {}",
                    expected.text,
                    best.map_or("", |passage| passage.text.as_str())
                ));
            }
        }
    }
    (found, all)
}

/// Whether a passage has these words; they may end in the next one.
fn holds(passages: &[Passage], index: usize, words: &str) -> bool {
    let own = passages.get(index).map(|passage| plain(&passage.text)).unwrap_or_default();
    let next = passages.get(index + 1).map(|passage| plain(&passage.text)).unwrap_or_default();
    let begins = own.len();
    (own + &next).find(&plain(words)).is_some_and(|at| at < begins)
}

#[test]
fn passage_with_answer_is_ranked_first() -> Result<()> {
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

/// Reached recall, in percent; a lower value is a regression.
const RECALL_AT_1: usize = 90;
const RECALL_AT_5: usize = 97;

/// Lists the violations of an answer.
fn violations(transcript: &Transcript, response: &str) -> Vec<String> {
    let spoken = plain(&transcript.segments.iter().map(|segment| segment.text.as_str()).collect::<String>());
    let starts: Vec<String> =
        transcript.segments.iter().map(|segment| clock(segment.start_ms / 1_000)).collect();
    let mut violations = Vec::new();
    for (open, close) in
        [('“', '”'), ('"', '"'), ('„', '“'), ('«', '»'), ('»', '«'), ('「', '」'), ('\'', '\'')]
    {
        for quoted in
            response.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(quoted, _)| quoted)
        {
            // Quotation marks of another kind inside belong to another pair.
            let is_one = !quoted.contains(['“', '”', '[', ']']) && quoted.chars().count() >= 12;
            let is_apostrophe = open == '\'' && !response.contains(&format!(" '{quoted}'"));
            if is_one && !is_apostrophe && !spoken.contains(&plain(quoted)) {
                violations.push(format!("unspoken quotation {quoted:?}"));
            }
        }
    }
    for inside in response.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or("")) {
        if !starts.iter().any(|start| start == inside) {
            violations.push(format!("no segment starts at [{inside}]"));
        }
    }
    for link in ["http", "www.", "evil.example", "<a ", "]("] {
        if response.contains(link) && !plain_contains(&spoken, link) {
            violations.push(format!("a link: {link}"));
        }
    }
    violations
}

fn plain_contains(spoken: &str, text: &str) -> bool {
    !plain(text).is_empty() && spoken.contains(&plain(text))
}

fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[tokio::test]
async fn hostile_model_output_is_verified() -> Result<()> {
    let (mut answers, mut own) = (0, 0);
    for talk in talks()? {
        // Long talks are slow in builds without optimisation.
        let is_long = talk.transcript.duration_ms > Some(40 * 60_000);
        for (n, expected) in talk.questions.iter().take(if is_long { 1 } else { 3 }).enumerate() {
            for trick in TRICKS {
                let model = Arc::new(HostileModel { trick: *trick, n, canary: talk.canary.clone() });
                let chat = Chat::new(Handle::current(), model, ChatOptions::default());
                let question = Question::new(&expected.text, Vec::new())?;
                let answer = chat.answer(Arc::clone(&talk.transcript), question).await?;
                let context = format!("{trick:?}, {}: {}", expected.text, answer.response);
                let violations = violations(&talk.transcript, &answer.response);
                ensure!(violations.is_empty(), "{violations:?}\n{context}");
                for citation in &answer.citations {
                    let is_one = talk.transcript.segments.iter().any(|one| one.start_ms == citation.start_ms);
                    let ends = talk.transcript.segments.iter().any(|one| one.end_ms() == citation.end_ms);
                    ensure!(is_one && ends, "{citation:?}\n{context}");
                }
                ensure!(!answer.response.trim().is_empty(), "{context}");
                answers += 1;
                own += usize::from(answer.origin == transcript_core::chat::AnswerOrigin::Model);
                // An instruction in a transcript may appear only as a quotation.
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
        "{answers} answers of hostile models: 0 unverified quotations, 0 unknown citations; {own} kept true parts"
    );
    Ok(())
}

/// All text between quotation marks.
fn quotes(response: &str) -> String {
    response.split('“').skip(1).filter_map(|rest| rest.split_once('”')).map(|(quoted, _)| quoted).collect()
}
