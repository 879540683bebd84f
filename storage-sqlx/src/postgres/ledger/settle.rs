//! Settles or extends a hold, and grants credits: each in one statement.

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Error, ErrorKind, Retry, Timestamp,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, GrantOutcome, GrantRequest, HoldState, Pool, PoolBalance, SettleOutcome, SettleRequest,
        rules::pool_from_row,
    },
};

use super::rows::numbers;
use crate::{
    codec::{column, number},
    error::{DbResult, corrupt},
    postgres::{
        database::{PgDatabase, WriteTx},
        text::{decode, encode},
    },
};

/// Numbers that the statement reserves for its entries: more than two for each share.
const NUMBERS: usize = 256;

/// Locks the hold first, then its pools, in one global order. `$2` are the amounts of its legs.
const SETTLE: &str = "WITH hold AS (
        SELECT state, expires_at, memo, wallets, amounts, spent, share_legs, share_buckets, share_caps, share_amounts
        FROM ledger_holds WHERE id = $1 FOR UPDATE
    ), figures AS (
        SELECT f.figure, f.leg FROM unnest($2::BIGINT[]) WITH ORDINALITY f (figure, leg)
    ), go AS (
        SELECT h.wallets, h.memo, h.share_legs, h.share_buckets, h.share_caps, h.share_amounts FROM hold h
        WHERE h.state = 'open' AND cardinality(h.amounts) = cardinality($2::BIGINT[])
            AND NOT EXISTS (SELECT 1 FROM figures f WHERE h.amounts[f.leg] < f.figure)
    ), shares AS (
        SELECT s.leg, s.place, go.wallets[s.leg] AS wallet, s.bucket, s.cap, s.amount, go.memo,
            least(s.amount, greatest(f.figure - coalesce(sum(s.amount) OVER (PARTITION BY s.leg ORDER BY s.place
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0), 0))::BIGINT AS spent
        FROM go, unnest(go.share_legs, go.share_buckets, go.share_caps, go.share_amounts) WITH ORDINALITY
            s (leg, bucket, cap, amount, place), figures f
        WHERE f.leg = s.leg
    ), locked AS (
        SELECT p.wallet, p.bucket, p.last_entry, p.cap, p.spent, p.held, p.granted FROM ledger_pools p
        WHERE (p.wallet, p.bucket) IN (SELECT wallet, bucket FROM shares)
        ORDER BY p.wallet, p.bucket FOR UPDATE
    ), first AS (
        SELECT greatest($3, coalesce((SELECT max(last_entry) + 1 FROM locked), 0)) AS number FROM go
    ), stored AS (
        UPDATE ledger_pools p SET version = p.version + 1, last_entry = first.number + 200,
            spent = p.spent + s.spent, held = p.held - s.amount
        FROM shares s, first WHERE p.wallet = s.wallet AND p.bucket = s.bucket
        RETURNING 1
    ), closed AS (
        UPDATE ledger_holds h SET state = 'closed', spent = $2::BIGINT[] FROM go WHERE h.id = $1
    ), opened AS (
        DELETE FROM ledger_open WHERE hold = $1 AND EXISTS (SELECT 1 FROM go)
    ), entries AS (
        INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT s.wallet, first.number + 2 * s.place + k.base, $4, s.bucket, l.cap, k.kind,
            CASE WHEN k.base = 0 THEN s.spent ELSE s.amount - s.spent END, 0, $1, s.memo
        FROM first, shares s JOIN locked l ON l.wallet = s.wallet AND l.bucket = s.bucket,
            (VALUES ('spent', 0), ('returned', 1)) k (kind, base)
        WHERE 0 < CASE WHEN k.base = 0 THEN s.spent ELSE s.amount - s.spent END
    )
    SELECT h.state, h.expires_at, h.spent, h.amounts, h.wallets,
        ARRAY(SELECT s.leg FROM shares s ORDER BY s.place),
        ARRAY(SELECT s.bucket FROM shares s ORDER BY s.place),
        ARRAY(SELECT l.cap FROM shares s JOIN locked l USING (wallet, bucket) ORDER BY s.place),
        ARRAY(SELECT l.spent + s.spent FROM shares s JOIN locked l USING (wallet, bucket) ORDER BY s.place),
        ARRAY(SELECT l.held - s.amount FROM shares s JOIN locked l USING (wallet, bucket) ORDER BY s.place),
        ARRAY(SELECT l.granted FROM shares s JOIN locked l USING (wallet, bucket) ORDER BY s.place)
    FROM hold h
    WHERE 1 / (CASE WHEN (SELECT count(*) FROM stored) = (SELECT count(*) FROM shares) THEN 1 ELSE 0 END) = 1";

const EXTEND: &str = "WITH hold AS (
        SELECT state, expires_at, spent FROM ledger_holds WHERE id = $1 FOR UPDATE
    ), put_off AS (
        UPDATE ledger_holds h SET expires_at = $2 FROM hold
        WHERE h.id = $1 AND hold.state = 'open' AND hold.expires_at < $2
    ), opened AS (
        UPDATE ledger_open o SET expires_at = $2 FROM hold
        WHERE o.hold = $1 AND hold.state = 'open' AND hold.expires_at < $2
    )
    SELECT state, greatest(expires_at, $2), spent FROM hold";

