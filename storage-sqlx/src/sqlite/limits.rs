//! Rate limits in SQLite.

use async_trait::async_trait;
use serde::Serialize;
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Result, Timestamp,
    limits::{self, RateLimiter, Take, Taken},
};

use super::{SqliteStore, writer::Change};
use crate::{
    codec,
    error::{Work, corrupt},
    window::{self, Window},
};

/// How long a bucket of which nothing counts any more is remembered: while a clock may still step back to
/// a moment before its end.
const REMEMBERED_MS: i64 = 3_600_000;

const WINDOWS: &str = "SELECT json_group_array(json_object('bucket', bucket, 'ends_at', ends_at,
        'taken', taken))
    FROM limits WHERE bucket IN (SELECT value FROM json_each(?1))";

/// Stores windows, and forgets a few that ended long ago.
const STORE: &str = "
INSERT INTO limits (bucket, ends_at, taken)
    SELECT value ->> 'bucket', value ->> 'ends_at', value ->> 'taken'
    FROM json_each(?1, '$.windows') WHERE true
    ON CONFLICT (bucket) DO UPDATE SET ends_at = excluded.ends_at, taken = excluded.taken;
DELETE FROM limits WHERE bucket IN (
    SELECT bucket FROM limits WHERE ends_at < ?1 ->> '$.forgotten' ORDER BY ends_at LIMIT 16
)";

/// What runs with every request, for the test of the plans.
#[cfg(test)]
pub(super) const HOT: [&str; 2] = [WINDOWS, STORE];

#[derive(Serialize)]
struct Store<'a> {
    windows: &'a [Window],
    forgotten: i64,
}

/// Stores windows as they are, and forgets a few that ended long ago.
pub(super) async fn store(db: &mut SqliteConnection, windows: &[Window], now: i64) -> Work<()> {
    let forgotten = now.saturating_sub(REMEMBERED_MS);
    sqlx::query(STORE).bind(codec::json(&Store { windows, forgotten })?).execute(db).await?;
    Ok(())
}

/// A request to take.
pub(super) struct Request {
    pub(super) takes: Vec<Take>,
    pub(super) now: Timestamp,
}

impl Request {
    fn buckets(&self) -> Result<String> {
        codec::json(&self.takes.iter().map(|take| take.bucket.as_str()).collect::<Vec<_>>())
    }
}

/// The windows in a row of [`WINDOWS`].
fn windows(row: &SqliteRow) -> Work<Vec<Window>> {
    Ok(serde_json::from_str(row.try_get(0)?).map_err(|_| corrupt("a stored rate limit is damaged"))?)
}

impl Change for Request {
    type Outcome = Taken;

    async fn make(&self, db: &mut SqliteConnection) -> Work<Taken> {
        let row = sqlx::query(WINDOWS).bind(self.buckets()?).fetch_one(&mut *db).await?;
        let mut windows = windows(&row)?;
        let taken = window::take(&mut windows, &self.takes, self.now);
        if matches!(taken, Taken::Allowed { .. }) {
            store(db, &windows, self.now.as_millis()).await?;
        }
        Ok(taken)
    }
}

#[async_trait]
impl RateLimiter for SqliteStore {
    async fn take(&self, takes: Vec<Take>, now: Timestamp) -> Result<Taken> {
        limits::check(&takes)?;
        let request = Request { takes, now };
        if request.takes.iter().any(|take| take.cost > 0) {
            return self.database.make(request).await;
        }
        // Whoever takes nothing changes nothing, and need not wait for those who do.
        let buckets = request.buckets()?;
        let ask = || sqlx::query(WINDOWS).bind(buckets.clone());
        let windows = self.database.find(ask, windows).await?;
        Ok(window::take(&mut windows.into_iter().next().unwrap_or_default(), &request.takes, now))
    }
}
