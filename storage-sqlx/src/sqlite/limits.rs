//! Rate limits in SQLite.

use async_trait::async_trait;
use serde::Serialize;
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Result, Timestamp,
    limits::{
        self, LimitOutcome, LimitRequest, RateLimiter,
        rules::{self, SlidingWindow},
    },
};

use super::{SqliteStore, writer::WriteTx};
use crate::{
    codec,
    error::{DbResult, corrupt},
    sliding_window::StoredWindow,
};

/// How long an expired bucket is kept: a clock may step back to a time before its end.
const RETENTION_MS: i64 = 3_600_000;

const LOAD_WINDOWS: &str = "SELECT json_group_array(json_object('bucket', bucket, 'ends_at', ends_at,
        'taken', taken))
    FROM limits WHERE bucket IN (SELECT value FROM json_each(?1))";

/// Stores windows, and deletes a few that ended long ago.
const STORE_WINDOWS: &str = "
INSERT INTO limits (bucket, ends_at, taken)
    SELECT value ->> 'bucket', value ->> 'ends_at', value ->> 'taken'
    FROM json_each(?1, '$.windows') WHERE true
    ON CONFLICT (bucket) DO UPDATE SET ends_at = excluded.ends_at, taken = excluded.taken;
DELETE FROM limits WHERE bucket IN (
    SELECT bucket FROM limits WHERE ends_at < ?1 ->> '$.forgotten' ORDER BY ends_at LIMIT 16
)";

/// Statements of every request, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 2] = [LOAD_WINDOWS, STORE_WINDOWS];

#[derive(Serialize)]
struct StoreWindowTx {
    windows: Vec<StoredWindow>,
    forgotten: i64,
}

/// Stores windows as they are, and deletes a few that ended long ago.
pub(super) async fn store(db: &mut SqliteConnection, windows: &[SlidingWindow], now: i64) -> DbResult<()> {
    let forgotten = now.saturating_sub(RETENTION_MS);
    let windows = windows.iter().map(StoredWindow::new).collect();
    sqlx::query(STORE_WINDOWS).bind(codec::json(&StoreWindowTx { windows, forgotten })?).execute(db).await?;
    Ok(())
}

/// A write that counts a request in its windows.
pub(super) struct AcquireLimitTx {
    pub(super) requests: Vec<LimitRequest>,
    pub(super) now: Timestamp,
}

impl AcquireLimitTx {
    fn buckets(&self) -> Result<String> {
        codec::json(&self.requests.iter().map(|take| take.bucket.as_str()).collect::<Vec<_>>())
    }
}

/// Decodes the windows in a row of [`WINDOWS`].
fn windows(row: &SqliteRow) -> DbResult<Vec<SlidingWindow>> {
    let stored: Vec<StoredWindow> =
        serde_json::from_str(row.try_get(0)?).map_err(|_| corrupt("a stored rate limit is damaged"))?;
    Ok(stored.iter().map(StoredWindow::decode).collect::<Result<_>>()?)
}

impl WriteTx for AcquireLimitTx {
    type Outcome = LimitOutcome;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<LimitOutcome> {
        let row = sqlx::query(LOAD_WINDOWS).bind(self.buckets()?).fetch_one(&mut *db).await?;
        let mut windows = windows(&row)?;
        let taken = rules::take(&mut windows, &self.requests, self.now);
        if matches!(taken, LimitOutcome::Allowed { .. }) {
            store(db, &windows, self.now.as_millis()).await?;
        }
        Ok(taken)
    }
}

#[async_trait]
impl RateLimiter for SqliteStore {
    async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        limits::check(&requests)?;
        let request = AcquireLimitTx { requests, now };
        if request.requests.iter().any(|take| take.cost > 0) {
            return self.database.run(request).await;
        }
        // A request without cost changes nothing and need not wait for writes.
        let buckets = request.buckets()?;
        let query = || sqlx::query(LOAD_WINDOWS).bind(buckets.clone());
        let windows = self.database.find(query, windows).await?;
        Ok(rules::take(&mut windows.into_iter().next().unwrap_or_default(), &request.requests, now))
    }
}
