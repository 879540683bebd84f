//! Rows of jobs and items.

use transcript_core::{
    Result, Timestamp,
    accounts::jobs::{ItemFailure, ItemStatus, Job, JobCounts, JobItem, JobStatus, PauseReason, SourceList},
    ids::{AccountId, JobId},
    video::VideoList,
};

use crate::{
    codec::{column, number, video},
    error::{DbResult, corrupt},
    sql::{Database, Row, Session, Statement, Value, sql, values},
};

/// The columns that [`read_job`] reads.
macro_rules! job_columns {
    () => {
        "id, account, status, language, pause_reason, total, running, done, failed, skipped, spent, created_at, \
         ended_at, due_at, callback_url, list, list_limit, list_since, list_open, reason, message"
    };
}
pub(super) use job_columns;

pub(super) const FIND_JOB: &str = concat!("SELECT ", job_columns!(), " FROM jobs WHERE id = $1");
/// On PostgreSQL it locks the row: every change of a job or of its items begins with this lock.
const LOCK_JOB: Statement = sql! {
    sqlite: FIND_JOB,
    postgres: concat!("SELECT ", job_columns!(), " FROM jobs WHERE id = $1 FOR UPDATE"),
};
/// Id, account, callback address, list and the time of creation never change.
pub(super) const UPDATE_JOB: &str =
    "UPDATE jobs SET status = $2, pause_reason = $3, total = $4, running = $5, done = $6, failed = $7,
    skipped = $8, spent = $9, ended_at = $10, due_at = $11, list_open = $12, reason = $13, message = $14
    WHERE id = $1";
pub(super) const INSERT_JOB: &str = "INSERT INTO jobs (id, account, status, language, pause_reason, total,
    running, done, failed, skipped, spent, created_at, ended_at, due_at, turn, callback_url, list, list_limit,
    list_since, list_open)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
    ON CONFLICT (id) DO NOTHING";

const POSTPONE_JOB: &str = "UPDATE jobs SET due_at = $2 WHERE id = $1";

pub(super) async fn lock_job<S: Session>(db: &mut S, id: &JobId) -> DbResult<Option<Job>> {
    let row = db.row(LOCK_JOB, &values![id.as_str()]).await?;
    row.map(|mut row| read_job(&mut row)).transpose()
}

/// Stores the changes of a locked job.
pub(super) async fn update_job<S: Session>(db: &mut S, job: &Job) -> DbResult<()> {
    let JobCounts { total, running, done, failed, skipped } = job.counts;
    let row = values![
        job.id.as_str(),
        job.status.as_str(),
        job.pause_reason.map(PauseReason::as_str),
        column(total)?,
        column(running)?,
        column(done)?,
        column(failed)?,
        column(skipped)?,
        column(job.spent)?,
        job.ended_at.map(Timestamp::as_millis),
        job.due_at.map(Timestamp::as_millis),
        job.list.as_ref().map(|list| i64::from(list.is_open)),
        job.failure.as_ref().map(|failure| failure.reason.as_str()),
        job.failure.as_ref().map(|failure| failure.message.as_str()),
    ];
    db.execute(UPDATE_JOB, &row).await?;
    Ok(())
}

/// Stores a new job; returns the number of stored rows.
pub(super) async fn insert_job<S: Session>(db: &mut S, job: &Job, turn: i64) -> DbResult<u64> {
    let (JobCounts { total, running, done, failed, skipped }, list) = (job.counts, job.list.as_ref());
    let row = values![
        job.id.as_str(),
        job.account.as_str(),
        job.status.as_str(),
        job.language.as_deref(),
        job.pause_reason.map(PauseReason::as_str),
        column(total)?,
        column(running)?,
        column(done)?,
        column(failed)?,
        column(skipped)?,
        column(job.spent)?,
        job.created_at.as_millis(),
        job.ended_at.map(Timestamp::as_millis),
        job.due_at.map(Timestamp::as_millis),
        turn,
        job.callback_url.as_deref(),
        list.map(|list| list.list.address()),
        list.map(|list| column(list.limit)).transpose()?,
        list.and_then(|list| list.since).map(Timestamp::as_millis),
        list.map(|list| i64::from(list.is_open)),
    ];
    db.execute(INSERT_JOB, &row).await
}

/// Decodes the columns of a job.
pub(super) fn read_job(row: &mut Row) -> DbResult<Job> {
    let unknown = || corrupt("a stored job has an unknown state");
    let pause_reason = match row.get::<Option<&str>>(4)? {
        Some(name) => Some(PauseReason::from_name(name).ok_or_else(unknown)?),
        None => None,
    };
    let counts = JobCounts {
        total: take_number(row, 5)?,
        running: take_number(row, 6)?,
        done: take_number(row, 7)?,
        failed: take_number(row, 8)?,
        skipped: take_number(row, 9)?,
    };
    Ok(Job {
        status: JobStatus::from_name(row.get(2)?).ok_or_else(unknown)?,
        pause_reason,
        counts,
        spent: take_number(row, 10)?,
        id: JobId::new(row.take::<String>(0)?),
        account: AccountId::new(row.take::<String>(1)?),
        language: row.take(3)?,
        created_at: Timestamp::from_millis(row.take(11)?),
        ended_at: row.take::<Option<i64>>(12)?.map(Timestamp::from_millis),
        due_at: row.take::<Option<i64>>(13)?.map(Timestamp::from_millis),
        callback_url: row.take(14)?,
        list: read_list(row)?,
        failure: read_failure(row, 19)?,
    })
}

