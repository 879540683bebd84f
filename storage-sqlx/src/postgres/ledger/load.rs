//! Loads the rows that steps of the ledger and charges need, in one statement.

use std::collections::{HashMap, HashSet};

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    ledger::rules::{HoldRow, LedgerRows, PoolRow, RowKeys, TransferKind, TransferRow},
    limits::rules::SlidingWindow,
};

use super::rows;
use crate::{
    codec::column,
    error::{DbError, DbResult, corrupt},
    postgres::{
        database::BoundQuery,
        text::{decode, encode, read},
    },
    sliding_window,
    store::{
        ledger::log_unreadable_hold,
        limits::{LOCK_WINDOWS, READ_COMMITTED},
    },
};

/// Whether the key of a charge is live and its account has the expected version.
macro_rules! key_is_live {
    () => {
        "EXISTS (SELECT 1 FROM keys k JOIN accounts o ON o.id = k.account
            WHERE k.digest = a.key AND k.revoked_at IS NULL AND o.id = a.account AND o.version = a.version
                AND o.erased_at IS NULL OFFSET 0)"
    };
}

/// Rows of several tables: the last column names the table, and the others are those of [`hold_columns`].
///
/// `OFFSET 0` forces a lookup by key for each row: a plan made while the tables were empty must not join whole tables.
const LOAD: &str = concat!(
    "WITH holds AS MATERIALIZED (
        SELECT ",
    hold_columns!(),
    " FROM (
            SELECT id FROM unnest($1::TEXT[]) a (id)
            UNION ALL SELECT o.hold FROM unnest($2::TEXT[], $3::BIGINT[]) w (wallet, now) CROSS JOIN LATERAL (
                SELECT hold FROM ledger_open WHERE wallet = w.wallet AND expires_at <= w.now OFFSET 0
            ) o
            UNION ALL SELECT id FROM (
                SELECT id FROM ledger_holds WHERE state = 'open' AND expires_at <= $4 ORDER BY expires_at, id LIMIT $5
            ) overdue
        ) n CROSS JOIN LATERAL (SELECT * FROM ledger_holds WHERE id = n.id OFFSET 0) h
    ), transfers AS MATERIALIZED (
        SELECT t.id, t.kind, t.wallet, t.of_grant, t.amount, t.taken, t.shortfall
        FROM unnest($6::TEXT[]) a (id)
        CROSS JOIN LATERAL (SELECT * FROM ledger_transfers WHERE id = a.id OFFSET 0) t
    )
    SELECT holds.*, 'hold' FROM holds
    UNION ALL SELECT id, kind, NULL, NULL, ARRAY[wallet, of_grant], ARRAY[amount, taken, shortfall],
        NULL, NULL, NULL, NULL, NULL, 'transfer' FROM transfers
    UNION ALL SELECT p.wallet, p.bucket, p.version, NULL, NULL, ARRAY[p.cap, p.spent, p.held, p.granted],
        NULL, NULL, NULL, NULL, NULL, 'pool'
    FROM (
        SELECT wallet, bucket FROM unnest($7::TEXT[], $8::TEXT[]) a (wallet, bucket)
        UNION ALL SELECT holds.wallets[s.leg], s.bucket
            FROM holds, unnest(holds.share_legs, holds.share_buckets) s (leg, bucket) WHERE holds.state = 'open'
        UNION ALL SELECT wallet, '' FROM transfers
    ) n CROSS JOIN LATERAL (SELECT * FROM ledger_pools WHERE wallet = n.wallet AND bucket = n.bucket OFFSET 0) p
    UNION ALL SELECT l.bucket, l.taken, l.ends_at, NULL, NULL, ARRAY[l.version], NULL, NULL, NULL, NULL, NULL, 'window'
    FROM unnest($9::TEXT[]) a (bucket)
    CROSS JOIN LATERAL (SELECT * FROM limits WHERE bucket = a.bucket OFFSET 0) l
    UNION ALL SELECT NULL, NULL, a.place, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'key'
    FROM unnest($10::BYTEA[], $11::TEXT[], $12::BIGINT[]) WITH ORDINALITY a (key, account, version, place)
    WHERE ",
    key_is_live!()
);

/// Locks pools in one global order, after the windows of charges.
const LOCK_POOLS: &str = "SELECT 1 FROM ledger_pools p
    WHERE (p.wallet, p.bucket) IN (SELECT w.wallet, w.bucket FROM unnest($1::TEXT[], $2::TEXT[]) w (wallet, bucket))
    ORDER BY p.wallet, p.bucket FOR UPDATE";

