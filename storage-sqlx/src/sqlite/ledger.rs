//! The ledger in SQLite: one statement that loads, one that stores.
//!
//! Each takes one JSON document and expands it into rows inside the database. Spends run here only in unusual
//! cases; otherwise they run in groups ([`super::charges`]).

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
        rules::{
            self, ExpireRequest, ExtendRequest, HoldStep, LedgerRows, LedgerStep, PoolRow, RowKeys,
            bucket_name, kind_from_name, pool_from_row,
        },
    },
};

use super::{SqliteStore, writer::WriteTx};
use crate::{
    codec::{self, number},
    error::{DbResult, corrupt},
};

/// Most overdue holds that one transaction expires.
const EXPIRE_MAX: u32 = 500;

/// Loads the rows of [`RowKeys`], as three JSON texts.
///
/// `CROSS JOIN` fixes the join order: the planner would otherwise read all pools and look each up in `wanted`.
const LOAD: &str = "WITH
    holds AS (
        SELECT id, state, expires_at, memo, legs FROM ledger_holds WHERE id = ?1 ->> '$.hold'
        UNION
        SELECT id, state, h.expires_at, memo, legs
        FROM ledger_open o JOIN ledger_holds h ON h.id = o.hold
        WHERE o.wallet IN (SELECT value FROM json_each(?1, '$.wallets')) AND o.expires_at <= ?1 ->> '$.now'
        UNION
        SELECT * FROM (
            SELECT id, state, expires_at, memo, legs FROM ledger_holds
            WHERE state = 'open' AND expires_at <= ?1 ->> '$.now'
            ORDER BY expires_at, id LIMIT ?1 ->> '$.limit'
        )
    ),
    transfers AS (
        SELECT id, kind, wallet, of_grant, amount, taken, shortfall FROM ledger_transfers
        WHERE id IN (SELECT value FROM json_each(?1, '$.transfers'))
    ),
    wanted (wallet, bucket) AS (
        SELECT value ->> 0, value ->> 1 FROM json_each(?1, '$.pools')
        UNION
        SELECT leg.value ->> 'wallet', share.value ->> 'bucket'
        FROM holds, json_each(holds.legs) leg, json_each(leg.value, '$.shares') share
        WHERE holds.state = 'open'
        UNION
        SELECT wallet, '' FROM transfers
    )
SELECT
    (SELECT json_group_array(json_object('wallet', p.wallet, 'bucket', p.bucket, 'cap', cap,
            'spent', spent, 'held', held, 'granted', granted))
        FROM wanted CROSS JOIN ledger_pools p
            ON p.wallet = wanted.wallet AND p.bucket = wanted.bucket),
    (SELECT json_group_array(json_object('id', id, 'state', state, 'expires_at', expires_at, 'memo', memo,
            'legs', json(legs))) FROM holds),
    (SELECT json_group_array(json_object('id', id, 'kind', kind, 'wallet', wallet, 'of_grant', of_grant,
            'amount', amount, 'taken', taken, 'shortfall', shortfall)) FROM transfers)";

/// Stores the changes of an operation.
const STORE: &str = "
INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted)
    SELECT value ->> 'wallet', value ->> 'bucket', value ->> 'cap', value ->> 'spent', value ->> 'held',
        value ->> 'granted'
    FROM json_each(?1, '$.pools') WHERE true
    ON CONFLICT (wallet, bucket) DO UPDATE SET cap = excluded.cap, spent = excluded.spent,
        held = excluded.held, granted = excluded.granted;
INSERT INTO ledger_holds (id, state, expires_at, memo, legs)
    SELECT value ->> 'id', value ->> 'state', value ->> 'expires_at', value ->> 'memo', value -> 'legs'
    FROM json_each(?1, '$.holds') WHERE true
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at,
        legs = excluded.legs;
