//! Events of jobs, and the generations of webhook secrets.

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{
        RETRY_PAUSE_MAX, WAITING_MAX,
        jobs::{Job, JobStatus},
        webhooks::{
            EventCounts, JobEvent, JobEventKind, JobEventLog, LeasedEvent, SecretGeneration, WebhookAttempt,
            WebhookStore,
        },
    },
    ids::{AccountId, JobId},
    time::LEASE_MAX,
};

use super::rows::{take_number, update_job};
use crate::{
    codec::{column, number},
    error::{DbResult, corrupt},
    sql::{Database, Row, Session, Statement, Value, WriteTx, sql, values},
    store::{Queues, Store},
};

/// Most events in one lease, with those that cannot be read.
const LEASES_MAX: u32 = 100;

const COUNT_EVENTS: &str =
    "SELECT count(*), coalesce(sum(CASE WHEN kind = 'job.paused' AND due_at IS NOT NULL THEN 1 ELSE 0 END), 0)
    FROM job_events WHERE job = $1";
const ADD_EVENT: &str =
    "INSERT INTO job_events (job, number, account, kind, created_at, attempts, leased, due_at)
    VALUES ($1, $2, $3, $4, $5, 0, 0, $5)";
/// Whether an event is due, or due after `$2` because a clock was ahead. A read, so that an idle server writes nothing.
const IS_EVENT_DUE: &str = "SELECT 1 WHERE EXISTS (SELECT 1 FROM job_events WHERE due_at <= $1)
    OR EXISTS (SELECT 1 FROM job_events WHERE due_at > $2)";
/// Events that are due after `$2`, because a clock was ahead, are due at `$1`.
const LIMIT_DUE: &str = "UPDATE job_events SET due_at = $1 WHERE due_at > $2";
/// The next event after a position, of an account that has none in transit.
macro_rules! due_event {
    ($join:literal, $attempts:literal) => {
        concat!(
            "SELECT e.job, e.number, e.kind, e.created_at, e.account, e.attempts, j.callback_url, e.due_at
            FROM job_events e ",
            $join,
            " jobs j ON j.id = e.job WHERE e.due_at <= $1 AND e.attempts ",
            $attempts,
            " AND (e.due_at, e.job, e.number) > ($2, $3, $4) AND NOT EXISTS (
                SELECT 1 FROM job_events o WHERE o.account = e.account AND o.leased = 1 AND o.due_at > $1
            ) ORDER BY e.due_at, e.job, e.number LIMIT 1"
        )
    };
}
/// New events before those that were leased before: each statement reads an index in order, up to the first that fits.
/// On PostgreSQL they skip events that another server leases.
pub(super) const PICK_EVENT: [Statement; 2] = [
    sql! {
        sqlite: due_event!("CROSS JOIN", "< 1"),
        postgres: concat!(due_event!("JOIN", "< 1"), " FOR UPDATE OF e SKIP LOCKED"),
    },
    sql! {
        sqlite: due_event!("CROSS JOIN", "> 0"),
        postgres: concat!(due_event!("JOIN", "> 0"), " FOR UPDATE OF e SKIP LOCKED"),
    },
];
const LAST_ATTEMPT: &str = "SELECT coalesce(max(attempt), 0) FROM job_event_attempts WHERE event = $1";
const POSTPONE_EVENT: &str = "UPDATE job_events SET leased = 0, due_at = $3 WHERE job = $1 AND number = $2";
const LEASE_EVENT: &str = "UPDATE job_events SET attempts = $3, leased = 1, due_at = $4
    WHERE job = $1 AND number = $2";
const END_ATTEMPT: &str = "UPDATE job_events SET leased = 0, due_at = $4
    WHERE job = $1 AND number = $2 AND attempts = $3 AND leased = 1";
const ADD_ATTEMPT: &str = "INSERT INTO job_event_attempts (event, attempt, ended_at, status, error, next_at)
    VALUES ($1, $2, $3, $4, $5, $6)";
