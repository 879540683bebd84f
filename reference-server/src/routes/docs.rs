//! What the service says of itself: the `OpenAPI` document for programs, the same as pages for developers, and in short
//! for language models.

use std::sync::{Arc, OnceLock};

use axum::{
    Extension, Router,
    extract::{Path, rejection::PathRejection},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY},
};
use maud::Markup;
use serde_json::Value;

use super::{App, with};
use crate::{
    docs,
    http::{CorsRule, Refusal, json},
    openapi,
};

/// The routes of the document and of what is made of it.
pub(super) fn routes(app: App) -> Router<App> {
    let document = Arc::new(Document { app, value: OnceLock::new() });
    let open = || CorsRule::open("GET, HEAD, OPTIONS");
    Router::new()
        .route("/openapi.json", with(get(open_api), open()))
        .route("/llms.txt", with(get(llms_txt), open()))
        .route("/docs", with(get(overview), CorsRule::own("GET, HEAD, OPTIONS")))
        .route("/docs/{operation}", with(get(operation), CorsRule::own("GET, HEAD, OPTIONS")))
        .layer(Extension(document))
}

/// The interface's own document. It is made for whoever asks first: hardly anybody does, and a server that
/// starts has others to answer.
struct Document {
    app: App,
    value: OnceLock<Value>,
}

impl Document {
    fn value(&self) -> &Value {
        self.value.get_or_init(|| openapi::document(self.app.lookup.options(), self.app.accounts.options()))
    }
}

async fn open_api(Extension(document): Extension<Arc<Document>>) -> Response {
    json(StatusCode::OK, document.value())
}

async fn llms_txt(Extension(document): Extension<Arc<Document>>) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(CONTENT_TYPE, kind)], docs::llms_txt(document.value())).into_response()
}

async fn overview(Extension(document): Extension<Arc<Document>>) -> Response {
    page(docs::overview(document.value()))
}

async fn operation(
    Extension(document): Extension<Arc<Document>>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let shown = path.ok().and_then(|Path(id)| docs::operation(document.value(), &id));
    match shown {
        Some(shown) => page(shown),
        None => Refusal::new(StatusCode::NOT_FOUND, "There is no such operation: /docs lists all of them.")
            .into_response(),
    }
}

/// A page that can do nothing but show itself.
fn page(page: Markup) -> Response {
    let fixed = HeaderValue::from_static;
    let headers: [(HeaderName, HeaderValue); 4] = [
        (CONTENT_TYPE, fixed("text/html; charset=utf-8")),
        (CACHE_CONTROL, fixed("no-cache")),
        (CONTENT_SECURITY_POLICY, docs::content_security_policy()),
        (REFERRER_POLICY, fixed("no-referrer")),
    ];
    (headers, page.into_string()).into_response()
}
