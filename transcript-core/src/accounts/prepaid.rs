//! Prepaid deliveries: a transcript that an account has paid for and not received.
//!
//! A prepaid delivery is an open hold of no credits. To settle it is to use it, which succeeds once, on whichever
//! server. `Account::prepaid_until` limits the search for one to few accounts.

use std::{sync::Arc, time::Duration};

use super::{AccountCredits, change_account::change_account, charge::derive_id};
use crate::{
    archive::TrackSelector,
    directory::Account,
    engine::EngineOptions,
    error::{Error, ErrorKind, Result},
    ids::HoldId,
    ledger::{HoldGuard, HoldOutcome, HoldRequest, HoldState, Leg, SettleOutcome, SettleRequest},
    retry::{StorePolicy, retry_store_persistently, retry_uncertain, with_timeout},
    time::Timestamp,
    video::VideoId,
};

/// How long a delivery stays prepaid.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The largest number of prepaid deliveries of one transcript to one account in a day.
const PER_DAY_MAX: u32 = 8;

/// Outcome of using a prepaid delivery.
#[derive(Debug)]
pub(super) enum Consumption {
    /// The delivery is prepaid.
    Used,
    /// It is not prepaid.
    Missing,
    /// The ledger did not respond, and nothing is used.
    Unread(Error),
    /// The ledger did not respond; this prepaid delivery may be used.
    Unknown(HoldId),
}

/// How a prepaid delivery ended, as far as one call knows.
#[derive(Debug)]
enum PrepaidEnd {
    /// This call ended it.
    Now,
    /// It had ended before, in this state.
    Before(HoldState),
    /// There is none with this id.
    Missing,
    /// The ledger did not respond, and this call changed nothing.
    Unread(Error),
    /// The ledger did not respond; this call may have ended it.
    Unknown(Error),
}

/// The next delivery of one transcript to one account, which may be prepaid.
#[derive(Clone)]
pub(super) struct PrepaidDelivery {
    credits: Arc<AccountCredits>,
    account: Account,
    /// Identifies account, video and selector.
    name: String,
}

impl PrepaidDelivery {
    pub(super) fn new(
        credits: &Arc<AccountCredits>,
        account: &Account,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Self {
        let name = derive_id(&[account.id.as_str(), &video.to_string(), &selector.to_string()]);
        Self { credits: Arc::clone(credits), account: account.clone(), name }
    }

    /// Records that the delivery is paid.
    ///
    /// # Errors
    /// The stores'. It is not recorded, and must not be charged.
    pub(super) async fn record(&self) -> Result<HoldId> {
        self.try_record(&mut None).await
    }

    /// As [`Self::record`]. After an error, what may have been recorded is removed.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub(super) async fn record_certainly(&self) -> Result<HoldId> {
        let mut tried = None;
        let recorded = self.try_record(&mut tried).await;
        if let (Err(_), Some(id)) = (&recorded, tried) {
            self.credits.context.transcripts.background().detach(self.clone().void_later(id));
        }
        recorded
    }

    /// Sets `tried` to the delivery that may have been recorded.
    async fn try_record(&self, tried: &mut Option<HoldId>) -> Result<HoldId> {
        let context = &self.credits.context;
        let now = context.now();
        let terms = context.effective_plan(&self.account, now).terms();
        for number in 0..PER_DAY_MAX {
            let request = HoldRequest {
                id: self.id(now, number),
                legs: vec![Leg { wallet: self.account.wallet.clone(), terms: terms.clone(), amount: 0 }],
                now,
                expires_at: now.plus(LIFETIME),
                memo: "prepaid transcript".to_owned(),
            };
            let recorded = match context.retry_store(|| self.credits.ledger.hold(request.clone())).await {
                // Used, or of another fetch. With the same end, an earlier try of this call took effect.
                Ok(HoldOutcome::Exists { state, .. })
                    if state != (HoldState::Open { expires_at: request.expires_at }) =>
                {
                    continue;
                }
                Ok(HoldOutcome::Held { .. } | HoldOutcome::Exists { .. }) => {
                    self.announce(request.expires_at).await
                }
                Ok(outcome) => return Err(Error::unexpected(format!("no prepaid delivery: {outcome:?}"))),
                Err(error) => Err(error),
            };
            *tried = Some(request.id.clone());
            return recorded.map(|()| request.id);
        }
        Err(Error::unexpected("too many prepaid deliveries of one transcript"))
    }

