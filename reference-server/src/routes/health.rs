//! Whether the server runs, and which one it is. Neither asks a store.

use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{http::json, openapi::INTERFACE_VERSION};

/// The answer of `GET /health`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Always `ok`: a server that is not well does not answer.
    status: &'static str,
}

/// The answer of `GET /version`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Version {
    /// The name of the program.
    name: &'static str,
    /// The version of the program.
    version: &'static str,
    /// The version of the interface (specification 9).
    #[schemars(description = "The version of the interface.")]
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
