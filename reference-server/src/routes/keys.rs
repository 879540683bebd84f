//! `POST /api/keys` and `GET /api/keys/me` (specification 4; bodies: design 4).

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
    lookup::{CreateKey, CreateKeyOutcome, Origin},
    wire::lookup::{KeyCreated, KeyStatus},
};

use super::{
    App,
    bearer::{bearer, proof},
};
use crate::http::{ClientAddress, Refusal, json, read_body};

/// The largest body of a key request, in bytes.
pub(crate) const BODY_MAX: usize = 16 * 1024;

const NO_STORE: (http::HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// Makes a key. Fields other than `label` and `email` are ignored, so that clients of a later version work.
pub(crate) async fn create(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let body = read_body(body, BODY_MAX).await?;
    let fields = fields(&parts.headers, &body)?;
    let ask = CreateKey {
        label: text(&fields, "label")?,
        email: text(&fields, "email")?,
        proof: proof(&parts.headers),
        origin: Origin::Network(Some(client.0)),
    };
    match app.lookup.create_key(ask).await.map_err(away)? {
        CreateKeyOutcome::Created(created) => {
            Ok(([NO_STORE], json(StatusCode::CREATED, &KeyCreated::from(&created))).into_response())
        }
        CreateKeyOutcome::Bad(bad) => Err(Refusal::bad(bad.field, bad.message)),
        CreateKeyOutcome::Limited { retry_after_ms } => {
            let seconds = seconds(retry_after_ms);
            let detail =
                format!("Your network has made as many keys as it may: try again in {seconds} seconds.");
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, detail);
            Ok(([(RETRY_AFTER, HeaderValue::from(seconds))], refusal).into_response())
        }
        CreateKeyOutcome::SubjectFull { limit, retry_after_ms } => {
            let detail = format!(
                "Your paid plan has as many keys as it may ({limit}): go on with one of them, or leave the \
                 x-verbatim-entitlement header out to make a free key."
            );
            let mut response = Refusal::new(StatusCode::TOO_MANY_REQUESTS, detail).into_response();
            if let Some(wait_ms) = retry_after_ms {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds(wait_ms)));
            }
            Ok(response)
        }
    }
}

/// Tells a key's plan and what is left of its allowance.
pub(crate) async fn status(State(app): State<App>, headers: HeaderMap) -> Result<Response, Refusal> {
    let credential = bearer(&headers);
    let status = match &credential {
        Some(credential) => {
            app.lookup.key_status(credential, proof(&headers).as_ref()).await.map_err(away)?
        }
        None => None,
    };
    if let Some(status) = status {
        return Ok(([NO_STORE], json(StatusCode::OK, &KeyStatus::from(&status))).into_response());
    }
    // RFC 6750: a request that brought nothing is not told that something was wrong with it.
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
    let refusal = Refusal::new(StatusCode::UNAUTHORIZED, detail);
    Ok(([(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))], refusal).into_response())
}

/// A time in whole seconds, rounded up: waiting this long suffices.
fn seconds(millis: u64) -> u64 {
    millis.div_ceil(1000).max(1)
}

/// The fields of the body; none when there is no body.
fn fields(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    // A body without a type is taken for what it must be.
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
        Ok(_) => Err(Refusal::bad("body", "it must be a JSON object such as {\"label\": \"laptop\"}")),
        Err(error) => {
            let place = format!("line {}, column {}", error.line(), error.column());
            Err(Refusal::bad("body", format!("it is no valid JSON ({place})")))
        }
    }
}

/// The refusal of a body that is said to be something else.
fn not_json(kind: &[u8]) -> Refusal {
    // Whoever uses curl's -d did not choose it, and would not know whose fault it is.
    let hint = match kind {
        b"application/x-www-form-urlencoded" => {
            " (curl -d says that it is a form, unless it is told this header)"
        }
        _ => "",
    };
    let detail = format!(
        "The body must be JSON: send the header Content-Type: application/json with it{hint}, or no body at all."
    );
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
}

fn text(fields: &Map<String, Value>, name: &'static str) -> Result<Option<String>, Refusal> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Refusal::bad(name, "it must be a string")),
    }
}

/// A store's fault: told to the log, and to the caller as ours.
fn away(error: Error) -> Refusal {
    tracing::error!(%error, "a store failed");
    Refusal::fault()
}
