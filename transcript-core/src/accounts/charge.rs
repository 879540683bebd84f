//! The credits of one call: held before the work, spent when it is delivered, else returned.

use sha2::{Digest, Sha256};

use super::{Accounts, Refused, Standing};
use crate::{
    directory::Account,
    engine::retry::{bounded, persistently},
    error::{ErrorKind, Retry},
    ids::{HoldId, random_name},
    ledger::{Balance, HoldOutcome, HoldRequest, HoldState, Leg, Settle, SettleOutcome},
    time::Timestamp,
};

/// Credits that are held for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    /// The hold.
    pub(super) hold: HoldId,
    /// How many credits it holds.
    pub(super) amount: u64,
}

impl Charge {
    fn settle(&self, spent: u64, accounts: &Accounts) -> Settle {
        Settle { id: self.hold.clone(), spent: vec![spent], now: accounts.parts().clock.now() }
    }
}

/// A name that is the same for the same parts, and for no others: what an idempotency key stands for.
pub(super) fn hold_name(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        // With its length, so that no two lists of parts are the same text.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Accounts {
    /// A request to take credits of an account now, under an id that begins with `name`.
    pub(super) fn request(&self, account: &Account, name: &str, cost: u64, memo: &str) -> HoldRequest {
        let (now, id) = (self.parts.clock.now(), HoldId::new(random_name(self.parts.random.as_ref(), name)));
        self.request_at(now, account, &Standing::of(account, self.options(), now), id, cost, memo)
    }

    /// The same at a moment, under an id, of an account that stands like this at that moment.
    pub(super) fn request_at(
        &self,
        now: Timestamp,
        account: &Account,
        standing: &Standing,
        id: HoldId,
        cost: u64,
        memo: &str,
    ) -> HoldRequest {
        let leg = Leg { wallet: account.wallet.clone(), terms: standing.terms(), amount: cost };
        HoldRequest {
            id,
            legs: vec![leg],
            now,
            expires_at: now.plus(self.parts.transcripts.options().lease),
            memo: memo.to_owned(),
        }
    }

    /// Holds credits; returns how many are left.
    pub(super) async fn hold(&self, ask: &HoldRequest) -> Result<u64, Refused> {
        match self.surely(|| self.parts.ledger.hold(ask.clone())).await? {
            HoldOutcome::Held { balances }
            | HoldOutcome::Known { state: HoldState::Open { .. }, balances } => Ok(left(&balances)),
            outcome => Err(refused(ask, outcome, self.options().sells)),
        }
    }

    /// Holds and spends credits in one step, for an answer that is at hand; returns how many are left.
    ///
    /// None when nobody knows whether they were spent: the answer must be given all the same, since nobody
    /// may be charged for nothing. If they were not, that is the operator's loss.
    pub(super) async fn spend(&self, ask: &HoldRequest) -> Result<Option<u64>, Refused> {
        let patience = self.parts.transcripts.patience();
        let spend = || self.parts.ledger.spend(ask.clone());
        let first = bounded(patience.attempt, spend()).await;
        let known = first.is_ok();
        let outcome = match first {
            Err(error) if error.kind() == ErrorKind::Invalid => return Err(Refused::store(&error)),
            Err(error) if error.retry() == Retry::Never => Err(error),
            Err(_) => persistently(patience, spend).await,
            Ok(outcome) => Ok(outcome),
        };
        match outcome {
            Ok(
                HoldOutcome::Held { balances }
                | HoldOutcome::Known { state: HoldState::Closed { .. }, balances },
            ) => Ok(Some(left(&balances))),
            Ok(outcome) if known => Err(refused(ask, outcome, self.options().sells)),
            // The first try failed, and may yet take effect in a store that is slow.
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::error!(hold = %ask.id, %error, "whether credits were spent is not known");
                Ok(None)
            }
        }
    }

    /// Spends what is held, while a caller waits for it.
    pub(super) async fn settle_in_time(&self, charge: &Charge) -> Result<(), Refused> {
        let settle = charge.settle(charge.amount, self);
        self.surely(|| self.parts.ledger.settle(settle.clone())).await.map(|_| ())
    }

    /// Spends what is held, with as much patience as a hold has. When the ledger stays away the hold expires
    /// by itself: never charged, the operator's loss.
    pub(super) async fn settle_in_the_end(&self, charge: &Charge) {
        let settle = charge.settle(charge.amount, self);
        let patience = self.parts.transcripts.long_patience();
        match persistently(patience, || self.parts.ledger.settle(settle.clone())).await {
            // Known and closed: an earlier try of this very call took effect.
            Ok(SettleOutcome::Settled { .. } | SettleOutcome::Known { state: HoldState::Closed { .. } }) => {}
            Ok(outcome) => tracing::warn!(hold = %charge.hold, ?outcome, "a hold ended before its call"),
            Err(error) => {
                tracing::error!(hold = %charge.hold, %error, "a hold could not be settled; it will expire");
            }
        }
    }

    /// Returns what is held, or may be held although the ledger did not say so. If that fails it expires by
    /// itself.
    pub(super) async fn release(&self, charge: &Charge) {
        let settle = charge.settle(0, self);
        let limit = self.parts.transcripts.options().store;
        if let Err(error) = bounded(limit, self.parts.ledger.settle(settle)).await {
            tracing::warn!(hold = %charge.hold, %error, "a hold could not be released; it will expire");
        }
    }
}

/// The credits that are left, of the balances of a hold's only leg.
pub(super) fn left(balances: &[Balance]) -> u64 {
    balances.first().map_or(0, Balance::available)
}

/// What a ledger's other answers mean to the caller.
pub(super) fn refused(ask: &HoldRequest, outcome: HoldOutcome, sells: bool) -> Refused {
    let HoldOutcome::Refused { balance, .. } = outcome else {
        tracing::error!(hold = %ask.id, ?outcome, "a fresh hold id was taken already");
        return Refused::Internal("Something went wrong on our side: nothing was charged.".to_owned());
    };
    let credits_remaining = balance.available();
    let leg = ask.legs.first();
    let (cost, resets_at) = (leg.map_or(0, |leg| leg.amount), leg.and_then(|leg| leg.terms.resets_at));
    let until = resets_at.map_or(String::new(), |at| format!(" The plan's credits come back at {at}"));
    let more = match (resets_at, sells) {
        (Some(_), true) => "; POST /api/v1/buy-credits adds some at once.",
        (None, true) => " POST /api/v1/buy-credits adds some at once.",
        (Some(_), false) => ".",
        (None, false) => "",
    };
    let message = format!(
        "The credits do not suffice: this costs {cost}, and {credits_remaining} are left.{until}{more}"
    );
    Refused::PaymentRequired { message, credits_remaining }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_parts_have_another_name() {
        let lists: [&[&str]; 6] = [&[], &[""], &["", ""], &["ab", "c"], &["a", "bc"], &["abc"]];
        let names: std::collections::HashSet<_> = lists.iter().map(|parts| hold_name(parts)).collect();
        assert_eq!(names.len(), lists.len());
        assert!(names.iter().all(|name| name.len() == 64));
        assert_eq!(hold_name(&["a", "b"]), hold_name(&["a", "b"]));
    }
}
