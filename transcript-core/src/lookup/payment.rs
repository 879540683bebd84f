//! Payment of a new transcript in the lookup API: payer, legs and refusals (specification 11, 12).

use std::{any::Any, sync::Arc};

use async_trait::async_trait;

use super::{FailureReason, KeyPlan, LookupKeys, LookupOptions, limits::LookupLimits, visitor::Visitor};
use crate::{
    directory::LookupKey,
    engine::{HeldPayment, NoTranscript, Payer, PaymentHold, QueueOwner, QueueOwnerId, WorkResult},
    error::{Error, Result},
    ids::{HoldId, WalletId, random_id},
    ledger::{
        HoldGuard, HoldManager, HoldOutcome, HoldRequest, HoldResult, Leg, Terms,
        terms::{self, AllowancePeriod},
    },
    limits::LimitRequest,
    time::{Clock, Random, Timestamp},
    video::VideoId,
};

/// The wallet of the daily cap.
const SERVICE_WALLET: &str = "service";

/// Who pays for a new transcript.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one value per fetch")]
pub(super) enum LookupPayer {
    /// A key, with its allowance.
    Key(LookupKey),
    /// A visitor of the watch page, with their own allowance and their network's.
    Visitor(Visitor),
}

/// What happens to a held amount when a fetch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnFailure {
    /// It is returned.
    Return,
    /// It is spent if the fetch reached an upstream, so that failures have a cost.
    SpendIfAttempted,
}

impl OnFailure {
    /// How much of a held amount is spent.
    fn spent(self, result: WorkResult, amount: u64) -> u64 {
        match (result, self) {
            (WorkResult::Delivered, _)
            | (WorkResult::Failed | WorkResult::NotArchived, Self::SpendIfAttempted) => amount,
            (WorkResult::Failed | WorkResult::NotArchived, Self::Return) | (WorkResult::NotAttempted, _) => 0,
        }
    }
}

/// Holds and settles the payments of new transcripts.
#[derive(Clone, Debug)]
pub(super) struct LookupPayments {
    pub(super) keys: LookupKeys,
    pub(super) limits: LookupLimits,
    pub(super) holds: HoldManager,
    pub(super) clock: Arc<dyn Clock>,
    /// Randomness for IDs of holds.
    pub(super) random: Arc<dyn Random>,
    pub(super) options: Arc<LookupOptions>,
}

/// The payment of one lookup: its legs, checked in this order.
///
/// The allowance limits successes; the count of failed attempts or the network's allowance limits failures. Without an
/// attempt nothing is charged.
#[derive(Debug)]
struct LookupPayment {
    payments: LookupPayments,
    payer: LookupPayer,
    legs: Vec<(Leg, OnFailure)>,
    /// The purpose, for statements.
    memo: String,
    /// The limit that counts a failed attempt; `None` if this lookup is counted already, or counts elsewhere.
    attempt: Option<LimitRequest>,
}

/// A payment that is held while the engine works.
#[derive(Debug)]
struct HeldLookupPayment {
    limits: LookupLimits,
    clock: Arc<dyn Clock>,
    hold: Box<HoldGuard>,
    on_failure: Vec<OnFailure>,
    attempt: Option<LimitRequest>,
}

impl LookupPayments {
    /// Pays for a fetch. `counted`: whether this lookup is counted as an attempt already.
    pub(super) fn payer(&self, video: &VideoId, payer: LookupPayer, counted: bool) -> Arc<dyn Payer> {
        let now = self.clock.now();
        let options = &self.options;
        let mut legs = match &payer {
            LookupPayer::Key(key) => {
                vec![leg(key.wallet.clone(), self.keys.terms(key, now), OnFailure::Return)]
            }
            LookupPayer::Visitor(visitor) => {
                let visitor_terms = terms::allowance(AllowancePeriod::Day, options.visitor_per_day, now);
                vec![leg(visitor.wallet(), visitor_terms, OnFailure::Return)]
            }
        };
        if let LookupPayer::Visitor(visitor) = &payer {
            // A visitor that deletes the cookie keeps the network: failed attempts are counted there.
            legs.extend(self.limits.network_wallets(visitor.client, now).into_iter().map(
                |(wallet, limit)| {
                    leg(
                        wallet,
                        terms::allowance(AllowancePeriod::Day, limit, now),
                        OnFailure::SpendIfAttempted,
                    )
                },
            ));
        }
        let service = terms::allowance(AllowancePeriod::Day, options.service_per_day, now);
        legs.push(leg(WalletId::new(SERVICE_WALLET), service, OnFailure::SpendIfAttempted));
        let attempt = match &payer {
            LookupPayer::Key(key) if !counted => Some(self.limits.attempt(key)),
            LookupPayer::Key(_) | LookupPayer::Visitor(_) => None,
        };
        let memo = format!("transcript {video}");
        Arc::new(LookupPayment { payments: self.clone(), payer, legs, memo, attempt })
    }

