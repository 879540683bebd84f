//! The idempotency store in SQLite.

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection};
use transcript_core::{
    Result,
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredHeader, StoredResponse},
    ids::Holder,
};

use super::{SqliteStore, writer::WriteTx};
use crate::{
    codec,
    error::{DbResult, conflict, corrupt},
};

/// Deletes expired replies: of this key, and a few others.
const DELETE_EXPIRED: &str = "DELETE FROM replies WHERE key = ?1 AND keep_until <= ?2;
    DELETE FROM replies WHERE key IN (
        SELECT key FROM replies WHERE keep_until <= ?2 ORDER BY keep_until LIMIT 16
    )";
const FIND_REPLY: &str =
    "SELECT fingerprint, holder, lease_until, status, headers, body FROM replies WHERE key = ?1";
const BEGIN_REPLY: &str = "INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until)
    VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until,
        keep_until = excluded.keep_until";
const COMPLETE_REPLY: &str = "UPDATE replies SET status = ?3, headers = ?4, body = ?5
    WHERE key = ?1 AND holder = ?2 AND status IS NULL";
const IS_COMPLETE: &str = "SELECT 1 FROM replies WHERE key = ?1 AND holder = ?2 AND status IS NOT NULL";
const RELEASE_REPLY: &str = "DELETE FROM replies WHERE key = ?1 AND holder = ?2 AND status IS NULL";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 6] =
    [DELETE_EXPIRED, FIND_REPLY, BEGIN_REPLY, COMPLETE_REPLY, IS_COMPLETE, RELEASE_REPLY];

impl WriteTx for IdempotencyAttempt {
    type Outcome = IdempotencyState;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<IdempotencyState> {
        let now = self.now.as_millis();
        sqlx::query(DELETE_EXPIRED).bind(self.key.clone()).bind(now).execute(&mut *db).await?;
        if let Some(row) = sqlx::query(FIND_REPLY).bind(self.key.clone()).fetch_optional(&mut *db).await? {
            if row.try_get::<&[u8], _>(0)? != self.fingerprint {
                return Ok(IdempotencyState::Mismatch);
            }
            if let Some(status) = row.try_get::<Option<u16>, _>(3)? {
                let headers: Vec<(String, String)> = serde_json::from_str(row.try_get(4)?)
                    .map_err(|_| corrupt("the headers of a stored reply are damaged"))?;
                let headers = headers.into_iter().map(|(name, value)| StoredHeader { name, value }).collect();
                return Ok(IdempotencyState::Completed(StoredResponse {
                    status,
                    headers,
                    body: row.try_get(5)?,
                }));
            }
            if row.try_get::<&str, _>(1)? != self.holder.as_str() && row.try_get::<i64, _>(2)? > now {
                return Ok(IdempotencyState::InProgress);
            }
        }
        let begin = sqlx::query(BEGIN_REPLY).bind(self.key.clone()).bind(self.fingerprint.clone());
        let begin = begin.bind(self.holder.as_str().to_owned()).bind(self.lease_until.as_millis());
        begin.bind(self.keep_until.as_millis()).execute(db).await?;
        Ok(IdempotencyState::New)
    }
}

struct CompleteReplyTx {
    key: String,
    holder: Holder,
    reply: StoredResponse,
}

impl WriteTx for CompleteReplyTx {
    type Outcome = ();

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<()> {
        let headers: Vec<(&str, &str)> =
            self.reply.headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
        let (key, holder) = (self.key.clone(), self.holder.as_str().to_owned());
        let complete = sqlx::query(COMPLETE_REPLY).bind(key.clone()).bind(holder.clone());
        let complete =
            complete.bind(self.reply.status).bind(codec::json(&headers)?).bind(self.reply.body.clone());
        if complete.execute(&mut *db).await?.rows_affected() > 0 {
            return Ok(());
        }
        match sqlx::query(IS_COMPLETE).bind(key).bind(holder).fetch_optional(db).await? {
            Some(_) => Ok(()),
            None => {
                Err(conflict("the lease of this request was lost: another caller holds it, or it expired")
                    .into())
            }
        }
    }
}

struct ReleaseReplyTx {
    key: String,
    holder: Holder,
}

impl WriteTx for ReleaseReplyTx {
    type Outcome = ();

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<()> {
        let release = sqlx::query(RELEASE_REPLY).bind(self.key.clone());
        release.bind(self.holder.as_str().to_owned()).execute(db).await?;
        Ok(())
    }
}

#[async_trait]
impl IdempotencyStore for SqliteStore {
    async fn begin(&self, attempt: IdempotencyAttempt) -> Result<IdempotencyState> {
        self.database.run(attempt).await
    }

    async fn complete(&self, key: &str, holder: &Holder, reply: StoredResponse) -> Result<()> {
        self.database.run(CompleteReplyTx { key: key.to_owned(), holder: holder.clone(), reply }).await
    }

    async fn release(&self, key: &str, holder: &Holder) -> Result<()> {
        self.database.run(ReleaseReplyTx { key: key.to_owned(), holder: holder.clone() }).await
    }
}
