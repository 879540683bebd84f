//! Finding: what is known about a wish.

use super::*;
use crate::captions::TIME_MAX_MS;

/// An empty archive knows nothing.
pub async fn nothing_is_known_at_first(store: Store) {
    assert_eq!(find(&store, 1, &Wish::Default).await, Found::Nothing, "nothing is known of a new video");
    assert_eq!(tracks(&store, 1).await, [], "an unknown video has no tracks");
    let stats = done(store.stats().await);
    assert_eq!(stats, Stats::default(), "an empty archive holds nothing: {stats:?}");
}

/// What was kept is found, whole, with revision 1 and its digest.
pub async fn a_kept_transcript_is_found_as_it_was(store: Store) {
    let kept = keep(1, "en", "Hello.", &[Wish::Default]);
    let returned = done(store.keep(kept.clone()).await);
    assert_eq!(returned.transcript, kept.transcript, "keeping returns what was kept");
    assert_eq!(returned.revision, 1, "the first is revision 1");
    assert_eq!(returned.content_sha256, content_digest(&kept.transcript), "with the digest of its content");
    assert_eq!((returned.parser_version, returned.stored_at), (7, at(0)), "with parser and moment");
    assert_eq!(found(&store, 1, &Wish::Default).await, returned, "finding gives what keeping returned");
    let late = done(store.find(&video(1), &Wish::Default, at(999_999_999)).await);
    assert_eq!(late, Found::Transcript(returned), "a transcript is kept for ever");
}

/// Texts, names and times at their extremes come back as the supplier gave them.
pub async fn odd_texts_come_back_as_they_were(store: Store) {
    let named = TrackInfo {
        name: Some("Comentario del director — \u{202e}RTL".to_owned()),
        original: true,
        ..TrackInfo::new(language("zh-Hant"), TrackKind::Generated)
    };
    let odd = Transcript {
        title: None,
        author: Some(String::new()),
        duration_ms: Some(0),
        track: named.clone(),
        source: "speech-to-text".to_owned(),
        segments: [
            "",
            " ",
            "\0",
            "nul \0 inside",
            "🦀👩\u{200d}👩\u{200d}👧\u{200d}👦 emoji",
            "שלום עולם \u{202e}txet",
            "e\u{301} is not é",
            "\u{feff}mark",
            "a\r\nb\tc\u{2028}d",
            "<b>'\"&amp;--;%",
            "\u{10ffff}\u{fffd}",
        ]
        .iter()
        .zip(0..)
        .map(|(text, n)| Segment::new(*text, n / 2 * 7, n % 3))
        .collect(),
        ..transcript(1, "en", "")
    };
    let bare = Transcript {
        title: Some(String::new()),
        author: None,
        duration_ms: None,
        segments: vec![Segment::new("x".repeat(70_000), TIME_MAX_MS, TIME_MAX_MS)],
        ..transcript(2, "en", "")
    };
    for kept in [odd, bare] {
        let kept = Arc::new(kept);
        let ask = Keep { video: kept.video.clone(), ..keep(1, "en", "", &[Wish::Default]) };
        done(store.keep(Keep { transcript: Arc::clone(&kept), ..ask }).await);
        let stored = done(store.find(&kept.video, &Wish::Default, at(0)).await);
        let Found::Transcript(stored) = stored else { panic!("what was kept is found") };
        assert_eq!(stored.transcript, kept, "a transcript comes back as the supplier gave it");
        assert_eq!(stored.content_sha256, content_digest(&kept), "and has the digest of that");
    }
    let tracks = tracks(&store, 1).await;
    assert!(
        tracks.iter().any(|archived| archived.track == named),
        "a track comes back as it was: {tracks:?}"
    );
}

/// A transcript of 20,000 segments comes back whole.
pub async fn a_transcript_of_many_segments_comes_back(store: Store) {
    let segments = (0..20_000).map(|n| Segment::new(format!("segment {n} ü"), n * 500, 499)).collect();
    let kept = Arc::new(Transcript { segments, ..transcript(1, "en", "") });
    done(store.keep(Keep { transcript: Arc::clone(&kept), ..keep(1, "en", "", &[Wish::Default]) }).await);
    let stored = found(&store, 1, &Wish::Default).await;
    assert!(stored.transcript == kept, "20,000 segments come back as they were");
}

