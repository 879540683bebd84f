//! Stores that tell what was done in the ledger: for whoever counts.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{ChargeOutcome, ChargeRequest, Charges},
    engine::Observer,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, BalanceSince, Entry, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Ledger,
        Revoke, RevokeOutcome, Settle, SettleOutcome, Step, StepKind, StepResult, Terms,
    },
    page::{Page, PageRequest},
};

/// A ledger, or charges, that somebody hears of.
#[derive(Debug)]
pub(crate) struct Watched<T: ?Sized> {
    inner: Arc<T>,
    observer: Arc<dyn Observer>,
}

impl<T: ?Sized> Watched<T> {
    pub(crate) fn new(inner: Arc<T>, observer: &Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self { inner, observer: Arc::clone(observer) })
    }

    fn tell(&self, kind: StepKind, result: StepResult, amount: u64) {
        let amount = if result == StepResult::Done { amount } else { 0 };
        self.observer.ledger(Step { kind, result, amount });
    }
}

fn of_hold(outcome: &HoldOutcome) -> StepResult {
    match outcome {
        HoldOutcome::Held { .. } => StepResult::Done,
        HoldOutcome::Refused { .. } => StepResult::Refused,
        HoldOutcome::Known { .. } | HoldOutcome::Conflict => StepResult::Known,
    }
}

fn result<T>(made: &Result<T>, of: impl FnOnce(&T) -> StepResult) -> StepResult {
    made.as_ref().map_or(StepResult::Failed, of)
}

fn amount(ask: &HoldRequest) -> u64 {
    ask.legs.iter().fold(0, |sum, leg| sum.saturating_add(leg.amount))
}

#[async_trait]
impl Ledger for Watched<dyn Ledger> {
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        let amount = amount(&ask);
        let held = self.inner.hold(ask).await;
        self.tell(StepKind::Hold, result(&held, of_hold), amount);
        held
    }

    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        let amount = amount(&ask);
        let spent = self.inner.spend(ask).await;
        self.tell(StepKind::Spend, result(&spent, of_hold), amount);
        spent
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        self.inner.extend(id, until).await
    }

    async fn settle(&self, ask: Settle) -> Result<SettleOutcome> {
        let amount = ask.spent.iter().fold(0_u64, |sum, spent| sum.saturating_add(*spent));
        let kind = if amount > 0 { StepKind::Settle } else { StepKind::Release };
        let settled = self.inner.settle(ask).await;
        let result = result(&settled, |outcome| match outcome {
            SettleOutcome::Settled { .. } => StepResult::Done,
            SettleOutcome::Known { .. } | SettleOutcome::Unknown => StepResult::Known,
        });
        self.tell(kind, result, amount);
        settled
    }

    async fn grant(&self, grant: Grant) -> Result<GrantOutcome> {
        let amount = grant.amount;
        let granted = self.inner.grant(grant).await;
        let result = result(&granted, |outcome| match outcome {
            GrantOutcome::Granted { .. } => StepResult::Done,
            _ => StepResult::Known,
        });
        self.tell(StepKind::Grant, result, amount);
        granted
    }

    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome> {
        let revoked = self.inner.revoke(ask).await;
        let (result, amount) = match &revoked {
            Ok(RevokeOutcome::Revoked { taken, .. }) => (StepResult::Done, *taken),
            Ok(_) => (StepResult::Known, 0),
            Err(_) => (StepResult::Failed, 0),
        };
        self.tell(StepKind::Revoke, result, amount);
        revoked
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        self.inner.balance(wallet, terms).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        self.inner.balance_since(wallet, terms, since).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        let expired = self.inner.expire(now, limit).await?;
        for _ in 0..expired {
            self.tell(StepKind::Expire, StepResult::Done, 0);
        }
        Ok(expired)
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.inner.entries(wallet, page).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        self.inner.wallets(page).await
    }
}

#[async_trait]
impl Charges for Watched<dyn Charges> {
    async fn charge(&self, ask: ChargeRequest) -> Result<ChargeOutcome> {
        let amount = amount(&ask.spend);
        let charged = self.inner.charge(ask).await;
        let result = match &charged {
            Ok(ChargeOutcome::Counted { spent, .. }) => Some(of_hold(spent)),
            // Nobody's credits were asked for.
            Ok(ChargeOutcome::Stale | ChargeOutcome::Limited { .. }) => None,
            Ok(ChargeOutcome::Undone(_)) | Err(_) => Some(StepResult::Failed),
        };
        if let Some(result) = result {
            self.tell(StepKind::Spend, result, amount);
        }
        charged
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use transcript_core::{
        accounts::StepByStep,
        engine::Stage,
        ids::GrantId,
        ledger::{Leg, Pool},
        memory::{MemoryDirectory, MemoryLedger, MemoryRateLimiter},
    };

    use super::*;

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<(&'static str, &'static str, u64)>>);

