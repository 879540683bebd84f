//! `GET /pricing`: prices and free limits of the settings in force.

use axum::{extract::State, response::Response};
use http::StatusCode;

use super::html::{CacheMode, html};
use crate::{
    page::{
        PageContext, PagePolicy,
        pricing::{PriceList, pricing},
    },
    state::AppState,
};

/// Shows the prices.
pub(super) async fn show(State(app): State<AppState>, context: PageContext) -> Response {
    let prices = PriceList {
        lookup: app.lookup.options(),
        accounts: app.accounts.options(),
        plans: app.payments.plans(),
        is_sold: app.payments.is_configured(),
        has_visitors: app.visitors.can_fetch(),
    };
    html(StatusCode::OK, pricing(&context, &prices), CacheMode::WhileTrue, PagePolicy::Static)
}
