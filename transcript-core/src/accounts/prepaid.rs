//! Prepaid deliveries: a transcript that an account has paid for and not received.
//!
//! A prepaid delivery is an open hold of no credits. It ends with a second such hold, the mark, whose expiry names the
//! call that ended it: so each repeat of a call learns whose the end is, on whichever server.
//! `Account::prepaid_until` limits the search for one to few accounts.

use std::{sync::Arc, time::Duration};

use super::{
    AccountCredits, change_account::change_account, charge::derive_id, transcript::LanguagePreference,
};
use crate::{
    directory::Account,
    engine::EngineOptions,
    error::{Error, ErrorKind, Result},
    failure_log::log_failure,
    ids::HoldId,
    ledger::{HoldGuard, HoldOutcome, HoldRequest, HoldResult, HoldState, Leg, SettleRequest},
    retry::{StorePolicy, retry_store_persistently, with_timeout},
    time::Timestamp,
    video::VideoId,
};

/// How long a delivery stays prepaid.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The largest number of prepaid deliveries of one transcript to one account in a day.
const PER_DAY_MAX: u32 = 8;
/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 3600 * 1000;
/// Stands for every language in the name of a delivery. No selector of a track has a space.
const ANY_LANGUAGE: &str = "any language";

/// Outcome of using a prepaid delivery.
#[derive(Debug)]
pub(super) enum Consumption {
    /// The delivery is prepaid, under this name.
    Used(String),
    /// It is not prepaid.
    Missing,
    /// The ledger did not respond, and nothing is used.
    Unread(Error),
    /// The ledger did not respond, and this end of a prepaid delivery with this name may be stored.
    Unknown(String, Box<PrepaidEnd>, Error),
}

/// A recorded prepaid delivery.
#[derive(Debug)]
pub(super) struct PrepaidRecord {
    id: HoldId,
    /// Distinguishes it from an earlier one with this id, which was not stored.
    expires_at: Timestamp,
}

/// The end of a prepaid delivery by one call, which may repeat it.
#[derive(Debug)]
pub(super) struct PrepaidEnd {
    record: PrepaidRecord,
    mark: HoldRequest,
}

/// The next delivery of one transcript to one account, which may be prepaid.
#[derive(Clone)]
pub(super) struct PrepaidDelivery {
    credits: Arc<AccountCredits>,
    account: Account,
    /// Identifies account, video and accepted language.
    name: String,
    /// The name of other deliveries that pay for this one: those in any language, and for such a one the default ones.
    also: String,
}

impl PrepaidDelivery {
    pub(super) fn new(
        credits: &Arc<AccountCredits>,
        account: &Account,
        video: &VideoId,
        preference: &LanguagePreference,
    ) -> Self {
        let name = |language: &str| derive_id(&[account.id.as_str(), &video.to_string(), language]);
        let (any, requested) = (name(ANY_LANGUAGE), name(preference.selector().as_str()));
        let (name, also) = match preference {
            LanguagePreference::Any => (any, requested),
            LanguagePreference::English | LanguagePreference::Language(_) => (requested, any),
        };
        Self { credits: Arc::clone(credits), account: account.clone(), name, also }
    }

    /// Records that the delivery is paid. Sets `tried` to what may be recorded, also after an error.
    ///
    /// # Errors
    /// The stores'.
    pub(super) async fn record(&self, tried: &mut Option<PrepaidRecord>) -> Result<()> {
        let now = self.credits.context.now();
        self.record_at(now, self.options().request_policy(), tried).await
    }

    async fn record_at(
        &self,
        now: Timestamp,
        policy: StorePolicy,
        tried: &mut Option<PrepaidRecord>,
    ) -> Result<()> {
        for number in 0..PER_DAY_MAX {
            let request = self.zero_hold(hold_id(&self.name, now, number), now, now.plus(LIFETIME));
            let (id, expires_at) = (request.id.clone(), request.expires_at);
            let hold = || self.credits.ledger.hold(request.clone());
            let outcome = retry_store_persistently(policy, hold).await;
            // Used, or of another fetch. With the same end, an earlier try of this call took effect.
            if let Ok(HoldOutcome::Exists { state, .. }) = &outcome
                && *state != (HoldState::Open { expires_at })
            {
                continue;
            }
            *tried = Some(PrepaidRecord { id, expires_at });
            return match outcome? {
                HoldOutcome::Held { .. } | HoldOutcome::Exists { .. } => {
                    self.announce(expires_at, policy).await
                }
                outcome => Err(Error::unexpected(format!("no prepaid delivery: {outcome:?}"))),
            };
        }
        Err(Error::unexpected("too many prepaid deliveries of one transcript"))
    }

