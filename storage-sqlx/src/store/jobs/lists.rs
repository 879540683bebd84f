//! The lists of jobs: claims of pages, and the items that they add.

use transcript_core::{
    Timestamp,
    accounts::jobs::{ClaimedListing, ItemClaim, Job, ListingClaim, ListingOutcome, NewItem},
    supplier::ListPosition,
    video::VideoId,
};

use super::{
    SKIP_ITEMS,
    claim::pass_turn,
    events::change_job,
    insert_items,
    rows::{job_columns, lock_job, read_due_job, take_number, update_job},
};
use crate::{
    codec::column,
    error::{DbResult, corrupt},
    sql::{Row, Session, Statement, WriteTx, sql, values},
};

/// The due job whose turn it is, without the lists whose addresses begin with one of `$2`.
macro_rules! due_listing {
    ($columns:expr, $prefixes:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM jobs WHERE due_at <= $1 AND status = 'listing' AND NOT EXISTS (SELECT 1 FROM ",
            $prefixes,
            " WHERE substr(list, 1, length(busy.value)) = busy.value) ORDER BY turn, id LIMIT 1"
        )
    };
}
/// Whether a page may be due. A read, so that an idle server writes nothing.
pub(super) const IS_LISTING_DUE: Statement = sql! {
    sqlite: due_listing!("1", "json_each($2) AS busy"),
    postgres: due_listing!("1", "unnest($2::TEXT[]) AS busy (value)"),
};
/// The job whose turn it is. On PostgreSQL it skips jobs that another server changes.
pub(super) const PICK_LISTING: Statement = sql! {
    sqlite: due_listing!(job_columns!(), "json_each($2) AS busy"),
    postgres: concat!(
        due_listing!(job_columns!(), "unnest($2::TEXT[]) AS busy (value)"),
        " FOR UPDATE SKIP LOCKED"
    ),
};
const ADD_CLAIM: &str = "INSERT INTO job_lists (job, claims, attempts) VALUES ($1, 1, 0)
    ON CONFLICT (job) DO UPDATE SET claims = job_lists.claims + 1";
const FIND_LISTING: &str =
    "SELECT claims, position, attempts, failing_since, open_claims FROM job_lists WHERE job = $1";
/// Counts a claim of a page that was read from its row.
const COUNT_CLAIM: &str = "UPDATE job_lists SET open_claims = $2, failing_since = $3 WHERE job = $1";
const EXTEND_LISTING: &str = "UPDATE jobs SET due_at = $3 WHERE id = $1 AND status = 'listing'
    AND EXISTS (SELECT 1 FROM job_lists WHERE job = $1 AND claims = $2)";
/// Ends a claim: a later effect of it is void. `$6` is the time until the page is due.
const END_CLAIM: &str = "UPDATE job_lists SET claims = claims + 1, attempts = attempts + $3, open_claims = 0,
        failing_since = CASE WHEN $3 = 1 THEN NULL WHEN $4 = 0 THEN failing_since + $6
            WHEN failing_since <= $5 THEN failing_since ELSE $5 END
    WHERE job = $1 AND claims = $2";
/// Ends the failures of a list before a pause.
pub(super) const END_FAILURES: &str = "UPDATE job_lists SET failing_since = NULL WHERE job = $1";
const SET_POSITION: &str =
    "UPDATE job_lists SET position = $2, attempts = 0, failing_since = NULL WHERE job = $1";
const VIDEOS: &str = "SELECT video FROM job_items WHERE job = $1 AND video IS NOT NULL";
/// Deletes how far a list was read.
pub(super) const CLOSE_LIST: &str = "DELETE FROM job_lists WHERE job = $1";

/// Frequent statements, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(super) const INDEXED_STATEMENTS: [&str; 9] = [
    ADD_CLAIM,
    FIND_LISTING,
    COUNT_CLAIM,
    EXTEND_LISTING,
    END_CLAIM,
    END_FAILURES,
    SET_POSITION,
    VIDEOS,
    CLOSE_LIST,
];

/// Claims a page of the list whose turn it is.
pub(super) struct ClaimListingTx {
    pub(super) now: Timestamp,
    pub(super) lease_until: Timestamp,
    /// The beginnings of addresses of lists that are left out.
    pub(super) busy: Vec<&'static str>,
}

