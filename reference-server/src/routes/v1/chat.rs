//! `POST /api/v1/chat`: an answer about a video, for a credit.

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use serde_json::Value;
use transcript_core::{
    accounts::{ChatAsk, ChatReady, Header, Reply, Route},
    chat::{HISTORY_ITEMS_MAX, Role, Turn},
    wire::v1::ChatAnswer,
};

use super::{
    Denial, Fields, X_CACHE, X_CREDITS_REMAINING,
    body::bytes,
    door::{IDEMPOTENCY_KEY, enter, out, reply, turn_away},
    events::{speak, wants_events},
};
use crate::routes::App;

/// The largest body of a question: it has a conversation in it.
pub(crate) const CHAT_BODY_MAX: usize = 256 * 1024;

/// The fields of the body.
const FIELDS: [&str; 3] = ["video_id", "message", "conversation_history"];
/// Where the history is.
const HISTORY: &str = "conversation_history";

/// An answer about a video, charged when it is delivered: when it is ready and the caller is still there. A
/// caller who leaves takes this future along, and what it held is returned.
pub(crate) async fn chat(State(app): State<App>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let read = bytes(body, CHAT_BODY_MAX).await;
    if read.is_err() {
        // Nothing was read that it could be bound to. What is wrong is told after what is wrong with the key.
        parts.headers.remove(IDEMPOTENCY_KEY);
    }
    let bound = read.as_deref().unwrap_or_default().to_vec();
    let visit = match enter(&app, Route::Chat, &parts.headers, bound).await {
        Ok(visit) => visit,
        Err(answer) => return *answer,
    };
    let rate = visit.rate();
    let fields = read.and_then(|body| Fields::of(&parts.headers, &body, &FIELDS));
    let ask = match fields.and_then(|fields| ask(&fields)) {
        Ok(ask) => ask,
        Err(denial) => return out(rate, Err(turn_away(visit, denial).await)),
    };
    if wants_events(&parts.headers) {
        return speak(app.accounts.chat_aloud(visit, &app.chat, ask, answer), rate).await;
    }
    let outcome = match app.accounts.chat(visit, &app.chat, ask).await {
        Ok(ready) => {
            let reply = answer(&ready);
            ready.deliver(reply).await
        }
        Err(refused) => Err(refused),
    };
    out(rate, outcome.map_err(Denial::from))
}

/// What the fields of a body ask.
fn ask(fields: &Fields) -> Result<ChatAsk, Denial> {
    let video_id = fields.text("video_id")?.to_owned();
    let message = fields.text("message")?.to_owned();
    let history = match fields.value(HISTORY) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) if items.len() > HISTORY_ITEMS_MAX => {
            return Err(Denial::bad(HISTORY, format!("it has more than {HISTORY_ITEMS_MAX} items")));
        }
        Some(Value::Array(items)) => items.iter().map(turn).collect::<Result<_, _>>()?,
        Some(_) => return Err(Denial::bad(HISTORY, "it must be an array")),
    };
    Ok(ChatAsk { video_id, message, history })
}

/// One item of the history.
fn turn(item: &Value) -> Result<Turn, Denial> {
    let Value::Object(item) = item else {
        return Err(Denial::bad(HISTORY, "each item must be an object with role and content"));
    };
    if item.keys().any(|name| !["role", "content"].contains(&name.as_str())) {
        return Err(Denial::bad(HISTORY, "an item has role and content, and no other field"));
    }
    let role = item.get("role").and_then(Value::as_str).and_then(Role::from_name);
    let role = role.ok_or_else(|| Denial::bad(HISTORY, "the role of each item is user or assistant"))?;
    let content = item.get("content").and_then(Value::as_str);
    let content = content.ok_or_else(|| Denial::bad(HISTORY, "the content of each item must be a string"))?;
    Ok(Turn { role, content: content.to_owned() })
}

/// The answer as it is stored for repeats, and sent to whoever does not ask for events.
fn answer(ready: &ChatReady) -> Reply {
    let mut reply = reply(StatusCode::OK, &ChatAnswer::from(ready));
    let mut header = |name: &http::HeaderName, value: String| {
        reply.headers.push(Header { name: name.to_string(), value });
    };
    header(&X_CACHE, if ready.from_cache { "HIT" } else { "MISS" }.to_owned());
    header(&X_CREDITS_REMAINING, ready.credits.remaining.to_string());
    reply
}
