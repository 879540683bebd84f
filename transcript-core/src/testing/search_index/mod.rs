//! Conformance suite of [`crate::search::ArchiveIndex`].
//!
//! The cases index an archive in memory and search it, so they check the terms together with the index.

mod faults;
mod order;
mod rows;
mod scripts;
mod upkeep;

use std::sync::Arc;

use tokio::runtime::Handle;

pub use faults::*;
pub use order::*;
pub use rows::*;
pub use scripts::*;
pub use upkeep::*;

use super::{at, expect_ok};
use crate::{
    archive::{Archive, PutRequest, TrackSelector},
    memory::MemoryArchive,
    search::{
        ArchiveIndex, ArchiveSearch, CandidateRequest, IndexQuery, Indexer, SearchPage, SearchParams,
        SearchSort, TermCondition,
    },
    test_doubles::ManualClock,
    time::Clock,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, VideoMetadata},
    video::{Platform, VideoId},
};

/// Generates the tests of a search index; see [`super`].
#[macro_export]
macro_rules! search_index_conformance {
    ($make:expr) => {
        $crate::search_index_conformance_cases! { conformance_cases; $make; $crate::search::ArchiveIndex; }
    };
}

/// Lists the cases.
#[doc(hidden)]
#[macro_export]
macro_rules! search_index_conformance_cases {
    ($use:ident; $($arguments:tt)*) => {
        $crate::$use! { $($arguments)* [$crate::testing::search_index];
            search_words_must_all_occur
            search_operators_select_videos
            search_prefix_finds_words_and_no_stems
            search_stems_join_forms_of_one_language
            search_scripts_without_spaces_are_found
            search_phrases_have_single_characters
            search_words_of_two_segments_are_found
            search_phrases_of_runs_have_any_space
            search_spellings_of_nasals_and_numbers_are_found
            search_page_of_unchecked_candidates_is_read_once
            search_filters_select_videos
            search_without_hits_counts_those_without_filters
            search_filter_terms_are_no_words
            search_order_is_relevance_or_date
            search_pages_have_every_hit_once
            search_languages_of_video_are_one_hit
            search_track_with_words_in_text_is_shown
            search_page_reads_few_other_tracks
            search_withdrawn_or_deleted_is_absent_at_once
            search_page_without_hits_reads_on
            search_changed_transcript_replaces_earlier_terms
            search_long_transcript_is_found_by_distant_words
            search_phrase_between_rows_is_found
            search_long_run_between_rows_is_found
            search_moments_mark_matches
            search_hostile_queries_are_bounded
            search_suggestion_corrects_typing_error
            search_failed_suggestion_is_none
            rebuild_deletes_what_archive_lacks
            rebuild_continues_after_interruption
            rebuild_follows_archive_that_went_back
            put_skips_older_change
            put_rejected_video_stops_no_other
            put_slow_video_stops_no_other
            build_slow_video_is_indexed_by_next_process
            put_overloaded_index_fails_after_few_videos
            step_beside_rebuild_loses_no_change
            check_reports_differences
        }
    };
}

/// The clock of a case.
fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(at(0)))
}

/// An archive in memory with the index.
#[derive(Debug)]
struct SearchFixture {
    archive: MemoryArchive,
    index: Arc<dyn ArchiveIndex>,
    indexer: Indexer,
    search: ArchiveSearch,
}

/// A transcript of a case.
struct Spoken<'a> {
    platform: Platform,
    id: &'a str,
    language: &'a str,
    title: &'a str,
    author: &'a str,
    lines: &'a [&'a str],
    published: Option<i64>,
}

impl Default for Spoken<'_> {
    fn default() -> Self {
        let (platform, id) = (Platform::YouTube, "aaaaaaaaaaa");
        Self { platform, id, language: "en", title: "", author: "", lines: &[], published: None }
    }
}

fn video(id: &str) -> VideoId {
    VideoId::new(Platform::YouTube, id).expect("the ids of the cases are valid")
}

impl SearchFixture {
    fn new(index: Arc<dyn ArchiveIndex>) -> Self {
        let archive = MemoryArchive::default();
        let (shared, clock): (Arc<dyn Archive>, Arc<dyn Clock>) = (Arc::new(archive.clone()), clock());
        let runtime = Handle::current();
        let indexer =
            Indexer::new(Arc::clone(&shared), Arc::clone(&index), Arc::clone(&clock), runtime.clone());
        let search = ArchiveSearch::new(shared, Arc::clone(&index), clock, runtime);
        Self { archive, index, indexer, search }
    }

