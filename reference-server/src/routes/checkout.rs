//! `/checkout/{order}`: where buyers come back to, and the sandbox's own page on which nobody pays.
//!
//! A GET changes nothing but what the provider says is so; on the sandbox's page only its buttons do, which
//! send the secret of the page's own address along.

use std::time::Duration;

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use http::{HeaderValue, StatusCode, Uri, header::LOCATION};
use maud::Markup;
use transcript_core::{
    Result,
    accounts::payments::{OrderSeen, Sandbox, SandboxDeed, SandboxOrder},
    ids::OrderId,
    limits::{Take, Taken},
};

use super::{
    App,
    html::{Keep, html},
    query::parameter,
    v1::body::{BODY_MAX, bytes},
};
use crate::page::{May, checkout as page};

/// The longest id of an order, in bytes.
const ORDER_MAX: usize = 128;
/// How often the provider is asked for one order's page in any minute.
const LOOKS_PER_MINUTE: u32 = 20;
/// How long a page waits for the provider before it shows what is known.
const LOOK_MAX: Duration = Duration::from_secs(8);

type OrderPath = std::result::Result<Path<String>, PathRejection>;

/// How an order stands: the provider's page sends its buyers here, whether they paid or not.
pub(super) async fn back(State(app): State<App>, path: OrderPath) -> Response {
    let Some(id) = named(path) else { return missing(page::ORDER_ROOT) };
    match found(&app, &id).await {
        Ok(Some(seen)) => shown(StatusCode::OK, page::back(&seen)),
        Ok(None) => missing(page::ORDER_ROOT),
        Err(error) => away(&error, page::ORDER_ROOT),
    }
}

/// The sandbox's page of an order.
pub(super) async fn show(State(app): State<App>, path: OrderPath, uri: Uri) -> Response {
    let token = parameter(uri.query().unwrap_or_default(), "token").ok().flatten();
    let (Some(sandbox), Some(id), Some(token)) = (&app.sandbox, named(path), token) else {
        return missing(page::SANDBOX_ROOT);
    };
    match sandbox.show(&id, &token).await {
        Ok(Some(order)) => shown(StatusCode::OK, page::sandbox(&order, &token)),
        Ok(None) => missing(page::SANDBOX_ROOT),
        Err(error) => away(&error, page::SANDBOX_ROOT),
    }
}

/// A button of that page.
pub(super) async fn act(State(app): State<App>, path: OrderPath, request: Request) -> Response {
    let (Some(sandbox), Some(id)) = (&app.sandbox, named(path)) else { return missing(page::SANDBOX_ROOT) };
    let form = match bytes(request.into_body(), BODY_MAX).await {
        Ok(form) => form,
        Err(denial) => return shown(denial.status(), page::wrong(denial.message(), page::SANDBOX_ROOT)),
    };
    let Some(token) = field(&form, "token") else { return missing(page::SANDBOX_ROOT) };
    let order = match sandbox.show(&id, &token).await {
        Ok(Some(order)) => order,
        Ok(None) => return missing(page::SANDBOX_ROOT),
        Err(error) => return away(&error, page::SANDBOX_ROOT),
    };
    let deed = match deed(&form, &order) {
        Ok(deed) => deed,
        Err(why) => return shown(StatusCode::BAD_REQUEST, page::wrong(why, page::SANDBOX_ROOT)),
    };
    match done(&app, sandbox, &id, &token, deed).await {
        // As a real provider does: who has paid or left comes back to the shop.
        Ok(()) if matches!(deed, SandboxDeed::Pay | SandboxDeed::Cancel) => see_other(&format!("../{id}")),
        Ok(()) => see_other(&format!("sandbox?token={token}")),
        Err(error) => away(&error, page::SANDBOX_ROOT),
    }
}

/// Does what a button says, and what follows from it: the same as follows from any provider's payment.
async fn done(app: &App, sandbox: &Sandbox, id: &OrderId, token: &str, deed: SandboxDeed) -> Result<()> {
    match sandbox.act(id, token, deed).await? {
        Some(subject) => app.payments.follow(&subject).await,
        None => Ok(()),
    }
}

/// The order, after its payment was asked about where that may tell more than is known.
async fn found(app: &App, id: &OrderId) -> Result<Option<OrderSeen>> {
    let Some(known) = app.payments.known(id).await? else { return Ok(None) };
    if !known.is_worth_asking() || !may_look(app, id).await? {
        return Ok(Some(known));
    }
    match tokio::time::timeout(LOOK_MAX, app.payments.seen(id)).await {
        Ok(Ok(seen)) => Ok(seen),
        // What is known is shown; an event or the sweep will tell.
        Ok(Err(error)) => {
            tracing::warn!(%error, "the payment of an order cannot be asked about now");
            Ok(Some(known))
        }
        Err(_) => Ok(Some(known)),
    }
}

/// Whether the provider may be asked once more: who reloads a page without end costs it no calls.
async fn may_look(app: &App, id: &OrderId) -> Result<bool> {
    let parts = app.accounts.parts();
    let bucket = format!("checkout/{id}");
    let take = Take { bucket, count: LOOKS_PER_MINUTE, per_ms: 60_000, cost: 1 };
    Ok(matches!(parts.limiter.take(vec![take], parts.clock.now()).await?, Taken::Allowed { .. }))
}

/// The order of an address; none when it cannot be one's id.
fn named(path: OrderPath) -> Option<OrderId> {
    let Path(id) = path.ok()?;
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!id.is_empty() && id.len() <= ORDER_MAX && id.bytes().all(is_id)).then(|| OrderId::new(id))
}

/// A field of a form; none when it is missing, or there twice.
fn field(form: &[u8], name: &'static str) -> Option<String> {
    parameter(std::str::from_utf8(form).ok()?, name).ok().flatten().map(Into::into)
}

/// What the pressed button does.
fn deed(form: &[u8], shown: &SandboxOrder) -> std::result::Result<SandboxDeed, &'static str> {
    match field(form, "deed").as_deref() {
        Some("pay") => Ok(SandboxDeed::Pay),
        Some("pay-later") => Ok(SandboxDeed::PayLater),
        Some("cancel") => Ok(SandboxDeed::Cancel),
        Some("arrive") => Ok(SandboxDeed::Arrive),
        Some("fail") => Ok(SandboxDeed::Fail),
        Some("refund") => {
            let left = shown.order.amount_minor.saturating_sub(shown.returned_minor);
            let cents = field(form, "cents").and_then(|cents| cents.trim().parse().ok());
            let cents = cents.filter(|cents| (1..=left).contains(cents));
            cents.map(SandboxDeed::Refund).ok_or("No more can be given back than is left of what was paid.")
        }
        _ => Err("No button of this page sends that."),
    }
}

fn see_other(location: &str) -> Response {
    let mut response = shown(StatusCode::SEE_OTHER, page::onward());
    // Ids and tokens are letters, digits and hyphens.
    let location = HeaderValue::try_from(location).unwrap_or(HeaderValue::from_static("."));
    response.headers_mut().insert(LOCATION, location);
    response
}

fn missing(root: &str) -> Response {
    shown(StatusCode::NOT_FOUND, page::missing(root))
}

fn away(error: &transcript_core::Error, root: &str) -> Response {
    tracing::error!(%error, "a page of an order failed");
    shown(
        StatusCode::SERVICE_UNAVAILABLE,
        page::wrong("This cannot be done right now: please try again in a moment.", root),
    )
}

fn shown(status: StatusCode, page: Markup) -> Response {
    html(status, page, Keep::Never, May::Send)
}
