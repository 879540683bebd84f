//! Documentation routes: the `OpenAPI` document, its pages, and a summary for language models.

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

use super::{AppState, with};
use crate::{
    docs,
    http::{CorsRule, ProblemResponse, json},
    openapi,
};

/// Routes of the documentation.
pub(super) fn routes(app: AppState) -> Router<AppState> {
    let document = Arc::new(CachedDocument { app, value: OnceLock::new() });
    let open = || CorsRule::open("GET, HEAD, OPTIONS");
    Router::new()
        .route("/openapi.json", with(get(open_api), open()))
        .route("/llms.txt", with(get(llms_txt), open()))
        .route("/docs", with(get(overview), CorsRule::own("GET, HEAD, OPTIONS")))
        .route("/docs/{operation}", with(get(operation), CorsRule::own("GET, HEAD, OPTIONS")))
        .layer(Extension(document))
}

/// `OpenAPI` document, built on the first request, so that startup does not wait for it.
struct CachedDocument {
    app: AppState,
    value: OnceLock<Value>,
}

impl CachedDocument {
    fn value(&self) -> &Value {
        self.value.get_or_init(|| openapi::document(self.app.lookup.options(), self.app.accounts.options()))
    }
}

async fn open_api(Extension(document): Extension<Arc<CachedDocument>>) -> Response {
    json(StatusCode::OK, document.value())
}

async fn llms_txt(Extension(document): Extension<Arc<CachedDocument>>) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(CONTENT_TYPE, kind)], docs::llms_txt(document.value())).into_response()
}

async fn overview(Extension(document): Extension<Arc<CachedDocument>>) -> Response {
    page(docs::overview(document.value()))
}

async fn operation(
    Extension(document): Extension<Arc<CachedDocument>>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let shown = path.ok().and_then(|Path(id)| docs::operation(document.value(), &id));
    match shown {
        Some(shown) => page(shown),
        None => ProblemResponse::new(StatusCode::NOT_FOUND, "Unknown operation: /docs lists all operations.")
            .into_response(),
    }
}

/// HTML page without scripts.
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
