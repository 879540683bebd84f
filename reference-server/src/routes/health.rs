//! Liveness and version. Neither accesses a store.

use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{http::json, openapi::INTERFACE_VERSION};

/// Response of `GET /health`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Response of `GET /version`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Version {
    /// Name of the program.
    name: &'static str,
    /// Version of the program.
    version: &'static str,
    /// Version of the lookup API (specification 9).
    #[schemars(description = "Version of the lookup API.")]
    interface: &'static str,
}

/// `GET /health`
pub(crate) async fn health() -> Response {
    json(StatusCode::OK, &Health { status: "ok" })
}

/// `GET /version`
pub(crate) async fn version() -> Response {
    let version =
        Version { name: "verbatim", version: env!("CARGO_PKG_VERSION"), interface: INTERFACE_VERSION };
    json(StatusCode::OK, &version)
}
