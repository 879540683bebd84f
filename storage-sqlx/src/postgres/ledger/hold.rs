//! Holding and spending in one statement.
//!
//! It locks the pools that it may take from, in one order for everybody, and reads them as they are then; what it
//! takes is computed of that, with the same arithmetic as `transcript_core::ledger::allocate`. A pool that has no
//! row yet cannot be locked: a row that appears meanwhile is of a version that the statement does not know, so it
//! ends itself with an error, stores nothing, and is made again. So does one whose id another has just stored.
//!
//! It says so, and stores nothing, where the id is known or a hold of one of the wallets is overdue.

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::ledger::{Balance, HoldOutcome, HoldRequest, Leg, PoolBalance};

use super::rows::numbers;
use crate::{
    books::{bucket_name, cap_of},
    codec::column,
    error::{Work, corrupt},
    postgres::{
        database::{Change, Database},
        text::own,
    },
};

/// How many numbers a statement takes for its entries: more than all legs have pools.
const NUMBERS: usize = 128;

/// `$1` to `$5` are the pools that may give, each with the place of its leg and its own place among all, from 1;
/// `$6` the legs' amounts, `$7` their wallets, `$14` whether it is spent at once.
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

/// Asked where a pool has too little. Pools are read as they are once they are locked, ids as they were when the
/// statement began: what it lacks may have been taken under this very id while it waited for the lock.
const KNOWN: &str = "SELECT 1 FROM ledger_holds WHERE id = $1";

/// A request to hold; `spend` settles it in full at once.
pub(super) struct Holding {
    pub(super) ask: HoldRequest,
    pub(super) spend: bool,
    pub(super) numbers: Database,
}

/// The pools that may give, as lists side by side.
#[derive(Default)]
struct Asked {
    legs: Vec<i64>,
    places: Vec<i64>,
    wallets: Vec<String>,
    buckets: Vec<String>,
    caps: Vec<i64>,
}

impl Asked {
    fn of(legs: &[Leg]) -> Work<Self> {
        let mut asked = Self::default();
        let pools = (1..)
            .zip(legs)
            .flat_map(|(place, leg)| leg.terms.pools.iter().map(move |pool| (place, leg, pool)));
        for (place, (leg_place, leg, pool)) in (1..).zip(pools) {
            asked.legs.push(leg_place);
            asked.places.push(place);
            asked.wallets.push(own(leg.wallet.as_str()));
            asked.buckets.push(own(bucket_name(pool)));
            asked.caps.push(column(cap_of(pool))?);
        }
        Ok(asked)
    }
}

impl Change for Holding {
    /// None where the general form must do it.
    type Outcome = Option<HoldOutcome>;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Option<HoldOutcome>> {
        let Self { ask, spend, numbers } = self;
        let asked = Asked::of(&ask.legs)?;
        let amounts =
            ask.legs.iter().map(|leg| column(leg.amount)).collect::<transcript_core::Result<Vec<_>>>()?;
        let spent = if *spend { amounts.clone() } else { vec![0; amounts.len()] };
        let now = ask.now.as_millis();
        let hold = sqlx::query(HOLD)
            .bind(asked.legs)
            .bind(asked.places)
            .bind(asked.wallets)
            .bind(asked.buckets)
            .bind(asked.caps)
            .bind(amounts)
            .bind(ask.legs.iter().map(|leg| own(leg.wallet.as_str())).collect::<Vec<_>>())
            .bind(own(ask.id.as_str()))
            .bind(numbers.numbers(now, NUMBERS))
            .bind(now)
            .bind(ask.expires_at.as_millis())
            .bind(own(&ask.memo))
            .bind(spent)
            .bind(*spend);
        let outcome = self.outcome(&hold.fetch_one(&mut *db).await?)?;
        if matches!(outcome, Some(HoldOutcome::Refused { .. })) {
            let known = sqlx::query(KNOWN).bind(own(ask.id.as_str())).fetch_optional(db).await?;
            return Ok(outcome.filter(|_| known.is_none()));
        }
        Ok(outcome)
    }
}

impl Holding {
    fn outcome(&self, row: &PgRow) -> Work<Option<HoldOutcome>> {
        if row.try_get(0)? || row.try_get(1)? {
            return Ok(None);
        }
        let (spent, held, granted) = (numbers(row, 3)?, numbers(row, 4)?, numbers(row, 5)?);
        let taken = numbers(row, 6)?;
        let mut figures = spent.into_iter().zip(held).zip(granted.into_iter().zip(taken));
        let short: Option<i64> = row.try_get(2)?;
        let mut balances = Vec::with_capacity(self.ask.legs.len());
        for leg in &self.ask.legs {
            let mut pools = Vec::with_capacity(leg.terms.pools.len());
            for pool in &leg.terms.pools {
                let figures = figures.next().ok_or_else(|| corrupt("a hold came back with too few pools"))?;
                let ((mut spent, mut held), (granted, taken)) = figures;
                if short.is_none() {
                    let takes = if self.spend { &mut spent } else { &mut held };
                    *takes = takes.saturating_add(taken);
                }
                pools.push(PoolBalance { pool: pool.clone(), spent, held, granted });
            }
            balances.push(Balance { wallet: leg.wallet.clone(), pools });
        }
        Ok(Some(match short.and_then(|leg| usize::try_from(leg).ok()) {
            None => HoldOutcome::Held { balances },
            Some(place) => {
                let leg = place.saturating_sub(1);
                let balance = balances.into_iter().nth(leg);
                let balance = balance.ok_or_else(|| corrupt("a leg was refused that nobody asked for"))?;
                HoldOutcome::Refused { leg: u32::try_from(leg).unwrap_or(u32::MAX), balance }
            }
        }))
    }
}
