//! Holds and spends of one wallet's allowance in one statement, the common case.
//!
//! The wallet's first pool is an allowance with room: then its row is sufficient, and the update checks the room at
//! the same time. Every other case is left to [`super::hold`]. Rare cases are not checked first: they end the
//! statement with an error, and nothing is stored. An existing id violates a unique constraint; an entry whose number
//! is not the wallet's newest divides by zero.

use sqlx::{PgConnection, Row};
use transcript_core::ledger::{Balance, HoldOutcome, HoldRequest, PoolBalance, rules::bucket_name};

use super::rows;
use crate::{
    allowance_spend::AllowanceSpend,
    codec::column,
    error::DbResult,
    postgres::{
        database::{PgDatabase, WriteTx},
        text::encode,
    },
};

/// `$4` is the limit, `$5` the amount, `$10` the bucket of purchased credits, if they follow.
///
/// The entry gets the number that the pool has afterwards.
macro_rules! allowance_statement {
    (spent: $spent:literal, held: $held:literal, hold: $state:literal, $closed:literal, entry: $kind:literal,
        also: $also:literal) => {
        concat!(
            "WITH pool AS (
                INSERT INTO ledger_pools (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
                SELECT $1, $2, $3, 1, $3, $4, ",
            $spent,
            ", ",
            $held,
            ", 0
                WHERE NOT EXISTS (SELECT 1 FROM ledger_open WHERE wallet = $1 AND expires_at <= $7)
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
            ", $8, $9, ARRAY[$1::TEXT], ARRAY[$5::BIGINT], ",
            $closed,
            ", '{1}', ARRAY[$2::TEXT], ARRAY[$4::BIGINT], ARRAY[$5::BIGINT]
                FROM pool
            ), entry AS (
                INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
                SELECT $1, last_entry, $7, $2, $4, ",
            $kind,
            ", $5, 0, $6, $9 FROM pool
            )",
            $also,
            " SELECT pool.spent, pool.held, pool.granted, q.spent, q.held, q.granted,
                1 / (CASE WHEN q.last_entry >= pool.last_entry THEN 0 ELSE 1 END)
            FROM pool LEFT JOIN ledger_pools q ON q.wallet = $1 AND q.bucket <> $2
                AND (q.bucket = $10 OR q.last_entry >= pool.last_entry)"
        )
    };
}

const HOLD: &str = allowance_statement!(
    spent: "0", held: "$5::BIGINT", hold: "'open'", "'{0}'", entry: "'held'",
    also: ", opened AS (INSERT INTO ledger_open (hold, wallet, expires_at) SELECT $6, $1, $8 FROM pool)"
);

/// A spend is never open: one table less for each request.
const SPEND: &str = allowance_statement!(
    spent: "$5::BIGINT", held: "0", hold: "'closed'", "ARRAY[$5::BIGINT]", entry: "'charged'", also: ""
);

/// A hold; `spend` settles it in full at once.
pub(super) struct AllowanceHoldTx {
    pub(super) request: HoldRequest,
    pub(super) spend: bool,
    pub(super) numbers: PgDatabase,
}

impl WriteTx for AllowanceHoldTx {
    /// `None` if another statement must run.
    type Outcome = Option<HoldOutcome>;
    const IS_SINGLE_STATEMENT: bool = true;
    const HAS_FALLBACK: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Option<HoldOutcome>> {
        let Self { request, spend, numbers } = self;
        let Some(AllowanceSpend { leg, bucket, cap, .. }) = AllowanceSpend::for_request(request) else {
            return Ok(None);
        };
        let (now, amount, wallet) =
            (request.now.as_millis(), column(leg.amount)?, encode(leg.wallet.as_str()));
        let other = leg.terms.pools.get(1).map(|pool| encode(bucket_name(pool)));
        let take = sqlx::query(if *spend { SPEND } else { HOLD })
            .bind(wallet)
            .bind(encode(bucket))
            .bind(numbers.numbers(now, 1))
            .bind(column(cap)?)
            .bind(amount)
            .bind(encode(request.id.as_str()))
            .bind(now)
            .bind(request.expires_at.as_millis())
            .bind(encode(&request.memo))
            .bind(other);
        let Some(row) = take.fetch_optional(db).await? else { return Ok(None) };
        let mut pools = Vec::with_capacity(leg.terms.pools.len());
        for (pool, column) in leg.terms.pools.iter().zip([0, 3]) {
            pools.push(match row.try_get::<Option<i64>, _>(column)? {
                Some(_) => rows::balance(&row, column, pool.clone())?,
                None => PoolBalance::unused(pool.clone()),
            });
        }
        Ok(Some(HoldOutcome::Held { balances: vec![Balance { wallet: leg.wallet.clone(), pools }] }))
    }
}
