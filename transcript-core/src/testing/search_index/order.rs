//! The order of the hits, and pages of them.

use std::{sync::Arc, time::Duration};

use super::{SearchFixture, Spoken, at, expect_ok, id, indexed, video};
use crate::{
    archive::{Archive, FindOutcome, TrackSelector},
    search::{
        ArchiveIndex, CANDIDATES_MAX, IndexedVideo, SearchDocument, SearchParams, SearchResult, SearchSort,
    },
    transcript::{LanguageTag, VideoDetails, VideoMetadata},
};

/// The best hit comes first, or the newest.
pub async fn search_order_is_relevance_or_date(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let lines = ["the tide is mentioned once among many other words that are about something else"];
    let tides = ["the tide and the tide"];
    fixture.put(Spoken { id: &id('a'), lines: &lines, published: Some(5), ..Spoken::default() }).await;
    fixture
        .put(Spoken { id: &id('b'), title: "Tide", lines: &tides, published: Some(1), ..Spoken::default() })
        .await;
    fixture.index_all().await;
    for (sort, first) in [(SearchSort::Relevance, 'b'), (SearchSort::Date, 'a')] {
        let page =
            fixture.page(SearchParams { query: "tide".to_owned(), sort, ..SearchParams::default() }).await;
        let hit = page.hits.first().expect("the search has hits");
        assert_eq!(hit.stored.transcript.video, video(&id(first)), "{sort:?}");
        assert_eq!((page.total.value, page.total.is_exact), (2, true));
    }
}

