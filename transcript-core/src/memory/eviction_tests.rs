//! Tests of eviction in a size-limited in-memory archive.

use std::{sync::Arc, time::Duration};

use super::MemoryArchive;
use crate::{
    archive::{Absence, Archive, FindOutcome, PutRequest, TrackSelector},
    time::Timestamp,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, test_transcript},
    video::{Platform, ShortLink, VideoId, VideoLink},
};

/// Capacity for three videos with [`WORDS`] bytes of text, and not for four.
const BYTES_MAX: u64 = 40_000;
const WORDS: usize = 10_000;

fn now() -> Timestamp {
    Timestamp::from_millis(1_000)
}

fn video(number: usize) -> VideoId {
    VideoId::new(Platform::YouTube, &format!("{number:011}")).unwrap()
}

async fn put_transcript(archive: &MemoryArchive, number: usize, language: &str, words: usize) {
    let video = video(number);
    let language = LanguageTag::parse(language).unwrap();
    let transcript = Arc::new(Transcript {
        video: video.clone(),
        track: TrackInfo::new(language.clone(), TrackKind::Human),
        ..test_transcript(vec![Segment::new("x".repeat(words), 0, 1_000)])
    });
    let selectors = vec![TrackSelector::Language(language)];
    let request = PutRequest {
        video,
        selectors,
        transcript,
        known_tracks: Vec::new(),
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: now(),
    };
    let stored = archive.put(request.clone()).await.unwrap();
    // The newest write is stored, whatever its size.
    assert_eq!(
        archive.find(&request.video, &request.selectors[0], now()).await.unwrap(),
        FindOutcome::Transcript(stored.clone())
    );
    assert_eq!(stored.transcript, request.transcript);
}

async fn stored_videos(archive: &MemoryArchive) -> Vec<usize> {
    let mut numbers = Vec::new();
    for number in 0..100 {
        if !archive.tracks(&video(number)).await.unwrap().is_empty() {
            numbers.push(number);
        }
    }
    numbers
}

#[tokio::test]
async fn archive_over_capacity_evicts_oldest_video() {
    let archive = MemoryArchive::with_capacity(BYTES_MAX);
    for number in 0..10 {
        put_transcript(&archive, number, "en", WORDS).await;
    }
    assert_eq!(stored_videos(&archive).await, [7, 8, 9]);
    assert_eq!(archive.stats().await.unwrap().transcripts, 3);
    assert_eq!(archive.change_counter().await.unwrap(), 7);
    // A later write makes a video the newest again.
    put_transcript(&archive, 7, "de", 10).await;
    put_transcript(&archive, 10, "en", WORDS).await;
    assert_eq!(stored_videos(&archive).await, [7, 9, 10]);
    // A deleted video frees its size.
    archive.delete(&video(9)).await.unwrap();
    put_transcript(&archive, 11, "en", WORDS).await;
    assert_eq!(stored_videos(&archive).await, [7, 10, 11]);
    // A video above the whole capacity is kept alone.
    put_transcript(&archive, 12, "en", 10 * WORDS).await;
    assert_eq!(stored_videos(&archive).await, [12]);
    put_transcript(&archive, 13, "en", WORDS).await;
    assert_eq!(stored_videos(&archive).await, [13]);
}

#[tokio::test]
async fn archive_eviction_bounds_absences_and_links_but_not_withdrawals() {
    let archive = MemoryArchive::with_capacity(BYTES_MAX);
    archive.withdraw(&video(0), true, now()).await.unwrap();
    put_transcript(&archive, 1, "en", WORDS).await;
    for number in 0..100 {
        let absence = Absence {
            video: video(number),
            selector: TrackSelector::Default,
            reason: "no_captions".to_owned(),
            message: "There are none.".to_owned(),
            suppliers_tried: Vec::new(),
            until: now().plus(Duration::from_secs(60)),
        };
        archive.put_absence(absence).await.unwrap();
    }
    let stats = archive.stats().await.unwrap();
    assert!((10..50).contains(&stats.absences), "{} absences", stats.absences);
    assert_eq!((stats.withdrawn, stats.transcripts), (1, 0));
    assert_eq!(
        archive.find(&video(0), &TrackSelector::Default, now()).await.unwrap(),
        FindOutcome::Withdrawn
    );
    put_transcript(&archive, 99, "en", WORDS).await;
    let link = |number: usize| -> ShortLink {
        match VideoLink::parse(&format!("https://vm.tiktok.com/ZM{number:07}/")).unwrap() {
            VideoLink::Short(link) => link,
            VideoLink::Video(video) => panic!("{video} is no short link"),
        }
    };
    for number in 0..1_000 {
        archive.put_short_link(&link(number), &video(99)).await.unwrap();
        archive.put_short_link(&link(number), &video(98)).await.unwrap();
    }
    assert_eq!(archive.short_link(&link(999)).await.unwrap(), Some(video(99)));
    assert_eq!(archive.short_link(&link(0)).await.unwrap(), None);
    assert!((10..100).contains(&archive.stats().await.unwrap().links));
    // Links alone evict no transcript.
    assert_eq!(stored_videos(&archive).await, [99]);
}
