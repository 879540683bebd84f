//! Holds and spends in one statement.
//!
//! The statement locks the pools that it may take from, in one global order, and reads their locked state. It computes
//! the shares from that, with the arithmetic of `transcript_core::ledger::allocate`. A pool without a row cannot be
//! locked: if another transaction inserts the row first, its version is unexpected, so the statement fails, stores
//! nothing, and runs again. The same happens if another transaction has just stored the id.
//!
//! If the id exists or a hold of one of the wallets is overdue, the statement stores nothing and reports that.

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::ledger::{
    Balance, HoldOutcome, HoldRequest, Leg, PoolBalance,
    rules::{bucket_name, cap_of},
};

use super::rows::numbers;
use crate::{
    codec::column,
    error::{DbResult, corrupt},
    postgres::{
        database::{PgDatabase, WriteTx},
        text::encode,
    },
};

/// How many entry numbers the statement reserves: more than all legs have pools.
const RESERVED_NUMBERS: usize = 128;

/// `$1` to `$5` are the candidate pools, each with the index of its leg and its own index, from 1.
///
/// `$6` are the amounts of the legs, `$7` their wallets, `$14` whether it is a spend.
const HOLD: &str = "WITH asked AS (
        SELECT leg, place, wallet, bucket, cap
        FROM unnest($1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[])
            a (leg, place, wallet, bucket, cap)
    ), locked AS (
        SELECT p.wallet, p.bucket, p.version, p.last_entry, p.spent, p.held, p.granted
        FROM ledger_pools p
        WHERE p.wallet = ANY ($3::TEXT[]) AND (p.wallet, p.bucket) IN (SELECT wallet, bucket FROM asked)
        ORDER BY p.wallet, p.bucket FOR UPDATE
    ), room AS (
        SELECT a.leg, a.place, a.wallet, a.bucket, a.cap, coalesce(l.version, 0) AS version,
            coalesce(l.spent, 0) AS spent, coalesce(l.held, 0) AS held, coalesce(l.granted, 0) AS granted,
            greatest(CASE WHEN a.bucket = '' THEN coalesce(l.granted, 0) ELSE a.cap END
                - coalesce(l.spent, 0) - coalesce(l.held, 0), 0) AS free
        FROM asked a LEFT JOIN locked l ON l.wallet = a.wallet AND l.bucket = a.bucket
    ), shares AS (
        SELECT r.leg, r.place, r.wallet, r.bucket, r.cap, r.version, r.spent, r.held, r.granted, m.amount,
            least(r.free, greatest(m.amount - coalesce(sum(r.free) OVER (PARTITION BY r.leg ORDER BY r.place
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0), 0))::BIGINT AS taken
        FROM room r JOIN unnest($6::BIGINT[]) WITH ORDINALITY m (amount, leg) ON m.leg = r.leg
    ), found AS (
        SELECT EXISTS (SELECT 1 FROM ledger_holds WHERE id = $8) AS is_known,
            EXISTS (SELECT 1 FROM ledger_open WHERE wallet = ANY ($7::TEXT[]) AND expires_at <= $10) AS is_overdue,
            (SELECT min(leg) FROM (
                SELECT leg FROM shares GROUP BY leg, amount HAVING sum(taken) < amount
            ) short) AS short
    ), go AS (
        SELECT greatest($9, (SELECT max(last_entry) + 1 FROM locked),
            (SELECT max(last_entry) + 1 FROM ledger_pools WHERE wallet = ANY ($7::TEXT[]))) AS number
        FROM found WHERE NOT is_known AND NOT is_overdue AND short IS NULL
    ), stored AS (
        INSERT INTO ledger_pools (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
        SELECT s.wallet, s.bucket, go.number + s.place, s.version + 1, go.number + 100, s.cap,
            s.spent + CASE WHEN $14 THEN s.taken ELSE 0 END, s.held + CASE WHEN $14 THEN 0 ELSE s.taken END,
            s.granted
        FROM shares s, go WHERE s.taken > 0
        ON CONFLICT (wallet, bucket) DO UPDATE SET version = excluded.version, last_entry = excluded.last_entry,
            cap = excluded.cap, spent = excluded.spent, held = excluded.held
        WHERE ledger_pools.version = excluded.version - 1
        RETURNING 1
    ), hold AS (
        INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs,
            share_buckets, share_caps, share_amounts)
        SELECT $8, CASE WHEN $14 THEN 'closed' ELSE 'open' END, $11, $12, $7::TEXT[], $6::BIGINT[], $13::BIGINT[],
            coalesce(array_agg(s.leg ORDER BY s.place) FILTER (WHERE s.taken > 0), '{}'),
            coalesce(array_agg(s.bucket ORDER BY s.place) FILTER (WHERE s.taken > 0), '{}'),
            coalesce(array_agg(s.cap ORDER BY s.place) FILTER (WHERE s.taken > 0), '{}'),
            coalesce(array_agg(s.taken ORDER BY s.place) FILTER (WHERE s.taken > 0), '{}')
        FROM shares s, go GROUP BY go.number
    ), opened AS (
        INSERT INTO ledger_open (hold, wallet, expires_at)
        SELECT $8, wallet, $11 FROM unnest($7::TEXT[]) wallet, go WHERE NOT $14
    ), entries AS (
        INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT s.wallet, go.number + s.place, $10, s.bucket, s.cap, CASE WHEN $14 THEN 'charged' ELSE 'held' END,
            s.taken, 0, $8, $12
        FROM shares s, go WHERE s.taken > 0
    )
    SELECT f.is_known, f.is_overdue, f.short, s.spent, s.held, s.granted, s.taken
    FROM (
        SELECT array_agg(spent ORDER BY place) AS spent, array_agg(held ORDER BY place) AS held,
            array_agg(granted ORDER BY place) AS granted, array_agg(taken ORDER BY place) AS taken,
            count(*) FILTER (WHERE taken > 0) AS givers
        FROM shares
    ) s, found f
    WHERE 1 / (CASE WHEN (SELECT count(*) FROM go) = 0 OR (SELECT count(*) FROM stored) = s.givers THEN 1
        ELSE 0 END) = 1";

/// Whether the hold exists. Runs after the statement found too few credits.
///
/// The statement reads pools in their locked state, but ids in the state at its start: while it waited for the lock,
/// another transaction may have taken the credits under this id.
const HOLD_EXISTS: &str = "SELECT 1 FROM ledger_holds WHERE id = $1";

/// A hold; `spend` settles it in full at once.
pub(super) struct HoldTx {
    pub(super) request: HoldRequest,
    pub(super) spend: bool,
    pub(super) numbers: PgDatabase,
}

/// The candidate pools, as parallel arrays.
#[derive(Default)]
struct HoldLegColumns {
    legs: Vec<i64>,
    indexes: Vec<i64>,
    wallets: Vec<String>,
    buckets: Vec<String>,
    caps: Vec<i64>,
}

impl HoldLegColumns {
    fn from_legs(legs: &[Leg]) -> DbResult<Self> {
        let mut columns = Self::default();
        let pools = (1..)
            .zip(legs)
            .flat_map(|(index, leg)| leg.terms.pools.iter().map(move |pool| (index, leg, pool)));
        for (index, (leg_index, leg, pool)) in (1..).zip(pools) {
            columns.legs.push(leg_index);
            columns.indexes.push(index);
            columns.wallets.push(encode(leg.wallet.as_str()));
            columns.buckets.push(encode(bucket_name(pool)));
            columns.caps.push(column(cap_of(pool))?);
        }
        Ok(columns)
    }
}

impl WriteTx for HoldTx {
    /// `None` if the operation must run on loaded rows ([`super::generic`]).
    type Outcome = Option<HoldOutcome>;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Option<HoldOutcome>> {
        let Self { request, spend, numbers } = self;
        let columns = HoldLegColumns::from_legs(&request.legs)?;
        let amounts =
            request.legs.iter().map(|leg| column(leg.amount)).collect::<transcript_core::Result<Vec<_>>>()?;
        let spent = if *spend { amounts.clone() } else { vec![0; amounts.len()] };
        let now = request.now.as_millis();
        let hold = sqlx::query(HOLD)
            .bind(columns.legs)
            .bind(columns.indexes)
            .bind(columns.wallets)
            .bind(columns.buckets)
            .bind(columns.caps)
            .bind(amounts)
            .bind(request.legs.iter().map(|leg| encode(leg.wallet.as_str())).collect::<Vec<_>>())
            .bind(encode(request.id.as_str()))
            .bind(numbers.numbers(now, RESERVED_NUMBERS))
            .bind(now)
            .bind(request.expires_at.as_millis())
            .bind(encode(&request.memo))
            .bind(spent)
            .bind(*spend);
        let outcome = self.outcome(&hold.fetch_one(&mut *db).await?)?;
        if matches!(outcome, Some(HoldOutcome::Insufficient { .. })) {
            let existing =
                sqlx::query(HOLD_EXISTS).bind(encode(request.id.as_str())).fetch_optional(db).await?;
            return Ok(outcome.filter(|_| existing.is_none()));
        }
        Ok(outcome)
    }
}

impl HoldTx {
    fn outcome(&self, row: &PgRow) -> DbResult<Option<HoldOutcome>> {
        if row.try_get(0)? || row.try_get(1)? {
            return Ok(None);
        }
        let (spent, held, granted) = (numbers(row, 3)?, numbers(row, 4)?, numbers(row, 5)?);
        let taken = numbers(row, 6)?;
        let mut amounts = spent.into_iter().zip(held).zip(granted.into_iter().zip(taken));
        let short: Option<i64> = row.try_get(2)?;
        let mut balances = Vec::with_capacity(self.request.legs.len());
        for leg in &self.request.legs {
            let mut pools = Vec::with_capacity(leg.terms.pools.len());
            for pool in &leg.terms.pools {
                let amounts = amounts
                    .next()
                    .ok_or_else(|| corrupt("the database returned too few pools for a hold"))?;
                let ((mut spent, mut held), (granted, taken)) = amounts;
                if short.is_none() {
                    let counter = if self.spend { &mut spent } else { &mut held };
                    *counter = counter.saturating_add(taken);
                }
                pools.push(PoolBalance { pool: pool.clone(), spent, held, granted });
            }
            balances.push(Balance { wallet: leg.wallet.clone(), pools });
        }
        Ok(Some(match short.and_then(|leg| usize::try_from(leg).ok()) {
            None => HoldOutcome::Held { balances },
            Some(index) => {
                let leg = index.saturating_sub(1);
                let balance = balances.into_iter().nth(leg);
                let balance = balance.ok_or_else(|| corrupt("the database rejected an unknown leg"))?;
                HoldOutcome::Insufficient { leg: u32::try_from(leg).unwrap_or(u32::MAX), balance }
            }
        }))
    }
}
