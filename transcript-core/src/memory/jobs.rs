//! The in-memory store of jobs.

use std::collections::HashMap;

use async_trait::async_trait;

use super::{SharedState, webhooks::StoredEvent};
use crate::{
    accounts::{
        jobs::{
            ClaimLimits, ClaimedItem, ClaimedListing, CreateJobOutcome, ItemClaim, ItemOutcome, ItemReturn,
            ItemStatus, Job, JobFigures, JobItem, JobLimits, JobStatus, JobStore, ListingClaim,
            ListingOutcome, NewItem, PauseReason, SourceList,
        },
        webhooks::SecretGeneration,
    },
    error::Result,
    ids::{AccountId, Cursor, JobId},
    page::{Page, PageRequest},
    supplier::ListPosition,
    time::{LEASE_MAX, Timestamp},
    video::{Platform, VideoId},
};

/// An in-memory [`JobStore`] and [`WebhookStore`](crate::accounts::webhooks::WebhookStore). A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryJobs {
    pub(super) jobs: SharedState<Vec<StoredJob>>,
    pub(super) secrets: SharedState<HashMap<AccountId, SecretGeneration>>,
}

#[derive(Debug)]
pub(super) struct StoredJob {
    pub(super) job: Job,
    /// Of the due jobs the one with the smallest number is next.
    turn: u64,
    items: Vec<StoredItem>,
    listing: StoredListing,
    /// Its events, the oldest first.
    pub(super) events: Vec<StoredEvent>,
}

#[derive(Debug)]
struct StoredItem {
    item: JobItem,
    /// When it is due; `None` once it has ended.
    due_at: Option<Timestamp>,
    claims: u64,
    attempts: u32,
    interruptions: u32,
    failing_since: Option<Timestamp>,
}

/// How far the list of a job was read.
#[derive(Debug, Default)]
struct StoredListing {
    position: Option<ListPosition>,
    claims: u64,
    attempts: u32,
    /// Claims in a row that have not ended; the last one may be running.
    open_claims: u32,
    failing_since: Option<Timestamp>,
}

impl StoredItem {
    fn new(index: usize, new: NewItem, now: Timestamp) -> Self {
        let (video, failure) = match new.video {
            Ok(video) => (Some(video), None),
            Err(failure) => (None, Some(failure)),
        };
        let status = if failure.is_some() { ItemStatus::Failed } else { ItemStatus::Queued };
        let due_at = (status == ItemStatus::Queued).then_some(now);
        let item = JobItem { index: index as u64, url: new.url, video, status, failure };
        Self { item, due_at, claims: 0, attempts: 0, interruptions: 0, failing_since: None }
    }
}

impl StoredJob {
    fn next_due(&self) -> Option<Timestamp> {
        self.items.iter().filter_map(|item| item.due_at).min()
    }

    /// What is due after `latest` is due at `due`, if that is the whole job: a corrected clock has claimed it.
    fn limit_due(&mut self, latest: Timestamp) {
        let job = &mut self.job;
        if job.pause_reason != Some(PauseReason::Operator) && job.due_at.is_some_and(|at| at > latest) {
            job.due_at = Some(latest);
            let due_items = self.items.iter_mut().filter_map(|item| item.due_at.as_mut());
            due_items.filter(|at| **at > latest).for_each(|at| *at = latest);
        }
    }

    /// Whether it has ended, and no item runs.
    fn is_over(&self) -> bool {
        self.job.status.has_ended() && self.job.due_at.is_none()
    }

    fn is_claimable(&self, now: Timestamp) -> bool {
        matches!(self.job.status, JobStatus::Queued | JobStatus::Running | JobStatus::Cancelled)
            && self.job.due_at.is_some_and(|due| due <= now)
    }

