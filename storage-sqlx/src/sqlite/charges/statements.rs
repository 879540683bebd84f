//! The statements of a group of charges: one that loads, one text that stores.
//!
//! Rows are parameters, in statements for fixed numbers of rows; unused rows are null and match nothing. Expanding
//! JSON, as single ledger operations do, takes several times as long, and this runs for every request.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::TryStreamExt;
use serde::Deserialize;
use sqlx::{
    Arguments, AssertSqlSafe, Executor, Row, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments,
};
use transcript_core::{
    Error,
    accounts::charge_batch::{ChargeBatch, ChargeItem, ChargeRows},
    ledger::rules::{PoolRow, bucket_name, kind_name},
};

use super::ChargeQueueItem;
use crate::{
    codec::{self, column},
    error::{DbResult, corrupt},
    sliding_window,
    sqlite::{
        limits,
        writer::{TxError, TxResult},
    },
};

/// Numbers of charges with a statement, close enough that few rows stay empty.
///
/// A group can take from at most two pools per charge.
const SIZES: [usize; 12] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/// The texts with their sizes, the smallest first.
type StatementTexts = [(usize, Arc<str>); SIZES.len()];

/// The statements of groups.
#[derive(Debug)]
pub(in crate::sqlite) struct StatementSet {
    /// Texts that begin a transaction and load.
    load: StatementTexts,
    /// Texts that store and commit.
    store: StatementTexts,
}

/// Prefix of a loading statement, for a group with its own transaction.
const BEGIN: &str = "BEGIN IMMEDIATE; ";
/// Suffix of the storing statements.
const COMMIT: &str = "; COMMIT";
/// Number of statements in [`store`].
const STORED: u32 = 4;

impl Default for StatementSet {
    fn default() -> Self {
        let load = |size| (size, (BEGIN.to_owned() + &load(size)).into());
        let store = |size| (size, (store(size) + COMMIT).into());
        Self { load: SIZES.map(load), store: SIZES.map(store) }
    }
}

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(in crate::sqlite) fn hot() -> Vec<String> {
    vec![load(2), store(2)]
}

/// Parameters in each row of `VALUES`.
const ITEM_COLUMNS: usize = 9;
/// Those that a spend does not have: limit, key, account and its version.
const CHARGE_COLUMNS: usize = 4;
const POOL_COLUMNS: usize = 6;
const WINDOW_COLUMNS: usize = 3;
const HOLD_COLUMNS: usize = 4;
const ENTRY_COLUMNS: usize = 8;

/// Rows of parameters for `VALUES`.
fn rows(count: usize, parameters: usize) -> String {
    let row = format!("({})", vec!["?"; parameters].join(","));
    vec![row.as_str(); count].join(",")
}

/// Loads the rows of this many charges as one JSON text, which is cheaper than single rows.
fn load(size: usize) -> String {
    let row = |index| format!("({index}{})", ",?".repeat(ITEM_COLUMNS));
    let rows = (0..size).map(row).collect::<Vec<_>>().join(",");
    format!(
        "WITH asked (place, hold, wallet, now, first, second, bucket, key, account, version) AS (VALUES {rows})
        SELECT json_group_array(json_array(
            place,
            EXISTS (SELECT 1 FROM keys k JOIN accounts a ON a.id = k.account
                WHERE k.digest = asked.key AND k.revoked_at IS NULL AND a.id = asked.account
                    AND a.version = asked.version AND a.erased_at IS NULL),
            EXISTS (SELECT 1 FROM ledger_holds h WHERE h.id = asked.hold)
                OR EXISTS (SELECT 1 FROM ledger_open o WHERE o.wallet = asked.wallet AND o.expires_at <= asked.now),
            (SELECT json_array(ends_at, taken) FROM limits WHERE limits.bucket = asked.bucket),
            (SELECT json_array(cap, spent, held, granted) FROM ledger_pools p
                WHERE p.wallet = asked.wallet AND p.bucket = asked.first),
            (SELECT json_array(cap, spent, held, granted) FROM ledger_pools p
                WHERE p.wallet = asked.wallet AND p.bucket = asked.second)
        )) FROM asked WHERE hold IS NOT NULL"
    )
}

