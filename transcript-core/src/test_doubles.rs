//! Test doubles: clocks, a source of random bytes, and wrappers of ports.
//!
//! A double that changes some methods of a store implements the wrapper of the port instead of the port. Every method
//! that it does not define calls the inner store: no default of the port hides that store's method.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::Instant;

#[cfg(feature = "search")]
use crate::search::{
    ArchiveIndex, CandidatePage, CandidateRequest, IndexedTrack, IndexedVideo, RebuildState, VocabularyWord,
};
use crate::{
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, ChangedVideo, CompactOutcome, CompactRequest,
        FetchLease, FindOutcome, LazyTranscript, LeaseOutcome, PutRequest, StoredBody, StoredTranscript,
        TrackSelector, VectorsKey, VerifyArchiveOutcome, VerifyArchiveRequest,
    },
    error::Result,
    ids::{HoldId, Holder, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
    },
    page::{Page, PageRequest},
    retry::deadline_after,
    supplier::SupplyMonitor,
    time::{Clock, Random, Timestamp},
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

/// Clock that stands still until a test sets or advances it.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Returns a clock that shows this time.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_millis()))
    }

    /// Sets the time.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Relaxed);
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.fetch_add(by, Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Relaxed))
    }
}

/// Clock that advances with Tokio's time, which a test can pause.
#[derive(Debug)]
pub struct PausedClock {
    start: Timestamp,
    started_at: Instant,
}

impl PausedClock {
    /// Returns a clock that shows `start` now.
    pub fn new(start: Timestamp) -> Self {
        Self { start, started_at: deadline_after(Duration::ZERO) }
    }

    /// Returns a copy that is ahead by `millis`; negative values are behind.
    pub fn ahead(&self, millis: i64) -> Self {
        Self { start: Timestamp::from_millis(self.start.as_millis() + millis), started_at: self.started_at }
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        self.start.plus(self.started_at.elapsed())
    }
}

/// Random source that returns other bytes on each call, and the same sequence in each run.
#[derive(Debug, Default)]
pub struct SequentialRandom(AtomicU32);

