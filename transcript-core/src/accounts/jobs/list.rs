//! The list of a job, as a [`JobStore`](super::JobStore) stores it, and the effect of reading it.

use std::collections::HashSet;

use super::{ItemFailure, Job, JobCounts, JobStatus, PauseReason};
use crate::{
    ids::{AccountId, JobId},
    supplier::ListPosition,
    time::Timestamp,
    video::{VideoId, VideoList},
};

/// The list whose videos are the items of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceList {
    /// The playlist, channel, search or profile.
    pub list: VideoList,
    /// The largest number of items.
    pub limit: u64,
    /// Videos that were surely published before this time are left out.
    pub since: Option<Timestamp>,
    /// Whether pages of it are still to be read.
    pub is_open: bool,
}

/// The claim of a server on the next page of a list. A later claim ends an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListingClaim {
    /// The job.
    pub job: JobId,
    /// The number of the claim, from 1.
    pub number: u64,
}

/// A claimed page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedListing {
    /// The claim.
    pub claim: ListingClaim,
    /// The account that owns the job.
    pub account: AccountId,
    /// When the job was created.
    pub job_created_at: Timestamp,
    /// The list.
    pub list: SourceList,
    /// The number of items of the pages before.
    pub items: u64,
    /// The position of the page; `None`: the beginning.
    pub position: Option<ListPosition>,
    /// The number of attempts at this page that failed for a reason that may pass.
    pub attempts: u32,
    /// The number of claims of this page in a row that ended with their lease.
    pub interruptions: u32,
    /// The time of the first of its failures without an attempt, as that of [`super::ClaimedItem`].
    pub failing_since: Option<Timestamp>,
}

/// How the work on a page ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListingOutcome {
    /// It was read.
    Page {
        /// The videos, in order. One that the job has already adds no item.
        videos: Vec<VideoId>,
        /// The position of the next page; `None` after the last one.
        next: Option<ListPosition>,
    },
    /// The list cannot be read: the job fails.
    Failed(ItemFailure),
    /// The page is read again later.
    Again {
        /// When it is due.
        due_at: Timestamp,
        /// Whether it failed without an attempt.
        is_failure: bool,
        /// Whether an attempt failed.
        is_attempt: bool,
    },
    /// The job pauses: the page is read after it is resumed.
    Paused {
        /// Why.
        reason: PauseReason,
        /// When the reason is checked.
        due_at: Timestamp,
    },
}

/// Effects of reading a list on the row of its job. Every store uses them.
impl Job {
    /// A new job with the videos of a list.
    pub fn of_list(
        id: JobId,
        account: AccountId,
        language: Option<String>,
        list: SourceList,
        now: Timestamp,
    ) -> Self {
        Self {
            status: JobStatus::Listing,
            list: Some(list),
            counts: JobCounts::default(),
            ended_at: None,
            due_at: Some(now),
            ..Self::new(id, account, language, &[], now)
        }
    }

    /// Whether pages of its list are still to be read.
    pub fn is_list_open(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.is_open)
    }

    /// The videos of a page that become items: each once, at most as many as the list may have.
    pub fn new_videos(&self, videos: &[VideoId], known: impl IntoIterator<Item = String>) -> Vec<VideoId> {
        let limit = self.list.as_ref().map_or(0, |list| list.limit);
        let places = usize::try_from(limit.saturating_sub(self.counts.total)).unwrap_or(usize::MAX);
        let mut known: HashSet<String> = known.into_iter().collect();
        let new = videos.iter().filter(|video| known.insert(video.to_string()));
        new.take(places).cloned().collect()
    }

    /// A page adds items. The last one ends the list.
    pub fn add_page(&mut self, added: u64, is_last: bool, now: Timestamp) {
        self.counts.total = self.counts.total.saturating_add(added);
        let Some(list) = &mut self.list else { return };
        list.is_open = !is_last && self.counts.total < list.limit;
        if self.status == JobStatus::Listing {
            self.status = if list.is_open { JobStatus::Listing } else { JobStatus::Queued };
            self.due_at = Some(now);
        }
        self.complete_if_done(now);
    }

    /// A page is read again at this time.
    pub fn delay_list(&mut self, due_at: Timestamp) {
        if self.status == JobStatus::Listing {
            self.due_at = Some(due_at);
        }
    }

    /// The job pauses while its list is read.
    pub fn pause_list(&mut self, reason: PauseReason, due_at: Timestamp) {
        if self.status == JobStatus::Listing {
            self.status = JobStatus::Paused;
            self.pause_reason = Some(reason);
            self.due_at = Some(due_at);
        }
    }

    /// The list cannot be read. Its `skipped` items have not started.
    pub fn fail_list(&mut self, failure: ItemFailure, skipped: u64, now: Timestamp) {
        self.counts.skipped = self.counts.skipped.saturating_add(skipped);
        self.status = JobStatus::Failed;
        self.failure = Some(failure);
        self.pause_reason = None;
        self.ended_at = Some(now);
        self.due_at = None;
        self.close_list();
    }

    /// No more pages are read.
    pub(super) fn close_list(&mut self) {
        if let Some(list) = &mut self.list {
            list.is_open = false;
        }
    }
}
