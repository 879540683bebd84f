//! Results of a job, as a JSON page, as one JSON object per line, or as a ZIP file.
//!
//! The body is sent item by item, so that its size needs no memory. A failure after its start breaks the connection.

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Uri,
    header::{CONTENT_DISPOSITION, CONTENT_TYPE},
};
use transcript_core::{
    accounts::{
        V1Endpoint, V1Error,
        jobs::{JobItem, PAGE_MAX, ResultsPage},
    },
    archive::view::TranscriptView,
    transcript::LanguageTag,
    wire::v1::{JobResult, JobResults, VideoTranscript},
};

use super::{
    items::ItemReader,
    page_limit,
    zip::{ZIP, ZipBody, ZipFormat, unbuilt},
};
use crate::{
    api::{
        JSON, PathName, ResponseFormat, UNRESERVED_RESPONSE_BYTES, V1ErrorResponse, check_spelling,
        parameter, path_name, rate_limit_headers, wants_json_lines,
    },
    page::PageContext,
    response_cache::{ResponseVariant, rendered_length},
    routes::v1::admission::{EarlyResponse, admit, finish, reject},
    state::AppState,
};

/// Items of a JSON page without `limit`, and the largest `limit`.
const ITEMS_PER_PAGE: (u32, u32) = (20, PAGE_MAX);
/// Items of lines and of files: without `limit` all of them.
const LINES_PER_PAGE: (u32, u32) = (u32::MAX, u32::MAX);
/// The media type of lines.
const JSON_LINES: &str = "application/x-ndjson";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultsForm {
    /// A page as JSON.
    Page,
    /// One JSON object per line.
    Lines,
    /// A ZIP file of transcripts.
    Files(ZipFormat),
}

impl ResultsForm {
    fn media_type(self) -> &'static str {
        match self {
            Self::Page => JSON,
            Self::Lines => JSON_LINES,
            Self::Files(_) => ZIP,
        }
    }
}

/// Returns the items of a job with their transcripts.
pub(crate) async fn results(
    State(app): State<AppState>,
    context: PageContext,
    path: PathName,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::ReadJobs, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let (form, from, limit) = match page(uri.query().unwrap_or_default(), wants_json_lines(&headers)) {
        Ok(page) => page,
        Err(denial) => return Err(reject(guard, denial).await),
    };
    let read = app.accounts.jobs.results(guard, &path_name(path), from, limit.min(PAGE_MAX)).await;
    let found = match read {
        Ok(found) => found,
        Err(error) => return Ok(finish(rate, Err(error))),
    };
    let job = found.job.id.clone();
    let items = ItemReader::new(app, found, limit);
    let body = match form {
        ResultsForm::Files(format) => ZipBody::new(items, context, format, from, limit).into_body(),
        ResultsForm::Page | ResultsForm::Lines => {
            ResultsBody { items, is_lines: form == ResultsForm::Lines, state: ResultsBodyState::Start }
                .into_body()
        }
    };
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    if let ResultsForm::Files(_) = form
        && let Ok(name) = HeaderValue::try_from(format!("attachment; filename=\"{job}.zip\""))
    {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    response.headers_mut().extend(rate_limit_headers(&rate));
    Ok(response)
}

/// The form, the position of the first item, and the number of items.
fn page(query: &str, is_lines: bool) -> Result<(ResultsForm, u64, u32), V1ErrorResponse> {
    check_spelling(query, &["cursor", "limit", "format"])?;
    let from = match parameter(query, "cursor")? {
        None => 0,
        Some(cursor) => ResultsPage::position(&cursor)?,
    };
    let form = match parameter(query, "format")?.as_deref() {
        None | Some("json") if is_lines => ResultsForm::Lines,
        None | Some("json") => ResultsForm::Page,
        Some(name) => {
            let format = ZipFormat::from_name(name).map(ResultsForm::Files);
            let names = ZipFormat::names().collect::<Vec<_>>().join(", ");
            format
                .ok_or_else(|| V1ErrorResponse::bad("format", format!("it must be one of json, {names}")))?
        }
    };
    let limits = if form == ResultsForm::Page { ITEMS_PER_PAGE } else { LINES_PER_PAGE };
    Ok((form, from, page_limit(query, limits)?))
}

/// A body of JSON that is still to be sent.
struct ResultsBody {
    items: ItemReader,
    is_lines: bool,
    state: ResultsBodyState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultsBodyState {
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
    fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::try_unfold(self, |mut body| async move {
            let part = body.next_part().await.inspect_err(|error| {
                tracing::warn!(job = %body.items.job().id, %error, "results of a job broken off");
            })?;
            Ok::<_, V1Error>(part.map(|part| (part, body)))
        }))
    }

    /// The next part of the body; `None` at its end.
    async fn next_part(&mut self) -> Result<Option<Bytes>, V1Error> {
        if self.state == ResultsBodyState::Start {
            self.state = ResultsBodyState::First;
            if !self.is_lines {
                let page = JobResults {
                    job_id: self.items.job().id.as_str().to_owned(),
                    next_cursor: self.items.next_page().map(|next| next.to_string()),
                    items: Vec::new(),
                };
                let mut head = page.before_items().map_err(|_| unreadable())?;
                head.push(b'[');
                return Ok(Some(head.into()));
            }
        }
        match self.items.next().await? {
            Some(item) => self.item(&item).await.map(Some),
            None if self.state == ResultsBodyState::End || self.is_lines => Ok(None),
            None => {
                self.state = ResultsBodyState::End;
                Ok(Some(Bytes::from_static(b"]}")))
            }
        }
    }

    /// An item with its transcript. Memory for a large one is reserved before it is rendered.
    async fn item(&mut self, item: &JobItem) -> Result<Bytes, V1Error> {
        let found = self.items.transcript(item).await?;
        let tag = self.items.job().language.as_deref().and_then(|lang| LanguageTag::parse(lang).ok());
        let languages = self.items.languages_instead(item).await;
        let result = JobResult::new(item, found.loss()).with_languages(&languages);
        let (is_lines, is_first) = (self.is_lines, self.state == ResultsBodyState::First);
        let form = ResponseVariant::plain(ResponseFormat::Json, None);
        let length = found.stored().map_or(0, |stored| rendered_length(stored, form));
        // The JSON of the transcript is copied into that of the item. A small one is rendered without a reservation.
        let bytes = if length > UNRESERVED_RESPONSE_BYTES { 2 * length } else { length };
        let render = move || {
            let json = |stored| VideoTranscript::json(stored, tag.as_ref(), TranscriptView::default());
            let transcript = found.stored().map(json).transpose()?;
            let mut json = result.json(transcript.as_deref())?;
            match (is_lines, is_first) {
                (true, _) => json.push(b'\n'),
                (false, true) => {}
                (false, false) => json.insert(0, b','),
            }
            Ok::<_, transcript_core::Error>(json)
        };
        let budget = self.items.app().account_budget.clone();
        let (json, reserved) = budget.build(bytes, render).await.map_err(|refusal| unbuilt(&refusal))?;
        self.state = ResultsBodyState::Items;
        Ok(budget.sent_bytes(json.map_err(|_| unreadable())?, reserved))
    }
}

fn unreadable() -> V1Error {
    V1Error::Internal("The item cannot be shown.".to_owned())
}
