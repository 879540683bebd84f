//! `/account/statement`: what the credits were spent on, as pages and as CSV.

use axum::{body::Body, extract::State, response::Response};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
};
use transcript_core::{ErrorKind, PageRequest, Result, directory::Account, ids::Cursor};

use super::{failure, missing, respond, session::SignedIn, store_failure};
use crate::{
    api::parameter,
    page::{PageContext, account as page},
    state::AppState,
};

/// Rows of a page.
const PAGE_ROWS: u32 = 50;
/// Maximum number of pages of 1,000 entries in the CSV file.
const CSV_PAGES_MAX: usize = 50;

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
        Ok(found) => respond(StatusCode::OK, page::statement(&context, &found, before.as_deref())),
        Err(error) if error.kind() == ErrorKind::Invalid => missing(&context),
        Err(error) => store_failure(&context, &error),
    }
}

/// The newest entries as CSV.
pub(in crate::routes) async fn csv(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    if let Err(error) = app.accounts.admin.count_download(&principal.account).await {
        return failure(&context, &error);
    }
    match csv_rows(&app, &principal.account).await {
        Ok(rows) => attachment(rows, "text/csv; charset=utf-8", "statement.csv"),
        Err(error) => store_failure(&context, &error),
    }
}

async fn csv_rows(app: &AppState, account: &Account) -> Result<String> {
    let mut rows = page::CSV_HEADER.to_owned();
    let mut request = PageRequest::first();
    for _ in 0..CSV_PAGES_MAX {
        let found = app.accounts.admin.recent_entries(account, request.clone()).await?;
        found.items.iter().for_each(|entry| page::csv_row(entry, &mut rows));
        match found.next {
            Some(next) => request.after = Some(next),
            None => break,
        }
    }
    Ok(rows)
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
