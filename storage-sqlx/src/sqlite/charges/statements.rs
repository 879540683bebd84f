//! What a group of charges says to the database: one statement that loads, one text that stores.
//!
//! Their rows are parameters, in statements for certain numbers of rows; those that are left over are empty, and
//! find and store nothing. As JSON, which single steps of the ledger use, unfolding them would take several times
//! as long, and it is done for every request.

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
use transcript_core::Error;

use super::Ask;
use crate::{
    batch::{Asked, Batch, Found},
    books::{PoolRow, bucket_name},
    codec::{self, column},
    error::{Work, corrupt},
    sqlite::{
        limits,
        writer::{Attempt, Failed},
    },
    window::Window,
};

/// For how many charges there are statements: so close that few of their rows are empty. A group's may take from two
/// pools each, at most.
const SIZES: [usize; 12] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/// The texts, each with its size, the smallest first.
type Texts = [(usize, Arc<str>); SIZES.len()];

/// The statements of groups.
#[derive(Debug)]
pub(in crate::sqlite) struct Statements {
    /// That begin a transaction, and load.
    load: Texts,
    /// That store, and commit.
    store: Texts,
}

/// What stands before a statement that loads, where a group has a transaction to itself.
const BEGIN: &str = "BEGIN IMMEDIATE; ";
/// What stands behind those that store.
const COMMIT: &str = "; COMMIT";
/// How many statements [`store`] is.
const STORED: u32 = 4;

impl Default for Statements {
    fn default() -> Self {
        let load = |size| (size, (BEGIN.to_owned() + &load(size)).into());
        let store = |size| (size, (store(size) + COMMIT).into());
        Self { load: SIZES.map(load), store: SIZES.map(store) }
    }
}

/// What must not grow with what is stored, for the test of the plans.
#[cfg(test)]
pub(in crate::sqlite) fn hot() -> Vec<String> {
    vec![load(2), store(2)]
}

/// How many parameters each row of `VALUES` has.
const ASKED: usize = 9;
/// Those of them that a spend has not: limit, key, account and its version.
const GATE: usize = 4;
const POOL: usize = 6;
const WINDOW: usize = 3;
const HOLD: usize = 4;
const ENTRY: usize = 8;

/// Rows of parameters for `VALUES`.
fn rows(count: usize, parameters: usize) -> String {
    let row = format!("({})", vec!["?"; parameters].join(","));
    vec![row.as_str(); count].join(",")
}

/// Loads what these many charges need, as one text of JSON: a row that has another way to the reader costs more.
fn load(size: usize) -> String {
    let row = |place| format!("({place}{})", ",?".repeat(ASKED));
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

/// Stores what these many charges change at most.
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
        pools = rows(size, POOL),
        windows = rows(size, WINDOW),
        holds = rows(size, HOLD),
        entries = rows(size, ENTRY),
    )
}

/// The values of a statement's parameters, in their order.
pub(super) struct Values<'a> {
    arguments: SqliteArguments,
    /// Texts that are there already: most come several times, and each would be two allocations.
    texts: HashMap<&'a str, Arc<str>>,
}

impl<'a> Values<'a> {
    pub(super) fn of(count: usize) -> Self {
        let mut arguments = SqliteArguments::default();
        arguments.reserve(count, 0);
        Self { arguments, texts: HashMap::new() }
    }

    pub(super) fn add<'t>(&mut self, value: impl sqlx::Encode<'t, Sqlite> + sqlx::Type<Sqlite>) -> Work<()> {
        let added = self.arguments.add(value);
        Ok(added.map_err(|error| Error::unexpected(format!("a value is no parameter: {error}")))?)
    }

    /// A text that may come again.
    pub(super) fn text(&mut self, text: &'a str) -> Work<()> {
        let shared = Arc::clone(self.texts.entry(text).or_insert_with(|| text.into()));
        self.add(shared)
    }

    pub(super) fn perhaps(&mut self, text: Option<&'a str>) -> Work<()> {
        match text {
            Some(text) => self.text(text),
            None => self.skip(1),
        }
    }

    /// Parameters that are empty.
    fn skip(&mut self, parameters: usize) -> Work<()> {
        (0..parameters).try_for_each(|_| self.add(None::<i64>))
    }

    pub(super) fn into_arguments(self) -> SqliteArguments {
        self.arguments
    }

    fn ask(self, text: &Arc<str>) -> Query<'static, Sqlite, SqliteArguments> {
        // It is put together from numbers only.
        sqlx::query_with(AssertSqlSafe(Arc::clone(text)), self.arguments)
    }
}

