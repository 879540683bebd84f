//! Many transcripts: a call waits while the sources of its platform are paused.
//!
//! A circuit breaker or a throttling platform refuses calls at once. A program with one link shows that to its user; a
//! program with many links would lose all of them within a second.

#[cfg(any(feature = "local-service", feature = "service"))]
mod service_calls;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{
    Error, ErrorCause, Result, Timestamp,
    engine::FailureReason,
    retry::Backoff,
    supplier::{ListPosition, SupplyError, SupplyReason, VideoListPage},
    video::{Platform, VideoList},
};

use crate::{GetOutcome, GetRequest, UnavailableTranscript, Verbatim, runtime::within};

/// The longest time without a success that is waited for a platform, if the caller names none.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// The wait for a page of a list, if the platform names none.
const PAGE_WAIT: Duration = Duration::from_secs(30);
/// The waits for a link, if neither the platform nor the supplier names one: 1, 2, … seconds.
const LINK_WAIT: Backoff = Backoff { first: Duration::from_secs(1), max: PAGE_WAIT };
/// How often the suppliers are called for one link. A platform may block a single video.
const ATTEMPTS_MAX: u32 = 3;
/// The first wait of a call that a pause prevented, and the further ones.
///
/// Another call may end the pause at any time, and such a call costs the platform nothing.
const POLL_FIRST: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(200);

/// Calls that belong together. A clone is a handle to the same batch.
///
/// A failure with a known time to retry is retried at that time, and a failed call of a supplier without one after 1
/// and then 2 s, as long as the platform has had a success within [`Batch::new`]'s `max_wait`. Suppliers are called
/// three times at most for one link; a call that a pause prevents does not count. Absences of videos, wrong settings
/// and defects of custom suppliers ([`SupplyError::defect`]) are not retried.
///
/// ```
/// # use verbatim::{Batch, GetOutcome, GetRequest, Options, SupplierOptions, Verbatim};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), verbatim::Error> {
/// # let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
/// # let verbatim = Verbatim::open(options).await?;
/// let batch = Batch::default();
/// for link in ["https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/aaaaaaaaaaa"] {
///     let request = GetRequest { link: link.to_owned(), ..GetRequest::default() };
///     match batch.get(&verbatim, request).await? {
///         GetOutcome::Found(found) => println!("{}", found.stored.transcript.segments.len()),
///         GetOutcome::Missing(missing) => println!("{link}: {}", missing.message),
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    max_wait: Duration,
    /// Start of the first wait for each platform since its last success; `None`: for a service.
    waiting_since: Arc<Mutex<HashMap<Option<Platform>, Instant>>>,
    #[cfg(any(feature = "local-service", feature = "service"))]
    service: Arc<service_calls::ServiceCalls>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new(MAX_WAIT)
    }
}

impl Batch {
    /// A batch that waits at most `max_wait` for a platform without a success in between; with zero it never waits.
    pub fn new(max_wait: Duration) -> Self {
        Self {
            max_wait,
            waiting_since: Arc::default(),
            #[cfg(any(feature = "local-service", feature = "service"))]
            service: Arc::default(),
        }
    }

    /// As [`Verbatim::get`], after waits for paused sources.
    ///
    /// # Errors
    /// As [`Verbatim::get`].
    ///
    /// # Cancellation
    /// As [`Verbatim::get`].
    pub async fn get(&self, verbatim: &Verbatim, request: GetRequest) -> Result<GetOutcome> {
        let started_at = Instant::now();
        let (mut attempts, mut poll) = (0, POLL_FIRST);
        loop {
            let outcome = verbatim.get(request.clone()).await?;
            let missing = match &outcome {
                GetOutcome::Found(found) => {
                    if !found.from_cache {
                        self.end_wait(Some(found.stored.transcript.video.platform()));
                    }
                    return Ok(outcome);
                }
                GetOutcome::Missing(missing) => missing,
            };
            attempts += u32::from(missing.attempted);
            let Some(retry_at) = self.retry_time(missing, attempts, started_at) else { return Ok(outcome) };
            let left = time_until(retry_at);
            let wait = if missing.attempted { left } else { left.min(poll) };
            // Once for each pause that a call meets.
            if missing.attempted || poll == POLL_FIRST {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                tracing::info!(platform = %missing.platform, wait_ms, "batch waits for a paused source");
            }
            poll = if missing.attempted { POLL_FIRST } else { POLL };
            pause(verbatim, wait).await;
        }
    }

