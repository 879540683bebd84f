//! Rate limits in SQLite.

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    limits::{
        self, LimitOutcome, LimitRequest, RateLimiter,
        rules::{self, SlidingWindow},
    },
};

use super::SqliteStore;
use crate::{
    error::{DbResult, corrupt},
    sliding_window::{StoredWindow, decode, encode, stored_end},
    sql::{Row, Session, WriteTx, values},
};

/// How long an expired bucket is kept: a clock may step back to a time before its end.
const RETENTION_MS: i64 = 3_600_000;

const LOAD_WINDOWS: &str = "SELECT json_group_array(json_object('bucket', bucket, 'ends_at', ends_at,
        'taken', taken))
    FROM limits WHERE bucket IN (SELECT value FROM json_each(?1))";

const LOAD_WINDOW: &str = "SELECT ends_at, taken FROM limits WHERE bucket = ?1";
const PUT_WINDOW: &str = "INSERT INTO limits (bucket, ends_at, taken) VALUES (?1, ?2, ?3)
    ON CONFLICT (bucket) DO UPDATE SET ends_at = excluded.ends_at, taken = excluded.taken";
/// Stores a window whose end is unchanged, without a write to the index of ends.
const UPDATE_WINDOW: &str = "UPDATE limits SET taken = ?2 WHERE bucket = ?1";
/// Deletes a few windows that ended long ago.
const DELETE_EXPIRED: &str = "DELETE FROM limits WHERE bucket IN (
    SELECT bucket FROM limits WHERE ends_at < ?1 ORDER BY ends_at LIMIT 16
)";

/// Statements of every request, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 5] =
    [LOAD_WINDOWS, LOAD_WINDOW, PUT_WINDOW, UPDATE_WINDOW, DELETE_EXPIRED];

/// Counts a request in its windows.
pub(super) async fn acquire<S: Session>(
    db: &mut S,
    requests: &[LimitRequest],
    now: Timestamp,
) -> DbResult<LimitOutcome> {
    let mut windows: Vec<SlidingWindow> = Vec::with_capacity(requests.len());
    for LimitRequest { bucket, .. } in requests {
        if !windows.iter().any(|window| window.bucket == *bucket)
            && let Some(row) = db.row(LOAD_WINDOW, &values![bucket]).await?
        {
            windows.push(decode(bucket, row.get(0)?, row.get(1)?)?);
        }
    }
    let ends: Vec<i64> = windows.iter().map(|window| window.ends_at).collect();
    let outcome = rules::take(&mut windows, requests, now);
    if matches!(outcome, LimitOutcome::Allowed { .. }) {
        // Windows without a row follow those that were loaded.
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
            db.execute(DELETE_EXPIRED, &values![now.as_millis().saturating_sub(RETENTION_MS)]).await?;
        }
    }
    Ok(outcome)
}

/// A write that counts a request in its windows.
struct AcquireLimitTx {
    requests: Vec<LimitRequest>,
    now: Timestamp,
}

impl WriteTx for AcquireLimitTx {
    type Outcome = LimitOutcome;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<LimitOutcome> {
        acquire(db, &self.requests, self.now).await
    }
}

/// Decodes the windows in a row of [`LOAD_WINDOWS`].
fn windows(row: &mut Row) -> DbResult<Vec<SlidingWindow>> {
    let stored: Vec<StoredWindow> =
        serde_json::from_str(row.get(0)?).map_err(|_| corrupt("a stored rate limit is damaged"))?;
    Ok(stored.iter().map(StoredWindow::decode).collect::<Result<_>>()?)
}

#[async_trait]
impl RateLimiter for SqliteStore {
    async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        limits::check(&requests)?;
        if requests.iter().any(|request| request.cost > 0) {
            return self.database.run(AcquireLimitTx { requests, now }).await;
        }
        // A request without cost changes nothing and need not wait for writes.
        let buckets: Vec<&str> = requests.iter().map(|request| request.bucket.as_str()).collect();
        let windows = self.database.find_first(LOAD_WINDOWS, &values![buckets], windows).await?;
        Ok(rules::take(&mut windows.unwrap_or_default(), &requests, now))
    }
}
