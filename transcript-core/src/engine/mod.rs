//! The engine: archive first, then the suppliers in order; one fetch per video and wish, however many
//! ask; kept before it is settled, settled once.
//!
//! All work runs in tasks on the [`Handle`] that the engine was given, or on the one [beside](Builder::beside) it when
//! asked from there, and its public futures only wait for channels, so that any executor may poll them. A caller that goes away leaves the work running:
//! what was begun is archived and settled.

mod absence;
#[cfg(test)]
mod beside_tests;
mod builder;
mod errands;
mod fetch;
mod flight;
mod health;
mod keeping;
#[cfg(test)]
mod late_tests;
mod links;
mod load;
#[cfg(test)]
mod match_tests;
mod observer;
mod options;
mod pace;
mod payment;
#[cfg(test)]
mod refresh_tests;
pub(crate) mod retry;
mod suppliers;
mod supply;
mod tasks;
mod tracks;

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{runtime::Handle, sync::oneshot};
use tracing::Instrument as _;

pub use builder::Builder;
pub use fetch::{Fetch, InVain, OnFailure, Outcome, Payment, PaymentLeg};
pub use health::{HealthPolicy, Rest, SupplierHealth};
pub use load::{Load, SupplierLoad};
pub use observer::{Asked, Observer, Stage};
pub use options::{AbsencePolicy, EngineOptions};
pub use pace::{Progress, StillWorking};

use errands::{Errand, Errands, Purpose, Waiter};
use links::Links;
use retry::bounded;
use suppliers::Suppliers;

use crate::{
    archive::{Archive, Found, StoredBody, Unread, Wish},
    error::{Error, Result},
    ledger::Ledger,
    supplier::{LinkResolver, Resolved, SupplyError, SupplyReason},
    time::{Clock, Random},
    video::{Platform, ShortLink, VideoId},
};

/// The engine. A clone is a handle to the same one.
///
/// ```
/// # use std::sync::Arc;
/// use transcript_core::{
///     archive::Wish,
///     engine::{Fetch, Outcome, Transcripts},
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
/// let video = VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ")?;
/// let outcome = transcripts.get(Fetch { video, wish: Wish::Default, payment: None }).await;
/// assert!(matches!(outcome, Outcome::Unsupplied));
/// # Ok::<(), transcript_core::video::LinkError>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Transcripts {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    archive: Arc<dyn Archive>,
    ledger: Option<Arc<dyn Ledger>>,
    suppliers: Suppliers,
    resolvers: HashMap<Platform, Arc<dyn LinkResolver>>,
    observer: Option<Arc<dyn Observer>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: EngineOptions,
    runtime: Handle,
    /// Where work that is asked for from within it runs instead.
    beside: Option<Handle>,
    errands: Arc<Errands>,
    links: Arc<Links>,
}

impl Transcripts {
    /// The archive's transcript, or a fetched one.
    ///
    /// A language is also answered by an archived track that matches it: without a fetch where no known track
    /// matches better, and in place of a failure.
    ///
    /// The answer comes within `options.wait`, also when the work takes longer: it then goes on, and
    /// the outcome is [`Outcome::StillWorking`].
    ///
    /// # Cancellation
    /// Dropping the future abandons the waiting, not the work that has begun.
    pub async fn get(&self, fetch: Fetch) -> Outcome {
        self.answer(fetch, Purpose::Fetch, Look::First, self.inner.options.wait).await
    }

    /// As [`Transcripts::get`], for a caller whom [`Transcripts::find`] told a moment ago that nothing is
    /// known of the wish: the archive is not asked the same again before the work begins. The work itself
    /// looks once more, as its first step, so nothing is fetched twice.
    ///
    /// # Cancellation
    /// As [`Transcripts::get`].
    pub async fn get_unknown(&self, fetch: Fetch) -> Outcome {
        self.get_unknown_within(fetch, self.inner.options.wait).await
    }

    /// As [`Transcripts::get_unknown`], for a caller who waits for another time than `options.wait`.
    ///
    /// # Cancellation
    /// As [`Transcripts::get`].
    pub async fn get_unknown_within(&self, fetch: Fetch, wait: Duration) -> Outcome {
        self.answer(fetch, Purpose::Fetch, Look::Done, wait).await
    }

    /// How far the fetch of a wish is; none where this process does not work on it.
    pub fn progress(&self, video: &VideoId, wish: &Wish) -> Option<Progress> {
        let errand = (video.clone(), wish.clone(), Purpose::Fetch);
        self.inner.errands.pace(&errand).map(|pace| pace.progress())
    }

