//! Results of a job, as a JSON page or as one JSON object per line.
//!
//! The body is sent item by item, so that its size needs no memory. A failure after its start breaks the connection.

use std::collections::VecDeque;

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header::CONTENT_TYPE};
use transcript_core::{
    accounts::{
        V1Endpoint, V1Error,
        jobs::{ItemStatus, Job, JobItem, ResultsPage},
    },
    archive::view::TranscriptView,
    transcript::LanguageTag,
    wire::v1::{JobResult, VideoTranscript},
};

use super::page_limit;
use crate::{
    api::{
        BudgetedBytes, JSON, V1ErrorResponse, check_spelling, parameter, rate_limit_headers, wants_json_lines,
    },
    routes::v1::admission::{EarlyResponse, admit, finish, reject},
    state::AppState,
};

/// Items of a JSON page without `limit`, and the largest `limit`.
const ITEMS_PER_PAGE: (u32, u32) = (20, 100);
/// Items of lines: without `limit` all of them.
const LINES_PER_PAGE: (u32, u32) = (u32::MAX, u32::MAX);
/// Items that are read from the store at once.
const READ_MAX: u32 = 100;
/// The media type of lines.
const JSON_LINES: &str = "application/x-ndjson";

/// Returns the items of a job with their transcripts.
pub(crate) async fn results(
    State(app): State<AppState>,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::ReadJobs, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let is_lines = wants_json_lines(&headers);
    let (from, limit) = match page(uri.query().unwrap_or_default(), is_lines) {
        Ok(page) => page,
        Err(denial) => return Err(reject(guard, denial).await),
    };
    let read = app.accounts.jobs.results(guard, &id, from, limit.min(READ_MAX)).await;
    let found = match read {
        Ok(found) => found,
        Err(error) => return Ok(finish(rate, Err(error))),
    };
    let kind = if is_lines { JSON_LINES } else { JSON };
    let body = ResultsBody::new(app, found, limit, is_lines).into_body();
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().extend(rate_limit_headers(&rate));
    Ok(response)
}

/// The position of the first item, and the number of items.
fn page(query: &str, is_lines: bool) -> Result<(u64, u32), V1ErrorResponse> {
    check_spelling(query, &["cursor", "limit"])?;
    let from = match parameter(query, "cursor")? {
        None => 0,
        Some(cursor) => {
            let from = cursor.parse().ok().filter(|from| *from <= u64::from(u32::MAX));
            from.ok_or_else(|| V1ErrorResponse::bad("cursor", "it is not of this list"))?
        }
    };
    Ok((from, page_limit(query, if is_lines { LINES_PER_PAGE } else { ITEMS_PER_PAGE })?))
}

/// A body that is still to be sent.
struct ResultsBody {
    app: AppState,
    job: Job,
    /// The items that were read and not sent.
    items: VecDeque<JobItem>,
    /// The position of the next item to be read; `None` after the last one.
    next: Option<u64>,
    /// Items that may still be read.
    left: u32,
    is_lines: bool,
    state: BodyState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyState {
    /// Nothing was sent.
    Start,
    /// The next item is the first.
    First,
    /// Items were sent.
    Items,
    /// All was sent.
    End,
}

impl ResultsBody {
    fn new(app: AppState, found: ResultsPage, limit: u32, is_lines: bool) -> Self {
        let ResultsPage { job, items, next } = found;
        let left = limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        Self { app, job, items: items.into(), next, left, is_lines, state: BodyState::Start }
    }

    fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::unfold(Some(self), |body| async {
            let mut body = body?;
            match body.next_part().await {
                Ok(Some(part)) => Some((Ok(part), Some(body))),
                Ok(None) => None,
                Err(error) => {
                    tracing::warn!(job = %body.job.id, %error, "results of a job broken off");
                    Some((Err(std::io::Error::other(error)), None))
                }
            }
        }))
    }

    /// The next part of the body; `None` at its end.
    async fn next_part(&mut self) -> Result<Option<Bytes>, V1Error> {
        if self.state == BodyState::Start {
            self.state = BodyState::First;
            if !self.is_lines {
                let cursor = self.next.map(|next| next.to_string());
                let head = serde_json::json!({ "job_id": self.job.id.as_str(), "next_cursor": cursor });
                let mut head = head.to_string();
                head.truncate(head.len().saturating_sub(1));
                head.push_str(",\"items\":[");
                return Ok(Some(head.into()));
            }
        }
        if self.items.is_empty()
            && let Some(from) = self.next.filter(|_| self.left > 0)
        {
            let limit = self.left.min(READ_MAX);
            let ResultsPage { items, next, .. } =
                self.app.accounts.jobs.next_results(self.job.clone(), from, limit).await?;
            self.left = self.left.saturating_sub(limit);
            (self.items, self.next) = (items.into(), next);
        }
        match self.items.pop_front() {
            Some(item) => self.item(&item).await.map(Some),
            None if self.state == BodyState::End || self.is_lines => Ok(None),
            None => {
                self.state = BodyState::End;
                Ok(Some(Bytes::from_static(b"]}")))
            }
        }
    }

    /// An item with its transcript. Memory for a large one is reserved.
    async fn item(&mut self, item: &JobItem) -> Result<Bytes, V1Error> {
        let stored = self.app.accounts.jobs.transcript(&self.job, item).await?;
        let tag = self.job.language.as_deref().and_then(|lang| LanguageTag::parse(lang).ok());
        let result = JobResult::new(item);
        let json = |stored| VideoTranscript::json(stored, tag.as_ref(), TranscriptView::default());
        let transcript = stored.as_ref().map(json);
        let transcript = transcript.transpose().map_err(|_| unreadable())?;
        let is_withdrawn = item.status == ItemStatus::Done && transcript.is_none();
        let result = if is_withdrawn { result.withdrawn() } else { result };
        let mut json = result.json(transcript.as_deref()).map_err(|_| unreadable())?;
        match (self.is_lines, self.state) {
            (true, _) => json.push(b'\n'),
            (false, BodyState::First) => {}
            (false, _) => json.insert(0, b','),
        }
        self.state = BodyState::Items;
        let reserved = self.app.body_budget.reserve_response(json.len()).await;
        let reserved = reserved.map_err(|_| V1Error::Internal("too many large bodies".to_owned()))?;
        Ok(BudgetedBytes::new(json, reserved).into_bytes())
    }
}

fn unreadable() -> V1Error {
    V1Error::Internal("The item cannot be shown.".to_owned())
}
