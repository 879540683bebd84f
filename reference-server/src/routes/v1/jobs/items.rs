//! The items of a job, read a few at a time.

use std::collections::VecDeque;

use transcript_core::{
    accounts::{
        V1Error,
        jobs::{ItemTranscript, Job, JobItem, PAGE_MAX, ResultsPage},
    },
    transcript::TrackInfo,
};

use crate::state::AppState;

/// Reads the items of a job in order.
pub(super) struct ItemReader {
    app: AppState,
    job: Job,
    /// The items that were read and not returned.
    items: VecDeque<JobItem>,
    /// The position of the next item to be read; `None` after the last one.
    next: Option<u64>,
    /// Items that may still be read.
    left: u32,
}

impl ItemReader {
    /// A reader of `limit` items, of which the first ones were read.
    pub(super) fn new(app: AppState, found: ResultsPage, limit: u32) -> Self {
        let ResultsPage { job, items, next } = found;
        let left = limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        Self { app, job, items: items.into(), next, left }
    }

    /// Another reader of the same job.
    pub(super) fn restart(&self, from: u64, limit: u32) -> Self {
        Self {
            app: self.app.clone(),
            job: self.job.clone(),
            items: VecDeque::new(),
            next: Some(from),
            left: limit,
        }
    }

    pub(super) fn app(&self) -> &AppState {
        &self.app
    }

    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// The position after the items that were read; `None` after the last one.
    pub(super) fn next_page(&self) -> Option<u64> {
        self.next
    }

    /// The next item; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<JobItem>, V1Error> {
        if self.items.is_empty()
            && let Some(from) = self.next.filter(|_| self.left > 0)
        {
            let limit = self.left.min(PAGE_MAX);
            let ResultsPage { items, next, .. } =
                self.app.accounts.jobs.next_results(self.job.clone(), from, limit).await?;
            self.left = self.left.saturating_sub(limit);
            (self.items, self.next) = (items.into(), next);
        }
        Ok(self.items.pop_front())
    }

    /// The languages of an item that failed because its video has none in the language of the job.
    pub(super) async fn languages_instead(&self, item: &JobItem) -> Vec<TrackInfo> {
        self.app.accounts.jobs.languages_instead(&self.job, item).await
    }

    pub(super) async fn transcript(&self, item: &JobItem) -> Result<ItemTranscript, V1Error> {
        self.app.accounts.jobs.transcript(&self.job, item).await
    }
}
