//! Which archived transcripts answer a language that nothing was kept for.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use super::*;
use crate::{
    archive::{Absence, Keep},
    memory::MemoryArchive,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, Watcher},
    time::Timestamp,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000)
    }
}

impl Random for Still {
    fn bytes(&self, count: u32) -> Vec<u8> {
        vec![7; count as usize]
    }
}

/// Fails always, and counts how often it was asked.
#[derive(Debug, Default)]
struct Failing(AtomicU32);

#[async_trait]
impl Supplier for Failing {
    fn card(&self) -> SupplierCard {
        let platforms = vec![Platform::VideoSite];
        SupplierCard { name: "failing".to_owned(), platforms, kind: SupplierKind::Captions }
    }

    async fn supply(&self, _: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(SupplyError::new(SupplyReason::Throttled(None), "Not now."))
    }
}

fn video() -> VideoId {
    VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap()
}

fn tag(tag: &str) -> LanguageTag {
    LanguageTag::parse(tag).unwrap()
}

fn track(language: &str, kind: TrackKind) -> TrackInfo {
    TrackInfo::new(tag(language), kind)
}

/// An archive with one track, of a video that is known to have these others.
async fn archive(own: TrackInfo, others: &[TrackInfo]) -> Arc<MemoryArchive> {
    let archive = Arc::new(MemoryArchive::default());
    let transcript = Transcript {
        video: video(),
        title: None,
        author: None,
        duration_ms: None,
        source: "words".to_owned(),
        segments: vec![Segment::new(own.language.as_str(), 0, 1_000)],
        track: own,
    };
    let keep = Keep {
        video: video(),
        wishes: vec![Wish::Language(transcript.track.language.clone())],
        known_tracks: others.to_vec(),
        transcript: Arc::new(transcript),
        parser_version: 1,
        replace: false,
        now: Still.now(),
    };
    archive.keep(keep).await.unwrap();
    archive
}

/// What a wish for a language comes to, and how often the supplier was asked: `en-GB, 0`.
async fn get(archive: &Arc<MemoryArchive>, language: &str, is_supplied: bool) -> String {
    let supplier = Arc::new(Failing::default());
    let archive = Arc::clone(archive) as Arc<dyn Archive>;
    let mut builder = Transcripts::builder(archive, Arc::new(Still), Arc::new(Still), Handle::current());
    if is_supplied {
        builder = builder.supplier(Platform::VideoSite, Arc::clone(&supplier) as _);
    }
    let wish = Wish::Language(tag(language));
    let outcome = builder.build().get(Fetch { video: video(), wish, payment: None }).await;
    let came = match outcome {
        Outcome::Archived(stored) => stored.transcript.track.language.to_string(),
        outcome => format!("{outcome:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    };
    format!("{came}, {}", supplier.0.load(Ordering::Relaxed))
}

use TrackKind::{Generated, Human, Translated};

#[tokio::test(start_paused = true)]
async fn the_best_known_track_answers_without_a_fetch_where_it_is_archived() {
    let english = archive(track("en", Human), &[track("en", Generated), track("de", Human)]).await;
    assert_eq!(get(&english, "en-GB", true).await, "en, 0");
    assert_eq!(get(&english, "en-US", false).await, "en, 0");
    assert_eq!(get(&english, "de", true).await, "Failed, 1");
    assert_eq!(get(&english, "fr", false).await, "Unsupplied, 0");
    let simplified = archive(track("zh-Hans", Human), &[]).await;
    assert_eq!(get(&simplified, "zh-CN", true).await, "zh-Hans, 0");
    assert_eq!(get(&simplified, "zh-TW", true).await, "Failed, 1");
    // What a machine translated answers its own tag only.
    let translated = archive(track("en", Translated), &[]).await;
    assert_eq!(get(&translated, "en-GB", false).await, "Unsupplied, 0");
}

#[tokio::test(start_paused = true)]
async fn a_lesser_match_stands_in_for_a_failure() {
    let lesser = archive(track("en", Generated), &[track("en-GB", Human)]).await;
    assert_eq!(get(&lesser, "en-GB", true).await, "en, 1");
    assert_eq!(get(&lesser, "en-GB", false).await, "en, 0");
    let absence = Absence {
        video: video(),
        wish: Wish::Language(tag("en-GB")),
        reason: SupplyReason::NoCaptions.as_str().to_owned(),
        message: "None in this language.".to_owned(),
        asked: vec!["failing".to_owned()],
        until: Timestamp::from_millis(9_000),
    };
    lesser.keep_absence(absence).await.unwrap();
    assert_eq!(get(&lesser, "en-GB", true).await, "en, 0");
    lesser.withdraw(&video(), true, Still.now()).await.unwrap();
    assert_eq!(get(&lesser, "en-GB", true).await, "Withdrawn, 0");
}
