//! Payment of the fetch that a request of an account starts.
//!
//! The request guard owns the hold of its request. A request that ends while suppliers work for it leaves the hold to
//! the flight, which charges it if the transcript is archived in the requested language: a caller must not avoid the
//! cost by disconnecting. The account's next delivery of the transcript is then prepaid. Until then a repeated request
//! takes the hold back, and pays on delivery like any other.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;

use super::{
    AccountCredits, Delivery, Memo, V1Endpoint,
    prepaid::{PrepaidDelivery, PrepaidRecord},
    transcript::LanguagePreference,
};
use crate::{
    archive::TrackSelector,
    engine::{
        FailureReason, HeldPayment, NoTranscript, Payer, PaymentHold, QueueOwner, QueueOwnerId, WorkResult,
    },
    error::{Error, Result},
    failure_log::log_failure,
    ids::{AccountId, HoldId, WalletId},
    ledger::{
        HoldGuard, HoldOutcome, HoldRequest, HoldResult, Leg,
        terms::{self, AllowancePeriod},
    },
    video::VideoId,
};

/// The wallet of the daily cap of all accounts.
const CAP_WALLET: &str = "service-accounts";
/// The message when the daily cap is reached.
const CAP_REACHED: &str = "The service has reached its daily limit of new transcripts. Nothing was charged. Archived \
                           transcripts can still be requested.";

/// What a request of an account fetches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FetchKey {
    pub(super) account: AccountId,
    pub(super) route: V1Endpoint,
    pub(super) video: VideoId,
    /// The language that the request accepts.
    pub(super) preference: LanguagePreference,
    /// The track that is fetched for it.
    pub(super) selector: TrackSelector,
}

/// Running fetches of this process whose requests have ended. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct AbandonedFetches(Arc<Mutex<HashMap<FetchKey, Arc<FetchPayment>>>>);

