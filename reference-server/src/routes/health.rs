//! Whether the server runs, and which one it is. Neither asks a store.

use axum::response::Response;
use http::StatusCode;
use serde::Serialize;

use crate::http::json;

/// The answer of `GET /health`.
#[derive(Debug, Serialize)]
struct Health {
    status: &'static str,
}

/// The answer of `GET /version`.
#[derive(Debug, Serialize)]
struct Version {
    name: &'static str,
    version: &'static str,
    /// The version that Surface A declares (specification 9).
    interface: &'static str,
}

/// `GET /health`
pub(crate) async fn health() -> Response {
    json(StatusCode::OK, &Health { status: "ok" })
}

/// `GET /version`
pub(crate) async fn version() -> Response {
    let version = Version { name: "verbatim", version: env!("CARGO_PKG_VERSION"), interface: "2.0.0" };
    json(StatusCode::OK, &version)
}
