//! The checks of paused jobs, and the deletion of old ones.

use std::collections::{HashMap, hash_map::Entry};

use super::{AccountJobs, Job, PauseReason, RETENTION, worker::CHECK_INTERVAL};
use crate::{
    directory::AccountRef,
    error::{ErrorKind, Result},
    ids::AccountId,
};

/// Jobs whose pause is checked at a time, those that are due longest first.
const ROUND_MAX: u32 = 32;
/// Jobs that are deleted at a time: their items are many rows in one transaction.
const DELETED_MAX: u32 = 8;

/// What decides whether the jobs of an account resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayerState {
    /// It was erased.
    Closed,
    Blocked,
    /// It has too few credits for an item.
    Poor,
    Solvent,
}

impl PayerState {
    /// Whether a job of the account resumes that is paused for this reason.
    fn ends(self, reason: PauseReason) -> bool {
        match self {
            // The items of a closed account fail.
            Self::Closed | Self::Solvent => true,
            Self::Blocked => false,
            // An item that the account cannot pay pauses the job again, for that reason. A list costs nothing.
            Self::Poor => reason == PauseReason::AccountBlocked,
        }
    }
}

impl AccountJobs {
    /// Resumes paused jobs whose reason is gone: a few, because the claims of items wait for it.
    ///
    /// Returns whether there may be more that are due.
    ///
    /// # Errors
    /// A store is unavailable. Another error of one job is logged, and delays no other job.
    pub(super) async fn check_pauses(&self) -> Result<bool> {
        let now = self.context.now();
        let jobs = self.store.take_paused(now, now.plus(CHECK_INTERVAL), ROUND_MAX).await?;
        let is_full = jobs.len() >= ROUND_MAX as usize;
        // An account may have many paused jobs: it is read once.
        let mut payers = HashMap::new();
        for job in jobs {
            match self.resume_if_possible(&job, &mut payers).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                Err(error) => tracing::warn!(job = %job.id, %error, "pause of a job not checked"),
                Ok(()) => {}
            }
        }
        Ok(is_full)
    }

    async fn resume_if_possible(&self, job: &Job, payers: &mut HashMap<AccountId, PayerState>) -> Result<()> {
        let Some(reason) = job.pause_reason else { return Ok(()) };
        let payer = match payers.entry(job.account.clone()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(self.payer_state(&job.account).await?),
        };
        if payer.ends(reason) {
            self.store.resume(&job.id, reason, self.context.now()).await?;
        }
        Ok(())
    }

    async fn payer_state(&self, account: &AccountId) -> Result<PayerState> {
        let account = self.directory.account(&AccountRef::Id(account.clone())).await?;
        let Some(account) = account else { return Ok(PayerState::Closed) };
        if account.blocked {
            return Ok(PayerState::Blocked);
        }
        let balance = self.credits.balance(&account).await?;
        let has_credits = balance.remaining >= self.context.options.credits_per_transcript;
        Ok(if has_credits { PayerState::Solvent } else { PayerState::Poor })
    }

    /// Deletes a few jobs that ended long ago.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn delete_old(&self) -> Result<()> {
        self.store.delete_ended(self.context.now().minus(RETENTION), DELETED_MAX).await.map(drop)
    }
}
