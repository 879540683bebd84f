//! Rate limits in PostgreSQL.
//!
//! Windows are read, decided by the rules shared with other databases, and stored only if they did not change since.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Result, Timestamp,
    limits::{
        self, LimitOutcome, LimitRequest, RateLimiter,
        rules::{self, SlidingWindow},
    },
};

use super::{
    PostgresStore,
    database::{PgDatabase, WriteTx, random_below},
    text::{encode, read},
};
use crate::{error::DbResult, sliding_window};

/// How long an expired bucket is kept: a clock may step back to a time before its end.
const RETENTION_MS: i64 = 3_600_000;
/// One in this many requests deletes windows that ended long ago.
const DELETE_EVERY: u64 = 32;

const LOAD_WINDOWS: &str = "SELECT bucket, version, ends_at, taken FROM limits WHERE bucket = ANY ($1)";

/// Stores all windows, or ends with an error if one of them has changed.
const STORE_WINDOWS: &str = "WITH stored AS (
        INSERT INTO limits (bucket, version, ends_at, taken)
        SELECT w.bucket, w.version + 1, w.ends_at, w.taken
        FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[]) w (bucket, version, ends_at, taken)
        ON CONFLICT (bucket) DO UPDATE SET version = excluded.version, ends_at = excluded.ends_at,
            taken = excluded.taken
        WHERE limits.version = excluded.version - 1
        RETURNING 1
    )
    SELECT 1 / (CASE WHEN count(*) = cardinality($1::TEXT[]) THEN 1 ELSE 0 END) FROM stored";

const DELETE_EXPIRED: &str = "DELETE FROM limits WHERE bucket IN (
        SELECT bucket FROM limits WHERE ends_at < $1 ORDER BY ends_at LIMIT 256
    ) AND ends_at < $1";

/// A write that counts a request in its windows.
struct AcquireLimitTx {
    requests: Vec<LimitRequest>,
    now: Timestamp,
    numbers: PgDatabase,
}

impl WriteTx for AcquireLimitTx {
    type Outcome = LimitOutcome;
    // Two statements, of which only the second changes anything, and only what the first one has read. After a lost
    // connection a request may be counted twice, which permits less, not more.
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<LimitOutcome> {
        let buckets: Vec<String> = self.requests.iter().map(|take| encode(&take.bucket)).collect();
        // Stored in one order by all callers below, which avoids deadlocks.
        let rows = sqlx::query(LOAD_WINDOWS).bind(buckets).fetch_all(&mut *db).await?;
        let (mut windows, versions) = windows(&rows)?;
        let taken = rules::take(&mut windows, &self.requests, self.now);
        if matches!(taken, LimitOutcome::Allowed { .. }) && self.requests.iter().any(|take| take.cost > 0) {
            windows.sort_by(|a, b| a.bucket.cmp(&b.bucket));
            // Two numbers: the stored version is the next one, and must differ from the start of a concurrent window.
            store(db, &windows, &versions, self.numbers.numbers(self.now.as_millis(), 2)).await?;
        }
        Ok(taken)
    }
}

/// Deletes windows that ended before this time, in milliseconds.
struct DeleteWindowsTx(i64);

impl WriteTx for DeleteWindowsTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        sqlx::query(DELETE_EXPIRED).bind(self.0).execute(db).await?;
        Ok(())
    }
}

/// Counts a request, and sometimes deletes windows that ended long ago.
pub(super) async fn take(
    database: &PgDatabase,
    requests: Vec<LimitRequest>,
    now: Timestamp,
) -> Result<LimitOutcome> {
    let taken = database.run(AcquireLimitTx { requests, now, numbers: database.clone() }).await?;
    if random_below(DELETE_EVERY) == 0 {
        // Separate: the request stays counted even if this fails.
        let delete = DeleteWindowsTx(now.as_millis().saturating_sub(RETENTION_MS));
        if let Err(error) = database.run(delete).await {
            tracing::debug!(%error, "expired rate limit delete failed");
        }
    }
    Ok(taken)
}

/// Decodes the windows in rows of [`WINDOWS`], with their versions.
fn windows(rows: &[PgRow]) -> DbResult<(Vec<SlidingWindow>, HashMap<String, i64>)> {
    let mut windows = Vec::with_capacity(rows.len());
    let mut versions = HashMap::with_capacity(rows.len());
    for row in rows {
        let bucket = read(row, 0)?;
        windows.push(sliding_window::decode(&bucket, row.try_get(2)?, row.try_get(3)?)?);
        versions.insert(bucket, row.try_get(1)?);
    }
    Ok((windows, versions))
}

/// Stores windows that had these versions.
///
/// New ones start after an unused number: a window that was deleted and created again since has another version
/// than the one read before.
async fn store(
    db: &mut PgConnection,
    windows: &[SlidingWindow],
    versions: &HashMap<String, i64>,
    fresh: i64,
) -> DbResult<()> {
    let buckets: Vec<String> = windows.iter().map(|window| encode(&window.bucket)).collect();
    let before: Vec<i64> =
        windows.iter().map(|window| versions.get(&window.bucket).copied().unwrap_or(fresh)).collect();
    let ends: Vec<i64> = windows.iter().map(sliding_window::stored_end).collect();
    let taken: Vec<String> = windows.iter().map(sliding_window::encode).collect();
    sqlx::query(STORE_WINDOWS).bind(buckets).bind(before).bind(ends).bind(taken).fetch_one(db).await?;
    Ok(())
}

#[async_trait]
impl RateLimiter for PostgresStore {
    async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        limits::check(&requests)?;
        take(&self.database, requests, now).await
    }
}
