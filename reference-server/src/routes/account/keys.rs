//! `/account/keys`: the key of an account.

use axum::{extract::State, response::Response};
use http::StatusCode;
use transcript_core::{
    ErrorKind, Result,
    directory::{Account, AccountKey},
    ids::KeyId,
};

use super::{
    SentForm, respond, respond_with,
    session::{OwnForm, SignedIn, see_other},
    store_failure,
};
use crate::{
    page::{PageContext, PagePolicy, account as page},
    state::AppState,
};

/// Page with the live keys.
pub(in crate::routes) async fn show(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    let account = &principal.account;
    match tokio::try_join!(live_keys(&app, account), app.accounts.admin.daily_usage(account)) {
        Ok((keys, usage)) => respond(StatusCode::OK, page::keys(&context, account, &keys, usage.last_at)),
        Err(error) => store_failure(&context, &error),
    }
}

/// Replaces the key that the page showed, and shows the new one once.
///
/// A form that is sent again names a key that is no longer live, so a reload does not replace the new key.
pub(in crate::routes) async fn rotate(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    let account = &principal.account;
    let replaced = async {
        let live = live_keys(&app, account).await?;
        let shown = sent.field("key");
        let is_current = live.last().map_or("", |key| key.id.as_str()) == shown;
        match is_current && !account.blocked {
            true => app.accounts.admin.issue_key(account.id.as_str()).await.map(Some),
            false => Ok(None),
        }
    };
    match replaced.await {
        Ok(Some((_, key))) => {
            let page = page::new_key(&context, key.reveal(), &app.lookup.options().base_url);
            respond_with(StatusCode::OK, page, PagePolicy::Script)
        }
        Ok(None) => see_other(&context, "account/keys"),
        Err(error) => store_failure(&context, &error),
    }
}

/// Revokes a key without a successor.
pub(in crate::routes) async fn revoke(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    match app.accounts.admin.revoke_key(&principal.account, &KeyId::new(sent.field("key"))).await {
        Ok(_) => see_other(&context, "account/keys"),
        Err(error) => store_failure(&context, &error),
    }
}

/// The live keys; none if the directory does not list them.
async fn live_keys(app: &AppState, account: &Account) -> Result<Vec<AccountKey>> {
    match app.accounts.admin.account_keys(account).await {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Vec::new()),
        keys => keys,
    }
}
