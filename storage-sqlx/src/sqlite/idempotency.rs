//! The idempotency store in SQLite.

use async_trait::async_trait;
use transcript_core::{
    Result,
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredHeader, StoredResponse},
    ids::Holder,
};

use super::SqliteStore;
use crate::{
    codec,
    error::{DbResult, conflict, corrupt},
    sql::{Session, WriteTx, values},
};

const DELETE_EXPIRED_REPLY: &str = "DELETE FROM replies WHERE key = ?1 AND keep_until <= ?2";
/// Deletes a few expired replies of other keys.
const DELETE_EXPIRED: &str = "DELETE FROM replies WHERE key IN (
        SELECT key FROM replies WHERE keep_until <= ?1 ORDER BY keep_until LIMIT 16
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
pub(super) const INDEXED_STATEMENTS: [&str; 7] = [
    DELETE_EXPIRED_REPLY,
    DELETE_EXPIRED,
    FIND_REPLY,
    BEGIN_REPLY,
    COMPLETE_REPLY,
    IS_COMPLETE,
    RELEASE_REPLY,
];

impl WriteTx for IdempotencyAttempt {
    type Outcome = IdempotencyState;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<IdempotencyState> {
        let now = self.now.as_millis();
        db.execute(DELETE_EXPIRED_REPLY, &values![&self.key, now]).await?;
        db.execute(DELETE_EXPIRED, &values![now]).await?;
        if let Some(mut row) = db.row(FIND_REPLY, &values![&self.key]).await? {
            if row.get::<&[u8]>(0)? != self.fingerprint {
                return Ok(IdempotencyState::Mismatch);
            }
            if let Some(status) = row.take::<Option<u16>>(3)? {
                let headers: Vec<(String, String)> = serde_json::from_str(row.get(4)?)
                    .map_err(|_| corrupt("the headers of a stored reply are damaged"))?;
                let headers = headers.into_iter().map(|(name, value)| StoredHeader { name, value }).collect();
                return Ok(IdempotencyState::Completed(StoredResponse {
                    status,
                    headers,
                    body: row.take(5)?,
                }));
            }
            if row.get::<&str>(1)? != self.holder.as_str() && row.get::<i64>(2)? > now {
                return Ok(IdempotencyState::InProgress);
            }
        }
        let (lease_until, keep_until) = (self.lease_until.as_millis(), self.keep_until.as_millis());
        let row = values![&self.key, &self.fingerprint, self.holder.as_str(), lease_until, keep_until];
        db.execute(BEGIN_REPLY, &row).await?;
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

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let headers: Vec<(&str, &str)> =
            self.reply.headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
        let (key, holder) = (&self.key, self.holder.as_str());
        let headers = codec::json(&headers)?;
        let row = values![key, holder, self.reply.status, headers, &self.reply.body];
        if db.execute(COMPLETE_REPLY, &row).await? > 0 {
            return Ok(());
        }
        match db.row(IS_COMPLETE, &values![key, holder]).await? {
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

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        db.execute(RELEASE_REPLY, &values![&self.key, self.holder.as_str()]).await?;
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