    /// Uses a prepaid delivery, if there is one.
    pub(super) async fn consume(&self) -> Consumption {
        self.consume_within(self.options().request_policy()).await
    }

    async fn consume_within(&self, policy: StorePolicy) -> Consumption {
        let now = self.credits.context.now();
        for day in [now, now.minus(LIFETIME)] {
            for number in 0..PER_DAY_MAX {
                let id = self.id(day, number);
                match self.end(policy, &id).await {
                    PrepaidEnd::Now => return Consumption::Used,
                    PrepaidEnd::Before(_) => {}
                    PrepaidEnd::Missing => break,
                    PrepaidEnd::Unread(error) => return Consumption::Unread(error),
                    PrepaidEnd::Unknown(error) => {
                        tracing::error!(%error, "prepaid delivery outcome unknown");
                        return Consumption::Unknown(id);
                    }
                }
            }
        }
        Consumption::Missing
    }

    /// Charges a delivery with its open hold, unless it is prepaid.
    ///
    /// If that is unknown, the hold stays open until the ledger responds again.
    pub(super) async fn charge_unless_prepaid(&self, hold: HoldGuard) {
        match self.consume().await {
            Consumption::Used => hold.release().await,
            Consumption::Missing => hold.settle_in_full().await,
            unknown @ (Consumption::Unread(_) | Consumption::Unknown(_)) => {
                let later = self.clone().charge_later(hold, unknown);
                self.credits.context.transcripts.background().detach(later);
            }
        }
    }

    /// Ends the hold of a delivery that may have used a prepaid delivery.
    async fn charge_later(self, hold: HoldGuard, mut consumption: Consumption) {
        if matches!(consumption, Consumption::Unread(_)) {
            consumption = self.consume_within(self.options().hold_policy()).await;
        }
        let failed = match consumption {
            Consumption::Used => return hold.release().await,
            Consumption::Missing => return hold.settle_in_full().await,
            Consumption::Unread(error) => error,
            Consumption::Unknown(id) => match self.settle_later(&id).await {
                Ok(SettleOutcome::HoldNotFound) => return hold.settle_in_full().await,
                // It was used, or has expired: this delivery took its place.
                Ok(_) => return hold.release().await,
                Err(error) => error,
            },
        };
        tracing::warn!(hold = %hold.id(), error = %failed, "delivery not charged");
        hold.release().await;
    }

    /// Ends the hold that pays for the prepaid delivery `id` and for nothing else; returns whether that is charged.
    ///
    /// If the delivery was used, and no other one is left in its place, `spent` is charged. Otherwise the hold is
    /// released. It stays open while the ledger does not respond; then the result is `false`, whatever follows.
    pub(super) async fn end_payment(&self, id: HoldId, hold: HoldGuard, spent: Vec<u64>) -> bool {
        let policy = self.options().request_policy();
        let end = self.end(policy, &id).await;
        if !matches!(end, PrepaidEnd::Unread(_) | PrepaidEnd::Unknown(_)) {
            return self.end_hold(policy, hold, end, spent).await;
        }
        let delivery = self.clone();
        self.credits.context.transcripts.background().detach(async move {
            let policy = delivery.options().hold_policy();
            let end = match end {
                PrepaidEnd::Unread(_) => delivery.end(policy, &id).await,
                end => {
                    delivery.clone().void_later(id).await;
                    end
                }
            };
            delivery.end_hold(policy, hold, end, spent).await;
        });
        false
    }

    /// As [`Self::end_payment`], with the end of its delivery.
    async fn end_hold(&self, policy: StorePolicy, hold: HoldGuard, end: PrepaidEnd, spent: Vec<u64>) -> bool {
        let was_used = matches!(end, PrepaidEnd::Before(HoldState::Settled { .. }));
        let is_charged = was_used
            && matches!(self.consume_within(policy).await, Consumption::Missing | Consumption::Unread(_));
        match is_charged {
            true => hold.settle(spent).await,
            false => hold.release().await,
        }
        is_charged
    }

