//! Parts of the `OpenAPI` document that several operations of the v1 API share.

pub(crate) mod examples;
pub(crate) mod parameters;

use serde_json::{Value, json};
use transcript_core::headers;

use crate::routes::document;
pub(crate) use crate::routes::document::{
    DocumentOptions, ResponseHeader, content_encoding, denial, example, foreign_page, json_body,
    optional_header, page_body, vary,
};

/// Header of the v1 API with its schema.
pub(crate) struct KnownHeader {
    name: &'static str,
    schema: fn() -> Value,
}

pub(crate) const X_CACHE: KnownHeader =
    KnownHeader { name: headers::X_CACHE, schema: || json!({ "type": "string", "enum": ["HIT", "MISS"] }) };
pub(crate) const X_CREDITS_REMAINING: KnownHeader = KnownHeader {
    name: headers::X_CREDITS_REMAINING,
    schema: || json!({ "type": "integer", "minimum": 0, "examples": [199] }),
};

const X_FAILURE_DETAIL: KnownHeader = KnownHeader {
    name: headers::X_FAILURE_DETAIL,
    schema: || json!({ "type": "string", "pattern": "^[a-z_]{1,32}$" }),
};
/// The states of a video without a transcript.
pub(crate) const VIDEO_STATES: &str = "`private`, `removed`, `region`, `age`, `members`, `payment`, `login`, `live`, \
    `upcoming`, `no_language`, `no_captions`, `withdrawn`";

impl KnownHeader {
    /// The header as an optional one.
    pub(crate) fn header(&self, description: &str) -> ResponseHeader {
        (self.name, optional_header(description, (self.schema)()))
    }
}

/// Response with `Cache-Control: no-store`, the common headers and these.
pub(crate) fn answer(
    description: &str,
    content: Value,
    headers: impl IntoIterator<Item = ResponseHeader>,
) -> Value {
    let headers = std::iter::once(document::cache_control(&["no-store"])).chain(headers);
    document::answer(description, content, headers)
}

/// Response 401.
pub(crate) fn no_key() -> Value {
    let message = "This needs an API key in the header Authorization: Bearer <API_KEY>. POST /api/v1/register sends \
                   one to your email address.";
    denial(
        401,
        "The key is missing, unknown, replaced, of the lookup API, or of a blocked account.",
        &[("missing", message)],
        [document::www_authenticate()],
    )
}

/// Response 402.
pub(crate) fn no_credits() -> Value {
    let message = "Not enough credits: this costs 1, and 0 are left. The plan's credits reset at \
                   2026-12-20T09:30:00Z; POST /api/v1/buy-credits adds credits now.";
    denial(
        402,
        "Insufficient credits.",
        &[("spent", message)],
        std::iter::once(X_CREDITS_REMAINING.header("The remaining credits.")).chain(rate_limit()),
    )
}

/// Response 404 to a request for a transcript.
pub(crate) fn no_transcript(description: &str, messages: &[(&str, &str)]) -> Value {
    let detail = X_FAILURE_DETAIL.header(&format!("The state of the video: {VIDEO_STATES}."));
    denial(404, description, messages, std::iter::once(detail).chain(rate_limit()))
}

/// Response 409 to a request whose first one is still running.
pub(crate) fn busy() -> Value {
    denial(
        409,
        "Another request with this Idempotency-Key is running. A retry counts toward the rate limit of repeats.",
        &[("busy", "A request with this Idempotency-Key is still running. Retry in a second.")],
        [],
    )
}

/// Response 429 for callers without a key.
pub(crate) fn too_many(description: &str, message: &str) -> Value {
    denial(429, description, &[("network", message)], [retry_after()])
}

/// `Retry-After` in seconds.
pub(crate) fn retry_after() -> ResponseHeader {
    ("Retry-After", document::header("Seconds until the next request is admitted.", document::seconds(7)))
}