const EVENTS: &str = "SELECT e.job, e.number, e.kind, e.created_at, e.due_at,
        a.attempt, a.ended_at, a.status, a.error, a.next_at
    FROM job_events e LEFT JOIN job_event_attempts a ON a.event = e.job || '/' || e.number
    WHERE e.job = $1 ORDER BY e.number, a.attempt";
/// At most [`WAITING_MAX`], by the index of due events.
const COUNT_WAITING: &str =
    "SELECT count(*) FROM (SELECT due_at FROM job_events WHERE due_at >= 0 LIMIT 10000) AS waiting";
const _: () = assert!(WAITING_MAX == 10_000, "the statement repeats the number");
const DELETE_ATTEMPTS: &str = "DELETE FROM job_event_attempts WHERE event IN (
        SELECT job || '/' || number FROM job_events WHERE job = $1
    )";
const DELETE_EVENTS: &str = "DELETE FROM job_events WHERE job = $1";
/// Ends the deliveries of an account: its events are not sent.
pub(super) const END_DELIVERIES: &str = "UPDATE job_events SET leased = 0, due_at = NULL
    WHERE job IN (SELECT id FROM jobs WHERE account = $1) AND due_at IS NOT NULL";
const FIND_SECRET: &str = "SELECT generation, rotated_at FROM webhook_secrets WHERE account = $1";
const PUT_SECRET: &str = "INSERT INTO webhook_secrets (account, generation, rotated_at) VALUES ($1, $2, $3)
    ON CONFLICT (account) DO UPDATE SET generation = webhook_secrets.generation + 1, rotated_at = $3";
pub(super) const DELETE_SECRET: &str = "DELETE FROM webhook_secrets WHERE account = $1";

/// Frequent statements, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(super) const INDEXED_STATEMENTS: [&str; 15] = [
    COUNT_EVENTS,
    ADD_EVENT,
    IS_EVENT_DUE,
    LIMIT_DUE,
    LAST_ATTEMPT,
    POSTPONE_EVENT,
    LEASE_EVENT,
    END_ATTEMPT,
    ADD_ATTEMPT,
    EVENTS,
    COUNT_WAITING,
    DELETE_ATTEMPTS,
    DELETE_EVENTS,
    END_DELIVERIES,
    FIND_SECRET,
];

/// Stores the changes of a locked job since it had a state, and the event of the change.
pub(super) async fn change_job<S: Session>(
    db: &mut S,
    job: &Job,
    before: JobStatus,
    now: Timestamp,
) -> DbResult<()> {
    update_job(db, job).await?;
    record_event(db, job, before, now).await
}

/// Records the event of a change since a state.
pub(super) async fn record_event<S: Session>(
    db: &mut S,
    job: &Job,
    before: JobStatus,
    now: Timestamp,
) -> DbResult<()> {
    // Most changes have no event: the counts are not read for them.
    if job.event_since(before, EventCounts::default()).is_none() {
        return Ok(());
    }
    let mut row = db.only_row(COUNT_EVENTS, &values![job.id.as_str()]).await?;
    let counts = EventCounts { all: take_number(&mut row, 0)?, waiting_pauses: take_number(&mut row, 1)? };
    let Some(kind) = job.event_since(before, counts) else { return Ok(()) };
    let row = values![
        job.id.as_str(),
        column(counts.all.saturating_add(1))?,
        job.account.as_str(),
        kind.as_str(),
        now.as_millis(),
    ];
    db.execute(ADD_EVENT, &row).await?;
    Ok(())
}

pub(super) async fn delete_events<S: Session>(db: &mut S, job: &str) -> DbResult<()> {
    db.execute(DELETE_ATTEMPTS, &values![job]).await?;
    db.execute(DELETE_EVENTS, &values![job]).await?;
    Ok(())
}

/// The bounds of [`LIMIT_DUE`].
fn due_bounds(now: Timestamp) -> [Value<'static>; 2] {
    let latest = now.plus(LEASE_MAX);
    values![latest.as_millis(), latest.plus(RETRY_PAUSE_MAX).as_millis()]
}

