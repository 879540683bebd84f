//! The work on a claimed item.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use super::{
    AccountJobs, ClaimLimits, ClaimedItem, ItemClaim, ItemFailure, ItemOutcome, ItemReturn, Job,
    ListingClaim, ListingOutcome, PauseReason, RETENTION,
    fetch::{ItemFetch, charge_id},
};
use crate::{
    accounts::{
        Memo, V1Error,
        transcript::{LanguagePreference, PreferredTrack},
    },
    directory::{Account, AccountRef},
    engine::{FailureReason, NoTranscript},
    error::{ErrorKind, Result},
    ids::{HoldId, JobId},
    ledger::{HoldOutcome, HoldState, SettleOutcome, SpendResult},
    retry::{Backoff, retry_store_persistently, with_timeout},
    time::Timestamp,
};

/// Attempts at an item, or a page of a list, that reached an upstream and failed for a reason that may pass.
pub(super) const ATTEMPTS_MAX: u32 = 4;
/// How long an item or a page is tried whose requests fail before they reach an upstream.
pub(super) const FAILING_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Pause before the second attempt; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause of an item.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Pause after a failure of a store.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(10);
/// How often the reason of a pause is checked.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Jobs whose pause is checked at a time, those that are due longest first.
const ROUND_MAX: u32 = 32;
/// Jobs that are deleted at a time: their items are many rows in one transaction.
const DELETED_MAX: u32 = 8;

/// The claim of this process on a part of a job.
#[derive(Clone, Debug)]
pub(super) enum Claim {
    Item(ItemClaim),
    Listing(ListingClaim),
}

impl Claim {
    fn job(&self) -> &JobId {
        match self {
            Self::Item(claim) => &claim.job,
            Self::Listing(claim) => &claim.job,
        }
    }
}

/// A failed fetch that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FetchFailure {
    /// Whether it reached an upstream, so that it counts as an attempt.
    pub(super) is_attempt: bool,
}

/// How the work on an item ends.
#[derive(Debug)]
pub(super) enum ItemEnd {
    /// The item ends.
    Ended(ItemOutcome),
    /// It is due again after this time.
    Again {
        /// The time.
        pause: Duration,
        /// Whether a fetch failed, and whether it reached an upstream.
        failure: Option<FetchFailure>,
    },
    /// The job pauses.
    Pause(PauseReason),
    /// The charge may have been made: the item is due when its lease ends, and the charge is then repeated.
    Unknown,
}