/// Of the tracks of a video, which share its title, the one that is shown has the words in its text.
pub async fn search_track_with_words_in_text_is_shown(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let title = "The clock";
    for (letter, language, line) in [
        ('a', "de", "eine Uhr"),
        ('a', "en", "the old clock"),
        ('a', "fr", "une horloge"),
        ('b', "de", "keine"),
    ] {
        let (id, lines) = (&id(letter), &[line]);
        fixture.put(Spoken { id, language, title, lines, ..Spoken::default() }).await;
    }
    // An index prefers rare words, and so the German form of the word.
    for letter in 'c'..='k' {
        fixture.put(Spoken { id: &id(letter), lines: &["clocks and a clock"], ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    let page = fixture.page(SearchParams { query: "clock".to_owned(), ..SearchParams::default() }).await;
    assert_eq!((page.hits.len(), page.total.value), (11, 11));
    let shown = |letter: char| {
        let hit = page.hits.iter().find(|hit| hit.stored.transcript.video == video(&id(letter)));
        hit.map(|hit| (hit.stored.transcript.track.language.as_str(), hit.moments.len()))
    };
    assert_eq!((shown('a'), shown('b')), (Some(("en", 1)), Some(("de", 0))));
    let params = SearchParams { query: "clock lang:de".to_owned(), ..SearchParams::default() };
    let page = fixture.page(params).await;
    assert!(page.hits.iter().all(|hit| hit.stored.transcript.track.language.as_str() == "de"));
    assert_eq!(page.hits.len(), 2);
}

/// A page reads a limited number of other tracks: after them, hits are the tracks that the index prefers.
pub async fn search_page_reads_few_other_tracks(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let title = "The clock tower";
    let form = "Old clocks and towers of a town by the river, where people came to look at the water";
    for video in 0..40 {
        let id = &format!("vid{video:08}");
        for (language, line) in [("en", form), ("de", "tower tower tower tower")] {
            fixture.put(Spoken { id, language, title, lines: &[line], ..Spoken::default() }).await;
        }
    }
    fixture.index_all().await;
    let query = "clock tower".to_owned();
    let page = fixture.page(SearchParams { query, limit: 100, ..SearchParams::default() }).await;
    let language = |hit: &SearchResult| hit.stored.transcript.track.language.as_str() == "en";
    assert_eq!((page.hits.len(), page.hits.iter().filter(|hit| language(hit)).count()), (40, 32));
}

/// Of more matches than an index ranks, the newest are found, whenever they were indexed. It is slow, and not in the
/// suite.
pub async fn search_by_date_finds_newest_of_very_many(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let lines = ["the tide"];
    // Each in another window of time.
    for (name, days) in [('a', 300), ('b', -3), ('c', 40), ('d', 900)] {
        let published = Some(-86_400 * days);
        fixture.put(Spoken { id: &id(name), lines: &lines, published, ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    // Older videos that the archive does not have any more.
    let (selector, now) = (TrackSelector::Language(expect_ok(LanguageTag::parse("en"))), at(0));
    let FindOutcome::Transcript(mut stored) =
        expect_ok(fixture.archive.find(&video(&id('a')), &selector, now).await)
    else {
        panic!("the archive has the transcript");
    };
    stored.details = Arc::new(VideoDetails {
        metadata: VideoMetadata {
            published_at: Some(now.minus(Duration::from_secs(5 * 365 * 86_400))),
            ..VideoMetadata::default()
        },
        ..VideoDetails::clone(&stored.details)
    });
    let document = SearchDocument::new(selector, &stored, fixture.index.row_terms());
    let old: Vec<IndexedVideo> = (0..=CANDIDATES_MAX)
        .map(|number| IndexedVideo {
            video: video(&format!("old{number:08}")),
            change: 1,
            documents: vec![document.clone()],
        })
        .collect();
    let generation = expect_ok(fixture.index.rebuild_state().await).generation;
    for some in old.chunks(2_000) {
        expect_ok(fixture.index.put(some, generation, None).await);
    }
    let mut params = SearchParams {
        query: "tide".to_owned(),
        sort: SearchSort::Date,
        limit: 1,
        ..SearchParams::default()
    };
    let mut found = Vec::new();
    for _ in 0..4 {
        let page = fixture.page(params.clone()).await;
        assert!(!page.total.is_exact && page.total.value > 10_000, "{:?}", page.total);
        found.extend(page.hits.iter().map(|hit| hit.stored.transcript.video.id().to_owned()));
        params.cursor = page.next;
    }
    assert_eq!(found, [id('b'), id('c'), id('a'), id('d')]);
}

/// Pages have every hit once, and a cursor belongs to its search.
pub async fn search_pages_have_every_hit_once(index: Arc<dyn ArchiveIndex>) {
    let lines: Vec<&str> = vec!["a lighthouse"; 23];
    let fixture = indexed(index, "en", &lines).await;
    let mut params = SearchParams { query: "lighthouse".to_owned(), limit: 5, ..SearchParams::default() };
    let mut listed = Vec::new();
    for _ in 0..10 {
        let page = fixture.page(params.clone()).await;
        assert_eq!(page.total.value, 23);
        listed.extend(page.hits.iter().map(|hit| hit.stored.transcript.video.clone()));
        params.cursor = page.next;
        if params.cursor.is_none() {
            break;
        }
    }
    let mut distinct = listed.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((listed.len(), distinct.len()), (23, 23));
    let first = fixture
        .page(SearchParams { query: "lighthouse".to_owned(), limit: 5, ..SearchParams::default() })
        .await;
    let other = SearchParams { query: "other".to_owned(), cursor: first.next, ..SearchParams::default() };
    assert!(fixture.search.search(&other).await.is_err(), "a cursor of another search is rejected");
}

/// A search whose filters leave no hit has the number of videos without them.
pub async fn search_without_hits_counts_those_without_filters(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["the harbour wall", "a harbour"]).await;
    for (query, expect) in [
        ("harbour lang:de", Some(("harbour", 2))),
        ("channel:\"Sea News\" \"harbour wall\" before:2000", Some(("\"harbour wall\"", 1))),
        ("harbour lang:en", None),
        ("absent lang:de", None),
        ("harbour -harbour", None),
        ("-harbour lang:de", None),
        ("lang:de", None),
    ] {
        let params =
            SearchParams { query: query.to_owned(), with_unfiltered: true, ..SearchParams::default() };
        let page = fixture.page(params).await;
        let found = page.without_filters.as_ref().map(|found| (found.query.as_str(), found.total.value));
        assert_eq!(found, expect, "{query}");
    }
    let language = Some(expect_ok(LanguageTag::parse("de")));
    let params = SearchParams { query: "harbour".to_owned(), language, ..SearchParams::default() };
    assert_eq!(fixture.page(params.clone()).await.without_filters, None, "the search does not count them");
    let params = SearchParams { with_unfiltered: true, ..params };
    let found = fixture.page(params).await.without_filters.map(|found| found.total);
    assert_eq!(found.map(|total| (total.value, total.is_exact)), Some((2, true)));
}
