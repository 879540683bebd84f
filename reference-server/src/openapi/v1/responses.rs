//! The answers that several operations share.

use serde_json::{Map, Value, json};
use transcript_core::wire::v1::ErrorBody;

use super::{
    super::responses::{Header, cache_control, header, json_body, optional_header, www_authenticate},
    examples,
};

/// A header of this surface with its schema.
pub(super) struct Known {
    name: &'static str,
    schema: fn() -> Value,
}

/// `X-Cache`
pub(super) const X_CACHE: Known =
    Known { name: "X-Cache", schema: || json!({ "type": "string", "enum": ["HIT", "MISS"] }) };
/// `X-Credits-Remaining`
pub(super) const X_CREDITS_REMAINING: Known = Known {
    name: "X-Credits-Remaining",
    schema: || json!({ "type": "integer", "minimum": 0, "examples": [199] }),
};

impl Known {
    /// The header, where it comes.
    pub(super) fn header(&self, description: &str) -> Header {
        (self.name, optional_header(description, (self.schema)()))
    }
}

/// An answer that nobody on the way keeps, with these headers beside those that every answer has.
pub(super) fn answer(description: &str, content: Value, headers: impl IntoIterator<Item = Header>) -> Value {
    let headers = std::iter::once(cache_control(&["no-store"])).chain(headers);
    super::super::responses::answer(description, content, headers)
}

/// An error (specification 7): `{error, code}`.
pub(super) fn denial(
    status: u16,
    description: &str,
    messages: &[(&str, &str)],
    headers: impl IntoIterator<Item = Header>,
) -> Value {
    let named: Map<String, Value> = messages
        .iter()
        .map(|(name, message)| ((*name).to_owned(), json!({ "value": examples::error(status, message) })))
        .collect();
    answer(description, json_body::<ErrorBody>(Value::Object(named)), headers)
}

/// 401.
pub(super) fn no_key() -> Value {
    let message = "This needs an API key in the header Authorization: Bearer <API_KEY>. POST /api/v1/register sends \
                   one to your e-mail address.";
    denial(
        401,
        "The key is missing, unknown, replaced, of the other surface, or of a blocked account.",
        &[("missing", message)],
        [www_authenticate()],
    )
}

/// 402.
pub(super) fn no_credits() -> Value {
    let message = "The credits do not suffice: this costs 1, and 0 are left. The plan's credits come back at \
                   2026-12-20T09:30:00Z; POST /api/v1/buy-credits adds some at once.";
    denial(
        402,
        "The credits do not suffice.",
        &[("spent", message)],
        std::iter::once(X_CREDITS_REMAINING.header("The credits that are left.")).chain(rate_limit()),
    )
}

/// 429 of somebody who has no key yet.
pub(super) fn too_many(description: &str, message: &str) -> Value {
    denial(429, description, &[("network", message)], [retry_after()])
}

/// `Retry-After` in seconds.
pub(super) fn retry_after() -> Header {
    let schema = json!({ "type": "integer", "minimum": 1, "examples": [7] });
    ("Retry-After", header("After how many seconds the next request is admitted.", schema))
}

/// The fields that tell an account's rate limit, and what is left of it.
pub(super) fn rate_limit() -> impl Iterator<Item = Header> {
    let policy = json!({ "type": "string", "examples": ["\"account\";q=10;w=60"] });
    let state = json!({ "type": "string", "examples": ["\"account\";r=9;t=60"] });
    [
        ("RateLimit-Policy", optional_header("Requests (q) in any so many seconds (w).", policy)),
        (
            "RateLimit",
            optional_header("Requests that are left (r), and seconds until there are more (t).", state),
        ),
    ]
    .into_iter()
}

/// What may be wrong with any body.
pub(super) fn body_denials(responses: &mut Value, limit: usize) {
    let large = format!("The body is too large: at most {limit} bytes are read.");
    responses["408"] =
        denial(408, "The body did not arrive in time.", &[("slow", "The body took too long to arrive.")], []);
    responses["413"] = denial(413, "The body is too large.", &[("large", &large)], []);
    responses["415"] = denial(
        415,
        "The body is not JSON.",
        &[("type", "The body must be JSON: send Content-Type: application/json.")],
        [],
    );
}

/// 500, which any operation may answer.
pub(super) fn fault() -> Value {
    let messages = [
        ("fault", "Something went wrong on our side: please try again in a moment."),
        (
            "storage",
            "The service could not reach its storage: nothing was charged, please try again in a moment.",
        ),
    ];
    denial(
        500,
        "A fault of the service, or of the platform that it asked. Nothing was charged.",
        &messages,
        [],
    )
}
