//! The statements of a group of charges: one that reads, one that stores.

use std::collections::HashMap;

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    accounts::{
        ChargeOutcome, ChargeRequest,
        charge_batch::{ChargeBatch, ChargeRows},
    },
    ledger::rules::{EntryRow, HoldRow, PoolRow, bucket_name, kind_name},
    limits::rules::SlidingWindow,
};

use crate::{
    codec::{column, number},
    error::{DbResult, corrupt},
    postgres::{
        database::{BoundQuery, PgDatabase},
        text::encode,
    },
    sliding_window,
};

/// Locks the rows that other servers may change, in one global order.
const LOCK_LIMITS: &str = "SELECT 1 FROM limits WHERE bucket = ANY ($1) ORDER BY bucket FOR UPDATE";
const LOCK_POOLS: &str = "SELECT 1 FROM ledger_pools p
    WHERE (p.wallet, p.bucket) IN (SELECT w.wallet, w.bucket FROM unnest($1::TEXT[], $2::TEXT[]) w (wallet, bucket))
    ORDER BY p.wallet, p.bucket FOR UPDATE";

/// A row for each charge, in order.
///
/// `OFFSET 0` forces a lookup by key for each: a plan made while the tables were empty must not join whole tables.
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

/// Stores all changes of a group.
///
/// Fails if any row has changed since it was read, or a key no longer opens its account.
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

/// Versions of the rows that a group was computed from.
#[derive(Debug, Default)]
pub(super) struct RowVersions {
    /// The version of each window.
    windows: HashMap<String, i64>,
    /// The version of each pool: wallet and bucket.
    pools: HashMap<(String, String), i64>,
    /// The newest entry of all pools.
    last_entry: i64,
}

/// Locks the existing rows that a group may change.
pub(super) async fn lock(db: &mut PgConnection, requests: &[ChargeRequest]) -> DbResult<()> {
    let buckets: Vec<String> = requests.iter().map(|request| encode(&request.limit_request.bucket)).collect();
    sqlx::query(LOCK_LIMITS).bind(buckets).execute(&mut *db).await?;
    let legs = requests.iter().flat_map(|request| &request.spend.legs);
    let (wallets, buckets): (Vec<String>, Vec<String>) = legs
        .flat_map(|leg| {
            leg.terms.pools.iter().map(|pool| (encode(leg.wallet.as_str()), encode(bucket_name(pool))))
        })
        .unzip();
    sqlx::query(LOCK_POOLS).bind(wallets).bind(buckets).execute(db).await?;
    Ok(())
}

/// Loads the rows of the charges, in order.
pub(super) async fn load(
    db: &mut PgConnection,
    requests: &[ChargeRequest],
) -> DbResult<(Vec<ChargeRows>, RowVersions)> {
    let bucket = |request: &ChargeRequest, index: usize| {
        let leg = request.spend.legs.first();
        leg.and_then(|leg| leg.terms.pools.get(index)).map(|pool| encode(bucket_name(pool)))
    };
    let versions = requests
        .iter()
        .map(|request| column(request.version))
        .collect::<transcript_core::Result<Vec<_>>>()?;
    let load = sqlx::query(LOAD)
        .bind(requests.iter().map(|request| encode(request.spend.id.as_str())).collect::<Vec<_>>())
        .bind(requests.iter().map(|request| wallet(request).map(encode)).collect::<Vec<_>>())
        .bind(requests.iter().map(|request| request.spend.now.as_millis()).collect::<Vec<_>>())
        .bind(requests.iter().map(|request| bucket(request, 0)).collect::<Vec<_>>())
        .bind(requests.iter().map(|request| bucket(request, 1)).collect::<Vec<_>>())
        .bind(requests.iter().map(|request| encode(&request.limit_request.bucket)).collect::<Vec<_>>())
        .bind(requests.iter().map(|request| request.key_digest.as_slice()).collect::<Vec<_>>())
        .bind(requests.iter().map(|request| encode(request.account.as_str())).collect::<Vec<_>>())
        .bind(versions);
    let rows = load.fetch_all(db).await?;
    if rows.len() != requests.len() {
        return Err(corrupt("the database returned other rows than those of the charges").into());
    }
    let mut read = RowVersions::default();
    let found =
        requests.iter().zip(&rows).map(|(request, row)| read.found(request, row)).collect::<DbResult<_>>()?;
    Ok((found, read))
}

