//! `POST /mcp`: tools for assistants over the streamable HTTP transport of the Model Context Protocol.
//!
//! Invalid messages are rejected here with a JSON-RPC error of limited size; the library handles versions, their
//! headers and lifecycles. There are no sessions: every request is independent, so any server of a group can answer it,
//! and every response is one JSON body.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ORIGIN},
    request::Parts,
};
use http_body_util::{BodyExt, Full};
use rmcp::{
    model::{ErrorCode, ProtocolVersion},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::{Value, json};
use verbatim::service::LocalService;

use crate::{
    api::{ByteBudget, RequestBody, accepts_json, is_json, json as as_json, read_body},
    config::SearchAccess,
    mcp::{MESSAGE_MAX, McpTools, PassageCache, ToolSearch, ToolSearchLimits},
    state::AppState,
};

/// `Accept` value that the protocol requires of clients. The server always responds with JSON.
const ACCEPTED_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Header with the protocol version.
const VERSION: &str = "mcp-protocol-version";
/// Most values in the parameters of a message, besides the texts in lists of its arguments.
///
/// The library keeps `_meta` for the whole call, and `{"":0}` takes a hundred times its bytes.
const PARAM_VALUES_MAX: usize = 256;
/// Limit of a non-JSON error body of the library, in bytes.
const ERROR_TEXT_MAX: usize = 4 * 1024;

#[derive(Clone)]
pub(crate) struct McpEndpoint {
    service: StreamableHttpService<McpTools, NeverSessionManager>,
    /// Origins whose pages may call: the server's own, and those of `server.cors_origins`.
    origins: Arc<[HeaderValue]>,
    body_budget: ByteBudget,
}

transcript_core::debug_fields!(McpEndpoint { origins });

impl McpEndpoint {
    /// Endpoint over this state and cache; pages of these origins may call it.
    pub(super) fn new(app: AppState, passages: PassageCache, origins: Arc<[HeaderValue]>) -> Self {
        let body_budget = app.body_budget;
        let (lookup, places) = (app.lookup.clone(), app.search_places);
        let limits = ToolSearchLimits { lookup, access: app.search_access, places };
        let service = LocalService::new(app.lookup, app.accounts.clone(), app.chat.clone());
        let mut tools = McpTools::for_service(service, app.accounts, app.chat, passages);
        if let Some(service) = app.search.filter(|_| app.search_access != SearchAccess::Off) {
            tools = tools.with_search(ToolSearch { service, limits: Some(limits) });
        }
        // Host checks are off because proxies rewrite the host. The origin is checked here instead.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MESSAGE_MAX)
            .disable_allowed_hosts();
        let service = StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config);
        Self { service, origins, body_budget }
    }
}

/// Handles a message.
pub(super) async fn post(State(endpoint): State<McpEndpoint>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut answer = match message(&endpoint, &mut parts, body).await {
        Ok((id, body)) => {
            let request = http::Request::from_parts(parts, Full::new(body.into_bytes()));
            to_json_rpc(endpoint.service.handle(request).await.map(Body::new), id).await
        }
        Err(refusal) => *refusal,
    };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Validates a request and its headers for the library. Returns the message's id and body.
async fn message(
    endpoint: &McpEndpoint,
    parts: &mut Parts,
    body: Body,
) -> Result<(Value, RequestBody), Box<Response>> {
    check_origin(&parts.headers, &endpoint.origins)?;
    check_accept(&mut parts.headers)?;
    check_content_type(&parts.headers)?;
    let body = read_body(&parts.headers, body, MESSAGE_MAX, &endpoint.body_budget)
        .await
        .map_err(|refusal| invalid_request(refusal.status(), refusal.detail()))?;
    let bad = |id: Value, code, message: &str| error(StatusCode::BAD_REQUEST, id, code, message, None);
    let message: Value = serde_json::from_slice(&body).map_err(|fault| {
        let message =
            format!("The message is no valid JSON (line {}, column {}).", fault.line(), fault.column());
        bad(Value::Null, ErrorCode::PARSE_ERROR, &message)
    })?;
    let Value::Object(message) = message else {
        let message = "The message must be one JSON object: batches are not supported.";
        return Err(bad(Value::Null, ErrorCode::INVALID_REQUEST, message));
    };
    let id = message.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let id = id.cloned().unwrap_or_default();
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(bad(id, ErrorCode::INVALID_REQUEST, "jsonrpc: it must be \"2.0\"."));
    }
    if message.get("id").is_some() && id.is_null() {
        return Err(bad(id, ErrorCode::INVALID_REQUEST, "id: it must be a string or a whole number."));
    }
    let is_answer = message.contains_key("result") || message.contains_key("error");
    if !is_answer && !message.get("method").is_some_and(Value::is_string) {
        return Err(bad(id, ErrorCode::INVALID_REQUEST, "method: it is missing, or not a string."));
    }
    let params = message.get("params");
    if params.is_some_and(|params| !params.is_object()) {
        return Err(bad(id, ErrorCode::INVALID_REQUEST, "params: it must be an object."));
    }
    if params.is_some_and(|params| param_value_count(params) > PARAM_VALUES_MAX) {
        let message = format!(
            "params: it has more than {PARAM_VALUES_MAX} values besides texts in lists of arguments."
        );
        return Err(bad(id, ErrorCode::INVALID_REQUEST, &message));
    }
    check_version(&parts.headers, &id)?;
    Ok((id, body))
}