/// Headers with the account's rate limit and its remaining requests.
pub(crate) fn rate_limit() -> impl Iterator<Item = ResponseHeader> {
    let policy = json!({ "type": "string", "examples": ["\"account\";q=10;w=60"] });
    let state = json!({ "type": "string", "examples": ["\"account\";r=9;t=60"] });
    [
        (headers::RATE_LIMIT_POLICY, optional_header("Requests (q) per window of seconds (w).", policy)),
        (
            headers::RATE_LIMIT,
            optional_header(
                "Remaining requests (r), and seconds until all are available, on a 429 until one is (t).",
                state,
            ),
        ),
    ]
    .into_iter()
}

/// Adds the error responses of any body.
pub(crate) fn body_denials(responses: &mut Value, limit: usize) {
    body_denials_with(responses, limit, &[]);
}

/// Adds the error responses of a body whose request counts toward the account's rate limit, whatever the body.
pub(crate) fn limited_body_denials(responses: &mut Value, limit: usize) {
    body_denials_with(responses, limit, &rate_limit().collect::<Vec<_>>());
}

fn body_denials_with(responses: &mut Value, limit: usize, headers: &[ResponseHeader]) {
    let large = format!("The body is too large: at most {limit} bytes are read.");
    let kind = "The body must be JSON: send Content-Type: application/json.";
    for (status, description, message) in [
        (408_u16, "The body did not arrive in time.", ("slow", "The body took too long to arrive.")),
        (413, "The body is too large.", ("large", large.as_str())),
        (415, document::UNSUPPORTED_BODY, ("type", kind)),
    ] {
        responses[status.to_string()] = denial(status, description, &[message], headers.iter().cloned());
    }
}

/// Response 500, possible for every operation.
pub(crate) fn fault() -> Value {
    fault_with([])
}

/// These responses, and the 401, 429 and 500 of an operation that counts toward the account's rate limit.
pub(crate) fn keyed(mut responses: Value) -> Value {
    responses["401"] = no_key();
    responses["429"] = too_fast();
    responses["500"] = fault_with(rate_limit());
    responses
}

/// Response 500 to a request for a transcript.
pub(crate) fn failed_fetch() -> Value {
    let detail = X_FAILURE_DETAIL.header(
        "Why there is no transcript, if the fetch failed: `rate_limited`, `fetch_error` or `config_error`; \
         `still_working` if it continues.",
    );
    let mut response = fault_with(std::iter::once(detail).chain(rate_limit()));
    let what = "An internal error, or an error of the platform. Nothing was charged, unless the detail is \
                `still_working`: then the fetch is charged when it is done.";
    response["description"] = what.into();
    response
}

fn fault_with(headers: impl IntoIterator<Item = ResponseHeader>) -> Value {
    let messages = [
        ("fault", "The server could not process the request. Retry in a moment."),
        (
            "storage",
            "The service could not reach its storage: nothing was charged, please try again in a moment.",
        ),
    ];
    denial(500, "An internal error, or an error of the platform. Nothing was charged.", &messages, headers)
}

/// Security: an account's key is required.
pub(crate) fn key() -> Value {
    json!([{ "account": [] }])
}

/// Response 429 of the account's rate limit.
pub(crate) fn too_fast() -> Value {
    too_fast_with("The account's rate limit.", &[])
}

/// Response 429 where a transcript may have to be fetched.
pub(crate) fn too_fast_or_busy() -> Value {
    let description = "The account's rate limit, a limit of new transcripts, or too many fetches wait. Nothing was \
                       charged.";
    let busy = "The service is busy with other videos; nothing was charged. Try again in 10 seconds.";
    too_fast_with(description, &[("busy", busy)])
}

fn too_fast_with(description: &str, more: &[(&str, &str)]) -> Value {
    let message =
        "Too many requests: this account may make 10 in any 60 seconds. Please try again in 7 seconds.";
    let repeats = "Too many repeated requests: this account may make 60 in any 60 seconds. Please try again in 2 \
                   seconds.";
    let messages = [&[("account", message), ("repeats", repeats)], more].concat();
    denial(429, description, &messages, std::iter::once(retry_after()).chain(rate_limit()))
}

/// `Idempotent-Replayed`, sent with a replay.
pub(crate) fn replayed() -> ResponseHeader {
    let schema = json!({ "type": "string", "const": "true" });
    (headers::IDEMPOTENT_REPLAYED, optional_header("The response is a replay and costs nothing.", schema))
}
