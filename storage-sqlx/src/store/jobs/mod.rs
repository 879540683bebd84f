//! The store of jobs.

mod claim;
mod events;
mod lists;
mod rows;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    accounts::jobs::{
        ClaimLimits, ClaimedItem, ClaimedListing, CreateJobOutcome, ItemClaim, ItemOutcome, ItemReturn, Job,
        JobFigures, JobItem, JobLimits, JobStatus, JobStore, ListingClaim, ListingOutcome, NewItem,
        PauseReason,
    },
    ids::{AccountId, Cursor, JobId},
    time::LEASE_MAX,
    video::{Platform, VideoList},
};

use claim::{
    ClaimTx, EXTEND_CLAIM, EndItemTx, IS_DUE, IS_DUE_TOO_LATE, LimitDueTx, ReturnItemTx, claim_columns,
    next_due,
};
use events::{DELETE_SECRET, END_DELIVERIES, change_job, delete_events, record_event};
use lists::{CLOSE_LIST, ClaimListingTx, END_FAILURES, EndListingTx, ExtendListingTx, IS_LISTING_DUE};
use rows::{
    FIND_JOB, find_readable, insert_job, job_columns, lock_job, read_due_job, read_job, read_listed_item,
    read_listed_job, take_number, update_job,
};

use super::{Queues, Store};
use crate::{
    codec::{column, one_more},
    error::DbResult,
    sql::{Database, Session, Statement, Value, WriteTx, sql, values},
};

/// Items in one statement on a server.
const INSERT_BATCH: usize = 1_000;
/// Most jobs deleted in one call.
const DELETE_MAX: u32 = 100;

/// On PostgreSQL it locks the account, so that concurrent requests respect the limit.
const LOCK_ACCOUNT: Statement = sql! {
    sqlite: "SELECT 1 FROM accounts WHERE id = $1",
    postgres: "SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE",
};
const COUNT_JOBS: &str = "SELECT count(*), coalesce(sum(CASE WHEN ended_at IS NULL THEN 1 ELSE 0 END), 0),
    coalesce(max(CASE WHEN due_at IS NOT NULL THEN turn ELSE 0 END), 0) FROM jobs WHERE account = $1";
/// A cancelled job with items that had started is due.
const OLDEST_ENDED: &str =
    "SELECT id FROM jobs WHERE account = $1 AND ended_at IS NOT NULL AND due_at IS NULL
    ORDER BY created_at, id LIMIT $2";
const INSERT_ITEMS: Statement = sql! {
    sqlite: "INSERT INTO job_items (job, idx, status, url, video, due_at, claims, attempts, reason, message, spent)
        VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7, $8, 0)",
    postgres: "INSERT INTO job_items (job, idx, status, url, video, due_at, claims, attempts, reason, message, spent)
        SELECT $1, $2 + number - 1, CASE WHEN reason = '' THEN 'queued' ELSE 'failed' END, url, NULLIF(video, ''),
            CASE WHEN reason = '' THEN $3::BIGINT END, 0, 0, NULLIF(reason, ''), NULLIF(message, ''), 0
        FROM unnest($4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[])
            WITH ORDINALITY AS items (url, video, reason, message, number)",
};
const JOBS_OF_ACCOUNT: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs WHERE account = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
);
const ITEMS: &str = "SELECT idx, url, video, status, reason, message, job FROM job_items
    WHERE job = $1 AND idx >= $2 ORDER BY idx LIMIT $3";
/// A queued item that fails may be fetched or charged: it is not skipped.
const SKIP_ITEMS: &str = "UPDATE job_items SET status = 'skipped', due_at = NULL
    WHERE job = $1 AND status = 'queued' AND failing_since IS NULL";
/// Failures of items before a pause begin again at its end. They do not end: a cancellation would skip the items.
const RESTART_ITEM_FAILURES: &str = "UPDATE job_items SET failing_since = $2
    WHERE job = $1 AND failing_since IS NOT NULL AND due_at IS NOT NULL";
/// Whether a pause is to be checked. A read, so that an idle server writes nothing.
const IS_PAUSE_DUE: &str =
    "SELECT 1 FROM jobs WHERE due_at <= $1 AND status = 'paused' ORDER BY turn, id LIMIT 1";
