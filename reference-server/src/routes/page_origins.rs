//! Refusal of what a page of another site makes its visitors' browsers send.
//!
//! A request without a content type needs no preflight, and counts toward the limits of the visitor's network.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderValue, StatusCode, header::ORIGIN, request::Parts};

use super::{
    account::session::{SEC_FETCH_SITE, is_own_form},
    in_form_of,
};
use crate::{api::ProblemResponse, page::WholeUri, state::AppState};

/// Message to a page of another site.
pub(super) const FOREIGN_PAGE: &str =
    "Pages of other sites may not send this request, unless the operator lists their origin.";

/// Pages that may send a request that needs no key: this service's own, and those of `server.cors_origins`.
#[derive(Clone, Debug)]
pub(super) struct PageOrigins {
    app: AppState,
    listed: Arc<[HeaderValue]>,
}

impl PageOrigins {
    /// Own pages of this service, and those of the listed origins.
    pub(super) fn new(app: AppState, listed: Arc<[HeaderValue]>) -> Self {
        Self { app, listed }
    }

    /// Whether the request is from no page, or from an allowed one.
    ///
    /// Programs send neither header. A browser that names no site, as to a host without HTTPS, names the origin. What a
    /// browser says of the site needs no comparison of addresses, which a proxy may have changed.
    fn allow(&self, head: &Parts) -> bool {
        let is_listed = || head.headers.get(ORIGIN).is_some_and(|origin| self.listed.contains(origin));
        match head.headers.get(SEC_FETCH_SITE) {
            Some(site) => site == "none" || site == "same-origin" || is_listed(),
            None => {
                !head.headers.contains_key(ORIGIN)
                    || is_listed()
                    || is_own_form(head, &self.app.lookup.options().base_url)
            }
        }
    }
}

/// Answers 403 to a request of another site's page, in the form of the API that the path belongs to.
pub(super) async fn refuse_foreign_page(
    State(origins): State<PageOrigins>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    if origins.allow(&head) {
        return next.run(Request::from_parts(head, body)).await;
    }
    let uri = head.extensions.get::<WholeUri>().map_or(&head.uri, |whole| &whole.0);
    in_form_of(uri.path(), ProblemResponse::new(StatusCode::FORBIDDEN, FOREIGN_PAGE))
}
