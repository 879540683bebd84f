//! `POST /api/v1/chat`: an answer about a video for a credit.

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use serde_json::{Value, json};
use transcript_core::{
    accounts::{ChatParams, PreparedChat, StoredResponse, V1Endpoint},
    chat::{ChatRole, ChatTurn, HISTORY_ITEMS_MAX},
    wire::v1::{ChatAnswer, ChatQuestion},
};

use super::{
    BodyFields,
    admission::{EarlyResponse, admit_with_body, finish, reject},
    document::{self, DocumentOptions, examples, parameters},
    sse::stream_response,
};
use crate::{
    api::{V1ErrorResponse, reply, wants_events},
    state::AppState,
};

/// Limit of the body, in bytes; it contains a conversation.
const CHAT_BODY_MAX: usize = 256 * 1024;

/// Known fields of the body.
const FIELDS: [&str; 3] = ["video_id", "message", "conversation_history"];
/// Field of the conversation history.
const HISTORY: &str = "conversation_history";

/// Answers a question about a video.
/// The credit is charged on delivery. A disconnect drops this future: the guard of the request then releases its hold,
/// unless a model was called.
pub(crate) async fn chat(State(app): State<AppState>, request: Request) -> Result<Response, EarlyResponse> {
    let (headers, guard, body) = admit_with_body(&app, V1Endpoint::Chat, request, CHAT_BODY_MAX).await?;
    let rate = guard.rate();
    let fields = body.and_then(|body| BodyFields::parse(&headers, &body, &FIELDS));
    let params = match fields.and_then(|fields| chat_params(&fields)) {
        Ok(params) => params,
        Err(denial) => return Err(reject(guard, denial).await),
    };
    if wants_events(&headers) {
        let stream = app.accounts.delivery.chat_stream(guard, &app.chat, params, answer);
        return Ok(stream_response(stream, rate).await);
    }
    let render = |ready: &PreparedChat| (answer(ready), ());
    let outcome = app.accounts.delivery.chat(guard, &app.chat, params, render).await;
    Ok(finish(rate, outcome.map(|(response, ())| response)))
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
    let reply = reply(StatusCode::OK, &ChatAnswer::from(ready));
    reply.with_origin(ready.from_cache, Some(ready.credits.remaining))
}

/// Operation in the `OpenAPI` document.
pub(crate) fn operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.accounts;
    let cost = options.credits_per_message;
    json!({
        "operationId": "askAboutVideo",
        "tags": ["accounts"],
        "summary": "Ask a question about a video for credits",
        "description": format!(
            "Costs {cost} on delivery, the transcript included; a failure is free, except the fetch before a \
             question that the model refuses. Each quotation in the answer is the transcript's own text, and each \
             marker such as `[1:05]` is the start of a segment: model output is verified before it is sent. \
             `citations` and `coverage` are extensions. With `Accept: text/event-stream`, also an extension, each \
             verified sentence is sent as a `sentence` event, and then the whole answer as an `answer` event; a \
             failure after the first sentence is an `error` event. A replay by Idempotency-Key is always JSON."
        ),
        "security": document::key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": {
            "description": format!("At most {CHAT_BODY_MAX} bytes; unknown fields are rejected."),
            "required": true,
            "content": document::json_body::<ChatQuestion>(json!({
                "first": document::example("A first question", examples::chat_question(false)),
                "followUp": document::example("A follow-up question", examples::chat_question(true))
            }))
        },
        "responses": responses()
    })
}

fn responses() -> Value {
    let mut headers = vec![
        document::X_CACHE.header("Whether the transcript is from the archive; not sent with events."),
        document::X_CREDITS_REMAINING.header("The remaining credits; not sent with events."),
        document::replayed(),
    ];
    headers.extend(document::rate_limit());
    let mut content = document::json_body::<ChatAnswer>(json!({
        "answered": document::example("An answer", examples::chat_answer()),
        "notCovered": document::example("The transcript has no answer", examples::chat_not_covered())
    }));
    content["text/event-stream"] = json!({
        "schema": { "type": "string" },
        "examples": { "events": { "value": examples::chat_events() } }
    });
    let mut responses = json!({
        "200": document::answer("The answer.", content, headers),
        "400": document::denial(
            400,
            "The body is missing, is not a JSON object, or a field is invalid; or the Idempotency-Key was used for \
             another request; or the chat model refuses the question.",
            &[
                ("long", "message: it has more than 2000 characters"),
                ("role", "conversation_history: the role of each item is user or assistant"),
            ],
            document::rate_limit(),
        ),
        "401": document::no_key(),
        "402": document::no_credits(),
        "404": document::no_transcript(
            "There is no transcript: no captions, or the video is private or removed.",
            &[("silent", "This video has no captions.")],
        ),
        "409": document::busy(),
        "429": document::too_fast_or_busy(),
        "500": document::failed_fetch()
    });
    document::limited_body_denials(&mut responses, CHAT_BODY_MAX);
    responses
}