/// Adds to the current balance. Returns no row if the id exists, or the wallet is full.
const GRANT: &str = "WITH pool AS (
        INSERT INTO ledger_pools (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
        SELECT $2, '', $3, 1, $3, 0, 0, 0, $4
        WHERE NOT EXISTS (SELECT 1 FROM ledger_transfers WHERE id = $1)
        ON CONFLICT (wallet, bucket) DO UPDATE SET version = ledger_pools.version + 1,
            last_entry = greatest(excluded.last_entry, ledger_pools.last_entry + 1),
            granted = ledger_pools.granted + excluded.granted
        WHERE ledger_pools.granted <= 9223372036854775807 - excluded.granted
        RETURNING last_entry, cap, spent, held, granted
    ), transfer AS (
        INSERT INTO ledger_transfers (id, kind, wallet, of_grant, amount, taken, shortfall)
        SELECT $1, 'grant', $2, $1, $4, 0, 0 FROM pool
    ), entry AS (
        INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT $2, last_entry, $5, '', cap, 'granted', $4, 0, $1, $6 FROM pool
    )
    SELECT spent, held, granted FROM pool";

/// Settles a hold.
pub(super) struct SettleTx {
    pub(super) request: SettleRequest,
    pub(super) numbers: PgDatabase,
}

impl WriteTx for SettleTx {
    type Outcome = SettleOutcome;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<SettleOutcome> {
        let SettleRequest { id, spent, now } = &self.request;
        // An amount above the range of a column exceeds every leg.
        let figures: Vec<i64> = spent.iter().map(|spent| column(*spent).unwrap_or(i64::MAX)).collect();
        let now = now.as_millis();
        let settle = sqlx::query(SETTLE).bind(encode(id.as_str())).bind(figures);
        let settle = settle.bind(self.numbers.numbers(now, NUMBERS)).bind(now);
        match settle.fetch_optional(db).await? {
            None => Ok(SettleOutcome::HoldNotFound),
            Some(row) => settled(&row, spent),
        }
    }
}

fn settled(row: &PgRow, figures: &[u64]) -> DbResult<SettleOutcome> {
    let state = state(row)?;
    if !matches!(state, HoldState::Open { .. }) {
        return Ok(SettleOutcome::Exists { state });
    }
    let amounts = numbers(row, 3)?;
    if amounts.len() != figures.len() {
        return Err(Error::invalid("a settlement must have one amount for each leg of its hold").into());
    }
    if figures.iter().zip(&amounts).any(|(figure, amount)| figure > amount) {
        return Err(Error::invalid("a settlement must not spend more than its leg holds").into());
    }
    let wallets: Vec<String> = row.try_get(4)?;
    let mut balances: Vec<Balance> = wallets
        .into_iter()
        .map(|wallet| Balance { wallet: WalletId::new(decode(wallet)), pools: Vec::new() })
        .collect();
    let buckets: Vec<String> = row.try_get(6)?;
    let pools = buckets.into_iter().zip(numbers(row, 7)?);
    let figures = numbers(row, 8)?.into_iter().zip(numbers(row, 9)?.into_iter().zip(numbers(row, 10)?));
    for ((leg, (bucket, cap)), (spent, (held, granted))) in
        numbers(row, 5)?.into_iter().zip(pools).zip(figures)
    {
        let index = usize::try_from(leg).ok().and_then(|leg| leg.checked_sub(1));
        let balance = index.and_then(|index| balances.get_mut(index));
        let balance = balance.ok_or_else(|| corrupt("a ledger hold has a share without a leg"))?;
        balance.pools.push(PoolBalance { pool: pool_from_row(decode(bucket), cap), spent, held, granted });
    }
    Ok(SettleOutcome::Settled { balances })
}

/// Decodes the state of a hold from the first three columns of a row.
fn state(row: &PgRow) -> DbResult<HoldState> {
    Ok(match row.try_get::<&str, _>(0)? {
        "open" => HoldState::Open { expires_at: Timestamp::from_millis(row.try_get(1)?) },
        "closed" => HoldState::Settled { spent: numbers(row, 2)? },
        "expired" => HoldState::Expired,
        _ => return Err(corrupt("a ledger hold has an unknown state").into()),
    })
}

/// Extends the expiry of a hold.
pub(super) struct ExtendHoldTx {
    pub(super) id: HoldId,
    pub(super) expires_at: Timestamp,
}

impl WriteTx for ExtendHoldTx {
    type Outcome = HoldState;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<HoldState> {
        let extend = sqlx::query(EXTEND).bind(encode(self.id.as_str())).bind(self.expires_at.as_millis());
        match extend.fetch_optional(db).await? {
            Some(row) => state(&row),
            None => Err(Error::new(ErrorKind::NotFound, Retry::Never, "the hold does not exist").into()),
        }
    }
}

/// Adds purchased credits.
pub(super) struct GrantTx {
    pub(super) request: GrantRequest,
    pub(super) numbers: PgDatabase,
}

impl WriteTx for GrantTx {
    /// `None` if the general form must run.
    type Outcome = Option<GrantOutcome>;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Option<GrantOutcome>> {
        let GrantRequest { id, wallet, amount, now, memo } = &self.request;
        let now = now.as_millis();
        let grant = sqlx::query(GRANT).bind(encode(id.as_str())).bind(encode(wallet.as_str()));
        let grant =
            grant.bind(self.numbers.numbers(now, 1)).bind(column(*amount)?).bind(now).bind(encode(memo));
        let Some(row) = grant.fetch_optional(db).await? else { return Ok(None) };
        let [spent, held, granted] =
            [number(row.try_get(0)?)?, number(row.try_get(1)?)?, number(row.try_get(2)?)?];
        let pools = vec![PoolBalance { pool: Pool::Purchased, spent, held, granted }];
        Ok(Some(GrantOutcome::Granted { balance: Balance { wallet: wallet.clone(), pools } }))
    }
}