/// Stores the changes of at most this many charges.
fn store(size: usize) -> String {
    format!(
        "INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted)
            SELECT * FROM (VALUES {pools}) WHERE column1 IS NOT NULL
            ON CONFLICT (wallet, bucket) DO UPDATE SET cap = excluded.cap, spent = excluded.spent,
                held = excluded.held, granted = excluded.granted;
        INSERT INTO limits (bucket, ends_at, taken)
            SELECT * FROM (VALUES {windows}) WHERE column1 IS NOT NULL
            ON CONFLICT (bucket) DO UPDATE SET taken = excluded.taken;
        INSERT INTO ledger_holds (id, state, expires_at, memo, legs)
            SELECT column1, 'closed', column2, column3, column4
            FROM (VALUES {holds}) WHERE column1 IS NOT NULL;
        INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
            SELECT column1, column2, column3, column4, column5, column6, 0, column7, column8
            FROM (VALUES {entries}) WHERE column1 IS NOT NULL",
        pools = rows(size, POOL_COLUMNS),
        windows = rows(size, WINDOW_COLUMNS),
        holds = rows(size, HOLD_COLUMNS),
        entries = rows(size, ENTRY_COLUMNS),
    )
}

/// The values of a statement's parameters, in order.
pub(super) struct StatementValues<'a> {
    arguments: SqliteArguments,
    /// Shared texts: most repeat, and each copy would be two allocations.
    texts: HashMap<&'a str, Arc<str>>,
}

impl<'a> StatementValues<'a> {
    pub(super) fn with_capacity(count: usize) -> Self {
        let mut arguments = SqliteArguments::default();
        arguments.reserve(count, 0);
        Self { arguments, texts: HashMap::new() }
    }

    pub(super) fn add<'t>(
        &mut self,
        value: impl sqlx::Encode<'t, Sqlite> + sqlx::Type<Sqlite>,
    ) -> DbResult<()> {
        let added = self.arguments.add(value);
        Ok(added
            .map_err(|error| Error::unexpected(format!("cannot encode a statement parameter: {error}")))?)
    }

    /// Adds a text that may repeat.
    pub(super) fn text(&mut self, text: &'a str) -> DbResult<()> {
        let shared = Arc::clone(self.texts.entry(text).or_insert_with(|| text.into()));
        self.add(shared)
    }

    pub(super) fn optional_text(&mut self, text: Option<&'a str>) -> DbResult<()> {
        match text {
            Some(text) => self.text(text),
            None => self.skip(1),
        }
    }

    /// Adds nulls.
    fn skip(&mut self, parameters: usize) -> DbResult<()> {
        (0..parameters).try_for_each(|_| self.add(None::<i64>))
    }

    pub(super) fn into_arguments(self) -> SqliteArguments {
        self.arguments
    }

    fn into_query(self, text: &Arc<str>) -> Query<'static, Sqlite, SqliteArguments> {
        // The text is composed of constants and numbers only.
        sqlx::query_with(AssertSqlSafe(Arc::clone(text)), self.arguments)
    }
}

/// The smallest text for this many charges.
fn smallest_fitting(texts: &StatementTexts, count: usize) -> DbResult<(usize, &Arc<str>)> {
    let fits = texts.iter().find(|(size, _)| count <= *size);
    let too_many = || Error::unexpected("a group of charges exceeds the largest statement");
    Ok(fits.map(|(size, text)| (*size, text)).ok_or_else(too_many)?)
}

/// A pool: cap, spent, held, granted.
type ChargeFigures = (u64, u64, u64, u64);

/// A row of [`load`] for one charge.
#[derive(Deserialize)]
struct LoadedRows(usize, u8, u8, Option<(i64, String)>, Option<ChargeFigures>, Option<ChargeFigures>);

