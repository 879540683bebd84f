//! Videos whose cached responses are outdated.

use std::sync::Arc;

#[cfg(feature = "search")]
use transcript_core::search::{ArchiveIndex, Indexer};
use transcript_core::{
    PageRequest,
    archive::{Archive, TrackSelector, VerifyArchiveRequest},
    transcript::{LanguageTag, Segment},
    video::VideoId,
};

/// A changed video is listed once, with its newest change, until that change is deleted.
#[tokio::test]
async fn changed_videos_are_listed_until_deleted() {
    let (archive, place) = crate::archive().await;
    // That of a later version has the newest change.
    crate::run_on_archive(
        &place,
        "INSERT INTO changed_videos (video, change) VALUES ('later/x', 9000000000)",
    )
    .await;
    let listed = async || archive.changed_videos(10).await.unwrap();
    let names = async || listed().await.into_iter().map(|changed| changed.video).collect::<Vec<VideoId>>();
    let (mut one, other) =
        (super::put_request("aaaaaaaaaaa", "one"), super::put_request("bbbbbbbbbbb", "other"));
    archive.put(one.clone()).await.unwrap();
    archive.put(other.clone()).await.unwrap();
    archive.put(one.clone()).await.unwrap();
    archive.withdraw(&one.video, false, one.now).await.unwrap();
    assert_eq!(names().await, [], "nothing that was sent is outdated");

    archive.withdraw(&one.video, true, one.now).await.unwrap();
    archive.withdraw(&one.video, true, one.now).await.unwrap();
    assert_eq!(names().await, [one.video.clone()]);
    let withdrawn = listed().await;
    archive.delete(&other.video).await.unwrap();
    assert_eq!(names().await, [other.video.clone(), one.video.clone()], "the last change is first");
    let last = archive.changed_videos(1).await.unwrap();
    assert_eq!(last.iter().map(|changed| &changed.video).collect::<Vec<_>>(), [&other.video]);
    archive.withdraw(&one.video, false, one.now).await.unwrap();
    archive.delete_changed_videos(&withdrawn).await.unwrap();
    assert_eq!(names().await, [one.video.clone(), other.video.clone()], "the newer change stays");
    archive.delete_changed_videos(&listed().await).await.unwrap();
    assert_eq!(names().await, []);

    one.replace = true;
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [], "the text is the same");
    Arc::make_mut(&mut one.transcript).segments = vec![Segment::new("a new text", 0, 1_000)];
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [one.video.clone()]);
    let replaced = listed().await;
    archive.withdraw(&one.video, true, one.now).await.unwrap();
    archive.delete_changed_videos(&replaced).await.unwrap();
    assert_eq!(names().await, [one.video.clone()], "the withdrawal is another change");
    archive.delete_changed_videos(&listed().await).await.unwrap();

    // A request for the default track was answered with the only transcript, in another language.
    let mut german = super::put_request("ccccccccccc", "eins");
    german.selectors = vec![TrackSelector::Language(LanguageTag::from_canonical("de"))];
    archive.put(german.clone()).await.unwrap();
    archive.put(german).await.unwrap();
    assert_eq!(names().await, []);
    let default = super::put_request("ccccccccccc", "one");
    let before = archive.change_counter().await.unwrap();
    archive.put(default.clone()).await.unwrap();
    assert_eq!(names().await, std::slice::from_ref(&default.video));
    assert!(archive.change_counter().await.unwrap() > before);
}