    async fn put(&self, spoken: Spoken<'_>) {
        let segments = spoken.lines.iter().enumerate();
        let segments = segments.map(|(n, line)| Segment::new(*line, n as u64 * 5_000, 4_000)).collect();
        let language = expect_ok(LanguageTag::parse(spoken.language));
        let video = VideoId::new(spoken.platform, spoken.id).expect("the ids of the cases are valid");
        let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let transcript = Transcript {
            video: video.clone(),
            title: optional(spoken.title),
            author: optional(spoken.author),
            duration_ms: None,
            track: TrackInfo::new(language.clone(), TrackKind::Human),
            source: "imported".to_owned(),
            segments,
        };
        let request = PutRequest {
            video,
            selectors: vec![TrackSelector::Language(language)],
            transcript: Arc::new(transcript),
            known_tracks: Vec::new(),
            metadata: VideoMetadata { published_at: spoken.published.map(at), ..VideoMetadata::default() },
            parser_version: 1,
            replace: true,
            now: at(0),
        };
        expect_ok(self.archive.put(request).await);
    }

    /// Indexes until nothing is left to do.
    async fn index_all(&self) {
        for _ in 0..1_000 {
            if expect_ok(self.indexer.step().await).is_idle() {
                return;
            }
        }
        panic!("indexing ends");
    }

    async fn page(&self, params: SearchParams) -> SearchPage {
        expect_ok(self.search.search(&params).await)
    }

    async fn find(&self, query: &str) -> Vec<String> {
        let page = self.page(SearchParams { query: query.to_owned(), ..SearchParams::default() }).await;
        assert!(page.total.value >= page.hits.len() as u64, "{query}: the total counts the hits");
        let mut ids: Vec<String> =
            page.hits.iter().map(|hit| hit.stored.transcript.video.id().to_owned()).collect();
        ids.sort();
        ids
    }

    /// Checks which videos, by the first letter of their ids, a query finds.
    async fn check(&self, query: &str, expect: &str) {
        let found: String = self.find(query).await.iter().filter_map(|id| id.chars().next()).collect();
        assert_eq!(found, expect, "{query}");
    }
}

fn id(letter: char) -> String {
    letter.to_string().repeat(11)
}

