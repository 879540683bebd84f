//! Rate limits.
//!
//! Windows are loaded, changed by the rules shared with other stores, and stored. In a file each window has its own
//! statements, within a transaction. On a server one statement loads all and another stores all, unless one of them has
//! changed since. Then the request runs again, in a transaction that locks the windows first: concurrent requests of a
//! busy window wait in order instead of starting again and again.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    limits::{
        self, LimitOutcome, LimitRequest, RateLimiter,
        rules::{self, SlidingWindow},
    },
};

use super::{Queues, Store, delete_expired};
use crate::{
    error::DbResult,
    sliding_window::{decode, encode, stored_end},
    sql::{Database, Row, Session, Statement, WriteTx, sql, values},
};

/// How long an expired bucket is kept: a clock may step back to a time before its end.
const RETENTION_MS: i64 = 3_600_000;
/// One in this many requests deletes windows that ended long ago on a server.
const DELETE_INTERVAL: u64 = 32;

const LOAD_WINDOW: &str = "SELECT bucket, ends_at, taken FROM limits WHERE bucket = $1";
const PUT_WINDOW: &str = "INSERT INTO limits (bucket, ends_at, taken) VALUES ($1, $2, $3)
    ON CONFLICT (bucket) DO UPDATE SET ends_at = excluded.ends_at, taken = excluded.taken";
/// Stores a window whose end is unchanged, without a write to the index of ends.
const UPDATE_WINDOW: &str = "UPDATE limits SET taken = $2 WHERE bucket = $1";

/// For a server.
const LOAD_WINDOWS: &str = "SELECT bucket, ends_at, taken, version FROM limits WHERE bucket = ANY ($1)";
/// For a server. Stores all windows, or ends with an error if one of them has changed.
///
/// `$2` has the loaded versions, and `$5` is the new one of all windows.
const STORE_WINDOWS: &str = "WITH stored AS (
        INSERT INTO limits (bucket, version, ends_at, taken)
        SELECT w.bucket, $5, w.ends_at, w.taken
        FROM unnest($1::TEXT[], $3::BIGINT[], $4::TEXT[]) w (bucket, ends_at, taken)
        ON CONFLICT (bucket) DO UPDATE SET version = excluded.version, ends_at = excluded.ends_at,
            taken = excluded.taken
        WHERE limits.version = ($2::BIGINT[])[array_position($1::TEXT[], limits.bucket)]
        RETURNING 1
    )
    SELECT 1 / (CASE WHEN count(*) = cardinality($1::TEXT[]) THEN 1 ELSE 0 END) FROM stored";

/// For a server. Each statement must see what was committed before it, above all while it waited for a lock.
pub(crate) const READ_COMMITTED: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
/// For a server. Locks windows in one global order.
pub(crate) const LOCK_WINDOWS: &str =
    "SELECT 1 FROM limits WHERE bucket = ANY ($1) ORDER BY bucket FOR UPDATE";

/// The version of a window without a row, which no row has.
pub(crate) const NO_VERSION: i64 = -1;

/// Deletes some windows that ended long ago.
const DELETE_EXPIRED: Statement = sql! {
    sqlite: "DELETE FROM limits WHERE bucket IN (
            SELECT bucket FROM limits WHERE ends_at < $1 ORDER BY ends_at LIMIT 16
        )",
    postgres: "DELETE FROM limits WHERE bucket IN (
            SELECT bucket FROM limits WHERE ends_at < $1 ORDER BY ends_at LIMIT 256
        ) AND ends_at < $1",
};

/// Statements of every request, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 4] =
    [LOAD_WINDOW, PUT_WINDOW, UPDATE_WINDOW, DELETE_EXPIRED.sqlite];

/// Counts a request in its windows.
pub(crate) async fn acquire<S: Session>(
    db: &mut S,
    requests: &[LimitRequest],
    now: Timestamp,
) -> DbResult<LimitOutcome> {
    let mut rows = load(db, requests).await?;
    let mut windows = rows.iter_mut().map(window).collect::<DbResult<Vec<_>>>()?;
    let outcome = rules::take(&mut windows, requests, now);
    if matches!(outcome, LimitOutcome::Allowed { .. }) && requests.iter().any(|request| request.cost > 0) {
        // Windows without a row follow those that were loaded.
        if S::IS_REMOTE {
            let versions = rows.iter().map(|row| row.get(3)).collect::<DbResult<_>>()?;
            store_all(db, windows, versions, now).await?;
        } else {
            let ends = rows.iter().map(|row| row.get(1)).collect::<DbResult<Vec<i64>>>()?;
            store_each(db, &windows, &ends, now).await?;
        }
    }
    Ok(outcome)
}

/// The rows of the requested windows.
async fn load<S: Session>(db: &mut S, requests: &[LimitRequest]) -> DbResult<Vec<Row>> {
    if S::IS_REMOTE {
        return db.rows(LOAD_WINDOWS, &values![buckets(requests)]).await;
    }
    let mut rows = Vec::with_capacity(requests.len());
    for request in requests {
        rows.extend(db.row(LOAD_WINDOW, &values![&request.bucket]).await?);
    }
    Ok(rows)
}