/// By due time: a job that stays paused must not be taken again before others are.
const TAKE_PAUSED: Statement = sql! {
    sqlite: concat!("SELECT ", job_columns!(), " FROM jobs
        WHERE due_at <= $1 AND status = 'paused' ORDER BY due_at, turn, id LIMIT $2"),
    postgres: concat!("SELECT ", job_columns!(), " FROM jobs
        WHERE due_at <= $1 AND status = 'paused' ORDER BY due_at, turn, id LIMIT $2 FOR UPDATE SKIP LOCKED"),
};
const FIGURES: &str = "SELECT status, count(*), CAST(coalesce(sum(total - running - done - failed - skipped), 0) AS BIGINT),
    CAST(coalesce(sum(running), 0) AS BIGINT) FROM jobs WHERE due_at IS NOT NULL AND ended_at IS NULL GROUP BY status";
const UNFINISHED: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs WHERE id > $1 AND due_at IS NOT NULL AND ended_at IS NULL ORDER BY id LIMIT $2"
);
const ENDED_BEFORE: &str =
    "SELECT id FROM jobs WHERE ended_at < $1 AND due_at IS NULL ORDER BY ended_at LIMIT $2";
/// Cancels the jobs of an account at the time 0: [`ENDED_BEFORE`] finds them first. It does not wait for a deletion of
/// those that were discarded before.
const DISCARD_JOBS: &str =
    "UPDATE jobs SET status = 'cancelled', pause_reason = NULL, ended_at = 0, due_at = NULL, list_open = 0
    WHERE account = $1 AND (ended_at IS NULL OR ended_at <> 0)";
/// Ends the claims on their items. It reads those of jobs with running items only.
const END_CLAIMS: &str = "UPDATE job_items SET status = 'skipped', due_at = NULL
    WHERE job IN (SELECT id FROM jobs WHERE account = $1 AND running > 0)
        AND due_at IS NOT NULL AND status = 'running'";
const DELETE_ITEMS: &str = "DELETE FROM job_items WHERE job = $1";
const DELETE_JOB: &str = "DELETE FROM jobs WHERE id = $1";

/// Frequent statements, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&[&str]; 4] = [
    &[
        FIND_JOB,
        COUNT_JOBS,
        OLDEST_ENDED,
        JOBS_OF_ACCOUNT,
        ITEMS,
        ENDED_BEFORE,
        DISCARD_JOBS,
        END_CLAIMS,
        DELETE_ITEMS,
        DELETE_JOB,
    ],
    &claim::INDEXED_STATEMENTS,
    &events::INDEXED_STATEMENTS,
    &lists::INDEXED_STATEMENTS,
];
/// Statements that read an index in order, up to the first row that fits, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const ORDERED_STATEMENTS: [(Statement, &str); 6] = [
    (IS_DUE, "jobs_to_claim"),
    (claim::PICK_JOB, "jobs_to_claim"),
    (IS_LISTING_DUE, "jobs_to_list"),
    (lists::PICK_LISTING, "jobs_to_list"),
    (events::PICK_EVENT[0], "job_events_new"),
    (events::PICK_EVENT[1], "job_events_again"),
];

struct CreateJobTx {
    job: Job,
    items: Vec<NewItem>,
    limits: JobLimits,
}

impl WriteTx for CreateJobTx {
    type Outcome = CreateJobOutcome;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<CreateJobOutcome> {
        let Self { job, items, limits } = self;
        let account = values![job.account.as_str()];
        db.row(LOCK_ACCOUNT, &account).await?;
        if let Some(mut row) = db.row(FIND_JOB, &values![job.id.as_str()]).await? {
            return Ok(CreateJobOutcome::Exists(Box::new(read_job(&mut row)?)));
        }
        let mut counts = db.only_row(COUNT_JOBS, &account).await?;
        let (stored, unfinished) = (counts.take::<u64>(0)?, counts.take::<u64>(1)?);
        if unfinished >= u64::from(limits.unfinished) {
            return Ok(CreateJobOutcome::TooMany);
        }
        let extra = (stored + 1).saturating_sub(u64::from(limits.stored)).min(u64::from(DELETE_MAX));
        if extra > 0 {
            let oldest = values![job.account.as_str(), column(extra)?];
            delete_jobs(db, OLDEST_ENDED.into(), &oldest).await?;
        }
        if insert_job(db, job, counts.take(2)?).await? == 0 {
            let mut row = db.only_row(FIND_JOB, &values![job.id.as_str()]).await?;
            return Ok(CreateJobOutcome::Exists(Box::new(read_job(&mut row)?)));
        }
        insert_items(db, &job.id, 0, items, job.created_at).await?;
        record_event(db, job, JobStatus::Queued, job.created_at).await?;
        Ok(CreateJobOutcome::Created)
    }
}

