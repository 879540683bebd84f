//! The ledger in PostgreSQL: what runs with every request is one statement.

mod allowance;
mod expire;
mod hold;
mod revoke;
#[macro_use]
pub(crate) mod rows;
mod settle;
mod steps;
mod together;

use async_trait::async_trait;
use sqlx::{Row, postgres::PgRow};
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, BalanceSince, Entry, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Ledger,
        Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
    },
};

pub(super) use together::Spenders;

use super::{
    PostgresStore,
    database::{Database, Read},
    fault::is_contradicted,
    text::{plain, read},
};
use crate::{
    books::{self, Plain, PoolRow, bucket_name, kind_of, pool_of},
    codec::{self, number},
    error::Work,
};

/// How many overdue holds one transaction expires.
const EXPIRE_MAX: u32 = 100;

const POOLS: &str = "SELECT p.wallet, p.bucket, p.cap, p.spent, p.held, p.granted FROM ledger_pools p
    WHERE p.wallet = $1 AND p.bucket = ANY ($2)";

/// Each row has the pools of [`POOLS`] and the sum, so that both are of one state; one without pools where there are
/// none.
const POOLS_SINCE: &str = "SELECT p.wallet, p.bucket, p.cap, p.spent, p.held, p.granted, s.spent
    FROM (
        SELECT coalesce(sum(amount), 0)::BIGINT AS spent FROM ledger_entries
        WHERE wallet = $1 AND bucket = '' AND kind IN ('spent', 'charged') AND at >= $3
    ) s LEFT JOIN ledger_pools p ON p.wallet = $1 AND p.bucket = ANY ($2)";

const ENTRIES: &str = "SELECT seq, at, bucket, cap, kind, amount, shortfall, cause, memo
    FROM ledger_entries WHERE wallet = $1 AND seq > $2 ORDER BY seq LIMIT $3";

/// A wallet that only entries or open holds name has lost its pools, which the audit must see.
const WALLETS: &str = "WITH named AS (
        SELECT wallet FROM (
            (SELECT DISTINCT wallet FROM ledger_pools WHERE wallet > $1 ORDER BY wallet LIMIT $2)
            UNION (SELECT DISTINCT wallet FROM ledger_entries WHERE wallet > $1 ORDER BY wallet LIMIT $2)
            UNION (SELECT DISTINCT wallet FROM ledger_open WHERE wallet > $1 ORDER BY wallet LIMIT $2)
        ) n ORDER BY wallet LIMIT $2
    )
    SELECT named.wallet, p.* FROM named CROSS JOIN LATERAL (
        SELECT array_agg(bucket ORDER BY number, bucket), array_agg(cap ORDER BY number, bucket),
            array_agg(spent ORDER BY number, bucket), array_agg(held ORDER BY number, bucket),
            array_agg(granted ORDER BY number, bucket), count(*)
        FROM ledger_pools WHERE wallet = named.wallet
    ) p ORDER BY named.wallet";

/// Holds; `spend` settles in full at once.
pub(super) async fn take(database: &Database, ask: HoldRequest, spend: bool) -> Result<HoldOutcome> {
    if Plain::of(&ask).is_some() {
        let step = allowance::Taking { ask: ask.clone(), spend, numbers: database.clone() };
        match database.attempt(step).await {
            Ok(Some(outcome)) => return Ok(outcome),
            Ok(None) => {}
            Err(fault) if is_contradicted(&fault) => {}
            Err(fault) => return Err(database.error(fault)),
        }
    }
    let step = hold::Holding { ask: ask.clone(), spend, numbers: database.clone() };
    match database.make(step).await? {
        Some(outcome) => Ok(outcome),
        None => database.make(steps::Hold { ask, spend, numbers: database.clone() }).await,
    }
}

