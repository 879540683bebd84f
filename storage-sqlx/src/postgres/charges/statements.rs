//! What a group of charges says to the database: one statement that reads, one that stores.

use std::collections::HashMap;

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::accounts::{ChargeOutcome, ChargeRequest};

use crate::{
    batch::{Batch, Found},
    books::{EntryRow, HoldRow, PoolRow, bucket_name},
    codec::{column, number},
    error::{Work, corrupt},
    postgres::{
        database::{Ask, Database},
        text::own,
    },
    window::Window,
};

/// Locks the rows that others may change meanwhile, in one order for everybody.
const LOCK_LIMITS: &str = "SELECT 1 FROM limits WHERE bucket = ANY ($1) ORDER BY bucket FOR UPDATE";
const LOCK_POOLS: &str = "SELECT 1 FROM ledger_pools p
    WHERE (p.wallet, p.bucket) IN (SELECT w.wallet, w.bucket FROM unnest($1::TEXT[], $2::TEXT[]) w (wallet, bucket))
    ORDER BY p.wallet, p.bucket FOR UPDATE";

/// A row for each charge, in their order. `OFFSET 0` keeps it at looking rows up for each: a plan that was made before the
/// tables were filled must not join them whole.
const LOAD: &str = "SELECT
        EXISTS (SELECT 1 FROM keys k JOIN accounts o ON o.id = k.account
            WHERE k.digest = a.key AND k.revoked_at IS NULL AND o.id = a.account AND o.version = a.version
                AND o.erased_at IS NULL OFFSET 0),
        EXISTS (SELECT 1 FROM ledger_holds h WHERE h.id = a.hold OFFSET 0)
            OR EXISTS (SELECT 1 FROM ledger_open o WHERE o.wallet = a.wallet AND o.expires_at <= a.now OFFSET 0),
        l.version, l.ends_at, l.taken,
        p.version, p.last_entry, p.cap, p.spent, p.held, p.granted,
        q.version, q.last_entry, q.cap, q.spent, q.held, q.granted
    FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::BYTEA[], $8::TEXT[],
        $9::BIGINT[]) WITH ORDINALITY a (hold, wallet, now, first, second, bucket, key, account, version, place)
    LEFT JOIN LATERAL (SELECT * FROM limits WHERE bucket = a.bucket OFFSET 0) l ON TRUE
    LEFT JOIN LATERAL (
        SELECT * FROM ledger_pools WHERE wallet = a.wallet AND bucket = a.first OFFSET 0
    ) p ON TRUE
    LEFT JOIN LATERAL (
        SELECT * FROM ledger_pools WHERE wallet = a.wallet AND bucket = a.second OFFSET 0
    ) q ON TRUE
    ORDER BY a.place";

