//! The outbox in SQLite.

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{MailIntent, Outbox, WAITING_MAX},
    ids::Holder,
};

use super::SqliteStore;
use crate::{
    codec::number,
    error::DbResult,
    sql::{Row, Session, WriteTx, values},
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

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let forgotten = self.now.as_millis().saturating_sub(RETENTION_MS);
        db.execute(DELETE_FINISHED, &values![forgotten]).await?;
        let MailIntent { id, kind, to, attempts } = &self.intent;
        db.execute(QUEUE_MAIL, &values![id, kind, to, *attempts, self.now.as_millis()]).await?;
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

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Vec<MailIntent>> {
        let now = self.now.as_millis();
        let mut due = db.rows(DUE_MAIL, &values![now, self.limit]).await?;
        db.execute(LEASE_MAIL, &values![now, self.expires_at.as_millis(), self.limit]).await?;
        due.iter_mut().map(intent).collect()
    }
}

struct FinishMailTx {
    id: String,
    retry_at: Option<Timestamp>,
}

impl WriteTx for FinishMailTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        match self.retry_at {
            Some(at) => db.execute(RETRY_MAIL, &values![&self.id, at.as_millis()]).await?,
            None => db.execute(FINISH_MAIL, &values![&self.id]).await?,
        };
        Ok(())
    }
}

struct DeleteAddressTx {
    to: String,
    now: Timestamp,
}

impl WriteTx for DeleteAddressTx {
    type Outcome = u64;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<u64> {
        db.execute(DELETE_ADDRESS, &values![&self.to, self.now.as_millis()]).await
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
        let found = self.database.find(COUNT_WAITING, &[], |row| Ok(number(row.take(0)?)?)).await?;
        Ok(found.first().copied().unwrap_or_default())
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        self.database.run(FinishMailTx { id: id.to_owned(), retry_at }).await
    }
}

fn intent(row: &mut Row) -> DbResult<MailIntent> {
    Ok(MailIntent { id: row.take(1)?, kind: row.take(2)?, to: row.take(3)?, attempts: row.take(4)? })
}
