//! The engine: archive first, then suppliers in order, with single-flight per video and track selector.
//!
//! A transcript is archived before its [payment](Payer) is settled, and each payment is settled once. The engine knows
//! no ledger and no prices.
//!
//! All work runs on the [`Handle`] that the engine was built with, or on the
//! [caller runtime](EngineBuilder::caller_runtime) for calls made from it. Polled by any other executor, the public
//! futures only wait on channels. A caller that disconnects leaves the work running: its result is archived and
//! settled.

mod absence;
mod builder;
mod circuit_breaker;
#[cfg(test)]
mod deadline_tests;
mod failure;
mod fair_queue;
mod fetch;
mod flight;
mod language_memory;
mod load;
#[cfg(test)]
mod match_tests;
mod observer;
mod options;
mod payer;
mod progress;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod refresh_tests;
#[cfg(test)]
mod runtime_tests;
mod short_links;
mod single_flight;
mod store_tracks;
mod supplier_pool;
mod supply;
mod tasks;
mod tracks;

use std::{collections::HashMap, future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use tokio::{runtime::Handle, sync::oneshot, time::Instant};
use tracing::Instrument as _;

pub use builder::EngineBuilder;
pub use circuit_breaker::{BreakerEvent, BreakerPolicy, Cooldown};
pub use failure::{CostNote, FailureReason, NoTranscript};
pub use fetch::{FetchOutcome, FetchRequest};
pub use load::{Load, SupplierLoad};
pub use observer::{EngineObserver, FetchStage, SupplierCall};
pub use options::{AbsencePolicy, EngineOptions};
pub use payer::{HeldPayment, Payer, PaymentHold, QueueOwner, QueueOwnerId, WorkResult};
pub use progress::{FetchProgress, WorkInProgress};

use language_memory::LanguageMemory;
use short_links::ShortLinkCache;
use single_flight::{FetchPurpose, FlightKey, FlightTable, FlightWaiter};
use supplier_pool::SupplierPool;

use crate::{
    archive::{Archive, ArchivedTrack, FindOutcome, LazyTranscript, StoredBody, TrackSelector},
    error::{Error, ErrorKind, Result, Retry},
    page::{Page, PageRequest},
    retry::{deadline_after, is_over, timed_out, with_timeout},
    supplier::{
        LinkResolver, ListOutcome, ListPosition, ResolveOutcome, SupplyError, SupplyReason, VideoLister,
        missing_lister,
    },
    tasks::BackgroundTasks,
    time::{Clock, Random},
    video::{Platform, ShortLink, VideoId, VideoList},
};

/// Timeout of a page of a list, with the waits for earlier pages of others.
const LIST_PAGE_TIMEOUT: Duration = Duration::from_secs(120);

/// The transcript engine. A clone is a handle to the same engine.
///
/// ```
/// # use std::sync::Arc;
/// use transcript_core::{
///     archive::TrackSelector,
///     engine::{FetchOutcome, FetchRequest, Transcripts},
///     memory::MemoryArchive,
///     video::{Platform, VideoId},
/// };
/// # use transcript_core::{Clock, Random, Timestamp};
/// # #[derive(Debug)] struct Fixed;
/// # impl Clock for Fixed { fn now(&self) -> Timestamp { Timestamp::from_millis(0) } }
/// # impl Random for Fixed { fn bytes(&self, count: u32) -> Vec<u8> { vec![7; count as usize] } }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let transcripts = Transcripts::builder(
///     Arc::new(MemoryArchive::default()),
///     Arc::new(Fixed),
///     Arc::new(Fixed),
///     tokio::runtime::Handle::current(),
/// )
/// .build();
/// let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ")?;
/// let outcome = transcripts.get(FetchRequest { video, selector: TrackSelector::Default, payer: None }).await;
/// assert!(matches!(outcome, FetchOutcome::NoSupplier));
/// # Ok::<(), transcript_core::video::LinkError>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Transcripts {
    inner: Arc<EngineInner>,
}

#[derive(Debug)]
struct EngineInner {
    archive: Arc<dyn Archive>,
    suppliers: SupplierPool,
    resolvers: HashMap<Platform, Arc<dyn LinkResolver>>,
    listers: HashMap<Platform, Arc<dyn VideoLister>>,
    observer: Option<Arc<dyn EngineObserver>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: EngineOptions,
    /// Tasks on the engine's runtime.
    tasks: BackgroundTasks,
    /// Runtime for calls that are made from within it.
    caller_runtime: Option<Handle>,
    flights: Arc<FlightTable>,
    links: Arc<ShortLinkCache>,
    languages: LanguageMemory,
}

