//! `/account`: plan, credits and usage.

use axum::{extract::State, response::Response};
use http::StatusCode;

use super::{respond_with, session::SignedIn, store_failure};
use crate::{
    page::{PageContext, PagePolicy, account as page},
    state::AppState,
};

/// Page with plan, credits, usage and what can be bought.
pub(in crate::routes) async fn show(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    let admin = &app.accounts.admin;
    let found =
        tokio::try_join!(admin.view_account(&principal.account), admin.daily_usage(&principal.account));
    match found {
        Ok((view, usage)) => {
            let shop = page::Shop::new(&app.payments, &view.account, &view.effective_plan, || {
                app.accounts.sessions.form_token()
            });
            let page = page::overview(&context, &view, &usage, &shop);
            respond_with(StatusCode::OK, page, PagePolicy::Purchase)
        }
        Err(error) => store_failure(&context, &error),
    }
}
