//! Cases of building, updating and checking the index.

use std::sync::Arc;

use super::{SearchFixture, Spoken, id, indexed, video};
use crate::{
    archive::Archive,
    page::PageRequest,
    search::{ArchiveIndex, IndexedVideo, SearchDocument, TermRow},
    testing::{at, expect_ok, read_pages},
    transcript::{LanguageTag, TrackSelector},
};

/// After a build, the index has nothing that the archive lacks.
pub async fn rebuild_deletes_what_archive_lacks(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["one lamp", "two lamps"]).await;
    // More deleted videos than an index may delete at once come before a document.
    let deleted = |n| IndexedVideo { video: video(&format!("gone{n:07}")), change: 1, documents: Vec::new() };
    let mut stale: Vec<IndexedVideo> = (0..1_100).map(deleted).collect();
    stale.push(IndexedVideo { video: video(&id('z')), change: 0, documents: vec![document("ghost lamp")] });
    let generation = expect_ok(fixture.index.rebuild_state().await).generation;
    expect_ok(fixture.index.put(&stale, generation, None).await);
    assert_eq!(documents(&fixture).await.len(), 3);
    expect_ok(fixture.indexer.start_rebuild().await);
    fixture.check("lamp", "ab").await;
    fixture.index_all().await;
    assert_eq!(documents(&fixture).await.len(), 2);
    fixture.check("lamp", "ab").await;
}

/// A build continues where it was interrupted.
pub async fn rebuild_continues_after_interruption(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    let ids: Vec<String> = (0..250).map(|n| format!("vid{n:08}")).collect();
    for id in &ids {
        fixture.put(Spoken { id, lines: &["kettle"], ..Spoken::default() }).await;
    }
    let first = expect_ok(fixture.indexer.step().await);
    assert!(!first.state.is_complete && first.state.cursor.is_some(), "a large archive takes several steps");
    let later = expect_ok(fixture.index.rebuild_state().await);
    assert_eq!(later, first.state, "the state is stored");
    fixture.index_all().await;
    assert_eq!(documents(&fixture).await.len(), 250);
}

/// If the archive is an earlier copy of itself, such as a restored backup, the index is built again.
pub async fn rebuild_follows_archive_that_went_back(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(Arc::clone(&index), "en", &["one lamp", "two lamps", "three lamps"]).await;
    for letter in ['c', 'b', 'a'] {
        fixture.put(Spoken { id: &id(letter), lines: &["a lantern"], ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    let restored = SearchFixture::new(index);
    // From here on it numbers its changes: the newest one has a lower number than the index knows for the video.
    assert!(expect_ok(restored.archive.unindexed_videos(1).await).is_empty());
    for (letter, line) in [('b', "two lamps"), ('a', "a torch")] {
        restored.put(Spoken { id: &id(letter), lines: &[line], ..Spoken::default() }).await;
    }
    restored.index_all().await;
    restored.check("torch", "a").await;
    restored.check("lamp", "b").await;
    assert_eq!(documents(&restored).await.len(), 2, "what the archive lacks is deleted");
    let (state, has_work) = expect_ok(restored.indexer.inspect().await);
    assert!(state.is_complete && !has_work, "{state:?}");
}

/// A slower indexer does not undo the work of a faster one.
pub async fn put_skips_older_change(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(index);
    fixture.index_all().await;
    let generation = expect_ok(fixture.index.rebuild_state().await).generation;
    let put = |change, documents| {
        let index = Arc::clone(&fixture.index);
        async move {
            let video = IndexedVideo { video: video(&id('a')), change, documents };
            expect_ok(index.put(&[video], generation, None).await);
        }
    };
    put(5, vec![document("newer")]).await;
    put(4, vec![document("older")]).await;
    put(0, vec![document("older")]).await;
    let digests: Vec<String> = documents(&fixture).await;
    assert_eq!(digests, ["newer"]);
    put(6, Vec::new()).await;
    put(5, vec![document("older")]).await;
    assert!(documents(&fixture).await.is_empty(), "a deletion is not undone");
    expect_ok(fixture.index.put(&[], generation - 1, None).await);
}

/// The check finds what the index lacks, has in an earlier form, and has in excess.
pub async fn check_reports_differences(index: Arc<dyn ArchiveIndex>) {
    let fixture = indexed(index, "en", &["one", "two", "three"]).await;
    let check = expect_ok(fixture.indexer.check(|_| {}).await);
    assert_eq!((check.compared, check.total, check.is_complete), (3, 0, true));
    let generation = expect_ok(fixture.index.rebuild_state().await).generation;
    let wrong = [
        IndexedVideo { video: video(&id('a')), change: 900, documents: Vec::new() },
        IndexedVideo { video: video(&id('b')), change: 900, documents: vec![document("other")] },
        IndexedVideo { video: video(&id('z')), change: 900, documents: vec![document("ghost")] },
    ];
    expect_ok(fixture.index.put(&wrong, generation, None).await);
    let check = expect_ok(fixture.indexer.check(|_| {}).await);
    assert_eq!(check.total, 3, "{check:?}");
}

/// A document whose digest is its text.
fn document(text: &str) -> SearchDocument {
    SearchDocument {
        selector: TrackSelector::Language(LanguageTag::english()),
        language: LanguageTag::english(),
        date: at(0),
        digest: text.to_owned(),
        rows: vec![TermRow { words: text.to_owned(), ..TermRow::default() }],
    }
}

/// The digests of all documents.
async fn documents(fixture: &SearchFixture) -> Vec<String> {
    let listed = read_pages(100, async |page: PageRequest| fixture.index.list(page).await).await;
    listed.into_iter().map(|track| track.digest).collect()
}