/// Number of values in parameters, without the texts in lists of the arguments, such as the links of a job.
fn param_value_count(params: &Value) -> usize {
    let fields = params.as_object().into_iter().flatten();
    1 + fields.map(|(name, value)| value_count(value, name != "arguments")).sum::<usize>()
}

/// Number of values in a value, with or without the texts in its lists.
fn value_count(value: &Value, counts_texts: bool) -> usize {
    let count = |value: &Value| value_count(value, counts_texts);
    match value {
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        Value::Array(items) => {
            let counted = items.iter().filter(|item| counts_texts || !item.is_string());
            1 + counted.map(count).sum::<usize>()
        }
        _ => 1,
    }
}

/// Rejects pages of other origins (DNS rebinding). Clients that are not browsers send no origin.
fn check_origin(headers: &HeaderMap, origins: &[HeaderValue]) -> Result<(), Box<Response>> {
    match headers.get_all(ORIGIN).iter().all(|origin| origins.contains(origin)) {
        true => Ok(()),
        false => {
            tracing::debug!("request of an origin refused that is not in server.cors_origins");
            let message = "Pages of this origin may not call.";
            Err(invalid_request(StatusCode::FORBIDDEN, message))
        }
    }
}

/// Accepts every client that takes JSON.
/// The library also requires `text/event-stream`, so the header is completed.
fn check_accept(headers: &mut HeaderMap) -> Result<(), Box<Response>> {
    if !accepts_json(headers) {
        let message = "Answers are JSON: send Accept: application/json, text/event-stream.";
        return Err(invalid_request(StatusCode::NOT_ACCEPTABLE, message));
    }
    headers.insert(ACCEPT, ACCEPTED_TYPES);
    Ok(())
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Box<Response>> {
    match is_json(headers) {
        Some(true) => Ok(()),
        Some(false) | None => {
            let message = "The message must be JSON: send Content-Type: application/json.";
            Err(invalid_request(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
        }
    }
}

/// Rejects unknown protocol versions and returns the supported ones.
fn check_version(headers: &HeaderMap, id: &Value) -> Result<(), Box<Response>> {
    let Some(version) = headers.get(VERSION) else { return Ok(()) };
    if ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| version == known.as_str()) {
        return Ok(());
    }
    let requested = String::from_utf8_lossy(version.as_bytes()).chars().take(40).collect::<String>();
    let data = json!({ "supported": ProtocolVersion::KNOWN_VERSIONS, "requested": requested });
    let message = "Unsupported protocol version.";
    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    Err(error(StatusCode::BAD_REQUEST, id.clone(), code, message, Some(data)))
}

/// Response of the library; an error in plain text becomes a JSON-RPC error.
async fn to_json_rpc(answer: Response, id: Value) -> Response {
    let kind = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if !(answer.status().is_client_error() || answer.status().is_server_error())
        || kind.starts_with(b"application/json")
    {
        return answer;
    }
    // The library answers an unreadable message with 415; 400 is the correct status.
    let status = match answer.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
        status => status,
    };
    let text = http_body_util::Limited::new(answer.into_body(), ERROR_TEXT_MAX).collect().await;
    let text = text.map(|body| body.to_bytes()).unwrap_or_default();
    *error(status, id, ErrorCode::INVALID_REQUEST, &String::from_utf8_lossy(&text), None)
}

/// Response to a message that is refused before its id is known.
fn invalid_request(status: StatusCode, message: &str) -> Box<Response> {
    error(status, Value::Null, ErrorCode::INVALID_REQUEST, message, None)
}

/// JSON-RPC error response.
fn error(
    status: StatusCode,
    id: Value,
    code: ErrorCode,
    message: &str,
    data: Option<Value>,
) -> Box<Response> {
    let mut error = json!({ "code": code.0, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    let mut response = as_json(status, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    // Clients of the protocol expect the media type without parameters.
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Box::new(response.into_response())
}
