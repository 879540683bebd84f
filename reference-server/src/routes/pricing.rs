//! `GET /pricing`: prices and free limits of the settings in force.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::{HeaderMap, Method};

use super::docs::CachedDocument;
use crate::page::{
    PageContext, PagePolicy,
    pricing::{PriceList, pricing},
};

/// Shows the prices.
pub(super) async fn show(
    State(document): State<Arc<CachedDocument>>,
    context: PageContext,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let app = &document.app;
    let prices = PriceList {
        lookup: app.lookup.options(),
        accounts: app.accounts.options(),
        plans: app.payments.plans(),
        is_sold: app.payments.is_configured(),
        has_visitors: app.visitors.can_fetch(),
    };
    let render = || Some(pricing(&context, &prices));
    document.page("pricing", PagePolicy::Static, &context, (&method, &headers), render)
}