#[async_trait]
impl Ledger for PostgresStore {
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        ask.check()?;
        take(&self.database, ask, false).await
    }

    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        ask.check()?;
        self.spenders.spend(ask).await
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        self.database.make(settle::Extend { id: id.clone(), until }).await
    }

    async fn settle(&self, ask: Settle) -> Result<SettleOutcome> {
        self.database.make(settle::Settling { ask, numbers: self.database.clone() }).await
    }

    async fn grant(&self, ask: Grant) -> Result<GrantOutcome> {
        ask.check()?;
        let numbers = self.database.clone();
        match self.database.make(settle::Granting { ask: ask.clone(), numbers: numbers.clone() }).await? {
            Some(outcome) => Ok(outcome),
            None => self.database.make(steps::Granting { ask, numbers }).await,
        }
    }

    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome> {
        ask.check()?;
        self.database.make(revoke::Revoking { ask, numbers: self.database.clone() }).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        let ask = Read::new(POOLS).text(wallet.as_str()).texts(buckets(terms));
        let found = self.database.find(ask, |row| rows::pool(row, 0)).await?;
        Ok(books::balance(&found, wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        terms.check()?;
        let ask = Read::new(POOLS_SINCE).text(wallet.as_str()).texts(buckets(terms));
        let ask = ask.number(since.as_millis());
        let found = self.database.find(ask, |row| {
            let is_pool = row.try_get::<Option<&str>, _>(0)?.is_some();
            Ok((is_pool.then(|| rows::pool(row, 0)).transpose()?, number(row.try_get(6)?)?))
        });
        let found = found.await?;
        let purchased_spent = found.first().map_or(0, |(_, spent)| *spent);
        let pools: Vec<PoolRow> = found.into_iter().filter_map(|(pool, _)| pool).collect();
        Ok(BalanceSince { balance: books::balance(&pools, wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        let mut expired = 0;
        loop {
            // A long backlog goes in several transactions, so that others get their turn.
            let limit = (limit - expired).min(EXPIRE_MAX);
            if limit == 0 {
                return Ok(expired);
            }
            let count =
                self.database.make(expire::Expire { now, limit, numbers: self.database.clone() }).await?;
            expired += count;
            if count < EXPIRE_MAX {
                return Ok(expired);
            }
        }
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let after = codec::numbered(page.after.as_ref())?;
        let ask = Read::new(ENTRIES).text(wallet.as_str()).number(after).number(codec::one_more(&page));
        let found = self.database.find(ask, |row| entry(wallet, row)).await?;
        Ok(codec::page_of(found, &page, |entry| entry.seq.to_string()))
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let ask = Read::new(WALLETS).text(after).number(codec::one_more(&page));
        let found = self.database.find(ask, wallet).await?;
        Ok(codec::page_of(found, &page, |balance| balance.wallet.as_str().to_owned()))
    }
}

fn buckets(terms: &Terms) -> impl Iterator<Item = &str> {
    terms.pools.iter().map(bucket_name)
}

/// The wallet in a row of [`WALLETS`].
fn wallet(row: &PgRow) -> Work<Balance> {
    let name = read(row, 0)?;
    let mut pools = Vec::new();
    if row.try_get::<i64, _>(6)? > 0 {
        let buckets: Vec<String> = row.try_get(1)?;
        let figures = rows::numbers(row, 3)?.into_iter().zip(rows::numbers(row, 4)?);
        let figures = rows::numbers(row, 2)?.into_iter().zip(figures).zip(rows::numbers(row, 5)?);
        for (bucket, ((cap, (spent, held)), granted)) in buckets.into_iter().zip(figures) {
            let (wallet, bucket) = (name.clone(), plain(bucket));
            pools.push(PoolRow { wallet, bucket, cap, spent, held, granted, touched: false }.balance());
        }
    }
    Ok(Balance { wallet: WalletId::new(name), pools })
}

fn entry(wallet: &WalletId, row: &PgRow) -> Work<Entry> {
    let shortfall = number(row.try_get(6)?)?;
    Ok(Entry {
        seq: number(row.try_get(0)?)?,
        at: Timestamp::from_millis(row.try_get(1)?),
        wallet: wallet.clone(),
        pool: pool_of(read(row, 2)?, number(row.try_get(3)?)?),
        kind: kind_of(row.try_get(4)?, shortfall)?,
        amount: number(row.try_get(5)?)?,
        cause: read(row, 7)?,
        memo: read(row, 8)?,
    })
}
