//! `/checkout/{order}`: the order page to which buyers return, and the sandbox's checkout page.
//!
//! A GET only stores state read from the provider. On the sandbox page only the buttons change state; they send the
//! secret of the page's address.

use std::time::Duration;

use axum::{
    extract::{FromRequestParts, Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode, Uri, request::Parts};
use maud::Markup;
use serde_json::{Value, json};
use transcript_core::{
    Result,
    accounts::payments::{OrderStatus, Sandbox, SandboxAction, SandboxOrder},
    ids::OrderId,
};

use super::{
    account::{self, form_field},
    document::{self, DocumentOptions},
    html::{CacheMode, html, redirect},
    v1::{BODY_MAX, document::parameters},
};
use crate::{
    api::{PathName, is_local, parameter, path_name, read_body},
    page::{PageContext, PagePolicy, checkout as page},
    state::AppState,
};

/// Longest order id, in bytes.
const ORDER_MAX: usize = 128;
/// Timeout of a provider query; after it the page shows the stored status.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(8);

/// A caller on this machine. The sandbox gives credits without payment, so it serves no others.
#[derive(Debug)]
pub(super) struct LocalCaller;

impl FromRequestParts<AppState> for LocalCaller {
    type Rejection = Response;

    async fn from_request_parts(head: &mut Parts, app: &AppState) -> std::result::Result<Self, Response> {
        if app.sandbox.is_none() || is_local(head) {
            return Ok(Self);
        }
        let context = PageContext::from_head(head, &app.site);
        Err(respond(StatusCode::FORBIDDEN, page::error(&context, "sandbox.local")))
    }
}

/// Order status: the provider's page sends buyers here after a payment or a cancellation.
pub(super) async fn order_page(
    State(app): State<AppState>,
    context: PageContext,
    headers: HeaderMap,
    path: PathName,
) -> Response {
    let Some(id) = order_id(path) else { return missing(&context) };
    match order_status(&app, &id).await {
        Ok(Some(status)) => {
            let viewer = viewer(&app, &headers, &status).await;
            let page = page::order_status(&context, &status, viewer);
            match viewer.can_continue(&status) {
                true => {
                    let policy = PagePolicy::Purchase;
                    account::own_referrer(html(StatusCode::OK, page, CacheMode::Never, policy))
                }
                false => respond(StatusCode::OK, page),
            }
        }
        Ok(None) => missing(&context),
        Err(error) => unavailable(&context, &error),
    }
}

/// Who sends the request for the page of an order.
async fn viewer(app: &AppState, headers: &HeaderMap, status: &OrderStatus) -> page::OrderViewer {
    let principal = match account::session::principal(app, headers).await {
        Ok(Some(principal)) => principal,
        Ok(None) => return page::OrderViewer::SignedOut,
        // The visitor may be signed in.
        Err(_) => return page::OrderViewer::Other,
    };
    if principal.account.id != status.order.account {
        return page::OrderViewer::Other;
    }
    let view = app.accounts.admin.view_account(&principal.account).await;
    page::OrderViewer::Buyer { credits: view.ok().map(|view| view.credits.remaining) }
}

/// Sandbox checkout page of an order.
pub(super) async fn sandbox_page(
    State(app): State<AppState>,
    _: LocalCaller,
    context: PageContext,
    path: PathName,
    uri: Uri,
) -> Response {
    let token = parameter(uri.query().unwrap_or_default(), "token").ok().flatten();
    let (Some(sandbox), Some(id), Some(token)) = (&app.sandbox, order_id(path), token) else {
        return missing(&context);
    };
    match sandbox.show(&id, &token).await {
        Ok(Some(order)) => respond(StatusCode::OK, page::sandbox(&context, &order, &token)),
        Ok(None) => missing(&context),
        Err(error) => unavailable(&context, &error),
    }
}

/// Button of the sandbox page.
pub(super) async fn sandbox_action(
    State(app): State<AppState>,
    _: LocalCaller,
    context: PageContext,
    path: PathName,
    request: Request,
) -> Response {
    let (Some(sandbox), Some(id)) = (&app.sandbox, order_id(path)) else {
        return missing(&context);
    };
    let (head, body) = request.into_parts();
    let form = match read_body(&head.headers, body, BODY_MAX, &app.body_budget).await {
        Ok(form) => form,
        Err(refusal) => return respond(refusal.status(), page::error(&context, "problem.incomplete")),
    };
    let token = form_field(&form, "token");
    let order = match sandbox.show(&id, &token).await {
        Ok(Some(order)) => order,
        Ok(None) => return missing(&context),
        Err(error) => return unavailable(&context, &error),
    };
    let action = match parse_action(&form, &order) {
        Ok(action) => action,
        Err(why) => return respond(StatusCode::BAD_REQUEST, page::error(&context, why)),
    };
    match apply(&app, sandbox, &id, &token, action).await {
        // Like a real provider, the sandbox returns the buyer to the shop after a payment or a cancellation.
        Ok(()) if matches!(action, SandboxAction::Pay | SandboxAction::Cancel) => {
            redirect(&context, &format!("../{id}{}", context.with_language("")))
        }
        Ok(()) => {
            let query = context.with_language(&format!("?token={token}"));
            redirect(&context, &format!("sandbox{query}"))
        }
        Err(error) => unavailable(&context, &error),
    }
}

/// Applies the action of a button and reconciles the order, as after an event of any provider.
async fn apply(
    app: &AppState,
    sandbox: &Sandbox,
    id: &OrderId,
    token: &str,
    action: SandboxAction,
) -> Result<()> {
    match sandbox.apply(id, token, action).await? {
        Some(subject) => app.payments.reconcile(&subject).await,
        None => Ok(()),
    }
}

/// Returns the order's status, refreshed from the provider if its payment may have changed.
async fn order_status(app: &AppState, id: &OrderId) -> Result<Option<OrderStatus>> {
    let Some(stored) = app.payments.stored_status(id).await? else { return Ok(None) };
    if !stored.needs_refresh() || !app.payments.count_refresh(id).await? {
        return Ok(Some(stored));
    }
    match tokio::time::timeout(REFRESH_TIMEOUT, app.payments.refreshed_status(id)).await {
        Ok(Ok(status)) => Ok(status),
        // The stored status is shown; an event or the payment sweep updates it later.
        Ok(Err(error)) => {
            tracing::warn!(%error, "order status refresh failed");
            Ok(Some(stored))
        }
        Err(_) => Ok(Some(stored)),
    }
}

/// Order id of a path; `None` if it is malformed.
fn order_id(path: PathName) -> Option<OrderId> {
    let id = path_name(path);
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (!id.is_empty() && id.len() <= ORDER_MAX && id.bytes().all(is_id)).then(|| OrderId::new(id))
}

/// Action of the pressed button. The error is a message.
fn parse_action(form: &[u8], order: &SandboxOrder) -> std::result::Result<SandboxAction, &'static str> {
    match form_field(form, "deed").as_str() {
        "pay" => Ok(SandboxAction::Pay),
        "pay-later" => Ok(SandboxAction::PayLater),
        "cancel" => Ok(SandboxAction::Cancel),
        "arrive" => Ok(SandboxAction::Complete),
        "fail" => Ok(SandboxAction::Fail),
        "refund" => {
            let left = order.order.amount_minor.saturating_sub(order.returned_minor);
            let cents = form_field(form, "cents").parse().ok();
            let cents = cents.filter(|cents| (1..=left).contains(cents));
            cents.map(SandboxAction::Refund).ok_or("sandbox.too_much")
        }
        _ => Err("sandbox.action"),
    }
}

