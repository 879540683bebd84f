//! `/account/keys`: the keys of an account.

use axum::{extract::State, response::Response};
use http::StatusCode;
use transcript_core::{
    ErrorKind, Result,
    accounts::CreateAccountKeyOutcome,
    directory::{Account, AccountKey, api_key::ApiKey},
    ids::KeyId,
};

use super::{
    SentForm, respond, respond_with,
    session::{OwnForm, SignedIn, see_other},
    store_failure,
};
use crate::{
    page::{
        PageContext, PagePolicy,
        account::{self as page, KeyForm},
    },
    state::AppState,
};

/// Page with the live keys.
pub(in crate::routes) async fn show(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    list(&app, &context, &principal.account, None).await
}

/// Creates a further key, and shows it once.
///
/// The same form creates one key: sent again, it shows that key for some seconds, and later leads to the list.
pub(in crate::routes) async fn create(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    let (account, name, form) = (&principal.account, sent.field("name"), sent.field("token"));
    if account.blocked || form.is_empty() {
        return see_other(&context, "account/keys");
    }
    match app.accounts.keys.create(account, &name, &form).await {
        Ok(CreateAccountKeyOutcome::Created(key)) => show_new(&app, &context, Some(&name), &key),
        Ok(CreateAccountKeyOutcome::InvalidName) => list(&app, &context, account, Some(&name)).await,
        // The list says that the account is full.
        Ok(CreateAccountKeyOutcome::Repeated | CreateAccountKeyOutcome::AccountFull) => {
            see_other(&context, "account/keys")
        }
        // A directory of one key for an account: the new key replaces it.
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            match app.accounts.admin.issue_key(account.id.as_str()).await {
                Ok((_, key)) => show_new(&app, &context, None, &key),
                Err(error) => store_failure(&context, &error),
            }
        }
        Err(error) => store_failure(&context, &error),
    }
}

/// Replaces the key that the form names, and shows the new one once.
///
/// A form that is sent again names a key that is no longer live, so it does not replace the new key: it shows that key
/// for some seconds, and later leads to the list.
pub(in crate::routes) async fn rotate(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    let (account, id, form) = (&principal.account, KeyId::new(sent.field("key")), sent.field("token"));
    if account.blocked {
        return see_other(&context, "account/keys");
    }
    match app.accounts.keys.rotate_one(&account.id, &id, &form).await {
        Ok(Some(key)) => {
            // The successor has the name of the key. Without it, the page is complete, too.
            let keys = live_keys(&app, account).await.unwrap_or_default();
            let record = keys.into_iter().find(|live| live.key.hint == key.hint());
            let name = record.and_then(|record| record.name);
            show_new(&app, &context, name.as_deref(), &key)
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
    match app.accounts.keys.revoke(&principal.account.id, &KeyId::new(sent.field("key"))).await {
        Ok(_) => see_other(&context, "account/keys"),
        Err(error) => store_failure(&context, &error),
    }
}

/// The list; `rejected` is a name that the form did not accept.
async fn list(app: &AppState, context: &PageContext, account: &Account, rejected: Option<&str>) -> Response {
    let status = if rejected.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    match live_keys(app, account).await {
        Ok(keys) => {
            let form = KeyForm { token: app.accounts.sessions.form_token(), rejected };
            respond(status, page::keys(context, account, &keys, &form))
        }
        Err(error) => store_failure(context, &error),
    }
}

fn show_new(app: &AppState, context: &PageContext, name: Option<&str>, key: &ApiKey) -> Response {
    let page = page::new_key(context, name, key.reveal(), &app.lookup.options().base_url);
    respond_with(StatusCode::OK, page, PagePolicy::Script)
}

/// The live keys; none if the directory does not list them.
async fn live_keys(app: &AppState, account: &Account) -> Result<Vec<AccountKey>> {
    match app.accounts.keys.list(&account.id).await {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Vec::new()),
        keys => keys,
    }
}