/// The text for so many charges.
fn fitting(texts: &Texts, count: usize) -> Work<(usize, &Arc<str>)> {
    let fits = texts.iter().find(|(size, _)| count <= *size);
    let too_many = || Error::unexpected("a group of charges is larger than its statements");
    Ok(fits.map(|(size, text)| (*size, text)).ok_or_else(too_many)?)
}

/// The figures of a pool: cap, spent, held, granted.
type Figures = (u64, u64, u64, u64);

/// What [`load`] finds for one charge.
#[derive(Deserialize)]
struct Loaded(usize, u8, u8, Option<(i64, String)>, Option<Figures>, Option<Figures>);

impl Statements {
    /// What the database has for charges, in their order.
    pub(super) async fn load(&self, db: &mut SqliteConnection, asks: &[Ask]) -> Work<Vec<Found>> {
        let (size, text) = fitting(&self.load, asks.len())?;
        let text = text.strip_prefix(BEGIN).unwrap_or(text).into();
        load_as(&text, asked(asks, size)?, db, asks).await
    }

    /// Begins a transaction, and loads what the database has for charges, in their order.
    pub(super) async fn begin_and_load(&self, db: &mut SqliteConnection, asks: &[Ask]) -> Work<Vec<Found>> {
        let (size, text) = fitting(&self.load, asks.len())?;
        load_as(text, asked(asks, size)?, db, asks).await
    }

    /// Stores what a group has changed.
    pub(super) async fn store(&self, db: &mut SqliteConnection, batch: &Batch) -> Work<()> {
        store_moved(db, batch).await?;
        let count = rows_of(batch);
        if count == 0 {
            return Ok(());
        }
        let (size, text) = fitting(&self.store, count)?;
        let text = text.strip_suffix(COMMIT).unwrap_or(text).into();
        values(batch, size)?.ask(&text).execute(db).await?;
        Ok(())
    }

    /// Stores what a group has changed, and commits it. `is_stored` is set while nobody but the commit knows what became
    /// of it.
    pub(super) async fn store_and_commit(
        &self,
        db: &mut SqliteConnection,
        batch: &Batch,
        is_stored: &AtomicBool,
    ) -> Attempt<()> {
        store_moved(db, batch).await.map_err(Failed::of)?;
        let (size, text) = fitting(&self.store, rows_of(batch)).map_err(Failed::of)?;
        let values = values(batch, size).map_err(Failed::of)?;
        // The connection's thread makes all of them, whether somebody still waits for what it tells or not.
        is_stored.store(true, Ordering::Relaxed);
        let mut results = db.fetch_many(values.ask(text));
        // They come in order, and it makes no statement before it has told of the last one.
        for _ in 0..STORED {
            let stored = results.try_next().await.and_then(|result| result.ok_or(sqlx::Error::WorkerCrashed));
            stored.map_err(|error| {
                is_stored.store(false, Ordering::Relaxed);
                Failed::of(error)
            })?;
        }
        let committed = results.try_next().await.and_then(|result| result.ok_or(sqlx::Error::WorkerCrashed));
        committed.map(drop).map_err(Failed::to_commit)
    }
}

async fn load_as(
    text: &Arc<str>,
    values: Values<'_>,
    db: &mut SqliteConnection,
    asks: &[Ask],
) -> Work<Vec<Found>> {
    let row = values.ask(text).fetch_one(db).await?;
    let mut loaded: Vec<Loaded> =
        serde_json::from_str(row.try_get(0)?).map_err(|_| corrupt("a row that a charge needs is damaged"))?;
    loaded.sort_unstable_by_key(|Loaded(place, ..)| *place);
    if loaded.len() != asks.len() {
        return Err(Error::unexpected("charges were asked for and other rows came").into());
    }
    asks.iter().zip(loaded).map(|(ask, loaded)| found(ask, loaded)).collect()
}

