//! Stores the changes of steps of the ledger and of charges, in one statement.
//!
//! It fails if any of the loaded rows has changed.

use sqlx::PgConnection;
use transcript_core::{
    ledger::rules::{
        EntryRow, HoldRow, HoldRowState, LedgerChanges, LegRow, PoolRow, ShareRow, TransferRow, kind_name,
    },
    limits::rules::SlidingWindow,
};

use super::load::{AdmissionKeys, LoadedRows, with_keys};
use crate::{
    codec::column,
    error::DbResult,
    postgres::{
        database::{BoundQuery, PgDatabase},
        text::encode,
    },
    sliding_window,
    store::limits::NO_VERSION,
};

/// The statement that stores holds in this way. Holds are all new, all ended or all extended.
///
/// `$1` is an unused number; entries follow it, or the newest entry of their wallets. It is the version of the windows
/// that the statement stores; `$31` has their loaded versions.
///
/// No table is changed twice in a statement, which compatible engines reject.
macro_rules! store_statement {
    ($holds:literal) => {
        concat!(
            "WITH first AS MATERIALIZED (
                SELECT greatest($1, coalesce(max(p.last_entry) + 1, 0)) AS number
                FROM unnest($2::TEXT[]) w (wallet)
                CROSS JOIN LATERAL (SELECT last_entry FROM ledger_pools WHERE wallet = w.wallet OFFSET 0) p
            ), pools AS (
                INSERT INTO ledger_pools (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
                SELECT n.wallet, n.bucket, first.number + n.number, n.version + 1,
                    first.number + cardinality($19::TEXT[]), n.cap, n.spent, n.held, n.granted
                FROM first, unnest($3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
                    $9::BIGINT[], $10::BIGINT[]) WITH ORDINALITY
                    n (wallet, bucket, number, version, cap, spent, held, granted, place)
                ORDER BY n.place
                ON CONFLICT (wallet, bucket) DO UPDATE SET version = excluded.version,
                    last_entry = excluded.last_entry, cap = excluded.cap, spent = excluded.spent,
                    held = excluded.held, granted = excluded.granted
                WHERE ledger_pools.version = excluded.version - 1
                RETURNING 1
            ), transfers AS (
                INSERT INTO ledger_transfers (id, kind, wallet, of_grant, amount, taken, shortfall)
                SELECT * FROM unnest($11::TEXT[], $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::BIGINT[], $16::BIGINT[],
                    $17::BIGINT[])
                ON CONFLICT (id) DO UPDATE SET taken = excluded.taken, shortfall = excluded.shortfall
                WHERE excluded.kind = 'grant' AND excluded.taken + excluded.shortfall > 0
                RETURNING 1
            ), entries AS (
                INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
                SELECT e.wallet, first.number + e.place, e.at, e.bucket, e.cap, e.kind, e.amount, e.shortfall,
                    e.cause, e.memo
                FROM first, unnest($18::BIGINT[], $19::TEXT[], $20::TEXT[], $21::BIGINT[], $22::TEXT[], $23::BIGINT[],
                    $24::BIGINT[], $25::TEXT[], $26::TEXT[]) WITH ORDINALITY
                    e (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo, place)
            ), live AS (
                SELECT 1 FROM unnest($27::BYTEA[], $28::TEXT[], $29::BIGINT[]) a (key, account, version) WHERE ",
            key_is_live!(),
            "
            ), windows AS (
                INSERT INTO limits (bucket, version, ends_at, taken)
                SELECT n.bucket, $1, n.ends_at, n.taken
                FROM unnest($30::TEXT[], $32::BIGINT[], $33::TEXT[]) n (bucket, ends_at, taken)
                ON CONFLICT (bucket) DO UPDATE SET version = excluded.version, ends_at = excluded.ends_at,
                    taken = excluded.taken
                WHERE limits.version = ($31::BIGINT[])[array_position($30::TEXT[], limits.bucket)]
                RETURNING 1
            ), ",
            $holds,
            " SELECT 1 / (CASE WHEN (SELECT count(*) FROM live) = cardinality($27::BYTEA[])
                AND (SELECT count(*) FROM windows) = cardinality($30::TEXT[])
                AND (SELECT count(*) FROM pools) = cardinality($3::TEXT[])
                AND (SELECT count(*) FROM holds) = cardinality($34::TEXT[])
                AND (SELECT count(*) FROM transfers) = cardinality($11::TEXT[]) THEN 1 ELSE 0 END)"
        )
    };
}