    impl Observer for Heard {
        fn stage(&self, _: Stage) {}

        fn ledger(&self, step: Step) {
            self.0.lock().unwrap().push((step.kind.as_str(), step.result.as_str(), step.amount));
        }
    }

    fn ask(id: &str, amount: u64) -> HoldRequest {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        let leg = Leg { wallet: WalletId::new("w"), terms, amount };
        let (now, expires_at) = (Timestamp::from_millis(0), Timestamp::from_millis(60_000));
        HoldRequest { id: HoldId::new(id), legs: vec![leg], now, expires_at, memo: String::new() }
    }

    #[tokio::test]
    async fn every_step_is_told_with_what_came_of_it() {
        let heard = Arc::new(Heard::default());
        let observer: Arc<dyn Observer> = Arc::clone(&heard) as _;
        let inner: Arc<dyn Ledger> = Arc::new(MemoryLedger::default());
        let ledger = Watched::new(inner, &observer);
        let told = || std::mem::take(&mut *heard.0.lock().unwrap());
        let now = Timestamp::from_millis(0);
        ledger.hold(ask("a", 3)).await.unwrap();
        assert_eq!(told(), [("hold", "refused", 0)]);
        let grant =
            Grant { id: GrantId::new("g"), wallet: WalletId::new("w"), amount: 10, now, memo: String::new() };
        ledger.grant(grant.clone()).await.unwrap();
        ledger.grant(grant).await.unwrap();
        assert_eq!(told(), [("grant", "done", 10), ("grant", "known", 0)]);
        ledger.hold(ask("a", 3)).await.unwrap();
        ledger.hold(ask("a", 3)).await.unwrap();
        ledger.spend(ask("b", 2)).await.unwrap();
        assert_eq!(told(), [("hold", "done", 3), ("hold", "known", 0), ("spend", "done", 2)]);
        let settle = |id: &str, spent| Settle { id: HoldId::new(id), spent: vec![spent], now };
        ledger.settle(settle("a", 1)).await.unwrap();
        ledger.settle(settle("unknown", 0)).await.unwrap();
        assert_eq!(told(), [("settle", "done", 1), ("release", "known", 0)]);
        for id in ["c", "d"] {
            ledger.hold(ask(id, 1)).await.unwrap();
        }
        ledger.expire(Timestamp::from_millis(60_000), 10).await.unwrap();
        assert_eq!(told()[2..], [("expire", "done", 0), ("expire", "done", 0)]);
        let revoke =
            Revoke { id: GrantId::new("r"), grant: GrantId::new("g"), amount: 10, now, memo: String::new() };
        ledger.revoke(revoke).await.unwrap();
        assert_eq!(told(), [("revoke", "done", 7)], "what there was");
        // More than a ledger takes.
        let mut much = ask("e", 1);
        much.legs.clear();
        assert!(ledger.hold(much).await.is_err());
        assert_eq!(told(), [("hold", "failed", 0)]);
    }

    #[tokio::test]
    async fn a_charge_that_no_key_opens_is_none_of_the_ledgers() {
        let heard = Arc::new(Heard::default());
        let observer: Arc<dyn Observer> = Arc::clone(&heard) as _;
        let inner: Arc<dyn Charges> = Arc::new(StepByStep {
            directory: Arc::new(MemoryDirectory::default()),
            limiter: Arc::new(MemoryRateLimiter::default()),
            ledger: Arc::new(MemoryLedger::default()),
        });
        let ask = ChargeRequest {
            key_digest: vec![7; 32],
            account: transcript_core::ids::AccountId::new("a"),
            version: 1,
            take: transcript_core::limits::Take { bucket: "b".to_owned(), count: 1, per_ms: 60_000, cost: 1 },
            spend: ask("a", 1),
        };
        let charged = Watched::new(inner, &observer).charge(ask).await.unwrap();
        assert!(matches!(charged, ChargeOutcome::Stale));
        assert!(heard.0.lock().unwrap().is_empty());
    }
}
