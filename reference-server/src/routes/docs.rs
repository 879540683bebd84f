//! Documentation routes: the `OpenAPI` document, its pages, and a summary for language models.

use std::sync::{Arc, OnceLock};

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::{IntoResponse, Response},
};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY},
};
use maud::Markup;
use serde_json::{Value, json};
use transcript_core::{accounts::AccountsOptions, lookup::LookupOptions};

use super::document::{self, DocumentOptions, parameters};
use crate::{
    api::{ProblemResponse, json},
    docs,
    state::AppState,
};

/// Builds the `OpenAPI` document of a service with these settings.
pub(crate) type BuildDocument = fn(&LookupOptions, &AccountsOptions) -> Value;

/// `OpenAPI` document, built on the first request, so that startup does not wait for it.
#[derive(Debug)]
pub(crate) struct CachedDocument {
    app: AppState,
    build: BuildDocument,
    value: OnceLock<Value>,
}

impl CachedDocument {
    /// Document of this service.
    pub(super) fn new(app: AppState, build: BuildDocument) -> Self {
        Self { app, build, value: OnceLock::new() }
    }

    fn value(&self) -> &Value {
        self.value.get_or_init(|| (self.build)(self.app.lookup.options(), self.app.accounts.options()))
    }
}

pub(super) async fn open_api(State(document): State<Arc<CachedDocument>>) -> Response {
    json(StatusCode::OK, document.value())
}

pub(super) async fn llms_txt(State(document): State<Arc<CachedDocument>>) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(CONTENT_TYPE, kind)], docs::llms_txt(document.value())).into_response()
}

pub(super) async fn overview(State(document): State<Arc<CachedDocument>>) -> Response {
    page(docs::overview(document.value()))
}

pub(super) async fn operation_page(
    State(document): State<Arc<CachedDocument>>,
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

/// Operation of `GET /openapi.json` in the document.
pub(crate) fn open_api_operation(_: &DocumentOptions<'_>) -> Value {
    let shortest = json!({ "openapi": "3.1.1", "info": {}, "paths": {} });
    let content = json!({
        "application/json": {
            "schema": { "type": "object", "required": ["openapi", "info", "paths"] },
            "examples": { "document": document::example("Outline", shortest) }
        }
    });
    json!({
        "operationId": "getOpenApi",
        "tags": ["service"],
        "summary": "Get this document",
        "description": "The OpenAPI document, with the limits and prices of this service.",
        "security": [],
        "responses": { "200": document::answer("This document.", content, []), "500": document::fault() }
    })
}

/// Operation of `GET /docs` in the document.
pub(crate) fn overview_operation(_: &DocumentOptions<'_>) -> Value {
    json!({
        "operationId": "getDocs",
        "tags": ["service"],
        "summary": "Read this document in the browser",
        "description": "A page that lists all operations, made from the OpenAPI document.",
        "security": [],
        "responses": { "200": docs_page("The overview of all operations."), "500": document::fault() }
    })
}

/// Operation of `GET /docs/{operation}` in the document.
pub(crate) fn operation_page_operation(_: &DocumentOptions<'_>) -> Value {
    json!({
        "operationId": "getDocsOfOperation",
        "tags": ["service"],
        "summary": "Read about one operation in the browser",
        "description": "A page about the operation, made from the OpenAPI document.",
        "security": [],
        "parameters": [parameters::operation()],
        "responses": {
            "200": docs_page("The operation with its parameters, responses and examples."),
            "404": document::refusal(
                (404, "Not Found"),
                "Unknown operation.",
                &[("unknown", "Unknown operation: /docs lists all operations.")],
                [],
            ),
            "500": document::fault()
        }
    })
}

/// Operation of `GET /llms.txt` in the document.
pub(crate) fn llms_txt_operation(_: &DocumentOptions<'_>) -> Value {
    let body = document::text_body(&json!({ "text": { "value": "# Verbatim: video transcripts\n" } }));
    json!({
        "operationId": "getLlmsTxt",
        "tags": ["service"],
        "summary": "Get a summary of this service for language models",
        "description": "How to call the service, and links to all operations.",
        "security": [],
        "responses": { "200": document::answer("Markdown text.", json!({ "text/plain": body }), []), "500": document::fault() }
    })
}

fn docs_page(description: &str) -> Value {
    let body = document::page_body("Documentation");
    document::answer(description, json!({ "text/html": body }), [document::cache_control(&["no-cache"])])
}
