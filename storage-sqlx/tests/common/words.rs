//! Times of words and metadata, on both databases.

use std::sync::Arc;

use transcript_core::{
    archive::{Archive, PutRequest},
    transcript::{Chapter, VideoMetadata, Word, set_word_durations},
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
pub(crate) async fn check_statistics(archive: &dyn Archive) {
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
pub(crate) async fn check_details(archive: &dyn Archive) {
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
        assert_eq!(transcript, transcript_core::archive::FindOutcome::Transcript(stored.clone()));
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