/// Videos a, b, c, … with one line each.
async fn indexed(index: Arc<dyn ArchiveIndex>, language: &str, lines: &[&str]) -> SearchFixture {
    let fixture = SearchFixture::new(index);
    for (letter, line) in ('a'..='z').zip(lines) {
        fixture.put(Spoken { id: &id(letter), language, lines: &[line], ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    fixture
}

/// Words must all occur, in any order; case, accents and width do not matter.
pub async fn search_words_must_all_occur(index: Arc<dyn ArchiveIndex>) {
    let lines = ["The Café by the mill.", "Bread, and a mill.", "A quiet harbour.", "ＷＩＤＥ cafe"];
    let fixture = indexed(index, "en", &lines).await;
    fixture.check("mill", "ab").await;
    fixture.check("MILL café", "a").await;
    fixture.check("wide", "d").await;
    fixture.check("mill harbour", "").await;
    fixture.check("", "").await;
    fixture.check(" … ", "").await;
}

/// Phrases, exclusions, alternatives and prefixes.
pub async fn search_operators_select_videos(index: Arc<dyn ArchiveIndex>) {
    let lines = ["red green blue", "blue green red", "red blue", "greenish"];
    let fixture = indexed(index, "en", &lines).await;
    fixture.check("\"red green\"", "a").await;
    fixture.check("\"green red\"", "b").await;
    fixture.check("red -green", "c").await;
    fixture.check("red -\"green red\"", "ac").await;
    fixture.check("greenish OR blue", "abcd").await;
    fixture.check("greenish OR nothing", "d").await;
    fixture.check("greeni*", "d").await;
    fixture.check("green*", "abd").await;
    fixture.check("-red", "abc").await;
    // With a filter there is something to exclude from, wherever the filter is.
    fixture.check("-red lang:en", "d").await;
    let filters = [
        SearchParams { language: Some(LanguageTag::english()), ..SearchParams::default() },
        SearchParams { platform: Some(Platform::YouTube), ..SearchParams::default() },
    ];
    for params in filters {
        let page = fixture.page(SearchParams { query: "-red".to_owned(), ..params.clone() }).await;
        let found: Vec<_> = page.hits.iter().map(|hit| hit.stored.transcript.video.id()).collect();
        assert_eq!(found, [id('d')], "{params:?}");
        let page = fixture.page(SearchParams { query: " … ".to_owned(), ..params }).await;
        assert_eq!((page.total.value, page.hits.len()), (0, 0), "a query without words finds nothing");
    }
}

/// A prefix finds words that begin with it, not words whose stems do.
pub async fn search_prefix_finds_words_and_no_stems(index: Arc<dyn ArchiveIndex>) {
    let lines = ["A historic harbour.", "The history of the harbour.", "A history."];
    let fixture = indexed(index, "en", &lines).await;
    let page = fixture.page(SearchParams { query: "histori*".to_owned(), ..SearchParams::default() }).await;
    assert_eq!((page.total.value, page.total.is_exact), (1, true));
    fixture.check("histori*", "a").await;
    fixture.check("histor*", "abc").await;
    fixture.check("harbour -histori*", "b").await;
}

/// A stem joins the forms of a word in the language of the transcript, and no words of others.
pub async fn search_stems_join_forms_of_one_language(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["Investments grew.", "They invested.", "A die was cast."]).await;
    fixture.check("investing", "ab").await;
    fixture.check("grow", "a").await;
    fixture
        .put(Spoken { id: &id('g'), language: "de", lines: &["Die Häuser am Meer"], ..Spoken::default() })
        .await;
    fixture.index_all().await;
    fixture.check("hauser", "g").await;
    fixture.check("häusern", "g").await;
    // Its English stem is "die", which is another word in German.
    fixture.check("dies", "c").await;
    let spoken = [
        ('h', "fr", "Les marées et les journées"),
        ('i', "fi", "Kirjastossa on taloja"),
        ('j', "nb", "Båtene i havnen"),
        ('k', "he", "הבית והמכתב"),
        ('l', "pl", "Łódź to miasto"),
    ];
    for (letter, language, line) in spoken {
        fixture.put(Spoken { id: &id(letter), language, lines: &[line], ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    for query in ["marée", "maree", "MAREES", "journee"] {
        fixture.check(query, "h").await;
    }
    fixture.check("kirjasto", "i").await;
    fixture.check("bat havner", "j").await;
    fixture.check("בית מכתב", "k").await;
    fixture.check("lodz", "l").await;
}

/// Filters by language, platform, channel and date.
pub async fn search_filters_select_videos(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let all = [
        ("a", "en", "Sea News", Some(-86_400)),
        ("b", "pt-BR", "Sea Weather", Some(86_400)),
        ("c", "zh-Hant", "", None),
    ];
    for (letter, language, author, published) in all {
        let id = letter.repeat(11);
        fixture
            .put(Spoken { id: &id, language, author, lines: &["water"], published, ..Spoken::default() })
            .await;
    }
    fixture.index_all().await;
    fixture.check("water", "abc").await;
    fixture.check("water lang:en", "a").await;
    fixture.check("water lang:pt", "b").await;
    fixture.check("water lang:zh-Hans", "").await;
    fixture.check("water lang:zh-TW", "c").await;
    fixture.check("water lang:en lang:pt", "ab").await;
    fixture.check("channel:sea", "ab").await;
    fixture.check("channel:\"sea weather\"", "b").await;
    fixture.check("channel:\"東京 大学 病院 前\" channel:weather", "b").await;
    fixture.check("platform:youtube water", "abc").await;
    fixture.check("platform:tiktok water", "").await;
    fixture.check("water -lang:en", "bc").await;
    fixture.check("-lang:pt -channel:\"sea news\"", "c").await;
    fixture.check("water -channel:sea", "c").await;
    fixture.check("-platform:youtube", "").await;
    fixture.check("water before:2026-11-20", "a").await;
    fixture.check("water after:2026-11-21", "b").await;
    fixture.check("after:2026-11-20", "bc").await;
}

/// The terms of filters are no words of a text: they neither match a query nor are they excluded by it.
pub async fn search_filter_terms_are_no_words(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["a cat"]).await;
    let (platform, id) = (Platform::TikTok, "6718335390845095173");
    fixture.put(Spoken { platform, id, lines: &["two cats"], ..Spoken::default() }).await;
    fixture.index_all().await;
    for query in ["site", "video", "short", "sit*", "vid*", "all", "latn"] {
        let params = SearchParams { query: query.to_owned(), ..SearchParams::default() };
        let page = fixture.page(params).await;
        assert_eq!((page.total.value, page.total.is_exact), (0, true), "{query}");
        fixture.check(&format!("cat -{query}"), "6a").await;
    }
    fixture.check("cat platform:youtube", "a").await;
    fixture.check("cat platform:tiktok", "6").await;
}

/// A video with several languages is one hit.
pub async fn search_languages_of_video_are_one_hit(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    fixture.put(Spoken { language: "en", lines: &["radio"], ..Spoken::default() }).await;
    fixture.put(Spoken { language: "de", lines: &["radio radio", "radio"], ..Spoken::default() }).await;
    fixture.index_all().await;
    let page = fixture.page(SearchParams { query: "radio".to_owned(), ..SearchParams::default() }).await;
    assert_eq!((page.hits.len(), page.total.value), (1, 1));
    let page =
        fixture.page(SearchParams { query: "radio lang:en".to_owned(), ..SearchParams::default() }).await;
    let language = page.hits.first().map(|hit| hit.stored.transcript.track.language.as_str().to_owned());
    assert_eq!(language.as_deref(), Some("en"));
}

/// What is withdrawn or deleted is gone before the index knows of it.
pub async fn search_withdrawn_or_deleted_is_absent_at_once(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["a secret", "a secret", "a secret"]).await;
    expect_ok(fixture.archive.withdraw(&video(&id('a')), true, at(0)).await);
    expect_ok(fixture.archive.delete(&video(&id('b'))).await);
    fixture.check("secret", "c").await;
    fixture.index_all().await;
    fixture.check("secret", "c").await;
    expect_ok(fixture.archive.withdraw(&video(&id('a')), false, at(0)).await);
    fixture.index_all().await;
    fixture.check("secret", "ac").await;
}

/// While all candidates of a page are withdrawn, further ones are read.
pub async fn search_page_without_hits_reads_on(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let ids: Vec<String> = (0..250).map(|n| format!("vid{n:08}")).collect();
    for (id, published) in ids.iter().zip(0..) {
        let published = Some(published);
        fixture.put(Spoken { id, lines: &["kettle"], published, ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    for id in ids.iter().skip(10) {
        expect_ok(fixture.archive.withdraw(&video(id), true, at(0)).await);
    }
    let (query, sort) = ("kettle".to_owned(), SearchSort::Date);
    let params = SearchParams { query, sort, limit: 1, ..SearchParams::default() };
    let page = fixture.page(params.clone()).await;
    let hit = page.hits.first().expect("the search has a hit");
    assert_eq!(hit.stored.transcript.video, video("vid00000009"));
    assert_eq!((page.total.value, page.total.is_exact), (10, false));
    let last = fixture.page(SearchParams { cursor: page.next, limit: 100, ..params }).await;
    assert_eq!(last.hits.len(), 9);
    assert_eq!(last.total.value, 10);
}

/// A replaced transcript is found by its new words only.
pub async fn search_changed_transcript_replaces_earlier_terms(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["old words"]).await;
    fixture.put(Spoken { id: &id('a'), lines: &["new words"], ..Spoken::default() }).await;
    // Before indexing, the archive decides.
    fixture.check("old", "").await;
    fixture.index_all().await;
    fixture.check("old", "").await;
    fixture.check("new", "a").await;
}

/// Words and phrases of a long transcript are found wherever they are.
pub async fn search_long_transcript_is_found_by_distant_words(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let filler = "some more words about nothing that matters to people here ".repeat(20);
    let mut lines = vec!["It begins with a walrus."];
    lines.extend(std::iter::repeat_n(filler.as_str(), 400));
    lines.push("It ends with a pelican on the pier.");
    fixture.put(Spoken { id: &id('a'), author: "Sea", lines: &lines, ..Spoken::default() }).await;
    fixture.put(Spoken { id: &id('b'), lines: &["a walrus"], ..Spoken::default() }).await;
    fixture.index_all().await;
    fixture.check("walrus pelican", "a").await;
    fixture.check("walrus \"pelican on the pier\"", "a").await;
    fixture.check("walrus -pelican", "b").await;
    fixture.check("\"walrus pelican\"", "").await;
    // Other rows repeat a word of a row, but not as one of the channel.
    for (word, expect) in [("sea", 1), ("pelican", 0)] {
        let channel = TermCondition::Channel(vec![word.to_owned()]);
        let query = IndexQuery::new(vec![channel], Vec::new());
        let request = CandidateRequest { query, sort: SearchSort::Relevance, offset: 0, limit: 5 };
        assert_eq!(expect_ok(fixture.index.candidates(&request).await).total, expect, "{word}");
    }
}

/// Moments have times and ranges in code points.
pub async fn search_moments_mark_matches(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let lines = ["🌊 Look at the tide", "tables, and the moon.", "Nothing here at all, just talk.", "Tides!"];
    fixture.put(Spoken { id: &id('a'), lines: &lines, ..Spoken::default() }).await;
    fixture.index_all().await;
    let page =
        fixture.page(SearchParams { query: "\"tide tables\"".to_owned(), ..SearchParams::default() }).await;
    let hit = page.hits.first().expect("a phrase across two segments is found");
    let moment = hit.moments.first().expect("the hit has a moment");
    assert_eq!((moment.start_ms, moment.end_ms), (0, 9_000));
    assert_eq!(moment.text, "🌊 Look at the tide tables, and the moon.");
    assert_eq!(moment.matches, [(14, 18), (19, 25)]);
    assert_eq!(hit.moments.len(), 1);
    let page = fixture.page(SearchParams { query: "tide".to_owned(), ..SearchParams::default() }).await;
    assert_eq!(page.hits.first().map(|hit| hit.moments.len()), Some(2), "a form of the word counts");
    let params = SearchParams { query: "tide".to_owned(), with_segments: false, ..SearchParams::default() };
    let bare = fixture.page(params).await;
    let (hit, full) = (bare.hits.first().expect("it is a hit"), page.hits.first().expect("it is a hit"));
    assert_eq!(hit.moments, full.moments);
    assert_eq!(*hit.stored.transcript, full.stored.transcript.without_segments());
    assert_eq!(full.stored.transcript.segments.len(), lines.len());
}

/// Long and malformed queries return a result.
pub async fn search_hostile_queries_are_bounded(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["plain words", "火山 and a quote\" AND NOT NEAR(x)"]).await;
    for query in [
        "x".repeat(10_000),
        "plain OR ".repeat(2_000),
        "-plain ".repeat(2_000),
        "\"".repeat(3_001),
        "* ** *** a* (b*)".to_owned(),
        "plain\u{0}\u{1}\u{202e}words".to_owned(),
        "NEAR(plain words) AND title:plain ^plain {words}: plain:* 'plain' $1 & | ! <-> \\".to_owned(),
        "火".repeat(900),
        "(((((((((((".repeat(90),
        "lang:en ".repeat(500),
    ] {
        let result = fixture.search.search(&SearchParams { query, ..SearchParams::default() }).await;
        expect_ok(result);
    }
    fixture.check("plain words", "a").await;
}

/// A word with a typing error has a suggestion if nothing is found.
pub async fn search_suggestion_corrects_typing_error(index: Arc<dyn ArchiveIndex>) {
    let lines = ["the harbour wall", "the harbour", "a harvest", "die Wärmepumpe"];
    let fixture = indexed(index, "en", &lines).await;
    for (query, expect) in [("harbuor wall", "harbour wall"), ("warmepunpe", "Wärmepumpe")] {
        let page = fixture.page(SearchParams { query: query.to_owned(), ..SearchParams::default() }).await;
        assert_eq!(page.suggestion.as_deref(), Some(expect), "as it is written in the transcript");
    }
    for query in ["zzzzzzzz", "harbuor harvest"] {
        let page = fixture.page(SearchParams { query: query.to_owned(), ..SearchParams::default() }).await;
        assert_eq!(page.suggestion, None, "{query}");
    }
}