impl AccountJobs {
    /// Claims due items.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn claim(&self, limits: ClaimLimits) -> Result<Vec<ClaimedItem>> {
        let now = self.context.now();
        let options = self.context.transcripts.options();
        with_timeout(options.store_timeout, self.store.claim(now, now.plus(options.hold), limits)).await
    }

    /// Works on a claimed item until it ends, or returns to the queue, or its claim ends.
    ///
    /// # Cancellation
    /// A dropped item is due again when its lease ends, or when [`AccountJobs::give_up`] returns it.
    pub(super) async fn work(self: Arc<Self>, item: ClaimedItem) {
        let mut heartbeat = JoinSet::new();
        heartbeat.spawn(Arc::clone(&self).keep_claim(Claim::Item(item.claim.clone())));
        // The cause of an error is logged where it happened.
        let later = ItemEnd::Again { pause: STORE_PAUSE, failure: None };
        let end = tokio::select! {
            biased;
            end = self.obtain(&item) => end.unwrap_or(later),
            // The job was deleted, or another server has the item: its place is for other items.
            _ = heartbeat.join_next() => {
                tracing::info!(job = %item.claim.job, "claim of a job item ended during its work");
                return;
            }
        };
        let stored = match end {
            ItemEnd::Unknown => return,
            ItemEnd::Ended(outcome) => self.end(&item, outcome).await,
            // What a cancellation interrupts is not tried again.
            ItemEnd::Again { .. } | ItemEnd::Pause(_) if item.is_cancelled => {
                self.end(&item, ItemOutcome::Skipped).await
            }
            ItemEnd::Again { pause, failure } => self.again(&item, pause, failure, None).await,
            ItemEnd::Pause(reason) => self.again(&item, CHECK_INTERVAL, None, Some(reason)).await,
        };
        match stored {
            Ok(true) => {}
            Ok(false) => tracing::info!(job = %item.claim.job, "claim of a job item ended before its work"),
            Err(error) => tracing::warn!(job = %item.claim.job, %error, "job item not stored"),
        }
    }

    /// Delivers the transcript of an item, and charges it.
    async fn obtain(&self, item: &ClaimedItem) -> Result<ItemEnd, V1Error> {
        let reference = AccountRef::Id(item.account.clone());
        let account = self.context.retry_store(|| self.directory.account(&reference)).await;
        let account = match account.map_err(V1Error::from_store_error)? {
            Some(account) if !account.blocked => account,
            Some(_) => return Ok(ItemEnd::Pause(PauseReason::AccountBlocked)),
            None => return Ok(ended(account_closed())),
        };
        let preference = LanguagePreference::parse(item.language.as_deref())?;
        let selector = match self.delivery.find_archived(&item.video, &preference).await {
            Ok(PreferredTrack::Archived(_)) => return self.charge(&account, item).await,
            Ok(PreferredTrack::Missing(selector)) => selector,
            Err(V1Error::Unavailable(none)) => return Ok(no_captions(none.message)),
            Err(error) => return Err(error),
        };
        match self.fetch(&account, item, &preference, selector).await? {
            ItemFetch::Archived => {}
            ItemFetch::Unavailable(none) => return Ok(unavailable(none, item, self.context.now())),
            ItemFetch::PaymentRequired => return Ok(ItemEnd::Pause(PauseReason::PaymentRequired)),
            ItemFetch::Limited(seconds) => {
                let pause = Duration::from_secs(seconds).min(PAUSE_MAX);
                return Ok(ItemEnd::Again { pause, failure: None });
            }
        }
        // The video may have no transcript in the language.
        match self.delivery.find_archived(&item.video, &preference).await {
            Ok(PreferredTrack::Archived(_)) => self.charge(&account, item).await,
            Ok(PreferredTrack::Missing(_)) => {
                Ok(no_captions("This video has no transcript in this language.".to_owned()))
            }
            Err(V1Error::Unavailable(none)) => Ok(no_captions(none.message)),
            Err(error) => Err(error),
        }
    }

    /// Charges a delivered item in one step. The id of the charge is the same for every claim.
    async fn charge(&self, account: &Account, item: &ClaimedItem) -> Result<ItemEnd, V1Error> {
        let context = &self.context;
        let (now, cost) = (context.now(), context.options.credits_per_transcript);
        let plan = context.effective_plan(account, now);
        let memo = Memo::Transcript(item.video.clone()).to_string();
        let request = self.credits.hold_request_at(now, account, &plan, charge_id(item), cost, &memo);
        let spent = self.credits.holds.spend(&request).await.map_err(V1Error::from_store_error)?;
        Ok(match spent {
            SpendResult::Spent(_) => ItemEnd::Ended(ItemOutcome::Done { spent: cost }),
            SpendResult::Refused(HoldOutcome::Insufficient { .. }) => {
                ItemEnd::Pause(PauseReason::PaymentRequired)
            }
            SpendResult::Refused(HoldOutcome::Conflict) => self.end_charged(item, &request.id).await?,
            SpendResult::Refused(outcome) => not_charged(item, &outcome),
            SpendResult::Unknown => ItemEnd::Unknown,
        })
    }

    /// Ends an item that an earlier claim has charged at another price.
    async fn end_charged(&self, item: &ClaimedItem, id: &HoldId) -> Result<ItemEnd, V1Error> {
        // A spend is settled: this changes nothing, and returns what was spent.
        let settled = self.credits.holds.settle(id, vec![0]).await.map_err(V1Error::from_store_error)?;
        Ok(match settled {
            SettleOutcome::Exists { state: HoldState::Settled { spent } } => {
                ItemEnd::Ended(ItemOutcome::Done { spent: spent.iter().sum() })
            }
            outcome => not_charged(item, &outcome),
        })
    }

    async fn end(&self, item: &ClaimedItem, outcome: ItemOutcome) -> Result<bool> {
        let policy = self.context.transcripts.options().hold_policy();
        let end = || self.store.end_item(&item.claim, outcome.clone(), self.context.now());
        retry_store_persistently(policy, end).await
    }

    async fn again(
        &self,
        item: &ClaimedItem,
        pause: Duration,
        failure: Option<FetchFailure>,
        reason: Option<PauseReason>,
    ) -> Result<bool> {
        let due_at = self.context.now().plus(pause);
        let is_attempt = failure.is_some_and(|failure| failure.is_attempt);
        let returned = ItemReturn { due_at, is_failure: failure.is_some(), is_attempt, pause: reason };
        let give_back = || self.store.return_item(&item.claim, returned.clone(), self.context.now());
        self.context.retry_store(give_back).await
    }

    /// Returns a claim of a process that stops, so that another one takes over at once.
    pub(super) async fn give_up(self: Arc<Self>, claim: Claim) {
        let now = self.context.now();
        let returned = match &claim {
            Claim::Item(claim) => {
                let returned = ItemReturn { due_at: now, is_failure: false, is_attempt: false, pause: None };
                self.store.return_item(claim, returned, now).await
            }
            Claim::Listing(claim) => {
                let again = ListingOutcome::Again { due_at: now, is_failure: false, is_attempt: false };
                self.store.end_listing(claim, again, now).await
            }
        };
        if let Err(error) = returned {
            tracing::debug!(job = %claim.job(), %error, "claim of a job not returned");
        }
    }

    /// Extends a claim in a loop. A failed extension is retried by the next heartbeat.
    ///
    /// Returns once the claim of an item has ended. That of a list cannot be extended while its job is paused.
    pub(super) async fn keep_claim(self: Arc<Self>, claim: Claim) {
        let options = self.context.transcripts.options();
        loop {
            tokio::time::sleep(options.hold_heartbeat).await;
            let lease_until = self.context.now().plus(options.hold);
            let extension = match &claim {
                Claim::Item(claim) => self.store.extend(claim, lease_until),
                Claim::Listing(claim) => self.store.extend_listing(claim, lease_until),
            };
            match with_timeout(options.store_timeout, extension).await {
                Ok(false) if matches!(claim, Claim::Item(_)) => return,
                Ok(_) => {}
                Err(error) => tracing::warn!(job = %claim.job(), %error, "claim of a job not extended"),
            }
        }
    }

    /// Resumes paused jobs whose reason is gone: a few, because the claims of items wait for it.
    ///
    /// # Errors
    /// A store is unavailable. Another error of one job is logged, and delays no other job.
    pub(super) async fn check_pauses(&self) -> Result<()> {
        let now = self.context.now();
        for job in self.store.take_paused(now, now.plus(CHECK_INTERVAL), ROUND_MAX).await? {
            match self.resume_if_possible(&job).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                Err(error) => tracing::warn!(job = %job.id, %error, "pause of a job not checked"),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    async fn resume_if_possible(&self, job: &Job) -> Result<()> {
        if let Some(reason) = job.pause_reason
            && self.can_resume(job).await?
        {
            self.store.resume(&job.id, reason, self.context.now()).await?;
        }
        Ok(())
    }

    async fn can_resume(&self, job: &Job) -> Result<bool> {
        let account = self.directory.account(&AccountRef::Id(job.account.clone())).await?;
        // The items of a closed account fail.
        let Some(account) = account else { return Ok(true) };
        if account.blocked {
            return Ok(false);
        }
        // An item that the account cannot pay pauses the job again, for that reason. A list costs nothing.
        if job.pause_reason == Some(PauseReason::AccountBlocked) {
            return Ok(true);
        }
        let balance = self.credits.balance(&account).await?;
        Ok(balance.remaining >= self.context.options.credits_per_transcript)
    }

    /// Deletes a few jobs that ended long ago.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn delete_old(&self) -> Result<()> {
        self.store.delete_ended(self.context.now().minus(RETENTION), DELETED_MAX).await.map(drop)
    }
}