struct LeaseEventsTx {
    now: Timestamp,
    lease_until: Timestamp,
    limit: u32,
}

impl WriteTx for LeaseEventsTx {
    type Outcome = Vec<LeasedEvent>;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Vec<LeasedEvent>> {
        db.execute(LIMIT_DUE, &due_bounds(self.now)).await?;
        let (mut leased, mut tries) = (Vec::new(), 0..LEASES_MAX);
        for pick in PICK_EVENT {
            // An event in transit is so until the end of the transaction: none before the last one fits now.
            let (mut due_at, mut job, mut number) = (i64::MIN, String::new(), 0_i64);
            while leased.len() < self.limit as usize && tries.next().is_some() {
                let found = {
                    let after = values![self.now.as_millis(), due_at, &job, number];
                    db.row(pick, &after).await?
                };
                let Some(row) = found else { break };
                (due_at, job, number) = (row.get(7)?, row.get::<&str>(0)?.to_owned(), row.get(1)?);
                leased.extend(self.lease(db, row, &job, number).await?);
            }
        }
        Ok(leased)
    }
}

impl LeaseEventsTx {
    /// Leases an event in a row of [`PICK_EVENT`]. One that cannot be decoded is due later.
    async fn lease<S: Session>(
        &self,
        db: &mut S,
        mut row: Row,
        job: &str,
        number: i64,
    ) -> DbResult<Option<LeasedEvent>> {
        let mut read = || -> DbResult<_> {
            Ok((read_event(&mut row)?, AccountId::new(row.take::<String>(4)?), row.take(5)?, row.take(6)?))
        };
        let (event, account, leases, callback_url): (_, _, u32, String) = match read() {
            // It must not stop other events.
            Err(error) if error.is_damaged() => {
                tracing::error!(job, number, ?error, "stored event of a job is unreadable");
                let later = self.now.plus(RETRY_PAUSE_MAX).as_millis();
                db.execute(POSTPONE_EVENT, &values![job, number, later]).await?;
                return Ok(None);
            }
            event => event?,
        };
        let lease = leases.saturating_add(1);
        db.execute(LEASE_EVENT, &values![job, number, lease, self.lease_until.as_millis()]).await?;
        let mut last = db.only_row(LAST_ATTEMPT, &values![stored_id(&event)]).await?;
        let attempt = last.take::<u32>(0)?.saturating_add(1);
        Ok(Some(LeasedEvent { event, account, callback_url, lease, attempt }))
    }
}

/// The id of an event in the table of attempts.
fn stored_id(event: &JobEvent) -> String {
    format!("{}/{}", event.job, event.number)
}

struct EndAttemptTx {
    event: JobEvent,
    lease: u32,
    attempt: WebhookAttempt,
}

impl WriteTx for EndAttemptTx {
    type Outcome = bool;
    // The repetition of an attempt that was recorded would report that it has ended.
    const IS_IDEMPOTENT: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let Self { event, lease, attempt } = self;
        let next_at = attempt.next_at.map(Timestamp::as_millis);
        let ended = values![event.job.as_str(), column(event.number)?, *lease, next_at];
        if db.execute(END_ATTEMPT, &ended).await? == 0 {
            return Ok(false);
        }
        let row = values![
            stored_id(event),
            attempt.number,
            attempt.at.as_millis(),
            attempt.status.map(i64::from),
            attempt.error.as_deref(),
            next_at,
        ];
        db.execute(ADD_ATTEMPT, &row).await?;
        Ok(true)
    }
}

struct RotateSecretTx {
    account: AccountId,
    now: Timestamp,
}

impl WriteTx for RotateSecretTx {
    type Outcome = SecretGeneration;
    const IS_IDEMPOTENT: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<SecretGeneration> {
        let account = self.account.as_str();
        let second = column(SecretGeneration::FIRST.next(self.now).number)?;
        db.execute(PUT_SECRET, &values![account, second, self.now.as_millis()]).await?;
        read_generation(&mut db.only_row(FIND_SECRET, &values![account]).await?)
    }
}

