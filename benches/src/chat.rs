//! Questions about videos: finding the passages of a three-hour transcript, and answers for credits beside the plain
//! transcript.

use std::{hint::black_box, time::Instant};

use anyhow::{Result, ensure};
use transcript_core::{
    chat::{ExtractiveModel, Passage, Question, passages},
    transcript::Segment,
};

use crate::{
    charged::{PATH, Shop},
    corpus::Speaker,
    report::{Goal, line, median, ratio},
};

/// How many questions are asked.
const ROUNDS: u64 = 15;
/// How many segments three hours have, and how many words each: some 30,000 together.
const SEGMENTS: u64 = 2_700;
const WORDS: u64 = 11;

/// Three hours of speech, as windows.
fn windows() -> Vec<Passage> {
    let mut speaker = Speaker::new(1);
    let segments: Vec<Segment> =
        (0..SEGMENTS).map(|n| Segment::new(speaker.say(WORDS), n * 4_000, 4_000)).collect();
    passages(&segments)
}

/// All measurements of questions.
pub(crate) async fn run() -> Result<()> {
    let windows = windows();
    let words: usize = windows.iter().map(|window| window.text.split(' ').count()).sum();
    println!("three hours: {words} words in {} windows", windows.len());
    let mut speaker = Speaker::new(99);
    let mut ours = Vec::new();
    for _ in 0..ROUNDS {
        let asked = speaker.say(8);
        let question = Question::new(&asked, Vec::new())?;
        let began = Instant::now();
        let found = black_box(ExtractiveModel::ranked(&windows, &question));
        let own_ms = began.elapsed().as_secs_f64() * 1_000.0;
        ensure!(!found.is_empty(), "nothing found for {asked}");
        ours.push(own_ms);
    }
    line("passages of a question, three hours", median(ours), "ms");
    answered().await
}

/// Answers for credits, beside the transcript that they are made of.
async fn answered() -> Result<()> {
    let shop = Shop::open().await?;
    let asked = Speaker::new(7).say(8);
    let body = format!("{{\"video_id\": \"bench-00000\", \"message\": \"{asked}\"}}");
    let (mut plain, mut chat, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let (_, transcripts) = shop.load(32, PATH, "")?;
        let (_, answers) = shop.load(32, "/api/v1/chat", &body)?;
        plain.push(transcripts);
        chat.push(answers);
        ratios.push(answers / transcripts);
    }
    line("transcripts for credits, 32 at once", median(plain), "a second");
    line("answers for credits, 32 at once", median(chat), "a second");
    ratio("the same: to transcripts", median(ratios), Goal::None);
    Ok(())
}