/// The wallet that pays for a charge.
fn wallet(request: &ChargeRequest) -> Option<&str> {
    request.spend.legs.first().map(|leg| leg.wallet.as_str())
}

impl RowVersions {
    fn found(&mut self, request: &ChargeRequest, row: &PgRow) -> DbResult<ChargeRows> {
        let window = match row.try_get::<Option<i64>, _>(2)? {
            None => None,
            Some(version) => {
                let bucket = &request.limit_request.bucket;
                self.windows.insert(bucket.clone(), version);
                Some(sliding_window::decode(bucket, row.try_get(3)?, row.try_get(4)?)?)
            }
        };
        let mut pools = Vec::with_capacity(2);
        let named = request.spend.legs.first().map_or(&[][..], |leg| &leg.terms.pools);
        for (pool, first) in named.iter().zip([5, 11]) {
            let Some(version) = row.try_get::<Option<i64>, _>(first)? else { continue };
            let (wallet, bucket) =
                (wallet(request).unwrap_or_default().to_owned(), bucket_name(pool).to_owned());
            self.pools.insert((wallet.clone(), bucket.clone()), version);
            self.last_entry = self.last_entry.max(row.try_get(first + 1)?);
            let amount = |index: usize| -> DbResult<u64> { Ok(number(row.try_get(first + index)?)?) };
            let (cap, spent, held, granted) = (amount(2)?, amount(3)?, amount(4)?, amount(5)?);
            pools.push(PoolRow { wallet, bucket, cap, spent, held, granted, touched: false });
        }
        Ok(ChargeRows { key_is_valid: row.try_get(0)?, needs_separate_run: row.try_get(1)?, window, pools })
    }
}

/// The first or the second shares of all holds, as parallel arrays.
#[derive(Default)]
struct ShareColumns {
    buckets: Vec<Option<String>>,
    caps: Vec<Option<i64>>,
    amounts: Vec<Option<i64>>,
}

impl ShareColumns {
    fn from_batch(batch: &ChargeBatch, index: usize) -> DbResult<Self> {
        let mut shares = Self::default();
        for hold in &batch.holds {
            let share = hold.legs.first().and_then(|leg| leg.shares.get(index));
            shares.buckets.push(share.map(|share| encode(&share.bucket)));
            shares.caps.push(share.map(|share| column(share.cap)).transpose()?);
            shares.amounts.push(share.map(|share| column(share.amount)).transpose()?);
        }
        Ok(shares)
    }
}

/// Stores the changes of a group.
pub(super) async fn store(
    db: &mut PgConnection,
    requests: &[ChargeRequest],
    batch: &ChargeBatch,
    read: &RowVersions,
    numbers: &PgDatabase,
) -> DbResult<()> {
    let is_counted =
        |outcome: &Option<ChargeOutcome>| matches!(outcome, Some(ChargeOutcome::Accepted { .. }));
    let counted = requests.iter().zip(&batch.outcomes).filter(|(_, outcome)| is_counted(outcome));
    let counted: Vec<&ChargeRequest> = counted.map(|(request, _)| request).collect();
    let count = batch.entries.len() + batch.pools.len();
    let base = numbers.numbers(batch.now, count).max(read.last_entry.saturating_add(1));
    let last = base.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
    let store = sqlx::query(STORE)
        .bind(counted.iter().map(|request| request.key_digest.clone()).collect::<Vec<_>>())
        .bind(counted.iter().map(|request| encode(request.account.as_str())).collect::<Vec<_>>())
        .bind(number_column(&counted, |request| request.version)?);
    // Two numbers: a new window's version is the next one, and must differ from the start of a concurrent window.
    let fresh = numbers.numbers(batch.now, 2);
    let store = with_windows(store, batch, read, fresh).bind(base).bind(last);
    let store = with_pools(store, batch, read)?;
    let store = with_holds(store, batch)?;
    with_entries(store, batch)?.fetch_one(db).await?;
    Ok(())
}

