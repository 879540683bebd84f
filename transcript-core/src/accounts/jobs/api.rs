//! Requests about jobs.

use std::sync::Arc;

use super::{
    AccountJobs, CreateJobOutcome, ItemFailure, Job, JobItem, JobParams, NewItem,
    source::{JobSource, add_message, new_items},
};
use crate::{
    accounts::{
        RequestGuard, StoredResponse, V1Error,
        charge::derive_id,
        idempotency_lease::{KEY_OF_OTHER_REQUEST, REPEAT_WINDOW},
        transcript::{LanguagePreference, without_english},
        webhooks::check_callback_url,
    },
    archive::TrackSelector,
    debug_fields,
    directory::Account,
    engine::FailureReason,
    error::{Error, ErrorKind, Result},
    ids::{AccountId, Cursor, JobId},
    limits::{HOUR_MS, LimitRequest, MINUTE_MS},
    page::{Page, PageRequest},
    supplier::missing_lister,
    time::Timestamp,
    transcript::{LanguageTag, TrackInfo, best_track},
    video::Platform,
};

/// The message of a server that reads no lists of YouTube.
const NO_LISTER: &str = "This server does not read playlists, channels and searches: none of its sources requests \
                         YouTube itself. Send the links of the videos in urls.";
/// The longest id of a job in a request.
const ID_MAX: usize = 64;
/// Pages of lists that an account may read outside its jobs in a minute: those of one long list.
const LIST_PAGES_PER_MINUTE: u32 = 30;
/// The same in an hour. The platform is requested once a second at most, for all accounts and jobs.
const LIST_PAGES_PER_HOUR: u32 = 300;

/// A job for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// The job.
    pub job: Job,
    /// The credits that the account has left.
    pub credits_remaining: u64,
    /// The credits that the items which have not ended cost at most; while its list is read, those found so far.
    pub credits_estimate: u64,
}

/// A created job, whose response is to be delivered.
pub struct CreatedJob {
    guard: RequestGuard,
    /// The job.
    pub view: JobView,
}

debug_fields!(CreatedJob { guard, view });

impl CreatedJob {
    /// Delivers the response; see [`RequestGuard::deliver`].
    ///
    /// # Errors
    /// As [`RequestGuard::deliver`]. The job stays: a repeat with the same key returns it.
    pub async fn deliver(self, response: StoredResponse) -> Result<StoredResponse, V1Error> {
        self.guard.deliver(response).await
    }
}

/// A page of an account's jobs.
#[derive(Clone, Debug)]
pub struct JobPage {
    /// The jobs, the newest first.
    pub jobs: Vec<JobView>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<Cursor>,
}

/// A page of a job's items.
#[derive(Clone, Debug)]
pub struct ResultsPage {
    /// The job.
    pub job: Job,
    /// The items, in order.
    pub items: Vec<JobItem>,
    /// The position of the next item; `None` after the last one.
    pub next: Option<u64>,
}

/// Largest page of jobs, and of the items of a job.
pub const PAGE_MAX: u32 = 100;

impl ResultsPage {
    /// The position of the first item of the page that a cursor names.
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] if it is no cursor of items.
    pub fn position(cursor: &str) -> Result<u64, V1Error> {
        let is_plain = cursor.bytes().all(|byte| byte.is_ascii_digit());
        let from = cursor.parse::<u32>().ok().filter(|_| is_plain);
        from.map(u64::from).ok_or_else(bad_cursor)
    }
}

