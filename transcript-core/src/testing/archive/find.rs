//! Conformance cases of `find`: the archived state of a selector.

use super::*;
use crate::transcript::TIME_MAX_MS;

/// An empty archive returns nothing.
pub async fn empty_archive_returns_not_found(store: ArchiveStore) {
    assert_eq!(find(&store, 1, &DEFAULT).await, NotFound, "a new video is unknown");
    assert_eq!(tracks(&store, 1).await, [], "an unknown video has no tracks");
    let stats = expect_ok(store.stats().await);
    assert_eq!(stats, ArchiveStats::default(), "an empty archive holds nothing: {stats:?}");
}

/// A stored transcript is found unchanged, with revision 1 and its digest.
pub async fn stored_transcript_is_found_unchanged(store: ArchiveStore) {
    let expected = put_request(1, "en", "Hello.", &[DEFAULT]);
    let returned = put(&store, expected.clone()).await;
    assert_eq!(returned.transcript, expected.transcript, "put returns the stored transcript");
    assert_eq!(returned.revision, 1, "the first is revision 1");
    assert_eq!(
        returned.content_sha256,
        content_digest(&expected.transcript),
        "with the digest of its content"
    );
    assert_eq!((returned.parser_version, returned.stored_at), (7, at(0)), "with parser version and time");
    assert_eq!(find_stored(&store, 1, &DEFAULT).await, returned, "find returns what put returned");
    let late = expect_ok(store.find(&video(1), &DEFAULT, at(999_999_999)).await);
    assert_eq!(late, FindOutcome::Transcript(returned), "a transcript never expires");
}

/// Extreme texts, names and times are returned as the supplier gave them.
pub async fn extreme_texts_round_trip(store: ArchiveStore) {
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
    for expected in [odd, bare] {
        let expected = Arc::new(expected);
        let request = PutRequest { video: expected.video.clone(), ..put_request(1, "en", "", &[DEFAULT]) };
        put(&store, PutRequest { transcript: Arc::clone(&expected), ..request }).await;
        let stored = expect_ok(store.find(&expected.video, &DEFAULT, at(0)).await);
        let FindOutcome::Transcript(stored) = stored else { panic!("a stored transcript is found") };
        assert_eq!(stored.transcript, expected, "a transcript is returned as the supplier gave it");
        assert_eq!(stored.content_sha256, content_digest(&expected), "its digest matches");
    }
    let tracks = tracks(&store, 1).await;
    assert!(
        tracks.iter().any(|archived| archived.track == named),
        "a track is returned unchanged: {tracks:?}"
    );
}

/// A transcript of 20,000 segments is returned complete.
pub async fn transcript_of_20000_segments_round_trips(store: ArchiveStore) {
    let segments = (0..20_000).map(|n| Segment::new(format!("segment {n} ü"), n * 500, 499)).collect();
    let expected = Arc::new(Transcript { segments, ..transcript(1, "en", "") });
    put(&store, PutRequest { transcript: Arc::clone(&expected), ..put_request(1, "en", "", &[DEFAULT]) })
        .await;
    let stored = find_stored(&store, 1, &DEFAULT).await;
    assert!(stored.transcript == expected, "20,000 segments are returned unchanged");
}

/// A selector is found by its exact key.
pub async fn selectors_and_videos_are_separate(store: ArchiveStore) {
    put(&store, put_request(1, "en", "one", &[selector("en")])).await;
    let translated = TrackSelector::in_language(language("de"), true);
    for (number, other) in [
        (1, DEFAULT),
        (1, selector("en-US")),
        (1, selector("de")),
        (1, translated.clone()),
        (2, selector("en")),
    ] {
        assert_eq!(find(&store, number, &other).await, NotFound, "{other} of video {number}");
    }
    // The same letters and digits name different videos on different platforms.
    let reel = VideoId::new(Platform::Instagram, video(1).id()).expect("11 characters are a valid reel id");
    assert_eq!(
        expect_ok(store.find(&reel, &selector("en"), at(0)).await),
        NotFound,
        "platforms are separate"
    );
    put(&store, put_request(1, "de", "zwei", &[selector("de")])).await;
    assert_eq!(find(&store, 1, &translated).await, NotFound, "a translation has its own selector");
    let track = TrackInfo::new(language("de"), TrackKind::Translated);
    let translation = Arc::new(Transcript { track: track.clone(), ..transcript(1, "de", "eins") });
    let request = put_request(1, "de", "", std::slice::from_ref(&translated));
    put(&store, PutRequest { transcript: translation, known_tracks: vec![track], ..request }).await;
    for (selector, text) in [(selector("en"), "one"), (selector("de"), "zwei"), (translated, "eins")] {
        let found = first_text(&store, 1, &selector).await;
        assert_eq!(found, (text.to_owned(), 1), "each selector has its own transcript");
    }
}

/// An absence is found until it expires.
pub async fn absence_is_found_until_expiry(store: ArchiveStore) {
    let expected = absence(1, DEFAULT, 100);
    expect_ok(store.put_absence(expected.clone()).await);
    let found = expect_ok(store.find(&video(1), &DEFAULT, at(99)).await);
    assert_eq!(found, FindOutcome::Absence(expected), "an absence is returned unchanged");
    assert_eq!(find(&store, 1, &selector("en")).await, NotFound, "other selectors are not absent");
    assert_eq!(find(&store, 2, &DEFAULT).await, NotFound, "other videos are not absent");
    let found = expect_ok(store.find(&video(1), &DEFAULT, at(100)).await);
    assert_eq!(found, NotFound, "an absence ends at its expiry");
    assert_eq!(tracks(&store, 1).await, [], "an absence is no track");
}

/// A later absence replaces an earlier one, even with an earlier expiry.
pub async fn later_absence_replaces_earlier(store: ArchiveStore) {
    expect_ok(store.put_absence(absence(1, DEFAULT, 100)).await);
    let later = Absence {
        reason: "private".to_owned(),
        message: String::new(),
        suppliers_tried: Vec::new(),
        ..absence(1, DEFAULT, 50)
    };
    expect_ok(store.put_absence(later.clone()).await);
    expect_ok(store.put_absence(later.clone()).await);
    assert_eq!(find(&store, 1, &DEFAULT).await, FindOutcome::Absence(later), "the later absence applies");
    assert_eq!(expect_ok(store.find(&video(1), &DEFAULT, at(50)).await), NotFound, "it has its own expiry");
}

/// A transcript takes precedence over an absence.
pub async fn absence_never_hides_transcript(store: ArchiveStore) {
    put(&store, put_request(1, "en", "here", &[DEFAULT])).await;
    expect_ok(store.put_absence(absence(1, DEFAULT, 100)).await);
    assert_eq!(
        first_text(&store, 1, &DEFAULT).await.0,
        "here",
        "a transcript takes precedence over an absence"
    );
}

/// A put clears the absences of its selectors, and no others.
pub async fn put_clears_absences_of_its_selectors(store: ArchiveStore) {
    for other in [DEFAULT, selector("en"), selector("de")] {
        expect_ok(store.put_absence(absence(1, other, 100)).await);
    }
    put(&store, put_request(1, "en", "here", &[DEFAULT, selector("en")])).await;
    assert_eq!(first_text(&store, 1, &selector("en")).await.0, "here", "the stored transcript is found");
    let german = find(&store, 1, &selector("de")).await;
    assert!(matches!(german, FindOutcome::Absence(_)), "the absence of another selector stays: {german:?}");
    let stats = expect_ok(store.stats().await);
    assert_eq!(stats.absences, 1, "the absences of the selectors are cleared");
}
