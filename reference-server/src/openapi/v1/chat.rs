//! Chat operation.

use serde_json::{Value, json};
use transcript_core::{
    accounts::AccountsOptions,
    wire::v1::{ChatAnswer, ChatQuestion},
};

use super::{
    super::responses::{example, json_body},
    examples,
    operations::{key, replayed, too_fast},
    parameters,
    responses::{
        X_CACHE, X_CREDITS_REMAINING, answer, body_denials, denial, fault, no_credits, no_key, rate_limit,
    },
};
use crate::routes::v1::chat::CHAT_BODY_MAX;

/// The path with its operation.
pub(super) fn paths(options: &AccountsOptions) -> Value {
    json!({ "/api/v1/chat": { "post": chat(options) } })
}

fn chat(options: &AccountsOptions) -> Value {
    let cost = options.credits_per_message;
    json!({
        "operationId": "askAboutVideo",
        "tags": ["accounts"],
        "summary": "Ask a question about a video for credits",
        "description": format!(
            "Costs {cost} on delivery, the transcript included; a failure is free. Each quotation in the answer is the \
             transcript's own text, and each marker such as `[1:05]` is the start of a segment: model output is \
             verified before it is sent. `citations` and `coverage` are extensions. With `Accept: text/event-stream`, \
             also an extension, each verified sentence is sent as a `sentence` event, and then the whole answer as an \
             `answer` event; a failure after the first sentence is an `error` event. A replay by Idempotency-Key is \
             always JSON."
        ),
        "security": key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": {
            "description": format!("At most {CHAT_BODY_MAX} bytes; unknown fields are rejected."),
            "required": true,
            "content": json_body::<ChatQuestion>(json!({
                "first": example("A first question", examples::chat_question(false)),
                "followUp": example("A follow-up question", examples::chat_question(true))
            }))
        },
        "responses": responses()
    })
}

fn responses() -> Value {
    let mut headers = vec![
        X_CACHE.header("Whether the transcript is from the archive; not sent with events."),
        X_CREDITS_REMAINING.header("The remaining credits; not sent with events."),
        replayed(),
    ];
    headers.extend(rate_limit());
    let mut content = json_body::<ChatAnswer>(json!({
        "answered": example("An answer", examples::chat_answer()),
        "notCovered": example("The transcript has no answer", examples::chat_not_covered())
    }));
    content["text/event-stream"] = json!({
        "schema": { "type": "string" },
        "examples": { "events": { "value": examples::chat_events() } }
    });
    let mut responses = json!({
        "200": answer("The answer.", content, headers),
        "400": denial(
            400,
            "The body is missing, is not a JSON object, or a field is invalid; or the Idempotency-Key was used for \
             another request.",
            &[
                ("long", "message: it has more than 2000 characters"),
                ("role", "conversation_history: the role of each item is user or assistant"),
            ],
            rate_limit(),
        ),
        "401": no_key(),
        "402": no_credits(),
        "404": denial(
            404,
            "There is no transcript: no captions, or the video is private or removed.",
            &[("silent", "This video has no captions.")],
            rate_limit(),
        ),
        "409": denial(
            409,
            "Another request with this Idempotency-Key is running. A retry counts toward the rate limit of repeats.",
            &[(
                "busy",
                "A request with this Idempotency-Key is still running. Retry in a few seconds.",
            )],
            [],
        ),
        "429": too_fast(),
        "500": fault()
    });
    body_denials(&mut responses, CHAT_BODY_MAX);
    responses
}
