//! Tracks, withdrawal, forgetting, pages and figures: what operators see.

use super::*;
use crate::{
    archive::{Claim, Lease, Stats},
    error::ErrorKind,
    ids::{Cursor, Holder},
    page::{PAGE_LIMIT, PageRequest},
    testing::{pages, refused},
    video::ShortLink,
};

/// Known tracks are joined to those known before, in the order in which they became known.
pub async fn known_tracks_are_joined(store: Store) {
    let commentary = TrackInfo { name: Some("Commentary".to_owned()), ..track("en") };
    let generated = TrackInfo::new(language("en"), TrackKind::Generated);
    let known_tracks = vec![track("de"), track("en"), commentary.clone()];
    done(store.keep(Keep { known_tracks, ..keep(1, "en", "text", &[Wish::Default]) }).await);
    let known_tracks = vec![track("fr"), track("de"), generated.clone()];
    done(store.keep(Keep { known_tracks, ..keep(1, "en", "other", &[Wish::Default]) }).await);
    let known: Vec<_> = tracks(&store, 1).await.into_iter().map(|archived| archived.track).collect();
    let expect = [track("de"), track("en"), commentary, track("fr"), generated];
    assert_eq!(known, expect, "tracks are joined in the order in which they became known");
    done(store.keep(Keep { known_tracks: vec![], ..keep(1, "it", "testo", &[wish("it")]) }).await);
    assert_eq!(languages(&store, 1).await.pop().as_deref(), Some("it"), "a transcript's own track is known");
    assert_eq!(tracks(&store, 2).await, [], "another video has its own tracks");
}

/// A track is the same whether or not it is known to be original; it is, once anyone said so.
pub async fn a_track_is_original_once_anyone_said_so(store: Store) {
    let original = TrackInfo { original: true, ..track("en") };
    done(store.keep(keep(1, "en", "text", &[Wish::Default])).await);
    for known_tracks in [vec![original.clone()], vec![track("en")]] {
        done(store.keep(Keep { known_tracks, ..keep(1, "en", "text", &[Wish::Default]) }).await);
        let known: Vec<_> = tracks(&store, 1).await.into_iter().map(|archived| archived.track).collect();
        assert_eq!(known, std::slice::from_ref(&original), "one track, original once a supplier said so");
    }
    let stored = found(&store, 1, &Wish::Default).await;
    assert_eq!(stored.transcript.track, track("en"), "what is stored stays as it was given");
}

/// An archived track tells wishes, revision and moment; one that is only known has none.
pub async fn tracks_name_the_wishes_that_they_answer(store: Store) {
    let known_tracks = vec![track("de"), track("en")];
    let wishes = [wish("en-US"), wish("en"), Wish::Default];
    done(store.keep(Keep { known_tracks, ..keep(1, "en", "text", &wishes) }).await);
    done(store.keep(refresh(1, "en", "newer", &[wish("en")])).await);
    let archived = ArchivedTrack {
        video: video(1),
        track: track("en"),
        wishes: vec![Wish::Default, wish("en"), wish("en-US")],
        revision: Some(2),
        stored_at: Some(at(100)),
    };
    let only_known = ArchivedTrack {
        video: video(1),
        track: track("de"),
        wishes: vec![],
        revision: None,
        stored_at: None,
    };
    assert_eq!(tracks(&store, 1).await, [only_known, archived], "archived tracks and only known ones");
}

/// A track that another one replaced for all its wishes stays archived, but answers none.
pub async fn a_replaced_track_answers_no_wish(store: Store) {
    done(store.keep(keep(1, "de", "erst", &[Wish::Default])).await);
    done(store.keep(refresh(1, "en", "then", &[Wish::Default])).await);
    let tracks = tracks(&store, 1).await;
    assert_eq!((tracks[0].wishes.len(), tracks[0].revision), (0, Some(1)), "the German one is replaced");
    assert_eq!((tracks[1].wishes.len(), tracks[1].revision), (1, Some(2)), "the English one answers");
}

/// A withdrawn video is not found, whatever is stored; put back, it is found as before.
pub async fn a_withdrawn_video_is_not_found(store: Store) {
    let stored = done(store.keep(keep(1, "en", "text", &[Wish::Default])).await);
    done(store.keep_absence(absence(1, wish("de"), 100)).await);
    for _ in 0..2 {
        done(store.withdraw(&video(1), true, at(5)).await);
        for wish in [Wish::Default, wish("de"), wish("fr")] {
            assert_eq!(find(&store, 1, &wish).await, Found::Withdrawn, "whatever is stored of it");
        }
    }
    assert_eq!(tracks(&store, 1).await, [], "a withdrawn video has no tracks");
    for ask in [keep(1, "en", "new", &[wish("fr")]), refresh(1, "en", "new", &[Wish::Default])] {
        refused(store.keep(ask).await, ErrorKind::Conflict, "nothing is kept of a withdrawn video");
    }
    let stats = done(store.stats().await);
    assert_eq!((stats.transcripts, stats.withdrawn), (1, 1), "what is stored stays stored");
    for _ in 0..2 {
        done(store.withdraw(&video(1), false, at(6)).await);
        assert_eq!(found(&store, 1, &Wish::Default).await, stored, "put back, it is found as before");
    }
    assert_eq!(languages(&store, 1).await, ["en"], "with its tracks");
    assert_eq!(find(&store, 1, &wish("fr")).await, Found::Nothing, "what was refused is not stored");
    assert_eq!(done(store.stats().await).withdrawn, 0);
}

