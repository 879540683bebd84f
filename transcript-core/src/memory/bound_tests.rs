//! What an archive with a bound forgets, and what it does not.

use std::{sync::Arc, time::Duration};

use super::MemoryArchive;
use crate::{
    archive::{Absence, Archive, Found, Keep, Wish},
    time::Timestamp,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, ShortLink, VideoId, VideoLink},
};

/// Room for three videos with [`WORDS`] bytes of words, and not for four.
const BYTES_MAX: u64 = 40_000;
const WORDS: usize = 10_000;

fn now() -> Timestamp {
    Timestamp::from_millis(1_000)
}

fn video(number: usize) -> VideoId {
    VideoId::new(Platform::VideoSite, &format!("{number:011}")).unwrap()
}

async fn keep(archive: &MemoryArchive, number: usize, language: &str, words: usize) {
    let video = video(number);
    let language = LanguageTag::parse(language).unwrap();
    let transcript = Arc::new(Transcript {
        video: video.clone(),
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(language.clone(), TrackKind::Human),
        source: "test".to_owned(),
        segments: vec![Segment::new("x".repeat(words), 0, 1_000)],
    });
    let wishes = vec![Wish::Language(language)];
    let keep = Keep {
        video,
        wishes,
        transcript,
        known_tracks: Vec::new(),
        parser_version: 1,
        replace: false,
        now: now(),
    };
    let stored = archive.keep(keep.clone()).await.unwrap();
    // What was just kept is there, however much of it there is.
    assert_eq!(
        archive.find(&keep.video, &keep.wishes[0], now()).await.unwrap(),
        Found::Transcript(stored.clone())
    );
    assert_eq!(stored.transcript, keep.transcript);
}

async fn kept(archive: &MemoryArchive) -> Vec<usize> {
    let mut kept = Vec::new();
    for number in 0..100 {
        if !archive.tracks(&video(number)).await.unwrap().is_empty() {
            kept.push(number);
        }
    }
    kept
}

#[tokio::test]
async fn what_was_kept_first_is_forgotten_first() {
    let archive = MemoryArchive::up_to(BYTES_MAX);
    for number in 0..10 {
        keep(&archive, number, "en", WORDS).await;
    }
    assert_eq!(kept(&archive).await, [7, 8, 9]);
    assert_eq!(archive.stats().await.unwrap().transcripts, 3);
    assert_eq!(archive.changes().await.unwrap(), 7);
    // One of which something was kept since is not the oldest any more.
    keep(&archive, 7, "de", 10).await;
    keep(&archive, 10, "en", WORDS).await;
    assert_eq!(kept(&archive).await, [7, 9, 10]);
    // One that was forgotten by somebody makes room.
    archive.forget(&video(9)).await.unwrap();
    keep(&archive, 11, "en", WORDS).await;
    assert_eq!(kept(&archive).await, [7, 10, 11]);
    // What is larger than everything together stands alone.
    keep(&archive, 12, "en", 10 * WORDS).await;
    assert_eq!(kept(&archive).await, [12]);
    keep(&archive, 13, "en", WORDS).await;
    assert_eq!(kept(&archive).await, [13]);
}

#[tokio::test]
async fn absences_and_links_are_bounded_and_withdrawals_stay() {
    let archive = MemoryArchive::up_to(BYTES_MAX);
    archive.withdraw(&video(0), true, now()).await.unwrap();
    keep(&archive, 1, "en", WORDS).await;
    for number in 0..100 {
        let absence = Absence {
            video: video(number),
            wish: Wish::Default,
            reason: "no_captions".to_owned(),
            message: "There are none.".to_owned(),
            asked: Vec::new(),
            until: now().plus(Duration::from_secs(60)),
        };
        archive.keep_absence(absence).await.unwrap();
    }
    let stats = archive.stats().await.unwrap();
    assert!((10..50).contains(&stats.absences), "{} absences", stats.absences);
    assert_eq!((stats.withdrawn, stats.transcripts), (1, 0));
    assert_eq!(archive.find(&video(0), &Wish::Default, now()).await.unwrap(), Found::Withdrawn);
    keep(&archive, 99, "en", WORDS).await;
    let link = |number: usize| -> ShortLink {
        match VideoLink::parse(&format!("https://vm.tiktok.com/ZM{number:07}/")).unwrap() {
            VideoLink::Short(link) => link,
            VideoLink::Video(video) => panic!("{video} is no short link"),
        }
    };
    for number in 0..1_000 {
        archive.keep_link(&link(number), &video(99)).await.unwrap();
        archive.keep_link(&link(number), &video(98)).await.unwrap();
    }
    assert_eq!(archive.link(&link(999)).await.unwrap(), Some(video(99)));
    assert_eq!(archive.link(&link(0)).await.unwrap(), None);
    assert!((10..100).contains(&archive.stats().await.unwrap().links));
    // Links alone drive no transcript out.
    assert_eq!(kept(&archive).await, [99]);
}
