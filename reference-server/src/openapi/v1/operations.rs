//! Account and transcript operations: parameters and all responses.

use serde_json::{Value, json};
use transcript_core::{
    accounts::AccountsOptions,
    wire::v1::{
        AccountInfo, RegisterRequest, RegisterResponse, RotateKeyResponse, VerifyResponse, VideoTranscript,
    },
};

use super::{
    super::responses::{ResponseHeader, example, header, json_body, optional_header, text_body},
    examples, parameters,
    responses::{
        X_CACHE, X_CREDITS_REMAINING, answer, body_denials, denial, fault, no_credits, no_key, rate_limit,
        retry_after, too_many,
    },
};
use crate::routes::v1::body::BODY_MAX;

/// All paths with their operations.
pub(super) fn paths(options: &AccountsOptions) -> Value {
    json!({
        "/api/v1/register": { "post": register() },
        "/api/v1/verify": { "get": open_link(), "post": confirm() },
        "/api/v1/me": { "get": me(options) },
        "/api/v1/rotate-key": { "post": rotate_key() },
        "/api/v1/transcript": { "get": transcript(options) }
    })
}

/// Security: an account's key is required.
pub(super) fn key() -> Value {
    json!([{ "account": [] }])
}

fn register() -> Value {
    let mut responses = json!({
        "200": answer(
            "The mail is queued. The response is the same for addresses with and without an account.",
            json_body::<RegisterResponse>(json!({ "mailed": example("Always the same", examples::registered()) })),
            [],
        ),
        "400": denial(
            400,
            "The body is missing, is not a JSON object, or a field is invalid.",
            &[
                ("missing", "body: it is missing: send JSON such as {\"email\": …}"),
                ("address", "email: give an e-mail address such as name@example.org"),
            ],
            [],
        ),
        "429": too_many(
            "Too many registrations came from this network.",
            "Too many registrations came from your network: please try again in 60 minutes.",
        ),
        "500": fault()
    });
    body_denials(&mut responses, BODY_MAX);
    json!({
        "operationId": "registerAccount",
        "tags": ["accounts"],
        "summary": "Create an account, or request a new key for one",
        "description": "Sends a mail with a verification link to the address. If the address has an account, the link \
                        issues a new key: the credits stay, and the old key stops working. After several mails within \
                        an hour no more are sent to the address; the response is the same.",
        "security": [],
        "requestBody": {
            "description": format!("At most {BODY_MAX} bytes; unknown fields are rejected."),
            "required": true,
            "content": json_body::<RegisterRequest>(json!({
                "address": example("An e-mail address", examples::register())
            }))
        },
        "responses": responses
    })
}

/// Responses of both ways to redeem a token: JSON for programs, a page for browsers.
fn verification(shown: &str) -> Value {
    let vary = || {
        (
            "Vary",
            header(
                "Request headers that the response depends on.",
                json!({ "type": "string", "const": "accept" }),
            ),
        )
    };
    let page = |title: &str| {
        let text = format!("<!DOCTYPE html><html lang=\"en\"><head><title>{title}</title></head></html>");
        text_body(&json!({ "page": { "value": text } }))
    };
    let with_page = |mut response: Value, title: &str| {
        response["content"]["text/html"] = page(title);
        response
    };
    let mut content =
        json_body::<VerifyResponse>(json!({ "issued": example("A new account", examples::verified()) }));
    content["text/html"] = page(shown);
    let invalid = "token: this verification link is invalid, was used, or is older than 24 hours; POST \
                   /api/v1/register sends a new one";
    json!({
        "200": answer("The new key, shown only once; a page for browsers.", content, [vary()]),
        "400": with_page(
            denial(
                400,
                "The token is missing or invalid. Unknown, used and expired tokens get the same response.",
                &[("token", invalid)],
                [vary()],
            ),
            "No API key",
        ),
        "429": with_page(
            too_many(
                "Too many verification links were opened from this network.",
                "Too many verification links were opened from your network: please try again in 1 minute.",
            ),
            "No API key",
        ),
        "500": with_page(fault(), "No API key")
    })
}

fn open_link() -> Value {
    let mut responses = verification("Get your API key");
    responses["409"] = denial(
        409,
        "The address has an account, whose key would stop working: use POST. Nothing was changed.",
        &[(
            "known",
            "This address has an account with an API key. To replace the key, open the link in a browser and \
             press the button, or send the same request as POST.",
        )],
        [],
    );
    json!({
        "operationId": "openVerificationLink",
        "tags": ["accounts"],
        "summary": "Open the link of a verification mail",
        "description": "Creates the account of a new address and returns its key. If Accept prefers HTML, the response \
                        is a page with a button that sends the POST. If the address has an account, nothing changes, \
                        whatever Accept says: mail scanners open links, too.",
        "security": [],
        "parameters": [parameters::token()],
        "responses": responses
    })
}