/// Stores all that a group has changed, or ends in an error when any of it has changed since it was read, or a key no
/// longer opens its account.
const STORE: &str = "WITH keyed AS (
        SELECT count(*) AS count FROM unnest($1::BYTEA[], $2::TEXT[], $3::BIGINT[]) a (key, account, version)
        WHERE EXISTS (SELECT 1 FROM keys k JOIN accounts o ON o.id = k.account
            WHERE k.digest = a.key AND k.revoked_at IS NULL AND o.id = a.account AND o.version = a.version
                AND o.erased_at IS NULL OFFSET 0)
    ), counted AS (
        INSERT INTO limits (bucket, version, ends_at, taken)
        SELECT w.bucket, w.version + 1, w.ends_at, w.taken
        FROM unnest($4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[]) w (bucket, version, ends_at, taken)
        ON CONFLICT (bucket) DO UPDATE SET version = excluded.version, ends_at = excluded.ends_at,
            taken = excluded.taken
        WHERE limits.version = excluded.version - 1
        RETURNING 1
    ), paid AS (
        INSERT INTO ledger_pools (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
        SELECT n.wallet, n.bucket, $8 + n.place, n.version + 1, $9, n.cap, n.spent, n.held, n.granted
        FROM unnest($10::TEXT[], $11::TEXT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[],
            $16::BIGINT[]) WITH ORDINALITY n (wallet, bucket, version, cap, spent, held, granted, place)
        ON CONFLICT (wallet, bucket) DO UPDATE SET version = excluded.version, last_entry = excluded.last_entry,
            cap = excluded.cap, spent = excluded.spent, held = excluded.held, granted = excluded.granted
        WHERE ledger_pools.version = excluded.version - 1
        RETURNING 1
    ), held AS (
        INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs, share_buckets,
            share_caps, share_amounts)
        SELECT h.id, 'closed', h.expires_at, h.memo, ARRAY[h.wallet], ARRAY[h.amount], ARRAY[h.amount],
            array_remove(ARRAY[sign(h.amount1), sign(h.amount2)]::BIGINT[], NULL),
            array_remove(ARRAY[h.bucket1, h.bucket2], NULL), array_remove(ARRAY[h.cap1, h.cap2], NULL),
            array_remove(ARRAY[h.amount1, h.amount2], NULL)
        FROM unnest($17::TEXT[], $18::BIGINT[], $19::TEXT[], $20::TEXT[], $21::BIGINT[], $22::TEXT[], $23::BIGINT[],
            $24::BIGINT[], $25::TEXT[], $26::BIGINT[], $27::BIGINT[])
            h (id, expires_at, memo, wallet, amount, bucket1, cap1, amount1, bucket2, cap2, amount2)
    ), written AS (
        INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT e.wallet, $8 + e.place, e.at, e.bucket, e.cap, e.kind, e.amount, 0, e.cause, e.memo
        FROM unnest($28::TEXT[], $29::BIGINT[], $30::TEXT[], $31::BIGINT[], $32::TEXT[], $33::BIGINT[], $34::TEXT[],
            $35::TEXT[]) WITH ORDINALITY e (wallet, at, bucket, cap, kind, amount, cause, memo, place)
    )
    SELECT 1 / (CASE WHEN (SELECT count FROM keyed) = cardinality($1::BYTEA[])
        AND (SELECT count(*) FROM counted) = cardinality($4::TEXT[])
        AND (SELECT count(*) FROM paid) = cardinality($10::TEXT[]) THEN 1 ELSE 0 END)";

/// How the rows were that a group was computed of.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// The version of each window.
    windows: HashMap<String, i64>,
    /// The version of each pool: wallet and bucket.
    pools: HashMap<(String, String), i64>,
    /// The newest number of an entry in any of the pools.
    last_entry: i64,
}

/// Locks what a group may change, as far as it is there.
pub(super) async fn lock(db: &mut PgConnection, asks: &[ChargeRequest]) -> Work<()> {
    let buckets: Vec<String> = asks.iter().map(|ask| own(&ask.take.bucket)).collect();
    sqlx::query(LOCK_LIMITS).bind(buckets).execute(&mut *db).await?;
    let legs = asks.iter().flat_map(|ask| &ask.spend.legs);
    let (wallets, buckets): (Vec<String>, Vec<String>) = legs
        .flat_map(|leg| leg.terms.pools.iter().map(|pool| (own(leg.wallet.as_str()), own(bucket_name(pool)))))
        .unzip();
    sqlx::query(LOCK_POOLS).bind(wallets).bind(buckets).execute(db).await?;
    Ok(())
}

/// What the database has for charges, in their order.
pub(super) async fn load(db: &mut PgConnection, asks: &[ChargeRequest]) -> Work<(Vec<Found>, Read)> {
    let bucket = |ask: &ChargeRequest, place: usize| {
        let leg = ask.spend.legs.first();
        leg.and_then(|leg| leg.terms.pools.get(place)).map(|pool| own(bucket_name(pool)))
    };
    let versions = asks.iter().map(|ask| column(ask.version)).collect::<transcript_core::Result<Vec<_>>>()?;
    let load = sqlx::query(LOAD)
        .bind(asks.iter().map(|ask| own(ask.spend.id.as_str())).collect::<Vec<_>>())
        .bind(asks.iter().map(|ask| wallet(ask).map(own)).collect::<Vec<_>>())
        .bind(asks.iter().map(|ask| ask.spend.now.as_millis()).collect::<Vec<_>>())
        .bind(asks.iter().map(|ask| bucket(ask, 0)).collect::<Vec<_>>())
        .bind(asks.iter().map(|ask| bucket(ask, 1)).collect::<Vec<_>>())
        .bind(asks.iter().map(|ask| own(&ask.take.bucket)).collect::<Vec<_>>())
        .bind(asks.iter().map(|ask| ask.key_digest.as_slice()).collect::<Vec<_>>())
        .bind(asks.iter().map(|ask| own(ask.account.as_str())).collect::<Vec<_>>())
        .bind(versions);
    let rows = load.fetch_all(db).await?;
    if rows.len() != asks.len() {
        return Err(corrupt("charges were asked for and other rows came").into());
    }
    let mut read = Read::default();
    let found = asks.iter().zip(&rows).map(|(ask, row)| read.found(ask, row)).collect::<Work<_>>()?;
    Ok((found, read))
}