pub(super) fn failure(reason: &str, message: impl Into<String>) -> ItemFailure {
    ItemFailure { reason: reason.to_owned(), message: message.into() }
}

pub(super) fn account_closed() -> ItemFailure {
    failure("account_closed", "The account was closed.")
}

fn ended(failure: ItemFailure) -> ItemEnd {
    ItemEnd::Ended(ItemOutcome::Failed(failure))
}

fn not_charged(item: &ClaimedItem, outcome: &impl std::fmt::Debug) -> ItemEnd {
    tracing::error!(job = %item.claim.job, ?outcome, "job item not charged");
    ItemEnd::Again { pause: PAUSE_MAX, failure: None }
}

fn no_captions(message: String) -> ItemEnd {
    ended(failure(FailureReason::NoCaptions.as_str(), message))
}

/// What follows from a fetch of an item without a transcript.
pub(super) fn unavailable(none: NoTranscript, item: &ClaimedItem, now: Timestamp) -> ItemEnd {
    let is_over = item.failing_since.is_some_and(|since| now.since(since) >= FAILING_MAX);
    let is_final = match none.reason {
        FailureReason::NoCaptions | FailureReason::ConfigError => true,
        FailureReason::DailyCap => false,
        _ if none.attempted => item.attempts.saturating_add(1) >= ATTEMPTS_MAX,
        _ => is_over,
    };
    if is_final {
        let message = match none.attempted || !is_over {
            true => none.message,
            false => format!("The fetch was tried for a day and could not begin. {}", none.message),
        };
        return ended(failure(none.reason.as_str(), message));
    }
    let pause = pause_after(item.attempts, none.retry_after);
    // The limit of the service is no failure of a fetch: the item waits for the next day.
    let is_failure = none.reason != FailureReason::DailyCap;
    ItemEnd::Again { pause, failure: is_failure.then_some(FetchFailure { is_attempt: none.attempted }) }
}

/// The pause before a repetition: the named one, or one that grows with the attempts.
pub(super) fn pause_after(attempts: u32, named: Option<Duration>) -> Duration {
    let backoff = Backoff { first: FIRST_PAUSE, max: PAUSE_MAX }.pause(attempts, 1.0);
    named.unwrap_or(backoff).clamp(FIRST_PAUSE, PAUSE_MAX)
}
