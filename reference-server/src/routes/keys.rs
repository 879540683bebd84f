//! `POST /api/keys` and `GET /api/keys/me` (specification 4.2 and 4.3; bodies: 2.3 and 2.4).

use axum::{
    Extension,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::{Map, Value};
use transcript_core::{
    Error,
    lookup::{CreateKeyOutcome, CreateKeyRequest, KeyOrigin},
    wire::lookup::{CreateKeyResponse, KeyStatus},
};

use super::{
    AppState,
    bearer::{bearer, proof},
};
use crate::http::{ClientAddress, ProblemResponse, json, read_body};

/// Limit of the body of a key request, in bytes.
pub(crate) const BODY_MAX: usize = 16 * 1024;

const NO_STORE: (http::HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// Creates a key.
/// Fields other than `label` and `email` are ignored, so that clients of later versions work.
pub(crate) async fn create(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Result<Response, ProblemResponse> {
    let (parts, body) = request.into_parts();
    let body = read_body(body, BODY_MAX).await?;
    let fields = fields(&parts.headers, &body)?;
    let request = CreateKeyRequest {
        label: text(&fields, "label")?,
        email: text(&fields, "email")?,
        proof: proof(&parts.headers),
        origin: KeyOrigin::Network(Some(client.0)),
    };
    match app.lookup.create_key(request).await.map_err(store_error)? {
        CreateKeyOutcome::Created(created) => {
            Ok(([NO_STORE], json(StatusCode::CREATED, &CreateKeyResponse::from(&created))).into_response())
        }
        CreateKeyOutcome::Invalid(bad) => Err(ProblemResponse::bad(bad.field, bad.message)),
        CreateKeyOutcome::Limited { retry_after_ms } => {
            let seconds = seconds(retry_after_ms);
            let detail = format!("Too many keys were created from your network. Retry in {seconds} seconds.");
            let refusal = ProblemResponse::new(StatusCode::TOO_MANY_REQUESTS, detail);
            Ok(([(RETRY_AFTER, HeaderValue::from(seconds))], refusal).into_response())
        }
        CreateKeyOutcome::SubjectFull { limit, retry_after_ms } => {
            let detail = format!(
                "Your paid plan has {limit} keys, the maximum: use one of them, or leave the \
                 x-verbatim-entitlement header out to make a free key."
            );
            let mut response = ProblemResponse::new(StatusCode::TOO_MANY_REQUESTS, detail).into_response();
            if let Some(wait_ms) = retry_after_ms {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds(wait_ms)));
            }
            Ok(response)
        }
    }
}

/// Returns a key's plan and remaining allowance.
pub(crate) async fn status(
    State(app): State<AppState>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let credential = bearer(&headers);
    let status = match &credential {
        Some(credential) => {
            app.lookup.key_status(credential, proof(&headers).as_ref()).await.map_err(store_error)?
        }
        None => None,
    };
    if let Some(status) = status {
        return Ok(([NO_STORE], json(StatusCode::OK, &KeyStatus::from(&status))).into_response());
    }
    // RFC 6750: without credentials the challenge has no error code.
    let (challenge, detail) = match credential {
        None => {
            ("Bearer realm=\"verbatim\"", "An API key is needed: send it as Authorization: Bearer <key>.")
        }
        Some(_) => (
            "Bearer realm=\"verbatim\", error=\"invalid_token\"",
            "The API key in the Authorization header is unknown here, or was revoked: keys of this address \
             begin with vbk_.",
        ),
    };
    let refusal = ProblemResponse::new(StatusCode::UNAUTHORIZED, detail);
    Ok(([(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))], refusal).into_response())
}

/// Milliseconds as whole seconds, rounded up, at least 1.
fn seconds(millis: u64) -> u64 {
    millis.div_ceil(1000).max(1)
}

/// Fields of the body; empty without a body.
fn fields(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, ProblemResponse> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    // A missing content type is accepted.
    let kind = headers.get(CONTENT_TYPE).map(|kind| {
        let kind = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().to_ascii_lowercase()
    });
    match kind.as_deref() {
        None | Some(b"application/json") => {}
        Some(kind) => return Err(not_json(kind)),
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => {
            Err(ProblemResponse::bad("body", "it must be a JSON object such as {\"label\": \"laptop\"}"))
        }
        Err(error) => {
            let place = format!("line {}, column {}", error.line(), error.column());
            Err(ProblemResponse::bad("body", format!("it is no valid JSON ({place})")))
        }
    }
}

/// Error for a body with another content type.
fn not_json(kind: &[u8]) -> ProblemResponse {
    // curl -d sets this type by default.
    let hint = match kind {
        b"application/x-www-form-urlencoded" => " (curl -d sends another type unless this header is set)",
        _ => "",
    };
    let detail = format!(
        "The body must be JSON: send the header Content-Type: application/json with it{hint}, or no body at all."
    );
    ProblemResponse::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
}

fn text(fields: &Map<String, Value>, name: &'static str) -> Result<Option<String>, ProblemResponse> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ProblemResponse::bad(name, "it must be a string")),
    }
}

/// Logs a store error and returns 500.
fn store_error(error: Error) -> ProblemResponse {
    tracing::error!(%error, "key store failed");
    ProblemResponse::fault()
}