    /// Claims the first due item; without one the job is due later.
    fn claim(&mut self, now: Timestamp, lease_until: Timestamp) -> Option<ClaimedItem> {
        let found = self.items.iter_mut().find(|item| item.due_at.is_some_and(|due| due <= now));
        let Some(stored) = found else {
            self.job.due_at = self.next_due();
            return None;
        };
        let was_running = stored.item.status == ItemStatus::Running;
        let due_at = stored.due_at.unwrap_or(now);
        stored.failing_since = ItemClaim::failing_since(stored.failing_since, due_at, now);
        self.job.start_item(was_running);
        stored.interruptions = stored.interruptions.saturating_add(u32::from(was_running));
        stored.item.status = ItemStatus::Running;
        stored.due_at = Some(lease_until);
        stored.claims += 1;
        let claim = ItemClaim { job: self.job.id.clone(), index: stored.item.index, number: stored.claims };
        Some(ClaimedItem {
            claim,
            account: self.job.account.clone(),
            job_created_at: self.job.created_at,
            language: self.job.language.clone(),
            is_cancelled: self.job.status == JobStatus::Cancelled,
            video: stored.item.video.clone()?,
            attempts: stored.attempts,
            interruptions: stored.interruptions,
            failing_since: stored.failing_since,
        })
    }

    /// Skips the items that have not started; returns their number.
    fn skip_items(&mut self) -> u64 {
        let mut skipped = 0;
        let skips =
            |item: &&mut StoredItem| item.item.status == ItemStatus::Queued && item.failing_since.is_none();
        for item in self.items.iter_mut().filter(skips) {
            item.item.status = ItemStatus::Skipped;
            item.due_at = None;
            skipped += 1;
        }
        skipped
    }

    /// Ends the job, the claims on its items and the deliveries of its events, so that it is deleted.
    fn discard(&mut self) {
        self.job.cancel(0, None, Timestamp::from_millis(0));
        self.events.iter_mut().for_each(StoredEvent::discard);
        let is_running = |stored: &&mut StoredItem| stored.item.status == ItemStatus::Running;
        self.items.iter_mut().filter(is_running).for_each(|stored| stored.item.status = ItemStatus::Skipped);
    }

    /// Adds the videos of a page that the job does not have.
    fn add_page(&mut self, videos: &[VideoId], next: Option<ListPosition>, now: Timestamp) {
        let known = self.items.iter().filter_map(|stored| stored.item.video.as_ref()).map(VideoId::to_string);
        let new = self.job.new_videos(videos, known);
        let added = new.len() as u64;
        for video in new {
            let index = self.items.len();
            self.items.push(StoredItem::new(index, NewItem::of_video(video), now));
        }
        self.job.add_page(added, next.is_none(), now);
        self.listing = StoredListing { position: next, claims: self.listing.claims, ..Default::default() };
    }

    /// The item of a claim that has not ended.
    fn claimed(&mut self, claim: &ItemClaim) -> Option<&mut StoredItem> {
        let item = self.items.get_mut(usize::try_from(claim.index).ok()?)?;
        (item.item.status == ItemStatus::Running && item.claims == claim.number).then_some(item)
    }
}

pub(super) fn find<'a>(jobs: &'a mut [StoredJob], id: &JobId) -> Option<&'a mut StoredJob> {
    jobs.iter_mut().find(|stored| stored.job.id == *id)
}

/// Claims one item of the job whose turn it is; `None` if no job is due.
fn claim_next(
    jobs: &mut [StoredJob],
    now: Timestamp,
    lease_until: Timestamp,
    limits: &ClaimLimits,
) -> Option<Option<ClaimedItem>> {
    let last = last_turn(jobs);
    let is_due = |stored: &&mut StoredJob| stored.is_claimable(now) && !limits.is_full(&stored.job.account);
    let due = jobs.iter_mut().filter(is_due);
    let next = due.min_by(|one, other| (one.turn, &one.job.id).cmp(&(other.turn, &other.job.id)))?;
    let claimed = next.claim(now, lease_until);
    if let Some(claimed) = &claimed {
        pass_turn(jobs, &claimed.account, last);
    }
    Some(claimed)
}

/// The next turn of an account comes after those of all others, of which the last is `last`.
fn pass_turn(jobs: &mut [StoredJob], account: &AccountId, last: Option<u64>) {
    let turn = last.unwrap_or_default() + 1;
    jobs.iter_mut().filter(|job| job.job.account == *account).for_each(|job| job.turn = turn);
}

fn last_turn(jobs: &[StoredJob]) -> Option<u64> {
    jobs.iter().filter(|stored| stored.job.due_at.is_some()).map(|stored| stored.turn).max()
}

/// The job of the claim of a list that has not ended.
fn find_listing<'a>(jobs: &'a mut [StoredJob], claim: &ListingClaim) -> Option<&'a mut StoredJob> {
    let found = find(jobs, &claim.job)?;
    (found.job.is_list_open() && found.listing.claims == claim.number).then_some(found)
}

