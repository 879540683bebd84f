//! The work on a claimed page of a list.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::timeout};

use super::{
    AccountJobs, ClaimedListing, ListingOutcome, PauseReason,
    worker::{
        ATTEMPTS_MAX, CHECK_INTERVAL, Claim, INTERRUPTIONS_MAX, STORE_PAUSE, account_closed, failure,
        interrupted, is_given_up, is_too_old, pause_after,
    },
};
use crate::{
    accounts::V1Error,
    engine::FailureReason,
    error::Result,
    retry::with_timeout,
    supplier::{ListOutcome, SupplyError, SupplyReason, VideoListPage},
    time::Timestamp,
    video::{Platform, VideoList},
};

/// The reason of a list without videos.
const EMPTY: &str = "empty";
/// How long a due page waits for a server that reads lists of its platform.
const ABANDONED_AFTER: Duration = Duration::from_secs(3_600);
/// How long a server works on a page. A lister that is not defective takes two minutes at most.
const PAGE_WORK_MAX: Duration = Duration::from_secs(300);

impl AccountJobs {
    /// Claims a due page of a list of a platform that is not busy.
    ///
    /// Pages that this process cannot read are left to other servers, which may have other suppliers. Those that wait
    /// for an hour it claims, and counts as failures: after a day their jobs fail.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn claim_listing(&self, busy: &[Platform]) -> Result<Option<ClaimedListing>> {
        let has_lister = |platform: Platform| self.context.transcripts.has_video_lister(platform);
        let has_lists = |platform: Platform| VideoList::address_prefix(platform).is_some();
        let is_unread = |platform: &Platform| has_lists(*platform) && !has_lister(*platform);
        let unread: Vec<Platform> = Platform::ALL.into_iter().filter(is_unread).collect();
        let now = self.context.now();
        let claimed = self.claim_page(now, &[busy, unread.as_slice()].concat()).await?;
        if claimed.is_some() || unread.is_empty() {
            return Ok(claimed);
        }
        self.claim_page(now.minus(ABANDONED_AFTER), busy).await
    }

    /// Claims a page that was due at this time.
    async fn claim_page(&self, due: Timestamp, left_out: &[Platform]) -> Result<Option<ClaimedListing>> {
        let options = self.context.transcripts.options();
        let claimed = self.store.claim_listing(due, self.context.now().plus(options.hold), left_out);
        with_timeout(options.store_timeout, claimed).await
    }

    /// Reads a claimed page, and stores its videos as items.
    ///
    /// # Cancellation
    /// A dropped page is due again when its lease ends, or when [`AccountJobs::give_up`] returns it.
    pub(super) async fn read_page(self: Arc<Self>, listing: ClaimedListing) {
        let mut heartbeat = JoinSet::new();
        heartbeat.spawn(Arc::clone(&self).keep_claim(Claim::Listing(listing.claim.clone())));
        let obtained = timeout(PAGE_WORK_MAX, self.obtain_page(&listing)).await;
        let outcome = obtained.unwrap_or_else(|_| {
            tracing::error!(job = %listing.claim.job, "page of a list not read in time");
            let error = SupplyError::new(SupplyReason::Timeout, "The list was not read in time.");
            error_outcome(&listing, &error, true, self.context.now())
        });
        let end = || self.store.end_listing(&listing.claim, outcome.clone(), self.context.now());
        match self.context.retry_store(end).await {
            Ok(true) => {}
            Ok(false) => tracing::info!(job = %listing.claim.job, "claim of a list ended before its work"),
            Err(error) => tracing::warn!(job = %listing.claim.job, %error, "page of a list not stored"),
        }
    }

    /// Reads a page from its platform. Nothing is requested for an account that is blocked or closed.
    async fn obtain_page(&self, listing: &ClaimedListing) -> ListingOutcome {
        if INTERRUPTIONS_MAX <= listing.interruptions {
            return ListingOutcome::Failed(interrupted("list"));
        }
        let account = self.account(&listing.account).await;
        let now = self.context.now();
        match account {
            Ok(Some(account)) if !account.blocked => {}
            Ok(Some(_)) => {
                let due_at = now.plus(CHECK_INTERVAL);
                return ListingOutcome::Paused { reason: PauseReason::AccountBlocked, due_at };
            }
            Ok(None) => return ListingOutcome::Failed(account_closed()),
            Err(error) => {
                tracing::warn!(job = %listing.claim.job, %error, "account of a list not found");
                if is_given_up(listing.failing_since, now) {
                    let message = V1Error::from_store_error(error).message().to_owned();
                    return ListingOutcome::Failed(failure(FailureReason::FetchError.as_str(), message));
                }
                let due_at = now.plus(STORE_PAUSE);
                return ListingOutcome::Again { due_at, is_failure: true, is_attempt: false };
            }
        }
        let page = self.context.transcripts.list_page(&listing.list.list, listing.position.as_ref()).await;
        match page {
            Ok(ListOutcome::Page(page)) => page_outcome(listing, page),
            Ok(ListOutcome::Absent(absence)) => {
                ListingOutcome::Failed(failure(absence.reason.as_str(), absence.message))
            }
            Err(error) => {
                let has_lister = self.context.transcripts.has_video_lister(listing.list.list.platform());
                error_outcome(listing, &error, has_lister, self.context.now())
            }
        }
    }
}

/// What follows from a page.
pub(super) fn page_outcome(listing: &ClaimedListing, page: VideoListPage) -> ListingOutcome {
    let is_first = listing.position.is_none();
    let has_nothing = page.videos.is_empty() && page.next.is_none();
    // A list whose videos are all too old is not empty.
    if has_nothing && listing.items == 0 && (is_first || listing.list.since.is_none()) {
        let message = "The list has no videos, or shows none to visitors.";
        return ListingOutcome::Failed(failure(EMPTY, message));
    }
    let page = match listing.list.since {
        Some(since) => page.published_since(since, listing.list.list.is_newest_first()),
        None => page,
    };
    let videos = page.videos.into_iter().map(|listed| listed.video).collect();
    ListingOutcome::Page { videos, next: page.next }
}

/// What follows from a page that was not read; `has_lister` is whether this process reads lists of its platform.
pub(super) fn error_outcome(
    listing: &ClaimedListing,
    error: &SupplyError,
    has_lister: bool,
    now: Timestamp,
) -> ListingOutcome {
    let reason = error.reason();
    // The engine of this process is stopping: another one reads the page.
    if *reason == SupplyReason::Cancelled {
        return ListingOutcome::Again { due_at: now, is_failure: false, is_attempt: false };
    }
    let is_attempt = error.was_attempted();
    // A pause of the platform is no failure: the page waits for its end.
    let waits = error.retry_after().is_some() && !is_too_old(listing.job_created_at, now);
    let is_failure = !is_attempt && !waits;
    let is_final = match reason {
        // Another server may have a lister.
        SupplyReason::Misconfigured | SupplyReason::Stale if has_lister => true,
        _ if is_attempt => listing.attempts.saturating_add(1) >= ATTEMPTS_MAX,
        _ => is_failure && is_given_up(listing.failing_since, now),
    };
    if is_final {
        return ListingOutcome::Failed(failure(reason.as_str(), error.message()));
    }
    let due_at = now.plus(pause_after(listing.attempts, error.retry_after()));
    ListingOutcome::Again { due_at, is_failure, is_attempt }
}
