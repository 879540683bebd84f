//! Holding a payment before the work, and ending the hold after it.

use std::sync::Arc;

use super::{
    Inner, OnFailure, Payment,
    retry::{bounded, persistently},
};
use crate::{
    error::{Error, Result},
    ids::{HoldId, random_name},
    ledger::{Balance, HoldOutcome, HoldRequest, HoldState, Ledger, Settle, SettleOutcome},
};

/// A payment that is held.
#[derive(Debug)]
pub(super) struct Held {
    id: HoldId,
    payment: Payment,
}

impl Held {
    /// Tells whoever counts it that the suppliers were asked in vain.
    pub(super) async fn tell_in_vain(&self) {
        if let Some(in_vain) = &self.payment.in_vain {
            in_vain.asked_in_vain().await;
        }
    }
}

/// What came of holding a payment.
#[derive(Debug)]
pub(super) enum Holding {
    /// There is nothing to pay.
    Free,
    /// It is held.
    Held(Held),
    /// A leg cannot be covered.
    Refused { leg: u32, balance: Balance },
}

/// How the work ended, as far as the payment is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The transcript is archived.
    Delivered,
    /// There is none, after a supplier was asked.
    Failed,
    /// No supplier was asked, or none asked anybody.
    NotBegun,
}

impl Inner {
    /// Holds a payment under a fresh id.
    pub(super) async fn hold(&self, payment: Option<Payment>) -> Result<Holding> {
        let (Some(payment), Some(ledger)) = (payment, self.ledger.as_ref()) else {
            return Ok(Holding::Free);
        };
        let id = HoldId::new(random_name(self.random.as_ref(), "fetch"));
        let now = self.clock.now();
        let ask = HoldRequest {
            id: id.clone(),
            legs: payment.legs.iter().map(|leg| leg.leg.clone()).collect(),
            now,
            expires_at: now.plus(self.options.lease),
            memo: payment.memo.clone(),
        };
        let outcome = match persistently(self.brief(), || ledger.hold(ask.clone())).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.let_go(ledger, &ask).await;
                return Err(error);
            }
        };
        match outcome {
            // Known: an earlier try of this very call took effect.
            HoldOutcome::Held { .. } | HoldOutcome::Known { state: HoldState::Open { .. }, .. } => {
                Ok(Holding::Held(Held { id, payment }))
            }
            HoldOutcome::Refused { leg, balance } => Ok(Holding::Refused { leg, balance }),
            HoldOutcome::Known { .. } | HoldOutcome::Conflict => {
                Err(Error::unexpected("a fresh hold id was taken already"))
            }
        }
    }

    /// Returns what may be held all the same, although the ledger did not say so. If that fails too, it
    /// expires by itself.
    async fn let_go(&self, ledger: &Arc<dyn Ledger>, ask: &HoldRequest) {
        let nothing = Settle { id: ask.id.clone(), spent: vec![0; ask.legs.len()], now: self.clock.now() };
        if let Err(error) = bounded(self.options.store, ledger.settle(nothing)).await {
            tracing::warn!(hold = %ask.id, %error, "a hold of unknown outcome could not be released");
        }
    }

    /// Puts off a hold's expiry. A fault is no loss: the next beat tries again.
    pub(super) async fn extend(&self, held: &Held) {
        let (Some(ledger), until) = (self.ledger.as_ref(), self.clock.now().plus(self.options.lease)) else {
            return;
        };
        if let Err(error) = bounded(self.options.store, ledger.extend(&held.id, until)).await {
            tracing::warn!(hold = %held.id, %error, "a hold could not be extended");
        }
    }

    /// Ends a hold. When the ledger stays away the hold expires by itself: never charged, the
    /// operator's loss.
    pub(super) async fn settle(&self, held: &Held, ending: Ending) {
        let Some(ledger) = self.ledger.as_ref() else { return };
        let spent = held
            .payment
            .legs
            .iter()
            .map(|leg| match (ending, leg.on_failure) {
                (Ending::Delivered, _) | (Ending::Failed, OnFailure::SpendOnceAsked) => leg.leg.amount,
                (Ending::Failed, OnFailure::Return) | (Ending::NotBegun, _) => 0,
            })
            .collect();
        let settle = Settle { id: held.id.clone(), spent, now: self.clock.now() };
        match persistently(self.long(), || ledger.settle(settle.clone())).await {
            // Known and closed: an earlier try of this very call took effect.
            Ok(SettleOutcome::Settled { .. } | SettleOutcome::Known { state: HoldState::Closed { .. } }) => {}
            Ok(outcome) => tracing::warn!(hold = %held.id, ?outcome, ?ending, "a hold ended before its work"),
            Err(error) => {
                tracing::error!(hold = %held.id, %error, "a hold could not be settled; it will expire");
            }
        }
    }
}