DELETE FROM ledger_open WHERE hold IN (SELECT value ->> 'id' FROM json_each(?1, '$.holds'));
INSERT INTO ledger_open (hold, wallet, expires_at)
    SELECT hold.value ->> 'id', leg.value ->> 'wallet', hold.value ->> 'expires_at'
    FROM json_each(?1, '$.holds') hold, json_each(hold.value, '$.legs') leg
    WHERE hold.value ->> 'state' = 'open';
INSERT INTO ledger_transfers (id, kind, wallet, of_grant, amount, taken, shortfall)
    SELECT value ->> 'id', value ->> 'kind', value ->> 'wallet', value ->> 'of_grant', value ->> 'amount',
        value ->> 'taken', value ->> 'shortfall'
    FROM json_each(?1, '$.transfers') WHERE true
    ON CONFLICT (id) DO UPDATE SET taken = excluded.taken, shortfall = excluded.shortfall;
INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
    SELECT value ->> 'at', value ->> 'wallet', value ->> 'bucket', value ->> 'cap', value ->> 'kind',
        value ->> 'amount', value ->> 'shortfall', value ->> 'cause', value ->> 'memo'
    FROM json_each(?1, '$.entries') ORDER BY key";

const POOLS: &str = "SELECT json_group_array(json_object('wallet', wallet, 'bucket', bucket, 'cap', cap,
        'spent', spent, 'held', held, 'granted', granted))
    FROM ledger_pools WHERE wallet = ?1 AND bucket IN (SELECT value FROM json_each(?2))";

/// The first column is that of [`POOLS`], so that both come from one state.
const POOLS_SINCE: &str = "SELECT
    (SELECT json_group_array(json_object('wallet', wallet, 'bucket', bucket, 'cap', cap,
            'spent', spent, 'held', held, 'granted', granted))
        FROM ledger_pools WHERE wallet = ?1 AND bucket IN (SELECT value FROM json_each(?2))),
    (SELECT coalesce(sum(amount), 0) FROM ledger_entries
        WHERE wallet = ?1 AND bucket = '' AND kind IN ('spent', 'charged') AND at >= ?3)";

const ENTRIES: &str = "SELECT seq, at, bucket, cap, kind, amount, shortfall, cause, memo
    FROM ledger_entries WHERE wallet = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// A wallet that only entries or open holds name has lost its pools, and the audit must find it.
const WALLETS: &str = "WITH named AS (
        SELECT wallet FROM ledger_pools WHERE wallet > ?1
        UNION SELECT wallet FROM ledger_entries WHERE wallet > ?1
        UNION SELECT wallet FROM ledger_open WHERE wallet > ?1
        ORDER BY wallet LIMIT ?2
    )
    SELECT named.wallet, json_group_array(json_object('wallet', p.wallet, 'bucket', bucket, 'cap', cap,
            'spent', spent, 'held', held, 'granted', granted) ORDER BY id) FILTER (WHERE id IS NOT NULL)
    FROM named LEFT JOIN ledger_pools p ON p.wallet = named.wallet
    GROUP BY named.wallet ORDER BY named.wallet";

/// Statements of every request, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 5] = [LOAD, STORE, POOLS, POOLS_SINCE, ENTRIES];

async fn load(db: &mut SqliteConnection, keys: &RowKeys<'_>) -> DbResult<LedgerRows> {
    let row = sqlx::query(LOAD).bind(codec::json(keys)?).fetch_one(db).await?;
    let unreadable = |error: serde_json::Error| corrupt(format!("a row of the ledger is damaged: {error}"));
    let pools = serde_json::from_str(row.try_get(0)?).map_err(unreadable)?;
    let holds = serde_json::from_str(row.try_get(1)?).map_err(unreadable)?;
    let transfers = serde_json::from_str(row.try_get(2)?).map_err(unreadable)?;
    Ok(LedgerRows::new(pools, holds, transfers))
}

async fn store(db: &mut SqliteConnection, ledger: &LedgerRows) -> DbResult<()> {
    if let Some(changes) = ledger.changes() {
        sqlx::query(STORE).bind(codec::json(&changes)?).execute(db).await?;
    }
    Ok(())
}

/// A step of the ledger on loaded rows.
pub(super) struct LedgerTx<S>(pub(super) S);