fn buckets(requests: &[LimitRequest]) -> Vec<&str> {
    requests.iter().map(|request| request.bucket.as_str()).collect()
}

/// Stores the windows of a file, of which the first had these ends.
async fn store_each<S: Session>(
    db: &mut S,
    windows: &[SlidingWindow],
    ends: &[i64],
    now: Timestamp,
) -> DbResult<()> {
    let mut has_moved = false;
    for (index, window) in windows.iter().enumerate() {
        if ends.get(index) == Some(&window.ends_at) {
            db.execute(UPDATE_WINDOW, &values![&window.bucket, encode(window)]).await?;
        } else {
            db.execute(PUT_WINDOW, &values![&window.bucket, stored_end(window), encode(window)]).await?;
            has_moved = true;
        }
    }
    if has_moved {
        db.execute(DELETE_EXPIRED, &values![delete_before(now)]).await?;
    }
    Ok(())
}

/// Stores the windows of a server, of which the first had these versions.
///
/// Each change gives a window an unused number as version. A count of changes could return to a number that a slow
/// caller knows: if its window was created, or deleted and created again, since it was loaded.
async fn store_all<S: Session>(
    db: &mut S,
    windows: Vec<SlidingWindow>,
    versions: Vec<i64>,
    now: Timestamp,
) -> DbResult<()> {
    let new_version = db.next_number(now).unwrap_or_default();
    let versions = versions.into_iter().chain(std::iter::repeat(NO_VERSION));
    let mut windows: Vec<_> = windows.into_iter().zip(versions).collect();
    // All callers store in one order, which avoids deadlocks.
    windows.sort_by(|(a, _), (b, _)| a.bucket.cmp(&b.bucket));
    let buckets: Vec<&str> = windows.iter().map(|(window, _)| window.bucket.as_str()).collect();
    let versions: Vec<i64> = windows.iter().map(|(_, version)| *version).collect();
    let ends: Vec<i64> = windows.iter().map(|(window, _)| stored_end(window)).collect();
    let taken: Vec<String> = windows.iter().map(|(window, _)| encode(window)).collect();
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    db.only_row(STORE_WINDOWS, &values![buckets, versions, ends, taken, new_version]).await?;
    Ok(())
}

/// Decodes the window in the first columns of a row; only its bucket is taken.
fn window(row: &mut Row) -> DbResult<SlidingWindow> {
    let bucket: String = row.take(0)?;
    Ok(decode(bucket, row.get(1)?, row.get(2)?)?)
}

/// Windows that ended before this time, in milliseconds, are deleted.
fn delete_before(now: Timestamp) -> i64 {
    now.as_millis().saturating_sub(RETENTION_MS)
}

/// A request and its time.
struct CountedRequest {
    windows: Vec<LimitRequest>,
    now: Timestamp,
}

/// A write that counts a request in its windows. `LOCKS`: whether they are locked before they are read.
struct AcquireLimitTx<const LOCKS: bool>(Arc<CountedRequest>);

impl<const LOCKS: bool> WriteTx for AcquireLimitTx<LOCKS> {
    type Outcome = LimitOutcome;
    // Without locks: two statements, of which only the second changes anything, and only what the first one has read.
    // After a lost connection a request may be counted twice, which permits less, not more.
    const NEEDS_TRANSACTION: bool = LOCKS;
    const HAS_FALLBACK: bool = !LOCKS;

    #[cfg(feature = "sqlite")]
    fn needs_sync(&self, outcome: &LimitOutcome) -> bool {
        !matches!(outcome, LimitOutcome::Limited { .. })
    }

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<LimitOutcome> {
        let CountedRequest { windows, now } = &*self.0;
        if LOCKS {
            db.execute(READ_COMMITTED, &values![]).await?;
            db.execute(LOCK_WINDOWS, &values![buckets(windows)]).await?;
        }
        acquire(db, windows, *now).await
    }
}

/// Counts a request, and sometimes deletes windows that ended long ago.
pub(crate) async fn take<D: Database>(
    database: &D,
    requests: Vec<LimitRequest>,
    now: Timestamp,
) -> Result<LimitOutcome> {
    let request = Arc::new(CountedRequest { windows: requests, now });
    let write = AcquireLimitTx::<false>(Arc::clone(&request));
    let outcome = database.run_or_lock(write, AcquireLimitTx::<true>(request)).await?;
    delete_expired(database, DELETE_INTERVAL, DELETE_EXPIRED, delete_before(now)).await;
    Ok(outcome)
}

#[async_trait]
impl<D: Database, Q: Queues> RateLimiter for Store<D, Q> {
    async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        limits::check(&requests)?;
        if let [LimitRequest { bucket, cost: 0, .. }] = &requests[..] {
            // A request without cost changes nothing and need not wait for writes.
            let found = self.database.find_first(LOAD_WINDOW, &values![bucket], window).await?;
            return Ok(rules::take(&mut Vec::from_iter(found), &requests, now));
        }
        take(&self.database, requests, now).await
    }
}
