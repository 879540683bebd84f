//! Claims of items: whose turn it is, and the changes of claimed items.

use transcript_core::{
    Result, Timestamp,
    accounts::jobs::{
        ClaimLimits, ClaimedItem, ItemClaim, ItemOutcome, ItemReturn, ItemStatus, Job, JobStatus,
    },
    ids::JobId,
};

use super::{
    events::change_job,
    rows::{job_columns, lock_job, read_due_job, update_job},
};
use crate::{
    codec::{column, number, video},
    error::DbResult,
    sql::{Row, Session, Statement, WriteTx, sql, values},
};

/// Most items in one claim.
const CLAIMS_MAX: u32 = 100;

/// The due job whose turn it is, of accounts that fulfil a condition.
macro_rules! due_job {
    ($columns:expr, $account:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM jobs
                WHERE due_at <= $1 AND status IN ('queued', 'running', 'cancelled') AND account ",
            $account,
            " ORDER BY turn, id LIMIT 1"
        )
    };
}
/// Whether an item may be due. A read, so that an idle server writes nothing.
pub(super) const IS_DUE: Statement = sql! {
    sqlite: due_job!("1", "NOT IN (SELECT value FROM json_each($2))"),
    postgres: due_job!("1", "<> ALL ($2)"),
};
/// The due job whose turn it is, of accounts that are not left out. On PostgreSQL it skips jobs that another server
/// changes.
pub(super) const PICK_JOB: Statement = sql! {
    sqlite: due_job!(job_columns!(), "NOT IN (SELECT value FROM json_each($2))"),
    postgres: concat!(due_job!(job_columns!(), "<> ALL ($2)"), " FOR UPDATE SKIP LOCKED"),
};
pub(super) const PICK_ITEM: &str =
    "SELECT idx, video, status, claims, attempts, failing_since, interruptions, due_at FROM job_items
    WHERE job = $1 AND due_at <= $2 ORDER BY idx LIMIT 1";
pub(super) const NEXT_DUE: &str = "SELECT min(due_at) FROM job_items WHERE job = $1 AND due_at IS NOT NULL";
pub(super) const CLAIM_ITEM: &str = "UPDATE job_items
    SET status = 'running', due_at = $3, claims = $4, interruptions = $5, failing_since = $6
    WHERE job = $1 AND idx = $2";
const POSTPONE_ITEM: &str = "UPDATE job_items SET due_at = $3 WHERE job = $1 AND idx = $2";
pub(super) const LAST_TURN: &str =
    "SELECT turn FROM jobs WHERE due_at IS NOT NULL ORDER BY turn DESC, id DESC LIMIT 1";
/// Jobs that are due after `$1`. A pause by the operator has no end.
macro_rules! due_after {
    () => {
        "due_at > $1 AND coalesce(pause_reason, '') <> 'operator'"
    };
}
/// A read, so that a check without such jobs writes nothing.
pub(super) const IS_DUE_TOO_LATE: &str =
    concat!("SELECT 1 FROM jobs WHERE ", due_after!(), " ORDER BY turn, id LIMIT 1");
const LIMIT_DUE_OF_JOBS: &str = concat!("UPDATE jobs SET due_at = $1 WHERE ", due_after!());
/// Of the jobs that [`LIMIT_DUE_OF_JOBS`] has changed.
const LIMIT_DUE_OF_ITEMS: &str = "UPDATE job_items SET due_at = $1
    WHERE due_at > $1 AND job IN (SELECT id FROM jobs WHERE due_at = $1)";
const SET_TURN: &str = "UPDATE jobs SET turn = $2 WHERE id = $1";
/// On PostgreSQL it skips jobs that another server changes: it must not wait for them while it holds a lock.
const SET_TURN_OF_ACCOUNT: Statement = sql! {
    sqlite: "UPDATE jobs SET turn = $2 WHERE account = $1 AND due_at IS NOT NULL",
    postgres: "UPDATE jobs SET turn = $2 WHERE id IN (
            SELECT id FROM jobs WHERE account = $1 AND due_at IS NOT NULL FOR UPDATE SKIP LOCKED
        )",
};
pub(super) const EXTEND_CLAIM: &str = "UPDATE job_items SET due_at = $4
    WHERE job = $1 AND idx = $2 AND claims = $3 AND status = 'running'";