    /// The refusal when a leg is spent.
    fn refusal(&self, leg: u32, payer: &LookupPayer, now: Timestamp) -> NoTranscript {
        const FREE: &str = "Archived transcripts stay free.";
        let networks = |visitor: &Visitor| self.limits.network_wallets(visitor.client, now).len();
        let tomorrow = || AllowancePeriod::Day.end(now).since(now);
        match (payer, usize::try_from(leg).unwrap_or(usize::MAX)) {
            (LookupPayer::Key(key), 0) => {
                let terms = self.keys.terms(key, now);
                let until = terms.resets_at.map_or(String::new(), |at| format!("; it resets at {at}"));
                let message =
                    format!("This API key has used its allowance of new transcripts{until}. {FREE}");
                NoTranscript::new(FailureReason::KeyAllowance, message)
            }
            (LookupPayer::Visitor(_), 0) => {
                let message = match self.options.visitor_per_day {
                    1 => {
                        format!(
                            "You have used your new transcript for today. Try again after midnight UTC. {FREE}"
                        )
                    }
                    count => {
                        format!(
                            "You have used your {count} new transcripts for today. Try again after midnight UTC. \
                             {FREE}"
                        )
                    }
                };
                NoTranscript::new(FailureReason::Allowance, message).with_retry_after(tomorrow())
            }
            (LookupPayer::Visitor(visitor), leg) if leg <= networks(visitor) => {
                let message = format!(
                    "Your network has used its new transcripts for today. Try again after midnight UTC. {FREE}"
                );
                NoTranscript::new(FailureReason::FairUse, message).with_retry_after(tomorrow())
            }
            _ => NoTranscript::new(
                FailureReason::DailyCap,
                "The service has reached its daily limit of new transcripts. Try again after midnight UTC.",
            ),
        }
    }
}

#[async_trait]
impl Payer for LookupPayment {
    async fn hold(&self) -> Result<PaymentHold> {
        let LookupPayments { limits, holds, clock, random, .. } = &self.payments;
        let now = clock.now();
        let request = HoldRequest {
            id: HoldId::new(random_id(random.as_ref(), "fetch")),
            legs: self.legs.iter().map(|(leg, _)| leg.clone()).collect(),
            now,
            expires_at: holds.expires_at(now),
            memo: self.memo.clone(),
        };
        match holds.hold(request).await? {
            HoldResult::Held(hold) => Ok(PaymentHold::Held(Box::new(HeldLookupPayment {
                limits: limits.clone(),
                clock: Arc::clone(clock),
                hold,
                on_failure: self.legs.iter().map(|(_, on_failure)| *on_failure).collect(),
                attempt: self.attempt.clone(),
            }))),
            HoldResult::Refused(HoldOutcome::Insufficient { leg, .. }) => {
                Ok(PaymentHold::Refused(self.payments.refusal(leg, &self.payer, now)))
            }
            HoldResult::Refused(_) => Err(Error::unexpected("a new hold ID already exists")),
        }
    }

    fn queue_owner(&self) -> QueueOwner {
        let now = self.payments.clock.now();
        match &self.payer {
            LookupPayer::Key(key) => QueueOwner {
                id: QueueOwnerId::Key(key.key.id.clone()),
                pays: KeyPlan::for_key(key, now) == KeyPlan::Plus,
            },
            LookupPayer::Visitor(visitor) => {
                // The widest network: a visitor may have every address of an IPv6 /48.
                let networks = self.payments.limits.network_wallets(visitor.client, now);
                let widest =
                    networks.into_iter().next_back().map_or_else(|| visitor.wallet(), |(wallet, _)| wallet);
                QueueOwner { id: QueueOwnerId::Network(widest), pays: false }
            }
        }
    }

    fn has_same_payment(&self, other: &dyn Payer) -> bool {
        // Wallets, terms and amounts: the ledger decides by nothing else.
        (other as &dyn Any).downcast_ref::<Self>().is_some_and(|other| other.legs == self.legs)
    }
}

#[async_trait]
impl HeldPayment for HeldLookupPayment {
    async fn end(self: Box<Self>, result: WorkResult) {
        let Self { limits, clock, hold, on_failure, attempt } = *self;
        let count = async {
            if let Some(attempt) = attempt.filter(|_| result == WorkResult::Failed) {
                // The response must not depend on an available limiter.
                let _ = limits.check(vec![attempt], clock.now()).await;
            }
        };
        let amounts = hold.amounts().iter().zip(&on_failure);
        let spent = amounts.map(|(amount, on_failure)| on_failure.spent(result, *amount)).collect();
        tokio::join!(count, hold.settle(spent));
    }
}

fn leg(wallet: WalletId, terms: Terms, on_failure: OnFailure) -> (Leg, OnFailure) {
    (Leg { wallet, terms, amount: 1 }, on_failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payment_leg_spends_by_result_and_policy() {
        use WorkResult::{Delivered, Failed, NotArchived, NotAttempted};
        let spent = |policy: OnFailure| {
            [Delivered, Failed, NotArchived, NotAttempted].map(|result| policy.spent(result, 7))
        };
        assert_eq!(spent(OnFailure::Return), [7, 0, 0, 0]);
        assert_eq!(spent(OnFailure::SpendIfAttempted), [7, 7, 7, 0]);
    }
}