fn missing(context: &PageContext) -> Response {
    respond(StatusCode::NOT_FOUND, page::missing(context))
}

fn unavailable(context: &PageContext, error: &transcript_core::Error) -> Response {
    tracing::error!(%error, "order page failed");
    respond(StatusCode::SERVICE_UNAVAILABLE, page::error(context, "account.unavailable"))
}

fn respond(status: StatusCode, page: Markup) -> Response {
    html(status, page, CacheMode::Never, PagePolicy::Form)
}

/// Operation of an order page in the `OpenAPI` document.
pub(crate) fn order_operation(_: &DocumentOptions<'_>) -> Value {
    json!({
        "operationId": "getOrderPage",
        "tags": ["payments"],
        "summary": "Show an order in the browser",
        "description": "The page to which the checkout page returns, after a payment or a cancellation.",
        "security": [],
        "parameters": [parameters::order()],
        "responses": {
            "200": html_response("The status of the order.", "Paid", []),
            "404": no_such_order(),
            "500": document::fault(),
            "503": unavailable_response()
        }
    })
}

/// Operation of a sandbox page in the `OpenAPI` document.
pub(crate) fn sandbox_operation(_: &DocumentOptions<'_>) -> Value {
    json!({
        "operationId": "getSandboxPage",
        "tags": ["payments"],
        "summary": "Show a sandbox order in the browser",
        "description": "The test checkout, without real payments. It serves the server's own machine only. GET \
                        changes nothing.",
        "security": [],
        "parameters": [parameters::order(), parameters::page_token()],
        "responses": {
            "200": html_response("The order, with buttons for its actions.", "Test checkout", []),
            "403": not_local(),
            "404": no_such_order(),
            "500": document::fault(),
            "503": unavailable_response()
        }
    })
}

