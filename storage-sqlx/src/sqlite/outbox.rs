//! The queue of mail in SQLite.

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Result, Timestamp,
    accounts::{MailIntent, Outbox, WAITING_MAX},
    ids::Holder,
};

use super::{SqliteStore, writer::Change};
use crate::{
    codec::{number, small},
    error::Work,
};

/// How long a mail that is done is remembered, so that its id is not queued again: a week.
const REMEMBERED_MS: i64 = 604_800_000;
/// How many mails one lease takes at most.
const DUE_MAX: u32 = 1_000;

const QUEUE: &str = "INSERT INTO outbox (id, kind, recipient, attempts, due_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (id) DO NOTHING";
const DUE: &str = "SELECT seq, id, kind, recipient, attempts + 1 FROM outbox
    WHERE due_at <= ?1 ORDER BY due_at, seq LIMIT ?2";
/// Whoever holds a lease need not be known: its end says when the mail is due for anyone again.
const LEASE: &str = "UPDATE outbox SET attempts = attempts + 1, due_at = ?2
    WHERE seq IN (SELECT seq FROM outbox WHERE due_at <= ?1 ORDER BY due_at, seq LIMIT ?3)";
const RETRY: &str = "UPDATE outbox SET due_at = ?2 WHERE id = ?1 AND due_at IS NOT NULL";
/// The end of its lease is near enough to the moment at which it was done.
const DONE: &str = "UPDATE outbox SET done_at = due_at, due_at = NULL, recipient = NULL
    WHERE id = ?1 AND due_at IS NOT NULL";
/// Rare: an operator's step, which may read the queue from end to end.
const FORGET_ADDRESS: &str =
    "UPDATE outbox SET done_at = ?2, due_at = NULL, recipient = NULL WHERE recipient = ?1";
/// As many as [`WAITING_MAX`], by the index of those that are due.
const WAITING: &str = "SELECT COUNT(*) FROM (SELECT due_at FROM outbox WHERE due_at >= 0 LIMIT 10000)";
const _: () = assert!(WAITING_MAX == 10_000, "the statement has it too");
/// Forgets a few that were done long ago.
const FORGET: &str = "DELETE FROM outbox WHERE seq IN (
        SELECT seq FROM outbox WHERE done_at < ?1 ORDER BY done_at LIMIT 16
    )";

/// What runs often, for the test of the plans.
#[cfg(test)]
pub(super) const HOT: [&str; 7] = [QUEUE, DUE, LEASE, RETRY, DONE, WAITING, FORGET];

struct Queued {
    intent: MailIntent,
    now: Timestamp,
}

impl Change for Queued {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let forgotten = self.now.as_millis().saturating_sub(REMEMBERED_MS);
        sqlx::query(FORGET).bind(forgotten).execute(&mut *db).await?;
        let MailIntent { id, kind, to, attempts } = &self.intent;
        let queue = sqlx::query(QUEUE).bind(id.clone()).bind(kind.clone()).bind(to.clone());
        queue.bind(*attempts).bind(self.now.as_millis()).execute(db).await?;
        Ok(())
    }
}

struct Due {
    now: Timestamp,
    until: Timestamp,
    limit: u32,
}

impl Change for Due {
    type Outcome = Vec<MailIntent>;

    async fn make(&self, db: &mut SqliteConnection) -> Work<Vec<MailIntent>> {
        let now = self.now.as_millis();
        let due = sqlx::query(DUE).bind(now).bind(self.limit).fetch_all(&mut *db).await?;
        sqlx::query(LEASE).bind(now).bind(self.until.as_millis()).bind(self.limit).execute(db).await?;
        due.iter().map(intent).collect()
    }
}

struct Done {
    id: String,
    retry_at: Option<Timestamp>,
}

impl Change for Done {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let done = match self.retry_at {
            Some(at) => sqlx::query(RETRY).bind(self.id.clone()).bind(at.as_millis()),
            None => sqlx::query(DONE).bind(self.id.clone()),
        };
        done.execute(db).await?;
        Ok(())
    }
}

struct ForgetAddress {
    to: String,
    now: Timestamp,
}

impl Change for ForgetAddress {
    type Outcome = u64;

    async fn make(&self, db: &mut SqliteConnection) -> Work<u64> {
        let forget = sqlx::query(FORGET_ADDRESS).bind(self.to.clone()).bind(self.now.as_millis());
        Ok(forget.execute(db).await?.rows_affected())
    }
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        self.database.make(Queued { intent, now }).await
    }

    async fn due(
        &self,
        _holder: &Holder,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MailIntent>> {
        self.database.make(Due { now, until, limit: limit.min(DUE_MAX) }).await
    }

    async fn forget(&self, to: &str, now: Timestamp) -> Result<u64> {
        self.database.make(ForgetAddress { to: to.to_owned(), now }).await
    }

    async fn waiting(&self) -> Result<u64> {
        let found = self.database.find_first(|| sqlx::query(WAITING), |row| Ok(number(row.try_get(0)?)?));
        Ok(found.await?.unwrap_or_default())
    }

    async fn done(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        self.database.make(Done { id: id.to_owned(), retry_at }).await
    }
}

fn intent(row: &SqliteRow) -> Work<MailIntent> {
    Ok(MailIntent {
        id: row.try_get(1)?,
        kind: row.try_get(2)?,
        to: row.try_get(3)?,
        attempts: small(row.try_get(4)?)?,
    })
}