/// A video that a search index must read again is listed once, with its newest change, until that change is deleted.
#[tokio::test]
async fn unindexed_videos_are_listed_until_deleted() {
    let (archive, place) = crate::archive().await;
    // That of a later version has changed first.
    crate::run_on_archive(&place, "INSERT INTO unindexed_videos (video) VALUES ('later/x')").await;
    let listed = async || archive.unindexed_videos(10).await.unwrap();
    let names = async || listed().await.into_iter().map(|changed| changed.video).collect::<Vec<VideoId>>();
    let clear = async || archive.delete_unindexed_videos(&listed().await).await.unwrap();
    let (mut one, other) =
        (super::put_request("aaaaaaaaaaa", "one"), super::put_request("bbbbbbbbbbb", "other"));
    archive.put(one.clone()).await.unwrap();
    archive.put(other.clone()).await.unwrap();
    assert_eq!(names().await, [one.video.clone(), other.video.clone()]);
    assert_eq!(archive.unindexed_videos(1).await.unwrap().len(), 1);
    let first = listed().await;
    one.replace = true;
    Arc::make_mut(&mut one.transcript).segments = vec![Segment::new("a new text", 0, 1_000)];
    archive.put(one.clone()).await.unwrap();
    archive.delete_unindexed_videos(&first).await.unwrap();
    assert_eq!(names().await, [one.video.clone()], "the newer change stays");
    let highest = listed().await[0].change;
    clear().await;
    assert_eq!(names().await, []);
    let newest = archive.newest_change().await.unwrap();
    assert!(newest.is_none_or(|newest| newest == highest), "{newest:?}, not {highest}");

    archive.withdraw(&one.video, true, one.now).await.unwrap();
    let again = listed().await;
    assert_eq!(again[0].video, one.video);
    assert!(again[0].change > highest, "numbers of deleted changes are not used again");
    clear().await;
    archive.withdraw(&one.video, false, one.now).await.unwrap();
    archive.delete(&other.video).await.unwrap();
    assert_eq!(names().await, [one.video.clone(), other.video.clone()]);
    clear().await;

    one.metadata.description = Some("A description.".to_owned());
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [one.video.clone()], "metadata is searched");
    clear().await;
    one.replace = false;
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [], "nothing changed");
    one.replace = true;
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [one.video.clone()], "the body that it replaces may have been damaged");
    let first = listed().await;
    archive.put(one.clone()).await.unwrap();
    archive.delete_unindexed_videos(&first).await.unwrap();
    assert_eq!(names().await, [one.video.clone()], "the newer change stays");
}

/// A page of withdrawn videos of a later version does not end their list.
#[tokio::test]
async fn withdrawn_video_with_malformed_name_is_left_out() {
    let (archive, place) = crate::archive().await;
    crate::run_on_archive(&place, "INSERT INTO withdrawals (video, at) VALUES ('later/x', 0)").await;
    let request = super::put_request("aaaaaaaaaaa", "one");
    archive.withdraw(&request.video, true, request.now).await.unwrap();
    let (mut page, mut withdrawn) = (PageRequest { after: None, limit: 1 }, Vec::new());
    loop {
        let found = archive.list_withdrawn(page.clone()).await.unwrap();
        withdrawn.extend(found.items);
        page.after = found.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!(withdrawn, [request.video]);
}

/// A search index must read a video again of which a damaged transcript was deleted.
#[tokio::test]
async fn damaged_transcript_deleted_is_unindexed() {
    let (archive, place) = crate::archive().await;
    let request = super::put_request("aaaaaaaaaaa", "one");
    archive.put(request.clone()).await.unwrap();
    archive.delete_unindexed_videos(&archive.unindexed_videos(10).await.unwrap()).await.unwrap();
    crate::run_on_archive(&place, "UPDATE bodies SET checksum = 1").await;
    let verify = VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: true };
    let damaged = archive.verify(verify).await.unwrap().damaged;
    assert_eq!(damaged.iter().map(|damaged| damaged.is_deleted).collect::<Vec<_>>(), [true]);
    let listed = archive.unindexed_videos(10).await.unwrap();
    assert_eq!(listed.into_iter().map(|changed| changed.video).collect::<Vec<_>>(), [request.video]);
}

