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
    let (archive, _place) = crate::archive().await;
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
    let (archive, _place) = crate::archive().await;
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
