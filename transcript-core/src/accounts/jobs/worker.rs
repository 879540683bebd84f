//! The work on a claimed item.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use super::{
    AccountJobs, ClaimLimits, ClaimedItem, ItemClaim, ItemFailure, ItemOutcome, ItemReturn, ListingClaim,
    ListingOutcome, PauseReason, RETENTION,
    fetch::{ItemFetch, charge_id},
};
use crate::{
    accounts::{
        Memo, V1Error,
        transcript::{LanguagePreference, PreferredTrack},
    },
    directory::Account,
    engine::{FailureReason, NoTranscript},
    error::Result,
    failure_log::log_failure,
    ids::JobId,
    ledger::{HoldOutcome, HoldState, SettleOutcome, SpendResult},
    retry::{Backoff, keep_renewed, retry_store_persistently, with_timeout},
    time::Timestamp,
};

/// Attempts at an item, or a page of a list, that reached an upstream and failed for a reason that may pass.
pub(super) const ATTEMPTS_MAX: u32 = 4;
/// Claims of an item, or a page of a list, in a row that ended with their lease: it may end each server, or its outcome
/// is not stored.
pub(super) const INTERRUPTIONS_MAX: u32 = 5;
/// How long an item or a page is tried that fails before it reaches an upstream.
const FAILING_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The reason of an item whose stored data cannot be read.
pub(super) const DAMAGED: &str = "damaged";
/// The reason of an item at which servers ended.
const INTERRUPTED: &str = "interrupted";
/// What an item says whose charge cannot be read.
const CHARGE_DAMAGED: &str =
    "The stored charge of this video is damaged. The operator of this service must repair it.";
/// What an item says whose fetches failed for a day before they reached an upstream.
const FAILED_TOO_LONG: &str = "The fetch was tried for a day and could not begin. ";
/// Pause before the second attempt; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause of an item.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Pause after a failure of a store.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(10);
/// How often the reason of a pause is checked.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(10);

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

