//! Ledger and charge store that report their operations to an observer.

use std::sync::Arc;

use async_trait::async_trait;
#[cfg(feature = "accounts")]
use transcript_core::accounts::{ChargeOutcome, ChargeRequest, ChargeStore};
use transcript_core::{
    Result, Timestamp,
    engine::EngineObserver,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        LedgerOperation, LedgerOperationKind, LedgerOperationResult, PeriodBalance, RevokeOutcome,
        RevokeRequest, SettleOutcome, SettleRequest, Terms,
    },
    page::{Page, PageRequest},
};

/// A ledger or charge store with an observer.
#[derive(Debug)]
pub(crate) struct ObservedLedger<T: ?Sized> {
    inner: Arc<T>,
    observer: Arc<dyn EngineObserver>,
}

impl<T: ?Sized> ObservedLedger<T> {
    pub(crate) fn new(inner: Arc<T>, observer: &Arc<dyn EngineObserver>) -> Arc<Self> {
        Arc::new(Self { inner, observer: Arc::clone(observer) })
    }

    fn report(&self, kind: LedgerOperationKind, result: LedgerOperationResult, amount: u64) {
        let amount = if result == LedgerOperationResult::Done { amount } else { 0 };
        self.observer.on_ledger_operation(LedgerOperation { kind, result, amount });
    }
}

fn hold_result(outcome: &HoldOutcome) -> LedgerOperationResult {
    match outcome {
        HoldOutcome::Held { .. } => LedgerOperationResult::Done,
        HoldOutcome::Insufficient { .. } => LedgerOperationResult::Refused,
        HoldOutcome::Exists { .. } | HoldOutcome::Conflict => LedgerOperationResult::Duplicate,
    }
}

fn operation_result<T>(
    outcome: &Result<T>,
    of: impl FnOnce(&T) -> LedgerOperationResult,
) -> LedgerOperationResult {
    outcome.as_ref().map_or(LedgerOperationResult::Failed, of)
}

fn amount(request: &HoldRequest) -> u64 {
    request.legs.iter().fold(0, |sum, leg| sum.saturating_add(leg.amount))
}

#[async_trait]
impl Ledger for ObservedLedger<dyn Ledger> {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        let amount = amount(&request);
        let held = self.inner.hold(request).await;
        self.report(LedgerOperationKind::Hold, operation_result(&held, hold_result), amount);
        held
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        let amount = amount(&request);
        let spent = self.inner.spend(request).await;
        self.report(LedgerOperationKind::Spend, operation_result(&spent, hold_result), amount);
        spent
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.inner.extend(id, expires_at).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        let amount = request.spent.iter().fold(0_u64, |sum, spent| sum.saturating_add(*spent));
        let kind = if amount > 0 { LedgerOperationKind::Settle } else { LedgerOperationKind::Release };
        let settled = self.inner.settle(request).await;
        let result = operation_result(&settled, |outcome| match outcome {
            SettleOutcome::Settled { .. } => LedgerOperationResult::Done,
            SettleOutcome::Exists { .. } | SettleOutcome::HoldNotFound => LedgerOperationResult::Duplicate,
        });
        self.report(kind, result, amount);
        settled
    }

    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome> {
        let amount = grant.amount;
        let granted = self.inner.grant(grant).await;
        let result = operation_result(&granted, |outcome| match outcome {
            GrantOutcome::Granted { .. } => LedgerOperationResult::Done,
            _ => LedgerOperationResult::Duplicate,
        });
        self.report(LedgerOperationKind::Grant, result, amount);
        granted
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        let revoked = self.inner.revoke(request).await;
        let (result, amount) = match &revoked {
            Ok(RevokeOutcome::Revoked { taken, .. }) => (LedgerOperationResult::Done, *taken),
            Ok(_) => (LedgerOperationResult::Duplicate, 0),
            Err(_) => (LedgerOperationResult::Failed, 0),
        };
        self.report(LedgerOperationKind::Revoke, result, amount);
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
    ) -> Result<PeriodBalance> {
        self.inner.balance_since(wallet, terms, since).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        let expired = self.inner.expire(now, limit).await?;
        for _ in 0..expired {
            self.report(LedgerOperationKind::Expire, LedgerOperationResult::Done, 0);
        }
        Ok(expired)
    }

    async fn shorten_holds(&self, latest: Timestamp) -> Result<()> {
        self.inner.shorten_holds(latest).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.inner.entries(wallet, page).await
    }

    async fn recent_entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.inner.recent_entries(wallet, page).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        self.inner.wallets(page).await
    }

    async fn check_writable(&self) -> Result<()> {
        self.inner.check_writable().await
    }
}