/// Stores the windows whose end has moved: hardly ever there is one.
async fn store_moved(db: &mut SqliteConnection, batch: &Batch) -> Work<()> {
    if !batch.moved.is_empty() {
        limits::store(db, &batch.moved, batch.now).await?;
    }
    Ok(())
}

/// How many rows a statement that stores a group needs.
fn rows_of(batch: &Batch) -> usize {
    let lengths = [batch.pools.len(), batch.windows.len(), batch.holds.len(), batch.entries.len()];
    lengths.into_iter().max().unwrap_or_default()
}

/// The values of [`load`] for so many charges.
fn asked(asks: &[Ask], size: usize) -> Work<Values<'_>> {
    let mut values = Values::of(size * ASKED);
    for ask in asks {
        let spend = ask.spend();
        let leg = spend.legs.first();
        let mut buckets = leg.iter().flat_map(|leg| &leg.terms.pools).map(bucket_name);
        values.text(spend.id.as_str())?;
        values.perhaps(leg.map(|leg| leg.wallet.as_str()))?;
        values.add(spend.now.as_millis())?;
        values.perhaps(buckets.next())?;
        values.perhaps(buckets.next())?;
        match ask.charge() {
            None => values.skip(GATE)?,
            Some(charge) => {
                values.text(&charge.take.bucket)?;
                values.add(charge.key_digest.as_slice())?;
                values.text(charge.account.as_str())?;
                values.add(column(charge.version)?)?;
            }
        }
    }
    Ok(values)
}

/// The values of [`store`] for so many charges.
fn values(batch: &Batch, size: usize) -> Work<Values<'_>> {
    let mut values = Values::of(size * (POOL + WINDOW + HOLD + ENTRY));
    for pool in &batch.pools {
        values.text(&pool.wallet)?;
        values.text(&pool.bucket)?;
        for figure in [pool.cap, pool.spent, pool.held, pool.granted] {
            values.add(column(figure)?)?;
        }
    }
    values.skip((size - batch.pools.len()) * POOL)?;
    for window in &batch.windows {
        values.text(&window.bucket)?;
        values.add(window.ends_at)?;
        values.add(window.text())?;
    }
    values.skip((size - batch.windows.len()) * WINDOW)?;
    for hold in &batch.holds {
        values.text(&hold.id)?;
        values.add(hold.expires_at)?;
        values.text(&hold.memo)?;
        values.add(codec::json(&hold.legs)?)?;
    }
    values.skip((size - batch.holds.len()) * HOLD)?;
    for entry in &batch.entries {
        values.add(entry.at)?;
        values.text(&entry.wallet)?;
        values.text(&entry.bucket)?;
        values.add(column(entry.cap)?)?;
        values.text(entry.kind)?;
        values.add(column(entry.amount)?)?;
        values.text(&entry.cause)?;
        values.text(&entry.memo)?;
    }
    // What follows the last one is empty by itself.
    Ok(values)
}

fn found(ask: &Ask, loaded: Loaded) -> Work<Found> {
    let Loaded(_, opens, is_odd, window, first, second) = loaded;
    let damaged = || corrupt("a stored rate limit is damaged");
    let window = match (ask.charge(), window) {
        (Some(charge), Some((ends_at, taken))) => {
            Some(Window::read(&charge.take.bucket, ends_at, &taken).ok_or_else(damaged)?)
        }
        _ => None,
    };
    let leg = ask.spend().legs.first();
    let named =
        leg.iter().flat_map(|leg| leg.terms.pools.iter().map(|pool| (&leg.wallet, bucket_name(pool))));
    let pools = named.zip([first, second]).filter_map(|((wallet, bucket), figures)| {
        let (cap, spent, held, granted) = figures?;
        let (wallet, bucket) = (wallet.as_str().to_owned(), bucket.to_owned());
        Some(PoolRow { wallet, bucket, cap, spent, held, granted, touched: false })
    });
    let opens = opens != 0 || ask.charge().is_none();
    Ok(Found { opens, is_odd: is_odd != 0, window, pools: pools.collect() })
}
