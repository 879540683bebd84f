//! Answers that repeat a talk, invent a number for it, or reverse it: true ones remain, the others are removed.
#![expect(clippy::print_stdout, reason = "the test exists to print figures")]

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use tokio::runtime::Handle;
use transcript_core::chat::{
    AnswerOrigin, Chat, ChatModel, ChatOptions, DeltaSink, ModelReply, ModelRequest, Question, passages,
};

use super::{
    questions::plain,
    talks::{TestTalk, talks},
};

/// Language, and words before a line that reverse it.
const REVERSALS: &[(&str, &str)] = &[
    ("en", "It is not true that"),
    ("de", "Es stimmt nicht, dass"),
    ("fr", "Il n'est pas vrai que"),
    ("es", "No es cierto que"),
    ("ru", "Неправда, не"),
];

/// Writes one text, which cites its own passages.
#[derive(Debug)]
struct FixedModel(String);

#[async_trait]
impl ChatModel for FixedModel {
    fn context_tokens(&self) -> u32 {
        1_000_000
    }

    async fn complete(
        &self,
        _: ModelRequest,
        _: Option<Arc<dyn DeltaSink>>,
    ) -> Result<ModelReply, transcript_core::Error> {
        Ok(ModelReply { text: self.0.clone(), usage: None })
    }
}

/// Whether a sentence that cites the passages of a line remains in an answer.
async fn remains(talk: &TestTalk, line: &str, sentence: &str) -> Result<bool> {
    let passages = passages(&talk.transcript.segments);
    let wanted = plain(line);
    let mut all = String::new();
    let starts: Vec<usize> = passages
        .iter()
        .map(|passage| {
            let start = all.len();
            all.push_str(&plain(&passage.text));
            start
        })
        .collect();
    let at = all.find(&wanted).context("the talk has the line")?;
    let cited = passages
        .iter()
        .zip(&starts)
        .filter(|(passage, start)| **start < at + wanted.len() && **start + plain(&passage.text).len() > at);
    let cites: String = cited.map(|(passage, _)| format!("[s{}]", passage.number)).collect();
    let bare = sentence.trim_end_matches(['.', '!', '?', '。', ' ']);
    let chat = Chat::new(
        Handle::current(),
        Arc::new(FixedModel(format!("{bare} {cites}."))),
        ChatOptions::default(),
    );
    let answer = chat.answer(Arc::clone(&talk.transcript), Question::new("?!", Vec::new())?).await?;
    Ok(answer.origin == AnswerOrigin::Model && plain(&answer.response).contains(&plain(bare)))
}

/// A line with an invented amount in its middle.
fn with_number(line: &str) -> String {
    let middle = line.char_indices().nth(line.chars().count() / 2).map_or(0, |(at, _)| at);
    let at = line.get(..middle).and_then(|head| head.rfind(' ')).unwrap_or(middle);
    let (head, tail) = line.split_at(at);
    format!("{head} 9317 {tail}")
}

/// A talk as recognised by a machine: without punctuation.
fn unpunctuated(talk: &TestTalk) -> TestTalk {
    let mut transcript = talk.transcript.as_ref().clone();
    for segment in &mut transcript.segments {
        segment.text = segment.text.replace(|c: char| ".,;:!?。，、！？；：".contains(c), " ");
    }
    TestTalk { transcript: Arc::new(transcript), ..talk.clone() }
}

/// Counts of sentences about talks, and of those that remain.
#[derive(Debug, Default)]
struct Counts {
    lines: usize,
    kept: usize,
    invented: usize,
    reversals: usize,
    reversed: usize,
}

async fn count(talk: &TestTalk, counts: &mut Counts) -> Result<()> {
    let language = talk.transcript.track.language.primary();
    for line in talk.lines.iter().filter(|line| !line.contains(['"', '“', '「', '[', '„', '«', '\''])) {
        counts.lines += 1;
        if remains(talk, line, line).await? {
            counts.kept += 1;
        } else {
            println!("  removed: {line}");
        }
        if remains(talk, line, &with_number(line)).await? {
            println!("  invented: {}", with_number(line));
            counts.invented += 1;
        }
        if let Some((_, frame)) = REVERSALS.iter().find(|(known, _)| *known == language) {
            counts.reversals += 1;
            let sentence = format!("{frame} {line}");
            if remains(talk, line, &sentence).await? {
                println!("  reversed: {sentence}");
                counts.reversed += 1;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn talk_lines_remain_and_altered_ones_do_not() -> Result<()> {
    let (mut written, mut recognised) = (Counts::default(), Counts::default());
    let is_short = |talk: &&TestTalk| talk.transcript.duration_ms < Some(40 * 60_000);
    for talk in talks()?.iter().filter(|talk| talk.canary.is_none()).filter(is_short) {
        count(talk, &mut written).await?;
        count(&unpunctuated(talk), &mut recognised).await?;
    }
    println!("with punctuation: {written:?}\nwithout: {recognised:?}");
    // Bounds on the shares of true and of reversed lines that remain, in percent.
    for (counts, kept_min, reversed_max) in [(written, 97, 5), (recognised, 90, 5)] {
        ensure!(counts.invented == 0, "{counts:?}");
        ensure!(counts.kept * 100 >= counts.lines * kept_min, "{counts:?}");
        ensure!(counts.reversed * 100 <= counts.reversals * reversed_max, "{counts:?}");
    }
    Ok(())
}
