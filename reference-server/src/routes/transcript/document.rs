//! `GET /api/transcript` in the `OpenAPI` document.

use serde_json::{Value, json};
use transcript_core::{headers, lookup::LookupOptions, wire::lookup::TranscriptResult};

use super::NOT_ACCEPTABLE;
use crate::routes::{
    document::{self, DocumentOptions, examples, parameters},
    v1::document::VIDEO_STATES,
};

/// Operation of GET.
pub(crate) fn operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.lookup;
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
        "security": document::optional_key(),
        "parameters": transcript_parameters(),
        "responses": {
            "200": found(options),
            "304": not_modified(),
            "400": bad_reference(),
            "401": expired_key(),
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
            "406": not_acceptable_response(),
            "429": exhausted_quota(),
            "500": document::fault()
        }
    })
}

/// Operation of HEAD.
pub(crate) fn head_operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.lookup;
    let bodiless = |mut response: Value| {
        if let Some(fields) = response.as_object_mut() {
            fields.remove("content");
            fields.remove("links");
        }
        response
    };
    json!({
        "operationId": "headTranscript",
        "tags": ["transcripts"],
        "summary": "Look up a transcript, headers only",
        "description": "As getTranscript, but from the archive only and without a body: it never transcribes, holds \
                        or charges anything.",
        "security": document::optional_key(),
        "parameters": transcript_parameters(),
        "responses": {
            "200": bodiless(found(options)),
            "304": not_modified(),
            "400": bodiless(bad_reference()),
            "401": bodiless(expired_key()),
            "404": bodiless(without_transcript(options, "In every form but JSON: there is no transcript.", "")),
            "406": bodiless(not_acceptable_response()),
            "500": bodiless(document::fault())
        }
    })
}

fn transcript_parameters() -> Value {
    json!([
        parameters::url(),
        parameters::v(),
        parameters::format(),
        parameters::src(),
        parameters::lang(),
        parameters::translated(),
        parameters::words(),
        parameters::description(),
        parameters::chunk(),
        parameters::cursor(),
        parameters::max_chars("maxChars"),
        parameters::frontmatter(),
        parameters::renewal()
    ])
}

