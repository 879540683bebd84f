//! The tools for lists of videos and for jobs.
//!
//! The results of a job are read item by item, not by [`Service::job_results`]: that returns the whole transcripts of a
//! page at once, while a result of the tool has the beginning of each. It also lacks the state of the job, and a second
//! call for it would count for the account's rate limit.

use std::{sync::Arc, time::Duration};

use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};
use tracing::Instrument as _;
use transcript_core::{
    accounts::{
        Accounts, RequestGuard, V1Endpoint, V1Error,
        jobs::{JobItem, JobStatus, PauseReason},
    },
    engine::Transcripts,
    headers,
    ids::{AccountId, JobId},
    supplier::{ListOutcome, ListPosition, ListedVideo, SupplyError, SupplyReason, VideoListPage},
    time::ceil_seconds,
    transcript::{Segment, TrackInfo, format_timestamp, prose},
    video::{Platform, VideoList},
    wire::v1::{JobCredits, JobInfo, JobResult},
};
use verbatim::service::{Caller, Service, ServiceError};

use super::{
    arguments::{JobResultsArgs, JobStatusArgs, ListVideosArgs, StartJobArgs, read},
    caller::with_idempotency_key,
    error::ToolError,
    result::{DATA, good, line, retry_note, within},
    tools::{GET_TRANSCRIPT, JOB_RESULTS, JOB_STATUS, LIST_VIDEOS, START_JOB},
};

/// Pages of `list_videos` that are read at the same time. They share a queue with those of the jobs.
pub(super) const LIST_PLACES: usize = 2;
/// Longest time for which a call reads a list. Many clients wait for a minute.
const LIST_WAIT_MAX: Duration = Duration::from_secs(50);

/// The lister of a server or of the user's archive, and the service and the accounts of a server.
#[derive(Clone, Debug)]
pub(super) struct ToolJobs {
    pub(super) service: Arc<dyn Service>,
    pub(super) transcripts: Transcripts,
    /// `None` for the user's own archive, which has no jobs.
    pub(super) accounts: Option<Accounts>,
    /// Places of the pages of YouTube's lists, and of those of other platforms, which take minutes.
    pub(super) places: Arc<Semaphore>,
    slow_places: Arc<Semaphore>,
}

impl ToolJobs {
    pub(super) fn new(
        service: Arc<dyn Service>,
        transcripts: Transcripts,
        accounts: Option<Accounts>,
    ) -> Self {
        let places = || Arc::new(Semaphore::new(LIST_PLACES));
        Self { service, transcripts, accounts, places: places(), slow_places: places() }
    }

