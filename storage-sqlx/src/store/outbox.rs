//! The outbox.

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{MailIntent, Outbox, RETRY_PAUSE_MAX, WAITING_MAX},
    time::LEASE_MAX,
};

use super::{Queues, Store, delete_expired};
use crate::{
    codec::number,
    error::DbResult,
    sql::{Database, Row, Session, Statement, WriteTx, sql, values},
};

/// How long the id of a finished mail is kept, so that it is not queued again: a week.
const RETENTION_MS: i64 = 604_800_000;
/// Most mails in one lease.
const DUE_MAX: u32 = 1_000;
/// One in this many queued mails deletes old ones on a server.
const DELETE_INTERVAL: u64 = 8;

const QUEUE_MAIL: &str = "INSERT INTO outbox (id, kind, recipient, attempts, due_at, seq, language)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
/// Mails that are due after `$2`, because a clock was ahead, are due at `$1`.
const LIMIT_DUE: &str = "UPDATE outbox SET due_at = $1 WHERE due_at > $2";
/// A lease does not store its holder: its end is the time when the mail is due again.
///
/// On PostgreSQL it skips mails that another server is leasing at the same time. On SQLite [`LEASE_MAIL`] follows.
const TAKE_DUE_MAIL: Statement = sql! {
    sqlite: "SELECT id, kind, recipient, attempts + 1, language FROM outbox
        WHERE due_at <= $1 ORDER BY due_at, seq LIMIT $3",
    postgres: "WITH due AS (
            SELECT id, due_at, seq FROM outbox WHERE due_at <= $1 ORDER BY due_at, seq LIMIT $3
            FOR UPDATE SKIP LOCKED
        ), leased AS (
            UPDATE outbox o SET attempts = o.attempts + 1, due_at = $2 FROM due WHERE o.id = due.id
            RETURNING o.id, o.kind, o.recipient, o.attempts, o.language, due.due_at AS was_due, o.seq
        )
        SELECT id, kind, recipient, attempts, language FROM leased ORDER BY was_due, seq",
};
const LEASE_MAIL: &str = "UPDATE outbox SET attempts = attempts + 1, due_at = $2
    WHERE seq IN (SELECT seq FROM outbox WHERE due_at <= $1 ORDER BY due_at, seq LIMIT $3)";
const RETRY_MAIL: &str = "UPDATE outbox SET due_at = $2 WHERE id = $1 AND due_at IS NOT NULL";
/// The end of its lease approximates the time when it was done.
const FINISH_MAIL: &str = "UPDATE outbox SET done_at = due_at, due_at = NULL, recipient = NULL
    WHERE id = $1 AND due_at IS NOT NULL";
/// Rare: an operator's action, which may read the whole queue.
const DELETE_ADDRESS: &str =
    "UPDATE outbox SET done_at = $2, due_at = NULL, recipient = NULL WHERE recipient = $1";
/// At most [`WAITING_MAX`], by the index of due mails.
const COUNT_WAITING: &str =
    "SELECT count(*) FROM (SELECT due_at FROM outbox WHERE due_at >= 0 LIMIT 10000) AS waiting";
const _: () = assert!(WAITING_MAX == 10_000, "the statement repeats the number");
/// Deletes some that were done long ago.
const DELETE_FINISHED: Statement = sql! {
    sqlite: "DELETE FROM outbox WHERE seq IN (
            SELECT seq FROM outbox WHERE done_at < $1 ORDER BY done_at LIMIT 16
        )",
    postgres: "DELETE FROM outbox WHERE id IN (
            SELECT id FROM outbox WHERE done_at < $1 ORDER BY done_at LIMIT 128
        )",
};

/// Frequent statements, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 8] = [
    QUEUE_MAIL,
    LIMIT_DUE,
    TAKE_DUE_MAIL.sqlite,
    LEASE_MAIL,
    RETRY_MAIL,
    FINISH_MAIL,
    COUNT_WAITING,
    DELETE_FINISHED.sqlite,
];

struct QueueMailTx {
    intent: MailIntent,
    now: Timestamp,
    /// Mails that were done before this time, in milliseconds, are deleted.
    delete_before: i64,
}

impl WriteTx for QueueMailTx {
    type Outcome = ();
    const NEEDS_TRANSACTION: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        if !S::IS_REMOTE {
            db.execute(DELETE_FINISHED, &values![self.delete_before]).await?;
        }
        let MailIntent { id, kind, to, attempts, language } = &self.intent;
        let number = db.next_number(self.now);
        let row = values![id, kind, to, *attempts, self.now.as_millis(), number, language.as_ref()];
        db.execute(QUEUE_MAIL, &row).await?;
        Ok(())
    }
}

struct LeaseMailTx {
    now: Timestamp,
    expires_at: Timestamp,
    limit: u32,
}

impl WriteTx for LeaseMailTx {
    type Outcome = Vec<MailIntent>;
    const NEEDS_TRANSACTION: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Vec<MailIntent>> {
        let latest = self.now.plus(LEASE_MAX);
        let bounds = values![latest.as_millis(), latest.plus(RETRY_PAUSE_MAX).as_millis()];
        db.execute(LIMIT_DUE, &bounds).await?;
        let lease = values![self.now.as_millis(), self.expires_at.as_millis(), self.limit];
        let mut due = db.rows(TAKE_DUE_MAIL, &lease).await?;
        if !S::IS_REMOTE {
            db.execute(LEASE_MAIL, &lease).await?;
        }
        let mut intents = Vec::with_capacity(due.len());
        for row in &mut due {
            let id = row.get::<&str>(0).unwrap_or_default().to_owned();
            match intent(row) {
                // It must not stop other mails. It is leased, and so due again later.
                Err(error) if error.is_damaged() => {
                    tracing::error!(mail = %id, ?error, "stored mail is unreadable");
                }
                intent => intents.push(intent?),
            }
        }
        Ok(intents)
    }
}

#[async_trait]
impl<D: Database, Q: Queues> Outbox for Store<D, Q> {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        let delete_before = now.as_millis().saturating_sub(RETENTION_MS);
        self.database.run(QueueMailTx { intent, now, delete_before }).await?;
        delete_expired(&self.database, DELETE_INTERVAL, DELETE_FINISHED, delete_before).await;
        Ok(())
    }

    async fn lease_due(&self, now: Timestamp, expires_at: Timestamp, limit: u32) -> Result<Vec<MailIntent>> {
        self.database.run(LeaseMailTx { now, expires_at, limit: limit.min(DUE_MAX) }).await
    }

    async fn cancel_for_address(&self, to: &str, now: Timestamp) -> Result<u64> {
        self.database.execute(DELETE_ADDRESS, &values![to, now.as_millis()]).await
    }

    async fn count_waiting(&self) -> Result<u64> {
        let found = self.database.find(COUNT_WAITING, &[], |row| Ok(number(row.take(0)?)?)).await?;
        Ok(found.first().copied().unwrap_or_default())
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        match retry_at {
            Some(at) => self.database.execute(RETRY_MAIL, &values![id, at.as_millis()]).await?,
            None => self.database.execute(FINISH_MAIL, &values![id]).await?,
        };
        Ok(())
    }
}

fn intent(row: &mut Row) -> DbResult<MailIntent> {
    Ok(MailIntent {
        id: row.take(0)?,
        kind: row.take(1)?,
        to: row.take(2)?,
        attempts: row.take(3)?,
        language: row.take(4)?,
    })
}