    /// Whether the account may have prepaid deliveries.
    pub(super) fn may_exist(&self) -> bool {
        has_prepaid(&self.account, self.credits.context.now())
    }

    /// Removes a prepaid delivery that the account need not have. If that fails, one delivery is free.
    pub(super) async fn remove(&self, id: &HoldId) {
        if let PrepaidEnd::Unread(error) | PrepaidEnd::Unknown(error) =
            self.end(self.options().request_policy(), id).await
        {
            tracing::warn!(hold = %id, %error, "prepaid delivery not removed");
        }
    }

    /// Removes a prepaid delivery that may have been recorded, once the ledger responds again.
    async fn void_later(self, id: HoldId) {
        if let Err(error) = self.settle_later(&id).await {
            tracing::warn!(hold = %id, %error, "prepaid delivery not removed");
        }
    }

    /// Settles a prepaid delivery, and repeats that for as long as a lease lasts.
    async fn settle_later(&self, id: &HoldId) -> Result<SettleOutcome> {
        let request = self.settle_request(id);
        retry_store_persistently(self.options().hold_policy(), || self.credits.ledger.settle(request.clone()))
            .await
    }

    fn settle_request(&self, id: &HoldId) -> SettleRequest {
        SettleRequest { id: id.clone(), spent: vec![0], now: self.credits.context.now() }
    }

    /// Settles a prepaid delivery.
    ///
    /// Its state is read first: after a failed try, an earlier use would look like this one. A use by another caller
    /// between the two calls still does.
    async fn end(&self, policy: StorePolicy, id: &HoldId) -> PrepaidEnd {
        let ledger = &self.credits.ledger;
        // Never shortens a hold, so it only reads.
        let read = || ledger.extend(id, Timestamp::from_millis(0));
        match retry_store_persistently(policy, read).await {
            Ok(HoldState::Open { .. }) => {}
            Ok(state) => return PrepaidEnd::Before(state),
            Err(error) if error.kind() == ErrorKind::NotFound => return PrepaidEnd::Missing,
            Err(error) => return PrepaidEnd::Unread(error),
        }
        let request = self.settle_request(id);
        let settle = || ledger.settle(request.clone());
        let first_try = with_timeout(policy.attempt, settle());
        match retry_uncertain(first_try, || retry_store_persistently(policy, settle)).await {
            Ok((Ok(SettleOutcome::Settled { .. }), _))
            | Ok((Ok(SettleOutcome::Exists { state: HoldState::Settled { .. } }), false)) => PrepaidEnd::Now,
            Ok((Ok(SettleOutcome::Exists { state }), _)) => PrepaidEnd::Before(state),
            Ok((Ok(SettleOutcome::HoldNotFound), _)) => PrepaidEnd::Missing,
            Ok((Err(error), _)) | Err(error) => PrepaidEnd::Unknown(error),
        }
    }

    fn options(&self) -> &EngineOptions {
        self.credits.context.transcripts.options()
    }

    /// Stores until when the account may have prepaid deliveries. Its new version reaches every cache.
    async fn announce(&self, until: Timestamp) -> Result<()> {
        let AccountCredits { context, directory, .. } = &*self.credits;
        let policy = context.transcripts.options().request_policy();
        let extend = |account: &Account| Account {
            prepaid_until: account.prepaid_until.max(Some(until)),
            ..account.clone()
        };
        let changed = change_account(directory.as_ref(), policy, &self.account.id, extend).await?;
        changed.map(|_| ()).ok_or_else(|| Error::unexpected("the account was erased"))
    }

    fn id(&self, at: Timestamp, number: u32) -> HoldId {
        let day = at.as_millis().div_euclid(24 * 3600 * 1000);
        HoldId::new(format!("prepaid-{}-{day}-{number}", self.name))
    }
}

/// Whether an account may have prepaid deliveries at `now`.
pub(super) fn has_prepaid(account: &Account, now: Timestamp) -> bool {
    account.prepaid_until.is_some_and(|until| now < until)
}