    /// Calls a tool; `None` if the name is that of another one.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Option<Result<CallToolResult, ToolError>> {
        Some(match (name, &self.accounts) {
            (LIST_VIDEOS, _) => self.list_videos(arguments, caller).await,
            (START_JOB, Some(_)) => self.start_job(arguments, caller).await,
            (JOB_STATUS, Some(_)) => self.job_status(arguments, caller).await,
            (JOB_RESULTS, Some(accounts)) => job_results(accounts, arguments, caller).await,
            _ => return None,
        })
    }

    /// The first videos of a list: those that were read before a failure or the longest time.
    async fn list_videos(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let args = read::<ListVideosArgs>(arguments)?;
        let (list, limit) = (args.list()?, args.limit()?);
        let reader = match &self.accounts {
            // A list is requested from the platform for the caller: it needs an account, and counts for its limits.
            Some(accounts) => {
                let guard = admit(accounts, caller).await?;
                Some((accounts, guard.caller().account.id.clone()))
            }
            None => None,
        };
        let end = Instant::now() + LIST_WAIT_MAX;
        let (mut videos, mut title, mut stated, mut position) = (Vec::new(), None, None, None);
        let mut failure = None;
        loop {
            let page = match self.next_page(reader.as_ref(), &list, position.as_ref(), end).await {
                Ok(page) => page,
                Err(error) if videos.is_empty() => return Err(error),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            };
            title = title.or(page.title);
            stated = stated.or(page.stated_count);
            videos.extend(page.videos);
            position = page.next;
            if position.is_none() || videos.len() >= limit {
                break;
            }
        }
        let has_more = position.is_some() || videos.len() > limit;
        videos.truncate(limit);
        Ok(listed(&list, title.as_deref(), stated, &videos, has_more, failure.as_ref()))
    }

    /// Reads the next page of a list before this time, in its place.
    async fn next_page(
        &self,
        reader: Option<&(&Accounts, AccountId)>,
        list: &VideoList,
        position: Option<&ListPosition>,
        end: Instant,
    ) -> Result<VideoListPage, ToolError> {
        // A repeated call would read the same pages again.
        let too_long = || {
            let message = match &self.accounts {
                Some(_) => "The list takes too long. Name a smaller limit, or use start_job.",
                None => "The list takes too long. Name a smaller limit, or use `verbatim get`.",
            };
            ToolError::refused(503, message)
        };
        let place = match timeout_at(end, self.place(reader, list)).await {
            Ok(place) => place?,
            Err(_) if position.is_none() => return Err(ToolError::busy("Other lists are read first.")),
            Err(_) => return Err(too_long()),
        };
        let page = timeout_at(end, self.read_page(place, list, position)).await;
        page.unwrap_or_else(|_| Err(too_long()))
    }

    /// Counts a page for the limits of an account, and waits for its place.
    async fn place(
        &self,
        reader: Option<&(&Accounts, AccountId)>,
        list: &VideoList,
    ) -> Result<OwnedSemaphorePermit, ToolError> {
        if let Some((accounts, account)) = reader {
            accounts.jobs.count_list_page(account).await.map_err(refused)?;
        }
        let places = if list.platform() == Platform::YouTube { &self.places } else { &self.slow_places };
        // The semaphore is never closed.
        Arc::clone(places).acquire_owned().await.map_err(|_| ToolError::fault())
    }

    /// Reads a page of a list.
    ///
    /// # Cancellation
    /// The page keeps its place to its end, also if the caller leaves: the lister goes on.
    async fn read_page(
        &self,
        place: OwnedSemaphorePermit,
        list: &VideoList,
        position: Option<&ListPosition>,
    ) -> Result<VideoListPage, ToolError> {
        let (transcripts, list, position) = (self.transcripts.clone(), list.clone(), position.cloned());
        let read = async move {
            let _place = place;
            transcripts.list_page(&list, position.as_ref()).await
        };
        match tokio::spawn(read.in_current_span()).await {
            Ok(Ok(ListOutcome::Page(page))) => Ok(page),
            Ok(Ok(ListOutcome::Absent(absence))) => Err(ToolError::refused(404, absence.message)),
            Ok(Err(error)) => Err(unread(&error)),
            Err(_) => Err(ToolError::fault()),
        }
    }

    /// Starts a job of the caller's account.
    async fn start_job(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let (request, key) = read::<StartJobArgs>(arguments)?.into_request()?;
        let caller = with_idempotency_key(caller, key);
        let started = self.service.start_job(&caller, request).await.map_err(|error| {
            let names = [("urls", "videos"), (headers::IDEMPOTENCY_KEY, "idempotency_key")];
            ToolError::from(error).rename_arguments(&names)
        })?;
        Ok(state(&started.body))
    }

    async fn job_status(
        &self,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let args = read::<JobStatusArgs>(arguments)?;
        Ok(state(&self.service.job(caller, &JobId::new(args.job)).await?.body))
    }
}

async fn job_results(
    accounts: &Accounts,
    arguments: Map<String, Value>,
    caller: &Caller,
) -> Result<CallToolResult, ToolError> {
    let args = read::<JobResultsArgs>(arguments)?;
    let (from, limit, max_chars) = (args.cursor()?, args.limit()?, args.max_chars()?);
    let guard = admit(accounts, caller).await?;
    let page = accounts.jobs.results(guard, &args.job, from, limit).await.map_err(refused)?;
    let mut text = format!(
        "Job {}: {}. Items {} to {} of {}. {DATA}\n",
        page.job.id,
        page.job.status.as_str(),
        from + u64::from(!page.items.is_empty()),
        from + page.items.len() as u64,
        page.job.counts.total
    );
    for item in &page.items {
        let found = accounts.jobs.transcript(&page.job, item).await.map_err(refused)?;
        let words = found.stored().map(|stored| {
            let title = stored.transcript.title.as_deref().map(line).filter(|title| !title.is_empty());
            let title = title.map_or(String::new(), |title| format!("Title: {title}\n"));
            format!("{title}{}", beginning(&stored.transcript.segments, max_chars))
        });
        let languages = accounts.jobs.languages_instead(&page.job, item).await;
        text.push_str(&item_text(&JobResult::new(item, found.loss()), item, words.as_deref(), &languages));
    }
    if let Some(next) = page.next {
        text.push_str(&format!(
            "\nMore follow: call again with the same arguments and \"cursor\": \"{next}\"."
        ));
    }
    let next = page.next.map(|next| next.to_string());
    Ok(good(
        text,
        [("verbatim/next_cursor", json!(next)), ("verbatim/job_status", json!(page.job.status.as_str()))],
    ))
}

