//! The credits of one call: held before the work, settled on delivery, otherwise released.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{
    EffectivePlan, V1Error, call_context::CallContext, fetch_payment::AbandonedFetches,
    rate_limit::AccountLimits,
};
use crate::{
    directory::{Account, Directory},
    hex,
    ids::HoldId,
    ledger::{Balance, HoldGuard, HoldManager, HoldOutcome, HoldRequest, Ledger, Leg, Pool, SpendResult},
    time::Timestamp,
};

/// The credits of accounts: balances, holds and spends. Uses the ledger, and the directory for prepaid
/// deliveries.
#[derive(Debug)]
pub struct AccountCredits {
    pub(super) context: Arc<CallContext>,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) holds: HoldManager,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) limits: Arc<AccountLimits>,
    pub(super) abandoned_fetches: AbandonedFetches,
}

/// The hold that pays for a response, as it is stored with the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CreditHold {
    /// The id of the hold.
    pub(super) id: HoldId,
    /// The number of credits held.
    pub(super) amount: u64,
}

impl From<&HoldGuard> for CreditHold {
    fn from(hold: &HoldGuard) -> Self {
        Self { id: hold.id().clone(), amount: hold.amounts().iter().sum() }
    }
}

/// Derives a collision-free id of a hold, charge, job or stored response from `parts`.
pub(super) fn derive_id(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        // The length comes first, so that different lists never hash the same bytes.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    hex::encode(&digest.finalize())
}

impl AccountCredits {
    /// Builds a hold request for an account now; its id begins with `name`.
    pub(super) fn hold_request(&self, account: &Account, name: &str, cost: u64, memo: &str) -> HoldRequest {
        let (now, id) = (self.context.now(), HoldId::new(self.context.random_id(name)));
        self.hold_request_at(now, account, &self.context.effective_plan(account, now), id, cost, memo)
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
            expires_at: self.holds.expires_at(now),
            memo: memo.to_owned(),
        }
    }

    /// Opens a prepared hold; returns the credits left, and whether some of them are purchased.
    pub(super) async fn open_hold(
        &self,
        hold: &mut HoldGuard,
        request: &HoldRequest,
    ) -> Result<(u64, bool), V1Error> {
        match hold.open(request).await.map_err(V1Error::from_store_error)? {
            Ok(balances) => Ok((credits_left(&balances), has_purchased(&balances))),
            Err(outcome) => Err(hold_error(request, outcome, self.context.options.sells)),
        }
    }

    /// Holds and spends credits in one step, for an answer that is ready; returns the credits left.
    ///
    /// `None` if the outcome is unknown: then the answer must be delivered.
    pub(super) async fn spend(&self, request: &HoldRequest) -> Result<Option<u64>, V1Error> {
        let spent = self.holds.spend(request).await;
        self.credits_after(request, spent.map_err(V1Error::from_store_error)?)
    }

    /// The credits left after a spend; `None` if its outcome is unknown.
    pub(super) fn credits_after(
        &self,
        request: &HoldRequest,
        spent: SpendResult,
    ) -> Result<Option<u64>, V1Error> {
        match spent {
            SpendResult::Spent(balances) => Ok(Some(credits_left(&balances))),
            SpendResult::Refused(outcome) => Err(hold_error(request, outcome, self.context.options.sells)),
            SpendResult::Unknown => Ok(None),
        }
    }

    /// Settles the hold of a stored response with its full amount.
    pub(super) async fn settle_hold(&self, hold: &CreditHold) -> Result<(), V1Error> {
        let settled = self.holds.settle(&hold.id, vec![hold.amount]).await;
        settled.map(|_| ()).map_err(V1Error::from_store_error)
    }

    /// Releases the hold of a stored response. If that fails, the hold expires.
    pub(super) async fn release_hold(&self, hold: &CreditHold) {
        if let Err(error) = self.holds.settle(&hold.id, vec![0]).await {
            tracing::warn!(hold = %hold.id, %error, "hold release failed");
        }
    }
}

/// The credits left, from the balances of a hold's only leg.
fn credits_left(balances: &[Balance]) -> u64 {
    balances.first().map_or(0, Balance::available)
}

/// Whether the balances of a hold's only leg have purchased credits, the held ones included.
fn has_purchased(balances: &[Balance]) -> bool {
    let pools = balances.first().map_or(&[][..], |balance| &balance.pools);
    pools.iter().any(|pool| pool.pool == Pool::Purchased && pool.granted > pool.spent)
}

/// Maps an outcome that is not a hold to the caller's error.
fn hold_error(request: &HoldRequest, outcome: HoldOutcome, sells: bool) -> V1Error {
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
    fn derive_id_different_parts_give_different_ids() {
        let lists: [&[&str]; 6] = [&[], &[""], &["", ""], &["ab", "c"], &["a", "bc"], &["abc"]];
        let names: std::collections::HashSet<_> = lists.iter().map(|parts| derive_id(parts)).collect();
        assert_eq!(names.len(), lists.len());
        assert!(names.iter().all(|name| name.len() == 64));
        assert_eq!(derive_id(&["a", "b"]), derive_id(&["a", "b"]));
    }
}