/// A video can be withdrawn that nothing is known of.
pub async fn a_video_can_be_withdrawn_before_it_is_known(store: Store) {
    done(store.withdraw(&video(1), false, at(0)).await);
    assert_eq!(find(&store, 1, &Wish::Default).await, Found::Nothing, "putting back is no withdrawal");
    done(store.withdraw(&video(1), true, at(0)).await);
    assert_eq!(find(&store, 1, &Wish::Default).await, Found::Withdrawn, "an unknown video is withdrawn");
    assert_eq!(find(&store, 2, &Wish::Default).await, Found::Nothing, "another is not");
    let ask = keep(1, "en", "text", &[Wish::Default]);
    refused(store.keep(ask).await, ErrorKind::Conflict, "nothing is kept of a withdrawn video");
}

/// Forgetting deletes transcripts, absences and tracks of one video.
pub async fn forgetting_deletes_all_of_a_video(store: Store) {
    for number in [1, 2] {
        done(store.keep(keep(number, "en", "first", &[Wish::Default])).await);
        done(store.keep(refresh(number, "en", "text", &[Wish::Default])).await);
        done(store.keep_absence(absence(number, wish("de"), 100)).await);
    }
    for _ in 0..2 {
        done(store.forget(&video(1)).await);
        for wish in [Wish::Default, wish("de")] {
            assert_eq!(find(&store, 1, &wish).await, Found::Nothing, "all of the video is deleted");
        }
        assert_eq!(tracks(&store, 1).await, [], "its tracks too");
    }
    done(store.forget(&video(99)).await);
    assert_eq!(text(&store, 2, &Wish::Default).await, ("text".to_owned(), 2), "other videos stay");
    let stats = done(store.stats().await);
    assert_eq!(
        (stats.videos, stats.transcripts, stats.absences),
        (1, 2, 1),
        "what is deleted is not counted"
    );
    let again = done(store.keep(keep(1, "en", "again", &[Wish::Default])).await);
    assert_eq!(again.revision, 1, "a forgotten video begins anew");
}

/// Forgetting leaves the withdrawal, the leases and the short links.
pub async fn forgetting_keeps_withdrawal_lease_and_links(store: Store) {
    let link = ShortLink::new(Platform::ShortVideo, "https://vm.tiktok.com/ZM1/".into(), "ZM1".into());
    done(store.keep(keep(1, "en", "text", &[Wish::Default])).await);
    done(store.keep_link(&link, &video(1)).await);
    let lease = |holder| Lease {
        video: video(1),
        wish: Wish::Default,
        holder: Holder::new(holder),
        now: at(0),
        until: at(60),
    };
    done(store.claim(lease("a")).await);
    done(store.withdraw(&video(1), true, at(0)).await);
    done(store.forget(&video(1)).await);
    assert_eq!(find(&store, 1, &Wish::Default).await, Found::Withdrawn, "a withdrawal stays");
    assert_eq!(done(store.link(&link).await), Some(video(1)), "a short link stays");
    let claim = done(store.claim(lease("b")).await);
    assert_eq!(claim, Claim::Busy { until: at(60) }, "a lease stays");
    done(store.withdraw(&video(1), false, at(0)).await);
    assert_eq!(find(&store, 1, &Wish::Default).await, Found::Nothing, "the transcripts are gone");
}

