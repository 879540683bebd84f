//! Holding and spending of one wallet's allowance in one statement: what runs with every request.
//!
//! The wallet's first pool is an allowance that has room: then its row is all that is needed, and adding to it asks
//! in the same moment whether there is room still. Whatever else may be the case is left to [`super::hold`].

use sqlx::{PgConnection, Row};
use transcript_core::ledger::{Balance, HoldOutcome, HoldRequest, Leg, Pool, PoolBalance};

use super::rows;
use crate::{
    books::bucket_name,
    codec::column,
    error::Work,
    postgres::{
        database::{Change, Database},
        text::own,
    },
};

/// `$4` is the limit, `$5` the amount, `$12` the buckets of the pools after the first. The entry has the number that the
/// pool has afterwards.
macro_rules! taking {
    (spent: $spent:literal, held: $held:literal, hold: $state:literal, $closed:literal, entry: $kind:literal,
        also: $also:literal) => {
        concat!(
            "WITH pool AS (
                INSERT INTO ledger_pools (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
                SELECT $1, $2, $3, 1,
                    greatest($3, coalesce((SELECT max(last_entry) + 1 FROM ledger_pools WHERE wallet = $1), 0)), $4, ",
            $spent,
            ", ",
            $held,
            ", 0
                WHERE $5 <= $4::BIGINT AND NOT EXISTS (SELECT 1 FROM ledger_holds WHERE id = $6)
                    AND NOT EXISTS (SELECT 1 FROM ledger_open WHERE wallet = $1 AND expires_at <= $7)
                ON CONFLICT (wallet, bucket) DO UPDATE SET version = ledger_pools.version + 1,
                    last_entry = greatest(excluded.last_entry, ledger_pools.last_entry + 1), cap = excluded.cap,
                    spent = ledger_pools.spent + excluded.spent, held = ledger_pools.held + excluded.held
                WHERE ledger_pools.spent + ledger_pools.held + $5 <= excluded.cap
                RETURNING last_entry, spent, held, granted
            ), hold AS (
                INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs,
                    share_buckets, share_caps, share_amounts)
                SELECT $6, ",
            $state,
            ", $8, $9, $10::TEXT[], $11::BIGINT[], ",
            $closed,
            ", '{1}', ARRAY[$2::TEXT], ARRAY[$4::BIGINT], $11::BIGINT[]
                FROM pool
            ), entry AS (
                INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
                SELECT $1, last_entry, $7, $2, $4, ",
            $kind,
            ", $5, 0, $6, $9 FROM pool
            )",
            $also,
            " SELECT pool.spent, pool.held, pool.granted, q.bucket, q.spent, q.held, q.granted
            FROM pool LEFT JOIN ledger_pools q ON q.wallet = $1 AND q.bucket = ANY ($12)"
        )
    };
}

const HOLD: &str = taking!(
    spent: "0", held: "$5::BIGINT", hold: "'open'", "'{0}'", entry: "'held'",
    also: ", opened AS (INSERT INTO ledger_open (hold, wallet, expires_at) SELECT $6, $1, $8 FROM pool)"
);

/// What is spent at once is never open: a table less, for each request.
const SPEND: &str = taking!(
    spent: "$5::BIGINT", held: "0", hold: "'closed'", "$11::BIGINT[]", entry: "'charged'", also: ""
);

/// A request to hold; `spend` settles it in full at once.
pub(super) struct Taking {
    pub(super) ask: HoldRequest,
    pub(super) spend: bool,
    pub(super) numbers: Database,
}

/// The leg, bucket and limit of a request that this statement may answer.
pub(super) fn plain_leg(ask: &HoldRequest) -> Option<(&Leg, &str, u64)> {
    let [leg] = ask.legs.as_slice() else { return None };
    match leg.terms.pools.first() {
        Some(Pool::Allowance { bucket, limit }) if leg.amount > 0 => Some((leg, bucket, *limit)),
        _ => None,
    }
}

impl Taking {
    /// Whether the statement may answer a request at all.
    pub(super) fn fits(ask: &HoldRequest) -> bool {
        plain_leg(ask).is_some()
    }
}

impl Change for Taking {
    /// None where another statement must do it.
    type Outcome = Option<HoldOutcome>;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Option<HoldOutcome>> {
        let Self { ask, spend, numbers } = self;
        let Some((leg, bucket, limit)) = plain_leg(ask) else { return Ok(None) };
        let (now, amount, wallet) = (ask.now.as_millis(), column(leg.amount)?, own(leg.wallet.as_str()));
        let others: Vec<String> = leg.terms.pools.iter().skip(1).map(|pool| own(bucket_name(pool))).collect();
        let take = sqlx::query(if *spend { SPEND } else { HOLD })
            .bind(wallet.clone())
            .bind(own(bucket))
            .bind(numbers.numbers(now, 1))
            .bind(column(limit)?)
            .bind(amount)
            .bind(own(ask.id.as_str()))
            .bind(now)
            .bind(ask.expires_at.as_millis())
            .bind(own(&ask.memo))
            .bind(vec![wallet])
            .bind(vec![amount])
            .bind(others);
        let found = take.fetch_all(db).await?;
        let Some(first) = found.first() else { return Ok(None) };
        let mut pools = Vec::with_capacity(leg.terms.pools.len());
        for (place, pool) in leg.terms.pools.iter().enumerate() {
            let bucket = own(bucket_name(pool));
            let stored = found.iter().find(|row| {
                row.try_get::<Option<&str>, _>(3).ok().flatten().is_some_and(|stored| stored == bucket)
            });
            let (row, column) = match (place, stored) {
                (0, _) => (first, 0),
                (_, Some(row)) => (row, 4),
                (_, None) => {
                    pools.push(PoolBalance::fresh(pool.clone()));
                    continue;
                }
            };
            pools.push(rows::balance(row, column, pool.clone())?);
        }
        Ok(Some(HoldOutcome::Held { balances: vec![Balance { wallet: leg.wallet.clone(), pools }] }))
    }
}
