//! Conformance cases of operator functions: tracks, withdrawal, deletion, pages and statistics.

use super::*;
use crate::{
    archive::{ArchiveStats, ChangedVideo, FetchLease, LeaseOutcome},
    error::ErrorKind,
    ids::{Cursor, Holder},
    page::{PAGE_LIMIT, PageRequest},
    testing::{expect_error, read_pages},
    video::ShortLink,
};

/// Known tracks are merged with earlier ones in the order in which they became known.
pub async fn known_tracks_are_merged_in_order(store: ArchiveStore) {
    let commentary = TrackInfo { name: Some("Commentary".to_owned()), ..track("en") };
    let generated = TrackInfo::new(language("en"), TrackKind::Generated);
    let known_tracks = vec![track("de"), track("en"), commentary.clone()];
    put(&store, PutRequest { known_tracks, ..put_request(1, "en", "text", &[DEFAULT]) }).await;
    let known_tracks = vec![track("fr"), track("de"), generated.clone()];
    put(&store, PutRequest { known_tracks, ..put_request(1, "en", "other", &[DEFAULT]) }).await;
    let known: Vec<_> = tracks(&store, 1).await.into_iter().map(|archived| archived.track).collect();
    let expect = [track("de"), track("en"), commentary, track("fr"), generated];
    assert_eq!(known, expect, "tracks are merged in the order in which they became known");
    put(&store, PutRequest { known_tracks: vec![], ..put_request(1, "it", "testo", &[selector("it")]) })
        .await;
    assert_eq!(languages(&store, 1).await.pop().as_deref(), Some("it"), "the track of a transcript is known");
    assert_eq!(tracks(&store, 2).await, [], "another video has its own tracks");
}

/// The original flag is no part of a track's identity; it is set once any supplier sets it.
pub async fn track_is_original_once_any_supplier_marks_it(store: ArchiveStore) {
    let original = TrackInfo { original: true, ..track("en") };
    put(&store, put_request(1, "en", "text", &[DEFAULT])).await;
    for known_tracks in [vec![original.clone()], vec![track("en")]] {
        put(&store, PutRequest { known_tracks, ..put_request(1, "en", "text", &[DEFAULT]) }).await;
        let known: Vec<_> = tracks(&store, 1).await.into_iter().map(|archived| archived.track).collect();
        assert_eq!(
            known,
            std::slice::from_ref(&original),
            "one track, marked original once a supplier marks it"
        );
    }
    let stored = find_stored(&store, 1, &DEFAULT).await;
    assert_eq!(stored.transcript.track, track("en"), "the stored transcript stays as given");
}

/// An archived track has selectors, revision and time; a track that is only known has none.
pub async fn tracks_list_their_selectors(store: ArchiveStore) {
    let known_tracks = vec![track("de"), track("en")];
    let selectors = [selector("en-US"), selector("en"), DEFAULT];
    put(&store, PutRequest { known_tracks, ..put_request(1, "en", "text", &selectors) }).await;
    put(&store, refresh_request(1, "en", "newer", &[selector("en")])).await;
    let archived = ArchivedTrack {
        video: video(1),
        track: track("en"),
        selectors: vec![DEFAULT, selector("en"), selector("en-US")],
        revision: Some(2),
        stored_at: Some(at(100)),
    };
    let only_known = ArchivedTrack {
        video: video(1),
        track: track("de"),
        selectors: vec![],
        revision: None,
        stored_at: None,
    };
    assert_eq!(
        tracks(&store, 1).await,
        [only_known, archived],
        "archived tracks and tracks that are only known"
    );
}

/// A track that was replaced for all its selectors stays archived without selectors.
pub async fn replaced_track_has_no_selectors(store: ArchiveStore) {
    put(&store, put_request(1, "de", "erst", &[DEFAULT])).await;
    put(&store, refresh_request(1, "en", "then", &[DEFAULT])).await;
    let tracks = tracks(&store, 1).await;
    assert_eq!((tracks[0].selectors.len(), tracks[0].revision), (0, Some(1)), "the German track is replaced");
    assert_eq!((tracks[1].selectors.len(), tracks[1].revision), (1, Some(2)), "the English track is current");
}

