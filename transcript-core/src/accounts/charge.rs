//! The credits of one call: held before the work, settled on delivery, otherwise released.

use sha2::{Digest, Sha256};

use super::{Accounts, EffectivePlan, V1Error};
use crate::{
    directory::Account,
    engine::retry::{with_retries, with_timeout},
    error::{ErrorKind, Retry},
    ids::{HoldId, random_id},
    ledger::{Balance, HoldOutcome, HoldRequest, HoldState, Leg, SettleOutcome, SettleRequest},
    time::Timestamp,
};

/// A hold of credits for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CreditHold {
    /// The id of the hold.
    pub(super) id: HoldId,
    /// The number of credits held.
    pub(super) amount: u64,
}

impl CreditHold {
    fn settle(&self, spent: u64, accounts: &Accounts) -> SettleRequest {
        SettleRequest { id: self.id.clone(), spent: vec![spent], now: accounts.deps().clock.now() }
    }
}

/// Derives a collision-free id from `parts`; used for the hold of an idempotency key.
pub(super) fn derive_hold_id(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        // The length comes first, so that different lists never hash the same bytes.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Accounts {
    /// Builds a hold request for an account now; its id begins with `name`.
    pub(super) fn hold_request(&self, account: &Account, name: &str, cost: u64, memo: &str) -> HoldRequest {
        let (now, id) = (self.deps.clock.now(), HoldId::new(random_id(self.deps.random.as_ref(), name)));
        self.hold_request_at(now, account, &EffectivePlan::new(account, self.options(), now), id, cost, memo)
    }

    /// Builds a hold request with the given id, time and effective plan.
    pub(super) fn hold_request_at(
        &self,
        now: Timestamp,
        account: &Account,
        effective_plan: &EffectivePlan,
        id: HoldId,
        cost: u64,
        memo: &str,
    ) -> HoldRequest {
        let leg = Leg { wallet: account.wallet.clone(), terms: effective_plan.terms(), amount: cost };
        HoldRequest {
            id,
            legs: vec![leg],
            now,
            expires_at: now.plus(self.deps.transcripts.options().lease),
            memo: memo.to_owned(),
        }
    }

    /// Holds credits; returns the credits left.
    pub(super) async fn hold(&self, request: &HoldRequest) -> Result<u64, V1Error> {
        match self.retry_store(|| self.deps.ledger.hold(request.clone())).await? {
            HoldOutcome::Held { balances }
            | HoldOutcome::Exists { state: HoldState::Open { .. }, balances } => Ok(credits_left(&balances)),
            outcome => Err(hold_error(request, outcome, self.options().sells)),
        }
    }

    /// Holds and spends credits in one step, for an answer that is ready; returns the credits left.
    ///
    /// `None` if the outcome is unknown. The caller must then deliver the answer, because the account may have
    /// been charged. If it was not, the operator bears the loss.
    pub(super) async fn spend(&self, request: &HoldRequest) -> Result<Option<u64>, V1Error> {
        let budget = self.deps.transcripts.request_budget();
        let spend = || self.deps.ledger.spend(request.clone());
        let first_try = with_timeout(budget.attempt, spend()).await;
        let is_outcome_known = first_try.is_ok();
        let outcome = match first_try {
            Err(error) if error.kind() == ErrorKind::Invalid => {
                return Err(V1Error::from_store_error(&error));
            }
            Err(error) if error.retry() == Retry::Never => Err(error),
            Err(_) => with_retries(budget, spend).await,
            Ok(outcome) => Ok(outcome),
        };
        match outcome {
            Ok(
                HoldOutcome::Held { balances }
                | HoldOutcome::Exists { state: HoldState::Settled { .. }, balances },
            ) => Ok(Some(credits_left(&balances))),
            Ok(outcome) if is_outcome_known => Err(hold_error(request, outcome, self.options().sells)),
            // The first try failed, but may still take effect in a slow store.
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::error!(hold = %request.id, %error, "credit spend outcome unknown");
                Ok(None)
            }
        }
    }

    /// Settles the hold with its full amount, within the retry budget for requests.
    pub(super) async fn settle_hold(&self, hold: &CreditHold) -> Result<(), V1Error> {
        let settle = hold.settle(hold.amount, self);
        self.retry_store(|| self.deps.ledger.settle(settle.clone())).await.map(|_| ())
    }

    /// Settles the hold with its full amount, within the retry budget for holds. If the ledger stays
    /// unavailable, the hold expires: the account is never charged, and the operator bears the loss.
    pub(super) async fn settle_with_retries(&self, hold: &CreditHold) {
        let settle = hold.settle(hold.amount, self);
        let budget = self.deps.transcripts.lease_budget();
        match with_retries(budget, || self.deps.ledger.settle(settle.clone())).await {
            // Exists and settled: an earlier try of this call took effect.
            Ok(
                SettleOutcome::Settled { .. } | SettleOutcome::Exists { state: HoldState::Settled { .. } },
            ) => {}
            Ok(outcome) => tracing::warn!(hold = %hold.id, ?outcome, "hold ended before its call"),
            Err(error) => {
                tracing::error!(hold = %hold.id, %error, "hold settle failed");
            }
        }
    }

    /// Releases a hold, also one whose creation the ledger did not confirm.
    /// If that fails, the hold expires.
    pub(super) async fn release_hold(&self, hold: &CreditHold) {
        let settle = hold.settle(0, self);
        let timeout = self.deps.transcripts.options().store_timeout;
        if let Err(error) = with_timeout(timeout, self.deps.ledger.settle(settle)).await {
            tracing::warn!(hold = %hold.id, %error, "hold release failed");
        }
    }
}

/// The credits left, from the balances of a hold's only leg.
pub(super) fn credits_left(balances: &[Balance]) -> u64 {
    balances.first().map_or(0, Balance::available)
}

/// Maps an outcome that is not a hold to the caller's error.
pub(super) fn hold_error(request: &HoldRequest, outcome: HoldOutcome, sells: bool) -> V1Error {
    let HoldOutcome::Insufficient { balance, .. } = outcome else {
        tracing::error!(hold = %request.id, ?outcome, "new hold id already exists");
        return V1Error::Internal(
            "The server could not process the request. Nothing was charged.".to_owned(),
        );
    };
    let credits_remaining = balance.available();
    let leg = request.legs.first();
    let (cost, resets_at) = (leg.map_or(0, |leg| leg.amount), leg.and_then(|leg| leg.terms.resets_at));
    let reset_note = resets_at.map_or(String::new(), |at| format!(" The plan's credits reset at {at}"));
    let buy_note = match (resets_at, sells) {
        (Some(_), true) => "; POST /api/v1/buy-credits adds credits now.",
        (None, true) => " POST /api/v1/buy-credits adds credits now.",
        (Some(_), false) => ".",
        (None, false) => "",
    };
    let message = format!(
        "Not enough credits: this costs {cost}, and {credits_remaining} are left.{reset_note}{buy_note}"
    );
    V1Error::PaymentRequired { message, credits_remaining }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derive_hold_id_different_parts_give_different_ids() {
        let lists: [&[&str]; 6] = [&[], &[""], &["", ""], &["ab", "c"], &["a", "bc"], &["abc"]];
        let names: std::collections::HashSet<_> = lists.iter().map(|parts| derive_hold_id(parts)).collect();
        assert_eq!(names.len(), lists.len());
        assert!(names.iter().all(|name| name.len() == 64));
        assert_eq!(derive_hold_id(&["a", "b"]), derive_hold_id(&["a", "b"]));
    }
}
