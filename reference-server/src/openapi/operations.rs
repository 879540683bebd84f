//! Operations of the lookup API and of the service: parameters and all responses.

use serde_json::{Value, json};
use transcript_core::{
    accounts::AccountsOptions,
    lookup::LookupOptions,
    wire::lookup::{CreateKeyResponse, KeyRequest, KeyStatus, TranscriptResult},
};

use super::{
    examples, parameters,
    responses::{
        ResponseHeader, answer, cache_control, example, fault, json_body, optional_header, refusal,
        retry_after, retry_after_failure, text_body, vary, www_authenticate,
    },
    samples, v1,
};
use crate::{
    http::{HEAD_BYTES_MAX, READ_BYTES_MAX},
    routes::{
        health::{Health, Version},
        keys::BODY_MAX,
    },
};

/// All paths with their operations.
pub(super) fn paths(options: &LookupOptions, accounts: &AccountsOptions) -> Value {
    let mut paths = json!({
        "/api/transcript": { "get": get_transcript(options), "head": head_transcript(options) },
        "/api/keys": { "post": create_api_key(options) },
        "/api/keys/me": { "get": get_key_status(options) },
        "/watch/{platform}/{id}": { "get": get_watch_page() },
        "/health": { "get": get_health() },
        "/version": { "get": get_version() },
        "/openapi.json": { "get": get_open_api() },
        "/docs": { "get": get_docs() },
        "/docs/{operation}": { "get": get_operation_docs() },
        "/llms.txt": { "get": get_llms_txt() }
    });
    if let (Some(paths), Value::Object(more)) = (paths.as_object_mut(), v1::paths(accounts)) {
        paths.extend(more);
    }
    let items = paths.as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    for operation in items.filter_map(Value::as_object_mut).flat_map(|item| item.values_mut()) {
        // Checked before the request is parsed further.
        operation["responses"]["431"] = large_head();
    }
    samples::add(&mut paths, &options.base_url);
    paths
}

fn large_head() -> Value {
    let kib = HEAD_BYTES_MAX / 1024;
    let what = format!(
        "The request head, its link included, is larger than {kib} KiB. The response has no body if the head is larger \
         than {} KiB or has more than 100 headers.",
        READ_BYTES_MAX / 1024
    );
    let detail = format!("The request's headers are too large: its head may have {kib} KiB altogether.");
    refusal((431, "Request Header Fields Too Large"), &what, &[("large", &detail)], [])
}

/// Security: a key is optional.
fn optional_key() -> Value {
    json!([{}, { "bearer": [] }])
}

fn transcript_parameters() -> Value {
    json!([parameters::url(), parameters::v(), parameters::format(), parameters::src()])
}

fn get_transcript(options: &LookupOptions) -> Value {
    json!({
        "operationId": "getTranscript",
        "tags": ["transcripts"],
        "summary": "Look up the transcript of a video",
        "description": "An archived transcript is returned to every caller, free of charge. With a key, a video \
                        that is not archived is transcribed at once and charged to the key. If the work takes \
                        longer than the request may wait, it continues: the response is `fetch_error`, and \
                        `Retry-After` says when to retry; the retry joins the same work. \
                        Without a key, the response for such a video has `available: false`, the reason \
                        `needs_verification`, and `watchUrl`. In the JSON form every failure is a 200 with a \
                        `failureReason`; in the other forms it is a 402 or 404.",
        "security": optional_key(),
        "parameters": transcript_parameters(),
        "responses": {
            "200": found(options),
            "304": not_modified(),
            "400": bad_reference(),
            "402": without_transcript(
                options,
                "In every form but JSON: the key's allowance is spent. The body is a sentence, then the address of the \
                 watch page on the last line.",
                "The key has spent its allowance of new transcripts for this month.",
            ),
            "404": without_transcript(
                options,
                "In every form but JSON: there is no transcript. The body is a sentence, then the address of the watch \
                 page on the last line.",
                "This video has no captions.",
            ),
            "406": not_acceptable(),
            "500": fault()
        }
    })
}

fn head_transcript(options: &LookupOptions) -> Value {
    let bodiless = |mut response: Value| {
        if let Some(fields) = response.as_object_mut() {
            fields.remove("content");
            fields.remove("links");
        }
        response
    };
    let text = |description| without_transcript(options, description, "");
    json!({
        "operationId": "headTranscript",
        "tags": ["transcripts"],
        "summary": "Look up a transcript, headers only",
        "description": "As getTranscript, but from the archive only and without a body: it never transcribes, holds \
                        or charges anything.",
        "security": optional_key(),
        "parameters": transcript_parameters(),
        "responses": {
            "200": bodiless(found(options)),
            "304": not_modified(),
            "400": bodiless(bad_reference()),
            "402": bodiless(text("In every form but JSON: the key's allowance is spent.")),
            "404": bodiless(text("In every form but JSON: there is no transcript.")),
            "406": bodiless(not_acceptable()),
            "500": bodiless(fault())
        }
    })
}