impl Random for SequentialRandom {
    fn bytes(&self, count: u32) -> Vec<u8> {
        (0..count).map(|_| (self.0.fetch_add(1, Relaxed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }
}

/// Monitor that checks progress, and cancels from a time on; by default never.
#[derive(Debug, Default)]
pub struct PatientMonitor {
    /// When the work is cancelled; `None` for never.
    pub cancels_at: Option<Instant>,
}

impl SupplyMonitor for PatientMonitor {
    fn report_progress(&self, name: &str, done: u64, of: u64) {
        assert!(of == 0 || done <= of, "{name}: {done} of {of}");
    }

    fn is_cancelled(&self) -> bool {
        self.cancels_at.is_some_and(|at| at <= deadline_after(Duration::ZERO))
    }
}

/// Generates the wrapper of a port from its methods, and the port of every type with that wrapper.
macro_rules! wrapper {
    (
        $(#[$attribute:meta])*
        $wrapper:ident for $port:ident {
            $(fn $plain:ident(&self) -> $plain_output:ty;)*
            $(async fn $method:ident(&self $(, $name:ident: $type:ty)*) -> $output:ty;)*
        }
    ) => {
        $(#[$attribute])*
        #[async_trait]
        pub trait $wrapper: fmt::Debug + Send + Sync + 'static {
            /// Returns the inner store.
            fn inner(&self) -> &dyn $port;
            $(
                #[doc = concat!("As [`", stringify!($port), "::", stringify!($plain), "`].")]
                fn $plain(&self) -> $plain_output {
                    self.inner().$plain()
                }
            )*
            $(
                #[doc = concat!("As [`", stringify!($port), "::", stringify!($method), "`].")]
                async fn $method(&self $(, $name: $type)*) -> $output {
                    self.inner().$method($($name),*).await
                }
            )*
        }

        #[async_trait]
        impl<W: $wrapper> $port for W {
            $(
                fn $plain(&self) -> $plain_output {
                    $wrapper::$plain(self)
                }
            )*
            $(
                async fn $method(&self $(, $name: $type)*) -> $output {
                    $wrapper::$method(self $(, $name)*).await
                }
            )*
        }
    };
}

wrapper! {
/// An archive that forwards to another one.
ArchiveWrapper for Archive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome>;
    async fn find_lazy(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<Arc<dyn LazyTranscript>>>;
    async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>>;
    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>>;
    async fn put(&self, request: PutRequest) -> Result<StoredTranscript>;
    async fn put_and_release(&self, request: PutRequest, holder: &Holder) -> Result<StoredTranscript>;
    async fn put_absence(&self, absence: Absence) -> Result<()>;
    async fn add_known_tracks(&self, video: &VideoId, tracks: &[TrackInfo], now: Timestamp) -> Result<()>;
    async fn vectors(&self, key: &VectorsKey) -> Result<Option<Vec<u8>>>;
    async fn put_vectors(&self, key: &VectorsKey, vectors: Vec<u8>) -> Result<()>;
    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome>;
    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()>;
    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>>;
    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()>;
    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()>;
    async fn delete(&self, video: &VideoId) -> Result<()>;
    async fn change_counter(&self) -> Result<u64>;
    async fn check_writable(&self) -> Result<()>;
    async fn changed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>>;
    async fn delete_changed_videos(&self, videos: &[ChangedVideo]) -> Result<()>;
    async fn unindexed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>>;
    async fn newest_change(&self) -> Result<Option<u64>>;
    async fn delete_unindexed_videos(&self, videos: &[ChangedVideo]) -> Result<()>;
    async fn record_unindexed_video(&self, video: &VideoId) -> Result<()>;
    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>>;
    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>>;
    async fn stats(&self) -> Result<ArchiveStats>;
    async fn compact(&self, request: CompactRequest) -> Result<CompactOutcome>;
    async fn verify(&self, request: VerifyArchiveRequest) -> Result<VerifyArchiveOutcome>;
    async fn restore_selectors(&self, video: &VideoId) -> Result<bool>;
}
}

wrapper! {
/// A ledger that forwards to another one.
LedgerWrapper for Ledger {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome>;
    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome>;
    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState>;
    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome>;
    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome>;
    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome>;
    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance>;
    async fn balance_since(&self, wallet: &WalletId, terms: &Terms, since: Timestamp) -> Result<PeriodBalance>;
    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32>;
    async fn shorten_holds(&self, latest: Timestamp) -> Result<()>;
    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>>;
    async fn recent_entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>>;
    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>>;
    async fn check_writable(&self) -> Result<()>;
}
}

#[cfg(feature = "search")]
wrapper! {
/// An index of the archive that forwards to another one.
ArchiveIndexWrapper for ArchiveIndex {
    fn row_terms(&self) -> usize;
    async fn put(&self, videos: &[IndexedVideo], generation: u64, state: Option<&RebuildState>) -> Result<()>;
    async fn rebuild_state(&self) -> Result<RebuildState>;
    async fn optimize(&self) -> Result<()>;
    async fn languages(&self) -> Result<Option<Vec<String>>>;
    async fn candidates(&self, request: &CandidateRequest) -> Result<CandidatePage>;
    async fn list(&self, page: PageRequest) -> Result<Page<IndexedTrack>>;
    async fn near_words(&self, word: &str) -> Result<Vec<VocabularyWord>>;
}
}

#[cfg(test)]
mod tests {
    /// Names of the methods in the block of `text` that begins with `start`.
    fn methods<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
        let block = text.split_once(start).unwrap().1.split_once("\n}").unwrap().0;
        let lines = block.lines().filter_map(|line| line.strip_prefix("    "));
        let names = lines.filter_map(|line| line.strip_prefix("async fn ").or(line.strip_prefix("fn ")));
        names.map(|name| name.split_once('(').unwrap().0).collect()
    }

    /// A default of a port would else replace the method of the inner store.
    #[test]
    fn wrapper_forwards_every_method_of_port() {
        let ports = [
            ("Archive", include_str!("archive/mod.rs")),
            ("Ledger", include_str!("ledger/mod.rs")),
            ("ArchiveIndex", include_str!("search/mod.rs")),
        ];
        for (port, file) in ports {
            let expected = methods(file, &format!("pub trait {port}: "));
            let wrapped = methods(include_str!("test_doubles.rs"), &format!("{port}Wrapper for {port} {{"));
            assert!(expected.len() > 5, "{port}");
            assert_eq!(wrapped, expected, "{port}");
        }
    }
}
