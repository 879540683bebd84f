//! Registration, sign-in and the pages of an account.
//!
//! Every form is a plain POST of this service's own pages ([`session::OwnForm`]), and redirects to a page that can be
//! reloaded. Pages are never stored by caches. The session is a random token in a cookie, of which only the digest is
//! stored.

pub(super) mod export;
pub(super) mod jobs;
pub(super) mod keys;
pub(super) mod orders;
pub(super) mod overview;
pub(super) mod privacy;
pub(super) mod session;
pub(super) mod sign_in;
pub(super) mod statement;

use axum::{
    extract::{FromRequest, Request},
    response::Response,
};
use http::{
    HeaderValue, StatusCode,
    header::{REFERRER_POLICY, RETRY_AFTER},
};
use maud::Markup;
use transcript_core::{Error, accounts::V1Error};

use super::html::{CacheMode, SAME_ORIGIN, html};
use crate::{
    api::{parameter, read_body},
    page::{PageContext, PagePolicy, account as page},
    state::AppState,
};

/// Limit of a form, in bytes.
const FORM_MAX: usize = 4 * 1024;

/// Response with a page of the account.
fn respond(status: StatusCode, page: Markup) -> Response {
    respond_with(status, page, PagePolicy::Form)
}

/// Response with a page of the account that may do what the policy allows.
fn respond_with(status: StatusCode, page: Markup, policy: PagePolicy) -> Response {
    own_referrer(html(status, page, CacheMode::Never, policy))
}

/// Lets browsers name the origin of the page's forms, to this service only.
pub(super) fn own_referrer(mut response: Response) -> Response {
    response.headers_mut().insert(REFERRER_POLICY, SAME_ORIGIN);
    response
}

/// Page of an error of the account's calls, in the words of the pages.
fn failure(context: &PageContext, error: &V1Error) -> Response {
    match error {
        V1Error::RateLimited { retry_after_s, .. } => {
            too_many(page::too_many(context, *retry_after_s), *retry_after_s)
        }
        V1Error::NotFound(_) => missing(context),
        _ => unavailable(context),
    }
}

/// Response beyond a rate limit, with the wait in seconds.
fn too_many(page: Markup, retry_after_s: u64) -> Response {
    let mut response = respond(StatusCode::TOO_MANY_REQUESTS, page);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
    response
}

fn store_failure(context: &PageContext, error: &Error) -> Response {
    tracing::error!(%error, "account page failed");
    unavailable(context)
}

fn unavailable(context: &PageContext) -> Response {
    let page = page::notice(context, "account.unavailable_title", "account.unavailable");
    respond(StatusCode::SERVICE_UNAVAILABLE, page)
}

fn missing(context: &PageContext) -> Response {
    respond(StatusCode::NOT_FOUND, page::notice(context, "account.missing_title", "account.missing"))
}

/// Page for a form of another site.
fn forbidden(context: &PageContext) -> Response {
    respond(StatusCode::FORBIDDEN, page::notice(context, "account.foreign_title", "account.foreign"))
}

/// A form that was sent. The rejection is the page of the error.
#[derive(Debug)]
pub(super) struct SentForm(Vec<u8>);

impl FromRequest<AppState> for SentForm {
    type Rejection = Response;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Response> {
        let (head, body) = request.into_parts();
        match read_body(&head.headers, body, FORM_MAX, &app.body_budget).await {
            Ok(form) => Ok(Self(form.to_vec())),
            Err(refusal) => {
                let context = PageContext::from_head(&head, &app.site);
                let page = page::notice(&context, "account.form_title", "account.form");
                Err(respond(refusal.status(), page))
            }
        }
    }
}

impl SentForm {
    /// A field without surrounding white space; empty if it is missing or repeated.
    fn field(&self, name: &'static str) -> String {
        form_field(&self.0, name)
    }
}

/// A field of a form without surrounding white space; empty if it is missing or repeated.
pub(super) fn form_field(form: &[u8], name: &'static str) -> String {
    let text = std::str::from_utf8(form).unwrap_or_default();
    parameter(text, name).ok().flatten().map(|value| value.trim().to_owned()).unwrap_or_default()
}
