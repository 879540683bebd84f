//! Holds a payment before the work, and settles the hold after it.

use std::sync::Arc;

use super::{
    EngineInner, FetchPayment, OnFailure,
    retry::{with_retries, with_timeout},
};
use crate::{
    error::{Error, Result},
    ids::{HoldId, random_id},
    ledger::{Balance, HoldOutcome, HoldRequest, HoldState, Ledger, SettleOutcome, SettleRequest},
};

/// A payment with an open hold.
#[derive(Debug)]
pub(super) struct HeldPayment {
    id: HoldId,
    payment: FetchPayment,
}

impl HeldPayment {
    /// Calls the payment's hook for a failed attempt, if it has one.
    pub(super) async fn notify_failed_attempt(&self) {
        if let Some(hook) = &self.payment.failure_hook {
            hook.on_failed_attempt().await;
        }
    }
}

/// Outcome of holding a payment.
#[derive(Debug)]
pub(super) enum PaymentHold {
    /// There is nothing to pay.
    Free,
    /// The hold is open.
    Held(HeldPayment),
    /// A leg cannot be covered.
    Refused { leg: u32, balance: Balance },
}

/// Result of the work, for the payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkResult {
    /// The transcript is archived.
    Delivered,
    /// There is no transcript, and a supplier reached an upstream.
    Failed,
    /// No supplier reached an upstream.
    NotAttempted,
}

impl EngineInner {
    /// Holds a payment under a new ID.
    pub(super) async fn hold(&self, payment: Option<FetchPayment>) -> Result<PaymentHold> {
        let (Some(payment), Some(ledger)) = (payment, self.ledger.as_ref()) else {
            return Ok(PaymentHold::Free);
        };
        let id = HoldId::new(random_id(self.random.as_ref(), "fetch"));
        let now = self.clock.now();
        let request = HoldRequest {
            id: id.clone(),
            legs: payment.legs.iter().map(|leg| leg.leg.clone()).collect(),
            now,
            expires_at: now.plus(self.options.lease),
            memo: payment.memo.clone(),
        };
        let outcome = match with_retries(self.request_budget(), || ledger.hold(request.clone())).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.release_unknown(ledger, &request).await;
                return Err(error);
            }
        };
        match outcome {
            // Exists: an earlier try of this call took effect.
            HoldOutcome::Held { .. } | HoldOutcome::Exists { state: HoldState::Open { .. }, .. } => {
                Ok(PaymentHold::Held(HeldPayment { id, payment }))
            }
            HoldOutcome::Insufficient { leg, balance } => Ok(PaymentHold::Refused { leg, balance }),
            HoldOutcome::Exists { .. } | HoldOutcome::Conflict => {
                Err(Error::unexpected("a new hold ID already exists"))
            }
        }
    }

    /// Releases a hold whose outcome is unknown. If that fails too, the hold expires.
    async fn release_unknown(&self, ledger: &Arc<dyn Ledger>, request: &HoldRequest) {
        let release = SettleRequest {
            id: request.id.clone(),
            spent: vec![0; request.legs.len()],
            now: self.clock.now(),
        };
        if let Err(error) = with_timeout(self.options.store_timeout, ledger.settle(release)).await {
            tracing::warn!(hold = %request.id, %error, "hold release failed");
        }
    }

    /// Extends a hold's expiry. After a failure the next heartbeat retries.
    pub(super) async fn extend(&self, held: &HeldPayment) {
        let (Some(ledger), expires_at) = (self.ledger.as_ref(), self.clock.now().plus(self.options.lease))
        else {
            return;
        };
        if let Err(error) =
            with_timeout(self.options.store_timeout, ledger.extend(&held.id, expires_at)).await
        {
            tracing::warn!(hold = %held.id, %error, "hold extension failed");
        }
    }

    /// Settles a hold.
    ///
    /// If the ledger stays unavailable, the hold expires: the caller is not charged, and the operator bears the cost.
    pub(super) async fn settle(&self, held: &HeldPayment, work_result: WorkResult) {
        let Some(ledger) = self.ledger.as_ref() else { return };
        let spent = held
            .payment
            .legs
            .iter()
            .map(|leg| match (work_result, leg.on_failure) {
                (WorkResult::Delivered, _) | (WorkResult::Failed, OnFailure::SpendIfAttempted) => {
                    leg.leg.amount
                }
                (WorkResult::Failed, OnFailure::Return) | (WorkResult::NotAttempted, _) => 0,
            })
            .collect();
        let settle = SettleRequest { id: held.id.clone(), spent, now: self.clock.now() };
        match with_retries(self.lease_budget(), || ledger.settle(settle.clone())).await {
            // Exists and settled: an earlier try of this call took effect.
            Ok(
                SettleOutcome::Settled { .. } | SettleOutcome::Exists { state: HoldState::Settled { .. } },
            ) => {}
            Ok(outcome) => {
                tracing::warn!(hold = %held.id, ?outcome, ?work_result, "hold ended before its fetch")
            }
            Err(error) => {
                tracing::error!(hold = %held.id, %error, "hold settle failed");
            }
        }
    }
}
