//! What each operation takes, and everything that it answers.

use serde_json::{Value, json};
use transcript_core::{
    accounts::AccountsOptions,
    wire::v1::{KeyRotated, Me, Register, Registered, Verified, VideoTranscript},
};

use super::{
    super::responses::{Header, example, header, json_body, optional_header, text_body},
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

/// Only with a key of an account.
pub(super) fn key() -> Value {
    json!([{ "account": [] }])
}

fn register() -> Value {
    let mut responses = json!({
        "200": answer(
            "The mail is on its way. Addresses with and without an account get the same answer.",
            json_body::<Registered>(json!({ "mailed": example("Always the same", examples::registered()) })),
            [],
        ),
        "400": denial(
            400,
            "The body is missing, is no JSON object, or a field is wrong.",
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
        "summary": "Ask for an account, or for a new key of one",
        "description": "A mail with a verification link is sent to the address. For an address that has an \
                        account the link gives a new key: the credits stay, the old key ends. An address that was \
                        sent several mails within the hour is sent no more of them, and the answer is the same.",
        "security": [],
        "requestBody": {
            "description": format!("At most {BODY_MAX} bytes; a field that is not known is refused."),
            "required": true,
            "content": json_body::<Register>(json!({
                "address": example("An address", examples::register())
            }))
        },
        "responses": responses
    })
}

/// The answers of both ways to redeem a token: JSON for programs, a page for browsers.
fn verification(shown: &str) -> Value {
    let vary =
        || ("Vary", header("What the answer depends on.", json!({ "type": "string", "const": "accept" })));
    let page = |title: &str| {
        let text = format!("<!DOCTYPE html><html lang=\"en\"><head><title>{title}</title></head></html>");
        text_body(&json!({ "page": { "value": text } }))
    };
    let with_page = |mut response: Value, title: &str| {
        response["content"]["text/html"] = page(title);
        response
    };
    let mut content =
        json_body::<Verified>(json!({ "issued": example("A new account", examples::verified()) }));
    content["text/html"] = page(shown);
    let invalid = "token: this verification link is invalid, was used, or is older than 24 hours; POST \
                   /api/v1/register sends a new one";
    json!({
        "200": answer("The new key, which is shown this once; to a browser, as a page.", content, [vary()]),
        "400": with_page(
            denial(
                400,
                "The token is missing, or cannot be redeemed: unknown, used and expired ones are told alike.",
                &[("token", invalid)],
                [vary()],
            ),
            "No API key",
        ),
        "429": with_page(
            too_many(
                "Too many links were opened from this network.",
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
        "The address has an account, whose key would end: only the POST does that. Nothing was done.",
        &[(
            "known",
            "This address has an account, and a new API key would end the one that it has. If you want that, open \
             the link in a browser and press the button, or send the same request as POST.",
        )],
        [],
    );
    json!({
        "operationId": "openVerificationLink",
        "tags": ["accounts"],
        "summary": "Open the link of a verification mail",
        "description": "For a new address it makes the account and answers its key. A caller whose Accept names \
                        HTML gets a page with a button instead, which sends the POST. For an address that has an \
                        account nothing happens, whatever is accepted: programs open the links in mails, too.",
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
        "description": "As the button of the page does: makes the account of the address, or gives the account \
                        that it has a new key and ends the old one. The token comes as a form, as JSON, or, \
                        without a body, in the query.",
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
        "summary": "Ask what an account has left",
        "security": key(),
        "responses": {
            "200": answer(
                "The account.",
                json_body::<Me>(json!({ "free": example("A new account", examples::me(options)) })),
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
        "summary": "Replace the key",
        "description": "The old key ends at once. Of two calls at once one wins, the other gets 401. There is no \
                        body, and an Idempotency-Key means nothing here: no reply with a key in it is kept.",
        "security": key(),
        "responses": {
            "200": answer(
                "The new key, which is shown this once.",
                json_body::<KeyRotated>(json!({ "rotated": example("A new key", examples::rotated()) })),
                rate_limit(),
            ),
            "401": no_key(),
            "429": too_fast(),
            "500": fault()
        }
    })
}

/// 429 for the account's own limit.
pub(super) fn too_fast() -> Value {
    let message =
        "Too many requests: this account may make 10 in any 60 seconds. Please try again in 7 seconds.";
    let repeats = "Too many repeated requests: this account may make 60 in any 60 seconds. Please try again in 2 seconds.";
    denial(429, "The account's own rate limit.", &[("account", message), ("repeats", repeats)], {
        std::iter::once(retry_after()).chain(rate_limit())
    })
}

fn transcript(options: &AccountsOptions) -> Value {
    let cost = options.credits_per_transcript;
    let mut headers = vec![
        X_CACHE.header("Whether the transcript came from the archive."),
        X_CREDITS_REMAINING.header("The credits that are left, where that is known."),
        replayed(),
    ];
    headers.extend(rate_limit());
    json!({
        "operationId": "getVideoTranscript",
        "tags": ["accounts"],
        "summary": "Get the transcript of a video, for credits",
        "description": format!(
            "Costs {cost} when it is delivered, from the archive or not: when the answer is ready and the caller \
             still there. A failure costs nothing. Give either `video_id` or `url`; `lang` is a language tag, \
             English without it. The checks come in this order: key, repeated reply, rate limit, parameters, \
             credits, work."
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
                "A parameter is missing or wrong, or the Idempotency-Key was used for another request.",
                &[("missing", "video_id: give the video's 11-character id, or its full link as url")],
                rate_limit(),
            ),
            "401": no_key(),
            "402": no_credits(),
            "404": denial(
                404,
                "There is no transcript: no captions, not in this language, or a video that is private or gone.",
                &[(
                    "language",
                    "This video has no English transcript. It has: fr, de; name one of them as lang.",
                )],
                rate_limit(),
            ),
            "409": denial(
                409,
                "Another request with this Idempotency-Key is under way. Asking again counts for the limit of \
                 repeats.",
                &[(
                    "busy",
                    "Another request with this Idempotency-Key is under way: please try again in a moment.",
                )],
                [],
            ),
            "429": too_fast(),
            "500": fault()
        }
    })
}

/// `Idempotent-Replayed`, where it is so.
pub(super) fn replayed() -> Header {
    let schema = json!({ "type": "string", "const": "true" });
    ("Idempotent-Replayed", optional_header("The reply was given before, and costs nothing now.", schema))
}
