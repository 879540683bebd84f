//! `/account/statement`: what the credits were spent on, as pages and as CSV.

use std::{collections::HashSet, future::ready, sync::Arc, time::Duration};

use axum::{body::Body, extract::State, response::Response};
use futures_util::{StreamExt as _, stream};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
};
use transcript_core::{
    Error, ErrorKind, Page, PageRequest,
    accounts::{AccountAdmin, Memo},
    archive::TrackSelector,
    directory::Account,
    ids::Cursor,
    ledger::Entry,
    video::VideoId,
};

use super::{failure, missing, respond, session::SignedIn, store_failure};
use crate::{
    api::parameter,
    page::{PageContext, account as page},
    state::AppState,
};

const PAGE_ROWS: u32 = 50;
/// Titles that are read at a time.
const TITLES_AT_A_TIME: usize = 8;
/// Time for the titles of a page: later ones are missing, so that the page does not wait for a slow archive.
const TITLES_TIMEOUT: Duration = Duration::from_secs(1);
/// Pages of a file, of 1,000 entries each. The default `recent_entries` of a ledger reads all older ones for each page.
const CSV_PAGES_MAX: u32 = 1_000;

/// Page of the statement, newest first.
pub(in crate::routes) async fn show(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
    uri: Uri,
) -> Response {
    let before = parameter(uri.query().unwrap_or_default(), "before").ok().flatten();
    let request = PageRequest { after: before.clone().map(Cursor::new), limit: PAGE_ROWS };
    match app.accounts.admin.recent_entries(&principal.account, request).await {
        Ok(found) => {
            let titles = titles(&app, &found.items).await;
            respond(StatusCode::OK, page::statement(&context, &found, &titles, before.as_deref()))
        }
        Err(error) if error.kind() == ErrorKind::Invalid => missing(&context),
        Err(error) => store_failure(&context, &error),
    }
}

/// The titles of the entries' videos whose default tracks are archived.
async fn titles(app: &AppState, entries: &[Entry]) -> page::VideoTitles {
    let video = |entry: &Entry| match Memo::parse(&entry.memo)? {
        Memo::Transcript(video) | Memo::Question(video) => Some(video),
        Memo::Sale(_) | Memo::Refund(_) => None,
    };
    let videos: HashSet<_> = entries.iter().filter_map(video).collect();
    let title = |video: VideoId| async move {
        let body = app.lookup.transcripts().stored_body(&video, &TrackSelector::Default).await;
        let body = body.inspect_err(|error| tracing::debug!(%video, %error, "title of a video not read"));
        let title = crate::page::transcript::title(&body.ok()??.header)?.to_owned();
        Some((video, title))
    };
    let found = stream::iter(videos).map(title).buffer_unordered(TITLES_AT_A_TIME);
    found.filter_map(ready).take_until(tokio::time::sleep(TITLES_TIMEOUT)).collect().await
}

/// The entries as CSV, newest first.
pub(in crate::routes) async fn csv(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    let admin = &app.accounts.admin;
    if let Err(error) = admin.count_download(&principal.account).await {
        return failure(&context, &error);
    }
    match admin.recent_entries(&principal.account, PageRequest::first()).await {
        Ok(first) => {
            let body = csv_body(Arc::clone(admin), principal.account, first, CSV_PAGES_MAX);
            attachment(body, "text/csv; charset=utf-8", "statement.csv")
        }
        Err(error) => store_failure(&context, &error),
    }
}

/// The file from its first page of entries on; the others are read as it is sent. It breaks off before a page beyond
/// `pages_max`, so that the client does not take it for complete.
fn csv_body(admin: Arc<AccountAdmin>, account: Account, first: Page<Entry>, pages_max: u32) -> Body {
    let head = csv_rows(page::CSV_HEADER, &first.items);
    let start = (admin, account, first.next, 1);
    let rest = stream::try_unfold(start, move |(admin, account, after, pages)| async move {
        let Some(after) = after else { return Ok(None) };
        if pages == pages_max {
            tracing::warn!(account = %account.id, pages, "statement of an account broken off");
            return Err(Error::unexpected("the statement has more entries than a file may have"));
        }
        let request = PageRequest { after: Some(after), ..PageRequest::first() };
        let found = admin.recent_entries(&account, request).await.inspect_err(|error| {
            tracing::warn!(account = %account.id, %error, "statement of an account broken off");
        })?;
        Ok::<_, Error>(Some((csv_rows("", &found.items), (admin, account, found.next, pages + 1))))
    });
    Body::from_stream(stream::iter([Ok(head)]).chain(rest))
}

fn csv_rows(head: &str, entries: &[Entry]) -> String {
    let mut rows = head.to_owned();
    entries.iter().for_each(|entry| page::csv_row(entry, &mut rows));
    rows
}

/// File that browsers save.
pub(super) fn attachment(content: impl Into<Body>, kind: &'static str, name: &'static str) -> Response {
    let mut response = Response::new(content.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let disposition = format!("attachment; filename=\"{name}\"");
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use transcript_core::ids::GrantId;

    use super::*;
    use crate::testing::ServiceFixture;

    #[tokio::test]
    async fn csv_body_with_too_many_pages_breaks_off() {
        let service = ServiceFixture::start().await;
        service.account("ann@example.org").await;
        let admin = &service.app.accounts.admin;
        let account = admin.show("ann@example.org").await.unwrap().account;
        for number in 0..3 {
            let id = GrantId::new(format!("grant-{number}"));
            admin.grant(account.id.as_str(), id, 1, "credits").await.unwrap();
        }
        for (pages_max, is_complete) in [(1, false), (2, true)] {
            let request = PageRequest { limit: 1, ..PageRequest::first() };
            let first = admin.recent_entries(&account, request).await.unwrap();
            let body = csv_body(Arc::clone(admin), account.clone(), first, pages_max);
            assert_eq!(body.collect().await.is_ok(), is_complete, "{pages_max}");
        }
    }
}
