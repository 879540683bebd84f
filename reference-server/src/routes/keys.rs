//! `POST /api/keys` and `GET /api/keys/me` (specification 4.2 and 4.3; bodies: 2.3 and 2.4).

use std::time::Duration;

use axum::{
    Extension,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header::WWW_AUTHENTICATE};
use serde_json::{Map, Value, json};
use transcript_core::{
    Error,
    directory::KeyAccess,
    log_failure,
    lookup::{CreateKeyOutcome, CreateKeyRequest, KeyOrigin, LookupOptions},
    time::ceil_seconds,
    wire::lookup::{CreateKeyResponse, KeyRequest, KeyStatus},
};

use super::document::{self, DocumentOptions, examples, parameters};
use crate::{
    api::{
        BODY_MAX, ClientAddress, INVALID_TOKEN, NO_STORE, ProblemResponse, TOKEN_NEEDED, bearer, is_form,
        is_json, json, json_object, proof, read_body,
    },
    state::AppState,
};

/// Creates a key.
/// Fields other than `label` and `email` are ignored, so that clients of later versions work.
pub(crate) async fn create(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Result<Response, ProblemResponse> {
    let (parts, body) = request.into_parts();
    let body = read_body(&parts.headers, body, BODY_MAX, &app.body_budget).await?;
    let fields = fields(&parts.headers, &body)?;
    let request = CreateKeyRequest {
        label: text(&fields, "label")?,
        email: text(&fields, "email")?,
        proof: proof(&parts.headers),
        origin: KeyOrigin::Network(Some(client.0)),
        access: KeyAccess::default(),
    };
    match app.lookup.keys().create(request).await.map_err(store_error)? {
        CreateKeyOutcome::Created(created) => {
            Ok(([NO_STORE], json(StatusCode::CREATED, &CreateKeyResponse::from(&created))).into_response())
        }
        CreateKeyOutcome::Invalid(bad) => Err(ProblemResponse::bad(bad.field, bad.message)),
        CreateKeyOutcome::Limited { retry_after_ms } => {
            let wait = Duration::from_millis(retry_after_ms);
            let seconds = ceil_seconds(wait);
            let detail = format!("Too many keys were created from your network. Retry in {seconds} seconds.");
            Err(ProblemResponse::new(StatusCode::TOO_MANY_REQUESTS, detail).with_retry_after(wait))
        }
        CreateKeyOutcome::SubjectFull { limit, retry_after_ms } => {
            let detail = format!(
                "Your paid plan has {limit} keys, the maximum: use one of them, or leave the \
                 x-verbatim-entitlement header out to make a free key."
            );
            let refusal = ProblemResponse::new(StatusCode::TOO_MANY_REQUESTS, detail);
            Err(match retry_after_ms {
                Some(wait_ms) => refusal.with_retry_after(Duration::from_millis(wait_ms)),
                None => refusal,
            })
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
            app.lookup.keys().status(credential, proof(&headers).as_ref()).await.map_err(store_error)?
        }
        None => None,
    };
    if let Some(status) = status {
        return Ok(([NO_STORE], json(StatusCode::OK, &KeyStatus::from(&status))).into_response());
    }
    // RFC 6750: without credentials the challenge has no error code.
    let expired_at = match &credential {
        Some(credential) => app.lookup.keys().expired_at(credential).await.map_err(store_error)?,
        None => None,
    };
    let (challenge, detail) = match (credential, expired_at) {
        (None, _) => {
            (TOKEN_NEEDED, "An API key is needed: send it as Authorization: Bearer <key>.".to_owned())
        }
        (Some(_), Some(end)) => (INVALID_TOKEN, format!("This API key expired at {end}.")),
        (Some(_), None) => (
            INVALID_TOKEN,
            "The API key in the Authorization header is unknown here, or was revoked: keys of this address \
             begin with vbk_."
                .to_owned(),
        ),
    };
    let refusal = ProblemResponse::new(StatusCode::UNAUTHORIZED, detail);
    Ok(([(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))], refusal).into_response())
}

/// Fields of the body; empty without a body.
fn fields(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, ProblemResponse> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    // A missing content type is accepted.
    if is_json(headers) == Some(false) {
        return Err(not_json(headers));
    }
    json_object(body, || "it must be a JSON object such as {\"label\": \"laptop\"}".to_owned())
}