/// Stores new items from a position on: in batches on a server, one by one in a file.
async fn insert_items<S: Session>(
    db: &mut S,
    job: &JobId,
    first: u64,
    items: &[NewItem],
    now: Timestamp,
) -> DbResult<()> {
    let names: Vec<String> =
        items.iter().map(|item| item.video.as_ref().map_or(String::new(), ToString::to_string)).collect();
    let (first, now) = (column(first)?, now.as_millis());
    if !S::IS_REMOTE {
        for ((index, item), name) in items.iter().enumerate().zip(&names) {
            let (status, failure) = match &item.video {
                Ok(_) => ("queued", None),
                Err(failure) => ("failed", Some(failure)),
            };
            let row = values![
                job.as_str(),
                first.saturating_add(column(index as u64)?),
                status,
                &item.url,
                Some(name).filter(|name| !name.is_empty()),
                Some(now).filter(|_| failure.is_none()),
                failure.map(|failure| failure.reason.as_str()),
                failure.map(|failure| failure.message.as_str()),
            ];
            db.execute(INSERT_ITEMS, &row).await?;
        }
        return Ok(());
    }
    for (batch, (items, names)) in items.chunks(INSERT_BATCH).zip(names.chunks(INSERT_BATCH)).enumerate() {
        let failures = || items.iter().map(|item| item.video.as_ref().err());
        let row = [
            Value::from(job.as_str()),
            Value::from(first.saturating_add(column((batch * INSERT_BATCH) as u64)?)),
            Value::from(now),
            Value::from(items.iter().map(|item| item.url.as_str()).collect::<Vec<_>>()),
            Value::from(names.iter().map(String::as_str).collect::<Vec<_>>()),
            Value::from(failures().map(|found| found.map_or("", |found| &found.reason)).collect::<Vec<_>>()),
            Value::from(failures().map(|found| found.map_or("", |found| &found.message)).collect::<Vec<_>>()),
        ];
        db.execute(INSERT_ITEMS, &row).await?;
    }
    Ok(())
}

/// Deletes the jobs whose ids a statement finds; returns their number.
async fn delete_jobs<S: Session>(db: &mut S, ids: Statement, values: &[Value<'_>]) -> DbResult<u64> {
    let mut count = 0;
    for id in db.find(ids, values, |row| row.take::<String>(0)).await? {
        db.execute(DELETE_ITEMS, &values![&id]).await?;
        db.execute(CLOSE_LIST, &values![&id]).await?;
        delete_events(db, &id).await?;
        count += db.execute(DELETE_JOB, &values![&id]).await?;
    }
    Ok(count)
}

struct CancelJobTx {
    id: JobId,
    now: Timestamp,
}

impl WriteTx for CancelJobTx {
    type Outcome = Option<Job>;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Option<Job>> {
        let Some(mut job) = lock_job(db, &self.id).await? else { return Ok(None) };
        if !job.status.has_ended() {
            let skipped = db.execute(SKIP_ITEMS, &values![self.id.as_str()]).await?;
            let (due_at, before) = (next_due(db, &self.id).await?, job.status);
            job.cancel(skipped, due_at, self.now);
            db.execute(CLOSE_LIST, &values![self.id.as_str()]).await?;
            change_job(db, &job, before, self.now).await?;
        }
        Ok(Some(job))
    }
}

struct TakePausedTx {
    now: Timestamp,
    next_check: Timestamp,
    limit: u32,
}

impl WriteTx for TakePausedTx {
    type Outcome = Vec<Job>;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Vec<Job>> {
        let mut jobs = Vec::new();
        for row in db.rows(TAKE_PAUSED, &values![self.now.as_millis(), self.limit]).await? {
            let Some(job) = read_due_job(db, row, self.next_check).await? else { continue };
            let job = Job { due_at: Some(self.next_check), ..job };
            update_job(db, &job).await?;
            jobs.push(job);
        }
        Ok(jobs)
    }
}

struct PauseJobTx {
    id: JobId,
    now: Timestamp,
}

impl WriteTx for PauseJobTx {
    type Outcome = Option<Job>;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Option<Job>> {
        let Some(mut job) = lock_job(db, &self.id).await? else { return Ok(None) };
        let before = job.status;
        job.pause_by_operator();
        change_job(db, &job, before, self.now).await?;
        Ok(Some(job))
    }
}

struct ResumeJobTx {
    id: JobId,
    reason: PauseReason,
    now: Timestamp,
}

impl WriteTx for ResumeJobTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let Some(mut job) = lock_job(db, &self.id).await? else { return Ok(false) };
        if job.status != JobStatus::Paused || job.pause_reason != Some(self.reason) {
            return Ok(false);
        }
        job.resume(self.now);
        update_job(db, &job).await?;
        let (id, now) = (self.id.as_str(), self.now.as_millis());
        if job.is_list_open() {
            db.execute(END_FAILURES, &values![id]).await?;
        } else {
            db.execute(RESTART_ITEM_FAILURES, &values![id, now]).await?;
        }
        Ok(true)
    }
}

