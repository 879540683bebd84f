//! The idempotency store.

use async_trait::async_trait;
use transcript_core::{
    Error, Result, Timestamp,
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredHeader, StoredResponse},
    ids::Holder,
};

use super::{Queues, Store, delete_expired};
use crate::{
    codec,
    error::{DbResult, corrupt},
    sql::{Database, Session, Statement, WriteTx, sql, values},
};

/// One in this many attempts deletes expired replies on a server.
const DELETE_INTERVAL: u64 = 16;
/// Most attempts to begin a request whose key others use at the same time.
const ATTEMPTS_MAX: usize = 8;

/// Deletes some expired replies.
const DELETE_EXPIRED: Statement = sql! {
    sqlite: "DELETE FROM replies WHERE key IN (
            SELECT key FROM replies WHERE keep_until <= $1 ORDER BY keep_until LIMIT 16
        )",
    postgres: "DELETE FROM replies WHERE key IN (
            SELECT key FROM replies WHERE keep_until <= $1 ORDER BY keep_until LIMIT 256
        ) AND keep_until <= $1",
};
/// Stores a new reply row if the key is unused or expired, or if its unfinished request has lost its lease.
const BEGIN_REPLY: &str = "INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, holder = excluded.holder,
        lease_until = excluded.lease_until, keep_until = excluded.keep_until, status = NULL, headers = NULL,
        body = NULL
    WHERE replies.keep_until <= $6 OR replies.status IS NULL AND replies.fingerprint = excluded.fingerprint
        AND (replies.holder = excluded.holder OR replies.lease_until <= $6)";
const FIND_REPLY: &str = "SELECT fingerprint, status, headers, body, lease_until FROM replies WHERE key = $1";
/// Shortens a lease that has not been renewed since it was read.
const SHORTEN_LEASE: &str =
    "UPDATE replies SET lease_until = $2 WHERE key = $1 AND lease_until = $3 AND status IS NULL";
const COMPLETE_REPLY: &str = "UPDATE replies SET status = $3, headers = $4, body = $5
    WHERE key = $1 AND holder = $2 AND status IS NULL";
const IS_COMPLETE: &str = "SELECT 1 FROM replies WHERE key = $1 AND holder = $2 AND status IS NOT NULL";
const RELEASE_REPLY: &str = "DELETE FROM replies WHERE key = $1 AND holder = $2 AND status IS NULL";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 7] = [
    DELETE_EXPIRED.sqlite,
    BEGIN_REPLY,
    FIND_REPLY,
    SHORTEN_LEASE,
    COMPLETE_REPLY,
    IS_COMPLETE,
    RELEASE_REPLY,
];

/// Begins a request with one statement; reads the existing row only if that statement stores nothing.
struct BeginReplyTx(IdempotencyAttempt);

impl WriteTx for BeginReplyTx {
    /// `None` if the key was released between the two statements.
    type Outcome = Option<IdempotencyState>;
    const NEEDS_TRANSACTION: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Option<IdempotencyState>> {
        let Self(IdempotencyAttempt { key, fingerprint, holder, now, lease_until, keep_until }) = self;
        let now = now.as_millis();
        if !S::IS_REMOTE {
            db.execute(DELETE_EXPIRED, &values![now]).await?;
        }
        let (lease_until, keep_until) = (lease_until.as_millis(), keep_until.as_millis());
        let row = values![key, fingerprint, holder.as_str(), lease_until, keep_until, now];
        if db.execute(BEGIN_REPLY, &row).await? > 0 {
            return Ok(Some(IdempotencyState::New));
        }
        let Some(mut row) = db.row(FIND_REPLY, &values![key]).await? else { return Ok(None) };
        if row.get::<&[u8]>(0)? != fingerprint {
            return Ok(Some(IdempotencyState::Mismatch));
        }
        let Some(status) = row.take::<Option<u16>>(1)? else {
            let held = Timestamp::from_millis(row.take(4)?);
            let until = self.0.end_of_other(held);
            if until < held {
                db.execute(SHORTEN_LEASE, &values![key, until.as_millis(), held.as_millis()]).await?;
            }
            return Ok(Some(IdempotencyState::InProgress));
        };
        let headers: Vec<(String, String)> = serde_json::from_str(row.get(2)?)
            .map_err(|_| corrupt("the headers of a stored reply are damaged"))?;
        let headers = headers.into_iter().map(|(name, value)| StoredHeader { name, value }).collect();
        Ok(Some(IdempotencyState::Completed(StoredResponse { status, headers, body: row.take(3)? })))
    }
}

struct CompleteReplyTx {
    key: String,
    holder: Holder,
    reply: StoredResponse,
}

impl WriteTx for CompleteReplyTx {
    type Outcome = ();
    const NEEDS_TRANSACTION: bool = false;

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
            None => Err(Error::conflict(
                "the lease of this request was lost: another caller holds it, or it expired",
            )
            .into()),
        }
    }
}

#[async_trait]
impl<D: Database, Q: Queues> IdempotencyStore for Store<D, Q> {
    async fn begin(&self, attempt: IdempotencyAttempt) -> Result<IdempotencyState> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(state) = self.database.run(BeginReplyTx(attempt.clone())).await? {
                if state == IdempotencyState::New {
                    let now = attempt.now.as_millis();
                    delete_expired(&self.database, DELETE_INTERVAL, DELETE_EXPIRED, now).await;
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
        self.database.execute(RELEASE_REPLY, &values![key, holder.as_str()]).await.map(drop)
    }
}