/// A wish is found by its exact key.
pub async fn wishes_and_videos_are_apart(store: Store) {
    done(store.keep(keep(1, "en", "one", &[wish("en")])).await);
    for (number, other) in [(1, Wish::Default), (1, wish("en-US")), (1, wish("de")), (2, wish("en"))] {
        assert_eq!(find(&store, number, &other).await, Found::Nothing, "{other} of video {number}");
    }
    // The same letters and digits name different videos on different platforms.
    let reel = VideoId::new(Platform::Reels, video(1).id()).expect("11 characters are a reel's id");
    assert_eq!(done(store.find(&reel, &wish("en"), at(0)).await), Found::Nothing, "platforms are apart");
    done(store.keep(keep(1, "de", "zwei", &[wish("de")])).await);
    assert_eq!(text(&store, 1, &wish("en")).await, ("one".to_owned(), 1), "each wish has its own");
    assert_eq!(text(&store, 1, &wish("de")).await, ("zwei".to_owned(), 1), "each wish has its own");
}

/// An absence is found as it was kept, and no longer at its end.
pub async fn an_absence_is_found_until_it_ends(store: Store) {
    let kept = absence(1, Wish::Default, 100);
    done(store.keep_absence(kept.clone()).await);
    let found = done(store.find(&video(1), &Wish::Default, at(99)).await);
    assert_eq!(found, Found::Absent(kept), "an absence comes back as it was kept");
    assert_eq!(find(&store, 1, &wish("en")).await, Found::Nothing, "other wishes are not absent");
    assert_eq!(find(&store, 2, &Wish::Default).await, Found::Nothing, "other videos are not absent");
    let found = done(store.find(&video(1), &Wish::Default, at(100)).await);
    assert_eq!(found, Found::Nothing, "an absence that ends now has ended");
    assert_eq!(tracks(&store, 1).await, [], "an absence is no track");
}

/// A later absence replaces an earlier one, also with an earlier end.
pub async fn a_later_absence_replaces_an_earlier_one(store: Store) {
    done(store.keep_absence(absence(1, Wish::Default, 100)).await);
    let later = Absence {
        reason: "private".to_owned(),
        message: String::new(),
        asked: Vec::new(),
        ..absence(1, Wish::Default, 50)
    };
    done(store.keep_absence(later.clone()).await);
    done(store.keep_absence(later.clone()).await);
    assert_eq!(find(&store, 1, &Wish::Default).await, Found::Absent(later), "the later absence counts");
    assert_eq!(done(store.find(&video(1), &Wish::Default, at(50)).await), Found::Nothing, "with its own end");
}

/// A transcript comes before an absence.
pub async fn an_absence_never_hides_a_transcript(store: Store) {
    done(store.keep(keep(1, "en", "here", &[Wish::Default])).await);
    done(store.keep_absence(absence(1, Wish::Default, 100)).await);
    assert_eq!(text(&store, 1, &Wish::Default).await.0, "here", "a transcript comes before an absence");
}

/// Keeping clears the absences of its wishes, and of no others.
pub async fn keeping_clears_the_absences_of_its_wishes(store: Store) {
    for other in [Wish::Default, wish("en"), wish("de")] {
        done(store.keep_absence(absence(1, other, 100)).await);
    }
    done(store.keep(keep(1, "en", "here", &[Wish::Default, wish("en")])).await);
    assert_eq!(text(&store, 1, &wish("en")).await.0, "here", "what is kept is found");
    let german = find(&store, 1, &wish("de")).await;
    assert!(matches!(german, Found::Absent(_)), "the absence of another wish stays: {german:?}");
    let stats = done(store.stats().await);
    assert_eq!(stats.absences, 1, "the absences of the wishes are cleared");
}
