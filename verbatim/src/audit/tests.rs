use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use transcript_core::{
    Error, Timestamp,
    ids::{GrantId, HoldId},
    ledger::{
        BalanceSince, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Leg, PoolBalance, Revoke,
        RevokeOutcome, Settle, SettleOutcome,
    },
    memory::MemoryLedger,
    page::Page,
};

use super::*;

/// A ledger that tells untruths about balances, or gets a grant each time that a balance was read.
#[derive(Debug)]
struct Odd {
    inner: Arc<MemoryLedger>,
    lie: u64,
    grants: AtomicU32,
}

fn at() -> Timestamp {
    Timestamp::from_millis(0)
}

async fn grant(ledger: &MemoryLedger, id: &str, amount: u64) {
    let grant =
        Grant { id: GrantId::new(id), wallet: WalletId::new("w"), amount, now: at(), memo: String::new() };
    ledger.grant(grant).await.unwrap();
}

#[async_trait]
impl Ledger for Odd {
    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        let mut balance = self.inner.balance(wallet, terms).await?;
        for pool in &mut balance.pools {
            pool.spent += self.lie;
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

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        self.inner.wallets(page).await
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

    async fn settle(&self, _: Settle) -> Result<SettleOutcome> {
        Err(read_only())
    }

    async fn grant(&self, _: Grant) -> Result<GrantOutcome> {
        Err(read_only())
    }

    async fn revoke(&self, _: Revoke) -> Result<RevokeOutcome> {
        Err(read_only())
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        self.inner.balance_since(wallet, terms, since).await
    }

    async fn expire(&self, _: Timestamp, _: u32) -> Result<u32> {
        Err(read_only())
    }
}

fn read_only() -> Error {
    Error::unexpected("an audit changes nothing")
}

/// A ledger with 10 grants, one settled hold and one open one in the wallet.
async fn ledger(lie: u64, grants: u32) -> Odd {
    let inner = Arc::new(MemoryLedger::default());
    for number in 0..10 {
        grant(&inner, &format!("g{number}"), 2).await;
    }
    for id in ["closed", "open"] {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        let ask = HoldRequest {
            id: HoldId::new(id),
            legs: vec![Leg { wallet: WalletId::new("w"), terms, amount: 3 }],
            now: at(),
            expires_at: Timestamp::from_millis(60_000),
            memo: String::new(),
        };
        inner.hold(ask).await.unwrap();
    }
    inner.settle(Settle { id: HoldId::new("closed"), spent: vec![1], now: at() }).await.unwrap();
    Odd { inner, lie, grants: AtomicU32::new(grants) }
}

async fn read(odd: &Odd) -> (Vec<Disagreement>, u64, usize) {
    let wallets = odd.wallets(PageRequest::first()).await.unwrap().items;
    let mut reading = Reading::new(odd, &wallets[0]);
    let found = reading.run().await.unwrap();
    (found.disagreements, reading.entries, reading.open.len())
}

#[tokio::test]
async fn a_sound_wallet_agrees() {
    assert_eq!(read(&ledger(0, 0).await).await, (vec![], 14, 1));
}

/// The service's wallet gets a bucket a day.
#[tokio::test]
async fn a_wallet_with_a_bucket_for_every_day_is_read_whole() {
    let odd = Odd { inner: Arc::default(), lie: 0, grants: AtomicU32::new(0) };
    for day in 0..30 {
        let pools = vec![Pool::Allowance { bucket: format!("day/{day:02}"), limit: 5 }];
        let ask = HoldRequest {
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
        odd.inner.spend(ask).await.unwrap();
    }
    assert_eq!(read(&odd).await, (vec![], 30, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wallet_that_changes_is_read_until_it_is_at_rest() {
    assert_eq!(read(&ledger(0, 20).await).await, (vec![], 34, 1));
    let (found, _, _) = read(&ledger(0, 1_000).await).await;
    assert_eq!(found, vec![Disagreement::Restless { wallet: WalletId::new("w") }]);
}

#[tokio::test(start_paused = true)]
async fn a_difference_is_found_also_in_a_wallet_that_changes() {
    for grants in [0, 5] {
        let (found, _, _) = read(&ledger(1, grants).await).await;
        let side =
            |spent| PoolBalance { pool: Pool::Purchased, spent, held: 3, granted: 20 + u64::from(grants) };
        let difference = Difference { stored: Some(side(2)), recomputed: Some(side(1)) };
        assert_eq!(found, vec![Disagreement::Balance { wallet: WalletId::new("w"), difference }]);
    }
}
