//! `/api/v1/jobs`: transcripts of many videos.

pub(crate) mod document;
mod items;
mod results;
mod zip;

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;
use transcript_core::{
    PageRequest,
    accounts::{
        V1Endpoint,
        jobs::{AccountJobs, JobParams, JobView, PAGE_MAX},
    },
    ids::Cursor,
    wire::v1::{JobDeliveries, JobInfo, JobList},
};

pub(crate) use results::results;

use super::{
    BodyFields,
    admission::{EarlyResponse, admit, admit_with_body, finish, reject},
};
use crate::{
    api::{PathName, V1ErrorResponse, check_spelling, number, parameter, path_name, reply},
    state::AppState,
};

/// Limit of the body, in bytes; it contains links.
const JOB_BODY_MAX: usize = 1024 * 1024;
/// Known fields of the body.
const FIELDS: [&str; 8] = ["urls", "playlist", "channel", "search", "limit", "since", "lang", "callback_url"];
/// Jobs of a page without `limit`, and the largest `limit`.
const JOBS_PER_PAGE: (u32, u32) = (20, PAGE_MAX);

/// Creates a job.
pub(crate) async fn create(State(app): State<AppState>, request: Request) -> Result<Response, EarlyResponse> {
    let (headers, guard, body) = admit_with_body(&app, V1Endpoint::StartJob, request, JOB_BODY_MAX).await?;
    let rate = guard.rate();
    let fields = body.and_then(|body| BodyFields::parse(&headers, &body, &FIELDS));
    let params = match fields.and_then(|fields| job_params(&fields)) {
        Ok(params) => params,
        Err(denial) => return Err(reject(guard, denial).await),
    };
    let outcome = async {
        let created = app.accounts.jobs.create(guard, params).await?;
        let reply = reply(StatusCode::ACCEPTED, &info(&app, &created.view));
        created.deliver(reply).await
    };
    Ok(finish(rate, outcome.await))
}

/// Parses the body of a new job.
fn job_params(fields: &BodyFields) -> Result<JobParams, V1ErrorResponse> {
    let urls = match fields.value("urls") {
        None | Some(Value::Null) => None,
        Some(Value::Array(urls)) => {
            let text = |url: &Value| url.as_str().map(str::to_owned);
            let urls = urls.iter().map(text).collect::<Option<Vec<_>>>();
            Some(urls.ok_or_else(|| V1ErrorResponse::bad("urls", "each link must be a string"))?)
        }
        Some(_) => return Err(V1ErrorResponse::bad("urls", "it must be an array of links")),
    };
    let limit = match fields.value("limit") {
        None | Some(Value::Null) => None,
        Some(limit) => {
            let limit = limit.as_u64();
            Some(limit.ok_or_else(|| V1ErrorResponse::bad("limit", "it must be a whole number from 1"))?)
        }
    };
    let optional = |field| match fields.value(field) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => fields.text(field).map(|text| Some(text.to_owned())),
    };
    Ok(JobParams {
        urls,
        playlist: optional("playlist")?,
        channel: optional("channel")?,
        search: optional("search")?,
        limit,
        since: optional("since")?,
        lang: optional("lang")?,
        callback_url: optional("callback_url")?,
    })
}

/// Lists the jobs of the account.
pub(crate) async fn list(
    State(app): State<AppState>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::ReadJobs, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let page = match list_page(uri.query().unwrap_or_default()) {
        Ok(page) => page,
        Err(denial) => return Err(reject(guard, denial).await),
    };
    let found = app.accounts.jobs.list(guard, page).await;
    let list = found.map(|page| JobList {
        success: true,
        jobs: page.jobs.iter().map(|view| info(&app, view)).collect(),
        next_cursor: page.next.map(|next| next.as_str().to_owned()),
    });
    Ok(finish(rate, list.map(|list| reply(StatusCode::OK, &list))))
}

fn list_page(query: &str) -> Result<PageRequest, V1ErrorResponse> {
    check_spelling(query, &["cursor", "limit"])?;
    let after = parameter(query, "cursor")?.map(|cursor| Cursor::new(cursor.into_owned()));
    Ok(PageRequest { after, limit: page_limit(query, JOBS_PER_PAGE)? })
}

/// The parameter `limit`, with its default and its largest value.
fn page_limit(query: &str, (default, max): (u32, u32)) -> Result<u32, V1ErrorResponse> {
    let Some(text) = parameter(query, "limit")? else { return Ok(default) };
    // What is no number is refused as 0 is.
    let limit = number(&text, 1..=u32::MAX).unwrap_or(0);
    AccountJobs::check_limit(limit, max)?;
    Ok(limit)
}

/// Shows a job.
pub(crate) async fn show(
    State(app): State<AppState>,
    path: PathName,
    headers: HeaderMap,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::ReadJobs, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let found = app.accounts.jobs.job(guard, &path_name(path)).await;
    Ok(finish(rate, found.map(|view| reply(StatusCode::OK, &info(&app, &view)))))
}

/// Shows the events of a job, and the attempts to send them.
pub(crate) async fn deliveries(
    State(app): State<AppState>,
    path: PathName,
    headers: HeaderMap,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::ReadJobs, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let found = app.accounts.webhooks.deliveries(guard, &path_name(path)).await;
    Ok(finish(rate, found.map(|(job, log)| reply(StatusCode::OK, &JobDeliveries::new(&job, &log)))))
}

/// Cancels a job.
pub(crate) async fn cancel(
    State(app): State<AppState>,
    path: PathName,
    headers: HeaderMap,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::CancelJob, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let cancelled = app.accounts.jobs.cancel(guard, &path_name(path)).await;
    Ok(finish(rate, cancelled.map(|view| reply(StatusCode::OK, &info(&app, &view)))))
}

fn info(app: &AppState, view: &JobView) -> JobInfo {
    JobInfo::new(view, &app.accounts.options().base_url)
}
