//! Liveness and version. Neither accesses a store.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::document::{self, DocumentOptions, examples};
use crate::api::{Health, Version, json};

/// `GET /health`
pub(crate) async fn health() -> Response {
    json(StatusCode::OK, &Health::OK)
}

/// `GET /version`
pub(crate) async fn version() -> Response {
    json(StatusCode::OK, &Version::CURRENT)
}

/// Operation of `GET /health` in the `OpenAPI` document.
pub(crate) fn health_operation(_: &DocumentOptions<'_>) -> Value {
    service_operation::<Health>(
        "getHealth",
        "Check whether the server runs",
        "The response says that the process answers; it does not check the stores.",
        json!({ "status": "ok" }),
    )
}

/// Operation of `GET /version` in the `OpenAPI` document.
pub(crate) fn version_operation(_: &DocumentOptions<'_>) -> Value {
    service_operation::<Version>(
        "getVersion",
        "Get the version of the server",
        "The version of the program, and of the lookup API that it serves.",
        examples::version(),
    )
}

fn service_operation<T: schemars::JsonSchema>(
    operation_id: &str,
    summary: &str,
    description: &str,
    body: Value,
) -> Value {
    json!({
        "operationId": operation_id,
        "tags": ["service"],
        "summary": summary,
        "description": description,
        "security": [],
        "responses": {
            "200": document::answer("The server runs.", document::json_body::<T>(json!({ "answer": document::example("Response", body) })), []),
            "500": document::fault()
        }
    })
}