fn found(options: &LookupOptions) -> Value {
    let mut content = json_body::<TranscriptResult>(json!({
        "archived": example("An archived transcript", examples::archived(options)),
        "fetched": example("A transcript fetched for this request", examples::fetched(options)),
        "needsVerification": example("Not archived, and no key", examples::needs_verification(options)),
        "keyAllowance": example("The key's allowance is spent", examples::key_allowance(options))
    }));
    let forms = [
        ("text/plain", examples::prose()),
        ("text/markdown", examples::markdown()),
        ("application/x-subrip", examples::srt()),
        ("text/vtt", examples::webvtt()),
    ];
    for (kind, text) in forms {
        content[kind] = text_body(&json!({ "archived": example("An archived transcript", text) }));
    }
    let mut response = answer(
        "The lookup finished. In the JSON form `available` says whether there is a transcript.",
        content,
        [
            cache_control(&["no-cache", "no-store"]),
            vary("accept-encoding, authorization"),
            content_language(),
            is_generated(),
            retry_after_failure(),
            failure_detail(),
        ],
    );
    response["links"] = json!({
        "watchPage": {
            "operationId": "getWatchPage",
            "description": "The watch page of the video; `watchUrl` is its address.",
            "parameters": { "platform": "$response.body#/platform", "id": "$response.body#/videoId" }
        }
    });
    response
}

/// `Content-Language`, for callers with a key.
fn content_language() -> ResponseHeader {
    let schema = json!({ "type": "string", "examples": ["en"] });
    let what = "The language of the transcript (BCP 47), for callers with a key; `und` if unknown.";
    ("Content-Language", optional_header(what, schema))
}

/// `X-Is-Generated`, for callers with a key.
fn is_generated() -> ResponseHeader {
    let schema = json!({ "type": "boolean" });
    (
        "X-Is-Generated",
        optional_header("Whether a machine generated the transcript, for callers with a key.", schema),
    )
}

/// `X-Failure-Detail`, for callers with a key.
fn failure_detail() -> ResponseHeader {
    let schema =
        json!({ "type": "string", "pattern": "^[a-z_]{1,32}$", "examples": ["private", "still_working"] });
    let what = "Detail of the failure reason, for callers with a key. With `no_captions`: the state of the video \
                (`private`, `removed`, `region`, `age`, `members`, `payment`, `login`, `live`, `upcoming`, \
                `no_language`, `no_captions`, `withdrawn`). With `fetch_error`: the work continues (`still_working`).";
    ("X-Failure-Detail", optional_header(what, schema))
}

fn not_modified() -> Value {
    answer(
        "The caller's copy is current: its `ETag` is in the request's `If-None-Match`.",
        Value::Null,
        [cache_control(&["no-cache", "no-store"]), vary("accept-encoding, authorization")],
    )
}

fn not_acceptable() -> Value {
    let detail = "Accept-Encoding accepts none of the available encodings: zstd, br, gzip, identity.";
    refusal(
        (406, "Not Acceptable"),
        "Accept-Encoding rejects every available encoding.",
        &[("encodings", detail)],
        [],
    )
}

fn bad_reference() -> Value {
    refusal(
        (400, "Bad Request"),
        "The video is missing or not recognized, or another parameter is invalid; `detail` begins with the \
         parameter's name.",
        &[
            (
                "missing",
                "url: it is missing: give the link of a video as url, or the id of a YouTube video as v",
            ),
            ("format", "format: it must be one of json, text, md; without it the answer is JSON"),
        ],
        [],
    )
}

fn without_transcript(options: &LookupOptions, description: &str, sentence: &str) -> Value {
    let text = examples::failure_text(options, sentence);
    let body = text_body(&json!({ "failure": { "value": text } }));
    answer(
        description,
        json!({ "text/plain": body }),
        [
            cache_control(&["no-store"]),
            vary("accept-encoding, authorization"),
            retry_after_failure(),
            failure_detail(),
        ],
    )
}

fn create_api_key(options: &LookupOptions) -> Value {
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
        "security": optional_key(),
        "parameters": [parameters::entitlement()],
        "requestBody": {
            "description": format!("Optional. At most {BODY_MAX} bytes."),
            "required": false,
            "content": json_body::<KeyRequest>(json!({
                "named": example("With a label and an e-mail address", examples::key_request()),
                "plain": example("Without fields", json!({}))
            }))
        },
        "responses": {
            "201": answer(
                "The new key, shown only once, and its allowance.",
                json_body::<CreateKeyResponse>(
                    json!({ "created": example("A free key", examples::key_created(options)) }),
                ),
                [cache_control(&["no-store"]), vary("origin")],
            ),
            "400": refusal(
                (400, "Bad Request"),
                "The body is not a JSON object, or a field is invalid; `detail` begins with the field's name.",
                &[("label", "label: it must be a string")],
                [vary("origin")],
            ),
            "408": refusal(
                (408, "Request Timeout"),
                "The body did not arrive in time.",
                &[("slow", "The body took too long to arrive.")],
                [vary("origin")],
            ),
            "413": refusal(
                (413, "Payload Too Large"),
                "The body is too large.",
                &[("large", &format!("The body is too large: at most {BODY_MAX} bytes are read."))],
                [vary("origin")],
            ),
            "415": refusal(
                (415, "Unsupported Media Type"),
                "The body is not JSON.",
                &[(
                    "type",
                    "The body must be JSON: send the header Content-Type: application/json with it, or no body at \
                     all.",
                )],
                [vary("origin")],
            ),
            "429": refusal(
                (429, "Too Many Requests"),
                "The limit of new keys per network or paid plan is reached.",
                &[("network", "Too many keys were created from your network. Retry in 86400 seconds.")],
                [retry_after(), vary("origin")],
            ),
            "500": fault()
        }
    })
}