impl Transcripts {
    /// Returns the archived transcript, or fetches one.
    ///
    /// An archived track that matches the requested language also counts: without a fetch if no known track matches
    /// better, and instead of a failure.
    ///
    /// Returns within `options.wait_timeout`. Work that takes longer goes on, and the outcome is
    /// [`FetchOutcome::InProgress`].
    ///
    /// # Cancellation
    /// Dropping the future ends the wait, not work that has started.
    pub async fn get(&self, fetch: FetchRequest) -> FetchOutcome {
        self.get_until(fetch, self.deadline()).await
    }

    /// As [`Transcripts::get`], but returns at `deadline`.
    ///
    /// # Cancellation
    /// As [`Transcripts::get`].
    pub async fn get_until(&self, fetch: FetchRequest, deadline: Instant) -> FetchOutcome {
        self.run_call(fetch, FetchPurpose::Fetch, ArchiveCheck::First, deadline).await
    }

    /// As [`Transcripts::get`], without the first archive lookup.
    ///
    /// For a caller that has just received [`FindOutcome::NotFound`] from [`Transcripts::find`]. The flight looks in
    /// the archive again as its first step, so nothing is fetched twice. Returns at `deadline`, the caller's.
    ///
    /// After `deadline` it starts nothing: `None` if no fetch of the track is running.
    ///
    /// # Cancellation
    /// As [`Transcripts::get`].
    pub async fn fetch_missing(&self, fetch: FetchRequest, deadline: Instant) -> Option<FetchOutcome> {
        if is_over(deadline) {
            let key = (fetch.video, fetch.selector, FetchPurpose::Fetch);
            let tracker = self.inner.flights.tracker(&key)?;
            return Some(FetchOutcome::InProgress(tracker.work_in_progress(self.inner.clock.now())));
        }
        Some(self.run_call(fetch, FetchPurpose::Fetch, ArchiveCheck::Done, deadline).await)
    }

    /// The deadline of a call that begins now: `options.wait_timeout` later.
    fn deadline(&self) -> Instant {
        deadline_after(self.inner.options.wait_timeout)
    }

    /// Progress of the fetch of a track; `None` if this process is not fetching it.
    pub fn progress(&self, video: &VideoId, selector: &TrackSelector) -> Option<FetchProgress> {
        let key = (video.clone(), selector.clone(), FetchPurpose::Fetch);
        self.inner.flights.tracker(&key).map(|tracker| tracker.progress())
    }

    /// Fetches a track again and stores the result as a new revision; for operators. Free of charge.
    ///
    /// - Holds the fetch lease of the track while suppliers run, and first waits for a fetch that is running.
    ///   Concurrent refreshes of one track share a flight.
    /// - [`FetchOutcome::Fetched`] is the archived transcript. Unchanged content keeps its revision.
    /// - A failure leaves the archived transcript unchanged. An absence does not stop a refresh; a withdrawal does.
    /// - Returns within `options.wait_timeout`, like [`Transcripts::get`].
    ///
    /// # Cancellation
    /// As [`Transcripts::get`].
    pub async fn refresh(&self, video: &VideoId, selector: &TrackSelector) -> FetchOutcome {
        let fetch = FetchRequest { video: video.clone(), selector: selector.clone(), payer: None };
        match self.run_call(fetch, FetchPurpose::Refresh, ArchiveCheck::First, self.deadline()).await {
            // Another caller's refresh stored it, so it counts as fetched for this caller too.
            FetchOutcome::Archived(stored) => FetchOutcome::Fetched(stored),
            outcome => outcome,
        }
    }

    /// Runs the whole call of one caller on the runtime for calls from this thread.
    async fn run_call(
        &self,
        fetch: FetchRequest,
        purpose: FetchPurpose,
        archive_check: ArchiveCheck,
        deadline: Instant,
    ) -> FetchOutcome {
        let inner = Arc::clone(&self.inner);
        let work = async move { inner.run(fetch, purpose, archive_check, deadline).await };
        self.task(work).await.unwrap_or_else(FetchOutcome::StoreFailed)
    }

    /// Looks a track up in the archive; never fetches.
    ///
    /// An absence from before a supplier was configured, or of a clock that was ahead and was corrected since, is void
    /// and returned as [`FindOutcome::NotFound`]. A language without a stored transcript is answered by the best
    /// matching known track, if that track is archived.
    ///
    /// # Errors
    /// As [`Archive::find`].
    pub async fn find(&self, video: &VideoId, selector: &TrackSelector) -> Result<FindOutcome> {
        let (inner, video, selector) = (Arc::clone(&self.inner), video.clone(), selector.clone());
        self.task(async move { inner.find(&video, &selector).await }).await?
    }

    /// The stored body of an archived transcript, if the store has that form; never fetches.
    ///
    /// It is polled on the caller's executor, not on the engine's runtime.
    ///
    /// # Errors
    /// As [`Archive::stored_body`]; unavailable if the store does not respond in time.
    pub async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>> {
        self.with_timeout(self.inner.options.store_timeout, self.inner.archive.stored_body(video, selector))
            .await
    }