/// A withdrawn video is not found, whatever is stored; a restored video is found as before.
pub async fn withdrawn_video_is_not_found(store: ArchiveStore) {
    let stored = put(&store, put_request(1, "en", "text", &[DEFAULT])).await;
    expect_ok(store.put_absence(absence(1, selector("de"), 100)).await);
    for _ in 0..2 {
        expect_ok(store.withdraw(&video(1), true, at(5)).await);
        for selector in [DEFAULT, selector("de"), selector("fr")] {
            assert_eq!(find(&store, 1, &selector).await, FindOutcome::Withdrawn, "whatever is stored");
        }
    }
    assert_eq!(tracks(&store, 1).await, [], "a withdrawn video has no tracks");
    for request in
        [put_request(1, "en", "new", &[selector("fr")]), refresh_request(1, "en", "new", &[DEFAULT])]
    {
        expect_error(store.put(request).await, ErrorKind::Conflict, "a withdrawn video stores nothing new");
    }
    let stats = expect_ok(store.stats().await);
    assert_eq!((stats.transcripts, stats.withdrawn), (1, 1), "what is stored stays stored");
    for _ in 0..2 {
        expect_ok(store.withdraw(&video(1), false, at(6)).await);
        assert_eq!(find_stored(&store, 1, &DEFAULT).await, stored, "a restored video is found as before");
    }
    assert_eq!(languages(&store, 1).await, ["en"], "with its tracks");
    assert_eq!(find(&store, 1, &selector("fr")).await, NotFound, "a rejected put stores nothing");
    assert_eq!(expect_ok(store.stats().await).withdrawn, 0);
}

/// An unknown video can be withdrawn.
pub async fn unknown_video_can_be_withdrawn(store: ArchiveStore) {
    expect_ok(store.withdraw(&video(1), false, at(0)).await);
    assert_eq!(find(&store, 1, &DEFAULT).await, NotFound, "restoring is not a withdrawal");
    expect_ok(store.withdraw(&video(1), true, at(0)).await);
    assert_eq!(find(&store, 1, &DEFAULT).await, FindOutcome::Withdrawn, "an unknown video is withdrawn");
    assert_eq!(find(&store, 2, &DEFAULT).await, NotFound, "another is not");
    let request = put_request(1, "en", "text", &[DEFAULT]);
    expect_error(store.put(request).await, ErrorKind::Conflict, "a withdrawn video stores nothing new");
}

/// Delete removes transcripts, absences and tracks of one video.
pub async fn delete_removes_all_data_of_video(store: ArchiveStore) {
    for number in [1, 2] {
        put(&store, put_request(number, "en", "first", &[DEFAULT])).await;
        put(&store, refresh_request(number, "en", "text", &[DEFAULT])).await;
        expect_ok(store.put_absence(absence(number, selector("de"), 100)).await);
    }
    for _ in 0..2 {
        expect_ok(store.delete(&video(1)).await);
        for selector in [DEFAULT, selector("de")] {
            assert_eq!(find(&store, 1, &selector).await, NotFound, "all of the video is deleted");
        }
        assert_eq!(tracks(&store, 1).await, [], "its tracks are deleted");
    }
    expect_ok(store.delete(&video(99)).await);
    assert_eq!(first_text(&store, 2, &DEFAULT).await, ("text".to_owned(), 2), "other videos stay");
    let stats = expect_ok(store.stats().await);
    assert_eq!((stats.videos, stats.transcripts, stats.absences), (1, 2, 1), "deleted data is not counted");
    let again = put(&store, put_request(1, "en", "again", &[DEFAULT])).await;
    assert_eq!(again.revision, 1, "a deleted video starts at revision 1");
}

/// Delete keeps the withdrawal, the leases and the short links.
pub async fn delete_keeps_withdrawal_lease_and_links(store: ArchiveStore) {
    let link = ShortLink::new(Platform::TikTok, "https://vm.tiktok.com/ZM1/".into(), "ZM1".into());
    put(&store, put_request(1, "en", "text", &[DEFAULT])).await;
    expect_ok(store.put_short_link(&link, &video(1)).await);
    let lease = |holder| FetchLease {
        video: video(1),
        selector: DEFAULT,
        holder: Holder::new(holder),
        now: at(0),
        until: at(60),
    };
    acquire(&store, lease("a")).await;
    expect_ok(store.withdraw(&video(1), true, at(0)).await);
    expect_ok(store.delete(&video(1)).await);
    assert_eq!(find(&store, 1, &DEFAULT).await, FindOutcome::Withdrawn, "a withdrawal stays");
    assert_eq!(expect_ok(store.short_link(&link).await), Some(video(1)), "a short link stays");
    let claim = acquire(&store, lease("b")).await;
    assert_eq!(claim, LeaseOutcome::Busy { until: at(60) }, "a lease stays");
    expect_ok(store.withdraw(&video(1), false, at(0)).await);
    assert_eq!(find(&store, 1, &DEFAULT).await, NotFound, "the transcripts are deleted");
}