fn get_key_status(options: &LookupOptions) -> Value {
    json!({
        "operationId": "getKeyStatus",
        "tags": ["keys"],
        "summary": "Get the plan and remaining allowance of an API key",
        "security": [{ "bearer": [] }],
        "responses": {
            "200": answer(
                "The key's plan and remaining allowance.",
                json_body::<KeyStatus>(json!({ "free": example("A free key", examples::key_status(options)) })),
                [cache_control(&["no-store"]), vary("origin")],
            ),
            "401": refusal(
                (401, "Unauthorized"),
                "The key is missing or unknown.",
                &[("missing", "An API key is needed: send it as Authorization: Bearer <key>.")],
                [www_authenticate(), vary("origin")],
            ),
            "500": fault()
        }
    })
}

fn get_watch_page() -> Value {
    let page = |description, title: &str| {
        let text = format!("<!DOCTYPE html><html lang=\"en\"><head><title>{title}</title></head></html>");
        let body = text_body(&json!({ "page": { "value": text } }));
        answer(description, json!({ "text/html": body }), [cache_control(&["no-cache"])])
    };
    json!({
        "operationId": "getWatchPage",
        "tags": ["transcripts"],
        "summary": "Read a transcript in the browser",
        "description": "The page shows an archived transcript. It never transcribes. The page of an unresolved short \
                        link links to the platform.",
        "security": [],
        "parameters": [parameters::platform(), parameters::id()],
        "responses": {
            "200": page("The transcript, or the reason why there is none.", "A talk – transcript"),
            "404": page("The address names no video.", "No such video"),
            "500": fault(),
            "503": page("The archive is unavailable.", "No transcript")
        }
    })
}

fn get_health() -> Value {
    service_operation::<Health>("getHealth", "Check whether the server runs", json!({ "status": "ok" }))
}

fn get_version() -> Value {
    service_operation::<Version>("getVersion", "Get the version of the server", examples::version())
}

fn service_operation<T: schemars::JsonSchema>(operation_id: &str, summary: &str, body: Value) -> Value {
    json!({
        "operationId": operation_id,
        "tags": ["service"],
        "summary": summary,
        "security": [],
        "responses": {
            "200": answer("The server runs.", json_body::<T>(json!({ "answer": example("Response", body) })), []),
            "500": fault()
        }
    })
}

fn get_open_api() -> Value {
    let shortest = json!({ "openapi": "3.1.1", "info": {}, "paths": {} });
    let content = json!({
        "application/json": {
            "schema": { "type": "object", "required": ["openapi", "info", "paths"] },
            "examples": { "document": example("Outline", shortest) }
        }
    });
    json!({
        "operationId": "getOpenApi",
        "tags": ["service"],
        "summary": "Get this document",
        "security": [],
        "responses": { "200": answer("This document.", content, []), "500": fault() }
    })
}

fn get_docs() -> Value {
    json!({
        "operationId": "getDocs",
        "tags": ["service"],
        "summary": "Read this document in the browser",
        "security": [],
        "responses": { "200": docs_page("The overview of all operations."), "500": fault() }
    })
}

fn get_operation_docs() -> Value {
    json!({
        "operationId": "getDocsOfOperation",
        "tags": ["service"],
        "summary": "Read about one operation in the browser",
        "security": [],
        "parameters": [parameters::operation()],
        "responses": {
            "200": docs_page("The operation with its parameters, responses and examples."),
            "404": refusal(
                (404, "Not Found"),
                "Unknown operation.",
                &[("unknown", "Unknown operation: /docs lists all operations.")],
                [],
            ),
            "500": fault()
        }
    })
}

fn docs_page(description: &str) -> Value {
    let text = "<!DOCTYPE html><html lang=\"en\"><head><title>Documentation</title></head></html>";
    let body = text_body(&json!({ "page": { "value": text } }));
    answer(description, json!({ "text/html": body }), [cache_control(&["no-cache"])])
}

fn get_llms_txt() -> Value {
    let body = text_body(&json!({ "text": { "value": "# Verbatim: video transcripts\n" } }));
    json!({
        "operationId": "getLlmsTxt",
        "tags": ["service"],
        "summary": "Get a summary of this service for language models",
        "security": [],
        "responses": { "200": answer("Markdown text.", json!({ "text/plain": body }), []), "500": fault() }
    })
}
