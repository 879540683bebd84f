//! `/register`, `/sign-in` and `/sign-out`.

use axum::{Extension, extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use transcript_core::{accounts::V1Error, ids::SessionId};

use super::{
    SentForm, failure, respond,
    session::{
        OwnForm, SignedIn, clear_cookie, clear_next, device, next, principal, see_other, set_cookie, set_next,
    },
    too_many,
};
use crate::{
    api::{ClientAddress, parameter},
    page::{
        PageContext,
        account::{self as page, MailForm, MailFormMessage},
    },
    state::AppState,
};

/// Page with the registration form.
pub(in crate::routes) async fn register_page(
    State(app): State<AppState>,
    context: PageContext,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    mail_page(&app, &context, &headers, MailForm::Register, &uri).await
}

/// Page with the sign-in form.
pub(in crate::routes) async fn sign_in_page(
    State(app): State<AppState>,
    context: PageContext,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    mail_page(&app, &context, &headers, MailForm::SignIn, &uri).await
}

/// The form; a visitor who is signed in already is sent to `next`.
async fn mail_page(
    app: &AppState,
    context: &PageContext,
    headers: &HeaderMap,
    form: MailForm,
    uri: &Uri,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let next = parameter(query, "next").ok().flatten().unwrap_or_default();
    let next = page::own_path(&next);
    let is_ended = parameter(query, "ended").ok().flatten().is_some();
    let message = is_ended.then_some(MailFormMessage::SessionEnded);
    match principal(app, headers).await {
        Ok(Some(_)) => see_other(context, next.unwrap_or("account")),
        Ok(None) => respond(StatusCode::OK, page::mail_form(context, form, "", next, message)),
        Err(error) => failure(context, &error),
    }
}

/// Queues the mail of the registration form.
pub(in crate::routes) async fn register(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    sent: SentForm,
) -> Response {
    queue_mail(&app, &context, client, &headers, &sent, MailForm::Register).await
}

/// Queues the mail of the sign-in form.
pub(in crate::routes) async fn sign_in(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    sent: SentForm,
) -> Response {
    queue_mail(&app, &context, client, &headers, &sent, MailForm::SignIn).await
}

/// Both forms do the same, so that neither reveals whether an address has an account.
async fn queue_mail(
    app: &AppState,
    context: &PageContext,
    client: ClientAddress,
    headers: &HeaderMap,
    sent: &SentForm,
    form: MailForm,
) -> Response {
    let (email, wanted) = (sent.field("email"), sent.field("next"));
    let (next, base_url) = (page::own_path(&wanted), &app.lookup.options().base_url);
    match app.accounts.keys.request_sign_in(&email, Some(client.0), context.tag()).await {
        Ok(()) => {
            let mut response = see_other(context, "sign-in/sent");
            // The mail does not carry it: the link is opened by this browser, or leads to the account.
            match next {
                Some(next) => set_next(&mut response, next, base_url),
                // That of an earlier form may be another person's.
                None => clear_next(&mut response, headers, base_url),
            }
            response
        }
        Err(V1Error::BadRequest(_)) => {
            let page = page::mail_form(context, form, &email, next, Some(MailFormMessage::BadAddress));
            respond(StatusCode::BAD_REQUEST, page)
        }
        Err(V1Error::RateLimited { retry_after_s, .. }) => {
            let message = MailFormMessage::TooMany { retry_after_s };
            too_many(page::mail_form(context, form, &email, next, Some(message)), retry_after_s)
        }
        Err(error) => failure(context, &error),
    }
}

/// "Check your inbox": the same page for every address.
pub(in crate::routes) async fn sent_page(
    State(app): State<AppState>,
    context: PageContext,
    headers: HeaderMap,
) -> Response {
    let next = next(&headers, &app.lookup.options().base_url);
    respond(StatusCode::OK, page::mail_sent(&context, next.as_deref()))
}

/// Page of the mailed link, with a button: a mail scanner that opens the link does not use it up.
pub(in crate::routes) async fn confirm_page(
    State(app): State<AppState>,
    context: PageContext,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let token = parameter(uri.query().unwrap_or_default(), "token").ok().flatten().unwrap_or_default();
    match token.is_empty() {
        true => link_invalid(&app, &context, &headers),
        false => {
            let form = app.accounts.sessions.form_token();
            respond(StatusCode::OK, page::confirm_sign_in(&context, &token, &form))
        }
    }
}

/// "The link does not work": the way to another one keeps the page that the visitor wanted to see.
fn link_invalid(app: &AppState, context: &PageContext, headers: &HeaderMap) -> Response {
    let next = next(headers, &app.lookup.options().base_url);
    respond(StatusCode::BAD_REQUEST, page::link_invalid(context, next.as_deref()))
}

/// The button of the mailed link: opens a session with a new token. A second click gets the same session.
pub(in crate::routes) async fn confirm(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    sent: SentForm,
) -> Response {
    let (token, form) = (sent.field("token"), sent.field("form"));
    match app.accounts.sessions.sign_in(&token, &form, &device(&headers), Some(client.0)).await {
        Ok(Some(opened)) => {
            end_other_session(&app, &headers, &opened.session.id).await;
            let base_url = &app.lookup.options().base_url;
            let next = next(&headers, base_url);
            let mut response = see_other(&context, next.as_deref().unwrap_or("account"));
            set_cookie(&mut response, &opened, base_url);
            clear_next(&mut response, &headers, base_url);
            response
        }
        Ok(None) => link_invalid(&app, &context, &headers),
        Err(error) => failure(&context, &error),
    }
}

/// Ends the session that the browser had before, whose cookie is about to be replaced by that of the opened one.
pub(in crate::routes) async fn end_other_session(app: &AppState, headers: &HeaderMap, opened: &SessionId) {
    if let Ok(Some(present)) = principal(app, headers).await
        && present.session.id != *opened
    {
        // If it cannot be ended, it expires.
        let _ = app.accounts.sessions.revoke(&present.account.id, &present.session.id).await;
    }
}

/// Ends the session.
pub(in crate::routes) async fn sign_out(
    State(app): State<AppState>,
    _: OwnForm,
    context: PageContext,
    SignedIn(principal): SignedIn,
) -> Response {
    match app.accounts.sessions.revoke(&principal.account.id, &principal.session.id).await {
        Ok(()) => {
            let mut response = see_other(&context, "sign-in");
            clear_cookie(&mut response, &app.lookup.options().base_url);
            response
        }
        Err(error) => failure(&context, &error),
    }
}
