//! Pages for people, with the headers that keep them what they are.

use axum::response::{IntoResponse, Response};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY},
};
use maud::Markup;

use crate::page;

/// Whether a page has a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It has none: it is kept as long as it is not older than what it shows.
    None,
    /// It has one that is sent back here, or came of one: it holds a secret, and is kept nowhere.
    Own,
}

/// A page that can do nothing but show itself: no script, no frame, nothing from elsewhere.
pub(super) fn html(status: StatusCode, page: Markup, form: Form) -> Response {
    let fixed = HeaderValue::from_static;
    let cache = match form {
        Form::None => "no-cache",
        Form::Own => "no-store",
    };
    let headers: [(HeaderName, HeaderValue); 4] = [
        (CONTENT_TYPE, fixed("text/html; charset=utf-8")),
        (CACHE_CONTROL, fixed(cache)),
        (CONTENT_SECURITY_POLICY, page::content_security_policy(form == Form::Own)),
        (REFERRER_POLICY, fixed("no-referrer")),
    ];
    (status, headers, page.into_string()).into_response()
}