/// The plain text of these segments as one line of at most `most` characters.
fn beginning(segments: &[Segment], most: usize) -> String {
    within(&prose(first_segments(segments, most)), most)
}

/// The first segments, with more than `most` characters besides white space if all of them have more.
fn first_segments(segments: &[Segment], most: usize) -> &[Segment] {
    let mut chars = 0;
    let is_enough = |segment: &Segment| {
        chars += segment.text.chars().filter(|c| !c.is_whitespace()).count();
        chars > most
    };
    let end = segments.iter().position(is_enough).map_or(segments.len(), |last| last + 1);
    segments.get(..end).unwrap_or(segments)
}

/// An item with its words, or why there are none, and the languages that its video has instead.
fn item_text(result: &JobResult, item: &JobItem, words: Option<&str>, languages: &[TrackInfo]) -> String {
    let address = item.video.as_ref().map_or_else(|| line(&item.url), |video| video.address());
    let mut text = format!("\n{}. {address}: {}", item.index.saturating_add(1), result.status);
    if let (Some(reason), Some(message)) = (&result.reason, &result.message) {
        text.push_str(&format!(" ({reason}): {}", line(message)));
    }
    text.push('\n');
    if !languages.is_empty() {
        let mut tags: Vec<&str> = languages.iter().map(|track| track.language.as_str()).collect();
        tags.sort_unstable();
        tags.dedup();
        text.push_str(&format!("Languages of the video: {}\n", tags.join(", ")));
    }
    if let Some(words) = words {
        text.push_str(&format!("{}\n", words.trim()));
    }
    text
}

/// Admits a call that reads a list or a job.
async fn admit(accounts: &Accounts, caller: &Caller) -> Result<RequestGuard, ToolError> {
    accounts.admission.admit_unkeyed(V1Endpoint::ReadJobs, caller.key.as_deref()).await.map_err(refused)
}

fn refused(error: V1Error) -> ToolError {
    ServiceError::from(error).into()
}

/// A list that was not read.
fn unread(error: &SupplyError) -> ToolError {
    let code = match error.reason() {
        SupplyReason::Misconfigured => 400,
        _ => 503,
    };
    ToolError::refused_until(code, error.message(), error.retry_after())
}

/// The videos of a list, and why the others were not read.
fn listed(
    list: &VideoList,
    title: Option<&str>,
    stated: Option<u64>,
    videos: &[ListedVideo],
    has_more: bool,
    failure: Option<&ToolError>,
) -> CallToolResult {
    let mut text = format!("List: {}\n", list.address());
    if let Some(title) = title.map(line).filter(|title| !title.is_empty()) {
        text.push_str(&format!("Title: {title}\n"));
    }
    let of = stated.map_or(String::new(), |count| format!(" of {count}"));
    text.push_str(&format!("{}{of} videos. {DATA}\n\n", videos.len()));
    for (number, listed) in (1..).zip(videos) {
        let mut facts: Vec<String> = listed.duration_s.map(format_timestamp).into_iter().collect();
        // The latest day: a list names most dates as ages.
        facts.extend(listed.published.map(|at| at.latest.to_string().chars().take(10).collect()));
        facts.extend(listed.is_unavailable.then(|| "unavailable".to_owned()));
        facts.extend(listed.members_only.then(|| "members only".to_owned()));
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        let title = listed.title.as_deref().map(line).unwrap_or_default();
        text.push_str(&format!("{number}. {title}{facts}\n   {}\n", listed.video.address()));
    }
    if has_more {
        text.push_str("\nThe list has more videos.\n");
    }
    let mut retry_after_s = None;
    if let Some(ToolError::Refused { message, retry_after, .. }) = failure {
        retry_after_s = retry_after.map(ceil_seconds);
        text.push_str(&format!("They were not read: {}\n{}", line(message), retry_note(retry_after_s)));
    }
    good(
        text,
        [
            ("verbatim/videos", videos.iter().map(|listed| json!(listed.video.to_string())).collect()),
            ("verbatim/total", json!(stated)),
            ("verbatim/has_more", json!(has_more)),
            ("verbatim/retry_after", json!(retry_after_s)),
        ],
    )
}

