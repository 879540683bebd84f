//! Holding and spending of one wallet's allowance in one statement: what runs with every request.
//!
//! The wallet's first pool is an allowance that has room: then its row is all that is needed, and adding to it asks
//! in the same moment whether there is room still. Whatever else may be the case is left to [`super::hold`]. What hardly
//! ever is the case is not looked for first: it ends the statement with an error, and nothing is stored. A known id
//! cannot be stored again; and an entry whose number is not the wallet's newest divides by zero.

use sqlx::{PgConnection, Row};
use transcript_core::ledger::{Balance, HoldOutcome, HoldRequest, PoolBalance};

use super::rows;
use crate::{
    books::{Plain, bucket_name},
    codec::column,
    error::Work,
    postgres::{
        database::{Change, Database},
        text::own,
    },
};

/// `$4` is the limit, `$5` the amount, `$10` the bucket of purchased credits, where they come after it. The entry has the
/// number that the pool has afterwards.
macro_rules! taking {
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

const HOLD: &str = taking!(
    spent: "0", held: "$5::BIGINT", hold: "'open'", "'{0}'", entry: "'held'",
    also: ", opened AS (INSERT INTO ledger_open (hold, wallet, expires_at) SELECT $6, $1, $8 FROM pool)"
);

/// What is spent at once is never open: a table less, for each request.
const SPEND: &str = taking!(
    spent: "$5::BIGINT", held: "0", hold: "'closed'", "ARRAY[$5::BIGINT]", entry: "'charged'", also: ""
);

/// A request to hold; `spend` settles it in full at once.
pub(super) struct Taking {
    pub(super) ask: HoldRequest,
    pub(super) spend: bool,
    pub(super) numbers: Database,
}

impl Change for Taking {
    /// None where another statement must do it.
    type Outcome = Option<HoldOutcome>;
    const IS_STEP: bool = true;
    const GIVES_WAY: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Option<HoldOutcome>> {
        let Self { ask, spend, numbers } = self;
        let Some(Plain { leg, bucket, cap, .. }) = Plain::of(ask) else { return Ok(None) };
        let (now, amount, wallet) = (ask.now.as_millis(), column(leg.amount)?, own(leg.wallet.as_str()));
        let other = leg.terms.pools.get(1).map(|pool| own(bucket_name(pool)));
        let take = sqlx::query(if *spend { SPEND } else { HOLD })
            .bind(wallet)
            .bind(own(bucket))
            .bind(numbers.numbers(now, 1))
            .bind(column(cap)?)
            .bind(amount)
            .bind(own(ask.id.as_str()))
            .bind(now)
            .bind(ask.expires_at.as_millis())
            .bind(own(&ask.memo))
            .bind(other);
        let Some(row) = take.fetch_optional(db).await? else { return Ok(None) };
        let mut pools = Vec::with_capacity(leg.terms.pools.len());
        for (pool, column) in leg.terms.pools.iter().zip([0, 3]) {
            pools.push(match row.try_get::<Option<i64>, _>(column)? {
                Some(_) => rows::balance(&row, column, pool.clone())?,
                None => PoolBalance::fresh(pool.clone()),
            });
        }
        Ok(Some(HoldOutcome::Held { balances: vec![Balance { wallet: leg.wallet.clone(), pools }] }))
    }
}