impl AccountJobs {
    /// Checks the number of items that a caller requests at once: from 1 to `max`.
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] for any other number.
    pub fn check_limit(limit: u32, max: u32) -> Result<(), V1Error> {
        if (1..=max).contains(&limit) {
            return Ok(());
        }
        Err(V1Error::BadRequest(format!("limit: it must be a number from 1 to {max}")))
    }

    /// Counts a page of a list that an account reads outside its jobs.
    ///
    /// # Errors
    /// [`V1Error::RateLimited`] after 30 pages in a minute or 300 in an hour; [`V1Error::Internal`].
    pub async fn count_list_page(self: &Arc<Self>, account: &AccountId) -> Result<(), V1Error> {
        let (jobs, account) = (Arc::clone(self), account.clone());
        let work = async move {
            let limits = vec![
                LimitRequest::one(format!("list-minute/{account}"), LIST_PAGES_PER_MINUTE, MINUTE_MS),
                LimitRequest::one(format!("list-hour/{account}"), LIST_PAGES_PER_HOUR, HOUR_MS),
            ];
            match jobs.credits.limits.acquire(limits, jobs.context.now()).await? {
                None => Ok(()),
                Some(retry_after_ms) => {
                    const REASON: &str = "This account has read too many pages of lists";
                    Err(V1Error::rate_limited(REASON, retry_after_ms))
                }
            }
        };
        self.context.task(work).await
    }

    /// Creates a job of a request's account.
    ///
    /// Links of the same video are one item. A repeat with the same idempotency key within 23 hours creates no second
    /// job.
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] without exactly one source of videos, for more links than `limits.items_per_job`, a text
    /// that names no list, a list on a server that reads none, or an invalid language; [`V1Error::RateLimited`] if the
    /// account has too many unfinished jobs; [`V1Error::Unauthorized`] if it was erased; [`V1Error::Internal`].
    ///
    /// # Cancellation
    /// The job is created or not.
    pub async fn create(
        self: &Arc<Self>,
        guard: RequestGuard,
        params: JobParams,
    ) -> Result<CreatedJob, V1Error> {
        let jobs = Arc::clone(self);
        let work = async move {
            match jobs.create_job(&guard, params).await {
                Ok(view) => Ok(CreatedJob { guard, view }),
                Err(error) => Err(guard.reject(error).await),
            }
        };
        self.context.task(work).await
    }

    async fn create_job(&self, guard: &RequestGuard, params: JobParams) -> Result<JobView, V1Error> {
        let source = params.source(self.context.options.items_per_job)?;
        let names_limit = params.limit.is_some();
        if let JobSource::List(list) = &source
            && !self.context.transcripts.has_video_lister(list.list.platform())
        {
            let message = match list.list.platform() {
                Platform::YouTube => NO_LISTER,
                other => missing_lister(other),
            };
            return Err(V1Error::BadRequest(message.to_owned()));
        }
        LanguagePreference::parse(params.lang.as_deref())?;
        if let Some(url) = &params.callback_url {
            check_callback_url(url, self.context.options.private_webhooks)
                .map_err(|wrong| V1Error::BadRequest(format!("callback_url: {wrong}")))?;
        }
        let account = &guard.caller().account;
        let (account_id, now) = (account.id.clone(), self.context.now());
        let (id, earlier) = job_ids(guard.work_id(), now);
        let (job, items) = match source {
            JobSource::Links(urls) => {
                let items = new_items(urls);
                (Job::new(id, account_id, params.lang, &items, now), items)
            }
            JobSource::List(list) => (Job::of_list(id, account_id, params.lang, list, now), Vec::new()),
        };
        let job = Job { callback_url: params.callback_url, ..job };
        if guard.has_idempotency_key()
            && let Some(stored) = self.find_earlier(&account.id, &earlier, now).await?
        {
            self.check_same_request(&stored, &job, &items, names_limit).await?;
            return self.view(account, stored).await;
        }
        let limits = self.limits();
        let create = || self.store.create(job.clone(), items.clone(), limits);
        let created = self.context.retry_store(create).await.map_err(V1Error::from_store_error)?;
        let job = match created {
            CreateJobOutcome::Created => job,
            CreateJobOutcome::Exists(stored) if stored.account == account.id => {
                self.check_same_request(&stored, &job, &items, names_limit).await?;
                *stored
            }
            CreateJobOutcome::Exists(_) => return Err(not_found()),
            CreateJobOutcome::TooMany => return Err(too_many(limits.unfinished)),
        };
        self.discard_if_erased(account).await?;
        self.wake.notify_one();
        self.view(account, job).await
    }

    /// The job that an earlier attempt at the request stored under one of these ids.
    async fn find_earlier(
        &self,
        account: &AccountId,
        ids: &[JobId],
        now: Timestamp,
    ) -> Result<Option<Job>, V1Error> {
        for id in ids {
            let found = self.context.retry_store(|| self.store.job(id)).await;
            let is_repeated =
                |job: &Job| job.account == *account && now.since(job.created_at) < REPEAT_WINDOW;
            if let Some(stored) = found.map_err(V1Error::from_store_error)?.filter(is_repeated) {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// Checks that a stored job is of the same request as a new one with these items.
    ///
    /// The idempotency store compares bodies, but it deletes the key of a request without a response.
    async fn check_same_request(
        &self,
        stored: &Job,
        job: &Job,
        items: &[NewItem],
        names_limit: bool,
    ) -> Result<(), V1Error> {
        // The items of a list are added later.
        let limit = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let found = self.context.retry_store(|| self.store.items(&stored.id, 0, limit)).await;
        let found = found.map_err(V1Error::from_store_error)?;
        let is_requested = |item: &JobItem| {
            let new = usize::try_from(item.index).ok().and_then(|index| items.get(index));
            new.is_some_and(|new| new.url == item.url)
        };
        if stored.is_same_request(job, names_limit) && found.iter().all(is_requested) {
            return Ok(());
        }
        Err(V1Error::BadRequest(KEY_OF_OTHER_REQUEST.to_owned()))
    }

    /// Discards the jobs of an account that was erased after the request was admitted.
    ///
    /// A job that was stored before the erasure is deleted by the erasure.
    async fn discard_if_erased(&self, account: &Account) -> Result<(), V1Error> {
        if self.account(&account.id).await.map_err(V1Error::from_store_error)?.is_some() {
            return Ok(());
        }
        let discarded = self.context.retry_store(|| self.store.discard_for_account(&account.id)).await;
        discarded.map_err(V1Error::from_store_error)?;
        Err(V1Error::Unauthorized("The account was deleted.".to_owned()))
    }

    /// A job of the request's account.
    ///
    /// # Errors
    /// [`V1Error::NotFound`], also for a job of another account; [`V1Error::Internal`].
    pub async fn job(self: &Arc<Self>, guard: RequestGuard, id: &str) -> Result<JobView, V1Error> {
        let (jobs, id) = (Arc::clone(self), id.to_owned());
        let work = async move {
            let account = &guard.caller().account;
            let job = jobs.own_job(account, &id).await?;
            jobs.view(account, job).await
        };
        self.context.task(work).await
    }

    /// The jobs of the request's account, the newest first; at most [`PAGE_MAX`].
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] for an invalid limit or a cursor of another list; [`V1Error::Internal`].
    pub async fn list(self: &Arc<Self>, guard: RequestGuard, page: PageRequest) -> Result<JobPage, V1Error> {
        Self::check_limit(page.limit, PAGE_MAX)?;
        let jobs = Arc::clone(self);
        let work = async move {
            let account = &guard.caller().account;
            let found = jobs.context.retry_store(|| jobs.store.jobs_of(&account.id, page.clone())).await;
            let Page { items, next } = found.map_err(|error| match error.kind() {
                ErrorKind::Invalid => bad_cursor(),
                _ => V1Error::from_store_error(error),
            })?;
            let remaining = jobs.credits_left(account).await?;
            let jobs = items.into_iter().map(|job| jobs.view_with(remaining, job)).collect();
            Ok(JobPage { jobs, next })
        };
        self.context.task(work).await
    }

    /// The newest jobs of an account.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn newest(self: &Arc<Self>, account: &Account, limit: u32) -> Result<Vec<Job>, V1Error> {
        let (jobs, account) = (Arc::clone(self), account.id.clone());
        let work = async move {
            let page = PageRequest { limit, ..PageRequest::first() };
            let found = jobs.context.retry_store(|| jobs.store.jobs_of(&account, page.clone())).await;
            Ok(found.map_err(V1Error::from_store_error)?.items)
        };
        self.context.task(work).await
    }

    /// Cancels a job of an account: items that have not started cost nothing. A job that has ended is unchanged.
    ///
    /// # Errors
    /// [`V1Error::NotFound`], also for a job of another account; [`V1Error::Internal`].
    pub async fn cancel_for(self: &Arc<Self>, account: &Account, id: &str) -> Result<Job, V1Error> {
        let (jobs, account, id) = (Arc::clone(self), account.clone(), id.to_owned());
        self.context.task(async move { jobs.cancel_own(&account, &id).await }).await
    }

    /// Cancels a job: items that have not started cost nothing. A job that has ended is unchanged.
    ///
    /// # Errors
    /// As [`AccountJobs::job`].
    pub async fn cancel(self: &Arc<Self>, guard: RequestGuard, id: &str) -> Result<JobView, V1Error> {
        let (jobs, id) = (Arc::clone(self), id.to_owned());
        let work = async move {
            let account = &guard.caller().account;
            let job = jobs.cancel_own(account, &id).await?;
            jobs.view(account, job).await
        };
        self.context.task(work).await
    }

    /// Items of a job of the request's account, beginning with position `from`; at most [`PAGE_MAX`].
    ///
    /// # Errors
    /// [`V1Error::BadRequest`] for an invalid limit; as [`AccountJobs::job`].
    pub async fn results(
        self: &Arc<Self>,
        guard: RequestGuard,
        id: &str,
        from: u64,
        limit: u32,
    ) -> Result<ResultsPage, V1Error> {
        Self::check_limit(limit, PAGE_MAX)?;
        let (jobs, id) = (Arc::clone(self), id.to_owned());
        let work = async move {
            let job = jobs.own_job(&guard.caller().account, &id).await?;
            jobs.results_of(job, from, limit).await
        };
        self.context.task(work).await
    }

    /// The items that follow those of a page.
    ///
    /// # Errors
    /// [`V1Error::NotFound`] if the job was deleted since; [`V1Error::Internal`].
    pub async fn next_results(
        self: &Arc<Self>,
        job: Job,
        from: u64,
        limit: u32,
    ) -> Result<ResultsPage, V1Error> {
        let jobs = Arc::clone(self);
        self.context.task(async move { jobs.results_of(job, from, limit).await }).await
    }

    async fn results_of(&self, job: Job, from: u64, limit: u32) -> Result<ResultsPage, V1Error> {
        let found = self.context.retry_store(|| self.store.items(&job.id, from, limit)).await;
        let mut items = found.map_err(V1Error::from_store_error)?;
        items.iter_mut().for_each(add_message);
        // A deleted job has no more items, as one whose last item was read; another one may have its id.
        let stored = self.context.retry_store(|| self.store.job(&job.id)).await;
        let stored = stored.map_err(V1Error::from_store_error)?;
        if stored.is_none_or(|stored| stored.created_at != job.created_at) {
            return Err(not_found());
        }
        let next = items.last().map(|last| last.index.saturating_add(1));
        let next = next.filter(|next| *next < job.counts.total);
        Ok(ResultsPage { job, items, next })
    }

    /// The known tracks of a failed item's video, if it has no transcript in the language of the job; otherwise none.
    pub async fn languages_instead(&self, job: &Job, item: &JobItem) -> Vec<TrackInfo> {
        let has_none = |failure: &ItemFailure| failure.reason == FailureReason::NoCaptions.as_str();
        let Some(video) = item.video.as_ref().filter(|_| item.failure.as_ref().is_some_and(has_none)) else {
            return Vec::new();
        };
        let known = self.context.transcripts.available_tracks(video, &[]).await;
        tracks_instead(job.language.as_deref(), known)
    }

    pub(in crate::accounts) async fn own_job(&self, account: &Account, id: &str) -> Result<Job, V1Error> {
        if id.len() > ID_MAX {
            return Err(not_found());
        }
        let id = JobId::new(id);
        let found = self.context.retry_store(|| self.store.job(&id)).await;
        let found = found.map_err(V1Error::from_store_error)?;
        found.filter(|job| job.account == account.id).ok_or_else(not_found)
    }

    async fn cancel_own(&self, account: &Account, id: &str) -> Result<Job, V1Error> {
        let job = self.own_job(account, id).await?;
        let now = self.context.now();
        let cancelled = self.context.retry_store(|| self.store.cancel(&job.id, now)).await;
        cancelled.map_err(V1Error::from_store_error)?.ok_or_else(not_found)
    }

    async fn credits_left(&self, account: &Account) -> Result<u64, V1Error> {
        let balance = self.credits.balance(account).await;
        Ok(balance.map_err(V1Error::from_store_error)?.remaining)
    }

    /// A job as its owner sees it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if job or account are gone; the stores'.
    pub(in crate::accounts) async fn view_of(&self, id: &JobId) -> Result<JobView> {
        let gone = || Error::not_found("the job is deleted");
        let job = self.context.retry_store(|| self.store.job(id)).await?.ok_or_else(gone)?;
        let account = self.account(&job.account).await?.ok_or_else(gone)?;
        let remaining = self.credits.balance(&account).await?.remaining;
        Ok(self.view_with(remaining, job))
    }

    async fn view(&self, account: &Account, job: Job) -> Result<JobView, V1Error> {
        Ok(self.view_with(self.credits_left(account).await?, job))
    }

    fn view_with(&self, credits_remaining: u64, job: Job) -> JobView {
        let unfinished = job.counts.total.saturating_sub(job.counts.ended());
        let credits_estimate = unfinished.saturating_mul(self.context.options.credits_per_transcript);
        JobView { job, credits_remaining, credits_estimate }
    }
}

