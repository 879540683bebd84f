use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use transcript_core::{
    Error, Timestamp,
    ids::{GrantId, HoldId},
    ledger::{
        GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Leg, PoolBalance, RevokeOutcome,
        RevokeRequest, SettleOutcome, SettleRequest,
    },
    memory::MemoryLedger,
    page::Page,
};

use super::*;

/// A ledger that falsifies balances, or adds a grant after each balance read.
#[derive(Debug)]
struct InconsistentLedger {
    inner: Arc<MemoryLedger>,
    extra_spent: u64,
    grants: AtomicU32,
}

fn at() -> Timestamp {
    Timestamp::from_millis(0)
}

async fn grant(ledger: &MemoryLedger, id: &str, amount: u64) {
    let grant = GrantRequest {
        id: GrantId::new(id),
        wallet: WalletId::new("w"),
        amount,
        now: at(),
        memo: String::new(),
    };
    let _ = ledger.grant(grant).await.unwrap();
}

#[async_trait]
impl transcript_core::test_doubles::LedgerWrapper for InconsistentLedger {
    fn inner(&self) -> &dyn Ledger {
        &*self.inner
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        let mut balance = self.inner.balance(wallet, terms).await?;
        for pool in &mut balance.pools {
            pool.spent += self.extra_spent;
        }
        let left = self.grants.load(Ordering::Relaxed);
        if left > 0 {
            self.grants.store(left - 1, Ordering::Relaxed);
            grant(&self.inner, &format!("late {left}"), 1).await;
        }
        Ok(balance)
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.inner.entries(wallet, PageRequest { limit: page.limit.min(3), ..page }).await
    }

    async fn hold(&self, _: HoldRequest) -> Result<HoldOutcome> {
        Err(read_only())
    }

    async fn spend(&self, _: HoldRequest) -> Result<HoldOutcome> {
        Err(read_only())
    }

    async fn extend(&self, _: &HoldId, _: Timestamp) -> Result<HoldState> {
        Err(read_only())
    }

    async fn settle(&self, _: SettleRequest) -> Result<SettleOutcome> {
        Err(read_only())
    }

    async fn grant(&self, _: GrantRequest) -> Result<GrantOutcome> {
        Err(read_only())
    }

    async fn revoke(&self, _: RevokeRequest) -> Result<RevokeOutcome> {
        Err(read_only())
    }

    async fn expire(&self, _: Timestamp, _: u32) -> Result<u32> {
        Err(read_only())
    }
}

fn read_only() -> Error {
    Error::unexpected("an audit does not write")
}

/// A ledger with 10 grants, one settled hold and one open hold in the wallet.
async fn ledger(extra_spent: u64, grants: u32) -> InconsistentLedger {
    let inner = Arc::new(MemoryLedger::default());
    for number in 0..10 {
        grant(&inner, &format!("g{number}"), 2).await;
    }
    for id in ["closed", "open"] {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        let hold_request = HoldRequest {
            id: HoldId::new(id),
            legs: vec![Leg { wallet: WalletId::new("w"), terms, amount: 3 }],
            now: at(),
            expires_at: Timestamp::from_millis(60_000),
            memo: String::new(),
        };
        let _ = inner.hold(hold_request).await.unwrap();
    }
    let settle = SettleRequest { id: HoldId::new("closed"), spent: vec![1], now: at() };
    let _ = inner.settle(settle).await.unwrap();
    InconsistentLedger { inner, extra_spent, grants: AtomicU32::new(grants) }
}

async fn read(inconsistent: &InconsistentLedger) -> (Vec<AuditFinding>, u64, usize) {
    let wallets = inconsistent.wallets(PageRequest::first()).await.unwrap().items;
    let mut scan = WalletScan::new(inconsistent, &wallets[0]);
    let found = scan.run().await.unwrap();
    (found.disagreements, scan.entries, scan.open.len())
}

#[tokio::test]
async fn audit_consistent_wallet_has_no_findings() {
    assert_eq!(read(&ledger(0, 0).await).await, (vec![], 14, 1));
}

/// The wallet of the service gets one bucket a day.
#[tokio::test]
async fn audit_wallet_with_30_buckets_is_read_completely() {
    let inconsistent =
        InconsistentLedger { inner: Arc::default(), extra_spent: 0, grants: AtomicU32::new(0) };
    for day in 0..30 {
        let pools = vec![Pool::Allowance { bucket: format!("day/{day:02}"), limit: 5 }];
        let hold_request = HoldRequest {
            id: HoldId::new(format!("h{day}")),
            legs: vec![Leg {
                wallet: WalletId::new("w"),
                terms: Terms { pools, resets_at: None },
                amount: 1,
            }],
            now: at(),
            expires_at: Timestamp::from_millis(60_000),
            memo: String::new(),
        };
        let _ = inconsistent.inner.spend(hold_request).await.unwrap();
    }
    assert_eq!(read(&inconsistent).await, (vec![], 30, 0));
}

#[tokio::test(start_paused = true)]
async fn audit_changing_wallet_is_read_until_stable() {
    assert_eq!(read(&ledger(0, 20).await).await, (vec![], 34, 1));
    let (found, _, _) = read(&ledger(0, 1_000).await).await;
    assert_eq!(found, vec![AuditFinding::Unstable { wallet: WalletId::new("w") }]);
}

#[tokio::test(start_paused = true)]
async fn audit_mismatch_is_found_in_changing_wallet() {
    for grants in [0, 5] {
        let (found, _, _) = read(&ledger(1, grants).await).await;
        let side =
            |spent| PoolBalance { pool: Pool::Purchased, spent, held: 3, granted: 20 + u64::from(grants) };
        let difference = BalanceMismatch { stored: Some(side(2)), recomputed: Some(side(1)) };
        assert_eq!(found, vec![AuditFinding::Balance { wallet: WalletId::new("w"), difference }]);
    }
}
