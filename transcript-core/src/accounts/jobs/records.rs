//! Jobs and their items, as a [`JobStore`](super::JobStore) stores them, and the effect of each operation on them.

use std::time::Duration;

use super::SourceList;
use crate::{
    ids::{AccountId, JobId},
    names::names,
    time::Timestamp,
    video::VideoId,
};

/// The time without a claim that counts to the failures of a due item or page.
const UNCLAIMED_MAX: Duration = Duration::from_secs(3_600);

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobStatus {
    /// The videos of its list are being read.
    Listing,
    /// No item has started.
    Queued,
    /// Items are fetched and delivered.
    Running,
    /// No item starts until the reason of the pause is gone.
    Paused,
    /// Every item has ended.
    Completed,
    /// The account cancelled it: items that had started end, the others are skipped.
    Cancelled,
    /// Its list could not be read.
    Failed,
}

names!(JobStatus, from_name {
    Listing = "listing",
    Queued = "queued",
    Running = "running",
    Paused = "paused",
    Completed = "completed",
    Cancelled = "cancelled",
    Failed = "failed",
});

impl JobStatus {
    /// Whether the job has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Failed)
    }
}

/// Why a job is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PauseReason {
    /// The account has too few credits.
    PaymentRequired,
    /// The account is blocked.
    AccountBlocked,
    /// The operator of the service paused it; only the operator resumes it.
    Operator,
}

names!(PauseReason, from_name {
    PaymentRequired = "payment_required",
    AccountBlocked = "account_blocked",
    Operator = "operator",
});

/// The state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemStatus {
    /// It waits.
    Queued,
    /// A server works on it.
    Running,
    /// Its transcript is delivered and charged.
    Done,
    /// There is no transcript. Nothing is charged.
    Failed,
    /// The job was cancelled before it started.
    Skipped,
}

names!(ItemStatus, from_name {
    Queued = "queued",
    Running = "running",
    Done = "done",
    Failed = "failed",
    Skipped = "skipped",
});

/// The number of items of a job by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// All items.
    pub total: u64,
    /// Items that a server works on.
    pub running: u64,
    /// Items whose transcript is delivered.
    pub done: u64,
    /// Items without a transcript.
    pub failed: u64,
    /// Items that a cancellation left out.
    pub skipped: u64,
}

impl JobCounts {
    /// Items that wait.
    pub fn queued(&self) -> u64 {
        self.total.saturating_sub(self.running.saturating_add(self.ended()))
    }

    /// Items that have ended.
    pub fn ended(&self) -> u64 {
        self.done.saturating_add(self.failed).saturating_add(self.skipped)
    }
}

/// A job: transcripts of many videos for one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The id.
    pub id: JobId,
    /// The account that owns it and pays.
    pub account: AccountId,
    /// The state.
    pub status: JobStatus,
    /// The language tag of the request; `None`: English.
    pub language: Option<String>,
    /// Where its events are sent; `None`: nowhere.
    pub callback_url: Option<String>,
    /// The list whose videos are its items; `None`: its items are links.
    pub list: Option<SourceList>,
    /// Why it is paused; `None` if it is not.
    pub pause_reason: Option<PauseReason>,
    /// Why its list could not be read.
    pub failure: Option<ItemFailure>,
    /// Its items by state.
    pub counts: JobCounts,
    /// The credits that its items cost.
    pub spent: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When an item may be due, or the reason of a pause is checked again; `None` if there is nothing to do.
    pub due_at: Option<Timestamp>,
}

/// An item of a new job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// The link, as the caller sent it.
    pub url: String,
    /// The video; the failure if the link names none.
    pub video: Result<VideoId, ItemFailure>,
}

impl NewItem {
    /// The item of a listed video.
    pub fn of_video(video: VideoId) -> Self {
        Self { url: video.address(), video: Ok(video) }
    }
}

/// Why an item has no transcript, or why a list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemFailure {
    /// The machine-readable reason.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