/// What admits a charge: the key of a version of an account, and the window of a rate limit.
#[derive(Clone, Copy, Debug)]
pub(in crate::postgres) struct AdmissionKeys<'a> {
    pub(in crate::postgres) digest: &'a [u8],
    pub(in crate::postgres) account: &'a str,
    pub(in crate::postgres) version: u64,
    pub(in crate::postgres) bucket: &'a str,
}

/// The rows of steps, and what must not change until they are stored.
#[derive(Debug, Default)]
pub(in crate::postgres) struct LoadedRows {
    /// The rows, for the rules of the ledger.
    pub(in crate::postgres) ledger: LedgerRows,
    /// Ids of the stored holds.
    pub(super) hold_ids: HashSet<String>,
    /// The version of each stored pool: wallet and bucket.
    pub(super) pool_versions: HashMap<(String, String), i64>,
    /// The windows of the charges.
    pub(in crate::postgres) windows: Vec<SlidingWindow>,
    /// The version of each stored window.
    pub(super) window_versions: HashMap<String, i64>,
    /// Indexes of the charges with a live key.
    pub(in crate::postgres) live: HashSet<usize>,
}

/// Loads the rows of all steps, and those that admit charges.
///
/// Of the overdue holds of any wallet, one that cannot be decoded is logged, and another one is loaded instead: it must
/// not stop the expiry of others.
pub(in crate::postgres) async fn load(
    db: &mut PgConnection,
    steps: &[RowKeys<'_>],
    charges: &[AdmissionKeys<'_>],
) -> DbResult<LoadedRows> {
    // Only a step that runs alone, and names no hold or wallet, expires holds of any wallet.
    let limit = steps.first().map_or(0, |keys| i64::from(keys.limit));
    let mut holds_max = limit;
    loop {
        let rows = query(steps, charges, holds_max)?.fetch_all(&mut *db).await?;
        let mut unreadable = Vec::new();
        let loaded = LoadedRows::from_rows(&rows, (limit > 0).then_some(&mut unreadable))?;
        let needed = limit.saturating_add(i64::try_from(unreadable.len()).unwrap_or(i64::MAX));
        if needed <= holds_max {
            for (hold, error) in unreadable {
                log_unreadable_hold(&hold, &error);
            }
            return Ok(loaded);
        }
        holds_max = needed;
    }
}

/// [`LOAD`] with its values, for at most `holds_max` overdue holds of any wallet.
fn query(steps: &[RowKeys<'_>], charges: &[AdmissionKeys<'_>], holds_max: i64) -> DbResult<BoundQuery> {
    let overdue = || steps.iter().flat_map(|keys| keys.wallets.iter().map(|wallet| (*wallet, keys.now)));
    let (wallets, buckets): (Vec<String>, Vec<String>) = steps
        .iter()
        .flat_map(|keys| &keys.pools)
        .map(|(wallet, bucket)| (encode(wallet), encode(bucket)))
        .unzip();
    let statement = sqlx::query(LOAD)
        .bind(steps.iter().filter_map(|keys| keys.hold.map(encode)).collect::<Vec<_>>())
        .bind(overdue().map(|(wallet, _)| encode(wallet)).collect::<Vec<_>>())
        .bind(overdue().map(|(_, now)| now).collect::<Vec<_>>())
        .bind(steps.first().map_or(0, |keys| keys.now))
        .bind(holds_max)
        .bind(steps.iter().flat_map(|keys| &keys.transfers).map(|id| encode(id)).collect::<Vec<_>>())
        .bind(wallets)
        .bind(buckets)
        .bind(charges.iter().map(|charge| encode(charge.bucket)).collect::<Vec<_>>());
    with_keys(statement, charges)
}

/// Binds the keys of charges.
pub(super) fn with_keys(query: BoundQuery, charges: &[AdmissionKeys<'_>]) -> DbResult<BoundQuery> {
    let versions = charges.iter().map(|charge| column(charge.version));
    let versions = versions.collect::<transcript_core::Result<Vec<_>>>()?;
    Ok(query
        .bind(charges.iter().map(|charge| charge.digest.to_vec()).collect::<Vec<_>>())
        .bind(charges.iter().map(|charge| encode(charge.account)).collect::<Vec<_>>())
        .bind(versions))
}

/// Locks windows and pools until the end of the transaction. It must be the transaction's first work.
pub(in crate::postgres) async fn lock(
    db: &mut PgConnection,
    steps: &[RowKeys<'_>],
    charges: &[AdmissionKeys<'_>],
) -> DbResult<()> {
    sqlx::raw_sql(READ_COMMITTED).execute(&mut *db).await?;
    let rows = load(db, steps, charges).await?;
    if !rows.window_versions.is_empty() {
        let buckets: Vec<String> = rows.window_versions.keys().map(|bucket| encode(bucket)).collect();
        sqlx::query(LOCK_WINDOWS).bind(buckets).execute(&mut *db).await?;
    }
    let pools = rows.pool_versions.keys().map(|(wallet, bucket)| (encode(wallet), encode(bucket)));
    let (wallets, buckets): (Vec<String>, Vec<String>) = pools.unzip();
    sqlx::query(LOCK_POOLS).bind(wallets).bind(buckets).execute(db).await?;
    Ok(())
}

impl LoadedRows {
    /// Decodes rows of [`LOAD`]. With a list, it receives the holds that cannot be decoded.
    fn from_rows(rows: &[PgRow], mut unreadable: Option<&mut Vec<(String, DbError)>>) -> DbResult<Self> {
        let mut loaded = Self::default();
        let (mut holds, mut pools, mut transfers) =
            (Vec::<HoldRow>::new(), Vec::<PoolRow>::new(), Vec::<TransferRow>::new());
        // Steps of one wallet need the same rows, so each may be found repeatedly.
        for row in rows {
            match row.try_get(11)? {
                "hold" => {
                    let hold = match (rows::hold(row), &mut unreadable) {
                        (Err(error), Some(unreadable)) if error.is_damaged() => {
                            unreadable.push((read(row, 0)?, error));
                            continue;
                        }
                        (hold, _) => hold?,
                    };
                    if loaded.hold_ids.insert(hold.id.clone()) {
                        holds.push(hold);
                    }
                }
                "transfer" => {
                    let transfer = transfer(row)?;
                    if transfers.iter().all(|known| known.id != transfer.id) {
                        transfers.push(transfer);
                    }
                }
                "pool" => {
                    let pool = pool(row)?;
                    let key = (pool.wallet.clone(), pool.bucket.clone());
                    if loaded.pool_versions.insert(key, row.try_get(2)?).is_none() {
                        pools.push(pool);
                    }
                }
                "window" => {
                    let (bucket, [version]) = (read(row, 0)?, figures(row)?);
                    if loaded.window_versions.insert(bucket.clone(), column(version)?).is_none() {
                        let window = sliding_window::decode(&bucket, row.try_get(2)?, row.try_get(1)?)?;
                        loaded.windows.push(window);
                    }
                }
                // A live key: the number of its charge, from 1.
                _ => {
                    let index = usize::try_from(row.try_get::<i64, _>(2)? - 1);
                    loaded.live.extend(index);
                }
            }
        }
        loaded.ledger = LedgerRows::new(pools, holds, transfers);
        Ok(loaded)
    }
}

/// Decodes a list of numbers of this length.
fn figures<const N: usize>(row: &PgRow) -> DbResult<[u64; N]> {
    Ok(rows::numbers(row, 5)?.try_into().map_err(|_| corrupt("the database returned too few numbers"))?)
}

fn pool(row: &PgRow) -> DbResult<PoolRow> {
    let [cap, spent, held, granted] = figures(row)?;
    Ok(PoolRow { wallet: read(row, 0)?, bucket: read(row, 1)?, cap, spent, held, granted, touched: false })
}

fn transfer(row: &PgRow) -> DbResult<TransferRow> {
    let texts: Vec<String> = row.try_get(4)?;
    let [wallet, of_grant] =
        texts.try_into().map_err(|_| corrupt("the database returned too few texts of a transfer"))?;
    let [amount, taken, shortfall] = figures(row)?;
    Ok(TransferRow {
        id: read(row, 0)?,
        kind: TransferKind::from_name(row.try_get(1)?)
            .ok_or_else(|| corrupt("a transfer of the ledger has an unknown kind"))?,
        wallet: decode(wallet),
        of_grant: decode(of_grant),
        amount,
        taken,
        shortfall,
        touched: false,
    })
}
