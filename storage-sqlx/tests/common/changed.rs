//! Videos whose cached responses are outdated.

use std::sync::Arc;

use transcript_core::{archive::Archive, transcript::Segment, video::VideoId};

/// A changed video is listed once, with its newest change, until that change is deleted.
pub(crate) async fn check_changed_videos(archive: &dyn Archive) {
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
    assert_eq!(names().await, [one.video.clone(), other.video.clone()]);
    assert_eq!(archive.changed_videos(1).await.unwrap(), withdrawn);
    archive.withdraw(&one.video, false, one.now).await.unwrap();
    archive.delete_changed_videos(&withdrawn).await.unwrap();
    assert_eq!(names().await, [other.video.clone(), one.video.clone()], "the newer change stays");
    archive.delete_changed_videos(&listed().await).await.unwrap();
    assert_eq!(names().await, []);

    one.replace = true;
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [], "the text is the same");
    Arc::make_mut(&mut one.transcript).segments = vec![Segment::new("a new text", 0, 1_000)];
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [one.video.clone()]);
}

/// A video that a search index must read again is listed once, with its newest change, until that change is deleted.
pub(crate) async fn check_unindexed_videos(archive: &dyn Archive) {
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
    archive.put(one.clone()).await.unwrap();
    assert_eq!(names().await, [], "nothing changed");
}
