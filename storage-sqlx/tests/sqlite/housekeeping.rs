//! Deletion of expired rows.

use std::path::Path;

use transcript_core::{
    Timestamp,
    accounts::{MailIntent, Outbox},
    archive::{Absence, Archive, FetchLease, FindOutcome, TrackSelector},
    ids::Holder,
    video::{Platform, VideoId},
};

use crate::{
    common::timestamp,
    opening::{foreign_connection, value},
};

const HOUR: i64 = 3_600_000;

fn count(file: &Path, statement: &str) -> i64 {
    value(&foreign_connection(file), statement)
}

fn video(number: u32) -> VideoId {
    VideoId::new(Platform::YouTube, &format!("{number:011}")).unwrap()
}

fn lease(number: u32, now: Timestamp) -> FetchLease {
    let until = Timestamp::from_millis(now.as_millis() + 60_000);
    FetchLease {
        video: video(number),
        selector: TrackSelector::Default,
        holder: Holder::new("h"),
        now,
        until,
    }
}

#[tokio::test]
async fn lease_acquire_deletes_expired_leases_and_absences() {
    let (archive, folder) = crate::archive().await;
    let absence = |number, until| Absence {
        video: video(number),
        selector: TrackSelector::Default,
        reason: "no_captions".to_owned(),
        message: "nothing".to_owned(),
        suppliers_tried: vec!["captions".to_owned()],
        until,
    };
    for number in 0..20 {
        archive.acquire_lease(lease(number, timestamp(0))).await.unwrap();
        archive.put_absence(absence(number, timestamp(60_000))).await.unwrap();
    }
    archive.put_absence(absence(50, timestamp(3 * HOUR))).await.unwrap();
    let file = folder.path().join("archive.db");
    for (number, now, leases, absences) in
        [(30, HOUR, 21, 21), (31, 2 * HOUR, 6, 5), (32, 2 * HOUR, 3, 1), (33, 2 * HOUR, 4, 1)]
    {
        archive.acquire_lease(lease(number, timestamp(now))).await.unwrap();
        let found =
            (count(&file, "SELECT count(*) FROM leases"), count(&file, "SELECT count(*) FROM absences"));
        assert_eq!(found, (leases, absences), "{number}");
    }
    let lasting = archive.find(&video(50), &TrackSelector::Default, timestamp(2 * HOUR)).await.unwrap();
    assert!(matches!(lasting, FindOutcome::Absence(_)), "{lasting:?}");
}

#[tokio::test]
async fn outbox_queue_deletes_old_finished_mails() {
    let (store, folder) = crate::store().await;
    let file = folder.path().join("verbatim.db");
    let mail = |number: i64| MailIntent {
        id: format!("m{number}"),
        kind: "verify".to_owned(),
        to: "a@example.org".to_owned(),
        attempts: 0,
        language: None,
    };
    for number in 0..20 {
        store.queue(mail(number), timestamp(0)).await.unwrap();
    }
    for number in 0..18 {
        store.finish(&format!("m{number}"), None).await.unwrap();
    }
    for (number, now, left) in [(20, 100 * HOUR, 21), (21, 200 * HOUR, 6), (22, 200 * HOUR, 5)] {
        store.queue(mail(number), timestamp(now)).await.unwrap();
        assert_eq!(count(&file, "SELECT count(*) FROM outbox"), left, "{number}");
    }
    let due = store.lease_due(timestamp(100 * HOUR), timestamp(101 * HOUR), 10).await.unwrap();
    assert_eq!(due.iter().map(|mail| mail.id.as_str()).collect::<Vec<_>>(), ["m18", "m19", "m20"]);
}

#[tokio::test]
async fn archive_in_file_numbers_changes() {
    let (archive, _folder) = crate::archive().await;
    archive.put(crate::put_request("aaaaaaaaaaa", "one")).await.unwrap();
    assert!(archive.newest_change().await.unwrap().is_some(), "the index of a file is stored apart");
}

#[cfg(feature = "search")]
#[tokio::test]
async fn undecodable_track_is_indexed_for_search() {
    let ((archive, folder), (index, _index)) = (crate::archive().await, crate::search_index().await);
    crate::common::changed::check_undecodable_track_is_indexed(archive, index, async |damage| {
        crate::run_on_archive(&folder, damage).await;
    })
    .await;
}

#[cfg(feature = "search")]
#[tokio::test]
async fn search_index_parts_are_merged_after_many_videos() {
    use transcript_core::{
        search::{
            ArchiveIndex as _, CandidateRequest, IndexQuery, IndexedVideo, SearchDocument, SearchSort,
            TermCondition, TermRow,
        },
        transcript::LanguageTag,
    };

    let (index, folder) = crate::search_index().await;
    let file = folder.path().join("search/index.db");
    let parts = || count(&file, "SELECT count(DISTINCT segid) FROM terms_idx");
    let found = async || {
        let query = IndexQuery::new(vec![TermCondition::Term("kettle".to_owned())], Vec::new());
        let request = CandidateRequest { query, sort: SearchSort::Relevance, offset: 0, limit: 1 };
        index.candidates(&request).await.unwrap().total
    };
    let document = SearchDocument {
        selector: TrackSelector::Default,
        language: LanguageTag::english(),
        date: Timestamp::from_millis(0),
        digest: String::new(),
        rows: vec![TermRow { words: "a kettle".to_owned(), ..TermRow::default() }],
    };
    let indexed = |number: u32, change: u64| IndexedVideo {
        video: video(number),
        change,
        documents: vec![document.clone()],
    };
    // Their rows are not in the order of the videos.
    for first in [60, 40, 20, 0] {
        let before = parts();
        let videos: Vec<IndexedVideo> = (first..first + 20).map(|number| indexed(number, 1)).collect();
        index.put(&videos, 0, None).await.unwrap();
        assert_eq!(parts(), before + 1, "each transaction adds a part");
        index.optimize().await.unwrap();
    }
    assert_eq!((parts(), found().await), (1, 80));
    assert_eq!(index.languages().await.unwrap(), Some(vec!["en".to_owned()]));

    let again: Vec<IndexedVideo> = (0..70).map(|number| indexed(number, 2)).collect();
    index.put(&again, 0, None).await.unwrap();
    assert!(parts() <= 3, "{} parts: one for each video", parts());
    let deleted = IndexedVideo { video: video(5), change: 3, documents: Vec::new() };
    index.put(&[deleted], 0, None).await.unwrap();
    index.optimize().await.unwrap();
    assert_eq!(found().await, 79);
}