    /// Asks the suppliers anew and keeps what they give as a new revision, whatever is archived; for
    /// operators. Nobody is charged.
    ///
    /// - As a fetch it holds the lease of the wish while suppliers are asked, and first waits for a fetch
    ///   that is under way; refreshes of the same wish at the same time share one.
    /// - [`Outcome::Fetched`] is what is archived now. Content that is as it was stays the revision that it
    ///   was.
    /// - A failure leaves what is archived as it is. An absence does not keep the suppliers from being
    ///   asked, a withdrawal does.
    /// - Like [`Transcripts::get`] it answers within `options.wait`.
    ///
    /// # Cancellation
    /// As [`Transcripts::get`].
    pub async fn refresh(&self, video: &VideoId, wish: &Wish) -> Outcome {
        let fetch = Fetch { video: video.clone(), wish: wish.clone(), payment: None };
        match self.answer(fetch, Purpose::Refresh, Look::First, self.inner.options.wait).await {
            // Another caller's refresh brought it: it was fetched for this one too.
            Outcome::Archived(stored) => Outcome::Fetched(stored),
            outcome => outcome,
        }
    }

    /// Runs one caller's way on the engine's runtime.
    async fn answer(&self, fetch: Fetch, purpose: Purpose, look: Look, wait: Duration) -> Outcome {
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        let way = async move {
            let mut reply = reply;
            let outcome = tokio::select! {
                // In order: chance has no part in what the engine does, so that a simulation can replay it.
                biased;
                outcome = inner.run(fetch, purpose, look, wait) => outcome,
                () = reply.closed() => return,
            };
            // Nobody listens any more: the outcome is archived all the same.
            let _ = reply.send(outcome);
        };
        // What is logged of the work names the request that began it.
        self.inner.here().spawn(way.in_current_span());
        answer.await.unwrap_or_else(|_| Outcome::Broken(stopped()))
    }

    /// What the archive knows about a wish; never fetches.
    ///
    /// An absence that is void because a supplier was configured since is [`Found::Nothing`]. A language for
    /// which nothing was kept is answered by the best of the known tracks that match it, where it is archived.
    ///
    /// # Errors
    /// As [`Archive::find`].
    pub async fn find(&self, video: &VideoId, wish: &Wish) -> Result<Found> {
        let (inner, video, wish) = (Arc::clone(&self.inner), video.clone(), wish.clone());
        self.task(async move { inner.find(&video, &wish).await }).await?
    }

    /// The archived transcript of a wish as it is stored, where there is one in that form; never fetches.
    ///
    /// Unlike the others it takes no way through the engine's runtime: it is awaited where it is called.
    ///
    /// # Errors
    /// As [`Archive::body`]; unavailable when the store does not answer in time.
    pub async fn body(&self, video: &VideoId, wish: &Wish) -> Result<Option<StoredBody>> {
        self.in_time(self.inner.archive.body(video, wish)).await
    }

    /// The archived transcript of exactly this wish, found and still to be read, where the store has that; never
    /// fetches. As [`Transcripts::body`] it is awaited where it is called.
    ///
    /// # Errors
    /// As [`Archive::unread`]; unavailable when the store does not answer in time.
    pub async fn unread(&self, video: &VideoId, wish: &Wish) -> Result<Option<Arc<dyn Unread>>> {
        self.in_time(self.inner.archive.unread(video, wish)).await
    }

    /// What the store answers, if it does so in time, awaited on the caller's executor.
    async fn in_time<T>(&self, asked: impl Future<Output = Result<T>>) -> Result<T> {
        let timed = {
            // For the timer: the caller's executor may have none.
            let _inside = self.inner.runtime.enter();
            tokio::time::timeout(self.inner.options.store, asked)
        };
        timed.await.unwrap_or_else(|_| Err(Error::unavailable("the store did not answer in time")))
    }

    /// The best archived transcript of a video for someone who wished its default, which is not
    /// archived; never fetches.
    ///
    /// # Errors
    /// As [`Archive::tracks`].
    pub async fn find_any(&self, video: &VideoId) -> Result<Found> {
        let (inner, video) = (Arc::clone(&self.inner), video.clone());
        self.task(async move { inner.find_any(&video, &Wish::Default).await }).await?
    }

    /// How many changes there were that can make a transcript untrue that was found before.
    ///
    /// # Errors
    /// As [`Archive::changes`].
    pub async fn changes(&self) -> Result<u64> {
        let inner = Arc::clone(&self.inner);
        self.task(async move { bounded(inner.options.store, inner.archive.changes()).await }).await?
    }

