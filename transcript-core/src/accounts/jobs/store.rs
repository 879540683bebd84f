//! The port for jobs.

use std::{collections::HashMap, fmt};

use async_trait::async_trait;

use super::{
    ClaimedItem, ClaimedListing, ItemClaim, ItemOutcome, ItemReturn, Job, JobItem, JobStatus, ListingClaim,
    ListingOutcome, NewItem, PauseReason,
};
use crate::{
    error::Result,
    ids::{AccountId, JobId},
    page::{Page, PageRequest},
    time::Timestamp,
    video::Platform,
};

/// Limits of a new job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// The largest number of jobs of an account that have not ended.
    pub unfinished: u32,
    /// The largest number of jobs of an account that are stored.
    ///
    /// The oldest ended ones without running items are deleted.
    pub stored: u32,
}

/// How many items a claim takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimLimits {
    /// The largest number of items.
    pub items: u32,
    /// The largest number of items that the caller works on at the same time.
    places: u32,
    /// The items of each account that the caller works on, and of all.
    running: HashMap<AccountId, u32>,
    all_running: u32,
}

impl ClaimLimits {
    /// At most `items` in the claim of a caller with this number of places, which works on none yet.
    pub fn new(items: u32, places: u32) -> Self {
        Self { items, places, running: HashMap::new(), all_running: 0 }
    }

    /// Counts an item of an account that the caller works on.
    pub fn add(&mut self, account: &AccountId) {
        let running = self.running.entry(account.clone()).or_default();
        *running = running.saturating_add(1);
        self.all_running = self.all_running.saturating_add(1);
    }

    /// Whether no more items of an account are claimed: it has half of the places that other accounts leave.
    pub fn is_full(&self, account: &AccountId) -> bool {
        let is_full = |own: &u32| {
            let others = self.all_running.saturating_sub(*own);
            *own >= self.places.saturating_sub(others).div_ceil(2)
        };
        self.running.get(account).is_some_and(is_full)
    }

    /// The accounts of which no more items are claimed.
    pub fn full_accounts(&self) -> Vec<&str> {
        self.running.keys().filter(|account| self.is_full(account)).map(AccountId::as_str).collect()
    }
}

/// Outcome of [`JobStore::create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateJobOutcome {
    /// It is stored.
    Created,
    /// The id is known: the stored job.
    Exists(Box<Job>),
    /// The account has as many unfinished jobs as it may have. Nothing is stored.
    TooMany,
}

/// Jobs and items in one state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobFigures {
    /// The state.
    pub status: JobStatus,
    /// The number of jobs in it.
    pub jobs: u64,
    /// Their items that wait.
    pub queued_items: u64,
    /// Their items that run.
    pub running_items: u64,
}

