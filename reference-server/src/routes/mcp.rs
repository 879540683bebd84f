//! `POST /mcp`: the tools for assistants, as the Model Context Protocol's streamable HTTP.
//!
//! What is no message of the protocol ends here, with a JSON-RPC error and within bounds; versions, their headers and
//! lifecycles are the library's business. No session is kept: every request stands for itself, so that any server of
//! several may answer it, and every answer is one JSON body.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
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

use super::App;
use crate::{
    http::{json as as_json, read_body},
    mcp::{MESSAGE_MAX, Service, Tools},
};

/// Both forms in which the protocol has clients accept an answer. Only the first is ever sent.
const BOTH_FORMS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The header that names the protocol's version.
const VERSION: &str = "mcp-protocol-version";
/// How much is read of an answer that is no JSON: a sentence.
const SENTENCE_MAX: usize = 4 * 1024;

/// The protocol's endpoint.
#[derive(Clone)]
pub(crate) struct Endpoint {
    service: StreamableHttpService<Tools, NeverSessionManager>,
    /// The origins whose pages may call: our own, and those of `server.cors_origins`.
    origins: Arc<[HeaderValue]>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("origins", &self.origins).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The endpoint of this app, which pages of these origins may call.
    pub(super) fn new(app: App, origins: Arc<[HeaderValue]>) -> Self {
        let tools = Tools::of_service(Service::new(app));
        // The host says nothing of who asks: proxies in front rename it. The origin does, and is checked here.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MESSAGE_MAX)
            .disable_allowed_hosts();
        let service = StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config);
        Self { service, origins }
    }
}

/// Answers a message.
pub(super) async fn post(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut answer = match message(&endpoint, &mut parts, body).await {
        Ok((id, body)) => {
            let request = http::Request::from_parts(parts, Full::new(Bytes::from(body)));
            in_json(endpoint.service.handle(request).await.map(Body::new), id).await
        }
        Err(refusal) => *refusal,
    };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The message of a request, whose head is then as the library wants it; and the name by which its answer is known.
async fn message(
    endpoint: &Endpoint,
    parts: &mut Parts,
    body: Body,
) -> Result<(Value, Vec<u8>), Box<Response>> {
    from_here(&parts.headers, &endpoint.origins)?;
    accepts(&mut parts.headers)?;
    is_json(&parts.headers)?;
    let body = read_body(body, MESSAGE_MAX).await.map_err(|refusal| {
        error(refusal.status(), Value::Null, ErrorCode::INVALID_REQUEST, refusal.detail(), None)
    })?;
    let bad = |id: Value, code, what: &str| error(StatusCode::BAD_REQUEST, id, code, what, None);
    let message: Value = serde_json::from_slice(&body).map_err(|fault| {
        let what =
            format!("The message is no valid JSON (line {}, column {}).", fault.line(), fault.column());
        bad(Value::Null, ErrorCode::PARSE_ERROR, &what)
    })?;
    let Value::Object(message) = message else {
        let what = "The message must be one JSON object: batches are no part of the protocol.";
        return Err(bad(Value::Null, ErrorCode::INVALID_REQUEST, what));
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
        return Err(bad(id, ErrorCode::INVALID_REQUEST, "method: it is missing, or no string."));
    }
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return Err(bad(id, ErrorCode::INVALID_REQUEST, "params: it must be an object."));
    }
    is_known_version(&parts.headers, &id)?;
    Ok((id, body))
}

/// A page of another origin is refused: one that was made to look like this server (DNS rebinding), and any other. What
/// is no browser sends no origin.
fn from_here(headers: &HeaderMap, origins: &[HeaderValue]) -> Result<(), Box<Response>> {
    match headers.get_all(ORIGIN).iter().all(|origin| origins.contains(origin)) {
        true => Ok(()),
        false => {
            let what = "Pages of this origin may not call: the operator can allow it (server.cors_origins).";
            Err(error(StatusCode::FORBIDDEN, Value::Null, ErrorCode::INVALID_REQUEST, what, None))
        }
    }
}

/// Whoever takes JSON is answered, though the protocol has clients take events as well.
fn accepts(headers: &mut HeaderMap) -> Result<(), Box<Response>> {
    let mut ranges = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let takes_json = |range: &str| {
        let kind = range.split(';').next().unwrap_or_default().trim();
        ["application/json", "application/*", "*/*"].iter().any(|known| kind.eq_ignore_ascii_case(known))
    };
    if headers.contains_key(ACCEPT) && !ranges.any(takes_json) {
        let what = "Answers are JSON: send Accept: application/json, text/event-stream.";
        return Err(error(StatusCode::NOT_ACCEPTABLE, Value::Null, ErrorCode::INVALID_REQUEST, what, None));
    }
    headers.insert(ACCEPT, BOTH_FORMS);
    Ok(())
}

fn is_json(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        true => Ok(()),
        false => {
            let what = "The message must be JSON: send Content-Type: application/json.";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(error(status, Value::Null, ErrorCode::INVALID_REQUEST, what, None))
        }
    }
}

/// A version that nobody here speaks is told together with those that are spoken.
fn is_known_version(headers: &HeaderMap, id: &Value) -> Result<(), Box<Response>> {
    let Some(version) = headers.get(VERSION) else { return Ok(()) };
    if ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| version == known.as_str()) {
        return Ok(());
    }
    let requested = String::from_utf8_lossy(version.as_bytes()).chars().take(40).collect::<String>();
    let data = json!({ "supported": ProtocolVersion::KNOWN_VERSIONS, "requested": requested });
    let what = "This version of the protocol is not spoken here.";
    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    Err(error(StatusCode::BAD_REQUEST, id.clone(), code, what, Some(data)))
}

/// The library's answer. What it refuses in plain words is told as an error of the protocol.
async fn in_json(answer: Response, id: Value) -> Response {
    let kind = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if !(answer.status().is_client_error() || answer.status().is_server_error())
        || kind.starts_with(b"application/json")
    {
        return answer;
    }
    // What cannot be read as a message is a wrong request, not a wrong type of body.
    let status = match answer.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
        status => status,
    };
    let told = http_body_util::Limited::new(answer.into_body(), SENTENCE_MAX).collect().await;
    let told = told.map(|body| body.to_bytes()).unwrap_or_default();
    *error(status, id, ErrorCode::INVALID_REQUEST, &String::from_utf8_lossy(&told), None)
}

/// An error of JSON-RPC.
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
    // The protocol's clients look for the bare type.
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Box::new(response.into_response())
}
