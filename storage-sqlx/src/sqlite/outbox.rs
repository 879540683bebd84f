//! The outbox in SQLite.

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Result, Timestamp,
    accounts::{MailIntent, Outbox, WAITING_MAX},
    ids::Holder,
};

use super::{SqliteStore, writer::WriteTx};
use crate::{
    codec::{number, small},
    error::DbResult,
};

/// How long the id of a finished mail is kept, so that it is not queued again: a week.
const RETENTION_MS: i64 = 604_800_000;
/// Most mails in one lease.
const DUE_MAX: u32 = 1_000;

const QUEUE_MAIL: &str =
    "INSERT INTO outbox (id, kind, recipient, attempts, due_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (id) DO NOTHING";
const DUE_MAIL: &str = "SELECT seq, id, kind, recipient, attempts + 1 FROM outbox
    WHERE due_at <= ?1 ORDER BY due_at, seq LIMIT ?2";
/// A lease does not store its holder: its end is the time when the mail is due again.
const LEASE_MAIL: &str = "UPDATE outbox SET attempts = attempts + 1, due_at = ?2
    WHERE seq IN (SELECT seq FROM outbox WHERE due_at <= ?1 ORDER BY due_at, seq LIMIT ?3)";
const RETRY_MAIL: &str = "UPDATE outbox SET due_at = ?2 WHERE id = ?1 AND due_at IS NOT NULL";
/// The end of its lease approximates the time when it was done.
const FINISH_MAIL: &str = "UPDATE outbox SET done_at = due_at, due_at = NULL, recipient = NULL
    WHERE id = ?1 AND due_at IS NOT NULL";
/// Rare: an operator's action, which may read the whole queue.
const DELETE_ADDRESS: &str =
    "UPDATE outbox SET done_at = ?2, due_at = NULL, recipient = NULL WHERE recipient = ?1";
/// At most [`WAITING_MAX`], by the index of due mails.
const COUNT_WAITING: &str = "SELECT COUNT(*) FROM (SELECT due_at FROM outbox WHERE due_at >= 0 LIMIT 10000)";
const _: () = assert!(WAITING_MAX == 10_000, "the statement repeats the number");
/// Deletes a few that were done long ago.
const DELETE_FINISHED: &str = "DELETE FROM outbox WHERE seq IN (
        SELECT seq FROM outbox WHERE done_at < ?1 ORDER BY done_at LIMIT 16
    )";

/// Frequent statements, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 7] =
    [QUEUE_MAIL, DUE_MAIL, LEASE_MAIL, RETRY_MAIL, FINISH_MAIL, COUNT_WAITING, DELETE_FINISHED];

struct QueueMailTx {
    intent: MailIntent,
    now: Timestamp,
}

impl WriteTx for QueueMailTx {
    type Outcome = ();

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<()> {
        let forgotten = self.now.as_millis().saturating_sub(RETENTION_MS);
        sqlx::query(DELETE_FINISHED).bind(forgotten).execute(&mut *db).await?;
        let MailIntent { id, kind, to, attempts } = &self.intent;
        let queue = sqlx::query(QUEUE_MAIL).bind(id.clone()).bind(kind.clone()).bind(to.clone());
        queue.bind(*attempts).bind(self.now.as_millis()).execute(db).await?;
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

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<Vec<MailIntent>> {
        let now = self.now.as_millis();
        let due = sqlx::query(DUE_MAIL).bind(now).bind(self.limit).fetch_all(&mut *db).await?;
        sqlx::query(LEASE_MAIL)
            .bind(now)
            .bind(self.expires_at.as_millis())
            .bind(self.limit)
            .execute(db)
            .await?;
        due.iter().map(intent).collect()
    }
}

struct FinishMailTx {
    id: String,
    retry_at: Option<Timestamp>,
}

impl WriteTx for FinishMailTx {
    type Outcome = ();

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<()> {
        let done = match self.retry_at {
            Some(at) => sqlx::query(RETRY_MAIL).bind(self.id.clone()).bind(at.as_millis()),
            None => sqlx::query(FINISH_MAIL).bind(self.id.clone()),
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

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<u64> {
        let delete = sqlx::query(DELETE_ADDRESS).bind(self.to.clone()).bind(self.now.as_millis());
        Ok(delete.execute(db).await?.rows_affected())
    }
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        self.database.run(QueueMailTx { intent, now }).await
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
        let found =
            self.database.find_first(|| sqlx::query(COUNT_WAITING), |row| Ok(number(row.try_get(0)?)?));
        Ok(found.await?.unwrap_or_default())
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        self.database.run(FinishMailTx { id: id.to_owned(), retry_at }).await
    }
}

fn intent(row: &SqliteRow) -> DbResult<MailIntent> {
    Ok(MailIntent {
        id: row.try_get(1)?,
        kind: row.try_get(2)?,
        to: row.try_get(3)?,
        attempts: small(row.try_get(4)?)?,
    })
}
