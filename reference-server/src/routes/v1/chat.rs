//! `POST /api/v1/chat`: an answer about a video for a credit.

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use serde_json::Value;
use transcript_core::{
    accounts::{ChatParams, PreparedChat, StoredHeader, StoredResponse, V1Endpoint},
    chat::{ChatRole, ChatTurn, HISTORY_ITEMS_MAX},
    wire::v1::ChatAnswer,
};

use super::{
    BodyFields, V1ErrorResponse, X_CACHE, X_CREDITS_REMAINING,
    admission::{IDEMPOTENCY_KEY, admit, finish, reject, reply},
    body::bytes,
    sse::{stream_response, wants_events},
};
use crate::routes::AppState;

/// Limit of the body, in bytes; it contains a conversation.
pub(crate) const CHAT_BODY_MAX: usize = 256 * 1024;

/// Known fields of the body.
const FIELDS: [&str; 3] = ["video_id", "message", "conversation_history"];
/// Field of the conversation history.
const HISTORY: &str = "conversation_history";

/// Answers a question about a video.
/// The credit is charged on delivery: if the answer is ready and the caller still connected. A disconnect drops this
/// future, which releases the hold.
pub(crate) async fn chat(State(app): State<AppState>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let read = bytes(body, CHAT_BODY_MAX).await;
    if read.is_err() {
        // Without a body there is nothing to bind the key to. The body's error is returned after authentication.
        parts.headers.remove(IDEMPOTENCY_KEY);
    }
    let bound = read.as_deref().unwrap_or_default().to_vec();
    let guard = match admit(&app, V1Endpoint::Chat, &parts.headers, bound).await {
        Ok(guard) => guard,
        Err(answer) => return *answer,
    };
    let rate = guard.rate();
    let fields = read.and_then(|body| BodyFields::parse(&parts.headers, &body, &FIELDS));
    let params = match fields.and_then(|fields| chat_params(&fields)) {
        Ok(params) => params,
        Err(denial) => return finish(rate, Err(reject(guard, denial).await)),
    };
    if wants_events(&parts.headers) {
        return stream_response(app.accounts.chat_stream(guard, &app.chat, params, answer), rate).await;
    }
    let outcome = match app.accounts.chat(guard, &app.chat, params).await {
        Ok(ready) => {
            let reply = answer(&ready);
            ready.deliver(reply).await
        }
        Err(refused) => Err(refused),
    };
    finish(rate, outcome.map_err(V1ErrorResponse::from))
}

/// Parses the chat parameters.
fn chat_params(fields: &BodyFields) -> Result<ChatParams, V1ErrorResponse> {
    let video_id = fields.text("video_id")?.to_owned();
    let message = fields.text("message")?.to_owned();
    let history = match fields.value(HISTORY) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) if items.len() > HISTORY_ITEMS_MAX => {
            return Err(V1ErrorResponse::bad(HISTORY, format!("it has more than {HISTORY_ITEMS_MAX} items")));
        }
        Some(Value::Array(items)) => items.iter().map(turn).collect::<Result<_, _>>()?,
        Some(_) => return Err(V1ErrorResponse::bad(HISTORY, "it must be an array")),
    };
    Ok(ChatParams { video_id, message, history })
}

/// Parses one item of the history.
fn turn(item: &Value) -> Result<ChatTurn, V1ErrorResponse> {
    let Value::Object(item) = item else {
        return Err(V1ErrorResponse::bad(HISTORY, "each item must be an object with role and content"));
    };
    if item.keys().any(|name| !["role", "content"].contains(&name.as_str())) {
        return Err(V1ErrorResponse::bad(HISTORY, "an item has role and content, and no other field"));
    }
    let role = item.get("role").and_then(Value::as_str).and_then(ChatRole::from_name);
    let role =
        role.ok_or_else(|| V1ErrorResponse::bad(HISTORY, "the role of each item is user or assistant"))?;
    let content = item.get("content").and_then(Value::as_str);
    let content =
        content.ok_or_else(|| V1ErrorResponse::bad(HISTORY, "the content of each item must be a string"))?;
    Ok(ChatTurn { role, content: content.to_owned() })
}

/// JSON response, stored for replays and sent to callers that do not accept events.
fn answer(ready: &PreparedChat) -> StoredResponse {
    let mut reply = reply(StatusCode::OK, &ChatAnswer::from(ready));
    let mut header = |name: &http::HeaderName, value: String| {
        reply.headers.push(StoredHeader { name: name.to_string(), value });
    };
    header(&X_CACHE, if ready.from_cache { "HIT" } else { "MISS" }.to_owned());
    header(&X_CREDITS_REMAINING, ready.credits.remaining.to_string());
    reply
}