struct DeleteEndedTx {
    before: Timestamp,
    limit: u32,
}

impl WriteTx for DeleteEndedTx {
    type Outcome = u64;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<u64> {
        delete_jobs(db, ENDED_BEFORE.into(), &values![self.before.as_millis(), self.limit]).await
    }
}

/// Ends the jobs of an account, for [`DeleteEndedTx`]: their items may be half a million rows.
struct DiscardJobsTx(AccountId);

impl WriteTx for DiscardJobsTx {
    type Outcome = u64;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<u64> {
        let account = values![self.0.as_str()];
        db.execute(DELETE_SECRET, &account).await?;
        let count = db.execute(DISCARD_JOBS, &account).await?;
        db.execute(END_CLAIMS, &account).await?;
        db.execute(END_DELIVERIES, &account).await?;
        Ok(count)
    }
}

#[async_trait]
impl<D: Database, Q: Queues> JobStore for Store<D, Q> {
    async fn create(&self, job: Job, items: Vec<NewItem>, limits: JobLimits) -> Result<CreateJobOutcome> {
        self.database.run(CreateJobTx { job, items, limits }).await
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>> {
        self.database.find_first(FIND_JOB, &values![id.as_str()], read_job).await
    }

    async fn jobs_of(&self, account: &AccountId, page: PageRequest) -> Result<Page<Job>> {
        let after = page.after.as_ref();
        let (created_at, id) = after.map_or(Ok((i64::MAX, "")), Cursor::to_time_and_id)?;
        let bounds = |(created_at, id): &(i64, String), limit: i64| {
            Vec::from(values![account.as_str().to_owned(), *created_at, id.clone(), limit])
        };
        let (limit, after) = (one_more(&page), (created_at, id.to_owned()));
        let found =
            find_readable(&self.database, JOBS_OF_ACCOUNT, limit, after, bounds, read_listed_job).await?;
        Ok(Page::cut(found, &page, |job| Cursor::time_and_id(job.created_at, &job.id)))
    }

    async fn items(&self, id: &JobId, from: u64, limit: u32) -> Result<Vec<JobItem>> {
        let bounds = |before: &i64, limit: i64| {
            Vec::from(values![id.as_str().to_owned(), before.saturating_add(1), limit])
        };
        let before = column(from)?.saturating_sub(1);
        find_readable(&self.database, ITEMS, i64::from(limit), before, bounds, read_listed_item).await
    }

    async fn claim(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limits: ClaimLimits,
    ) -> Result<Vec<ClaimedItem>> {
        let due = {
            let bounds = values![now.as_millis(), limits.full_accounts()];
            self.database.find_first(IS_DUE, &bounds, |_| Ok(())).await?
        };
        match due {
            Some(()) if limits.items > 0 => self.database.run(ClaimTx { now, lease_until, limits }).await,
            _ => Ok(Vec::new()),
        }
    }

    async fn extend(&self, claim: &ItemClaim, lease_until: Timestamp) -> Result<bool> {
        let (index, number) = claim_columns(claim)?;
        let row = values![claim.job.as_str(), index, number, lease_until.as_millis()];
        Ok(self.database.execute(EXTEND_CLAIM, &row).await? > 0)
    }

    async fn end_item(&self, claim: &ItemClaim, outcome: ItemOutcome, now: Timestamp) -> Result<bool> {
        self.database.run(EndItemTx { claim: claim.clone(), outcome, now }).await
    }

    async fn return_item(&self, claim: &ItemClaim, returned: ItemReturn, now: Timestamp) -> Result<bool> {
        self.database.run(ReturnItemTx { claim: claim.clone(), returned, now }).await
    }

    async fn claim_listing(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        busy: &[Platform],
    ) -> Result<Option<ClaimedListing>> {
        let busy: Vec<_> = busy.iter().filter_map(|platform| VideoList::address_prefix(*platform)).collect();
        let due = {
            let bounds = values![now.as_millis(), busy.clone()];
            self.database.find_first(IS_LISTING_DUE, &bounds, |_| Ok(())).await?
        };
        match due {
            Some(()) => self.database.run(ClaimListingTx { now, lease_until, busy }).await,
            None => Ok(None),
        }
    }

    async fn extend_listing(&self, claim: &ListingClaim, lease_until: Timestamp) -> Result<bool> {
        self.database.run(ExtendListingTx { claim: claim.clone(), lease_until }).await
    }

    async fn end_listing(
        &self,
        claim: &ListingClaim,
        outcome: ListingOutcome,
        now: Timestamp,
    ) -> Result<bool> {
        self.database.run(EndListingTx { claim: claim.clone(), outcome, now }).await
    }

    async fn cancel(&self, id: &JobId, now: Timestamp) -> Result<Option<Job>> {
        self.database.run(CancelJobTx { id: id.clone(), now }).await
    }

    async fn take_paused(&self, now: Timestamp, next_check: Timestamp, limit: u32) -> Result<Vec<Job>> {
        let latest = now.plus(LEASE_MAX).as_millis();
        if self.database.find_first(IS_DUE_TOO_LATE, &values![latest], |_| Ok(())).await?.is_some() {
            self.database.run(LimitDueTx { latest }).await?;
        }
        if self.database.find(IS_PAUSE_DUE, &values![now.as_millis()], |_| Ok(())).await?.is_empty() {
            return Ok(Vec::new());
        }
        self.database.run(TakePausedTx { now, next_check, limit }).await
    }

    async fn resume(&self, id: &JobId, reason: PauseReason, now: Timestamp) -> Result<bool> {
        self.database.run(ResumeJobTx { id: id.clone(), reason, now }).await
    }

    async fn pause(&self, id: &JobId, now: Timestamp) -> Result<Option<Job>> {
        self.database.run(PauseJobTx { id: id.clone(), now }).await
    }

    async fn unfinished(&self, page: PageRequest) -> Result<Page<Job>> {
        let bounds = |(_, id): &(i64, String), limit: i64| Vec::from(values![id.clone(), limit]);
        let after = (0, page.after.as_ref().map_or("", Cursor::as_str).to_owned());
        let limit = one_more(&page);
        let found = find_readable(&self.database, UNFINISHED, limit, after, bounds, read_listed_job).await?;
        Ok(Page::cut(found, &page, |job| job.id.as_str().to_owned()))
    }

    async fn figures(&self) -> Result<Vec<JobFigures>> {
        let decode = |row: &mut crate::sql::Row| {
            let name: &str = row.get(0)?;
            let Some(status) = JobStatus::from_name(name) else {
                tracing::error!(status = name, "stored job has an unknown state");
                return Ok(None);
            };
            let (jobs, queued_items) = (take_number(row, 1)?, take_number(row, 2)?);
            Ok(Some(JobFigures { status, jobs, queued_items, running_items: take_number(row, 3)? }))
        };
        Ok(self.database.find(FIGURES, &[], decode).await?.into_iter().flatten().collect())
    }

    async fn delete_ended(&self, before: Timestamp, limit: u32) -> Result<u64> {
        let limit = limit.min(DELETE_MAX);
        let due = values![before.as_millis(), limit];
        if self.database.find(ENDED_BEFORE, &due, |_| Ok(())).await?.is_empty() {
            return Ok(0);
        }
        self.database.run(DeleteEndedTx { before, limit }).await
    }

    async fn discard_for_account(&self, account: &AccountId) -> Result<u64> {
        self.database.run(DiscardJobsTx(account.clone())).await
    }
}