    /// The archived transcript of exactly this selector, sent as stored or decoded on first access; never fetches.
    ///
    /// `None` if the store has no lazy form. Like [`Transcripts::stored_body`] it is polled on the caller's executor.
    ///
    /// # Errors
    /// As [`Archive::find_lazy`]; unavailable if the store does not respond in time.
    pub async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        self.with_timeout(self.inner.options.store_timeout, self.inner.archive.find_lazy(video, selector))
            .await
    }

    /// Awaits a store call on the caller's executor, for at most `limit`.
    pub(crate) async fn with_timeout<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut call = pin!(call);
        // Most reads of a file end at once, and need no timer.
        if let Poll::Ready(result) = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            return result;
        }
        let timed = {
            // The timer needs the engine's runtime: the caller's executor may have no timer.
            let _inside = self.inner.tasks.runtime().enter();
            tokio::time::timeout(limit, call)
        };
        timed.await.unwrap_or_else(|_| Err(timed_out()))
    }

    /// The best archived transcript of a video whose default track is not archived; never fetches.
    ///
    /// # Errors
    /// As [`Archive::tracks`].
    pub async fn find_best_available(&self, video: &VideoId) -> Result<FindOutcome> {
        let (inner, video) = (Arc::clone(&self.inner), video.clone());
        self.task(async move { inner.find_best_available(&video, &TrackSelector::Default).await }).await?
    }

    /// The archive's change counter: it grows when transcripts returned before may be out of date.
    ///
    /// # Errors
    /// As [`Archive::change_counter`].
    pub async fn change_counter(&self) -> Result<u64> {
        let inner = Arc::clone(&self.inner);
        self.task(
            async move { with_timeout(inner.options.store_timeout, inner.archive.change_counter()).await },
        )
        .await?
    }

    /// A page of all withdrawn videos.
    ///
    /// # Errors
    /// As [`Archive::list_withdrawn`].
    pub async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let inner = Arc::clone(&self.inner);
        self.task(async move {
            with_timeout(inner.options.store_timeout, inner.archive.list_withdrawn(page)).await
        })
        .await?
    }

    /// A page of all archived tracks, those of withdrawn videos included.
    ///
    /// # Errors
    /// As [`Archive::list_tracks`].
    pub async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let inner = Arc::clone(&self.inner);
        self.task(
            async move { with_timeout(inner.options.store_timeout, inner.archive.list_tracks(page)).await },
        )
        .await?
    }

    /// Resolves a short link to its video, from the cache or from its platform.
    ///
    /// A video is stored in the archive permanently. A link that leads to no video is cached in this process for
    /// `options.absence.no_captions`.
    ///
    /// Without `query_platform` only the caches are read, and an unknown link is `None`. Concurrent calls for one link
    /// share one request to the platform and its result.
    ///
    /// # Errors
    /// [`SupplyError`] if the platform cannot be reached now.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait, not a request that has started.
    pub async fn resolve(
        &self,
        link: &ShortLink,
        query_platform: bool,
    ) -> Result<Option<ResolveOutcome>, SupplyError> {
        let (inner, link) = (Arc::clone(&self.inner), link.clone());
        self.task(async move { inner.resolve(&link, query_platform).await })
            .await
            .map_err(|error| SupplyError::new(SupplyReason::Cancelled, error.to_string()))?
    }

    /// Reads a page of a list of videos from its platform: the first one, or that at a position of the page before.
    ///
    /// # Errors
    /// [`SupplyError`] as [`VideoLister::list_page`]; [`SupplyReason::Misconfigured`] if no lister covers the platform.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait, not a request that has started.
    pub async fn list_page(
        &self,
        list: &VideoList,
        position: Option<&ListPosition>,
    ) -> Result<ListOutcome, SupplyError> {
        let Some(lister) = self.inner.listers.get(&list.platform()).cloned() else {
            let message = missing_lister(list.platform());
            return Err(SupplyError::before_request(SupplyReason::Misconfigured, message));
        };
        let deadline = self.inner.clock.now().plus(LIST_PAGE_TIMEOUT);
        let (list, position) = (list.clone(), position.cloned());
        self.task(async move { lister.list_page(&list, position.as_ref(), deadline).await })
            .await
            .map_err(|error| SupplyError::new(SupplyReason::Cancelled, error.to_string()))?
    }

    /// Whether any supplier covers a platform.
    pub fn has_supplier(&self, platform: Platform) -> bool {
        !self.inner.suppliers.for_platform(platform).is_empty()
    }

    /// The outcome of a fetch while the circuit breakers of all suppliers of a platform are open.
    ///
    /// `None` if one may be called, or there is none.
    pub(crate) fn paused_outcome(&self, platform: Platform) -> Option<FetchOutcome> {
        let failure = self.inner.suppliers.cooldown_of_all(platform, self.inner.clock.now());
        failure.map(FetchOutcome::SupplyFailed)
    }

    /// Whether lists of videos of a platform are read here.
    pub fn has_video_lister(&self, platform: Platform) -> bool {
        self.inner.listers.contains_key(&platform)
    }

    /// The engine's timeouts and retry limits.
    pub fn options(&self) -> &EngineOptions {
        &self.inner.options
    }

    /// Waits until no work is running. New calls are still accepted: stop them first.
    pub async fn close(&self) {
        self.inner.tasks.wait_until_idle().await;
    }
}

