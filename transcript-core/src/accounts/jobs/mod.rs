//! Jobs: transcripts of many videos for one account (specification 4.18).
//!
//! A job is stored with its items before its request is answered; those of a list are added page by page
//! ([`JobStore::claim_listing`]). The servers on a database claim due items ([`JobStore::claim`]), an item of each
//! account in turn. A claim is a lease: after the end of its server another one takes over. A transcript is charged in
//! one step under an id that is derived from job and item, so that a repeated delivery changes nothing.

mod api;
mod fetch;
mod item_transcript;
mod list;
mod list_worker;
mod operator;
mod pauses;
mod records;
mod runner;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod worker;

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;

pub use api::{CreatedJob, JobPage, JobView, PAGE_MAX, ResultsPage};
pub use item_transcript::ItemTranscript;
pub use list::{ClaimedListing, ListingClaim, ListingOutcome, SourceList};
pub use records::{
    ClaimedItem, ItemClaim, ItemFailure, ItemOutcome, ItemReturn, ItemStatus, Job, JobCounts, JobItem,
    JobStatus, NewItem, PauseReason,
};
pub use runner::run_jobs;
pub use source::JobParams;
pub use store::{ClaimLimits, CreateJobOutcome, JobFigures, JobLimits, JobStore};

use super::{AccountCredits, Delivery, call_context::CallContext};
use crate::{
    directory::{Account, AccountRef, Directory},
    error::Result,
    ids::AccountId,
};

/// The largest number of jobs of an account that are stored.
pub(super) const STORED_MAX: u32 = 100;
/// How long an ended job is stored.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// The jobs of accounts: requests about them, and the work on their items.
///
/// Uses the store of jobs, the engine, the ledger through [`AccountCredits`], and the directory.
#[derive(Debug)]
pub struct AccountJobs {
    pub(super) context: Arc<CallContext>,
    pub(super) credits: Arc<AccountCredits>,
    pub(super) delivery: Arc<Delivery>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) store: Arc<dyn JobStore>,
    /// Wakes the runner of this process.
    pub(super) wake: Arc<Notify>,
}

impl AccountJobs {
    /// The store of jobs.
    pub fn store(&self) -> &Arc<dyn JobStore> {
        &self.store
    }

    /// The account with this id; `None` if it was erased.
    async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
        let reference = AccountRef::Id(id.clone());
        self.context.retry_store(|| self.directory.account(&reference)).await
    }

    fn limits(&self) -> JobLimits {
        let unfinished = self.context.options.jobs_per_account;
        JobLimits { unfinished, stored: STORED_MAX.max(unfinished.saturating_add(1)) }
    }
}