#[cfg(feature = "accounts")]
#[async_trait]
impl ChargeStore for ObservedLedger<dyn ChargeStore> {
    async fn charge(&self, request: ChargeRequest) -> Result<ChargeOutcome> {
        let amount = amount(&request.spend);
        let charged = self.inner.charge(request).await;
        let result = match &charged {
            Ok(ChargeOutcome::Accepted { spent, .. }) => Some(hold_result(spent)),
            // The ledger was not used.
            Ok(ChargeOutcome::Stale | ChargeOutcome::Limited { .. }) => None,
            Err(_) => Some(LedgerOperationResult::Failed),
        };
        if let Some(result) = result {
            self.report(LedgerOperationKind::Spend, result, amount);
        }
        charged
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    #[cfg(feature = "accounts")]
    use transcript_core::{
        accounts::SequentialCharges,
        memory::{MemoryDirectory, MemoryRateLimiter},
    };
    use transcript_core::{
        engine::FetchStage,
        ids::GrantId,
        ledger::{Leg, Pool},
        memory::MemoryLedger,
    };

    use super::*;

    #[derive(Debug, Default)]
    struct RecordingObserver(Mutex<Vec<(&'static str, &'static str, u64)>>);

    impl EngineObserver for RecordingObserver {
        fn on_stage(&self, _: FetchStage) {}

        fn on_ledger_operation(&self, step: LedgerOperation) {
            self.0.lock().unwrap().push((step.kind.as_str(), step.result.as_str(), step.amount));
        }
    }

    fn request(id: &str, amount: u64) -> HoldRequest {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        let leg = Leg { wallet: WalletId::new("w"), terms, amount };
        let (now, expires_at) = (Timestamp::from_millis(0), Timestamp::from_millis(60_000));
        HoldRequest { id: HoldId::new(id), legs: vec![leg], now, expires_at, memo: String::new() }
    }

    #[tokio::test]
    async fn ledger_operations_are_reported_with_result() {
        let recorder = Arc::new(RecordingObserver::default());
        let observer: Arc<dyn EngineObserver> = Arc::clone(&recorder) as _;
        let inner: Arc<dyn Ledger> = Arc::new(MemoryLedger::default());
        let ledger = ObservedLedger::new(inner, &observer);
        let take_reports = || std::mem::take(&mut *recorder.0.lock().unwrap());
        let now = Timestamp::from_millis(0);
        let _ = ledger.hold(request("a", 3)).await.unwrap();
        assert_eq!(take_reports(), [("hold", "refused", 0)]);
        let grant = GrantRequest {
            id: GrantId::new("g"),
            wallet: WalletId::new("w"),
            amount: 10,
            now,
            memo: String::new(),
        };
        let _ = ledger.grant(grant.clone()).await.unwrap();
        let _ = ledger.grant(grant).await.unwrap();
        assert_eq!(take_reports(), [("grant", "done", 10), ("grant", "known", 0)]);
        let _ = ledger.hold(request("a", 3)).await.unwrap();
        let _ = ledger.hold(request("a", 3)).await.unwrap();
        let _ = ledger.spend(request("b", 2)).await.unwrap();
        assert_eq!(take_reports(), [("hold", "done", 3), ("hold", "known", 0), ("spend", "done", 2)]);
        let settle = |id: &str, spent| SettleRequest { id: HoldId::new(id), spent: vec![spent], now };
        let _ = ledger.settle(settle("a", 1)).await.unwrap();
        let _ = ledger.settle(settle("unknown", 0)).await.unwrap();
        assert_eq!(take_reports(), [("settle", "done", 1), ("release", "known", 0)]);
        for id in ["c", "d"] {
            let _ = ledger.hold(request(id, 1)).await.unwrap();
        }
        ledger.expire(Timestamp::from_millis(60_000), 10).await.unwrap();
        assert_eq!(take_reports()[2..], [("expire", "done", 0), ("expire", "done", 0)]);
        let revoke = RevokeRequest {
            id: GrantId::new("r"),
            grant: GrantId::new("g"),
            amount: 10,
            now,
            memo: String::new(),
        };
        let _ = ledger.revoke(revoke).await.unwrap();
        assert_eq!(take_reports(), [("revoke", "done", 7)], "the available credits");
        // An invalid hold.
        let mut much = request("e", 1);
        much.legs.clear();
        assert!(ledger.hold(much).await.is_err());
        assert_eq!(take_reports(), [("hold", "failed", 0)]);
    }

    #[cfg(feature = "accounts")]
    #[tokio::test]
    async fn stale_charge_is_not_reported() {
        let recorder = Arc::new(RecordingObserver::default());
        let observer: Arc<dyn EngineObserver> = Arc::clone(&recorder) as _;
        let inner: Arc<dyn ChargeStore> = Arc::new(SequentialCharges {
            directory: Arc::new(MemoryDirectory::default()),
            limiter: Arc::new(MemoryRateLimiter::default()),
            ledger: Arc::new(MemoryLedger::default()),
        });
        let request = ChargeRequest {
            key_digest: vec![7; 32],
            account: transcript_core::ids::AccountId::new("a"),
            version: 1,
            limit_request: transcript_core::limits::LimitRequest {
                bucket: "b".to_owned(),
                max: 1,
                window_ms: 60_000,
                cost: 1,
            },
            spend: request("a", 1),
        };
        let charged = ObservedLedger::new(inner, &observer).charge(request).await.unwrap();
        assert!(matches!(charged, ChargeOutcome::Stale));
        assert!(recorder.0.lock().unwrap().is_empty());
    }
}
