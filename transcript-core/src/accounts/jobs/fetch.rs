//! The fetch of an item that is not archived.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AccountJobs, ClaimedItem};
use crate::{
    accounts::{
        AccountCredits, Delivery, Memo, PlanState, V1Error, charge::derive_id, fetch_payment,
        transcript::LanguagePreference,
    },
    archive::TrackSelector,
    directory::Account,
    engine::{
        CostNote, FetchOutcome, FetchRequest, HeldPayment, NoTranscript, Payer, PaymentHold, QueueOwner,
        QueueOwnerId, WorkResult,
    },
    error::Result,
    ids::{AccountId, HoldId},
    ledger::HoldGuard,
    retry::deadline_after,
    video::VideoId,
};

/// Outcome of a fetch for an item.
pub(super) enum ItemFetch {
    /// The transcript is archived.
    Archived,
    /// There is none.
    Unavailable(NoTranscript),
    /// The account has too few credits.
    PaymentRequired,
    /// Too many fetches of the account have failed; retry after this number of seconds.
    Limited(u64),
}

impl AccountJobs {
    /// Fetches the transcript of an item, with credits held for it.
    ///
    /// The hold is released before the item is charged: the charge has another id.
    ///
    /// # Errors
    /// The ledger's or the archive's. Nothing is charged.
    pub(super) async fn fetch(
        &self,
        account: &Account,
        item: &ClaimedItem,
        preference: &LanguagePreference,
        selector: TrackSelector,
    ) -> Result<ItemFetch, V1Error> {
        let AccountCredits { context, holds, .. } = &*self.credits;
        let cost = context.options.credits_per_transcript;
        let memo = Memo::Transcript(item.video.clone()).to_string();
        let request = self.credits.hold_request(account, "job-fetch", cost, &memo);
        let mut hold = holds.prepare(&request);
        let has_purchased = match self.credits.open_hold(&mut hold, &request).await {
            Ok((_, has_purchased)) => has_purchased,
            Err(V1Error::PaymentRequired { .. }) => return Ok(ItemFetch::PaymentRequired),
            Err(error) => return Err(error),
        };
        let plan = context.effective_plan(account, context.now());
        let pays = has_purchased || plan.state != PlanState::Free;
        let fetched = self.fetch_held(account, item, (preference, selector), pays).await;
        hold.release().await;
        fetched
    }

    async fn fetch_held(
        &self,
        account: &Account,
        item: &ClaimedItem,
        (preference, selector): (&LanguagePreference, TrackSelector),
        pays: bool,
    ) -> Result<ItemFetch, V1Error> {
        let context = &self.context;
        // The failures of a paying account are bounded by the daily limit of the service.
        if !pays {
            match self.credits.limits.check_attempts(&account.id, context.now()).await {
                Ok(()) => {}
                Err(V1Error::RateLimited { retry_after_s, .. }) => {
                    return Ok(ItemFetch::Limited(retry_after_s));
                }
                Err(error) => return Err(error),
            }
        }
        let payer = JobPayer {
            credits: Arc::clone(&self.credits),
            delivery: Arc::clone(&self.delivery),
            account: account.id.clone(),
            video: item.video.clone(),
            preference: preference.clone(),
            pays,
        };
        let request = FetchRequest { video: item.video.clone(), selector, payer: Some(Arc::new(payer)) };
        let found = self
            .fetch_to_end(request)
            .await
            .into_transcript(item.video.platform(), context.now(), CostNote::NothingCharged)
            .map_err(V1Error::from_store_error)?;
        Ok(match found {
            Ok(_) => ItemFetch::Archived,
            Err(none) => ItemFetch::Unavailable(none.without_advice()),
        })
    }

    /// Waits for the outcome of a fetch, as long as the queue and the work take.
    ///
    /// An item that stopped waiting would be queued again: a cancellation would skip it, and its transcript be free.
    async fn fetch_to_end(&self, request: FetchRequest) -> FetchOutcome {
        let transcripts = &self.context.transcripts;
        loop {
            let deadline = deadline_after(transcripts.options().work_timeout);
            match transcripts.get_until(request.clone(), deadline).await {
                FetchOutcome::InProgress(_) => {}
                outcome => return outcome,
            }
        }
    }
}

/// Pays for the fetch of an item with one of the accounts' daily limit. The account pays on delivery.
#[derive(Clone, Debug)]
struct JobPayer {
    credits: Arc<AccountCredits>,
    delivery: Arc<Delivery>,
    account: AccountId,
    video: VideoId,
    preference: LanguagePreference,
    pays: bool,
}

impl JobPayer {
    /// Whether a fetch that reached an upstream gives the item no transcript.
    async fn is_failed(&self, result: WorkResult) -> bool {
        match result {
            WorkResult::Failed => true,
            // An item without a language may archive a transcript that it does not deliver, in another language.
            WorkResult::Delivered => self.delivery.is_missing(&self.video, &self.preference).await,
            WorkResult::NotArchived | WorkResult::NotAttempted => false,
        }
    }
}

#[async_trait]
impl Payer for JobPayer {
    async fn hold(&self) -> Result<PaymentHold> {
        Ok(match fetch_payment::hold_daily_cap(&self.credits, &self.video).await? {
            Ok(cap) => PaymentHold::Held(Box::new(HeldItem { payer: self.clone(), cap })),
            Err(refusal) => PaymentHold::Refused(refusal),
        })
    }

    fn queue_owner(&self) -> QueueOwner {
        QueueOwner { id: QueueOwnerId::Account(self.account.clone()), pays: self.pays }
    }
}

/// A flight that works for an item. Drop releases its part of the daily limit.
#[derive(Debug)]
struct HeldItem {
    payer: JobPayer,
    cap: Box<HoldGuard>,
}

#[async_trait]
impl HeldPayment for HeldItem {
    async fn end(self: Box<Self>, result: WorkResult) {
        let Self { payer, cap } = *self;
        let end_cap = async {
            match result {
                WorkResult::NotAttempted => cap.release().await,
                _ => cap.settle_in_full().await,
            }
        };
        let count = async {
            if !payer.pays && payer.is_failed(result).await {
                let AccountCredits { context, limits, .. } = &*payer.credits;
                limits.count_attempt(&payer.account, context.now()).await;
            }
        };
        tokio::join!(end_cap, count);
    }
}

/// The id of the charge of an item: the same for every claim.
///
/// A job that was deleted may be created again under its id, with other videos: the time of creation distinguishes them.
pub(super) fn charge_id(item: &ClaimedItem) -> HoldId {
    let (created_at, index) = (item.job_created_at.as_millis().to_string(), item.claim.index.to_string());
    let name = derive_id(&["item", item.claim.job.as_str(), &created_at, &index]);
    HoldId::new(format!("job-{name}"))
}