/// A failure after which an item is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransientFailure {
    /// Whether its fetch reached an upstream, so that it counts as an attempt.
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
        /// The failure; `None` if the item only waits.
        failure: Option<TransientFailure>,
    },
    /// The job pauses.
    Pause(PauseReason),
    /// It is fetched, and the account has too few credits: the job pauses, and the item is due again after this time.
    ///
    /// It fails until it is charged, so a cancellation does not skip it.
    Unpaid(Duration),
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
        let end = tokio::select! {
            biased;
            end = self.obtain(&item) => end,
            // The job was deleted, or another server has the item: its place is for other items.
            _ = heartbeat.join_next() => {
                tracing::info!(job = %item.claim.job, "claim of a job item ended during its work");
                return;
            }
        };
        let stored = match end {
            ItemEnd::Ended(outcome) => self.end(&item, outcome).await,
            ItemEnd::Again { pause, failure } => self.again(&item, pause, failure, None).await,
            ItemEnd::Pause(reason) => self.again(&item, CHECK_INTERVAL, None, Some(reason)).await,
            ItemEnd::Unpaid(pause) => {
                let unpaid = Some(TransientFailure { is_attempt: false });
                self.again(&item, pause, unpaid, Some(PauseReason::PaymentRequired)).await
            }
        };
        match stored {
            Ok(true) => {}
            Ok(false) => tracing::info!(job = %item.claim.job, "claim of a job item ended before its work"),
            Err(error) => {
                log_failure!(warn, [job = %item.claim.job, %error], "job item not stored");
            }
        }
    }

    /// Delivers the transcript of an item, and charges it once, whatever happened to earlier claims.
    async fn obtain(&self, item: &ClaimedItem) -> ItemEnd {
        let mut charged = None;
        if item.claim.number > 1 {
            charged = match self.find_charge(item).await {
                Ok(charged) => charged,
                Err(end) => return end,
            };
        }
        if item.is_cancelled && charged.unwrap_or_default() == 0 {
            let ended = self.end_cancelled(item, charged).await;
            return ended.unwrap_or_else(|error| not_obtained(&error, item, self.context.now()));
        }
        if INTERRUPTIONS_MAX <= item.interruptions {
            return charged.map_or_else(|| ended(interrupted("video")), done);
        }
        let delivered = self.deliver(item, charged).await;
        let is_damaged = matches!(delivered, Err(V1Error::Damaged));
        let end = delivered.unwrap_or_else(|error| not_obtained(&error, item, self.context.now()));
        let is_last = is_damaged || item.is_cancelled || is_given_up(item.failing_since, self.context.now());
        match (charged, end) {
            // The transcript is gone since the charge: only a failure that may pass is worth a repetition. A
            // cancellation does not skip an item that fails.
            (Some(_), ItemEnd::Again { pause, .. }) if !is_last => again_without_attempt(pause),
            (Some(spent), _) => done(spent),
            (None, end) => end,
        }
    }

    /// Delivers the transcript of an item, and charges it unless an earlier claim has `charged` this many credits.
    async fn deliver(&self, item: &ClaimedItem, charged: Option<u64>) -> Result<ItemEnd, V1Error> {
        let account = match self.account(&item.account).await.map_err(V1Error::from_store_error)? {
            Some(account) if !account.blocked => account,
            Some(_) => return Ok(ItemEnd::Pause(PauseReason::AccountBlocked)),
            None => return Ok(ended(account_closed())),
        };
        let preference = LanguagePreference::parse(item.language.as_deref())?;
        let selector = match self.delivery.find_archived(&item.video, &preference).await {
            Ok(PreferredTrack::Archived(_)) => return self.charge(&account, item, charged).await,
            Ok(PreferredTrack::Missing(selector)) => selector,
            Err(V1Error::Unavailable(none)) => return Ok(no_captions(none.message)),
            Err(error) => return Err(error),
        };
        match self.fetch(&account, item, &preference, selector).await? {
            ItemFetch::Archived => {}
            ItemFetch::Unavailable(none) => return Ok(unavailable(none, item, self.context.now())),
            ItemFetch::PaymentRequired => return Ok(ItemEnd::Pause(PauseReason::PaymentRequired)),
            ItemFetch::Limited(seconds) => {
                let pause = pause_after(item.attempts, Some(Duration::from_secs(seconds)));
                return Ok(ItemEnd::Again { pause, failure: None });
            }
        }
        // The video may have no transcript in the language.
        match self.delivery.find_archived(&item.video, &preference).await {
            Ok(PreferredTrack::Archived(_)) => Ok(match self.charge(&account, item, charged).await? {
                // Another request has taken the credit that was held for the fetch.
                ItemEnd::Pause(PauseReason::PaymentRequired) => ItemEnd::Unpaid(CHECK_INTERVAL),
                end => end,
            }),
            Ok(PreferredTrack::Missing(_)) => {
                Ok(no_captions("This video has no transcript in this language.".to_owned()))
            }
            Err(V1Error::Unavailable(none)) => Ok(no_captions(none.message)),
            Err(error) => Err(error),
        }
    }

    /// Ends a cancelled item that has cost nothing: it had started, so it is charged if its transcript is archived.
    ///
    /// One that was fetched waits for credits. Of a skipped one the id of the charge is used up without credits: an
    /// earlier claim that is still running cannot charge it.
    async fn end_cancelled(&self, item: &ClaimedItem, charged: Option<u64>) -> Result<ItemEnd, V1Error> {
        let skipped = ItemEnd::Ended(ItemOutcome::Skipped);
        let account = self.account(&item.account).await.map_err(V1Error::from_store_error)?;
        let Some(account) = account else { return Ok(skipped) };
        if charged.is_none() && item.claim.number > 1 && self.is_archived(item).await? {
            let end = self.charge(&account, item, None).await?;
            let ItemEnd::Pause(_) = end else { return Ok(end) };
            let now = self.context.now();
            if item.failing_since.is_some() && !is_too_old(item.job_created_at, now) {
                return Ok(ItemEnd::Unpaid(uncertain_pause(item, now)));
            }
        }
        Ok(match self.spend(&account, item, 0).await? {
            SpendResult::Spent(_) => skipped,
            SpendResult::Refused(outcome) => self.end_charged(item, &outcome).await,
            SpendResult::Unknown => self.after_uncertain_spend(item),
        })
    }

    async fn is_archived(&self, item: &ClaimedItem) -> Result<bool, V1Error> {
        let preference = LanguagePreference::parse(item.language.as_deref())?;
        match self.delivery.find_archived(&item.video, &preference).await {
            Ok(found) => Ok(matches!(found, PreferredTrack::Archived(_))),
            Err(V1Error::Unavailable(_) | V1Error::Damaged) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn spend(&self, account: &Account, item: &ClaimedItem, cost: u64) -> Result<SpendResult, V1Error> {
        let now = self.context.now();
        let plan = self.context.effective_plan(account, now);
        let memo = Memo::Transcript(item.video.clone()).to_string();
        let request = self.credits.hold_request_at(now, account, &plan, charge_id(item), cost, &memo);
        self.credits.holds.spend(&request).await.map_err(V1Error::from_store_error)
    }

    /// The charge may have been made: the next claim looks for it, when a late one has taken effect.
    ///
    /// An unconfirmed charge alone does not end an item.
    fn after_uncertain_spend(&self, item: &ClaimedItem) -> ItemEnd {
        let pause = uncertain_pause(item, self.context.now());
        again_without_attempt(pause.max(self.context.transcripts.options().hold))
    }

    /// Ends an item whose spend was refused: done if an earlier claim has charged it.
    async fn end_charged(&self, item: &ClaimedItem, outcome: &HoldOutcome) -> ItemEnd {
        match self.find_charge(item).await {
            Ok(charged) => charged.map_or_else(|| not_charged(item, outcome), done),
            Err(end) => end,
        }
    }

    /// Charges a delivered item in one step, unless it is charged. The id of the charge is the same for every claim.
    async fn charge(
        &self,
        account: &Account,
        item: &ClaimedItem,
        charged: Option<u64>,
    ) -> Result<ItemEnd, V1Error> {
        if let Some(spent) = charged {
            return Ok(done(spent));
        }
        let cost = self.context.options.credits_per_transcript;
        Ok(match self.spend(account, item, cost).await? {
            SpendResult::Spent(_) => done(cost),
            SpendResult::Refused(HoldOutcome::Insufficient { .. }) => {
                ItemEnd::Pause(PauseReason::PaymentRequired)
            }
            // An earlier claim has charged it at another price.
            SpendResult::Refused(outcome @ HoldOutcome::Conflict) => self.end_charged(item, &outcome).await,
            SpendResult::Refused(outcome) => not_charged(item, &outcome),
            SpendResult::Unknown => self.after_uncertain_spend(item),
        })
    }

    /// The credits that an earlier claim has charged for an item; `None` if none has.
    ///
    /// # Errors
    /// How the item ends if the ledger fails.
    async fn find_charge(&self, item: &ClaimedItem) -> Result<Option<u64>, ItemEnd> {
        // A spend is settled: this changes nothing, and returns what was spent.
        match self.credits.holds.settle(&charge_id(item), vec![0]).await {
            Ok(SettleOutcome::Exists { state: HoldState::Settled { spent } }) => Ok(Some(spent.iter().sum())),
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::warn!(job = %item.claim.job, %error, "charge of a job item not found");
                Err(match error.is_unreadable() {
                    true => charge_unreadable(item, self.context.now()),
                    false => again_without_attempt(STORE_PAUSE),
                })
            }
        }
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
        failure: Option<TransientFailure>,
        reason: Option<PauseReason>,
    ) -> Result<bool> {
        let due_at = self.context.now().plus(pause);
        let is_attempt = failure.is_some_and(|failure| failure.is_attempt);
        let is_failure = failure.is_some() && !is_attempt;
        let returned = ItemReturn { due_at, is_failure, is_attempt, pause: reason };
        let give_back = || self.store.return_item(&item.claim, returned.clone(), self.context.now());
        self.context.retry_store(give_back).await
    }

    /// Returns a claim of a process that stops, so that another one takes over at once.
    pub(super) async fn give_up(self: Arc<Self>, claim: Claim) {
        let now = self.context.now();
        let returned = match &claim {
            Claim::Item(claim) => {
                // Its work breaks off anywhere: a cancellation must not skip it if it is fetched or charged.
                let returned = ItemReturn { due_at: now, is_failure: true, is_attempt: false, pause: None };
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

    /// Extends a claim in a loop.
    ///
    /// Returns once the claim of an item has ended. That of a list cannot be extended while its job is paused.
    pub(super) async fn keep_claim(self: Arc<Self>, claim: Claim) {
        let options = self.context.transcripts.options();
        let extend = || {
            let lease_until = self.context.now().plus(options.hold);
            match &claim {
                Claim::Item(claim) => self.store.extend(claim, lease_until),
                Claim::Listing(claim) => self.store.extend_listing(claim, lease_until),
            }
        };
        let has_ended = |extended: &Result<bool>| match extended {
            Ok(is_extended) => !is_extended && matches!(claim, Claim::Item(_)),
            Err(error) => {
                log_failure!(warn, [job = %claim.job(), %error], "claim of a job not extended");
                false
            }
        };
        keep_renewed(options.hold_heartbeat, options.store_timeout, extend, has_ended).await;
    }
}

pub(super) fn failure(reason: &str, message: impl Into<String>) -> ItemFailure {
    ItemFailure { reason: reason.to_owned(), message: message.into() }
}

pub(super) fn account_closed() -> ItemFailure {
    failure("account_closed", "The account was closed.")
}

/// A failure that reached no upstream.
fn again_without_attempt(pause: Duration) -> ItemEnd {
    ItemEnd::Again { pause, failure: Some(TransientFailure { is_attempt: false }) }
}

fn done(spent: u64) -> ItemEnd {
    ItemEnd::Ended(ItemOutcome::Done { spent })
}

fn ended(failure: ItemFailure) -> ItemEnd {
    ItemEnd::Ended(ItemOutcome::Failed(failure))
}

fn not_charged(item: &ClaimedItem, outcome: &impl std::fmt::Debug) -> ItemEnd {
    tracing::error!(job = %item.claim.job, ?outcome, "job item not charged");
    ItemEnd::Again { pause: PAUSE_MAX, failure: None }
}

/// The pause after an uncertain or refused spend: as long as the item has failed, for whatever reason.
pub(super) fn uncertain_pause(item: &ClaimedItem, now: Timestamp) -> Duration {
    pause_after(item.attempts, item.failing_since.map(|since| now.since(since)))
}

fn no_captions(message: String) -> ItemEnd {
    ended(failure(FailureReason::NoCaptions.as_str(), message))
}

/// The failure of an item or a page at which servers ended; `subject` names it.
pub(super) fn interrupted(subject: &str) -> ItemFailure {
    let message = format!("The work on this {subject} was interrupted {INTERRUPTIONS_MAX} times in a row.");
    failure(INTERRUPTED, message)
}

/// Whether a wait of an item or a page of a job of this time counts as a failure: an ended job would be deleted.
pub(super) fn is_too_old(job_created_at: Timestamp, now: Timestamp) -> bool {
    now.since(job_created_at) >= RETENTION
}

/// Whether an item or a page has failed for so long that it is not tried again.
pub(super) fn is_given_up(failing_since: Option<Timestamp>, now: Timestamp) -> bool {
    failing_since.is_some_and(|since| now.since(since) >= FAILING_MAX)
}

/// What follows from an error, whose cause is logged where it happened.
pub(super) fn not_obtained(error: &V1Error, item: &ClaimedItem, now: Timestamp) -> ItemEnd {
    let (reason, pause) = match error {
        // Only the operator can repair it.
        V1Error::Damaged => (DAMAGED, PAUSE_MAX),
        _ => (FailureReason::FetchError.as_str(), STORE_PAUSE),
    };
    if is_given_up(item.failing_since, now) {
        return ended(failure(reason, error.message()));
    }
    again_without_attempt(pause)
}

/// What follows from a charge that cannot be read. A cancelled item does not wait for its repair.
pub(super) fn charge_unreadable(item: &ClaimedItem, now: Timestamp) -> ItemEnd {
    if item.is_cancelled || is_given_up(item.failing_since, now) {
        return ended(failure(DAMAGED, CHARGE_DAMAGED));
    }
    again_without_attempt(PAUSE_MAX)
}

/// What follows from a fetch of an item without a transcript.
pub(super) fn unavailable(none: NoTranscript, item: &ClaimedItem, now: Timestamp) -> ItemEnd {
    // Neither the limit of the service nor a pause of the suppliers is a failure: the item waits for their end.
    let is_paused = !none.attempted && none.retry_after.is_some();
    let waits =
        (none.reason == FailureReason::DailyCap || is_paused) && !is_too_old(item.job_created_at, now);
    let final_note = match none.reason {
        FailureReason::NoCaptions | FailureReason::ConfigError => Some(""),
        _ if waits => None,
        _ if none.attempted => (item.attempts.saturating_add(1) >= ATTEMPTS_MAX).then_some(""),
        _ => is_given_up(item.failing_since, now).then_some(FAILED_TOO_LONG),
    };
    if let Some(note) = final_note {
        return ended(failure(none.reason.as_str(), format!("{note}{}", none.message)));
    }
    let pause = pause_after(item.attempts, none.retry_after);
    ItemEnd::Again { pause, failure: (!waits).then_some(TransientFailure { is_attempt: none.attempted }) }
}

/// The pause before a repetition: it grows with the attempts, and is not shorter than a named one.
pub(super) fn pause_after(attempts: u32, named: Option<Duration>) -> Duration {
    let backoff = Backoff { first: FIRST_PAUSE, max: PAUSE_MAX }.pause(attempts, 1.0);
    named.unwrap_or_default().clamp(backoff, PAUSE_MAX)
}