impl WriteTx for ClaimListingTx {
    type Outcome = Option<ClaimedListing>;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Option<ClaimedListing>> {
        let due = values![self.now.as_millis(), self.busy.clone()];
        loop {
            let Some(row) = db.row(PICK_LISTING, &due).await? else { return Ok(None) };
            let Some(mut job) = read_due_job(db, row, self.lease_until).await? else { continue };
            let due_at = job.due_at.unwrap_or(self.now);
            job.delay_list(self.lease_until);
            update_job(db, &job).await?;
            pass_turn(db, &job).await?;
            db.execute(ADD_CLAIM, &values![job.id.as_str()]).await?;
            let row = db.row(FIND_LISTING, &values![job.id.as_str()]).await?;
            let id = job.id.clone();
            match read_listing(job, row) {
                // It must not stop the lists of other jobs.
                Err(error) if error.is_damaged() => {
                    tracing::error!(job = %id, ?error, "stored list of a job is unreadable");
                }
                listing => {
                    let mut listing = listing?;
                    listing.failing_since = ItemClaim::failing_since(listing.failing_since, due_at, self.now);
                    let since = listing.failing_since.map(Timestamp::as_millis);
                    let row = values![id.as_str(), listing.interruptions.saturating_add(1), since];
                    db.execute(COUNT_CLAIM, &row).await?;
                    return Ok(Some(listing));
                }
            }
        }
    }
}

/// Decodes a claimed list of a job.
fn read_listing(job: Job, row: Option<Row>) -> DbResult<ClaimedListing> {
    let missing = || corrupt("a stored job that reads a list has none");
    let (list, mut row) = job.list.zip(row).ok_or_else(missing)?;
    let position = row.take::<Option<String>>(1)?;
    let too_long = || corrupt("a stored position of a list is too long");
    Ok(ClaimedListing {
        claim: ListingClaim { job: job.id, number: take_number(&mut row, 0)? },
        account: job.account,
        job_created_at: job.created_at,
        list,
        items: job.counts.total,
        position: position.map(|text| ListPosition::new(text).ok_or_else(too_long)).transpose()?,
        attempts: row.take(2)?,
        interruptions: row.take(4)?,
        failing_since: row.take::<Option<i64>>(3)?.map(Timestamp::from_millis),
    })
}

/// Extends the claim of a page.
///
/// It locks the job first: one statement would wait for the end of the claim, still find the claim in its snapshot, and
/// replace the due time of the next page.
pub(super) struct ExtendListingTx {
    pub(super) claim: ListingClaim,
    pub(super) lease_until: Timestamp,
}

impl WriteTx for ExtendListingTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let Some(job) = lock_job(db, &self.claim.job).await? else { return Ok(false) };
        let row = values![job.id.as_str(), column(self.claim.number)?, self.lease_until.as_millis()];
        Ok(db.execute(EXTEND_LISTING, &row).await? > 0)
    }
}

/// Ends the claim of a page.
pub(super) struct EndListingTx {
    pub(super) claim: ListingClaim,
    pub(super) outcome: ListingOutcome,
    pub(super) now: Timestamp,
}

impl WriteTx for EndListingTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let Some(mut job) = lock_job(db, &self.claim.job).await? else { return Ok(false) };
        let (due_at, is_failure, is_attempt) = match &self.outcome {
            ListingOutcome::Again { due_at, is_failure, is_attempt } => (*due_at, *is_failure, *is_attempt),
            ListingOutcome::Page { .. } | ListingOutcome::Failed(_) | ListingOutcome::Paused { .. } => {
                (self.now, false, false)
            }
        };
        let (due_at, now) = (due_at.as_millis(), self.now.as_millis());
        let row = values![
            job.id.as_str(),
            column(self.claim.number)?,
            i64::from(is_attempt),
            i64::from(is_failure),
            now,
            due_at.saturating_sub(now).max(0),
        ];
        if !job.is_list_open() || db.execute(END_CLAIM, &row).await? == 0 {
            return Ok(false);
        }
        let before = job.status;
        match &self.outcome {
            ListingOutcome::Page { videos, next } => {
                self.add_page(db, &mut job, videos, next.as_ref()).await?;
            }
            ListingOutcome::Failed(failure) => {
                let skipped = db.execute(SKIP_ITEMS, &values![job.id.as_str()]).await?;
                job.fail_list(failure.clone(), skipped, self.now);
            }
            ListingOutcome::Again { due_at, .. } => job.delay_list(*due_at),
            ListingOutcome::Paused { reason, due_at } => job.pause_list(*reason, *due_at),
        }
        if !job.is_list_open() {
            db.execute(CLOSE_LIST, &values![job.id.as_str()]).await?;
        }
        change_job(db, &job, before, self.now).await?;
        Ok(true)
    }
}

impl EndListingTx {
    async fn add_page<S: Session>(
        &self,
        db: &mut S,
        job: &mut Job,
        videos: &[VideoId],
        next: Option<&ListPosition>,
    ) -> DbResult<()> {
        let known: Vec<String> = db.find(VIDEOS, &values![job.id.as_str()], |row| row.take(0)).await?;
        let new = job.new_videos(videos, known);
        let items: Vec<NewItem> = new.into_iter().map(NewItem::of_video).collect();
        insert_items(db, &job.id, job.counts.total, &items, self.now).await?;
        job.add_page(items.len() as u64, next.is_none(), self.now);
        let position = values![job.id.as_str(), next.map(ListPosition::as_str)];
        db.execute(SET_POSITION, &position).await?;
        Ok(())
    }
}
