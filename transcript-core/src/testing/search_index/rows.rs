//! Cases of transcripts that are several rows of an index.

use std::sync::Arc;

use super::{SearchFixture, Spoken, at, expect_ok, id, video};
use crate::{
    archive::{Archive, FindOutcome, TrackSelector},
    search::{ArchiveIndex, SearchDocument},
    transcript::LanguageTag,
};

/// Indexes video a; returns the number of ordered terms of the first of its rows.
async fn index_rows(fixture: &SearchFixture, language: &str, lines: &[&str]) -> usize {
    fixture.put(Spoken { id: &id('a'), language, lines, ..Spoken::default() }).await;
    fixture.index_all().await;
    let selector = TrackSelector::Language(expect_ok(LanguageTag::parse(language)));
    let found = expect_ok(fixture.archive.find(&video(&id('a')), &selector, at(0)).await);
    let FindOutcome::Transcript(stored) = found else { panic!("the archive has the transcript") };
    let document = SearchDocument::new(selector, &stored, fixture.index.row_terms());
    assert!(document.rows.len() > 1, "the transcript has several rows");
    document.rows.first().map_or(0, |row| row.words.split(' ').count())
}

/// A phrase is found where one row ends and the next begins.
pub async fn search_phrase_between_rows_is_found(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let words: Vec<String> = (10_000..25_000).map(|number| format!("w{number}")).collect();
    let lines: Vec<String> = words.chunks(100).map(|words| words.join(" ")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let end = index_rows(&fixture, "en", &lines).await;
    for words in words.windows(4).skip(end - 5).take(7) {
        fixture.check(&format!("\"{}\"", words.join(" ")), "a").await;
    }
}

/// So is a run of a script without spaces, also if it has more pairs than a phrase.
pub async fn search_long_run_between_rows_is_found(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let letters: Vec<char> = ('\u{4e00}'..='\u{7cdf}').collect();
    let run = |start: usize, length: usize| letters.iter().skip(start).take(length).collect::<String>();
    let end = index_rows(&fixture, "zh", &[run(0, letters.len()).as_str()]).await;
    // If the run is not found, any of its pairs is searched, which this video has.
    let pair = run(end, 2);
    fixture.put(Spoken { id: &id('b'), language: "zh", lines: &[pair.as_str()], ..Spoken::default() }).await;
    fixture.index_all().await;
    for before in [70, 30] {
        fixture.check(&run(end - before, 80), "a").await;
    }
}