/// Withdrawn videos are listed once each, with or without transcripts, until they are restored.
pub async fn withdrawn_videos_are_paged_once_each(store: ArchiveStore) {
    put(&store, put_request(3, "en", "text", &[DEFAULT])).await;
    let withdrawn = [1, 2, 3, 4, 5];
    for number in withdrawn.into_iter().chain([2]) {
        expect_ok(store.withdraw(&video(number), true, at(0)).await);
    }
    expect_ok(store.withdraw(&video(4), false, at(1)).await);
    expect_ok(store.withdraw(&video(9), false, at(1)).await);
    let mut found = read_pages(2, async |page| store.list_withdrawn(page).await).await;
    assert!(found.is_sorted_by_key(|video| video.to_string()), "they are sorted by video: {found:?}");
    found.sort();
    assert_eq!(found, [1, 2, 3, 5].map(video), "each withdrawn video is listed once");
}

/// Every archived track is listed once, tracks of a video together, with its newest revision.
pub async fn archived_tracks_are_paged_once_each(store: ArchiveStore) {
    for number in (0..12).rev() {
        let known_tracks = vec![track("fr"), track("en")];
        put(&store, PutRequest { known_tracks, ..put_request(number, "en", "text", &[DEFAULT]) }).await;
        put(&store, put_request(number, "de", "Text", &[selector("de")])).await;
        put(&store, refresh_request(number, "en", "newer", &[DEFAULT])).await;
    }
    expect_ok(store.withdraw(&video(3), true, at(0)).await);
    expect_ok(store.put_absence(absence(50, DEFAULT, 100)).await);
    let name = |archived: &ArchivedTrack| format!("{} {}", archived.video.id(), archived.track.language);
    let mut expect: Vec<String> =
        (0..12).flat_map(|n| ["de", "en"].map(|tag| format!("video-{n:05} {tag}"))).collect();
    expect.sort();
    for limit in [1, 2, 5, 23, 24, 25, PAGE_LIMIT, u32::MAX] {
        let all = read_pages(limit, async |page| store.list_tracks(page).await).await;
        let videos: Vec<_> = all.iter().map(|archived| &archived.video).collect();
        let changes = videos.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 11, "the tracks of a video are listed together");
        let mut names: Vec<String> = all.iter().map(name).collect();
        names.sort();
        assert_eq!(names, expect, "pages of {limit} give every archived track once, withdrawn ones too");
        let english = all.iter().filter(|archived| archived.track == track("en"));
        let newest = english.clone().all(|archived| archived.revision == Some(2));
        assert!(newest && english.count() == 12, "with its newest revision");
    }
    let page = expect_ok(store.list_tracks(PageRequest { after: None, limit: 24 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    for text in ["", "nonsense", "video_site/x/y", "' --"] {
        let after = Some(Cursor::new(text));
        if let Err(error) = store.list_tracks(PageRequest { after, limit: 5 }).await {
            expect_error::<()>(Err(error), ErrorKind::Invalid, "a foreign cursor is a caller error");
        }
    }
}

/// The statistics count videos, revisions, absences, withdrawals, links and bytes.
pub async fn stats_count_stored_data(store: ArchiveStore) {
    let link = ShortLink::new(Platform::TikTok, "https://vm.tiktok.com/ZM1/".into(), "ZM1".into());
    put(&store, put_request(1, "en", "text", &[DEFAULT, selector("en")])).await;
    let before = expect_ok(store.stats().await);
    assert!(before.bytes > 0, "transcripts take space");
    put(&store, refresh_request(1, "en", "a longer text than before", &[DEFAULT])).await;
    put(&store, put_request(2, "en", "text", &[selector("en")])).await;
    expect_ok(store.put_absence(absence(2, DEFAULT, 100)).await);
    expect_ok(store.put_absence(absence(3, DEFAULT, 100)).await);
    expect_ok(store.withdraw(&video(2), true, at(0)).await);
    expect_ok(store.withdraw(&video(4), true, at(0)).await);
    expect_ok(store.put_short_link(&link, &video(1)).await);
    let stats = expect_ok(store.stats().await);
    assert!(stats.bytes > before.bytes, "more transcripts take more space");
    let expect = ArchiveStats {
        videos: 2,
        transcripts: 3,
        absences: 2,
        withdrawn: 2,
        links: 1,
        bytes: stats.bytes,
        compact: 0,
    };
    assert_eq!(stats, expect, "the statistics count what is stored");
}

/// The change counter counts every change that can invalidate an earlier result, and no other.
pub async fn change_counter_counts_invalidating_changes(store: ArchiveStore) {
    async fn counted(store: &ArchiveStore, expect: bool, what: &str, before: &mut u64) {
        let now = expect_ok(store.change_counter().await);
        let grown = now > *before;
        assert!(now >= *before && grown == expect, "{what}: {before} and then {now}");
        *before = now;
    }
    let mut before = expect_ok(store.change_counter().await);
    put(&store, put_request(1, "de", "eins", &[DEFAULT, selector("de")])).await;
    put(&store, put_request(1, "de", "eins", &[DEFAULT])).await;
    expect_ok(store.put_absence(absence(2, DEFAULT, 100)).await);
    put(&store, put_request(2, "de", "zwei", &[selector("de")])).await;
    counted(&store, false, "the first transcripts of two videos", &mut before).await;
    put(&store, put_request(2, "en", "two", &[DEFAULT])).await;
    counted(&store, true, "another transcript of a video", &mut before).await;
    put(&store, refresh_request(1, "de", "eins", &[DEFAULT])).await;
    counted(&store, false, "a refresh without a change", &mut before).await;
    put(&store, refresh_request(1, "de", "uno", &[DEFAULT])).await;
    counted(&store, true, "a refresh with a change", &mut before).await;
    expect_ok(store.withdraw(&video(1), true, at(5)).await);
    counted(&store, true, "a withdrawal", &mut before).await;
    expect_ok(store.withdraw(&video(1), false, at(6)).await);
    counted(&store, true, "its end", &mut before).await;
    expect_ok(store.delete(&video(2)).await);
    counted(&store, true, "a deletion", &mut before).await;
    let lease = FetchLease {
        video: video(3),
        selector: DEFAULT,
        holder: Holder::new("a"),
        now: at(0),
        until: at(60),
    };
    acquire(&store, lease).await;
    counted(&store, false, "a lease", &mut before).await;
}

async fn unindexed(store: &ArchiveStore) -> Vec<ChangedVideo> {
    expect_ok(store.unindexed_videos(10).await)
}

async fn unindexed_names(store: &ArchiveStore) -> Vec<VideoId> {
    unindexed(store).await.into_iter().map(|changed| changed.video).collect()
}

/// A changed video is listed for search indexes, the longest changed first, until its newest change is deleted.
///
/// A store that records none passes too.
pub async fn changed_videos_are_unindexed_until_deleted(store: ArchiveStore) {
    // A store may record changes from the first list on.
    unindexed(&store).await;
    put(&store, put_request(2, "en", "two", &[DEFAULT])).await;
    let first = unindexed(&store).await;
    if first.is_empty() {
        return;
    }
    put(&store, put_request(1, "en", "one", &[DEFAULT])).await;
    assert_eq!(unindexed_names(&store).await, [video(2), video(1)], "the longest changed comes first");
    assert_eq!(expect_ok(store.unindexed_videos(1).await), first, "a list has at most as many as requested");
    put(&store, refresh_request(2, "en", "newer", &[DEFAULT])).await;
    expect_ok(store.delete_unindexed_videos(&first).await);
    assert_eq!(unindexed_names(&store).await, [video(1), video(2)], "a newer change stays");

    let all = unindexed(&store).await;
    let newest = all.iter().map(|changed| changed.change).max();
    for _ in 0..2 {
        expect_ok(store.delete_unindexed_videos(&all).await);
        assert_eq!(unindexed(&store).await, [], "what an index has read is not listed");
        if let Some(counted) = expect_ok(store.newest_change().await) {
            assert_eq!(
                Some(counted),
                newest,
                "the newest change was listed, and deleting its record keeps its number"
            );
        }
    }
    expect_ok(store.withdraw(&video(1), true, at(5)).await);
    let again = unindexed(&store).await;
    assert!(again.iter().map(|changed| changed.change).max() > newest, "a number is not used again");
    expect_ok(store.delete(&video(2)).await);
    assert_eq!(unindexed_names(&store).await, [video(1), video(2)], "withdrawals and deletions are changes");
    expect_ok(store.withdraw(&video(1), false, at(6)).await);
    assert_eq!(unindexed_names(&store).await, [video(2), video(1)], "so are restored videos");

    let newest = unindexed(&store).await.iter().map(|changed| changed.change).max();
    expect_ok(store.delete_unindexed_videos(&unindexed(&store).await).await);
    put(&store, put_request(3, "en", "three", &[DEFAULT])).await;
    for expected in [[video(3), video(1)], [video(1), video(3)]] {
        let [_, recorded] = &expected;
        let changes = expect_ok(store.change_counter().await);
        expect_ok(store.record_unindexed_video(recorded).await);
        let listed = unindexed(&store).await;
        assert_eq!(unindexed_names(&store).await, expected, "a recorded video is the last one");
        assert!(listed.iter().all(|changed| Some(changed.change) > newest), "{listed:?}, after {newest:?}");
        assert_eq!(expect_ok(store.change_counter().await), changes, "no content changed");
    }
}