impl StatementSet {
    /// Loads the rows of the charges, in order.
    pub(super) async fn load(
        &self,
        db: &mut SqliteConnection,
        items: &[ChargeQueueItem],
    ) -> DbResult<Vec<ChargeRows>> {
        let (size, text) = smallest_fitting(&self.load, items.len())?;
        let text = text.strip_prefix(BEGIN).unwrap_or(text).into();
        load_as(&text, bind_items(items, size)?, db, items).await
    }

    /// Begins a transaction and loads the rows of the charges, in order.
    pub(super) async fn begin_and_load(
        &self,
        db: &mut SqliteConnection,
        items: &[ChargeQueueItem],
    ) -> DbResult<Vec<ChargeRows>> {
        let (size, text) = smallest_fitting(&self.load, items.len())?;
        load_as(text, bind_items(items, size)?, db, items).await
    }

    /// Stores the changes of a group.
    pub(super) async fn store(&self, db: &mut SqliteConnection, batch: &ChargeBatch) -> DbResult<()> {
        store_moved_windows(db, batch).await?;
        let count = row_count(batch);
        if count == 0 {
            return Ok(());
        }
        let (size, text) = smallest_fitting(&self.store, count)?;
        let text = text.strip_suffix(COMMIT).unwrap_or(text).into();
        values(batch, size)?.into_query(&text).execute(db).await?;
        Ok(())
    }

    /// Stores the changes of a group and commits.
    ///
    /// `is_stored` is set while only the commit decides the outcome.
    pub(super) async fn store_and_commit(
        &self,
        db: &mut SqliteConnection,
        batch: &ChargeBatch,
        is_stored: &AtomicBool,
    ) -> TxResult<()> {
        store_moved_windows(db, batch).await.map_err(TxError::from_write)?;
        let (size, text) = smallest_fitting(&self.store, row_count(batch)).map_err(TxError::from_write)?;
        let values = values(batch, size).map_err(TxError::from_write)?;
        // The connection's thread runs all statements, even if the caller stops reading the results.
        is_stored.store(true, Ordering::Relaxed);
        let mut results = db.fetch_many(values.into_query(text));
        // Results come in order, and no statement runs before the previous result was sent.
        for _ in 0..STORED {
            let stored = results.try_next().await.and_then(|result| result.ok_or(sqlx::Error::WorkerCrashed));
            stored.map_err(|error| {
                is_stored.store(false, Ordering::Relaxed);
                TxError::from_write(error)
            })?;
        }
        let committed = results.try_next().await.and_then(|result| result.ok_or(sqlx::Error::WorkerCrashed));
        committed.map(drop).map_err(TxError::to_commit)
    }
}

async fn load_as(
    text: &Arc<str>,
    values: StatementValues<'_>,
    db: &mut SqliteConnection,
    items: &[ChargeQueueItem],
) -> DbResult<Vec<ChargeRows>> {
    let row = values.into_query(text).fetch_one(db).await?;
    let mut loaded: Vec<LoadedRows> =
        serde_json::from_str(row.try_get(0)?).map_err(|_| corrupt("a stored row of a charge is damaged"))?;
    loaded.sort_unstable_by_key(|LoadedRows(index, ..)| *index);
    if loaded.len() != items.len() {
        return Err(Error::unexpected("the database returned other rows than those of the charges").into());
    }
    items.iter().zip(loaded).map(|(item, loaded)| found(item, loaded)).collect()
}

/// Stores the windows whose end changed, which is rare.
async fn store_moved_windows(db: &mut SqliteConnection, batch: &ChargeBatch) -> DbResult<()> {
    if !batch.moved_windows.is_empty() {
        limits::store(db, &batch.moved_windows, batch.now).await?;
    }
    Ok(())
}

/// Number of rows that the storing statement needs.
fn row_count(batch: &ChargeBatch) -> usize {
    let lengths = [batch.pools.len(), batch.windows.len(), batch.holds.len(), batch.entries.len()];
    lengths.into_iter().max().unwrap_or_default()
}