/// Lists within a hold are array literals: an array of arrays must be rectangular.
const STORE_NEW: &str = store_statement!(
    "holds AS (
        INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs, share_buckets,
            share_caps, share_amounts)
        SELECT n.id, n.state, n.expires_at, n.memo, n.wallets::TEXT[], n.amounts::BIGINT[], n.spent::BIGINT[],
            n.share_legs::BIGINT[], n.share_buckets::TEXT[], n.share_caps::BIGINT[], n.share_amounts::BIGINT[]
        FROM unnest($34::TEXT[], $35::TEXT[], $36::BIGINT[], $37::TEXT[], $38::TEXT[], $39::TEXT[], $40::TEXT[],
            $41::TEXT[], $42::TEXT[], $43::TEXT[], $44::TEXT[])
            n (id, state, expires_at, spent, memo, wallets, amounts, share_legs, share_buckets, share_caps,
                share_amounts)
        RETURNING 1
    ), opened AS (
        INSERT INTO ledger_open (hold, wallet, expires_at)
        SELECT * FROM unnest($45::TEXT[], $46::TEXT[], $47::BIGINT[])
    )"
);

/// `$36` has the loaded expiry of each hold: another one means a hold that was extended, or shortened by a sweep.
const STORE_ENDED: &str = store_statement!(
    "holds AS (
        UPDATE ledger_holds h SET state = n.state, spent = n.spent::BIGINT[]
        FROM unnest($34::TEXT[], $35::TEXT[], $36::BIGINT[], $37::TEXT[]) n (id, state, expires_at, spent)
        WHERE h.id = n.id AND h.state = 'open' AND h.expires_at = n.expires_at
        RETURNING 1
    ), opened AS (
        DELETE FROM ledger_open WHERE hold = ANY ($34::TEXT[])
    )"
);

const STORE_EXTENDED: &str = store_statement!(
    "holds AS (
        UPDATE ledger_holds h SET expires_at = n.expires_at
        FROM unnest($34::TEXT[], $35::TEXT[], $36::BIGINT[], $37::TEXT[]) n (id, state, expires_at, spent)
        WHERE h.id = n.id AND h.state = n.state AND h.expires_at < n.expires_at
        RETURNING 1
    ), opened AS (
        UPDATE ledger_open o SET expires_at = n.expires_at
        FROM unnest($34::TEXT[], $36::BIGINT[]) n (id, expires_at) WHERE o.hold = n.id
    )"
);

/// What admitted charges leave.
#[derive(Debug, Default)]
pub(in crate::postgres) struct AdmittedRows<'a> {
    /// Their keys, which must still be live.
    pub(in crate::postgres) keys: Vec<AdmissionKeys<'a>>,
    /// Their changed windows.
    pub(in crate::postgres) windows: Vec<&'a SlidingWindow>,
}

/// Stores the changes of steps, and of admitted charges.
///
/// Holds must be all new, all ended or all extended. Without changes there is no statement.
pub(in crate::postgres) async fn store(
    db: &mut PgConnection,
    loaded: &LoadedRows,
    admitted: &AdmittedRows<'_>,
    numbers: &PgDatabase,
    now: i64,
) -> DbResult<()> {
    let changes = loaded.ledger.changes();
    if changes.is_none() && admitted.windows.is_empty() {
        return Ok(());
    }
    let LedgerChanges { pools, mut holds, transfers, entries } = changes.unwrap_or_default();
    let statement = match holds.first() {
        Some(hold) if loaded.hold_ids.contains(&hold.id) && hold.state == HoldRowState::Open => {
            STORE_EXTENDED
        }
        Some(hold) if loaded.hold_ids.contains(&hold.id) => STORE_ENDED,
        _ => STORE_NEW,
    };
    let mut wallets = texts(entries, |entry| &entry.wallet);
    wallets.sort_unstable();
    wallets.dedup();
    let base = numbers.numbers(now, entries.len() + pools.len());
    let query = sqlx::query(statement).bind(base).bind(wallets);
    let query = with_pools(query, &pools, loaded)?;
    let query = with_transfers(query, transfers)?;
    let query = with_entries(query, entries)?;
    let query = with_keys(query, &admitted.keys)?;
    let query = with_windows(query, admitted.windows.clone(), loaded);
    holds.sort_unstable_by_key(|hold| &hold.id);
    let query = with_holds(query, &holds)?;
    let query = if statement == STORE_NEW { with_new_holds(query, &holds)? } else { query };
    query.fetch_one(db).await?;
    Ok(())
}