/// An item of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobItem {
    /// The position in the job, from 0.
    pub index: u64,
    /// The link, as the caller sent it.
    pub url: String,
    /// The video; `None` if the link names none.
    pub video: Option<VideoId>,
    /// The state.
    pub status: ItemStatus,
    /// Why it failed.
    pub failure: Option<ItemFailure>,
}

/// The claim of a server on an item. A later claim ends an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItemClaim {
    /// The job.
    pub job: JobId,
    /// The position of the item.
    pub index: u64,
    /// The number of the claim, from 1.
    pub number: u64,
}

impl ItemClaim {
    /// The time of the first failure of an item, or of the page of a list, that is claimed at `now`.
    ///
    /// It is `stored`, moved by the time since `due_at` that does not count. At most an hour counts, because perhaps no
    /// server ran. That hour counts because the failing items of a large job wait for each other, and must end.
    pub fn failing_since(stored: Option<Timestamp>, due_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let uncounted = now.since(due_at).saturating_sub(UNCLAIMED_MAX);
        stored.map(|since| since.plus(uncounted))
    }
}

/// A claimed item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedItem {
    /// The claim.
    pub claim: ItemClaim,
    /// The account that pays.
    pub account: AccountId,
    /// When the job was created.
    pub job_created_at: Timestamp,
    /// The language tag of the job.
    pub language: Option<String>,
    /// Whether the job was cancelled after the item had started.
    pub is_cancelled: bool,
    /// The video.
    pub video: VideoId,
    /// The number of earlier attempts that failed for a reason that may pass.
    pub attempts: u32,
    /// The number of claims in a row that ended with their lease.
    pub interruptions: u32,
    /// The time of the first of its failures without an attempt; `None` if it does not fail.
    ///
    /// [`ItemReturn::failing_since`] and [`ItemClaim::failing_since`] count it.
    pub failing_since: Option<Timestamp>,
}

/// How an item ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// The transcript is delivered, for this many credits.
    Done {
        /// The credits.
        spent: u64,
    },
    /// There is no transcript.
    Failed(ItemFailure),
    /// It was left out.
    Skipped,
}

impl ItemOutcome {
    /// The state of the item.
    pub fn status(&self) -> ItemStatus {
        match self {
            Self::Done { .. } => ItemStatus::Done,
            Self::Failed(_) => ItemStatus::Failed,
            Self::Skipped => ItemStatus::Skipped,
        }
    }

    /// The credits that it cost.
    pub fn spent(&self) -> u64 {
        match self {
            Self::Done { spent } => *spent,
            Self::Failed(_) | Self::Skipped => 0,
        }
    }

    /// Why there is no transcript.
    pub fn failure(&self) -> Option<&ItemFailure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Done { .. } | Self::Skipped => None,
        }
    }
}

/// Returns a claimed item to the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemReturn {
    /// When it is due again.
    pub due_at: Timestamp,
    /// Whether it failed without an attempt.
    pub is_failure: bool,
    /// Whether an attempt failed.
    pub is_attempt: bool,
    /// The pause of the job, if it has a reason to pause.
    pub pause: Option<PauseReason>,
}

impl ItemReturn {
    /// The time of the first failure of the item, or of the page of a list that is returned in the same way.
    ///
    /// An attempt ends the failures before it. The time in which it waits without a failure does not count: it moves
    /// `stored`.
    pub fn failing_since(&self, stored: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        match (self.is_attempt, self.is_failure) {
            (true, _) => None,
            (false, true) => Some(stored.map_or(now, |since| since.min(now))),
            (false, false) => stored.map(|since| since.plus(self.due_at.since(now))),
        }
    }
}

