//! The sessions of an account, and its deletion.

use axum::{extract::State, response::Response};
use http::StatusCode;
use tracing::Instrument as _;
use transcript_core::{Error, ErrorKind, Result, Retry, accounts::Email, directory::Account, ids::SessionId};

use super::{
    SentForm, failure, respond,
    session::{OwnForm, SignedIn, clear_cookie, see_other},
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

/// Page that explains the deletion and takes its confirmation.
pub(in crate::routes) async fn delete_page(
    State(app): State<AppState>,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    show_deletion(&app, &context, &principal.account, StatusCode::OK, None)
}

/// The page; `error` is a message about the last attempt.
fn show_deletion(
    app: &AppState,
    context: &PageContext,
    account: &Account,
    status: StatusCode,
    error: Option<&str>,
) -> Response {
    let has_subscription = app.payments.has_subscription(account);
    respond(status, page::delete(context, account, has_subscription, error))
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
        return show_deletion(&app, &context, account, StatusCode::CONFLICT, Some("account.blocked"));
    }
    let typed = sent.field("email");
    let is_confirmed =
        Email::parse(&typed).map_or(typed == account.email, |email| email.as_str() == account.email);
    if !is_confirmed {
        let error = Some("privacy.delete_mismatch");
        return show_deletion(&app, &context, account, StatusCode::BAD_REQUEST, error);
    }
    match close_and_delete(&app, account).await {
        Ok(()) => {
            let mut response = see_other(&context, "account/deleted");
            clear_cookie(&mut response, &app.lookup.options().base_url);
            response
        }
        Err(error) if error.kind() == ErrorKind::Conflict => {
            show_deletion(&app, &context, account, StatusCode::CONFLICT, Some("privacy.delete_refused"))
        }
        Err(error) => {
            tracing::error!(%error, "account deletion failed");
            // Sessions and jobs end before the account is erased.
            let page = page::notice(&context, "account.unavailable_title", "privacy.delete_failed");
            respond(StatusCode::SERVICE_UNAVAILABLE, page)
        }
    }
}

/// Deletes an account and its mails in the outbox folder, also if the browser disconnects.
async fn close_and_delete(app: &AppState, account: &Account) -> Result<()> {
    let (app, account) = (app.clone(), account.clone());
    let work = async move {
        let closed = match app.payments.is_configured() {
            true => app.payments.close(&account).await?,
            false => account,
        };
        if closed.blocked {
            return Err(Error::new(ErrorKind::Conflict, Retry::Never, "the account is blocked"));
        }
        match app.accounts.admin.delete(&closed, false).await {
            // A second click: the first one has deleted the account.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            deleted => deleted?,
        }
        app.delete_outbox_mails(&closed.email).await;
        Ok(())
    };
    let interrupted = |_| Err(Error::unavailable("the deletion was interrupted"));
    tokio::spawn(work.in_current_span()).await.unwrap_or_else(interrupted)
}

/// Page after the deletion.
pub(in crate::routes) async fn deleted_page(context: PageContext) -> Response {
    respond(StatusCode::OK, page::notice(&context, "privacy.deleted_title", "privacy.deleted"))
}
