//! The queue of mail in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Result, Timestamp,
    accounts::{MailIntent, Outbox, WAITING_MAX},
    ids::Holder,
};

use super::{
    PostgresStore,
    database::{Change, Database, chance},
    text::{own, plain, read},
};
use crate::{
    codec::{number, small},
    error::Work,
};

/// How long a mail that is done is remembered, so that its id is not queued again: a week.
const REMEMBERED_MS: i64 = 604_800_000;
/// How many mails one lease takes at most.
const DUE_MAX: u32 = 1_000;
/// One of so many who queue a mail forgets old ones.
const FORGET_EVERY: u64 = 8;

const QUEUE: &str = "INSERT INTO outbox (id, kind, recipient, attempts, due_at, seq)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING";
/// Whoever holds a lease need not be known: its end says when the mail is due for anyone again. Mails that another
/// server leases at this moment are passed over.
const LEASE: &str = "WITH due AS (
        SELECT id, due_at, seq FROM outbox WHERE due_at <= $1 ORDER BY due_at, seq LIMIT $3
        FOR UPDATE SKIP LOCKED
    ), leased AS (
        UPDATE outbox o SET attempts = o.attempts + 1, due_at = $2 FROM due WHERE o.id = due.id
        RETURNING o.id, o.kind, o.recipient, o.attempts, due.due_at AS was_due, o.seq
    )
    SELECT id, kind, recipient, attempts FROM leased ORDER BY was_due, seq";
const RETRY: &str = "UPDATE outbox SET due_at = $2 WHERE id = $1 AND due_at IS NOT NULL";
/// The end of its lease is near enough to the moment at which it was done.
const DONE: &str = "UPDATE outbox SET done_at = due_at, due_at = NULL, recipient = NULL
    WHERE id = $1 AND due_at IS NOT NULL";
const FORGET_ADDRESS: &str =
    "UPDATE outbox SET done_at = $2, due_at = NULL, recipient = NULL WHERE recipient = $1";
/// As many as [`WAITING_MAX`].
const WAITING: &str =
    "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE due_at IS NOT NULL LIMIT 10000) AS waiting";
const _: () = assert!(WAITING_MAX == 10_000, "the statement has it too");
/// Forgets some that were done long ago.
const FORGET: &str = "DELETE FROM outbox WHERE id IN (
        SELECT id FROM outbox WHERE done_at < $1 ORDER BY done_at LIMIT 128
    )";

struct Queued {
    intent: MailIntent,
    numbers: Database,
    now: Timestamp,
}

impl Change for Queued {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let MailIntent { id, kind, to, attempts } = &self.intent;
        let now = self.now.as_millis();
        let queue = sqlx::query(QUEUE).bind(own(id)).bind(own(kind)).bind(own(to)).bind(i64::from(*attempts));
        queue.bind(now).bind(self.numbers.numbers(now, 1)).execute(db).await?;
        Ok(())
    }
}

struct Forget(i64);

impl Change for Forget {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        sqlx::query(FORGET).bind(self.0).execute(db).await?;
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
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Vec<MailIntent>> {
        let lease = sqlx::query(LEASE).bind(self.now.as_millis()).bind(self.until.as_millis());
        let leased = lease.bind(i64::from(self.limit)).fetch_all(db).await?;
        leased.iter().map(intent).collect()
    }
}

struct Waiting;

impl Change for Waiting {
    type Outcome = u64;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<u64> {
        let row = sqlx::query(WAITING).fetch_one(db).await?;
        Ok(number(row.try_get(0)?)?)
    }
}

struct Done {
    id: String,
    retry_at: Option<Timestamp>,
}

impl Change for Done {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let done = match self.retry_at {
            Some(at) => sqlx::query(RETRY).bind(own(&self.id)).bind(at.as_millis()),
            None => sqlx::query(DONE).bind(own(&self.id)),
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
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<u64> {
        let forget = sqlx::query(FORGET_ADDRESS).bind(own(&self.to)).bind(self.now.as_millis());
        Ok(forget.execute(db).await?.rows_affected())
    }
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        self.database.make(Queued { intent, numbers: self.database.clone(), now }).await?;
        if chance(FORGET_EVERY) == 0 {
            self.database.make(Forget(now.as_millis().saturating_sub(REMEMBERED_MS))).await?;
        }
        Ok(())
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
        self.database.make(Waiting).await
    }

    async fn done(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        self.database.make(Done { id: id.to_owned(), retry_at }).await
    }
}

fn intent(row: &PgRow) -> Work<MailIntent> {
    Ok(MailIntent {
        id: read(row, 0)?,
        kind: read(row, 1)?,
        to: plain(row.try_get(2)?),
        attempts: small(row.try_get(3)?)?,
    })
}