/// Effects of operations on the row of a job. Every store uses them.
impl Job {
    /// A new job with these items.
    pub fn new(
        id: JobId,
        account: AccountId,
        language: Option<String>,
        items: &[NewItem],
        now: Timestamp,
    ) -> Self {
        let failed = items.iter().filter(|item| item.video.is_err()).count() as u64;
        let counts = JobCounts { total: items.len() as u64, failed, ..JobCounts::default() };
        let mut job = Self {
            id,
            account,
            status: JobStatus::Queued,
            language,
            callback_url: None,
            list: None,
            pause_reason: None,
            failure: None,
            counts,
            spent: 0,
            created_at: now,
            ended_at: None,
            due_at: Some(now),
        };
        job.complete_if_done(now);
        job
    }

    /// Whether a new job has the parameters of this one, apart from links.
    ///
    /// `names_limit` is whether its request names the limit of its list: otherwise that is a setting, which may have
    /// changed.
    pub(super) fn is_same_request(&self, new: &Self, names_limit: bool) -> bool {
        let limit = |list: &SourceList| names_limit.then_some(list.limit);
        let list = |job: &Self| job.list.as_ref().map(|list| (list.list.clone(), limit(list), list.since));
        let links = |job: &Self| job.list.is_none().then_some(job.counts.total);
        (&self.language, &self.callback_url) == (&new.language, &new.callback_url)
            && (list(self), links(self)) == (list(new), links(new))
    }

    /// An item starts, for the first time or again after its lease expired.
    pub fn start_item(&mut self, was_running: bool) {
        if !was_running {
            self.counts.running = self.counts.running.saturating_add(1);
        }
        if self.status == JobStatus::Queued {
            self.status = JobStatus::Running;
        }
    }

    /// A running item ends.
    pub fn end_item(&mut self, outcome: &ItemOutcome, now: Timestamp) {
        self.counts.running = self.counts.running.saturating_sub(1);
        let count = match outcome {
            ItemOutcome::Done { .. } => &mut self.counts.done,
            ItemOutcome::Failed(_) => &mut self.counts.failed,
            ItemOutcome::Skipped => &mut self.counts.skipped,
        };
        *count = count.saturating_add(1);
        self.spent = self.spent.saturating_add(outcome.spent());
        self.complete_if_done(now);
    }

    /// A running item returns to the queue.
    pub fn return_item(&mut self, returned: &ItemReturn) {
        self.counts.running = self.counts.running.saturating_sub(1);
        match returned.pause {
            Some(reason) if matches!(self.status, JobStatus::Queued | JobStatus::Running) => {
                self.status = JobStatus::Paused;
                self.pause_reason = Some(reason);
                self.due_at = Some(returned.due_at);
            }
            _ if self.status == JobStatus::Paused => {}
            _ => self.due_at = Some(self.due_at.map_or(returned.due_at, |due| due.min(returned.due_at))),
        }
    }

    /// The operator pauses the job: items that have started end, and nothing checks the pause.
    pub fn pause_by_operator(&mut self) {
        if !self.status.has_ended() {
            self.status = JobStatus::Paused;
            self.pause_reason = Some(PauseReason::Operator);
            self.due_at = Some(Timestamp::from_millis(i64::MAX));
        }
    }

    /// The reason of the pause is gone.
    pub fn resume(&mut self, now: Timestamp) {
        if self.status == JobStatus::Paused {
            self.status = if self.is_list_open() { JobStatus::Listing } else { JobStatus::Running };
            self.pause_reason = None;
            self.due_at = Some(now);
        }
    }

    /// The account cancels the job: `skipped` items had not started; the next of the others is due at `due_at`.
    pub fn cancel(&mut self, skipped: u64, due_at: Option<Timestamp>, now: Timestamp) {
        self.counts.skipped = self.counts.skipped.saturating_add(skipped);
        self.status = JobStatus::Cancelled;
        self.pause_reason = None;
        self.ended_at = Some(now);
        self.due_at = due_at;
        self.close_list();
    }

    pub(super) fn complete_if_done(&mut self, now: Timestamp) {
        if self.counts.ended() < self.counts.total || self.is_list_open() {
            return;
        }
        self.due_at = None;
        if !self.status.has_ended() {
            self.status = JobStatus::Completed;
            self.pause_reason = None;
            self.ended_at = Some(now);
        }
    }
}