impl AbandonedFetches {
    /// Takes the hold of an abandoned fetch back; `None` if no such fetch is running.
    pub(super) fn adopt(&self, key: &FetchKey) -> Option<(Arc<FetchPayment>, HoldGuard)> {
        let payment = self.lock().remove(key)?;
        let hold = payment.take_back()?;
        Some((payment, hold))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FetchKey, Arc<FetchPayment>>> {
        lock(&self.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Consistent after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What pays for a delivered response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DeliveryPayment {
    /// A prepaid delivery if one is open, otherwise the hold.
    #[default]
    PrepaidFirst,
    /// The hold: no prepaid delivery was open.
    Hold,
}

/// How a request ended without a delivered response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    /// It was answered with an error.
    Failed,
    /// The chat model refused the question after the fetch. That is counted as an attempt elsewhere.
    Refused,
    /// The answer of the chat model was unreadable. That is counted as an attempt elsewhere.
    Unreadable,
    /// The client disconnected.
    Disconnected,
}

/// Who ends the hold of a request that fetches.
#[derive(Debug)]
enum FetchState {
    /// The guard: no flight works for the request.
    Idle,
    /// The guard, unless it ends before the flight that works for the request.
    Working,
    /// The flight that works for the request, which has ended.
    Abandoned(HoldGuard),
    /// The guard, with a charge: the flight has archived the transcript.
    Kept,
    /// The request has ended. No flight may start for it.
    Ended,
}

/// The payment of a fetch, shared by the guard of the request and the flight.
pub(super) struct FetchPayment {
    credits: Arc<AccountCredits>,
    key: FetchKey,
    delivery: PrepaidDelivery,
    state: Mutex<FetchState>,
    /// The prepaid delivery, recorded before the hold is left to the flight.
    prepaid: Mutex<Option<PrepaidRecord>>,
    /// Whether the account has a paid plan or purchased credits.
    pays: AtomicBool,
}

crate::debug_fields!(FetchPayment { key });

impl FetchPayment {
    pub(super) fn new(
        credits: &Arc<AccountCredits>,
        key: FetchKey,
        delivery: PrepaidDelivery,
        pays: bool,
    ) -> Arc<Self> {
        let (state, prepaid) = (Mutex::new(FetchState::Idle), Mutex::default());
        let (credits, pays) = (Arc::clone(credits), AtomicBool::new(pays));
        Arc::new(Self { credits, key, delivery, state, prepaid, pays })
    }

    /// The payer for the engine.
    pub(super) fn payer(self: &Arc<Self>) -> Arc<dyn Payer> {
        Arc::new(FetchPayer(Arc::clone(self)))
    }

    /// The account has purchased credits: its fetch waits among those of paying owners.
    pub(super) fn set_pays(&self) {
        self.pays.store(true, Ordering::Relaxed);
    }

    /// Whether a flight works for the request.
    pub(super) fn is_working(&self) -> bool {
        matches!(*self.lock(), FetchState::Working)
    }

    /// The delivery, if it may be prepaid.
    ///
    /// Another server may have fetched for an earlier request of the account, and charged it, also if both fetched
    /// because the database lost the lease.
    pub(super) fn prepaid_delivery(&self) -> Option<&PrepaidDelivery> {
        let is_transcript = self.key.route == V1Endpoint::Transcript;
        let may_be_prepaid =
            is_transcript && (matches!(*self.lock(), FetchState::Idle) || self.delivery.may_exist());
        may_be_prepaid.then_some(&self.delivery)
    }

    /// Charges the delivered transcript, unless the delivery was prepaid.
    pub(super) async fn deliver(&self, hold: HoldGuard, payment: DeliveryPayment) {
        let mut shared = self.prepaid_delivery().filter(|_| payment == DeliveryPayment::PrepaidFirst);
        *self.lock() = FetchState::Ended;
        let prepaid = lock(&self.prepaid).take();
        if let Some(record) = prepaid {
            let memo = Memo::Transcript(self.key.video.clone()).to_string();
            match self.delivery.remove(record, memo.clone()).await {
                Some(true) => {
                    // Another request got a transcript with it while this one fetched, also if this is a question.
                    hold.settle_in_full().await;
                    return self.delivery.charge_again(&memo).await;
                }
                Some(false) => {}
                // It may still be open: this request must not use what its own hold pays for.
                None => shared = None,
            }
        }
        match shared {
            Some(delivery) => {
                let spent = hold.amounts().to_vec();
                delivery.charge_unless_prepaid(hold, spent).await;
            }
            None => hold.settle_in_full().await,
        }
    }

    /// Ends the request: leaves the hold to a working flight, and otherwise charges or releases it.
    pub(super) async fn end_request(self: Arc<Self>, hold: HoldGuard, end: RequestEnd) {
        let (is_chargeable, is_counted) = {
            let mut state = self.lock();
            let (is_chargeable, is_counted) = match *state {
                FetchState::Working => (true, false),
                // A failure costs nothing, also after the fetch: the transcript is in another language. It is counted,
                // because the archive has the transcript now. A client can cause a refusal, so that costs the fetch.
                FetchState::Kept => {
                    let is_cause = matches!(end, RequestEnd::Disconnected | RequestEnd::Refused);
                    (is_cause, end == RequestEnd::Failed)
                }
                _ => (false, false),
            };
            if !is_chargeable {
                *state = FetchState::Ended;
            }
            (is_chargeable, is_counted)
        };
        if is_counted {
            self.count_attempt().await;
        }
        // Recorded first: whatever ends afterwards, the account loses no credit.
        if !is_chargeable || !self.record_prepaid(&hold).await {
            *self.lock() = FetchState::Ended;
            self.end_undelivered(hold).await;
            return;
        }
        let is_kept = {
            let mut abandoned = self.credits.abandoned_fetches.lock();
            let mut state = self.lock();
            if matches!(*state, FetchState::Working) {
                *state = FetchState::Abandoned(hold);
                abandoned.insert(self.key.clone(), Arc::clone(&self));
                return;
            }
            matches!(std::mem::replace(&mut *state, FetchState::Ended), FetchState::Kept)
        };
        let is_charged = self.end_abandoned(hold, is_kept).await;
        if is_kept && !is_charged {
            self.count_attempt().await;
        }
    }

    /// Ends the hold of a request that has ended; returns whether it is charged.
    ///
    /// It is charged if the transcript is archived, unless it is in another language than the requested one: then a
    /// repeat fails, too.
    async fn end_abandoned(&self, hold: HoldGuard, is_kept: bool) -> bool {
        let delivery = Delivery { context: Arc::clone(&self.credits.context) };
        if !is_kept || delivery.is_missing(&self.key.video, &self.key.preference).await {
            return self.end_undelivered(hold).await;
        }
        let spent = self.price(&hold);
        hold.settle(spent).await;
        true
    }

    /// Ends the hold of a fetch that gave the account nothing; returns whether it is charged.
    ///
    /// It is charged if the prepaid delivery is used: another server fetched the transcript, because the database lost
    /// the lease of this fetch, and delivered it without a second charge.
    async fn end_undelivered(&self, hold: HoldGuard) -> bool {
        let prepaid = lock(&self.prepaid).take();
        match prepaid {
            Some(record) => {
                let spent = self.price(&hold);
                self.delivery.end_payment(record, hold, spent).await
            }
            None => {
                hold.release().await;
                false
            }
        }
    }

    /// What a hold pays for a transcript. A question may hold less than the price.
    fn price(&self, hold: &HoldGuard) -> Vec<u64> {
        let cost = self.cost();
        hold.amounts().iter().map(|amount| cost.min(*amount)).collect()
    }

    /// The price of a transcript.
    fn cost(&self) -> u64 {
        self.credits.context.options.credits_per_transcript
    }

    /// Counts a fetch that gave the account nothing.
    async fn count_attempt(&self) {
        let AccountCredits { context, limits, .. } = &*self.credits;
        limits.count_attempt(&self.key.account, context.now()).await;
    }

    /// Records the prepaid delivery once, if the hold pays for one; `false` if that fails.
    async fn record_prepaid(&self, hold: &HoldGuard) -> bool {
        // A question may cost less than its transcript.
        let is_paid = hold.amounts().iter().sum::<u64>() >= self.cost();
        if !is_paid || lock(&self.prepaid).is_some() {
            return true;
        }
        let mut tried = None;
        let recorded = self.delivery.record(&mut tried).await;
        // Also after an error: the hold ends once it is known whether the delivery was used.
        *lock(&self.prepaid) = tried;
        if let Err(error) = &recorded {
            log_failure!(warn, [%error], "prepaid delivery not recorded");
        }
        recorded.is_ok()
    }

    fn take_back(&self) -> Option<HoldGuard> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, FetchState::Working) {
            FetchState::Abandoned(hold) => Some(hold),
            other => {
                *state = other;
                None
            }
        }
    }

    /// The flight starts; `false` if the request has ended.
    fn start_work(&self) -> bool {
        let mut state = self.lock();
        let is_idle = matches!(*state, FetchState::Idle);
        if is_idle {
            *state = FetchState::Working;
        }
        is_idle
    }

    /// The flight ends; returns the hold of a request that has ended.
    fn end_work(&self, is_kept: bool) -> Option<HoldGuard> {
        let mut abandoned = self.credits.abandoned_fetches.lock();
        let mut state = self.lock();
        match std::mem::replace(&mut *state, FetchState::Ended) {
            FetchState::Abandoned(hold) => {
                abandoned.remove(&self.key);
                return Some(hold);
            }
            FetchState::Working => *state = if is_kept { FetchState::Kept } else { FetchState::Idle },
            other => *state = other,
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, FetchState> {
        lock(&self.state)
    }
}

/// Holds one of the daily limit of all accounts; the reason if the limit is reached.
///
/// # Errors
/// The ledger's.
pub(super) async fn hold_daily_cap(
    credits: &AccountCredits,
    video: &VideoId,
) -> Result<Result<Box<HoldGuard>, NoTranscript>> {
    let AccountCredits { context, holds, .. } = credits;
    let now = context.now();
    let terms = terms::allowance(AllowancePeriod::Day, context.options.fetches_per_day, now);
    let request = HoldRequest {
        id: HoldId::new(context.random_id("fetch")),
        legs: vec![Leg { wallet: WalletId::new(CAP_WALLET), terms, amount: 1 }],
        now,
        expires_at: holds.expires_at(now),
        memo: Memo::Transcript(video.clone()).to_string(),
    };
    match holds.hold(request).await? {
        HoldResult::Held(cap) => Ok(Ok(cap)),
        HoldResult::Refused(HoldOutcome::Insufficient { .. }) => {
            let refusal = NoTranscript::new(FailureReason::DailyCap, CAP_REACHED);
            Ok(Err(refusal.with_retry_after(AllowancePeriod::Day.end(now).since(now))))
        }
        HoldResult::Refused(_) => Err(Error::unexpected("a new hold ID already exists")),
    }
}

/// Pays for a fetch with the hold of its request, and with one of the accounts' daily cap.
#[derive(Debug)]
struct FetchPayer(Arc<FetchPayment>);

#[async_trait]
impl Payer for FetchPayer {
    async fn hold(&self) -> Result<PaymentHold> {
        let cap = match hold_daily_cap(&self.0.credits, &self.0.key.video).await? {
            Ok(cap) => cap,
            Err(refusal) => return Ok(PaymentHold::Refused(refusal)),
        };
        if self.0.start_work() {
            return Ok(PaymentHold::Held(Box::new(HeldFetch {
                payment: Some(Arc::clone(&self.0)),
                cap: Some(cap),
            })));
        }
        cap.release().await;
        let message = "The request has ended.";
        Ok(PaymentHold::Refused(NoTranscript::new(FailureReason::FetchError, message)))
    }

    fn queue_owner(&self) -> QueueOwner {
        let FetchPayment { key, pays, .. } = &*self.0;
        QueueOwner { id: QueueOwnerId::Account(key.account.clone()), pays: pays.load(Ordering::Relaxed) }
    }
}

/// A flight that works for a request.
#[derive(Debug)]
struct HeldFetch {
    /// `None` once the work has ended.
    payment: Option<Arc<FetchPayment>>,
    /// One of the daily cap; drop releases it.
    cap: Option<Box<HoldGuard>>,
}

impl HeldFetch {
    /// Ends the hold of the request if the request has ended, and counts a fetch that gave it nothing.
    async fn end_payment(payment: Arc<FetchPayment>, result: WorkResult) {
        let is_kept = result == WorkResult::Delivered;
        let abandoned = payment.end_work(is_kept);
        let is_counted =
            result == WorkResult::Failed || abandoned.is_some() && result != WorkResult::NotAttempted;
        let count = async {
            if is_counted {
                payment.count_attempt().await;
            }
        };
        let end = async {
            if let Some(hold) = abandoned {
                payment.end_abandoned(hold, is_kept).await;
            }
        };
        tokio::join!(count, end);
    }
}

#[async_trait]
impl HeldPayment for HeldFetch {
    async fn end(mut self: Box<Self>, result: WorkResult) {
        let Some(payment) = self.payment.take() else { return };
        // Failures have a cost once they reached an upstream, as in the lookup API.
        let cap = self.cap.take();
        let end_cap = async {
            match (cap, result) {
                (Some(cap), WorkResult::NotAttempted) => cap.release().await,
                (Some(cap), _) => cap.settle_in_full().await,
                (None, _) => {}
            }
        };
        tokio::join!(end_cap, Self::end_payment(payment, result));
    }
}

impl Drop for HeldFetch {
    fn drop(&mut self) {
        let Some(payment) = self.payment.take() else { return };
        let tasks = payment.credits.context.transcripts.background().clone();
        tasks.detach(Self::end_payment(payment, WorkResult::NotAttempted));
    }
}