/// The wallet that pays for a charge.
fn wallet(ask: &ChargeRequest) -> Option<&str> {
    ask.spend.legs.first().map(|leg| leg.wallet.as_str())
}

impl Read {
    fn found(&mut self, ask: &ChargeRequest, row: &PgRow) -> Work<Found> {
        let window = match row.try_get::<Option<i64>, _>(2)? {
            None => None,
            Some(version) => {
                let bucket = &ask.take.bucket;
                self.windows.insert(bucket.clone(), version);
                let window = Window::read(bucket, row.try_get(3)?, row.try_get(4)?);
                Some(window.ok_or_else(|| corrupt("a stored rate limit is damaged"))?)
            }
        };
        let mut pools = Vec::with_capacity(2);
        let named = ask.spend.legs.first().map_or(&[][..], |leg| &leg.terms.pools);
        for (pool, first) in named.iter().zip([5, 11]) {
            let Some(version) = row.try_get::<Option<i64>, _>(first)? else { continue };
            let (wallet, bucket) = (wallet(ask).unwrap_or_default().to_owned(), bucket_name(pool).to_owned());
            self.pools.insert((wallet.clone(), bucket.clone()), version);
            self.last_entry = self.last_entry.max(row.try_get(first + 1)?);
            let figure = |place: usize| -> Work<u64> { Ok(number(row.try_get(first + place)?)?) };
            let (cap, spent, held, granted) = (figure(2)?, figure(3)?, figure(4)?, figure(5)?);
            pools.push(PoolRow { wallet, bucket, cap, spent, held, granted, touched: false });
        }
        Ok(Found { opens: row.try_get(0)?, is_odd: row.try_get(1)?, window, pools })
    }
}

/// The shares of holds: of each its first one or its second one, as lists side by side.
#[derive(Default)]
struct Shares {
    buckets: Vec<Option<String>>,
    caps: Vec<Option<i64>>,
    amounts: Vec<Option<i64>>,
}

impl Shares {
    fn of(batch: &Batch, place: usize) -> Work<Self> {
        let mut shares = Self::default();
        for hold in &batch.holds {
            let share = hold.legs.first().and_then(|leg| leg.shares.get(place));
            shares.buckets.push(share.map(|share| own(&share.bucket)));
            shares.caps.push(share.map(|share| column(share.cap)).transpose()?);
            shares.amounts.push(share.map(|share| column(share.amount)).transpose()?);
        }
        Ok(shares)
    }
}

/// Stores what a group has changed.
pub(super) async fn store(
    db: &mut PgConnection,
    asks: &[ChargeRequest],
    batch: &Batch,
    read: &Read,
    numbers: &Database,
) -> Work<()> {
    let is_counted = |outcome: &Option<ChargeOutcome>| matches!(outcome, Some(ChargeOutcome::Counted { .. }));
    let counted = asks.iter().zip(&batch.outcomes).filter(|(_, outcome)| is_counted(outcome));
    let counted: Vec<&ChargeRequest> = counted.map(|(ask, _)| ask).collect();
    let count = batch.entries.len() + batch.pools.len();
    let base = numbers.numbers(batch.now, count).max(read.last_entry.saturating_add(1));
    let last = base.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
    let store = sqlx::query(STORE)
        .bind(counted.iter().map(|ask| ask.key_digest.clone()).collect::<Vec<_>>())
        .bind(counted.iter().map(|ask| own(ask.account.as_str())).collect::<Vec<_>>())
        .bind(figures(&counted, |ask| ask.version)?);
    // Two: a new window's version is the next one, and must not be what somebody else begins after.
    let fresh = numbers.numbers(batch.now, 2);
    let store = with_windows(store, batch, read, fresh).bind(base).bind(last);
    let store = with_pools(store, batch, read)?;
    let store = with_holds(store, batch)?;
    with_entries(store, batch)?.fetch_one(db).await?;
    Ok(())
}

