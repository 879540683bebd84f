//! The sessions of an account, the export of its data, and its deletion.

use axum::{extract::State, response::Response};
use http::StatusCode;
use transcript_core::{ErrorKind, accounts::Email, ids::SessionId, wire::v1::AccountExport};

use super::{
    SentForm, failure, respond,
    session::{OwnForm, SignedIn, clear_cookie, see_other},
    statement::attachment,
    store_failure,
};
use crate::{
    page::{PageContext, account as page},
    state::AppState,
};

/// Page with the sessions.
pub(in crate::routes) async fn sessions(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    match app.accounts.sessions.list(&principal.account.id).await {
        Ok(sessions) => respond(StatusCode::OK, page::sessions(&context, &sessions, &principal.session.id)),
        Err(error) => failure(&context, &error),
    }
}

/// Ends one session, or all except this one.
pub(in crate::routes) async fn revoke(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    let (account, present) = (&principal.account.id, &principal.session.id);
    let session = SessionId::new(sent.field("session"));
    let ended = match session.as_str().is_empty() {
        true => app.accounts.sessions.revoke_others(account, present).await,
        false => app.accounts.sessions.revoke(account, &session).await,
    };
    match ended {
        Ok(()) => see_other(&context, "account/sessions"),
        Err(error) => failure(&context, &error),
    }
}

/// Everything that is stored about the account, as JSON.
pub(in crate::routes) async fn export(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    match app.accounts.admin.export(principal.account.id.as_str()).await {
        Ok(export) => {
            // The wire types always serialize.
            let json = serde_json::to_string_pretty(&AccountExport::from(&export)).unwrap_or_default();
            attachment(json, "application/json", "account.json")
        }
        Err(error) => store_failure(&context, &error),
    }
}

/// Page that explains the deletion and takes its confirmation.
pub(in crate::routes) async fn delete_page(context: PageContext, SignedIn(principal): SignedIn) -> Response {
    respond(StatusCode::OK, page::delete(&context, &principal.account, None))
}

/// Deletes the account whose address was typed as confirmation.
pub(in crate::routes) async fn delete(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
    sent: SentForm,
) -> Response {
    let account = &principal.account;
    if account.blocked {
        // Its address could register again, and would not be blocked. The operator may delete it.
        let page = page::delete(&context, account, Some("account.blocked"));
        return respond(StatusCode::CONFLICT, page);
    }
    let typed = sent.field("email");
    let is_confirmed =
        Email::parse(&typed).map_or(typed == account.email, |email| email.as_str() == account.email);
    if !is_confirmed {
        let page = page::delete(&context, account, Some("privacy.delete_mismatch"));
        return respond(StatusCode::BAD_REQUEST, page);
    }
    let deleted = async {
        let closed = match app.payments.is_configured() {
            true => app.payments.close(account).await?,
            false => account.clone(),
        };
        app.accounts.admin.delete(&closed, false).await
    };
    match deleted.await {
        Ok(()) => {
            let mut response = see_other(&context, "account/deleted");
            clear_cookie(&mut response, &app.lookup.options().base_url);
            response
        }
        Err(error) if error.kind() == ErrorKind::Conflict => {
            let page = page::delete(&context, account, Some("privacy.delete_refused"));
            respond(StatusCode::CONFLICT, page)
        }
        Err(error) => store_failure(&context, &error),
    }
}

/// Page after the deletion.
pub(in crate::routes) async fn deleted_page(context: PageContext) -> Response {
    respond(StatusCode::OK, page::notice(&context, "privacy.deleted_title", "privacy.deleted"))
}