impl EngineInner {
    /// The whole call of one caller, until its deadline.
    async fn run(
        self: &Arc<Self>,
        fetch: FetchRequest,
        purpose: FetchPurpose,
        archive_check: ArchiveCheck,
        deadline: Instant,
    ) -> FetchOutcome {
        let key = (fetch.video.clone(), fetch.selector.clone(), purpose);
        let work = async {
            let (video, selector, _) = key.clone();
            let outcome = self.find_or_join(fetch, purpose, archive_check).await;
            match purpose {
                FetchPurpose::Fetch => self.or_best_match(&video, &selector, outcome).await,
                FetchPurpose::Refresh => outcome,
            }
        };
        match tokio::time::timeout_at(deadline, work).await {
            Ok(outcome) => outcome,
            Err(_) => FetchOutcome::InProgress(self.work_in_progress(&key)),
        }
    }

    /// Archive lookup, then the flight.
    async fn find_or_join(
        self: &Arc<Self>,
        fetch: FetchRequest,
        purpose: FetchPurpose,
        archive_check: ArchiveCheck,
    ) -> FetchOutcome {
        let key = (fetch.video, fetch.selector, purpose);
        let found = match archive_check {
            ArchiveCheck::First => self.find(&key.0, &key.1).await,
            ArchiveCheck::Done => Ok(FindOutcome::NotFound),
        };
        match archived_outcome(purpose, found) {
            Ok(None) => {}
            Ok(Some(outcome)) => return outcome,
            Err(error) => return FetchOutcome::StoreFailed(error),
        }
        if self.suppliers.for_platform(key.0.platform()).is_empty() {
            return FetchOutcome::NoSupplier;
        }
        self.join(key, fetch.payer)
            .await
            .unwrap_or_else(|_| FetchOutcome::StoreFailed(Error::unavailable("the fetch was interrupted")))
    }

    /// Estimate for a flight that has not finished.
    fn work_in_progress(&self, key: &FlightKey) -> WorkInProgress {
        let tracker = self.flights.tracker(key);
        tracker.map_or(WorkInProgress::retry_soon(), |tracker| tracker.work_in_progress(self.clock.now()))
    }

    /// Adds a waiter to a flight; the first waiter starts the flight task.
    fn join(
        self: &Arc<Self>,
        key: FlightKey,
        payer: Option<Arc<dyn Payer>>,
    ) -> oneshot::Receiver<FetchOutcome> {
        let (reply, answer) = oneshot::channel();
        let waiter = FlightWaiter::new(payer, reply);
        if let Some(leader) = self.flights.join(key, waiter, self.clock.now()) {
            self.current_runtime().spawn(flight::run_flight(Arc::clone(self), leader).in_current_span());
        }
        answer
    }
}

/// Whether the archive is read before a flight is joined.
#[derive(Clone, Copy, Debug)]
enum ArchiveCheck {
    /// Read it.
    First,
    /// The caller has just read it and found nothing.
    Done,
}

/// The outcome that the archive alone decides; `None` if the suppliers must be called.
fn archived_outcome(purpose: FetchPurpose, found: Result<FindOutcome>) -> Result<Option<FetchOutcome>> {
    let found = match found {
        // A refresh replaces a transcript that cannot be read.
        Err(error) if purpose == FetchPurpose::Refresh && error.is_unreadable() => FindOutcome::NotFound,
        found => found?,
    };
    Ok(match (purpose, found) {
        (_, FindOutcome::Withdrawn) => Some(FetchOutcome::Withdrawn),
        (FetchPurpose::Refresh, _) | (FetchPurpose::Fetch, FindOutcome::NotFound) => None,
        (FetchPurpose::Fetch, FindOutcome::Transcript(stored)) => Some(FetchOutcome::Archived(stored)),
        (FetchPurpose::Fetch, FindOutcome::Absence(absence)) => Some(FetchOutcome::Absent(absence)),
    })
}

fn stopped() -> Error {
    let message = "the runtime on which the library was opened has ended";
    Error::new(ErrorKind::Unavailable, Retry::Never, message)
}