/// Withdrawn videos come once each, with or without transcripts, until they are put back.
pub async fn withdrawn_videos_come_in_pages(store: Store) {
    done(store.keep(keep(3, "en", "text", &[Wish::Default])).await);
    let withdrawn = [1, 2, 3, 4, 5];
    for number in withdrawn.into_iter().chain([2]) {
        done(store.withdraw(&video(number), true, at(0)).await);
    }
    done(store.withdraw(&video(4), false, at(1)).await);
    done(store.withdraw(&video(9), false, at(1)).await);
    let mut found = Vec::new();
    let mut page = PageRequest { after: None, limit: 2 };
    loop {
        let part = done(store.withdrawn(page.clone()).await);
        assert!(part.items.len() <= 2, "a page has as many as were asked for: {:?}", part.items);
        found.extend(part.items);
        match part.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    assert!(found.is_sorted_by_key(|video| video.to_string()), "they come by video: {found:?}");
    found.sort();
    assert_eq!(found, [1, 2, 3, 5].map(video), "each withdrawn one comes once");
}

/// Every archived track comes once, those of a video together, with its newest revision.
pub async fn archived_tracks_come_in_pages(store: Store) {
    for number in (0..12).rev() {
        let known_tracks = vec![track("fr"), track("en")];
        done(store.keep(Keep { known_tracks, ..keep(number, "en", "text", &[Wish::Default]) }).await);
        done(store.keep(keep(number, "de", "Text", &[wish("de")])).await);
        done(store.keep(refresh(number, "en", "newer", &[Wish::Default])).await);
    }
    done(store.withdraw(&video(3), true, at(0)).await);
    done(store.keep_absence(absence(50, Wish::Default, 100)).await);
    let name = |archived: &ArchivedTrack| format!("{} {}", archived.video.id(), archived.track.language);
    let mut expect: Vec<String> =
        (0..12).flat_map(|n| ["de", "en"].map(|tag| format!("video-{n:05} {tag}"))).collect();
    expect.sort();
    for limit in [1, 2, 5, 23, 24, 25, PAGE_LIMIT, u32::MAX] {
        let all = pages(limit, async |page| store.page(page).await).await;
        let videos: Vec<_> = all.iter().map(|archived| &archived.video).collect();
        let changes = videos.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 11, "the tracks of a video come together");
        let mut names: Vec<String> = all.iter().map(name).collect();
        names.sort();
        assert_eq!(names, expect, "pages of {limit} give every archived track once, withdrawn ones too");
        let english = all.iter().filter(|archived| archived.track == track("en"));
        let newest = english.clone().all(|archived| archived.revision == Some(2));
        assert!(newest && english.count() == 12, "with its newest revision");
    }
    let page = done(store.page(PageRequest { after: None, limit: 24 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    for text in ["", "nonsense", "video_site/x/y", "' --"] {
        let after = Some(Cursor::new(text));
        if let Err(error) = store.page(PageRequest { after, limit: 5 }).await {
            refused::<()>(Err(error), ErrorKind::Invalid, "a strange cursor is the caller's fault");
        }
    }
}

/// The figures count videos, revisions, absences, withdrawals, links and bytes.
pub async fn stats_count_what_is_there(store: Store) {
    let link = ShortLink::new(Platform::ShortVideo, "https://vm.tiktok.com/ZM1/".into(), "ZM1".into());
    done(store.keep(keep(1, "en", "text", &[Wish::Default, wish("en")])).await);
    let before = done(store.stats().await);
    assert!(before.bytes > 0, "transcripts take room");
    done(store.keep(refresh(1, "en", "a longer text than before", &[Wish::Default])).await);
    done(store.keep(keep(2, "en", "text", &[wish("en")])).await);
    done(store.keep_absence(absence(2, Wish::Default, 100)).await);
    done(store.keep_absence(absence(3, Wish::Default, 100)).await);
    done(store.withdraw(&video(2), true, at(0)).await);
    done(store.withdraw(&video(4), true, at(0)).await);
    done(store.keep_link(&link, &video(1)).await);
    let stats = done(store.stats().await);
    assert!(stats.bytes > before.bytes, "more transcripts take more room");
    let expect = Stats {
        videos: 2,
        transcripts: 3,
        absences: 2,
        withdrawn: 2,
        links: 1,
        bytes: stats.bytes,
        compact: 0,
    };
    assert_eq!(stats, expect, "the figures count what is stored");
}

/// Whatever can make an earlier answer untrue is counted, and nothing else.
pub async fn what_was_found_before_is_known_to_hold(store: Store) {
    async fn counted(store: &Store, expect: bool, what: &str, before: &mut u64) {
        let now = done(store.changes().await);
        let grown = now > *before;
        assert!(now >= *before && grown == expect, "{what}: {before} and then {now}");
        *before = now;
    }
    let mut before = done(store.changes().await);
    let store = &store;
    done(store.keep(keep(1, "de", "eins", &[Wish::Default, wish("de")])).await);
    done(store.keep(keep(1, "de", "eins", &[Wish::Default])).await);
    done(store.keep_absence(absence(2, Wish::Default, 100)).await);
    done(store.keep(keep(2, "de", "zwei", &[wish("de")])).await);
    counted(store, false, "the first transcripts of two videos", &mut before).await;
    done(store.keep(keep(2, "en", "two", &[Wish::Default])).await);
    counted(store, true, "another transcript of a video", &mut before).await;
    done(store.keep(refresh(1, "de", "eins", &[Wish::Default])).await);
    counted(store, false, "a refresh without a change", &mut before).await;
    done(store.keep(refresh(1, "de", "uno", &[Wish::Default])).await);
    counted(store, true, "a refresh with a change", &mut before).await;
    done(store.withdraw(&video(1), true, at(5)).await);
    counted(store, true, "a withdrawal", &mut before).await;
    done(store.withdraw(&video(1), false, at(6)).await);
    counted(store, true, "its end", &mut before).await;
    done(store.forget(&video(2)).await);
    counted(store, true, "forgetting", &mut before).await;
    let lease =
        Lease { video: video(3), wish: Wish::Default, holder: Holder::new("a"), now: at(0), until: at(60) };
    done(store.claim(lease).await);
    counted(store, false, "a lease", &mut before).await;
}
