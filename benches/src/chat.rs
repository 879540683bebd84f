//! Questions about videos: ranking the passages of three hours, and charged answers.
//!
//! The baselines are tantivy, and charged transcripts.

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
    corpus::WordSource,
    report::{Goal, line, median, ratio},
    v1_transcripts::{ChargedFixture, PATH},
};

/// Number of questions, each about a transcript that was not ranked before.
const ROUNDS: u64 = 25;
/// Number of passages per question.
const FOUND: usize = 5;
/// Memory of tantivy's index writer: its minimum.
const INDEX_BYTES: usize = 15_000_000;
/// Segments of three hours; with the words per segment below, some 30,000 words.
const SEGMENTS: u64 = 2_700;
const WORDS: u64 = 11;

/// The passages of three hours of speech.
fn windows() -> Vec<Passage> {
    let mut word_source = WordSource::new(1);
    let segments: Vec<Segment> =
        (0..SEGMENTS).map(|n| Segment::new(word_source.generate(WORDS), n * 4_000, 4_000)).collect();
    passages(&segments)
}

/// The best passages by tantivy.
///
/// Its index has one segment in memory, without positions or stored texts, and is built on this thread.
fn by_tantivy(windows: &[Passage], question_text: &str) -> Result<Vec<u32>> {
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
    let query = QueryParser::for_index(&index, vec![text]).parse_query(question_text)?;
    let found = searcher.search(&query, &TopDocs::with_limit(FOUND).order_by_score())?;
    Ok(found.into_iter().map(|(_, address)| address.doc_id).collect())
}

/// All measurements of questions.
pub(crate) async fn run() -> Result<()> {
    let windows = windows();
    let words: usize = windows.iter().map(|window| window.text.split(' ').count()).sum();
    println!("three hours: {words} words in {} windows", windows.len());
    let mut word_source = WordSource::new(99);
    let (mut own_times, mut tantivy_times, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let question_text = word_source.generate(8);
        let question = Question::new(&question_text, Vec::new())?;
        let own = || -> Result<f64> {
            let started = Instant::now();
            let found = black_box(ExtractiveModel::rank(&windows, &question));
            ensure!(!found.is_empty(), "no passage for {question_text}");
            Ok(started.elapsed().as_secs_f64() * 1_000.0)
        };
        let other = || -> Result<f64> {
            let started = Instant::now();
            let found = black_box(by_tantivy(&windows, &question_text)?);
            ensure!(found.len() == FOUND, "tantivy found {} for {question_text}", found.len());
            Ok(started.elapsed().as_secs_f64() * 1_000.0)
        };
        // The order alternates.
        let (own_ms, other_ms) = if round % 2 == 0 {
            let own_ms = own()?;
            (own_ms, other()?)
        } else {
            let other_ms = other()?;
            (own()?, other_ms)
        };
        own_times.push(own_ms);
        tantivy_times.push(other_ms);
        ratios.push(own_ms / other_ms);
    }
    line("passages of a question, three hours: tantivy", median(tantivy_times), "ms");
    line("passages of a question, three hours: Verbatim", median(own_times), "ms");
    ratio("the same: to tantivy", median(ratios), Goal::AtMost(1.0));
    measure_answers().await
}

/// Measures charged answers, compared with the transcripts that they are based on.
async fn measure_answers() -> Result<()> {
    let fixture = ChargedFixture::open().await?;
    let question_text = WordSource::new(7).generate(8);
    let body = format!("{{\"video_id\": \"bench-00000\", \"message\": \"{question_text}\"}}");
    let (mut plain, mut chat, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let (_, transcripts) = fixture.load(32, PATH, "")?;
        let (_, responses) = fixture.load(32, "/api/v1/chat", &body)?;
        plain.push(transcripts);
        chat.push(responses);
        ratios.push(responses / transcripts);
    }
    line("transcripts for credits, 32 at once", median(plain), "a second");
    line("answers for credits, 32 at once", median(chat), "a second");
    ratio("the same: to transcripts", median(ratios), Goal::None);
    Ok(())
}
