//! Tests: archived transcripts that serve a language for which nothing was stored.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use super::*;
use crate::{
    archive::{Absence, PutRequest},
    memory::MemoryArchive,
    supplier::{Supplier, SupplierInfo, SupplyMonitor, SupplyOutput, SupplyRequest},
    test_doubles::{ManualClock, SequentialRandom},
    time::Timestamp,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, test_transcript},
};

/// Always fails, and counts its calls.
#[derive(Debug, Default)]
struct FailingSupplier(AtomicU32);

#[async_trait]
impl Supplier for FailingSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("failing", &[Platform::YouTube])
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(SupplyError::new(SupplyReason::Throttled(None), "Not now."))
    }
}

fn video() -> VideoId {
    VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap()
}

fn tag(tag: &str) -> LanguageTag {
    LanguageTag::parse(tag).unwrap()
}

fn track(language: &str, kind: TrackKind) -> TrackInfo {
    TrackInfo::new(tag(language), kind)
}

/// An archive with one track, of a video with these other known tracks.
async fn archive(archived_track: TrackInfo, others: &[TrackInfo]) -> Arc<MemoryArchive> {
    let archive = Arc::new(MemoryArchive::default());
    let segments = vec![Segment::new(archived_track.language.as_str(), 0, 1_000)];
    let transcript = Transcript { track: archived_track, ..test_transcript(segments) };
    let put_request = PutRequest {
        video: video(),
        selectors: vec![TrackSelector::Language(transcript.track.language.clone())],
        known_tracks: others.to_vec(),
        transcript: Arc::new(transcript),
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(0),
    };
    archive.put(put_request).await.unwrap();
    archive
}

/// The outcome of a request for a language, and the number of supplier calls: `en-GB, 0`.
async fn get(archive: &Arc<MemoryArchive>, language: &str, is_supplied: bool) -> String {
    let supplier = Arc::new(FailingSupplier::default());
    let archive = Arc::clone(archive) as Arc<dyn Archive>;
    let (clock, random) = (Arc::new(ManualClock::default()), Arc::new(SequentialRandom::default()));
    let mut builder = Transcripts::builder(archive, clock, random, Handle::current());
    if is_supplied {
        builder = builder.supplier(Platform::YouTube, Arc::clone(&supplier) as _);
    }
    let selector = TrackSelector::Language(tag(language));
    let outcome = builder.build().get(FetchRequest { video: video(), selector, payer: None }).await;
    let text = match outcome {
        FetchOutcome::Archived(stored) => stored.transcript.track.language.to_string(),
        outcome => format!("{outcome:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    };
    format!("{text}, {}", supplier.0.load(Ordering::Relaxed))
}

use TrackKind::{Generated, Human, Translated};

#[tokio::test(start_paused = true)]
async fn get_archived_best_known_track_needs_no_fetch() {
    let english = archive(track("en", Human), &[track("en", Generated), track("de", Human)]).await;
    assert_eq!(get(&english, "en-GB", true).await, "en, 0");
    assert_eq!(get(&english, "en-US", false).await, "en, 0");
    assert_eq!(get(&english, "de", true).await, "SupplyFailed, 1");
    assert_eq!(get(&english, "fr", false).await, "NoSupplier, 0");
    let simplified = archive(track("zh-Hans", Human), &[]).await;
    assert_eq!(get(&simplified, "zh-CN", true).await, "zh-Hans, 0");
    assert_eq!(get(&simplified, "zh-TW", true).await, "SupplyFailed, 1");
    // A machine translation matches its exact tag only.
    let translated = archive(track("en", Translated), &[]).await;
    assert_eq!(get(&translated, "en-GB", false).await, "NoSupplier, 0");
}

#[tokio::test(start_paused = true)]
async fn get_failed_fetch_returns_weaker_match() {
    let weaker = archive(track("en", Generated), &[track("en-GB", Human)]).await;
    assert_eq!(get(&weaker, "en-GB", true).await, "en, 1");
    assert_eq!(get(&weaker, "en-GB", false).await, "en, 0");
    let absence = Absence {
        video: video(),
        selector: TrackSelector::Language(tag("en-GB")),
        reason: SupplyReason::NoCaptions.as_str().to_owned(),
        message: "None in this language.".to_owned(),
        suppliers_tried: vec!["failing".to_owned()],
        until: Timestamp::from_millis(9_000),
    };
    weaker.put_absence(absence).await.unwrap();
    assert_eq!(get(&weaker, "en-GB", true).await, "en, 0");
    weaker.withdraw(&video(), true, Timestamp::from_millis(0)).await.unwrap();
    assert_eq!(get(&weaker, "en-GB", true).await, "Withdrawn, 0");
}