    /// Records the delivery again whose use gave the account nothing. After a failure a task goes on.
    pub(super) async fn give_back(&self) {
        let mut tried = None;
        if self.record(&mut tried).await.is_ok() {
            return;
        }
        let delivery = self.clone();
        self.detach(async move {
            if let Err(error) = delivery.give_back_later(tried).await {
                tracing::error!(%error, "prepaid delivery not returned");
            }
        });
    }

    /// Records the delivery, unless what an earlier try may have recorded was used.
    async fn give_back_later(&self, tried: Option<PrepaidRecord>) -> Result<()> {
        let policy = self.options().hold_policy();
        if let Some(record) = tried
            && !self.end(policy, &self.end_of(record)).await?
        {
            return Ok(());
        }
        self.record_at(self.credits.context.now(), policy, &mut None).await
    }

    /// Uses a prepaid delivery, if there is one.
    pub(super) async fn consume(&self) -> Consumption {
        self.consume_within(self.options().request_policy()).await
    }

    async fn consume_within(&self, policy: StorePolicy) -> Consumption {
        for (name, day) in self.searches() {
            let mut number = 0;
            loop {
                let record = match self.next_open(policy, name, day, &mut number).await {
                    Ok(Some(record)) => record,
                    Ok(None) => break,
                    Err(error) => return Consumption::Unread(error),
                };
                let end = self.end_of(record);
                match self.end(policy, &end).await {
                    Ok(true) => return Consumption::Used(name.to_owned()),
                    Ok(false) => {}
                    Err(error) => {
                        return Consumption::Unknown(name.to_owned(), Box::new(end), error);
                    }
                }
            }
        }
        Consumption::Missing
    }

    /// Whether there may be a prepaid delivery, also if the ledger does not respond. Uses none.
    pub(super) async fn may_be_open(&self) -> bool {
        let policy = self.options().request_policy();
        for (name, day) in self.searches() {
            if !matches!(self.next_open(policy, name, day, &mut 0).await, Ok(None)) {
                return true;
            }
        }
        false
    }

    /// The names of the deliveries that may be open, with times on their days.
    fn searches(&self) -> [(&str, Timestamp); 4] {
        let now = self.credits.context.now();
        let (name, also, before) = (self.name.as_str(), self.also.as_str(), now.minus(LIFETIME));
        [(name, now), (name, before), (also, now), (also, before)]
    }