impl<S: LedgerStep> WriteTx for LedgerTx<S> {
    type Outcome = S::Outcome;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<S::Outcome> {
        let mut ledger = load(db, &self.0.keys()).await?;
        let outcome = self.0.apply(&mut ledger)?;
        // A rejected hold is stored too: it may have expired overdue holds of its wallets.
        store(db, &ledger).await?;
        Ok(outcome)
    }
}

#[async_trait]
impl Ledger for SqliteStore {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        self.database.run(LedgerTx(HoldStep { request, spend: false })).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        self.charge_queue.spend(request).await
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.database.run(LedgerTx(ExtendRequest { id: id.clone(), expires_at })).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.database.run(LedgerTx(request)).await
    }

    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome> {
        grant.check()?;
        self.database.run(LedgerTx(grant)).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        request.check()?;
        self.database.run(LedgerTx(request)).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        let buckets: Vec<&str> = terms.pools.iter().map(bucket_name).collect();
        let buckets = codec::json(&buckets)?;
        let query = || sqlx::query(POOLS).bind(wallet.as_str().to_owned()).bind(buckets.clone());
        let found = self.database.find(query, |row| pools(row.try_get(0)?)).await?;
        Ok(rules::balance(found.first().map_or(&[], Vec::as_slice), wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        terms.check()?;
        let buckets: Vec<&str> = terms.pools.iter().map(bucket_name).collect();
        let buckets = codec::json(&buckets)?;
        let query = || {
            let query = sqlx::query(POOLS_SINCE).bind(wallet.as_str().to_owned()).bind(buckets.clone());
            query.bind(since.as_millis())
        };
        let read = |row: &SqliteRow| Ok((pools(row.try_get(0)?)?, number(row.try_get(1)?)?));
        let found = self.database.find(query, read).await?.into_iter().next();
        let (pools, purchased_spent) = found.unwrap_or_default();
        Ok(PeriodBalance { balance: rules::balance(&pools, wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        let mut expired = 0;
        loop {
            // A long backlog takes several transactions, so that other writes can run in between.
            let limit = (limit - expired).min(EXPIRE_MAX);
            let count = self.database.run(LedgerTx(ExpireRequest { now, limit })).await?;
            expired += count;
            if count < EXPIRE_MAX {
                return Ok(expired);
            }
        }
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let after = codec::numbered(page.after.as_ref())?;
        let query =
            || sqlx::query(ENTRIES).bind(wallet.as_str().to_owned()).bind(after).bind(codec::one_more(&page));
        let found = self.database.find(query, |row| entry(wallet, row)).await?;
        Ok(codec::page_of(found, &page, |entry| entry.seq.to_string()))
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let query = || sqlx::query(WALLETS).bind(after.to_owned()).bind(codec::one_more(&page));
        let found = self.database.find(query, |row| {
            let rows = pools(row.try_get(1)?)?;
            let pools = rows.iter().map(PoolRow::balance).collect();
            Ok(Balance { wallet: WalletId::new(row.try_get::<String, _>(0)?), pools })
        });
        Ok(codec::page_of(found.await?, &page, |balance| balance.wallet.as_str().to_owned()))
    }
}

fn pools(json: &str) -> DbResult<Vec<PoolRow>> {
    Ok(serde_json::from_str(json).map_err(|_| corrupt("a balance of the ledger is damaged"))?)
}

fn entry(wallet: &WalletId, row: &SqliteRow) -> DbResult<Entry> {
    let shortfall = number(row.try_get(6)?)?;
    Ok(Entry {
        seq: number(row.try_get(0)?)?,
        at: Timestamp::from_millis(row.try_get(1)?),
        wallet: wallet.clone(),
        pool: pool_from_row(row.try_get(2)?, number(row.try_get(3)?)?),
        kind: kind_from_name(row.try_get(4)?, shortfall)?,
        amount: number(row.try_get(5)?)?,
        cause: row.try_get(7)?,
        memo: row.try_get(8)?,
    })
}
