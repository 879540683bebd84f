//! Questions about videos: finding the passages of a three-hour transcript beside tantivy, and answers for credits
//! beside the plain transcript.

use std::{hint::black_box, time::Instant};

use anyhow::{Result, ensure};
use tantivy::{
    Index, TantivyDocument,
    collector::TopDocs,
    directory::RamDirectory,
    query::QueryParser,
    schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
};
use transcript_core::{
    chat::{ExtractiveModel, Passage, Question, passages},
    transcript::Segment,
};

use crate::{
    charged::{PATH, Shop},
    corpus::Speaker,
    report::{Goal, line, median, ratio},
};

/// How many questions are asked, each of a transcript that was not asked before.
const ROUNDS: u64 = 25;
/// How many passages are wanted.
const FOUND: usize = 5;
/// The room that tantivy has for its index: the least that it takes.
const INDEX_BYTES: usize = 15_000_000;
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

/// The best windows by tantivy: an index in memory of one segment, without positions or stored texts, on this thread.
fn by_tantivy(windows: &[Passage], asked: &str) -> Result<Vec<u32>> {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default().set_index_option(IndexRecordOption::WithFreqs);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let builder = Index::builder().schema(schema.build());
    let mut writer = builder.single_segment_index_writer(RamDirectory::create(), INDEX_BYTES)?;
    for window in windows {
        let mut document = TantivyDocument::default();
        document.add_text(text, &window.text);
        writer.add_document(document)?;
    }
    let index = writer.finalize()?;
    let searcher = index.reader()?.searcher();
    let query = QueryParser::for_index(&index, vec![text]).parse_query(asked)?;
    let found = searcher.search(&query, &TopDocs::with_limit(FOUND).order_by_score())?;
    Ok(found.into_iter().map(|(_, place)| place.doc_id).collect())
}

/// All measurements of questions.
pub(crate) async fn run() -> Result<()> {
    let windows = windows();
    let words: usize = windows.iter().map(|window| window.text.split(' ').count()).sum();
    println!("three hours: {words} words in {} windows", windows.len());
    let mut speaker = Speaker::new(99);
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let asked = speaker.say(8);
        let question = Question::new(&asked, Vec::new())?;
        let own = || -> Result<f64> {
            let began = Instant::now();
            let found = black_box(ExtractiveModel::ranked(&windows, &question));
            ensure!(!found.is_empty(), "nothing found for {asked}");
            Ok(began.elapsed().as_secs_f64() * 1_000.0)
        };
        let other = || -> Result<f64> {
            let began = Instant::now();
            let found = black_box(by_tantivy(&windows, &asked)?);
            ensure!(found.len() == FOUND, "tantivy found {} for {asked}", found.len());
            Ok(began.elapsed().as_secs_f64() * 1_000.0)
        };
        // They take turns at going first.
        let (own_ms, other_ms) = if round % 2 == 0 {
            let own_ms = own()?;
            (own_ms, other()?)
        } else {
            let other_ms = other()?;
            (own()?, other_ms)
        };
        ours.push(own_ms);
        theirs.push(other_ms);
        ratios.push(own_ms / other_ms);
    }
    line("passages of a question, three hours: tantivy", median(theirs), "ms");
    line("the same: ours", median(ours), "ms");
    ratio("the same: to tantivy", median(ratios), Goal::AtMost(1.0));
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