#[async_trait]
impl JobStore for MemoryJobs {
    async fn create(&self, job: Job, items: Vec<NewItem>, limits: JobLimits) -> Result<CreateJobOutcome> {
        let mut jobs = self.jobs.lock();
        if let Some(stored) = find(&mut jobs, &job.id) {
            return Ok(CreateJobOutcome::Exists(Box::new(stored.job.clone())));
        }
        let own = |stored: &&StoredJob| stored.job.account == job.account;
        let unfinished = jobs.iter().filter(own).filter(|stored| !stored.job.status.has_ended());
        if unfinished.count() >= limits.unfinished as usize {
            return Ok(CreateJobOutcome::TooMany);
        }
        let ended = jobs.iter().filter(own).filter(|stored| stored.is_over());
        let mut ended: Vec<_> = ended.map(|stored| (stored.job.created_at, stored.job.id.clone())).collect();
        ended.sort();
        let extra = (jobs.iter().filter(own).count() + 1).saturating_sub(limits.stored as usize);
        ended.truncate(extra);
        jobs.retain(|stored| ended.iter().all(|(_, id)| *id != stored.job.id));
        let turns = jobs.iter().filter(|stored| stored.job.account == job.account);
        let turn = turns.map(|stored| stored.turn).max().unwrap_or_default();
        let now = job.created_at;
        let items = items.into_iter().enumerate().map(|(index, item)| StoredItem::new(index, item, now));
        let (items, listing) = (items.collect(), StoredListing::default());
        let mut stored = StoredJob { turn, items, listing, job, events: Vec::new() };
        stored.record_event(JobStatus::Queued, now);
        jobs.push(stored);
        Ok(CreateJobOutcome::Created)
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>> {
        Ok(find(&mut self.jobs.lock(), id).map(|stored| stored.job.clone()))
    }

    async fn jobs_of(&self, account: &AccountId, page: PageRequest) -> Result<Page<Job>> {
        let jobs = self.jobs.lock();
        let own = jobs.iter().map(|stored| &stored.job).filter(|job| job.account == *account);
        let mut own: Vec<Job> = own.cloned().collect();
        own.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        let after = page.after.as_ref().map(Cursor::to_time_and_id).transpose()?;
        let rest = own.into_iter().filter(|job| {
            after.is_none_or(|position| (job.created_at.as_millis(), job.id.as_str()) < position)
        });
        Ok(Page::cut(rest, &page, |job| Cursor::time_and_id(job.created_at, &job.id)))
    }

    async fn items(&self, id: &JobId, from: u64, limit: u32) -> Result<Vec<JobItem>> {
        let mut jobs = self.jobs.lock();
        let items = find(&mut jobs, id).map_or(&[][..], |stored| &stored.items);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(items.iter().skip(from).take(limit as usize).map(|stored| stored.item.clone()).collect())
    }

    async fn claim(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        mut limits: ClaimLimits,
    ) -> Result<Vec<ClaimedItem>> {
        let mut jobs = self.jobs.lock();
        let mut claimed = Vec::new();
        while claimed.len() < limits.items as usize
            && let Some(next) = claim_next(&mut jobs, now, lease_until, &limits)
        {
            next.iter().for_each(|item| limits.add(&item.account));
            claimed.extend(next);
        }
        Ok(claimed)
    }

    async fn extend(&self, claim: &ItemClaim, lease_until: Timestamp) -> Result<bool> {
        let mut jobs = self.jobs.lock();
        let Some(item) = find(&mut jobs, &claim.job).and_then(|job| job.claimed(claim)) else {
            return Ok(false);
        };
        item.due_at = Some(lease_until);
        Ok(true)
    }

    async fn end_item(&self, claim: &ItemClaim, outcome: ItemOutcome, now: Timestamp) -> Result<bool> {
        let mut jobs = self.jobs.lock();
        let Some(stored) = find(&mut jobs, &claim.job) else { return Ok(false) };
        let Some(item) = stored.claimed(claim) else { return Ok(false) };
        item.item.status = outcome.status();
        item.item.failure = outcome.failure().cloned();
        item.due_at = None;
        let before = stored.job.status;
        stored.job.end_item(&outcome, now);
        stored.record_event(before, now);
        Ok(true)
    }

    async fn return_item(&self, claim: &ItemClaim, returned: ItemReturn, now: Timestamp) -> Result<bool> {
        let mut jobs = self.jobs.lock();
        let Some(stored) = find(&mut jobs, &claim.job) else { return Ok(false) };
        let Some(item) = stored.claimed(claim) else { return Ok(false) };
        item.item.status = ItemStatus::Queued;
        item.due_at = Some(returned.due_at);
        item.attempts = item.attempts.saturating_add(u32::from(returned.is_attempt));
        item.interruptions = 0;
        item.failing_since = returned.failing_since(item.failing_since, now);
        let before = stored.job.status;
        stored.job.return_item(&returned);
        stored.record_event(before, now);
        Ok(true)
    }

    async fn claim_listing(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        busy: &[Platform],
    ) -> Result<Option<ClaimedListing>> {
        let mut jobs = self.jobs.lock();
        let last = last_turn(&jobs);
        let is_free = |source: &SourceList| !busy.contains(&source.list.platform());
        let is_due = |stored: &&mut StoredJob| {
            stored.job.status == JobStatus::Listing
                && stored.job.due_at.is_some_and(|due| due <= now)
                && stored.job.list.as_ref().is_some_and(is_free)
        };
        let due = jobs.iter_mut().filter(is_due);
        let next = due.min_by(|one, other| (one.turn, &one.job.id).cmp(&(other.turn, &other.job.id)));
        let Some(StoredJob { job, listing, .. }) = next else { return Ok(None) };
        let Some(list) = job.list.clone() else { return Ok(None) };
        let due_at = job.due_at.replace(lease_until).unwrap_or(now);
        listing.failing_since = ItemClaim::failing_since(listing.failing_since, due_at, now);
        listing.claims += 1;
        let interruptions = listing.open_claims;
        listing.open_claims = interruptions.saturating_add(1);
        let claimed = ClaimedListing {
            claim: ListingClaim { job: job.id.clone(), number: listing.claims },
            account: job.account.clone(),
            job_created_at: job.created_at,
            list,
            items: job.counts.total,
            position: listing.position.clone(),
            attempts: listing.attempts,
            interruptions,
            failing_since: listing.failing_since,
        };
        let account = job.account.clone();
        pass_turn(&mut jobs, &account, last);
        Ok(Some(claimed))
    }

    async fn extend_listing(&self, claim: &ListingClaim, lease_until: Timestamp) -> Result<bool> {
        let mut jobs = self.jobs.lock();
        let found = find_listing(&mut jobs, claim).filter(|stored| stored.job.status == JobStatus::Listing);
        let Some(stored) = found else { return Ok(false) };
        stored.job.delay_list(lease_until);
        Ok(true)
    }

    async fn end_listing(
        &self,
        claim: &ListingClaim,
        outcome: ListingOutcome,
        now: Timestamp,
    ) -> Result<bool> {
        let mut jobs = self.jobs.lock();
        let Some(stored) = find_listing(&mut jobs, claim) else { return Ok(false) };
        // The claim has ended: a later effect of it is void.
        stored.listing.claims += 1;
        stored.listing.open_claims = 0;
        let before = stored.job.status;
        match outcome {
            ListingOutcome::Page { videos, next } => stored.add_page(&videos, next, now),
            ListingOutcome::Failed(failure) => {
                let skipped = stored.skip_items();
                stored.job.fail_list(failure, skipped, now);
            }
            ListingOutcome::Again { due_at, is_failure, is_attempt } => {
                let listing = &mut stored.listing;
                listing.attempts = listing.attempts.saturating_add(u32::from(is_attempt));
                let returned = ItemReturn { due_at, is_failure, is_attempt, pause: None };
                listing.failing_since = returned.failing_since(listing.failing_since, now);
                stored.job.delay_list(due_at);
            }
            ListingOutcome::Paused { reason, due_at } => stored.job.pause_list(reason, due_at),
        }
        stored.record_event(before, now);
        Ok(true)
    }

    async fn cancel(&self, id: &JobId, now: Timestamp) -> Result<Option<Job>> {
        let mut jobs = self.jobs.lock();
        let Some(stored) = find(&mut jobs, id) else { return Ok(None) };
        if !stored.job.status.has_ended() {
            let skipped = stored.skip_items();
            let due_at = stored.next_due();
            let before = stored.job.status;
            stored.job.cancel(skipped, due_at, now);
            stored.record_event(before, now);
        }
        Ok(Some(stored.job.clone()))
    }

    async fn take_paused(&self, now: Timestamp, next_check: Timestamp, limit: u32) -> Result<Vec<Job>> {
        let mut jobs = self.jobs.lock();
        jobs.iter_mut().for_each(|stored| stored.limit_due(now.plus(LEASE_MAX)));
        let is_due =
            |job: &&mut Job| job.status == JobStatus::Paused && job.due_at.is_some_and(|due| due <= now);
        let mut paused: Vec<_> = jobs.iter_mut().map(|stored| &mut stored.job).filter(is_due).collect();
        paused.sort_by_key(|job| job.due_at);
        let check = |job: &mut Job| {
            job.due_at = Some(next_check);
            job.clone()
        };
        Ok(paused.into_iter().take(limit as usize).map(check).collect())
    }

    async fn pause(&self, id: &JobId, now: Timestamp) -> Result<Option<Job>> {
        let mut jobs = self.jobs.lock();
        let Some(stored) = find(&mut jobs, id) else { return Ok(None) };
        let before = stored.job.status;
        stored.job.pause_by_operator();
        stored.record_event(before, now);
        Ok(Some(stored.job.clone()))
    }

    async fn unfinished(&self, page: PageRequest) -> Result<Page<Job>> {
        let jobs = self.jobs.lock();
        let mut found: Vec<Job> = jobs.iter().map(|stored| stored.job.clone()).collect();
        found.retain(|job| !job.status.has_ended());
        found.sort_by(|one, other| one.id.cmp(&other.id));
        let after = page.after.as_ref().map_or("", Cursor::as_str);
        let rest = found.into_iter().filter(|job| job.id.as_str() > after);
        Ok(Page::cut(rest, &page, |job| job.id.as_str().to_owned()))
    }

    async fn resume(&self, id: &JobId, reason: PauseReason, now: Timestamp) -> Result<bool> {
        let mut jobs = self.jobs.lock();
        let is_paused_for = |job: &Job| job.status == JobStatus::Paused && job.pause_reason == Some(reason);
        let paused = find(&mut jobs, id).filter(|stored| is_paused_for(&stored.job));
        let is_paused = paused.is_some();
        if let Some(stored) = paused {
            stored.job.resume(now);
            stored.listing.failing_since = None;
            stored.items.iter_mut().for_each(|item| item.failing_since = item.failing_since.map(|_| now));
        }
        Ok(is_paused)
    }

    async fn figures(&self) -> Result<Vec<JobFigures>> {
        let jobs = self.jobs.lock();
        let states = JobStatus::ALL.into_iter().filter(|status| !status.has_ended());
        let figures = |status| {
            let found = jobs.iter().map(|stored| &stored.job).filter(|job| job.status == status);
            let empty = JobFigures { status, jobs: 0, queued_items: 0, running_items: 0 };
            found.fold(empty, |sum, job| JobFigures {
                jobs: sum.jobs + 1,
                queued_items: sum.queued_items + job.counts.queued(),
                running_items: sum.running_items + job.counts.running,
                ..sum
            })
        };
        Ok(states.map(figures).collect())
    }

    async fn delete_ended(&self, before: Timestamp, limit: u32) -> Result<u64> {
        let mut left = limit;
        let mut jobs = self.jobs.lock();
        let count = jobs.len();
        jobs.sort_by_key(|stored| stored.job.ended_at);
        jobs.retain(|stored| {
            let has_ended = stored.is_over() && stored.job.ended_at.is_some_and(|ended| ended < before);
            let is_old = has_ended && left > 0;
            left -= u32::from(is_old);
            !is_old
        });
        Ok((count - jobs.len()) as u64)
    }

    async fn discard_for_account(&self, account: &AccountId) -> Result<u64> {
        let mut jobs = self.jobs.lock();
        let is_own = |job: &Job| job.account == *account && job.ended_at != Some(Timestamp::from_millis(0));
        let mut own: Vec<_> = jobs.iter_mut().filter(|stored| is_own(&stored.job)).collect();
        own.iter_mut().for_each(|stored| stored.discard());
        self.secrets.lock().remove(account);
        Ok(own.len() as u64)
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::jobs_conformance!(Arc::new(super::MemoryJobs::default()));
    crate::job_lists_conformance!(Arc::new(super::MemoryJobs::default()));
}