fn confirm() -> Value {
    let mut responses = verification("Your API key");
    body_denials(&mut responses, BODY_MAX);
    json!({
        "operationId": "confirmVerification",
        "tags": ["accounts"],
        "summary": "Redeem the token of a verification mail",
        "description": "Sent by the button of the page. Creates the account of the address, or issues a new key for \
                        its account, which invalidates the old key. The token is in a form, in JSON, or, without a \
                        body, in the query.",
        "security": [],
        "requestBody": {
            "description": format!("At most {BODY_MAX} bytes."),
            "required": true,
            "content": {
                "application/x-www-form-urlencoded": parameters::token_body(),
                "application/json": parameters::token_body()
            }
        },
        "responses": responses
    })
}

fn me(options: &AccountsOptions) -> Value {
    json!({
        "operationId": "getAccount",
        "tags": ["accounts"],
        "summary": "Get the plan and credits of an account",
        "security": key(),
        "responses": {
            "200": answer(
                "The account.",
                json_body::<AccountInfo>(json!({ "free": example("A new account", examples::me(options)) })),
                rate_limit(),
            ),
            "401": no_key(),
            "429": too_fast(),
            "500": fault()
        }
    })
}

fn rotate_key() -> Value {
    json!({
        "operationId": "rotateKey",
        "tags": ["accounts"],
        "summary": "Replace the key of an account",
        "description": "The old key stops working at once. Of two concurrent calls one succeeds, the other gets 401. \
                        There is no body. Idempotency-Key is ignored: responses with a key are never stored.",
        "security": key(),
        "responses": {
            "200": answer(
                "The new key, shown only once.",
                json_body::<RotateKeyResponse>(json!({ "rotated": example("A new key", examples::rotated()) })),
                rate_limit(),
            ),
            "401": no_key(),
            "429": too_fast(),
            "500": fault()
        }
    })
}

/// Response 429 of the account's rate limit.
pub(super) fn too_fast() -> Value {
    let message =
        "Too many requests: this account may make 10 in any 60 seconds. Please try again in 7 seconds.";
    let repeats = "Too many repeated requests: this account may make 60 in any 60 seconds. Please try again in 2 \
                   seconds.";
    denial(429, "The account's rate limit.", &[("account", message), ("repeats", repeats)], {
        std::iter::once(retry_after()).chain(rate_limit())
    })
}

fn transcript(options: &AccountsOptions) -> Value {
    let cost = options.credits_per_transcript;
    let mut headers = vec![
        X_CACHE.header("Whether the transcript is from the archive."),
        X_CREDITS_REMAINING.header("The remaining credits, if known."),
        replayed(),
    ];
    headers.extend(rate_limit());
    json!({
        "operationId": "getVideoTranscript",
        "tags": ["accounts"],
        "summary": "Get the transcript of a video for credits",
        "description": format!(
            "Costs {cost} on delivery, archived or not: if the response is ready and the caller still connected. A \
             failure is free. Send either `video_id` or `url`; `lang` is a language tag, English by default. Order of \
             the checks: key, replay, rate limit, parameters, credits, work."
        ),
        "security": key(),
        "parameters": [
            parameters::video_id(), parameters::url(), parameters::lang(), parameters::idempotency_key()
        ],
        "responses": {
            "200": answer(
                "The transcript.",
                json_body::<VideoTranscript>(
                    json!({ "english": example("English captions", examples::transcript()) }),
                ),
                headers,
            ),
            "400": denial(
                400,
                "A parameter is missing or invalid, or the Idempotency-Key was used for another request.",
                &[("missing", "video_id: give the video's 11-character id, or its full link as url")],
                rate_limit(),
            ),
            "401": no_key(),
            "402": no_credits(),
            "404": denial(
                404,
                "There is no transcript: no captions, not in this language, or the video is private or removed.",
                &[(
                    "language",
                    "This video has no English transcript. It has: fr, de; name one of them as lang.",
                )],
                rate_limit(),
            ),
            "409": denial(
                409,
                "Another request with this Idempotency-Key is running. A retry counts toward the rate limit of \
                 repeats.",
                &[(
                    "busy",
                    "A request with this Idempotency-Key is still running. Retry in a few seconds.",
                )],
                [],
            ),
            "429": too_fast(),
            "500": fault()
        }
    })
}

/// `Idempotent-Replayed`, sent with a replay.
pub(super) fn replayed() -> ResponseHeader {
    let schema = json!({ "type": "string", "const": "true" });
    ("Idempotent-Replayed", optional_header("The response is a replay and costs nothing.", schema))
}