/// Decodes a locked job that is due.
///
/// A job that cannot be decoded is logged, and due again at `later`: it must not stop those of other accounts.
pub(super) async fn read_due_job<S: Session>(
    db: &mut S,
    mut row: Row,
    later: Timestamp,
) -> DbResult<Option<Job>> {
    let id = row.get::<&str>(0)?.to_owned();
    let job = read_if_readable(&mut row)?;
    if job.is_none() {
        db.execute(POSTPONE_JOB, &values![&id, later.as_millis()]).await?;
    }
    Ok(job)
}

/// Decodes a job. One that cannot be decoded is logged.
fn read_if_readable(row: &mut Row) -> DbResult<Option<Job>> {
    let id = row.get::<&str>(0)?.to_owned();
    match read_job(row) {
        Err(error) if error.is_damaged() => {
            tracing::error!(job = %id, ?error, "stored job is unreadable");
            Ok(None)
        }
        job => job.map(Some),
    }
}

/// Decodes a row of a list of jobs: its position there, and the job if it is readable. Another one is logged.
pub(super) fn read_listed_job(row: &mut Row) -> DbResult<ListedRow<(i64, String), Job>> {
    let position = (row.get::<i64>(11)?, row.get::<&str>(0)?.to_owned());
    Ok((position, read_if_readable(row)?))
}

/// The position of a row in a list, and its value if it is readable.
type ListedRow<P, T> = (P, Option<T>);

/// Reads `limit` rows of a list after a position, or all that are left.
///
/// Those that cannot be decoded are left out, and the next ones are read instead.
pub(super) async fn find_readable<D: Database, P, T>(
    database: &D,
    statement: &'static str,
    mut limit: i64,
    mut after: P,
    bounds: impl Fn(&P, i64) -> Vec<Value<'static>> + Send,
    decode: fn(&mut Row) -> DbResult<ListedRow<P, T>>,
) -> Result<Vec<T>>
where
    P: Send + Sync,
    T: Send,
{
    let mut readable = Vec::new();
    loop {
        let found = database.find(statement, &bounds(&after, limit), decode).await?;
        limit = 0;
        for (position, value) in found {
            after = position;
            limit += i64::from(value.is_none());
            readable.extend(value);
        }
        if limit == 0 {
            return Ok(readable);
        }
    }
}

/// Decodes the list of a job.
fn read_list(row: &mut Row) -> DbResult<Option<SourceList>> {
    let Some(address) = row.get::<Option<&str>>(15)? else { return Ok(None) };
    let list = VideoList::parse(address).map_err(|_| corrupt("a stored job has an unknown list"))?;
    Ok(Some(SourceList {
        list,
        limit: take_number(row, 16)?,
        since: row.take::<Option<i64>>(17)?.map(Timestamp::from_millis),
        is_open: take_number(row, 18)? == 1,
    }))
}

/// Decodes reason and message of a failure.
fn read_failure(row: &mut Row, index: usize) -> DbResult<Option<ItemFailure>> {
    let reason = row.take::<Option<String>>(index)?;
    let message = row.take::<Option<String>>(index + 1)?.unwrap_or_default();
    Ok(reason.map(|reason| ItemFailure { reason, message }))
}

pub(super) fn take_number(row: &mut Row, index: usize) -> Result<u64> {
    number(row.take(index).map_err(|_| corrupt("a stored number of a job is missing"))?)
}

/// Decodes a row of a list of items: the position, and the item if it is readable. Another one is logged.
pub(super) fn read_listed_item(row: &mut Row) -> DbResult<ListedRow<i64, JobItem>> {
    let index = row.get::<i64>(0)?;
    match read_item(row) {
        Err(error) if error.is_damaged() => {
            let job = row.get::<&str>(6)?;
            tracing::error!(job, index, ?error, "stored item of a job is unreadable");
            Ok((index, None))
        }
        item => Ok((index, Some(item?))),
    }
}

/// Decodes an item: position, link, video, state, reason and message.
fn read_item(row: &mut Row) -> DbResult<JobItem> {
    let status = ItemStatus::from_name(row.get(3)?);
    Ok(JobItem {
        index: take_number(row, 0)?,
        url: row.take(1)?,
        video: row.get::<Option<&str>>(2)?.map(video).transpose()?,
        status: status.ok_or_else(|| corrupt("a stored item of a job has an unknown state"))?,
        failure: read_failure(row, 4)?,
    })
}