pub(super) const END_ITEM: &str = "UPDATE job_items
    SET status = $4, due_at = NULL, reason = $5, message = $6, spent = $7
    WHERE job = $1 AND idx = $2 AND claims = $3 AND status = 'running'";
/// `$8` is the time until the item is due.
pub(super) const RETURN_ITEM: &str = "UPDATE job_items
    SET status = 'queued', due_at = $4, attempts = attempts + $5, interruptions = 0,
        failing_since = CASE WHEN $5 = 1 THEN NULL WHEN $6 = 0 THEN failing_since + $8
            WHEN failing_since <= $7 THEN failing_since ELSE $7 END
    WHERE job = $1 AND idx = $2 AND claims = $3 AND status = 'running'";

/// Frequent statements, for the test of the query plans. The others read the index of due jobs in order.
#[cfg(all(test, feature = "sqlite"))]
pub(super) const INDEXED_STATEMENTS: [&str; 6] =
    [PICK_ITEM, NEXT_DUE, CLAIM_ITEM, EXTEND_CLAIM, END_ITEM, RETURN_ITEM];

/// Claims due items, one per turn.
pub(super) struct ClaimTx {
    pub(super) now: Timestamp,
    pub(super) lease_until: Timestamp,
    pub(super) limits: ClaimLimits,
}

impl WriteTx for ClaimTx {
    type Outcome = Vec<ClaimedItem>;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Vec<ClaimedItem>> {
        let (mut claimed, mut limits) = (Vec::new(), self.limits.clone());
        while claimed.len() < limits.items.min(CLAIMS_MAX) as usize {
            let due = db.row(PICK_JOB, &values![self.now.as_millis(), limits.full_accounts()]).await?;
            let Some(row) = due else { break };
            let Some(mut job) = read_due_job(db, row, self.lease_until).await? else { continue };
            match self.claim(db, &mut job).await? {
                Some(item) => {
                    limits.add(&item.account);
                    claimed.push(item);
                }
                None => {
                    job.due_at = next_due(db, &job.id).await?;
                    update_job(db, &job).await?;
                }
            }
        }
        Ok(claimed)
    }
}

impl ClaimTx {
    /// Claims the first due item of a locked job. One that cannot be decoded is due again after the lease.
    async fn claim<S: Session>(&self, db: &mut S, job: &mut Job) -> DbResult<Option<ClaimedItem>> {
        let due = values![job.id.as_str(), self.now.as_millis()];
        let Some(mut row) = db.row(PICK_ITEM, &due).await? else { return Ok(None) };
        let index = row.take::<i64>(0)?;
        let was_running = matches!(row.get::<&str>(2), Ok(status) if status == ItemStatus::Running.as_str());
        let item = match self.read_item(&mut row, job, index, was_running) {
            Err(error) if error.is_damaged() => {
                tracing::error!(job = %job.id, index, ?error, "stored item of a job is unreadable");
                let later = values![job.id.as_str(), index, self.lease_until.as_millis()];
                db.execute(POSTPONE_ITEM, &later).await?;
                return Ok(None);
            }
            item => item?,
        };
        let claimed = values![
            job.id.as_str(),
            index,
            self.lease_until.as_millis(),
            column(item.claim.number)?,
            item.interruptions,
            item.failing_since.map(Timestamp::as_millis),
        ];
        db.execute(CLAIM_ITEM, &claimed).await?;
        job.start_item(was_running);
        update_job(db, job).await?;
        pass_turn(db, job).await?;
        Ok(Some(item))
    }

