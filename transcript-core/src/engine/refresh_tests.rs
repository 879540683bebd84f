//! Tests of refreshes, with the in-memory stores.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::*;
use crate::{
    archive::{FetchLease, LeaseOutcome, PutRequest},
    ids::Holder,
    memory::MemoryArchive,
    supplier::{Supplier, SupplierInfo, SupplyMonitor, SupplyOutput, SupplyRequest},
    test_doubles::{ManualClock, SequentialRandom},
    time::Timestamp,
    transcript::{Segment, Transcript, test_transcript},
};

/// Returns a transcript with `text`, or fails if there is none; counts its calls.
#[derive(Debug, Default)]
struct FakeSupplier {
    text: Mutex<Option<&'static str>>,
    calls: AtomicU32,
}

impl FakeSupplier {
    fn set_text(&self, words: Option<&'static str>) {
        *self.text.lock().unwrap() = words;
    }
}

pub(super) fn video() -> VideoId {
    VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap()
}

pub(super) fn transcript(words: &str) -> Transcript {
    Transcript { source: "words".to_owned(), ..test_transcript(vec![Segment::new(words, 0, 1_000)]) }
}

#[async_trait]
impl Supplier for FakeSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("words", &[Platform::YouTube])
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        match *self.text.lock().unwrap() {
            Some(words) => {
                Ok(SupplyOutput { transcripts: vec![transcript(words)], ..SupplyOutput::default() })
            }
            None => Err(SupplyError::new(SupplyReason::NoCaptions, "There is nothing.")),
        }
    }
}

struct RefreshFixture {
    archive: Arc<MemoryArchive>,
    supplier: Arc<FakeSupplier>,
    transcripts: Transcripts,
}

fn fixture(words: Option<&'static str>) -> RefreshFixture {
    let archive = Arc::new(MemoryArchive::default());
    let supplier = Arc::new(FakeSupplier::default());
    supplier.set_text(words);
    let (clock, random) = (Arc::new(ManualClock::default()), Arc::new(SequentialRandom::default()));
    let builder = Transcripts::builder(Arc::clone(&archive) as _, clock, random, Handle::current())
        .supplier(Platform::YouTube, Arc::clone(&supplier) as _);
    RefreshFixture { archive, supplier, transcripts: builder.build() }
}

impl RefreshFixture {
    /// `fetched 2: words`, or the name of another outcome.
    async fn refresh(&self) -> String {
        match self.transcripts.refresh(&video(), &TrackSelector::Default).await {
            FetchOutcome::Fetched(stored) => {
                format!("fetched {}: {}", stored.revision, stored.transcript.segments[0].text)
            }
            outcome => format!("{outcome:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
        }
    }

    async fn archived(&self) -> String {
        match self.transcripts.find(&video(), &TrackSelector::Default).await.unwrap() {
            FindOutcome::Transcript(stored) => stored.transcript.segments[0].text.clone(),
            found => format!("{found:?}").split('(').next().unwrap_or_default().to_owned(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refresh_changed_content_adds_revision() {
    let fixture = fixture(Some("first"));
    assert_eq!(fixture.refresh().await, "fetched 1: first");
    assert_eq!(fixture.refresh().await, "fetched 1: first");
    fixture.supplier.set_text(Some("second"));
    assert_eq!(fixture.refresh().await, "fetched 2: second");
    assert_eq!(fixture.archived().await, "second");
    assert_eq!(fixture.supplier.calls.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn refresh_failed_keeps_archived_transcript() {
    let fixture = fixture(Some("first"));
    fixture.refresh().await;
    fixture.supplier.set_text(None);
    assert_eq!(fixture.refresh().await, "SupplyFailed");
    assert_eq!(fixture.archived().await, "first");
}

#[tokio::test(start_paused = true)]
async fn refresh_ignores_absence_and_respects_withdrawal() {
    let fixture = fixture(None);
    assert_eq!(fixture.refresh().await, "SupplyFailed");
    assert_eq!(fixture.archived().await, "Absence");
    fixture.supplier.set_text(Some("words"));
    assert_eq!(fixture.refresh().await, "fetched 1: words");
    fixture.archive.withdraw(&video(), true, Timestamp::from_millis(0)).await.unwrap();
    let calls = fixture.supplier.calls.load(Ordering::Relaxed);
    assert_eq!(fixture.refresh().await, "Withdrawn");
    assert_eq!(fixture.supplier.calls.load(Ordering::Relaxed), calls);
}

#[tokio::test(start_paused = true)]
async fn refresh_concurrent_calls_share_one_flight() {
    let fixture = fixture(Some("words"));
    let (one, other) = tokio::join!(fixture.refresh(), fixture.refresh());
    assert_eq!((one.as_str(), other.as_str()), ("fetched 1: words", "fetched 1: words"));
    assert_eq!(fixture.supplier.calls.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn refresh_waits_for_lease_then_fetches() {
    let fixture = fixture(Some("fresh"));
    let (holder, now) = (Holder::new("another worker"), Timestamp::from_millis(0));
    let until = now.plus(Duration::from_secs(60));
    let lease =
        FetchLease { video: video(), selector: TrackSelector::Default, holder: holder.clone(), now, until };
    assert_eq!(fixture.archive.acquire_lease(lease).await.unwrap(), LeaseOutcome::Acquired);
    let other = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(fixture.supplier.calls.load(Ordering::Relaxed), 0, "another worker holds the lease");
        let put_request = PutRequest {
            video: video(),
            selectors: vec![TrackSelector::Default],
            transcript: Arc::new(transcript("stale")),
            known_tracks: Vec::new(),
            metadata: Default::default(),
            parser_version: 1,
            replace: false,
            now,
        };
        fixture.archive.put(put_request).await.unwrap();
        fixture.archive.release_lease(&video(), &TrackSelector::Default, &holder).await.unwrap();
    };
    let (refreshed, ()) = tokio::join!(fixture.refresh(), other);
    assert_eq!(refreshed, "fetched 2: fresh");
}

#[tokio::test(start_paused = true)]
async fn refresh_transcript_without_text_is_failure() {
    let fixture = fixture(Some(" \n"));
    assert_eq!(fixture.refresh().await, "SupplyFailed");
    assert_eq!(fixture.archived().await, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn refresh_without_supplier_returns_no_supplier() {
    let fixture = fixture(Some("words"));
    let reel = VideoId::new(Platform::Instagram, "Cabc123").unwrap();
    assert!(matches!(
        fixture.transcripts.refresh(&reel, &TrackSelector::Default).await,
        FetchOutcome::NoSupplier
    ));
}