/// The parameters of [`load`] for this size.
fn bind_items(items: &[ChargeQueueItem], size: usize) -> DbResult<StatementValues<'_>> {
    let mut values = StatementValues::with_capacity(size * ITEM_COLUMNS);
    for item in items {
        let spend = item.spend();
        let leg = spend.legs.first();
        let mut buckets = leg.iter().flat_map(|leg| &leg.terms.pools).map(bucket_name);
        values.text(spend.id.as_str())?;
        values.optional_text(leg.map(|leg| leg.wallet.as_str()))?;
        values.add(spend.now.as_millis())?;
        values.optional_text(buckets.next())?;
        values.optional_text(buckets.next())?;
        match item.charge() {
            None => values.skip(CHARGE_COLUMNS)?,
            Some(charge) => {
                values.text(&charge.limit_request.bucket)?;
                values.add(charge.key_digest.as_slice())?;
                values.text(charge.account.as_str())?;
                values.add(column(charge.version)?)?;
            }
        }
    }
    Ok(values)
}

/// The parameters of [`store`] for this size.
fn values(batch: &ChargeBatch, size: usize) -> DbResult<StatementValues<'_>> {
    let mut values =
        StatementValues::with_capacity(size * (POOL_COLUMNS + WINDOW_COLUMNS + HOLD_COLUMNS + ENTRY_COLUMNS));
    for pool in &batch.pools {
        values.text(&pool.wallet)?;
        values.text(&pool.bucket)?;
        for figure in [pool.cap, pool.spent, pool.held, pool.granted] {
            values.add(column(figure)?)?;
        }
    }
    values.skip((size - batch.pools.len()) * POOL_COLUMNS)?;
    for window in &batch.windows {
        values.text(&window.bucket)?;
        values.add(window.ends_at)?;
        values.add(sliding_window::encode(window))?;
    }
    values.skip((size - batch.windows.len()) * WINDOW_COLUMNS)?;
    for hold in &batch.holds {
        values.text(&hold.id)?;
        values.add(hold.expires_at)?;
        values.text(&hold.memo)?;
        values.add(codec::json(&hold.legs)?)?;
    }
    values.skip((size - batch.holds.len()) * HOLD_COLUMNS)?;
    for entry in &batch.entries {
        values.add(entry.at)?;
        values.text(&entry.wallet)?;
        values.text(&entry.bucket)?;
        values.add(column(entry.cap)?)?;
        values.text(kind_name(entry.kind))?;
        values.add(column(entry.amount)?)?;
        values.text(&entry.cause)?;
        values.text(&entry.memo)?;
    }
    // Missing parameters at the end are null.
    Ok(values)
}

fn found(item: &ChargeQueueItem, loaded: LoadedRows) -> DbResult<ChargeRows> {
    let LoadedRows(_, key_is_valid, needs_separate_run, window, first, second) = loaded;
    let window = match (item.charge(), window) {
        (Some(charge), Some((ends_at, taken))) => {
            Some(sliding_window::decode(&charge.limit_request.bucket, ends_at, &taken)?)
        }
        _ => None,
    };
    let leg = item.spend().legs.first();
    let named =
        leg.iter().flat_map(|leg| leg.terms.pools.iter().map(|pool| (&leg.wallet, bucket_name(pool))));
    let pools = named.zip([first, second]).filter_map(|((wallet, bucket), number_column)| {
        let (cap, spent, held, granted) = number_column?;
        let (wallet, bucket) = (wallet.as_str().to_owned(), bucket.to_owned());
        Some(PoolRow { wallet, bucket, cap, spent, held, granted, touched: false })
    });
    let key_is_valid = key_is_valid != 0 || item.charge().is_none();
    Ok(ChargeRows {
        key_is_valid,
        needs_separate_run: needs_separate_run != 0,
        window,
        pools: pools.collect(),
    })
}
