//! Documentation routes: the `OpenAPI` document, its pages, and a summary for language models.
//!
//! Their bodies are made once, and so are those of other pages that depend on the settings only.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::VARY, request::Parts};
use maud::Markup;
use quick_cache::sync::Cache;
use serde_json::{Value, json};
use transcript_core::{accounts::AccountsOptions, lookup::LookupOptions};

use super::{
    document::{self, DocumentOptions, parameters},
    html::{HTML, confine},
};
#[cfg(feature = "mcp")]
use crate::mcp::tool_names;
use crate::{
    api::{ContentEncoding, JSON, PathName, ProblemResponse, json_bytes, path_name},
    docs,
    messages::PageLanguage,
    page::{PageContext, PagePolicy},
    response_cache::{CachedBody, RenderedBody},
    state::AppState,
};

/// Builds the `OpenAPI` document of a service with these settings.
pub(crate) type BuildDocument = fn(&LookupOptions, &AccountsOptions) -> Value;

/// Bodies that are kept: pages in some languages and encodings, of some ten kilobytes each.
const BODIES_MAX: usize = 256;

/// Detail of the 404 of a page that does not exist.
const UNKNOWN_PAGE: &str = "Unknown page: /docs lists all operations and guides.";

/// `OpenAPI` document, built on the first request, so that startup does not wait for it, and the bodies made from it.
#[derive(Debug)]
pub(crate) struct CachedDocument {
    pub(super) app: AppState,
    build: BuildDocument,
    value: OnceLock<Value>,
    bodies: Cache<DocsBodyKey, Arc<CachedBody>>,
}

/// What a body of the documentation depends on: its path, the language of the page, and the encoding.
type DocsBodyKey = (String, PageLanguage, ContentEncoding);

impl CachedDocument {
    /// Document of this service.
    pub(super) fn new(app: AppState, build: BuildDocument) -> Self {
        Self { app, build, value: OnceLock::new(), bodies: Cache::new(BODIES_MAX) }
    }

    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| (self.build)(self.app.lookup.options(), self.app.accounts.options()))
    }

    /// Response with a file, which is the same in every language; a fault if it cannot be rendered.
    pub(super) fn file(
        &self,
        path: &str,
        request: (&Method, &HeaderMap),
        render: impl FnOnce() -> Option<RenderedBody>,
    ) -> Response {
        let response = self.respond(path, PageLanguage::default(), request, render);
        response.unwrap_or_else(|| ProblemResponse::fault().into_response())
    }

    /// Response with a body that is rendered and compressed once. `None`: `render` finds nothing at this path.
    fn respond(
        &self,
        path: &str,
        language: PageLanguage,
        request: (&Method, &HeaderMap),
        render: impl FnOnce() -> Option<RenderedBody>,
    ) -> Option<Response> {
        let (method, headers) = request;
        // Browsers accept an unencoded body.
        let encoding = ContentEncoding::negotiate(headers).unwrap_or(ContentEncoding::Identity);
        let key = (path.to_owned(), language, encoding);
        let body = match self.bodies.get(&key) {
            Some(body) => body,
            None => {
                // Compression in memory does not fail.
                let body = Arc::new(CachedBody::render(render()?, encoding).ok()?);
                self.bodies.insert(key, Arc::clone(&body));
                body
            }
        };
        Some(body.response(headers, method).map(Body::new))
    }

    /// Response with a page; 404 if `render` finds nothing at this path.
    pub(super) fn page(
        &self,
        path: &str,
        policy: PagePolicy,
        context: &PageContext,
        request: (&Method, &HeaderMap),
        render: impl FnOnce() -> Option<Markup>,
    ) -> Response {
        let rendered =
            || render().map(|page| RenderedBody { kind: HTML, bytes: page.into_string().into_bytes() });
        let Some(mut response) = self.respond(path, context.language(), request, rendered) else {
            return ProblemResponse::new(StatusCode::NOT_FOUND, UNKNOWN_PAGE).into_response();
        };
        let headers = response.headers_mut();
        confine(headers, policy);
        headers.append(VARY, HeaderValue::from_static("accept-language"));
        response
    }
}

impl FromRequestParts<Arc<CachedDocument>> for PageContext {
    type Rejection = Infallible;

    async fn from_request_parts(
        head: &mut Parts,
        document: &Arc<CachedDocument>,
    ) -> Result<Self, Infallible> {
        Ok(Self::from_head(head, &document.app.site))
    }
}

pub(super) async fn open_api(
    State(document): State<Arc<CachedDocument>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let render = || {
        let bytes = json_bytes(serde_json::to_vec(document.value())).ok()?;
        Some(RenderedBody { kind: JSON, bytes })
    };
    document.file("openapi.json", (&method, &headers), render)
}

/// Names of the tools for assistants, which this build lacks.
#[cfg(not(feature = "mcp"))]
fn tool_names() -> Vec<String> {
    Vec::new()
}

pub(super) async fn llms_txt(
    State(document): State<Arc<CachedDocument>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let render = || {
        let kind = "text/plain; charset=utf-8";
        let text = docs::llms_txt(document.value(), &tool_names());
        Some(RenderedBody { kind, bytes: text.into_bytes() })
    };
    document.file("llms.txt", (&method, &headers), render)
}

pub(super) async fn overview(
    State(document): State<Arc<CachedDocument>>,
    context: PageContext,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let render = || Some(docs::overview(&context, document.value()));
    document.page("docs", docs::POLICY, &context, (&method, &headers), render)
}

pub(super) async fn operation_page(
    State(document): State<Arc<CachedDocument>>,
    context: PageContext,
    path: PathName,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let id = path_name(path);
    let render = || docs::operation(&context, document.value(), &id);
    document.page(&format!("docs/{id}"), docs::POLICY, &context, (&method, &headers), render)
}

pub(super) async fn guide_page(
    State(document): State<Arc<CachedDocument>>,
    context: PageContext,
    path: PathName,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let name = path_name(path);
    let app = &document.app;
    let options = (app.lookup.options(), app.accounts.options());
    let render = || docs::guide(&context, document.value(), options, &name);
    document.page(&format!("docs/guides/{name}"), docs::POLICY, &context, (&method, &headers), render)
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
        "responses": named_page("The operation with its parameters, responses and examples.", "Unknown operation.")
    })
}

/// Operation of `GET /docs/guides/{guide}` in the document.
pub(crate) fn guide_page_operation(_: &DocumentOptions<'_>) -> Value {
    json!({
        "operationId": "getGuide",
        "tags": ["service"],
        "summary": "Read a guide in the browser",
        "description": "A page about one subject, with samples and the limits of this service.",
        "security": [],
        "parameters": [parameters::guide()],
        "responses": named_page("The guide.", "Unknown guide.")
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

/// Responses of a page that the path names.
fn named_page(found: &str, unknown: &str) -> Value {
    json!({
        "200": docs_page(found),
        "404": document::refusal((404, "Not Found"), unknown, &[("unknown", UNKNOWN_PAGE)], []),
        "500": document::fault()
    })
}

fn docs_page(description: &str) -> Value {
    let body = document::page_body("Documentation");
    document::answer(description, json!({ "text/html": body }), [document::cache_control(&["no-cache"])])
}