/// Operation of the sandbox buttons in the `OpenAPI` document.
pub(crate) fn sandbox_action_operation(_: &DocumentOptions<'_>) -> Value {
    let location =
        document::header("Address of the next page.", json!({ "type": "string", "format": "uri-reference" }));
    json!({
        "operationId": "pressSandboxButton",
        "tags": ["payments"],
        "summary": "Act on a sandbox order",
        "description": "Sent by the buttons of the page. An action that is no longer possible is ignored.",
        "security": [],
        "parameters": [parameters::order()],
        "requestBody": {
            "description": format!("At most {BODY_MAX} bytes."),
            "required": true,
            "content": { "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["token", "deed"],
                    "properties": {
                        "token": parameters::page_token()["schema"],
                        "deed": {
                            "type": "string",
                            "enum": ["pay", "pay-later", "cancel", "arrive", "fail", "refund"],
                            "description": "The action."
                        },
                        "cents": {
                            "type": "string",
                            "pattern": "^[1-9][0-9]{0,8}$",
                            "description": "Amount of a refund, in US cents."
                        }
                    }
                },
                "examples": { "pay": { "value": { "token": "0".repeat(64), "deed": "pay" } } }
            } }
        },
        "responses": {
            "303": html_response("The action is done.", "Done", [("Location", location)]),
            "400": html_response("Unknown action.", "That did not work", []),
            "403": not_local(),
            "404": no_such_order(),
            "408": html_response("The form did not arrive in time.", "That did not work", []),
            "413": html_response("The form is too large.", "That did not work", []),
            "415": html_response("The form is compressed.", "That did not work", []),
            "500": document::fault(),
            "503": unavailable_response()
        }
    })
}

/// HTML page that must not be cached.
fn html_response(
    description: &str,
    title: &str,
    headers: impl IntoIterator<Item = document::ResponseHeader>,
) -> Value {
    let body = document::page_body(title);
    let headers = std::iter::once(document::cache_control(&["no-store"])).chain(headers);
    document::answer(description, json!({ "text/html": body }), headers)
}

fn no_such_order() -> Value {
    html_response("Unknown order, or its page is closed.", "No such order", [])
}

fn not_local() -> Value {
    html_response("The request is not of the server's machine, or passed a proxy.", "That did not work", [])
}

fn unavailable_response() -> Value {
    html_response("The storage or the provider is unavailable.", "That did not work", [])
}