/// Encodes a text of each row.
fn texts<T>(rows: &[T], of: impl Fn(&T) -> &str) -> Vec<String> {
    rows.iter().map(|row| encode(of(row))).collect()
}

/// Encodes a number of each row.
fn figures<T>(rows: &[T], of: impl Fn(&T) -> u64) -> DbResult<Vec<i64>> {
    Ok(rows.iter().map(|row| column(of(row))).collect::<transcript_core::Result<_>>()?)
}

/// Writes an array literal, such as `{"a","b"}`.
fn literal<T: ToString>(items: impl Iterator<Item = T>) -> String {
    let mut literal = String::from("{");
    for item in items {
        let separator = if literal.len() > 1 { ",\"" } else { "\"" };
        literal.push_str(separator);
        literal.push_str(&item.to_string().replace('\\', "\\\\").replace('"', "\\\""));
        literal.push('"');
    }
    literal.push('}');
    literal
}

/// Binds the pools in one global order, which avoids deadlocks. New ones are numbered in the order of their creation.
fn with_pools(query: BoundQuery, pools: &[&PoolRow], loaded: &LoadedRows) -> DbResult<BoundQuery> {
    let mut pools: Vec<(i64, &PoolRow)> = (1..).zip(pools.iter().copied()).collect();
    pools.sort_unstable_by_key(|(_, pool)| (&pool.wallet, &pool.bucket));
    let version = |(_, pool): &(i64, &PoolRow)| {
        let key = (pool.wallet.clone(), pool.bucket.clone());
        loaded.pool_versions.get(&key).copied().unwrap_or_default()
    };
    Ok(query
        .bind(texts(&pools, |(_, pool)| &pool.wallet))
        .bind(texts(&pools, |(_, pool)| &pool.bucket))
        .bind(pools.iter().map(|(number, _)| *number).collect::<Vec<_>>())
        .bind(pools.iter().map(version).collect::<Vec<_>>())
        .bind(figures(&pools, |(_, pool)| pool.cap)?)
        .bind(figures(&pools, |(_, pool)| pool.spent)?)
        .bind(figures(&pools, |(_, pool)| pool.held)?)
        .bind(figures(&pools, |(_, pool)| pool.granted)?))
}

fn with_transfers(query: BoundQuery, mut transfers: Vec<&TransferRow>) -> DbResult<BoundQuery> {
    transfers.sort_unstable_by_key(|transfer| &transfer.id);
    Ok(query
        .bind(texts(&transfers, |transfer| &transfer.id))
        .bind(texts(&transfers, |transfer| transfer.kind.name()))
        .bind(texts(&transfers, |transfer| &transfer.wallet))
        .bind(texts(&transfers, |transfer| &transfer.of_grant))
        .bind(figures(&transfers, |transfer| transfer.amount)?)
        .bind(figures(&transfers, |transfer| transfer.taken)?)
        .bind(figures(&transfers, |transfer| transfer.shortfall)?))
}

fn with_entries(query: BoundQuery, entries: &[EntryRow]) -> DbResult<BoundQuery> {
    Ok(query
        .bind(entries.iter().map(|entry| entry.at).collect::<Vec<_>>())
        .bind(texts(entries, |entry| &entry.wallet))
        .bind(texts(entries, |entry| &entry.bucket))
        .bind(figures(entries, |entry| entry.cap)?)
        .bind(texts(entries, |entry| kind_name(entry.kind)))
        .bind(figures(entries, |entry| entry.amount)?)
        .bind(figures(entries, |entry| entry.shortfall)?)
        .bind(texts(entries, |entry| &entry.cause))
        .bind(texts(entries, |entry| &entry.memo)))
}

