//! The outbox in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Result, Timestamp,
    accounts::{MailIntent, Outbox, WAITING_MAX},
    ids::Holder,
};

use super::{
    PostgresStore,
    database::{PgDatabase, WriteTx, random_below},
    text::{decode, encode, read},
};
use crate::{
    codec::{number, small},
    error::DbResult,
};

/// How long the id of a finished mail is kept, so that it is not queued again: a week.
const RETENTION_MS: i64 = 604_800_000;
/// Most mails in one lease.
const DUE_MAX: u32 = 1_000;
/// One in this many queued mails deletes old ones.
const FORGET_EVERY: u64 = 8;

const QUEUE_MAIL: &str = "INSERT INTO outbox (id, kind, recipient, attempts, due_at, seq)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING";
/// A lease does not store its holder: its end is the time when the mail is due again.
///
/// Mails that another server is leasing at the same time are skipped.
const LEASE_MAIL: &str = "WITH due AS (
        SELECT id, due_at, seq FROM outbox WHERE due_at <= $1 ORDER BY due_at, seq LIMIT $3
        FOR UPDATE SKIP LOCKED
    ), leased AS (
        UPDATE outbox o SET attempts = o.attempts + 1, due_at = $2 FROM due WHERE o.id = due.id
        RETURNING o.id, o.kind, o.recipient, o.attempts, due.due_at AS was_due, o.seq
    )
    SELECT id, kind, recipient, attempts FROM leased ORDER BY was_due, seq";
const RETRY_MAIL: &str = "UPDATE outbox SET due_at = $2 WHERE id = $1 AND due_at IS NOT NULL";
/// The end of its lease approximates the time when it was done.
const FINISH_MAIL: &str = "UPDATE outbox SET done_at = due_at, due_at = NULL, recipient = NULL
    WHERE id = $1 AND due_at IS NOT NULL";
const DELETE_ADDRESS: &str =
    "UPDATE outbox SET done_at = $2, due_at = NULL, recipient = NULL WHERE recipient = $1";
/// At most [`WAITING_MAX`].
const COUNT_WAITING: &str =
    "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE due_at IS NOT NULL LIMIT 10000) AS waiting";
const _: () = assert!(WAITING_MAX == 10_000, "the statement repeats the number");
/// Deletes some that were done long ago.
const DELETE_FINISHED: &str = "DELETE FROM outbox WHERE id IN (
        SELECT id FROM outbox WHERE done_at < $1 ORDER BY done_at LIMIT 128
    )";

struct QueueMailTx {
    intent: MailIntent,
    numbers: PgDatabase,
    now: Timestamp,
}

impl WriteTx for QueueMailTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let MailIntent { id, kind, to, attempts } = &self.intent;
        let now = self.now.as_millis();
        let queue = sqlx::query(QUEUE_MAIL)
            .bind(encode(id))
            .bind(encode(kind))
            .bind(encode(to))
            .bind(i64::from(*attempts));
        queue.bind(now).bind(self.numbers.numbers(now, 1)).execute(db).await?;
        Ok(())
    }
}

struct DeleteMailTx(i64);

impl WriteTx for DeleteMailTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        sqlx::query(DELETE_FINISHED).bind(self.0).execute(db).await?;
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
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Vec<MailIntent>> {
        let lease = sqlx::query(LEASE_MAIL).bind(self.now.as_millis()).bind(self.expires_at.as_millis());
        let leased = lease.bind(i64::from(self.limit)).fetch_all(db).await?;
        leased.iter().map(intent).collect()
    }
}

struct WaitingMail;

impl WriteTx for WaitingMail {
    type Outcome = u64;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<u64> {
        let row = sqlx::query(COUNT_WAITING).fetch_one(db).await?;
        Ok(number(row.try_get(0)?)?)
    }
}

struct FinishMailTx {
    id: String,
    retry_at: Option<Timestamp>,
}

impl WriteTx for FinishMailTx {
    type Outcome = ();
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let done = match self.retry_at {
            Some(at) => sqlx::query(RETRY_MAIL).bind(encode(&self.id)).bind(at.as_millis()),
            None => sqlx::query(FINISH_MAIL).bind(encode(&self.id)),
        };
        done.execute(db).await?;
        Ok(())
    }
}

struct DeleteAddressTx {
    to: String,
    now: Timestamp,
}

impl WriteTx for DeleteAddressTx {
    type Outcome = u64;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<u64> {
        let delete = sqlx::query(DELETE_ADDRESS).bind(encode(&self.to)).bind(self.now.as_millis());
        Ok(delete.execute(db).await?.rows_affected())
    }
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        self.database.run(QueueMailTx { intent, numbers: self.database.clone(), now }).await?;
        if random_below(FORGET_EVERY) == 0 {
            self.database.run(DeleteMailTx(now.as_millis().saturating_sub(RETENTION_MS))).await?;
        }
        Ok(())
    }

    async fn lease_due(
        &self,
        _holder: &Holder,
        now: Timestamp,
        expires_at: Timestamp,
        limit: u32,
    ) -> Result<Vec<MailIntent>> {
        self.database.run(LeaseMailTx { now, expires_at, limit: limit.min(DUE_MAX) }).await
    }

    async fn cancel_for_address(&self, to: &str, now: Timestamp) -> Result<u64> {
        self.database.run(DeleteAddressTx { to: to.to_owned(), now }).await
    }

    async fn count_waiting(&self) -> Result<u64> {
        self.database.run(WaitingMail).await
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        self.database.run(FinishMailTx { id: id.to_owned(), retry_at }).await
    }
}

fn intent(row: &PgRow) -> DbResult<MailIntent> {
    Ok(MailIntent {
        id: read(row, 0)?,
        kind: read(row, 1)?,
        to: decode(row.try_get(2)?),
        attempts: small(row.try_get(3)?)?,
    })
}