fn state(info: &JobInfo) -> CallToolResult {
    let counts = &info.counts;
    let mut text = format!("Job {}: {}\n", info.job_id, info.status);
    if let Some(list) = &info.list_url {
        text.push_str(&format!("List: {list}\n"));
    }
    text.push_str(&format!(
        "Videos: {} in all, {} done, {} failed, {} running, {} queued, {} skipped\n",
        counts.total, counts.done, counts.failed, counts.running, counts.queued, counts.skipped
    ));
    let JobCredits { spent, estimate, remaining } = info.credits;
    // The cost of videos that are still to be read is unknown.
    let is_paused_list = info.status == JobStatus::Paused.as_str()
        && counts.queued == counts.total
        // A list costs nothing: the account could not pay the first item.
        && info.pause_reason.as_deref() != Some(PauseReason::PaymentRequired.as_str());
    let is_listing = info.status == JobStatus::Listing.as_str() || is_paused_list && info.list_url.is_some();
    text.push_str(&match is_listing {
        true => format!(
            "Credits: {spent} spent, {remaining} are left. The list is still being read: the videos found so far \
             cost at most {estimate}, further ones are added\n"
        ),
        false => format!(
            "Credits: {spent} spent, at most {estimate} more for this job, {remaining} are left\n"
        ),
    });
    if let Some(reason) = &info.pause_reason {
        text.push_str(&format!("It is paused: {reason}\n"));
    }
    if let (Some(reason), Some(message)) = (&info.reason, &info.message) {
        text.push_str(&format!("It failed ({reason}): {}\n", line(message)));
    }
    text.push_str(&match info.ended_at {
        Some(_) => format!("It has ended: {JOB_RESULTS} has its transcripts."),
        None => format!("Call {JOB_STATUS} again in a while; {JOB_RESULTS} has what is done. {GET_TRANSCRIPT} is free then."),
    });
    good(
        text,
        [
            ("verbatim/job", json!(info.job_id)),
            ("verbatim/job_status", json!(info.status)),
            ("verbatim/job_counts", json!(info.counts)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        Timestamp,
        accounts::jobs::{Job, JobView, SourceList},
    };

    use super::*;

    #[test]
    fn list_is_read_to_its_end_before_items_wait_for_credits() {
        let list = VideoList::parse("https://www.youtube.com/@name").unwrap();
        let list = SourceList { list, limit: 9, since: None, is_open: true };
        let account = AccountId::new("one");
        let job = Job::of_list(JobId::new("job_a"), account, None, list, Timestamp::from_millis(0));
        for (reason, is_listing) in
            [(PauseReason::PaymentRequired, false), (PauseReason::AccountBlocked, true)]
        {
            let job = Job { status: JobStatus::Paused, pause_reason: Some(reason), ..job.clone() };
            let view = JobView { job, credits_remaining: 0, credits_estimate: 0 };
            let shown = json!(state(&JobInfo::new(&view, "https://example.org"))).to_string();
            assert_eq!(shown.contains("still being read"), is_listing, "{shown}");
        }
    }

    /// Paragraphs are joined from the front, so what follows the first characters does not change them.
    #[test]
    fn beginning_of_results_needs_no_later_segments() {
        let texts = ["So this\nis", "  the start. ", " \n", "你好，", "世界", "", "and more", "words. "];
        let long = (0..200_u64).map(|n| Segment::new(texts[n as usize % texts.len()], n * 2_000, 900));
        let segments: Vec<_> = long.collect();
        let text = prose(&segments);
        for most in (0..700).chain([usize::MAX]) {
            assert_eq!(beginning(&segments, most), within(&text, most), "{most}");
        }
        assert_eq!(first_segments(&segments, 20).len(), 5);
        assert_eq!(first_segments(&segments, usize::MAX).len(), segments.len());
        assert!(first_segments(&[], 20).is_empty());
    }
}
