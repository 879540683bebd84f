//! The idempotency store in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row};
use transcript_core::{
    Error, Result,
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredHeader, StoredResponse},
    ids::Holder,
};

use super::{
    PostgresStore,
    database::{WriteTx, random_below},
    text::encode,
};
use crate::{
    codec,
    error::{DbResult, conflict, corrupt},
};

/// One in this many attempts deletes expired replies.
const DELETE_EVERY: u64 = 16;

const DELETE_EXPIRED: &str = "DELETE FROM replies WHERE key IN (
        SELECT key FROM replies WHERE keep_until <= $1 ORDER BY keep_until LIMIT 256
    ) AND keep_until <= $1";
/// Stores a new reply row if the key is unused or expired, or if its unfinished request has lost its lease.
const BEGIN_REPLY: &str = "INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, holder = excluded.holder,
        lease_until = excluded.lease_until, keep_until = excluded.keep_until, status = NULL, headers = NULL,
        body = NULL
    WHERE replies.keep_until <= $6 OR replies.status IS NULL AND replies.fingerprint = excluded.fingerprint
        AND (replies.holder = excluded.holder OR replies.lease_until <= $6)";
const FIND_REPLY: &str = "SELECT fingerprint, status, headers, body FROM replies WHERE key = $1";
const COMPLETE_REPLY: &str = "UPDATE replies SET status = $3, headers = $4, body = $5
    WHERE key = $1 AND holder = $2 AND status IS NULL";
const IS_COMPLETE: &str = "SELECT 1 FROM replies WHERE key = $1 AND holder = $2 AND status IS NOT NULL";
const RELEASE_REPLY: &str = "DELETE FROM replies WHERE key = $1 AND holder = $2 AND status IS NULL";

/// Begins a request with one statement; reads the existing row only if that statement stores nothing.
struct BeginReplyTx(IdempotencyAttempt);

impl WriteTx for BeginReplyTx {
    /// `None` if the key was released between the two statements.
    type Outcome = Option<IdempotencyState>;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Option<IdempotencyState>> {
        let Self(attempt) = self;
        let (key, now) = (encode(&attempt.key), attempt.now.as_millis());
        let begin = sqlx::query(BEGIN_REPLY).bind(key.clone()).bind(attempt.fingerprint.clone());
        let begin = begin.bind(encode(attempt.holder.as_str())).bind(attempt.lease_until.as_millis());
        let begin = begin.bind(attempt.keep_until.as_millis()).bind(now);
        if begin.execute(&mut *db).await?.rows_affected() > 0 {
            return Ok(Some(IdempotencyState::New));
        }
        let Some(row) = sqlx::query(FIND_REPLY).bind(key).fetch_optional(db).await? else {
            return Ok(None);
        };
        if row.try_get::<&[u8], _>(0)? != attempt.fingerprint {
            return Ok(Some(IdempotencyState::Mismatch));
        }
        let Some(status) = row.try_get::<Option<i64>, _>(1)? else {
            return Ok(Some(IdempotencyState::InProgress));
        };
        let headers: Vec<(String, String)> = serde_json::from_str(row.try_get(2)?)
            .map_err(|_| corrupt("the headers of a stored reply are damaged"))?;
        let headers = headers.into_iter().map(|(name, value)| StoredHeader { name, value }).collect();
        let status = u16::try_from(status).map_err(|_| corrupt("the status of a stored reply is invalid"))?;
        Ok(Some(IdempotencyState::Completed(StoredResponse { status, headers, body: row.try_get(3)? })))
    }
}

/// Deletes replies that expired before this time, in milliseconds.
struct DeleteRepliesTx(i64);

impl WriteTx for DeleteRepliesTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        sqlx::query(DELETE_EXPIRED).bind(self.0).execute(db).await?;
        Ok(())
    }
}

struct CompleteReplyTx {
    key: String,
    holder: Holder,
    reply: StoredResponse,
}

impl WriteTx for CompleteReplyTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let headers: Vec<(&str, &str)> =
            self.reply.headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
        let (key, holder) = (encode(&self.key), encode(self.holder.as_str()));
        let complete = sqlx::query(COMPLETE_REPLY).bind(key.clone()).bind(holder.clone());
        let complete = complete.bind(i64::from(self.reply.status)).bind(codec::json(&headers)?);
        if complete.bind(self.reply.body.clone()).execute(&mut *db).await?.rows_affected() > 0 {
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
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let release = sqlx::query(RELEASE_REPLY).bind(encode(&self.key)).bind(encode(self.holder.as_str()));
        release.execute(db).await?;
        Ok(())
    }
}

#[async_trait]
impl IdempotencyStore for PostgresStore {
    async fn begin(&self, attempt: IdempotencyAttempt) -> Result<IdempotencyState> {
        for _ in 0..8 {
            if let Some(state) = self.database.run(BeginReplyTx(attempt.clone())).await? {
                if state == IdempotencyState::New && random_below(DELETE_EVERY) == 0 {
                    // Separate: the attempt has begun even if this fails.
                    if let Err(error) = self.database.run(DeleteRepliesTx(attempt.now.as_millis())).await {
                        tracing::debug!(%error, "expired reply delete failed");
                    }
                }
                return Ok(state);
            }
        }
        Err(Error::unavailable("too many concurrent attempts of the same request: retry in a few seconds"))
    }

    async fn complete(&self, key: &str, holder: &Holder, reply: StoredResponse) -> Result<()> {
        self.database.run(CompleteReplyTx { key: key.to_owned(), holder: holder.clone(), reply }).await
    }

    async fn release(&self, key: &str, holder: &Holder) -> Result<()> {
        self.database.run(ReleaseReplyTx { key: key.to_owned(), holder: holder.clone() }).await
    }
}