/// The id of the job of a request, and those that its first attempt may have: in the window of time before, in the next
/// one by the clock of another server, and without a window, as earlier versions of the program made it.
///
/// A request is not repeated for longer than responses are stored, so each window has its own ids. Numbers would have
/// gaps, because old jobs are deleted.
fn job_ids(work_id: &str, now: Timestamp) -> (JobId, [JobId; 3]) {
    let id = |parts: &[&str]| JobId::new(format!("job_{:.32}", derive_id(parts)));
    let of_window = |window: u64| id(&["job", work_id, &window.to_string()]);
    let window = now.since(Timestamp::from_millis(0)).as_secs() / REPEAT_WINDOW.as_secs();
    (of_window(window), [of_window(window.saturating_sub(1)), of_window(window + 1), id(&["job", work_id])])
}

/// The known tracks of a video without a transcript, if none of them is in the language.
///
/// Without a language they are those of the error for such a request.
pub(super) fn tracks_instead(language: Option<&str>, known: Vec<TrackInfo>) -> Vec<TrackInfo> {
    let Some(language) = language.and_then(|tag| LanguageTag::parse(tag).ok()) else {
        return without_english(known);
    };
    if best_track(&known, &TrackSelector::Language(language)).is_some() { Vec::new() } else { known }
}

fn bad_cursor() -> V1Error {
    V1Error::BadRequest("cursor: it is not of this list".to_owned())
}

fn not_found() -> V1Error {
    V1Error::not_found("This account has no job with this id.")
}

fn too_many(max: u32) -> V1Error {
    let message = format!(
        "This account has {max} unfinished jobs, as many as it may have. Wait until one ends, or cancel one."
    );
    V1Error::RateLimited { message, retry_after_s: 60, rate: None }
}