    /// As [`Verbatim::video_page`], after waits for a platform that throttles.
    ///
    /// # Errors
    /// As [`Verbatim::video_page`].
    ///
    /// # Cancellation
    /// As [`Verbatim::video_page`].
    pub async fn video_page(
        &self,
        verbatim: &Verbatim,
        list: &VideoList,
        position: Option<&ListPosition>,
        since: Option<Timestamp>,
    ) -> Result<VideoListPage> {
        let (started_at, platform) = (Instant::now(), list.platform());
        loop {
            let error = match verbatim.video_page(list, position, since).await {
                Ok(page) => {
                    self.end_wait(Some(platform));
                    return Ok(page);
                }
                Err(error) => error,
            };
            let Some(retry_at) = self.page_retry_time(platform, &error, started_at) else {
                return Err(error);
            };
            let wait = time_until(retry_at);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            tracing::info!(%platform, wait_ms, "batch waits for a page of a list");
            pause(verbatim, wait).await;
        }
    }

    /// When a failed call is retried; `None` if a retry would fail too, or only succeed after the longest wait.
    ///
    /// `attempts` counts the calls of suppliers for the link.
    fn retry_time(
        &self,
        missing: &UnavailableTranscript,
        attempts: u32,
        started_at: Instant,
    ) -> Option<Instant> {
        let is_pause = matches!(missing.reason, FailureReason::RateLimited | FailureReason::FetchError);
        if !is_pause {
            // The platform responds: the failure describes the video.
            if missing.reason == FailureReason::NoCaptions && missing.attempted {
                self.end_wait(Some(missing.platform));
            }
            return None;
        }
        if attempts >= ATTEMPTS_MAX || missing.is_defect() {
            return None;
        }
        // Without a call of a supplier the time of the caller was over, or a store failed.
        let unnamed = || missing.attempted.then(|| LINK_WAIT.pause(attempts.saturating_sub(1), 1.0));
        let retry_after = missing.retry_after.or_else(unnamed)?;
        self.time_within(Some(missing.platform), retry_after, started_at)
    }

    /// When a page of a list is read again; `None` if that would fail too, or is after the longest wait.
    fn page_retry_time(&self, platform: Platform, error: &Error, started_at: Instant) -> Option<Instant> {
        let retry_after = error.retry_after().unwrap_or(PAGE_WAIT);
        is_throttled(error).then(|| self.time_within(Some(platform), retry_after, started_at)).flatten()
    }

    /// The time of a retry; `None` if it is after the longest wait. Only waits count for it.
    fn time_within(
        &self,
        platform: Option<Platform>,
        retry_after: Duration,
        started_at: Instant,
    ) -> Option<Instant> {
        let now = Instant::now();
        let retry_at = now.checked_add(retry_after)?;
        let mut waiting_since = self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner);
        let since = waiting_since.get(&platform).copied().unwrap_or(now);
        // The second bound is for a link that fails while others succeed.
        let is_within = |start: Instant| retry_at.duration_since(start) <= self.max_wait;
        if !is_within(since) || !is_within(started_at) {
            return None;
        }
        waiting_since.insert(platform, since);
        Some(retry_at)
    }

    /// Notes a success of the platform.
    fn end_wait(&self, platform: Option<Platform>) {
        self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner).remove(&platform);
    }
}

/// Whether a platform refused to show a list for now.
fn is_throttled(error: &Error) -> bool {
    let cause = error.cause().map(ErrorCause::error);
    let failure = cause.and_then(|cause| cause.downcast_ref::<SupplyError>());
    failure.is_some_and(|failure| {
        matches!(failure.reason(), SupplyReason::Throttled(_) | SupplyReason::BotCheck)
    })
}

/// The time until a retry, or the shortest wait.
fn time_until(retry_at: Instant) -> Duration {
    retry_at.duration_since(Instant::now()).max(POLL_FIRST)
}

/// Waits on the runtime of the [`Verbatim`], because any executor may poll this.
async fn pause(verbatim: &Verbatim, wait: Duration) {
    within(&verbatim.runtime, async { tokio::time::sleep(wait).await }).await;
}

#[cfg(test)]
mod tests {
    use transcript_core::{ErrorKind, Retry, engine::NoTranscript};

    use super::*;