/// A track that does not decode is that of its transcript, which is indexed for search; one without a readable
/// transcript keeps no other one out.
#[cfg(feature = "search")]
pub(crate) async fn check_undecodable_track_is_indexed(
    archive: Arc<dyn Archive>,
    index: Arc<dyn ArchiveIndex>,
    mut run: impl AsyncFnMut(&'static str),
) {
    let (one, other) = (super::put_request("aaaaaaaaaaa", "one"), super::put_request("bbbbbbbbbbb", "other"));
    archive.put(one.clone()).await.unwrap();
    archive.put(other.clone()).await.unwrap();
    run("UPDATE tracks SET kind = 'spoken' WHERE video LIKE '%aaa'").await;
    let indexer = || {
        let (archive, index) = (Arc::clone(&archive), Arc::clone(&index));
        let clock = Arc::new(transcript_core::test_doubles::ManualClock::new(super::timestamp(0)));
        Indexer::new(archive, index, clock, tokio::runtime::Handle::current())
    };
    let index_all = async |indexer: &Indexer| {
        while !indexer.step().await.unwrap().is_idle() {}
        let listed = index.list(PageRequest::first()).await.unwrap().items;
        listed.into_iter().map(|track| track.video).collect::<Vec<_>>()
    };
    let (first, both) = (indexer(), [one.video.clone(), other.video.clone()]);
    assert_eq!(index_all(&first).await, both);
    first.start_rebuild().await.unwrap();
    assert_eq!(index_all(&first).await, both);
    assert!(archive.unindexed_videos(10).await.unwrap().is_empty());
    run("UPDATE bodies SET about = 'x' WHERE about LIKE '%aaa%'").await;
    first.start_rebuild().await.unwrap();
    assert_eq!(index_all(&first).await, std::slice::from_ref(&other.video));
    archive.put(transcript_core::archive::PutRequest { replace: true, ..one }).await.unwrap();
    assert_eq!(index_all(&indexer()).await, both);
    assert!(archive.unindexed_videos(10).await.unwrap().is_empty());
}

/// Candidates with a malformed name neither end the pages of a search nor repeat others.
///
/// `set_videos` receives what is set as the video of the rows of the index, and of which rows.
#[cfg(feature = "search")]
pub(crate) async fn check_malformed_candidates_are_left_out(
    index: &dyn ArchiveIndex,
    set_videos: impl AsyncFnOnce(&'static str),
) {
    use transcript_core::search::{
        CandidateRequest, IndexQuery, IndexedVideo, SearchDocument, SearchSort, TermCondition, TermRow,
    };

    let document = SearchDocument {
        selector: TrackSelector::Default,
        language: LanguageTag::english(),
        date: super::timestamp(0),
        digest: String::new(),
        rows: vec![TermRow { words: "a kettle".to_owned(), ..TermRow::default() }],
    };
    let video = |id: &str| super::put_request(id, "").video;
    let indexed = |id| IndexedVideo { video: video(id), change: 1, documents: vec![document.clone()] };
    let ids = ["aaaaaaaaaaa", "bbbbbbbbbbb", "ccccccccccc", "ddddddddddd"];
    index.put(&ids.map(indexed), 0, None).await.unwrap();
    // Of candidates with the same score and date, these come first.
    set_videos("'later/' || video WHERE video LIKE '%aaa' OR video LIKE '%bbb'").await;
    let candidates = async |offset: u32, limit: u32| {
        let query = IndexQuery::new(vec![TermCondition::Term("kettle".to_owned())], Vec::new());
        let request = CandidateRequest { query, sort: SearchSort::Relevance, offset, limit };
        let page = index.candidates(&request).await.unwrap();
        assert_eq!(page.total, 2);
        page.items.into_iter().map(|candidate| candidate.video).collect::<Vec<_>>()
    };
    let expected = [video(ids[2]), video(ids[3])];
    assert_eq!(candidates(0, 9).await, expected);
    assert_eq!(candidates(0, 1).await, expected[..1]);
    assert_eq!(candidates(1, 1).await, expected[1..]);
    assert_eq!(candidates(2, 1).await, []);
    for limit in [1, 9] {
        let (mut page, mut listed) = (PageRequest { after: None, limit }, Vec::new());
        loop {
            let found = index.list(page).await.unwrap();
            listed.extend(found.items.into_iter().map(|track| track.video));
            let Some(next) = found.next else { break };
            page = PageRequest { after: Some(next), limit };
        }
        assert_eq!(listed, expected);
    }
}
