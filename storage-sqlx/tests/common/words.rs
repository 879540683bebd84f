//! Times of words and metadata, on both databases.

use std::sync::Arc;

use transcript_core::{
    PageRequest,
    archive::{Archive, ArchivedTrack, FindOutcome, PutRequest, VerifyArchiveRequest},
    transcript::{Chapter, LanguageTag, TrackInfo, VideoMetadata, Word, set_word_durations},
};

use super::cold::{compact, found, speech};

/// A long transcript whose words have times.
pub(crate) fn timed_speech(number: u64) -> PutRequest {
    let mut request = speech(number);
    let segments = &mut Arc::make_mut(&mut request.transcript).segments;
    for segment in segments.iter_mut() {
        let texts: Vec<_> = segment.text.split(' ').map(str::to_owned).collect();
        let start = segment.start_ms;
        // Irregular, like speech.
        let jitter = |index: u64| {
            let mixed = (start + index * 7_919 + number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 60
        };
        let word = |(index, text)| Word::new(text, start + index * 200 + jitter(index) * 10, 0);
        segment.words = (0_u64..).zip(texts).map(word).collect();
    }
    set_word_durations(segments);
    request
}

pub(crate) fn metadata() -> VideoMetadata {
    VideoMetadata {
        author_id: Some("UC-x".to_owned()),
        description: Some("A \"description\"\u{0}\u{1A} of\nit".to_owned()),
        chapters: vec![Chapter { title: "\u{1A}0".to_owned(), start_ms: 5 }],
        ..VideoMetadata::default()
    }
}

/// Bytes in the statistics count words, before and after compaction and after a refresh without words.
#[tokio::test]
async fn words_count_in_statistics() {
    let (archive, _place) = crate::archive().await;
    let archive: &dyn Archive = &*archive;
    let bytes = async || archive.stats().await.unwrap().bytes;
    archive.put(speech(1)).await.unwrap();
    let bare = bytes().await;
    let timed = timed_speech(2);
    archive.put(timed.clone()).await.unwrap();
    let words = bytes().await - 2 * bare;
    assert!(words > 400, "{words} bytes of words");
    let before = found(archive, &timed).await;
    let compacted = compact(archive, 10).await;
    assert_eq!((compacted.compacted, &*compacted.damaged), (2, &[][..]));
    assert_eq!(bytes().await, compacted.bytes_after, "the words count after compaction too");
    assert!(compacted.bytes_before - compacted.bytes_after > 1_000, "{compacted:?}");
    assert_eq!(
        found(archive, &timed).await,
        before,
        "the same transcript and the same bytes from cold storage"
    );
    // The same content is written again, and leaves cold storage.
    archive.put(PutRequest { replace: true, ..timed.clone() }).await.unwrap();
    assert_eq!(found(archive, &timed).await, before);
    archive.delete(&timed.video).await.unwrap();
    archive.delete(&speech(1).video).await.unwrap();
    assert_eq!(bytes().await, 0);
}

/// Names with spaces and characters that a database cannot store come back as they were.
#[tokio::test]
async fn details_hostile_names_are_returned_unchanged() {
    let (archive, _place) = crate::archive().await;
    let archive: &dyn Archive = &*archive;
    let mut request = timed_speech(1);
    request.metadata = metadata();
    for name in ["", " ", "a  b", "\0", "\u{1A}0 \"'"] {
        let mut track = request.known_tracks[0].clone();
        track.name = Some(name.to_owned());
        request.known_tracks.push(track);
    }
    let stored = archive.put(request.clone()).await.unwrap();
    assert_eq!(
        (&stored.details.metadata, &stored.details.tracks),
        (&request.metadata, &request.known_tracks)
    );
    for _ in 0..2 {
        let (transcript, body) = found(archive, &request).await;
        assert_eq!(transcript, FindOutcome::Transcript(stored.clone()));
        assert_eq!(body.details, stored.details);
        let lazy = archive.find_lazy(&request.video, &request.selectors[0]).await.unwrap().unwrap();
        assert_eq!((lazy.load().unwrap(), lazy.body().unwrap()), (stored.clone(), body));
        compact(archive, 10).await;
    }
    // A track that becomes the original one outdates earlier responses.
    let before = archive.change_counter().await.unwrap();
    archive.delete_changed_videos(&archive.changed_videos(9).await.unwrap()).await.unwrap();
    archive.put(request.clone()).await.unwrap();
    assert_eq!(archive.change_counter().await.unwrap(), before);
    request.known_tracks[0].original = true;
    let stored = archive.put(request.clone()).await.unwrap();
    assert_eq!(stored.details.tracks, request.known_tracks);
    assert!(archive.change_counter().await.unwrap() > before);
    let changed = archive.changed_videos(9).await.unwrap();
    assert_eq!(changed.iter().map(|changed| &changed.video).collect::<Vec<_>>(), [&request.video]);
}

fn languages(tracks: &[ArchivedTrack]) -> Vec<&str> {
    tracks.iter().map(|track| track.track.language.as_str()).collect()
}

/// The track of a damaged row comes from its transcript. If that cannot be read either, the track stays listed, and a
/// put, a withdrawal and a deletion work. `damage` concerns the English track.
pub(crate) async fn check_damaged_track(
    archive: &dyn Archive,
    damage: &'static str,
    mut run: impl AsyncFnMut(&'static str),
) {
    let mut english = speech(1);
    // The transcript itself is not known to be in the original language.
    english.known_tracks = vec![TrackInfo { original: true, ..english.transcript.track.clone() }];
    let mut german = english.clone();
    let track = TrackInfo { language: LanguageTag::parse("de").unwrap(), ..english.transcript.track.clone() };
    Arc::make_mut(&mut german.transcript).track = track.clone();
    (german.selectors, german.known_tracks) = (vec![track.selector()], vec![track]);
    let video = &english.video;
    for request in [&english, &german] {
        archive.put(request.clone()).await.unwrap();
    }
    let tracks = async || archive.tracks(video).await.unwrap();
    let listed = async || archive.list_tracks(PageRequest::first()).await.unwrap().items;
    let before = tracks().await;
    assert_eq!((languages(&before), listed().await), (vec!["en", "de"], before.clone()));

    run(damage).await;
    assert_eq!((tracks().await, listed().await), (before.clone(), before.clone()), "{damage}");
    let verify = || VerifyArchiveRequest { page: PageRequest::first(), delete_damaged: true };
    let damaged = archive.verify(verify()).await.unwrap().damaged;
    assert_eq!(damaged.iter().map(|damaged| damaged.is_deleted).collect::<Vec<_>>(), [false, false]);

    run("UPDATE bodies SET about = 'x'").await;
    assert_eq!(languages(&tracks().await), ["und", "de"], "{damage}");
    assert_eq!(languages(&listed().await), ["und", "de"], "{damage}");
    let error = archive.find(video, &english.selectors[0], english.now).await.unwrap_err();
    assert!(error.is_unreadable() && error.message().contains(&video.to_string()), "{error}");
    for request in [&english, &german] {
        archive.put(PutRequest { replace: true, ..request.clone() }).await.unwrap();
    }
    assert_eq!((tracks().await, listed().await), (before.clone(), before), "{damage}");

    archive.withdraw(video, true, english.now).await.unwrap();
    let found = archive.find(video, &english.selectors[0], english.now).await.unwrap();
    assert_eq!(found, FindOutcome::Withdrawn);
    assert_eq!(listed().await.len(), 2, "withdrawn tracks are listed");
    archive.withdraw(video, false, english.now).await.unwrap();
    archive.delete(video).await.unwrap();
    assert!(tracks().await.is_empty() && listed().await.is_empty(), "{damage}");
    archive.put(english.clone()).await.unwrap();
    assert!(archive.verify(verify()).await.unwrap().damaged.is_empty(), "{damage}");
}