#[async_trait]
impl<D: Database, Q: Queues> WebhookStore for Store<D, Q> {
    async fn lease_events(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<LeasedEvent>> {
        let [_, latest] = due_bounds(now);
        let bounds = values![now.as_millis(), latest];
        let due = self.database.find_first(IS_EVENT_DUE, &bounds, |_| Ok(())).await?;
        let limit = limit.min(LEASES_MAX);
        match due {
            Some(()) if limit > 0 => self.database.run(LeaseEventsTx { now, lease_until, limit }).await,
            _ => Ok(Vec::new()),
        }
    }

    async fn end_attempt(&self, leased: &LeasedEvent, attempt: WebhookAttempt) -> Result<bool> {
        let event = leased.event.clone();
        self.database.run(EndAttemptTx { event, lease: leased.lease, attempt }).await
    }

    async fn events(&self, job: &JobId) -> Result<Vec<JobEventLog>> {
        let decode = |row: &mut Row| Ok((read_event(row)?, read_due(row)?, read_attempt(row)?));
        let mut events: Vec<JobEventLog> = Vec::new();
        for (event, due_at, attempt) in self.database.find(EVENTS, &values![job.as_str()], decode).await? {
            match events.last_mut() {
                Some(last) if last.event == event => last.attempts.extend(attempt),
                _ => events.push(JobEventLog { event, due_at, attempts: attempt.into_iter().collect() }),
            }
        }
        Ok(events)
    }

    async fn count_waiting_events(&self) -> Result<u64> {
        let found = self.database.find(COUNT_WAITING, &[], |row| Ok(number(row.take(0)?)?)).await?;
        Ok(found.first().copied().unwrap_or_default())
    }

    async fn secret_generation(&self, account: &AccountId) -> Result<SecretGeneration> {
        let account = values![account.as_str()];
        let found = self.database.find_first(FIND_SECRET, &account, read_generation).await?;
        Ok(found.unwrap_or(SecretGeneration::FIRST))
    }

    async fn rotate_secret(&self, account: &AccountId, now: Timestamp) -> Result<SecretGeneration> {
        self.database.run(RotateSecretTx { account: account.clone(), now }).await
    }
}

/// Decodes job, number, kind and time of an event.
fn read_event(row: &mut Row) -> DbResult<JobEvent> {
    let kind = JobEventKind::from_name(row.get(2)?);
    Ok(JobEvent {
        kind: kind.ok_or_else(|| corrupt("a stored event of a job has an unknown kind"))?,
        job: JobId::new(row.take::<String>(0)?),
        number: take_number(row, 1)?,
        created_at: Timestamp::from_millis(row.take(3)?),
    })
}

fn read_due(row: &mut Row) -> DbResult<Option<Timestamp>> {
    Ok(row.take::<Option<i64>>(4)?.map(Timestamp::from_millis))
}

/// Decodes an attempt of an event; `None` for an event without one.
fn read_attempt(row: &mut Row) -> DbResult<Option<WebhookAttempt>> {
    let Some(number) = row.take::<Option<u32>>(5)? else { return Ok(None) };
    let status = row.take::<Option<i64>>(7)?.map(u16::try_from).transpose();
    Ok(Some(WebhookAttempt {
        number,
        at: Timestamp::from_millis(row.take(6)?),
        status: status.map_err(|_| corrupt("a stored status of a webhook is out of range"))?,
        error: row.take(8)?,
        next_at: row.take::<Option<i64>>(9)?.map(Timestamp::from_millis),
    }))
}

fn read_generation(row: &mut Row) -> DbResult<SecretGeneration> {
    let rotated_at = Some(Timestamp::from_millis(row.take(1)?));
    Ok(SecretGeneration { number: take_number(row, 0)?, rotated_at })
}