    /// The first open prepaid delivery of a name and day from `number` on, which becomes the number after it.
    async fn next_open(
        &self,
        policy: StorePolicy,
        name: &str,
        day: Timestamp,
        number: &mut u32,
    ) -> Result<Option<PrepaidRecord>> {
        while *number < PER_DAY_MAX {
            let id = hold_id(name, day, *number);
            *number += 1;
            // Never shortens a hold, so it only reads.
            let read = || self.credits.ledger.extend(&id, Timestamp::from_millis(0));
            match retry_store_persistently(policy, read).await {
                Ok(HoldState::Open { expires_at }) => return Ok(Some(PrepaidRecord { id, expires_at })),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// As [`Self::consume`], for a response that is not sent unless the outcome is known.
    ///
    /// Returns the used delivery, for [`Self::give_back`] if the response fails.
    ///
    /// # Errors
    /// The ledger's: what may be used is returned.
    pub(super) async fn consume_certainly(&self) -> Result<Option<Self>> {
        match self.consume().await {
            Consumption::Used(name) => Ok(Some(Self { name, ..self.clone() })),
            Consumption::Missing => Ok(None),
            Consumption::Unread(error) => Err(error),
            Consumption::Unknown(name, end, error) => {
                let delivery = Self { name, ..self.clone() };
                self.detach(async move {
                    match delivery.end(delivery.options().hold_policy(), &end).await {
                        Ok(true) => delivery.give_back().await,
                        Ok(false) => {}
                        Err(error) => tracing::error!(%error, "prepaid delivery outcome unknown"),
                    }
                });
                Err(error)
            }
        }
    }

    /// Charges `spent` of the hold of a delivery, unless the delivery is prepaid; returns whether it is charged.
    ///
    /// If that is unknown, it returns `false`, and the hold stays open until the ledger responds again.
    pub(super) async fn charge_unless_prepaid(&self, hold: HoldGuard, spent: Vec<u64>) -> bool {
        match self.consume().await {
            Consumption::Used(_) => hold.release().await,
            Consumption::Missing => {
                hold.settle(spent).await;
                return true;
            }
            unknown => self.detach(self.clone().charge_later(hold, spent, unknown)),
        }
        false
    }

    async fn charge_later(self, hold: HoldGuard, spent: Vec<u64>, unknown: Consumption) {
        let policy = self.options().hold_policy();
        let used = match unknown {
            Consumption::Unknown(_, end, _) => self.end(policy, &end).await,
            _ => Ok(false),
        };
        let consumption = match used {
            Ok(true) => return hold.release().await,
            // Another delivery used that one.
            Ok(false) => self.consume_within(policy).await,
            Err(error) => Consumption::Unread(error),
        };
        match consumption {
            Consumption::Used(_) => hold.release().await,
            Consumption::Missing => hold.settle(spent).await,
            Consumption::Unread(error) | Consumption::Unknown(_, _, error) => {
                tracing::warn!(hold = %hold.id(), %error, "delivery not charged");
                hold.release().await;
            }
        }
    }

    /// Ends the hold that pays for a prepaid delivery and for nothing else; returns whether that is charged.
    ///
    /// If the delivery was used, and no other one is left in its place, `spent` is charged. Otherwise the hold is
    /// released, and the delivery cannot be used any more. If that is unknown, it returns `false`, and the hold stays
    /// open until the ledger responds again.
    pub(super) async fn end_payment(&self, record: PrepaidRecord, hold: HoldGuard, spent: Vec<u64>) -> bool {
        let end = self.end_of(record);
        if let Ok(is_unused) = self.end(self.options().request_policy(), &end).await {
            return self.end_hold(hold, is_unused, spent).await;
        }
        let delivery = self.clone();
        self.detach(async move {
            let ended = delivery.end(delivery.options().hold_policy(), &end).await;
            if let Err(error) = &ended {
                log_failure!(warn, [%error], "prepaid delivery not removed");
            }
            delivery.end_hold(hold, ended.unwrap_or(true), spent).await;
        });
        false
    }

    async fn end_hold(&self, hold: HoldGuard, is_unused: bool, spent: Vec<u64>) -> bool {
        if is_unused {
            hold.release().await;
            return false;
        }
        self.charge_unless_prepaid(hold, spent).await
    }

    /// Removes the prepaid delivery of a request that delivers; returns whether another request used it before.
    ///
    /// `None` if that is unknown: a task goes on. It charges a transcript, with this memo, if the delivery was used.
    pub(super) async fn remove(&self, record: PrepaidRecord, memo: String) -> Option<bool> {
        let end = self.end_of(record);
        if let Ok(is_unused) = self.end(self.options().request_policy(), &end).await {
            return Some(!is_unused);
        }
        let delivery = self.clone();
        self.detach(async move {
            match delivery.end(delivery.options().hold_policy(), &end).await {
                Ok(false) => delivery.charge_again(&memo).await,
                Ok(true) => {}
                Err(error) => log_failure!(warn, [%error], "prepaid delivery not removed"),
            }
        });
        None
    }

    /// Charges a delivery whose hold paid for another one, which had used its prepaid delivery.
    pub(super) async fn charge_again(&self, memo: &str) {
        let AccountCredits { context, .. } = &*self.credits;
        let (name, cost) = (context.random_id("delivery"), context.options.credits_per_transcript);
        let request = self.credits.hold_request(&self.account, &name, cost, memo);
        match self.credits.holds.hold(request).await {
            Ok(HoldResult::Held(hold)) => {
                let spent = hold.amounts().to_vec();
                self.charge_unless_prepaid(*hold, spent).await;
            }
            outcome => tracing::warn!(?outcome, "delivery not charged"),
        }
    }

    /// Whether the account may have prepaid deliveries.
    pub(super) fn may_exist(&self) -> bool {
        has_prepaid(&self.account, self.credits.context.now())
    }

    /// The end of a prepaid delivery by this call.
    fn end_of(&self, record: PrepaidRecord) -> PrepaidEnd {
        let context = &self.credits.context;
        let (now, PrepaidRecord { id, expires_at }) = (context.now(), &record);
        let offset = context.random.bytes(4).iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
        // After the end of every prepaid delivery.
        let expiry = now.plus(3 * LIFETIME + Duration::from_millis(offset % DAY_MS));
        let mark = HoldId::new(format!("{id}-{}-end", expires_at.as_millis()));
        PrepaidEnd { record, mark: self.zero_hold(mark, now, expiry) }
    }

    /// Ends a prepaid delivery, also one that is stored later; returns whether nothing had ended it before.
    ///
    /// # Errors
    /// The ledger's: it may have ended. A repeat with the same end is exact.
    async fn end(&self, policy: StorePolicy, end: &PrepaidEnd) -> Result<bool> {
        let PrepaidEnd { record, mark } = end;
        let ledger = &self.credits.ledger;
        let is_first = match retry_store_persistently(policy, || ledger.hold(mark.clone())).await? {
            HoldOutcome::Held { .. } => true,
            HoldOutcome::Exists { state, .. } => state == (HoldState::Open { expires_at: mark.expires_at }),
            outcome => return Err(Error::unexpected(format!("no end of a prepaid delivery: {outcome:?}"))),
        };
        if let Err(error) = with_timeout(policy.attempt, self.close(record)).await {
            tracing::debug!(hold = %record.id, %error, "ended prepaid delivery is still open");
        }
        Ok(is_first)
    }

    /// Closes the hold of a prepaid delivery that has ended: searches find fewer open ones then, and a server of an
    /// earlier version does not know the mark.
    async fn close(&self, record: &PrepaidRecord) -> Result<()> {
        let ledger = &self.credits.ledger;
        // The id may be that of a later delivery, if this one was never stored. A time in the past only reads.
        let state = ledger.extend(&record.id, Timestamp::from_millis(0)).await?;
        if state == (HoldState::Open { expires_at: record.expires_at }) {
            let now = self.credits.context.now();
            let _ = ledger.settle(SettleRequest { id: record.id.clone(), spent: vec![0], now }).await?;
        }
        Ok(())
    }

    /// A request for a hold of no credits.
    fn zero_hold(&self, id: HoldId, now: Timestamp, expires_at: Timestamp) -> HoldRequest {
        let terms = self.credits.context.effective_plan(&self.account, now).terms();
        let legs = vec![Leg { wallet: self.account.wallet.clone(), terms, amount: 0 }];
        HoldRequest { id, legs, now, expires_at, memo: "prepaid transcript".to_owned() }
    }

    fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.credits.context.transcripts.background().detach(work);
    }

    fn options(&self) -> &EngineOptions {
        self.credits.context.transcripts.options()
    }

    /// Stores until when the account may have prepaid deliveries. Its new version reaches every cache.
    async fn announce(&self, until: Timestamp, policy: StorePolicy) -> Result<()> {
        let directory = &self.credits.directory;
        let extend = |account: &Account| Account {
            prepaid_until: account.prepaid_until.max(Some(until)),
            ..account.clone()
        };
        let changed = change_account(directory.as_ref(), policy, &self.account.id, extend).await?;
        changed.map(|_| ()).ok_or_else(|| Error::unexpected("the account was erased"))
    }
}

fn hold_id(name: &str, at: Timestamp, number: u32) -> HoldId {
    let day = at.as_millis().div_euclid(DAY_MS as i64);
    HoldId::new(format!("prepaid-{name}-{day}-{number}"))
}

/// Whether an account may have prepaid deliveries at `now`.
pub(super) fn has_prepaid(account: &Account, now: Timestamp) -> bool {
    account.prepaid_until.is_some_and(|until| now < until)
}