/// Error for a body with another content type.
fn not_json(headers: &HeaderMap) -> ProblemResponse {
    // curl -d sets this type by default.
    let hint = match is_form(headers) {
        true => " (curl -d sends another type unless this header is set)",
        false => "",
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
    log_failure!(error, [%error], "key store failed");
    ProblemResponse::fault()
}

/// `Retry-After` of a refused key; absent if the server admits no plus keys.
fn retry_after() -> document::ResponseHeader {
    (
        "Retry-After",
        document::optional_header("Seconds until a retry is admitted.", document::seconds(86_400)),
    )
}

fn slow_body() -> Value {
    let (description, detail) = ("The body did not arrive in time.", "The body took too long to arrive.");
    document::refusal((408, "Request Timeout"), description, &[("slow", detail)], [document::vary("origin")])
}

/// Operation of `POST /api/keys` in the `OpenAPI` document.
pub(crate) fn create_operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.lookup;
    let (free, plus) = (options.free_per_month, options.plus_per_day);
    let usual = LookupOptions::default();
    json!({
        "operationId": "createApiKey",
        "tags": ["keys"],
        "summary": "Create an API key",
        "description": format!(
            "A free key has an allowance of {free} new transcripts per month. With the proof of an active paid plan \
             the key is `plus` and has {plus} per day. Both are settings of the server, by default {} and {}. The \
             number of new keys per network is limited.",
            usual.free_per_month, usual.plus_per_day
        ),
        "security": document::optional_key(),
        "parameters": [parameters::entitlement()],
        "requestBody": {
            "description": format!("Optional. At most {BODY_MAX} bytes."),
            "required": false,
            "content": document::json_body::<KeyRequest>(json!({
                "named": document::example("With a label and an email address", examples::key_request()),
                "plain": document::example("Without fields", json!({}))
            }))
        },
        "responses": {
            "201": document::answer(
                "The new key, shown only once, and its allowance.",
                document::json_body::<CreateKeyResponse>(
                    json!({ "created": document::example("A free key", examples::key_created(options)) }),
                ),
                [document::cache_control(&["no-store"]), document::vary("origin")],
            ),
            "400": document::refusal(
                (400, "Bad Request"),
                "The body is not a JSON object, or a field is invalid; `detail` begins with the field's name.",
                &[("label", "label: it must be a string")],
                [document::vary("origin")],
            ),
            "403": document::foreign_page(false),
            "408": slow_body(),
            "413": document::refusal(
                (413, "Payload Too Large"),
                "The body is too large.",
                &[("large", &format!("The body is too large: at most {BODY_MAX} bytes are read."))],
                [document::vary("origin")],
            ),
            "415": document::refusal(
                (415, "Unsupported Media Type"),
                document::UNSUPPORTED_BODY,
                &[(
                    "type",
                    "The body must be JSON: send the header Content-Type: application/json with it, or no body at \
                     all.",
                )],
                [document::vary("origin")],
            ),
            "429": document::refusal(
                (429, "Too Many Requests"),
                "The limit of new keys per network or paid plan is reached.",
                &[("network", "Too many keys were created from your network. Retry in 86400 seconds.")],
                [retry_after(), document::vary("origin")],
            ),
            "500": document::fault()
        }
    })
}

/// Operation of `GET /api/keys/me` in the `OpenAPI` document.
pub(crate) fn status_operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.lookup;
    json!({
        "operationId": "getKeyStatus",
        "tags": ["keys"],
        "summary": "Get the plan and remaining allowance of an API key",
        "description": "The call is free and counts toward no limit.",
        "security": [{ "bearer": [] }],
        "parameters": [parameters::renewal()],
        "responses": {
            "200": document::answer(
                "The key's plan and remaining allowance.",
                document::json_body::<KeyStatus>(json!({ "free": document::example("A free key", examples::key_status(options)) })),
                [document::cache_control(&["no-store"]), document::vary("origin")],
            ),
            "401": document::refusal(
                (401, "Unauthorized"),
                "The key is missing or unknown.",
                &[("missing", "An API key is needed: send it as Authorization: Bearer <key>.")],
                [document::www_authenticate(), document::vary("origin")],
            ),
            "500": document::fault()
        }
    })
}