/// Numbers as column values.
fn number_column<T>(of: &[T], amount: impl Fn(&T) -> u64) -> DbResult<Vec<i64>> {
    Ok(of.iter().map(|one| column(amount(one))).collect::<transcript_core::Result<_>>()?)
}

/// Binds the windows in one global order, as pools are, which avoids deadlocks.
///
/// New ones start after an unused number: a window that was deleted and created again since has another version than
/// the one read before.
fn with_windows(store: BoundQuery, batch: &ChargeBatch, read: &RowVersions, fresh: i64) -> BoundQuery {
    let mut windows: Vec<&SlidingWindow> = batch.windows.iter().chain(&batch.moved_windows).collect();
    windows.sort_unstable_by_key(|window| &window.bucket);
    let version = |window: &&SlidingWindow| read.windows.get(&window.bucket).copied().unwrap_or(fresh);
    store
        .bind(windows.iter().map(|window| encode(&window.bucket)).collect::<Vec<_>>())
        .bind(windows.iter().map(version).collect::<Vec<_>>())
        .bind(windows.iter().map(|window| sliding_window::stored_end(window)).collect::<Vec<_>>())
        .bind(windows.iter().map(|window| sliding_window::encode(window)).collect::<Vec<_>>())
}

fn with_pools(store: BoundQuery, batch: &ChargeBatch, read: &RowVersions) -> DbResult<BoundQuery> {
    let mut pools: Vec<&PoolRow> = batch.pools.iter().collect();
    pools.sort_unstable_by_key(|pool| (&pool.wallet, &pool.bucket));
    let version = |pool: &&PoolRow| {
        let key = (pool.wallet.clone(), pool.bucket.clone());
        read.pools.get(&key).copied().unwrap_or_default()
    };
    Ok(store
        .bind(pools.iter().map(|pool| encode(&pool.wallet)).collect::<Vec<_>>())
        .bind(pools.iter().map(|pool| encode(&pool.bucket)).collect::<Vec<_>>())
        .bind(pools.iter().map(version).collect::<Vec<_>>())
        .bind(number_column(&pools, |pool| pool.cap)?)
        .bind(number_column(&pools, |pool| pool.spent)?)
        .bind(number_column(&pools, |pool| pool.held)?)
        .bind(number_column(&pools, |pool| pool.granted)?))
}

fn with_holds(store: BoundQuery, batch: &ChargeBatch) -> DbResult<BoundQuery> {
    let (first, second) = (ShareColumns::from_batch(batch, 0)?, ShareColumns::from_batch(batch, 1)?);
    // Each has one leg: other holds run separately.
    let wallet = |hold: &HoldRow| encode(hold.legs.first().map_or("", |leg| &leg.wallet));
    Ok(store
        .bind(batch.holds.iter().map(|hold| encode(&hold.id)).collect::<Vec<_>>())
        .bind(batch.holds.iter().map(|hold| hold.expires_at).collect::<Vec<_>>())
        .bind(batch.holds.iter().map(|hold| encode(&hold.memo)).collect::<Vec<_>>())
        .bind(batch.holds.iter().map(wallet).collect::<Vec<_>>())
        .bind(number_column(&batch.holds, |hold| hold.legs.first().map_or(0, |leg| leg.amount))?)
        .bind(first.buckets)
        .bind(first.caps)
        .bind(first.amounts)
        .bind(second.buckets)
        .bind(second.caps)
        .bind(second.amounts))
}

fn with_entries(store: BoundQuery, batch: &ChargeBatch) -> DbResult<BoundQuery> {
    let entries = &batch.entries;
    let texts = |of: fn(&EntryRow) -> &str| entries.iter().map(|entry| encode(of(entry))).collect::<Vec<_>>();
    Ok(store
        .bind(texts(|entry| &entry.wallet))
        .bind(entries.iter().map(|entry| entry.at).collect::<Vec<_>>())
        .bind(texts(|entry| &entry.bucket))
        .bind(number_column(entries, |entry| entry.cap)?)
        .bind(texts(|entry| kind_name(entry.kind)))
        .bind(number_column(entries, |entry| entry.amount)?)
        .bind(texts(|entry| &entry.cause))
        .bind(texts(|entry| &entry.memo)))
}
