//! Pages for people, with the headers that keep them what they are.

use axum::response::{IntoResponse, Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
    header::{
        ACCEPT, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_LENGTH,
        CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
    },
};
use http_body_util::Either;
use maud::Markup;

use super::v1::weight;
use crate::{
    http::{AnswerBody, Said},
    page::{self, May},
};

/// The media type of a page.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Whether a page may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// As long as it is not older than what it shows.
    WhileTrue,
    /// Nowhere: it holds a secret, or is true for a moment only.
    Never,
}

/// A page that can do what it may, and nothing else.
pub(super) fn html(status: StatusCode, page: Markup, keep: Keep, may: May) -> Response {
    let cache = match keep {
        Keep::WhileTrue => "no-cache",
        Keep::Never => "no-store",
    };
    let mut response = (status, page.into_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    confine(headers, may);
    response
}

/// The headers of a page whose body is ready.
pub(super) fn confine(headers: &mut HeaderMap, may: May) {
    headers.insert(CONTENT_SECURITY_POLICY, page::content_security_policy(may));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // Ready bodies are the API's, which anybody's page may read; pages are for people.
    let of_the_api: [HeaderName; 2] = [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS];
    for name in of_the_api {
        headers.remove(name);
    }
}

/// Whether the caller would rather read a page than JSON. Only who names HTML does: `*/*` is a program's.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let (mut page, mut data) = (0, 0);
    for range in headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for range in range.split(',') {
            let (kind, rest) = range.split_once(';').unwrap_or((range, ""));
            let kind = kind.trim().to_ascii_lowercase();
            let weight = weight(rest);
            match kind.as_str() {
                "text/html" | "application/xhtml+xml" => page = page.max(weight),
                "application/json" => data = data.max(weight),
                _ => {}
            }
        }
    }
    page > data
}

/// Where an error is to be a page: a browser asks for something that is no interface for programs.
#[derive(Debug)]
pub(crate) struct Dress(Option<String>);

impl Dress {
    /// What the answer to a request is to be dressed as.
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path();
        let is_page = !path.starts_with("/api") && wants_page(headers);
        Self(is_page.then(|| page::root_of(path)))
    }

    /// The answer, as a page where it says what went wrong.
    pub(crate) fn on(self, response: Response<AnswerBody>) -> Response<AnswerBody> {
        let (Some(root), Some(Said(detail))) = (self.0, response.extensions().get::<Said>()) else {
            return response;
        };
        let status = response.status();
        let page = html(status, page::problem::problem(status, detail, &root), Keep::Never, May::Show);
        let (mut head, _) = response.into_parts();
        let (dressed, body) = page.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        head.headers.extend(dressed.headers);
        head.headers.append(VARY, HeaderValue::from_static("accept"));
        Response::from_parts(head, Either::Right(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_html_gets_a_page() {
        for (accept, expect) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&["application/json, text/plain, */*"], false),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], true),
            (&["Text/HTML; q=0.5"], true),
            (&["text/html;q=0"], false),
            (&["text/html;q=0.5, application/json"], false),
            (&["text/html, application/json"], false),
            (&["application/json;q=0.2", "text/html"], true),
            (&["text/html;q=nonsense"], false),
            (&["text/html;level=1;q=0.7, application/json;q=0.6"], true),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, value.parse().unwrap());
            }
            assert_eq!(wants_page(&headers), expect, "{accept:?}");
        }
    }
}