    /// The video that a short link means: remembered, or learnt from its platform and remembered for ever.
    /// A link that leads nowhere is remembered for `options.absence.no_captions`, in this process only.
    ///
    /// With `ask_platform` unset only the memory is asked, and an unknown link is none. Those who ask for the
    /// same link at the same time share one request to the platform, and what comes of it.
    ///
    /// # Errors
    /// [`SupplyError`] when the platform cannot be asked now.
    ///
    /// # Cancellation
    /// Dropping the future abandons the waiting, not a request that was begun.
    pub async fn resolve(
        &self,
        link: &ShortLink,
        ask_platform: bool,
    ) -> Result<Option<Resolved>, SupplyError> {
        let (inner, link) = (Arc::clone(&self.inner), link.clone());
        self.task(async move { inner.resolve(&link, ask_platform).await })
            .await
            .map_err(|error| SupplyError::new(SupplyReason::Cancelled, error.to_string()))?
    }

    /// Whether any supplier covers a platform.
    pub fn covers(&self, platform: Platform) -> bool {
        !self.inner.suppliers.of(platform).is_empty()
    }

    /// How patient the engine is.
    pub fn options(&self) -> &EngineOptions {
        &self.inner.options
    }

    /// Waits until no work is running. New calls are still answered: stop accepting them first.
    pub async fn close(&self) {
        self.inner.errands.idle().await;
    }
}

impl Inner {
    /// One caller's whole way, within the wait.
    async fn run(self: &Arc<Self>, fetch: Fetch, purpose: Purpose, look: Look, wait: Duration) -> Outcome {
        let errand = (fetch.video.clone(), fetch.wish.clone(), purpose);
        let way = async {
            let (video, wish, _) = errand.clone();
            let outcome = self.find_or_join(fetch, purpose, look).await;
            match purpose {
                Purpose::Fetch => self.or_match(&video, &wish, outcome).await,
                Purpose::Refresh => outcome,
            }
        };
        match tokio::time::timeout(wait, way).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::StillWorking(self.still_working(&errand)),
        }
    }

    /// Archive first, then the errand.
    async fn find_or_join(self: &Arc<Self>, fetch: Fetch, purpose: Purpose, look: Look) -> Outcome {
        let errand = (fetch.video, fetch.wish, purpose);
        let found = match look {
            Look::First => self.find(&errand.0, &errand.1).await,
            Look::Done => Ok(Found::Nothing),
        };
        match found {
            Ok(found) => {
                if let Some(outcome) = known_for(purpose, found) {
                    return outcome;
                }
            }
            Err(error) => return Outcome::Broken(error),
        }
        if self.suppliers.of(errand.0.platform()).is_empty() {
            return Outcome::Unsupplied;
        }
        self.join(errand, fetch.payment).await.unwrap_or_else(|_| Outcome::Broken(stopped()))
    }

    /// What to tell whoever asks after an errand that is not done.
    fn still_working(&self, errand: &Errand) -> StillWorking {
        let pace = self.errands.pace(errand);
        pace.map_or(StillWorking::soon(), |pace| pace.still_working(self.clock.now()))
    }

    /// Joins those who wait for an errand; the first one starts its task.
    fn join(self: &Arc<Self>, errand: Errand, payment: Option<Payment>) -> oneshot::Receiver<Outcome> {
        let (reply, answer) = oneshot::channel();
        let waiter = Waiter { payment, reply };
        if let Some(driving) = self.errands.join(errand, waiter, self.clock.now()) {
            self.here().spawn(flight::drive(Arc::clone(self), driving).in_current_span());
        }
        answer
    }
}

/// Whether the archive is asked before an errand is joined.
#[derive(Clone, Copy, Debug)]
enum Look {
    /// It is.
    First,
    /// The caller has just done so, and nothing was known.
    Done,
}

/// The outcome for a caller when the archive knows it; none when the suppliers must be asked.
fn known_for(purpose: Purpose, found: Found) -> Option<Outcome> {
    match (purpose, found) {
        (_, Found::Withdrawn) => Some(Outcome::Withdrawn),
        (Purpose::Refresh, _) | (Purpose::Fetch, Found::Nothing) => None,
        (Purpose::Fetch, Found::Transcript(stored)) => Some(Outcome::Archived(stored)),
        (Purpose::Fetch, Found::Absent(absence)) => Some(Outcome::Absent(absence)),
    }
}

fn stopped() -> Error {
    Error::unavailable("the work was interrupted")
}
