//! Charges and spends in SQLite.

use async_trait::async_trait;
use transcript_core::{
    Result,
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore},
    ids::AccountId,
    ledger::{HoldOutcome, rules::HoldStep},
    limits::LimitRequest,
};

use super::{SqliteStore, ledger};
use crate::{
    codec::column,
    error::DbResult,
    sql::{Database, Session, WriteTx, values},
    store::limits,
};

/// The key of a charge, if it is live and its account has the expected version.
const LIVE_KEY: &str = "SELECT 1 FROM keys k JOIN accounts a ON a.id = k.account
    WHERE k.digest = ?1 AND k.revoked_at IS NULL AND a.id = ?2 AND a.version = ?3 AND a.erased_at IS NULL";

/// Statements of every request, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 1] = [LIVE_KEY];

/// A spend without a key or rate limit.
pub(super) struct SpendTx(pub(super) HoldStep);

impl WriteTx for SpendTx {
    type Outcome = HoldOutcome;

    const IS_CANCELLABLE: bool = true;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<HoldOutcome> {
        ledger::apply(db, &self.0).await
    }
}

/// A charge: key, rate limit and spend, in this order.
struct ChargeTx {
    key_digest: Vec<u8>,
    account: AccountId,
    version: u64,
    limit_request: LimitRequest,
    spend: HoldStep,
}

impl ChargeTx {
    fn new(charge: ChargeRequest) -> Self {
        let ChargeRequest { key_digest, account, version, limit_request, spend } = charge;
        Self { key_digest, account, version, limit_request, spend: HoldStep { request: spend, spend: true } }
    }
}

impl WriteTx for ChargeTx {
    type Outcome = ChargeOutcome;

    const IS_CANCELLABLE: bool = true;

    fn needs_sync(&self, outcome: &ChargeOutcome) -> bool {
        !matches!(outcome, ChargeOutcome::Stale | ChargeOutcome::Limited { .. })
    }

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<ChargeOutcome> {
        let Self { key_digest, account, version, limit_request, spend } = self;
        let key = values![key_digest, account.as_str(), column(*version)?];
        if db.row(LIVE_KEY, &key).await?.is_none() {
            return Ok(ChargeOutcome::Stale);
        }
        let counted = limits::acquire(db, std::slice::from_ref(limit_request), spend.request.now).await?;
        let (remaining, reset_ms) = match ChargeOutcome::allowed(counted) {
            Ok(allowed) => allowed,
            Err(limited) => return Ok(limited),
        };
        let spent = ledger::apply(db, spend).await?;
        Ok(ChargeOutcome::Accepted { remaining, reset_ms, spent })
    }
}

#[async_trait]
impl ChargeStore for SqliteStore {
    async fn charge(&self, item: ChargeRequest) -> Result<ChargeOutcome> {
        item.check()?;
        self.database.run(ChargeTx::new(item)).await
    }
}