fn found(options: &LookupOptions) -> Value {
    let mut content = document::json_body::<TranscriptResult>(json!({
        "archived": document::example("An archived transcript", examples::archived(options)),
        "fetched": document::example("A transcript fetched for this request", examples::fetched(options)),
        "needsVerification": document::example("Not archived, and no key", examples::needs_verification(options)),
        "keyAllowance": document::example("The key's allowance is spent", examples::key_allowance(options))
    }));
    let forms = [
        ("text/plain", examples::prose()),
        ("text/markdown", examples::markdown()),
        ("application/x-subrip", examples::srt()),
        ("text/vtt", examples::webvtt()),
    ];
    for (kind, text) in forms {
        content[kind] =
            document::text_body(&json!({ "archived": document::example("An archived transcript", text) }));
    }
    let mut response = document::answer(
        "The lookup finished. In the JSON form `available` says whether there is a transcript.",
        content,
        [
            document::cache_control(&["no-cache", "no-store"]),
            document::vary("accept-encoding, authorization"),
            entity_tag(),
            content_encoding(),
            next_page(),
            content_language(),
            is_generated(),
            document::retry_after_failure(),
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
    document::shareable(response)
}

/// `ETag` of a transcript, except JSON for callers with a key.
fn entity_tag() -> document::ResponseHeader {
    document::entity_tag("Strong tag of the bytes of a transcript. JSON for callers with a key has none.")
}

/// `Content-Encoding` of a compressed transcript.
fn content_encoding() -> document::ResponseHeader {
    let what = "The encoding of a compressed transcript. JSON for callers with a key is not compressed.";
    document::content_encoding(what)
}

/// `X-Next-Cursor` of a page.
fn next_page() -> document::ResponseHeader {
    let schema = json!({ "type": "string", "pattern": parameters::CURSOR_PATTERN });
    let what = "Extension: the `cursor` of the next page, if the response is a page and not the last one.";
    (headers::X_NEXT_CURSOR, document::optional_header(what, schema))
}

/// `Content-Language`, for callers with a key.
fn content_language() -> document::ResponseHeader {
    let schema = json!({ "type": "string", "examples": ["en"] });
    let what = "The language of the transcript (BCP 47), for callers with a key; `und` if unknown.";
    ("Content-Language", document::optional_header(what, schema))
}

/// `X-Is-Generated`, for callers with a key.
fn is_generated() -> document::ResponseHeader {
    let what = "Whether a machine generated the transcript, for callers with a key.";
    (headers::X_IS_GENERATED, document::optional_header(what, json!({ "type": "boolean" })))
}

/// `X-Failure-Detail`, for callers with a key.
fn failure_detail() -> document::ResponseHeader {
    let schema = json!({ "type": "string", "pattern": "^[a-z_]{1,32}$", "examples": ["private", "still_working", "busy"] });
    let what = format!(
        "Detail of the failure reason, for callers with a key. With `no_captions`: the state of the video \
         ({VIDEO_STATES}). With `fetch_error`: the work continues (`still_working`), or too many fetches wait and \
         nothing was charged (`busy`). In the other forms than JSON: the failure reason, if it has no detail."
    );
    (headers::X_FAILURE_DETAIL, document::optional_header(&what, schema))
}

fn not_modified() -> Value {
    document::shareable(document::answer(
        "The caller's copy is current: its `ETag` is in the request's `If-None-Match`.",
        Value::Null,
        [
            document::cache_control(&["no-cache", "no-store"]),
            document::vary("accept-encoding, authorization"),
            entity_tag(),
            next_page(),
            content_language(),
            is_generated(),
        ],
    ))
}

fn not_acceptable_response() -> Value {
    document::refusal(
        (406, "Not Acceptable"),
        "Accept-Encoding rejects every available encoding.",
        &[("encodings", NOT_ACCEPTABLE)],
        [document::vary("accept-encoding, authorization")],
    )
}

/// 401 for a key whose expiry the operator has set.
fn expired_key() -> Value {
    document::refusal(
        (401, "Unauthorized"),
        "The key has expired. Only the operator gives a key an expiry; an unknown key is no error.",
        &[(
            "expired",
            "This API key expired at 2026-12-01T00:00:00Z. The operator of the service issues a new one.",
        )],
        [document::www_authenticate(), document::vary("accept-encoding, authorization")],
    )
}

/// 429 for a key whose quota the operator has set.
fn exhausted_quota() -> Value {
    document::refusal(
        (429, "Too Many Requests"),
        "The key has used its requests of the day or month. Only the operator gives a key such a quota.",
        &[("quota", "This API key has used its 1000 requests of the day. Try again in 5 hours.")],
        [document::retry_after(), document::vary("accept-encoding, authorization")],
    )
}

fn bad_reference() -> Value {
    document::refusal(
        (400, "Bad Request"),
        "The video is missing or not recognized, or another parameter is invalid; `detail` begins with the \
         parameter's name.",
        &[
            (
                "missing",
                "url: it is missing: give the link of a video as url, or the id of a YouTube video as v",
            ),
            ("format", "format: it must be one of json, text, md, srt, vtt; without it the answer is JSON"),
        ],
        [],
    )
}

fn without_transcript(options: &LookupOptions, description: &str, sentence: &str) -> Value {
    let text = examples::failure_text(options, sentence);
    let body = document::text_body(&json!({ "failure": { "value": text } }));
    document::answer(
        description,
        json!({ "text/plain": body }),
        [
            document::cache_control(&["no-store"]),
            document::vary("accept-encoding, authorization"),
            document::retry_after_failure(),
            failure_detail(),
        ],
    )
}