/// Figures as a column takes them.
fn figures<T>(of: &[T], figure: impl Fn(&T) -> u64) -> Work<Vec<i64>> {
    Ok(of.iter().map(|one| column(figure(one))).collect::<transcript_core::Result<_>>()?)
}

/// In one order for everybody, as pools are: who waits for a row of another's holds none that the other waits for.
/// New ones begin after a number that nothing has been given yet: one that was forgotten in between and has begun again
/// is of another version than whoever had read it knows.
fn with_windows(store: Ask, batch: &Batch, read: &Read, fresh: i64) -> Ask {
    let mut windows: Vec<&Window> = batch.windows.iter().chain(&batch.moved).collect();
    windows.sort_unstable_by_key(|window| &window.bucket);
    let version = |window: &&Window| read.windows.get(&window.bucket).copied().unwrap_or(fresh);
    store
        .bind(windows.iter().map(|window| own(&window.bucket)).collect::<Vec<_>>())
        .bind(windows.iter().map(version).collect::<Vec<_>>())
        .bind(windows.iter().map(|window| window.ends_at).collect::<Vec<_>>())
        .bind(windows.iter().map(|window| window.text()).collect::<Vec<_>>())
}

fn with_pools(store: Ask, batch: &Batch, read: &Read) -> Work<Ask> {
    let mut pools: Vec<&PoolRow> = batch.pools.iter().collect();
    pools.sort_unstable_by_key(|pool| (&pool.wallet, &pool.bucket));
    let version = |pool: &&PoolRow| {
        let key = (pool.wallet.clone(), pool.bucket.clone());
        read.pools.get(&key).copied().unwrap_or_default()
    };
    Ok(store
        .bind(pools.iter().map(|pool| own(&pool.wallet)).collect::<Vec<_>>())
        .bind(pools.iter().map(|pool| own(&pool.bucket)).collect::<Vec<_>>())
        .bind(pools.iter().map(version).collect::<Vec<_>>())
        .bind(figures(&pools, |pool| pool.cap)?)
        .bind(figures(&pools, |pool| pool.spent)?)
        .bind(figures(&pools, |pool| pool.held)?)
        .bind(figures(&pools, |pool| pool.granted)?))
}

fn with_holds(store: Ask, batch: &Batch) -> Work<Ask> {
    let (first, second) = (Shares::of(batch, 0)?, Shares::of(batch, 1)?);
    // Each has one leg: others go their own way.
    let wallet = |hold: &HoldRow| own(hold.legs.first().map_or("", |leg| &leg.wallet));
    Ok(store
        .bind(batch.holds.iter().map(|hold| own(&hold.id)).collect::<Vec<_>>())
        .bind(batch.holds.iter().map(|hold| hold.expires_at).collect::<Vec<_>>())
        .bind(batch.holds.iter().map(|hold| own(&hold.memo)).collect::<Vec<_>>())
        .bind(batch.holds.iter().map(wallet).collect::<Vec<_>>())
        .bind(figures(&batch.holds, |hold| hold.legs.first().map_or(0, |leg| leg.amount))?)
        .bind(first.buckets)
        .bind(first.caps)
        .bind(first.amounts)
        .bind(second.buckets)
        .bind(second.caps)
        .bind(second.amounts))
}

fn with_entries(store: Ask, batch: &Batch) -> Work<Ask> {
    let entries = &batch.entries;
    let texts = |of: fn(&EntryRow) -> &str| entries.iter().map(|entry| own(of(entry))).collect::<Vec<_>>();
    Ok(store
        .bind(texts(|entry| &entry.wallet))
        .bind(entries.iter().map(|entry| entry.at).collect::<Vec<_>>())
        .bind(texts(|entry| &entry.bucket))
        .bind(figures(entries, |entry| entry.cap)?)
        .bind(texts(|entry| entry.kind))
        .bind(figures(entries, |entry| entry.amount)?)
        .bind(texts(|entry| &entry.cause))
        .bind(texts(|entry| &entry.memo)))
}
