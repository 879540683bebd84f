//! The fetch of an item that is not archived.

use std::sync::{Arc, Mutex, PoisonError};

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
    ledger::{HoldGuard, Pool},
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
    /// An item that must wait for a source or a limit writes nothing to the ledger: thousands may wait for days. The
    /// hold is released before the item is charged: the charge has another id.
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
        if let Some(paused) = self.context.transcripts.paused_outcome(item.video.platform()) {
            return self.item_fetch(item, paused);
        }
        let pays = match self.check_attempts(account).await? {
            Ok(pays) => pays,
            Err(wait) => return Ok(wait),
        };
        let cap = match fetch_payment::hold_daily_cap(&self.credits, &item.video).await {
            Ok(Ok(cap)) => cap,
            Ok(Err(refusal)) => return Ok(ItemFetch::Unavailable(refusal)),
            Err(error) => return Err(V1Error::from_store_error(error)),
        };
        let AccountCredits { context, holds, .. } = &*self.credits;
        let cost = context.options.credits_per_transcript;
        let memo = Memo::Transcript(item.video.clone()).to_string();
        let request = self.credits.hold_request(account, "job-fetch", cost, &memo);
        let mut hold = holds.prepare(&request);
        if let Err(error) = self.credits.open_hold(&mut hold, &request).await {
            cap.release().await;
            return match error {
                V1Error::PaymentRequired { .. } => Ok(ItemFetch::PaymentRequired),
                error => Err(error),
            };
        }
        let payer = Arc::new(JobPayer {
            credits: Arc::clone(&self.credits),
            delivery: Arc::clone(&self.delivery),
            account: account.id.clone(),
            video: item.video.clone(),
            preference: preference.clone(),
            pays,
            cap: Arc::new(Mutex::new(Some(cap))),
        });
        let for_engine: Arc<dyn Payer> = Arc::<JobPayer>::clone(&payer);
        let request = FetchRequest { video: item.video.clone(), selector, payer: Some(for_engine) };
        let outcome = self.fetch_to_end(request).await;
        if let Some(unused) = payer.take_cap() {
            unused.release().await;
        }
        hold.release().await;
        self.item_fetch(item, outcome)
    }

    /// Whether the account pays; otherwise it may have to wait until fewer of its fetches have failed.
    ///
    /// The failures of a paying account are bounded by the daily limit of the service.
    async fn check_attempts(&self, account: &Account) -> Result<Result<bool, ItemFetch>, V1Error> {
        let AccountCredits { context, ledger, limits, .. } = &*self.credits;
        let plan = context.effective_plan(account, context.now());
        if plan.state != PlanState::Free {
            return Ok(Ok(true));
        }
        let terms = plan.terms();
        let balance = context.retry_store(|| ledger.balance(&account.wallet, &terms)).await;
        let balance = balance.map_err(V1Error::from_store_error)?;
        if balance.pools.iter().any(|pool| pool.pool == Pool::Purchased && pool.granted > pool.spent) {
            return Ok(Ok(true));
        }
        match limits.check_attempts(&account.id, context.now()).await {
            Ok(()) => Ok(Ok(false)),
            Err(V1Error::RateLimited { .. })
                if balance.available() < context.options.credits_per_transcript =>
            {
                Ok(Err(ItemFetch::PaymentRequired))
            }
            Err(V1Error::RateLimited { retry_after_s, .. }) => Ok(Err(ItemFetch::Limited(retry_after_s))),
            Err(error) => Err(error),
        }
    }

    fn item_fetch(&self, item: &ClaimedItem, outcome: FetchOutcome) -> Result<ItemFetch, V1Error> {
        let found = outcome
            .into_transcript(item.video.platform(), self.context.now(), CostNote::NothingCharged)
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
    /// One of the daily limit, held before the credits of the account; the flight takes it.
    cap: Arc<Mutex<Option<Box<HoldGuard>>>>,
}

impl JobPayer {
    fn take_cap(&self) -> Option<Box<HoldGuard>> {
        // Consistent after every statement.
        self.cap.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

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
        let cap = match self.take_cap() {
            Some(cap) => cap,
            // An earlier flight of the item has used it.
            None => match fetch_payment::hold_daily_cap(&self.credits, &self.video).await? {
                Ok(cap) => cap,
                Err(refusal) => return Ok(PaymentHold::Refused(refusal)),
            },
        };
        Ok(PaymentHold::Held(Box::new(HeldItem { payer: self.clone(), cap })))
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
/// A job that was deleted may be created again under its id, with other videos: the time of creation distinguishes
/// them.
pub(super) fn charge_id(item: &ClaimedItem) -> HoldId {
    let (created_at, index) = (item.job_created_at.as_millis().to_string(), item.claim.index.to_string());
    let name = derive_id(&["item", item.claim.job.as_str(), &created_at, &index]);
    HoldId::new(format!("job-{name}"))
}