    fn missing(reason: FailureReason, retry_after: Option<Duration>) -> UnavailableTranscript {
        UnavailableTranscript {
            platform: Platform::YouTube,
            video_id: "dQw4w9WgXcQ".to_owned(),
            reason,
            detail: None,
            message: "x".to_owned(),
            retry_after,
            languages: Vec::new(),
            attempted: true,
            cause: None,
            #[cfg(feature = "lookup")]
            watch_url: String::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn batch_retries_pauses_within_max_wait() {
        use FailureReason::{ConfigError, FetchError, NoCaptions, RateLimited};
        let secs = |count| Some(Duration::from_secs(count));
        let batch = Batch::new(Duration::from_secs(10));
        let started_at = Instant::now();
        let wait = |reason, retry_after| {
            let retry_at = batch.retry_time(&missing(reason, retry_after), 1, started_at);
            retry_at.map(|at| at.duration_since(Instant::now()))
        };
        assert_eq!(wait(RateLimited, secs(10)), secs(10));
        assert_eq!(wait(FetchError, secs(4)), secs(4));
        assert_eq!(wait(FetchError, secs(11)), None);
        for (reason, retry_after) in [(NoCaptions, None), (NoCaptions, secs(4)), (ConfigError, secs(4))] {
            assert_eq!(wait(reason, retry_after), None, "{reason:?}");
        }
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(wait(RateLimited, secs(4)), None, "the batch has waited for 7 of 10 seconds");
        assert_eq!(wait(RateLimited, secs(3)), secs(3));
        batch.end_wait(Some(Platform::YouTube));
        assert_eq!(wait(RateLimited, secs(4)), None, "this call has waited for 7 of 10 seconds");
        let later = batch.retry_time(&missing(RateLimited, secs(10)), 1, Instant::now());
        assert!(later.is_some(), "a success starts the wait again");
    }

    #[tokio::test(start_paused = true)]
    async fn batch_without_named_wait_backs_off() {
        let batch = Batch::default();
        let wait = |missing: &UnavailableTranscript, attempts| {
            let retry_at = batch.retry_time(missing, attempts, Instant::now());
            retry_at.map(|at| at.duration_since(Instant::now()).as_secs())
        };
        for reason in [FailureReason::RateLimited, FailureReason::FetchError] {
            let failed = missing(reason, None);
            let waits = [1, 2, 3].map(|attempts| wait(&failed, attempts));
            assert_eq!(waits, [Some(1), Some(2), None], "{reason:?}");
            let unattempted = UnavailableTranscript { attempted: false, ..failed };
            assert_eq!(wait(&unattempted, 1), None, "{reason:?}");
        }
        let defect = UnavailableTranscript {
            detail: Some(NoTranscript::DEFECT.to_owned()),
            ..missing(FailureReason::FetchError, None)
        };
        assert_eq!(wait(&defect, 1), None, "a retry meets a defect again");
    }

    #[tokio::test(start_paused = true)]
    async fn batch_waits_for_throttled_pages_alone() {
        let batch = Batch::default();
        let wait = |reason: SupplyReason, retry_after: Option<u64>| {
            let retry =
                retry_after.map_or(Retry::Backoff, |seconds| Retry::After(Duration::from_secs(seconds)));
            let cause = ErrorCause::new(SupplyError::new(reason, "x"));
            let error = Error::new(ErrorKind::Unavailable, retry, "x").with_cause(Some(cause));
            let retry_at = batch.page_retry_time(Platform::YouTube, &error, Instant::now());
            retry_at.map(|at| at.duration_since(Instant::now()).as_secs())
        };
        assert_eq!(wait(SupplyReason::Throttled(None), Some(301)), None);
        assert_eq!(wait(SupplyReason::Throttled(None), Some(7)), Some(7));
        assert_eq!(wait(SupplyReason::Throttled(None), None), Some(30));
        assert_eq!(wait(SupplyReason::BotCheck, None), Some(30));
        assert_eq!(wait(SupplyReason::Timeout, Some(7)), None);
    }

    #[tokio::test]
    async fn batch_without_wait_never_waits() {
        let none = Batch::new(Duration::ZERO);
        let throttled = missing(FailureReason::RateLimited, Some(Duration::from_millis(1)));
        assert_eq!(none.retry_time(&throttled, 1, Instant::now()), None);
        assert_eq!(none.retry_time(&missing(FailureReason::FetchError, None), 1, Instant::now()), None);
    }
}
