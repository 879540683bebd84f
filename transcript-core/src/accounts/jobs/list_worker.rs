//! The work on a claimed page of a list.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{
    AccountJobs, ClaimedListing, ListingOutcome, PauseReason,
    worker::{
        ATTEMPTS_MAX, CHECK_INTERVAL, Claim, FAILING_MAX, STORE_PAUSE, account_closed, failure, pause_after,
    },
};
use crate::{
    directory::AccountRef,
    error::Result,
    retry::with_timeout,
    supplier::{ListOutcome, SupplyError, SupplyReason, VideoListPage},
    time::Timestamp,
    video::Platform,
};

/// The reason of a list without videos.
const EMPTY: &str = "empty";

impl AccountJobs {
    /// Claims a due page of a list of a platform that is not busy.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn claim_listing(&self, busy: &[Platform]) -> Result<Option<ClaimedListing>> {
        let now = self.context.now();
        let options = self.context.transcripts.options();
        let claimed = self.store.claim_listing(now, now.plus(options.hold), busy);
        with_timeout(options.store_timeout, claimed).await
    }

    /// Reads a claimed page, and stores its videos as items.
    ///
    /// # Cancellation
    /// A dropped page is due again when its lease ends, or when [`AccountJobs::give_up`] returns it.
    pub(super) async fn read_page(self: Arc<Self>, listing: ClaimedListing) {
        let mut heartbeat = JoinSet::new();
        heartbeat.spawn(Arc::clone(&self).keep_claim(Claim::Listing(listing.claim.clone())));
        let outcome = self.obtain_page(&listing).await;
        let end = || self.store.end_listing(&listing.claim, outcome.clone(), self.context.now());
        match self.context.retry_store(end).await {
            Ok(true) => {}
            Ok(false) => tracing::info!(job = %listing.claim.job, "claim of a list ended before its work"),
            Err(error) => tracing::warn!(job = %listing.claim.job, %error, "page of a list not stored"),
        }
    }

    /// Reads a page from its platform. Nothing is requested for an account that is blocked or closed.
    async fn obtain_page(&self, listing: &ClaimedListing) -> ListingOutcome {
        let reference = AccountRef::Id(listing.account.clone());
        let account = self.context.retry_store(|| self.directory.account(&reference)).await;
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
                let due_at = now.plus(STORE_PAUSE);
                return ListingOutcome::Again { due_at, is_failure: false, is_attempt: false };
            }
        }
        let page = self.context.transcripts.list_page(&listing.list.list, listing.position.as_ref()).await;
        match page {
            Ok(ListOutcome::Page(page)) => page_outcome(listing, page),
            Ok(ListOutcome::Absent(absence)) => {
                ListingOutcome::Failed(failure(absence.reason.as_str(), absence.message))
            }
            Err(error) => error_outcome(listing, &error, self.context.now()),
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

/// What follows from a page that was not read.
pub(super) fn error_outcome(listing: &ClaimedListing, error: &SupplyError, now: Timestamp) -> ListingOutcome {
    let reason = error.reason();
    // The engine of this process is stopping: another one reads the page.
    if *reason == SupplyReason::Cancelled {
        return ListingOutcome::Again { due_at: now, is_failure: false, is_attempt: false };
    }
    let is_attempt = error.was_attempted();
    let is_over = listing.failing_since.is_some_and(|since| now.since(since) >= FAILING_MAX);
    let is_final = match reason {
        SupplyReason::Misconfigured | SupplyReason::Stale => true,
        _ if is_attempt => listing.attempts.saturating_add(1) >= ATTEMPTS_MAX,
        _ => is_over,
    };
    if is_final {
        return ListingOutcome::Failed(failure(reason.as_str(), error.message()));
    }
    let due_at = now.plus(pause_after(listing.attempts, error.retry_after()));
    ListingOutcome::Again { due_at, is_failure: true, is_attempt }
}