    /// Decodes a due item as it is claimed.
    fn read_item(&self, row: &mut Row, job: &Job, index: i64, was_running: bool) -> DbResult<ClaimedItem> {
        let failing_since = row.take::<Option<i64>>(5)?.map(Timestamp::from_millis);
        let due_at = Timestamp::from_millis(row.take(7)?);
        Ok(ClaimedItem {
            claim: ItemClaim {
                job: job.id.clone(),
                index: number(index)?,
                number: number(row.take::<i64>(3)?.saturating_add(1))?,
            },
            account: job.account.clone(),
            job_created_at: job.created_at,
            language: job.language.clone(),
            is_cancelled: job.status == JobStatus::Cancelled,
            video: video(row.get(1)?)?,
            attempts: row.take(4)?,
            interruptions: row.take::<u32>(6)?.saturating_add(u32::from(was_running)),
            failing_since: ItemClaim::failing_since(failing_since, due_at, self.now),
        })
    }
}

/// Jobs, and their items, that are due after `latest`, in milliseconds, are due at that time.
pub(super) struct LimitDueTx {
    pub(super) latest: i64,
}

impl WriteTx for LimitDueTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        db.execute(LIMIT_DUE_OF_JOBS, &values![self.latest]).await?;
        db.execute(LIMIT_DUE_OF_ITEMS, &values![self.latest]).await?;
        Ok(())
    }
}

/// The next turn of the job's account comes after those of all others.
pub(super) async fn pass_turn<S: Session>(db: &mut S, job: &Job) -> DbResult<()> {
    let last = db.row(LAST_TURN, &[]).await?;
    let last = last.map_or(Ok(0), |mut row| row.take::<i64>(0))?;
    let turn = last.saturating_add(1);
    db.execute(SET_TURN, &values![job.id.as_str(), turn]).await?;
    db.execute(SET_TURN_OF_ACCOUNT, &values![job.account.as_str(), turn]).await?;
    Ok(())
}

/// When the next item of a job is due.
pub(super) async fn next_due<S: Session>(db: &mut S, id: &JobId) -> DbResult<Option<Timestamp>> {
    let mut row = db.only_row(NEXT_DUE, &values![id.as_str()]).await?;
    Ok(row.take::<Option<i64>>(0)?.map(Timestamp::from_millis))
}

/// Position and number of a claim as columns.
pub(super) fn claim_columns(claim: &ItemClaim) -> Result<(i64, i64)> {
    Ok((column(claim.index)?, column(claim.number)?))
}

/// Ends a claimed item.
pub(super) struct EndItemTx {
    pub(super) claim: ItemClaim,
    pub(super) outcome: ItemOutcome,
    pub(super) now: Timestamp,
}

impl WriteTx for EndItemTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let Some(mut job) = lock_job(db, &self.claim.job).await? else { return Ok(false) };
        let ((index, number), failure) = (claim_columns(&self.claim)?, self.outcome.failure());
        let row = values![
            self.claim.job.as_str(),
            index,
            number,
            self.outcome.status().as_str(),
            failure.map(|failure| failure.reason.as_str()),
            failure.map(|failure| failure.message.as_str()),
            column(self.outcome.spent())?,
        ];
        if db.execute(END_ITEM, &row).await? == 0 {
            return Ok(false);
        }
        let before = job.status;
        job.end_item(&self.outcome, self.now);
        change_job(db, &job, before, self.now).await?;
        Ok(true)
    }
}

/// Returns a claimed item to the queue.
pub(super) struct ReturnItemTx {
    pub(super) claim: ItemClaim,
    pub(super) returned: ItemReturn,
    pub(super) now: Timestamp,
}

impl WriteTx for ReturnItemTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let Some(mut job) = lock_job(db, &self.claim.job).await? else { return Ok(false) };
        let (index, number) = claim_columns(&self.claim)?;
        let (due_at, attempts) = (self.returned.due_at.as_millis(), i64::from(self.returned.is_attempt));
        let (is_failure, now) = (i64::from(self.returned.is_failure), self.now.as_millis());
        let pause = due_at.saturating_sub(now).max(0);
        let row = values![self.claim.job.as_str(), index, number, due_at, attempts, is_failure, now, pause];
        if db.execute(RETURN_ITEM, &row).await? == 0 {
            return Ok(false);
        }
        let before = job.status;
        job.return_item(&self.returned);
        change_job(db, &job, before, self.now).await?;
        Ok(true)
    }
}