/// The store of jobs. Each method is one transaction, durable once acknowledged.
///
/// A change that ends or pauses a job records its event ([`Job::event_since`]) for
/// [`WebhookStore`](crate::accounts::webhooks::WebhookStore).
///
/// A list leaves out a row that cannot be decoded, and logs it. Read alone, it is [`crate::ErrorKind::Corrupt`].
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
#[async_trait]
pub trait JobStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a new job with its items, in their order. The items of a job with a list are added later.
    ///
    /// **Behaviour**: an id that exists is unchanged.
    async fn create(&self, job: Job, items: Vec<NewItem>, limits: JobLimits) -> Result<CreateJobOutcome>;

    /// The job with this id.
    async fn job(&self, id: &JobId) -> Result<Option<Job>>;

    /// The jobs of an account, the newest first.
    async fn jobs_of(&self, account: &AccountId, page: PageRequest) -> Result<Page<Job>>;

    /// At most `limit` items of a job, in order, beginning with position `from`.
    async fn items(&self, id: &JobId, from: u64, limit: u32) -> Result<Vec<JobItem>>;

    /// Claims due items until `lease_until`, within `limits`.
    ///
    /// **Behaviour**
    /// - An item is due from its due time on; that of a claimed item is the end of its lease.
    /// - The claims in a row that ended with their lease are counted ([`ClaimedItem::interruptions`]).
    /// - Accounts take turns, one item each; the items of an account are claimed job by job, in order.
    /// - [`ItemClaim::failing_since`] is stored. Of the time in which the item was due without a claim, at most an hour
    ///   counts as a failure.
    /// - Accounts with as many items as [`ClaimLimits`] allows are left out.
    /// - Items of paused jobs are not claimed. Of a cancelled job only items that had started are claimed.
    async fn claim(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limits: ClaimLimits,
    ) -> Result<Vec<ClaimedItem>>;

    /// Extends a claim; `false` if it has ended.
    async fn extend(&self, claim: &ItemClaim, lease_until: Timestamp) -> Result<bool>;

    /// Ends a claimed item; `false`, without any change, if the claim has ended.
    ///
    /// **Behaviour**: the last item completes its job.
    async fn end_item(&self, claim: &ItemClaim, outcome: ItemOutcome, now: Timestamp) -> Result<bool>;

    /// Returns a claimed item to the queue, and may pause its job; `false`, without any change, if the claim has ended.
    ///
    /// **Behaviour**
    /// - A paused job is due for a check when the item is due. An item of a cancelled job returns too.
    /// - It ends the claims in a row that ended with their lease.
    /// - [`ItemReturn::failing_since`] is stored. An attempt ends the failures before it. The time in which the item
    ///   only waits does not count as a failure.
    /// - A failure is the first one also if the stored time of the first one is after `now`: a clock that was ahead and
    ///   was corrected since stored it.
    async fn return_item(&self, claim: &ItemClaim, returned: ItemReturn, now: Timestamp) -> Result<bool>;

    /// Claims the next page of a list until `lease_until`; `None` if none is due.
    ///
    /// **Behaviour**
    /// - Accounts take turns, claims that ended with their lease are counted, and time without a claim does not count
    ///   to failures, as for items.
    /// - Lists of paused and of ended jobs, and those of `busy` platforms, are not claimed.
    async fn claim_listing(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        busy: &[Platform],
    ) -> Result<Option<ClaimedListing>>;

    /// Extends the claim of a page; `false` if it has ended, or the job is paused.
    async fn extend_listing(&self, claim: &ListingClaim, lease_until: Timestamp) -> Result<bool>;

    /// Ends the claim of a page; `false`, without any change, if it has ended, or the list has.
    ///
    /// **Behaviour**
    /// - A page adds its videos as items, and the position of the next one. The last page queues the job.
    /// - If the list cannot be read, the job fails: its items are skipped.
    /// - A pause changes no job that was paused or has ended since.
    /// - Which failure is the first follows from the rules of [`JobStore::return_item`]. A page that was read ends
    ///   attempts and failures.
    async fn end_listing(
        &self,
        claim: &ListingClaim,
        outcome: ListingOutcome,
        now: Timestamp,
    ) -> Result<bool>;

    /// Cancels a job. Returns the job; `None` if there is none.
    ///
    /// **Behaviour**
    /// - Queued items are skipped, and no more of its list is read. One that fails (`failing_since`) may be fetched or
    ///   charged: it stays due.
    /// - A job that has ended is unchanged.
    async fn cancel(&self, id: &JobId, now: Timestamp) -> Result<Option<Job>>;

    /// Paused jobs whose reason is to be checked, at most `limit`; the next check of each is due at `next_check`.
    ///
    /// **Behaviour**
    /// - Those that are due longest come first.
    /// - Jobs and items that are due more than [`LEASE_MAX`](crate::time::LEASE_MAX) after `now` are due at
    ///   that time instead: a clock that was ahead and was corrected since claimed them. A pause by the operator has no
    ///   end, and stays.
    async fn take_paused(&self, now: Timestamp, next_check: Timestamp, limit: u32) -> Result<Vec<Job>>;

    /// Ends the pause of a job if this is its reason; `false` if it is not paused for it.
    ///
    /// **Behaviour**: the failures of its items begin again at `now`, because the time of the pause does not count;
    /// those of its list end.
    async fn resume(&self, id: &JobId, reason: PauseReason, now: Timestamp) -> Result<bool>;

    /// Pauses a job for the operator. Returns the job; `None` if there is none.
    ///
    /// **Behaviour**: a job that has ended is unchanged. A pause for another reason becomes one of the operator.
    async fn pause(&self, id: &JobId, now: Timestamp) -> Result<Option<Job>>;

    /// All jobs that have not ended, in the order of their ids.
    async fn unfinished(&self, page: PageRequest) -> Result<Page<Job>>;

    /// Jobs and items in each state of a job that is not an end; states without jobs may be left out.
    async fn figures(&self) -> Result<Vec<JobFigures>>;

    /// Deletes at most `limit` jobs that ended before a time, the oldest end first; returns their number.
    ///
    /// **Behaviour**: a cancelled job stays until its items that had started have ended.
    async fn delete_ended(&self, before: Timestamp, limit: u32) -> Result<u64>;

    /// Ends all jobs of an account, so that they are deleted; returns how many were not ended so before.
    ///
    /// **Behaviour**
    /// - They are cancelled at the time 0: [`JobStore::delete_ended`] deletes them first, with their events.
    /// - The claims on their items and lists and the leases of their events end, and none of them is claimed or leased.
    /// - A job that cannot be decoded is ended, too.
    /// - The generation of the account's webhook secret is deleted.
    async fn discard_for_account(&self, account: &AccountId) -> Result<u64>;
}
