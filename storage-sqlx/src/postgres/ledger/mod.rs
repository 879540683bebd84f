//! The ledger in PostgreSQL.

#[macro_use]
pub(crate) mod rows;
mod general;
#[macro_use]
mod load;
mod fast_path;
mod store;

use async_trait::async_trait;
use sqlx::{Row, postgres::PgRow};
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
        rules::{self, ExpireRequest, ExtendRequest, HoldStep, PoolRow},
    },
};

pub(super) use fast_path::SpendBatcher;
pub(super) use load::{AdmissionKeys, LoadedRows, load, lock};
pub(super) use store::{AdmittedRows, store};

use super::{
    PostgresStore,
    text::{decode, read},
};
use crate::{
    codec::{self, number},
    error::DbResult,
    sql::values,
    store::{
        self as sql_store,
        ledger::{buckets, expire_in_steps},
    },
};

/// Most overdue holds that one transaction expires.
const EXPIRE_MAX: u32 = 100;

const POOLS: &str = "SELECT p.wallet, p.bucket, p.cap, p.spent, p.held, p.granted FROM ledger_pools p
    WHERE p.wallet = $1 AND p.bucket = ANY ($2)";

/// Each row has a pool of [`POOLS`] and the sum, so that both come from one state.
///
/// Without pools there is one row with the sum.
const POOLS_SINCE: &str = "SELECT p.wallet, p.bucket, p.cap, p.spent, p.held, p.granted, s.spent
    FROM (
        SELECT coalesce(sum(amount), 0)::BIGINT AS spent FROM ledger_entries
        WHERE wallet = $1 AND bucket = '' AND kind IN ('spent', 'charged') AND at >= $3
    ) s LEFT JOIN ledger_pools p ON p.wallet = $1 AND p.bucket = ANY ($2)";

/// A wallet that only entries or open holds with an amount name has lost its pools, and the audit must find it. So must
/// one of an open hold that is not stored.
const WALLETS: &str = "WITH named AS (
        SELECT wallet FROM (
            (SELECT DISTINCT wallet FROM ledger_pools WHERE wallet > $1 ORDER BY wallet LIMIT $2)
            UNION (SELECT DISTINCT wallet FROM ledger_entries WHERE wallet > $1 ORDER BY wallet LIMIT $2)
            UNION (SELECT DISTINCT o.wallet FROM ledger_open o WHERE o.wallet > $1 AND (
                SELECT max(leg.amount) FROM ledger_holds h, unnest(h.wallets, h.amounts) AS leg (wallet, amount)
                WHERE h.id = o.hold AND leg.wallet = o.wallet
            ) IS DISTINCT FROM 0 ORDER BY wallet LIMIT $2)
        ) n ORDER BY wallet LIMIT $2
    )
    SELECT named.wallet, p.* FROM named CROSS JOIN LATERAL (
        SELECT array_agg(bucket ORDER BY number, bucket), array_agg(cap ORDER BY number, bucket),
            array_agg(spent ORDER BY number, bucket), array_agg(held ORDER BY number, bucket),
            array_agg(granted ORDER BY number, bucket), count(*)
        FROM ledger_pools WHERE wallet = named.wallet
    ) p ORDER BY named.wallet";

#[async_trait]
impl Ledger for PostgresStore {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        general::run(&self.database, HoldStep { request, spend: false }).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        self.queues.spends.spend(request).await
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        general::run(&self.database, ExtendRequest { id: id.clone(), expires_at }).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        general::run(&self.database, request).await
    }

    async fn grant(&self, request: GrantRequest) -> Result<GrantOutcome> {
        request.check()?;
        general::run(&self.database, request).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        request.check()?;
        general::run(&self.database, request).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        let keys = values![wallet.as_str(), buckets(terms)];
        let found = self.database.find_decoded(POOLS, &keys, |row| rows::pool(row, 0)).await?;
        Ok(rules::balance(&found, wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        terms.check()?;
        let keys = values![wallet.as_str(), buckets(terms), since.as_millis()];
        let found = self.database.find_decoded(POOLS_SINCE, &keys, |row| {
            let is_pool = row.try_get::<Option<&str>, _>(0)?.is_some();
            Ok((is_pool.then(|| rows::pool(row, 0)).transpose()?, number(row.try_get(6)?)?))
        });
        let found = found.await?;
        let purchased_spent = found.first().map_or(0, |(_, spent)| *spent);
        let pools: Vec<PoolRow> = found.into_iter().filter_map(|(pool, _)| pool).collect();
        Ok(PeriodBalance { balance: rules::balance(&pools, wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        expire_in_steps(limit, EXPIRE_MAX, |limit| general::run(&self.database, ExpireRequest { now, limit }))
            .await
    }

    async fn shorten_holds(&self, latest: Timestamp) -> Result<()> {
        sql_store::ledger::shorten_holds(&self.database, latest).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        sql_store::ledger::entries(&self.database, wallet, &page).await
    }

    async fn recent_entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        sql_store::ledger::recent_entries(&self.database, wallet, &page).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let keys = values![after, codec::one_more(&page)];
        let found = self.database.find_decoded(WALLETS, &keys, wallet).await?;
        Ok(Page::cut(found, &page, |balance| balance.wallet.as_str().to_owned()))
    }

    async fn check_writable(&self) -> Result<()> {
        sql_store::check_writable(&self.database, "main").await
    }
}

/// Decodes the wallet in a row of [`WALLETS`].
fn wallet(row: &PgRow) -> DbResult<Balance> {
    let name = read(row, 0)?;
    let mut pools = Vec::new();
    if row.try_get::<i64, _>(6)? > 0 {
        let buckets: Vec<String> = row.try_get(1)?;
        let figures = rows::numbers(row, 3)?.into_iter().zip(rows::numbers(row, 4)?);
        let figures = rows::numbers(row, 2)?.into_iter().zip(figures).zip(rows::numbers(row, 5)?);
        for (bucket, ((cap, (spent, held)), granted)) in buckets.into_iter().zip(figures) {
            let (wallet, bucket) = (name.clone(), decode(bucket));
            pools.push(PoolRow { wallet, bucket, cap, spent, held, granted, touched: false }.balance());
        }
    }
    Ok(Balance { wallet: WalletId::new(name), pools })
}
