//! HTML responses and their security headers.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
    header::{
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_LENGTH,
        CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER, VARY,
    },
};
use http_body_util::Either;
use maud::Markup;

use crate::{
    api::{ProblemDetail, RETRY_AFTER_BUSY, ResponseBody, wants_page},
    page::{self, PageContext, PagePolicy, site::Site},
};

/// Media type of a page.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Referrer policy of pages with forms: browsers hide the origin of forms from pages with `no-referrer`.
pub(super) const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// Caching rule of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheMode {
    /// Cacheable, with revalidation on every use.
    WhileTrue,
    /// Not stored: the page holds a secret or changes quickly.
    Never,
}

/// HTML response with a content security policy.
pub(super) fn html(status: StatusCode, page: Markup, cache_mode: CacheMode, policy: PagePolicy) -> Response {
    let cache = match cache_mode {
        CacheMode::WhileTrue => "no-cache",
        CacheMode::Never => "no-store",
    };
    let mut response = (status, page.into_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(VARY, HeaderValue::from_static("accept-language"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, RETRY_AFTER_BUSY);
    }
    confine(headers, policy);
    response
}

/// Redirect to an address, with a page for browsers that do not follow it.
pub(super) fn redirect(context: &PageContext, address: &str) -> Response {
    let page = page::account::redirect(context);
    let mut response = html(StatusCode::SEE_OTHER, page, CacheMode::Never, PagePolicy::Form);
    let location = HeaderValue::try_from(address).unwrap_or(HeaderValue::from_static("."));
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Sets the security headers of a page.
pub(super) fn confine(headers: &mut HeaderMap, policy: PagePolicy) {
    // Cached bodies have the CORS headers of the API; pages must not be readable by other origins. Removed first, so
    // that the map has room for the others.
    let api_headers: [HeaderName; 2] = [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS];
    for name in api_headers {
        headers.remove(name);
    }
    headers.insert(CONTENT_SECURITY_POLICY, page::content_security_policy(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// Most slashes in the path of an error page. Each link of a page has a step for each of them, and no page has five.
const SLASHES_MAX: usize = 16;

/// Context of an HTML error page, if a browser requests a path outside the API.
#[derive(Debug, Default)]
pub(crate) struct HtmlError(Option<PageContext>);

impl HtmlError {
    /// Decides by path and `Accept` whether an error response becomes a page.
    pub(crate) fn for_request(site: &Arc<Site>, method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path();
        let is_page =
            !path.starts_with("/api") && path.matches('/').nth(SLASHES_MAX).is_none() && wants_page(headers);
        Self(is_page.then(|| PageContext::new(Arc::clone(site), method, uri, headers)))
    }

    /// Replaces an error response by a page with the same detail.
    pub(crate) fn apply(self, response: Response<ResponseBody>) -> Response<ResponseBody> {
        let (Some(context), Some(ProblemDetail(detail, links))) =
            (self.0, response.extensions().get::<ProblemDetail>())
        else {
            return response;
        };
        let status = response.status();
        let page = page::problem::problem(&context, status, detail, links);
        let page = html(status, page, CacheMode::Never, PagePolicy::Static);
        let (mut head, _) = response.into_parts();
        let (page_head, body) = page.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        head.headers.extend(page_head.headers);
        head.headers.append(VARY, HeaderValue::from_static("accept"));
        Response::from_parts(head, Either::Right(body))
    }
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

    use super::*;

    #[test]
    fn error_page_path_with_many_slashes_has_none() {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html"))]);
        for (path, is_page) in [
            ("/nothing".to_owned(), true),
            ("/a".repeat(SLASHES_MAX), true),
            ("/a".repeat(SLASHES_MAX + 1), false),
            ("/".repeat(60_000), false),
            ("/api/nothing".to_owned(), false),
        ] {
            let uri = Uri::try_from(path).unwrap();
            let page = HtmlError::for_request(&Arc::default(), &Method::GET, &uri, &headers);
            assert_eq!(page.0.is_some(), is_page, "{uri}");
        }
    }
}