/// Binds the windows in one global order, as pools are.
fn with_windows(query: BoundQuery, mut windows: Vec<&SlidingWindow>, loaded: &LoadedRows) -> BoundQuery {
    windows.sort_unstable_by_key(|window| &window.bucket);
    let version =
        |window: &&SlidingWindow| loaded.window_versions.get(&window.bucket).copied().unwrap_or(NO_VERSION);
    query
        .bind(texts(&windows, |window| &window.bucket))
        .bind(windows.iter().map(version).collect::<Vec<_>>())
        .bind(windows.iter().map(|window| sliding_window::stored_end(window)).collect::<Vec<_>>())
        .bind(windows.iter().map(|window| sliding_window::encode(window)).collect::<Vec<_>>())
}

/// Binds what a stored hold can change.
fn with_holds(query: BoundQuery, holds: &[&HoldRow]) -> DbResult<BoundQuery> {
    Ok(query
        .bind(texts(holds, |hold| &hold.id))
        .bind(texts(holds, |hold| hold.state.name()))
        .bind(holds.iter().map(|hold| hold.expires_at).collect::<Vec<_>>())
        .bind(holds.iter().map(|hold| leg_literal(hold, |leg| leg.spent)).collect::<Vec<_>>()))
}

/// Binds the other columns of new holds, and their rows in the table of open holds.
fn with_new_holds(query: BoundQuery, holds: &[&HoldRow]) -> DbResult<BoundQuery> {
    let wallets = |hold: &&HoldRow| literal(hold.legs.iter().map(|leg| encode(&leg.wallet)));
    let query = query
        .bind(texts(holds, |hold| &hold.memo))
        .bind(holds.iter().map(wallets).collect::<Vec<_>>())
        .bind(holds.iter().map(|hold| leg_literal(hold, |leg| leg.amount)).collect::<Vec<_>>())
        .bind(holds.iter().map(|hold| share_literal(hold, |leg, _| leg)).collect::<Vec<_>>())
        .bind(
            holds
                .iter()
                .map(|hold| share_literal(hold, |_, share| encode(&share.bucket)))
                .collect::<Vec<_>>(),
        )
        .bind(holds.iter().map(|hold| share_literal(hold, |_, share| share.cap)).collect::<Vec<_>>())
        .bind(holds.iter().map(|hold| share_literal(hold, |_, share| share.amount)).collect::<Vec<_>>());
    let open: Vec<(&HoldRow, &LegRow)> = holds
        .iter()
        .filter(|hold| hold.state == HoldRowState::Open)
        .flat_map(|hold| hold.legs.iter().map(move |leg| (*hold, leg)))
        .collect();
    Ok(query
        .bind(texts(&open, |(hold, _)| &hold.id))
        .bind(texts(&open, |(_, leg)| &leg.wallet))
        .bind(open.iter().map(|(hold, _)| hold.expires_at).collect::<Vec<_>>()))
}

/// Writes a number of each leg.
fn leg_literal(hold: &HoldRow, of: impl Fn(&LegRow) -> u64) -> String {
    literal(hold.legs.iter().map(of))
}

/// Writes an item of each share; legs are counted from 1.
fn share_literal<T: ToString>(hold: &HoldRow, of: impl Fn(usize, &ShareRow) -> T) -> String {
    let of = &of;
    let shares =
        (1..).zip(&hold.legs).flat_map(|(index, leg)| leg.shares.iter().map(move |share| of(index, share)));
    literal(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_literal_quotes_every_item() {
        assert_eq!(literal(std::iter::empty::<u64>()), "{}");
        assert_eq!(literal([1, 20].iter()), r#"{"1","20"}"#);
        assert_eq!(literal(["", "a,b", r#"\"{}"#, "NULL"].iter()), r#"{"","a,b","\\\"{}","NULL"}"#);
    }
}
