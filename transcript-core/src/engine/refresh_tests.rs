//! What a refresh does, over the stores in memory.

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
    archive::{Claim, Keep, Lease},
    ids::Holder,
    memory::MemoryArchive,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, Watcher},
    time::Timestamp,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

#[derive(Debug)]
pub(super) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000)
    }
}

/// Counts up, so that every name is fresh.
#[derive(Debug, Default)]
pub(super) struct Counting(AtomicU32);

impl Random for Counting {
    fn bytes(&self, count: u32) -> Vec<u8> {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        number.into_iter().cycle().take(count as usize).collect()
    }
}

/// Gives these words, or a failure when there are none; counts how often it was asked.
#[derive(Debug, Default)]
struct Words {
    words: Mutex<Option<&'static str>>,
    asked: AtomicU32,
}

impl Words {
    fn say(&self, words: Option<&'static str>) {
        *self.words.lock().unwrap() = words;
    }
}

pub(super) fn video() -> VideoId {
    VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap()
}

pub(super) fn transcript(words: &str) -> Transcript {
    Transcript {
        video: video(),
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
        source: "words".to_owned(),
        segments: vec![Segment::new(words, 0, 1_000)],
    }
}

#[async_trait]
impl Supplier for Words {
    fn card(&self) -> SupplierCard {
        let platforms = vec![Platform::VideoSite];
        SupplierCard { name: "words".to_owned(), platforms, kind: SupplierKind::Captions }
    }

    async fn supply(&self, _: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        match *self.words.lock().unwrap() {
            Some(words) => Ok(Supplied { tracks: vec![transcript(words)], known_tracks: Vec::new() }),
            None => Err(SupplyError::new(SupplyReason::NoCaptions, "There is nothing.")),
        }
    }
}

struct Stage {
    archive: Arc<MemoryArchive>,
    words: Arc<Words>,
    transcripts: Transcripts,
}

fn stage(words: Option<&'static str>) -> Stage {
    let archive = Arc::new(MemoryArchive::default());
    let supplier = Arc::new(Words::default());
    supplier.say(words);
    let random = Arc::new(Counting::default());
    let builder = Transcripts::builder(Arc::clone(&archive) as _, Arc::new(Still), random, Handle::current())
        .supplier(Platform::VideoSite, Arc::clone(&supplier) as _);
    Stage { archive, words: supplier, transcripts: builder.build() }
}

impl Stage {
    /// `fetched 2: words`, or what else came of it.
    async fn refresh(&self) -> String {
        match self.transcripts.refresh(&video(), &Wish::Default).await {
            Outcome::Fetched(stored) => {
                format!("fetched {}: {}", stored.revision, stored.transcript.segments[0].text)
            }
            outcome => format!("{outcome:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
        }
    }

    async fn archived(&self) -> String {
        match self.transcripts.find(&video(), &Wish::Default).await.unwrap() {
            Found::Transcript(stored) => stored.transcript.segments[0].text.clone(),
            found => format!("{found:?}").split('(').next().unwrap_or_default().to_owned(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_is_a_new_revision_unless_nothing_changed() {
    let stage = stage(Some("first"));
    assert_eq!(stage.refresh().await, "fetched 1: first");
    assert_eq!(stage.refresh().await, "fetched 1: first");
    stage.words.say(Some("second"));
    assert_eq!(stage.refresh().await, "fetched 2: second");
    assert_eq!(stage.archived().await, "second");
    assert_eq!(stage.words.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_failure_leaves_what_is_archived() {
    let stage = stage(Some("first"));
    stage.refresh().await;
    stage.words.say(None);
    assert_eq!(stage.refresh().await, "Failed");
    assert_eq!(stage.archived().await, "first");
}

#[tokio::test(start_paused = true)]
async fn an_absence_is_no_answer_and_a_withdrawal_is_one() {
    let stage = stage(None);
    assert_eq!(stage.refresh().await, "Failed");
    assert_eq!(stage.archived().await, "Absent");
    stage.words.say(Some("words"));
    assert_eq!(stage.refresh().await, "fetched 1: words");
    stage.archive.withdraw(&video(), true, Still.now()).await.unwrap();
    let asked = stage.words.asked.load(Ordering::Relaxed);
    assert_eq!(stage.refresh().await, "Withdrawn");
    assert_eq!(stage.words.asked.load(Ordering::Relaxed), asked);
}

#[tokio::test(start_paused = true)]
async fn refreshes_at_the_same_time_share_one() {
    let stage = stage(Some("words"));
    let (one, other) = tokio::join!(stage.refresh(), stage.refresh());
    assert_eq!((one.as_str(), other.as_str()), ("fetched 1: words", "fetched 1: words"));
    assert_eq!(stage.words.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_waits_for_the_lease_and_then_asks_all_the_same() {
    let stage = stage(Some("fresh"));
    let (holder, now) = (Holder::new("another worker"), Still.now());
    let until = now.plus(Duration::from_secs(60));
    let lease = Lease { video: video(), wish: Wish::Default, holder: holder.clone(), now, until };
    assert_eq!(stage.archive.claim(lease).await.unwrap(), Claim::Claimed);
    let other = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(stage.words.asked.load(Ordering::Relaxed), 0, "the lease is another's");
        let keep = Keep {
            video: video(),
            wishes: vec![Wish::Default],
            transcript: Arc::new(transcript("stale")),
            known_tracks: Vec::new(),
            parser_version: 1,
            replace: false,
            now,
        };
        stage.archive.keep(keep).await.unwrap();
        stage.archive.unclaim(&video(), &Wish::Default, &holder).await.unwrap();
    };
    let (refreshed, ()) = tokio::join!(stage.refresh(), other);
    assert_eq!(refreshed, "fetched 2: fresh");
}

#[tokio::test(start_paused = true)]
async fn without_a_supplier_nothing_is_refreshed() {
    let stage = stage(Some("words"));
    let reel = VideoId::new(Platform::Reels, "Cabc123").unwrap();
    assert!(matches!(stage.transcripts.refresh(&reel, &Wish::Default).await, Outcome::Unsupplied));
}
