//! `/account/jobs`: the jobs of an account.

use axum::{extract::State, response::Response};
use http::StatusCode;

use super::{
    SentForm, failure, respond,
    session::{OwnForm, SignedIn, see_other},
};
use crate::{
    api::{PathName, path_name},
    page::{PageContext, account as page},
    state::AppState,
};

/// Jobs on the page: as many as an account may store.
const JOBS_MAX: u32 = 100;

/// Page with the newest jobs.
pub(in crate::routes) async fn list(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    match app.accounts.jobs.newest(&principal.account, JOBS_MAX).await {
        Ok(jobs) => respond(StatusCode::OK, page::jobs(&context, &jobs)),
        Err(error) => failure(&context, &error),
    }
}

/// Page of one job, with the log of its webhooks.
pub(in crate::routes) async fn show(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
    path: PathName,
) -> Response {
    match app.accounts.webhooks.deliveries_for(&principal.account, &path_name(path)).await {
        Ok((job, log)) => respond(StatusCode::OK, page::job(&context, &job, &log)),
        Err(error) => failure(&context, &error),
    }
}

/// Cancels a job.
pub(in crate::routes) async fn cancel(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    match app.accounts.jobs.cancel_for(&principal.account, &sent.field("job")).await {
        Ok(job) => see_other(&context, &format!("account/jobs/{}", job.id)),
        Err(error) => failure(&context, &error),
    }
}
