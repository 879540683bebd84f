//! Rate limits in PostgreSQL: windows are read, decided by the rules that all databases share, and stored only where
//! they are still as they were read.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Result, Timestamp,
    limits::{self, RateLimiter, Take, Taken},
};

use super::{
    PostgresStore,
    database::{Change, Database, chance},
    text::{own, read},
};
use crate::{
    error::{Work, corrupt},
    window::{self, Window},
};

/// How long a bucket of which nothing counts any more is remembered: while a clock may still step back to
/// a moment before its end.
const REMEMBERED_MS: i64 = 3_600_000;
/// One of so many takes forgets what ended long ago.
const FORGET_EVERY: u64 = 32;

const WINDOWS: &str = "SELECT bucket, version, ends_at, taken FROM limits WHERE bucket = ANY ($1)";

/// Stores all windows, or ends in an error when one of them is no longer what it was.
const STORE: &str = "WITH stored AS (
        INSERT INTO limits (bucket, version, ends_at, taken)
        SELECT w.bucket, w.version + 1, w.ends_at, w.taken
        FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[]) w (bucket, version, ends_at, taken)
        ON CONFLICT (bucket) DO UPDATE SET version = excluded.version, ends_at = excluded.ends_at,
            taken = excluded.taken
        WHERE limits.version = excluded.version - 1
        RETURNING 1
    )
    SELECT 1 / (CASE WHEN count(*) = cardinality($1::TEXT[]) THEN 1 ELSE 0 END) FROM stored";

const FORGET: &str = "DELETE FROM limits WHERE bucket IN (
        SELECT bucket FROM limits WHERE ends_at < $1 ORDER BY ends_at LIMIT 256
    ) AND ends_at < $1";

/// A request to take.
struct Request {
    takes: Vec<Take>,
    now: Timestamp,
    numbers: Database,
}

impl Change for Request {
    type Outcome = Taken;
    // Two statements, of which only the second one changes anything, and only what the first one has read.
    // Where a connection is lost in the middle, a take may be counted twice, which lets through less, not more.
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Taken> {
        let buckets: Vec<String> = self.takes.iter().map(|take| own(&take.bucket)).collect();
        // In one order for everybody: who waits for a row of another's holds none that the other waits for.
        let rows = sqlx::query(WINDOWS).bind(buckets).fetch_all(&mut *db).await?;
        let (mut windows, versions) = windows(&rows)?;
        let taken = window::take(&mut windows, &self.takes, self.now);
        if matches!(taken, Taken::Allowed { .. }) && self.takes.iter().any(|take| take.cost > 0) {
            windows.sort_by(|a, b| a.bucket.cmp(&b.bucket));
            // Two: the version that is stored is the next one, and must not be what somebody else begins after.
            store(db, &windows, &versions, self.numbers.numbers(self.now.as_millis(), 2)).await?;
        }
        Ok(taken)
    }
}

/// Windows to forget that ended before a moment, in milliseconds.
struct Forget(i64);

impl Change for Forget {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        sqlx::query(FORGET).bind(self.0).execute(db).await?;
        Ok(())
    }
}

/// Takes, and now and then forgets what ended long ago.
pub(super) async fn take(database: &Database, takes: Vec<Take>, now: Timestamp) -> Result<Taken> {
    let taken = database.make(Request { takes, now, numbers: database.clone() }).await?;
    if chance(FORGET_EVERY) == 0 {
        // By itself: what was taken is taken, whatever becomes of this.
        let forget = Forget(now.as_millis().saturating_sub(REMEMBERED_MS));
        if let Err(error) = database.make(forget).await {
            tracing::debug!(%error, "rate limits that ended long ago could not be forgotten");
        }
    }
    Ok(taken)
}

/// The windows in rows of [`WINDOWS`], and the version of each.
fn windows(rows: &[PgRow]) -> Work<(Vec<Window>, HashMap<String, i64>)> {
    let mut windows = Vec::with_capacity(rows.len());
    let mut versions = HashMap::with_capacity(rows.len());
    for row in rows {
        let bucket = read(row, 0)?;
        let window = Window::read(&bucket, row.try_get(2)?, row.try_get(3)?);
        windows.push(window.ok_or_else(|| corrupt("a stored rate limit is damaged"))?);
        versions.insert(bucket, row.try_get(1)?);
    }
    Ok((windows, versions))
}

/// Stores windows that were of these versions. New ones begin after a number that nothing has been given yet: a window
/// that was forgotten in between and has begun again is of another version than whoever had read it knows.
async fn store(
    db: &mut PgConnection,
    windows: &[Window],
    versions: &HashMap<String, i64>,
    fresh: i64,
) -> Work<()> {
    let buckets: Vec<String> = windows.iter().map(|window| own(&window.bucket)).collect();
    let before: Vec<i64> =
        windows.iter().map(|window| versions.get(&window.bucket).copied().unwrap_or(fresh)).collect();
    let ends: Vec<i64> = windows.iter().map(|window| window.ends_at).collect();
    let taken: Vec<String> = windows.iter().map(Window::text).collect();
    sqlx::query(STORE).bind(buckets).bind(before).bind(ends).bind(taken).fetch_one(db).await?;
    Ok(())
}

#[async_trait]
impl RateLimiter for PostgresStore {
    async fn take(&self, takes: Vec<Take>, now: Timestamp) -> Result<Taken> {
        limits::check(&takes)?;
        take(&self.database, takes, now).await
    }
}
