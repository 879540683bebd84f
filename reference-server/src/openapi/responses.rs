//! The answers that several operations share, with their headers and media types.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};
use transcript_core::wire::Problem;

use super::{examples, schemas::reference};

/// One header: its name and what it is.
pub(super) type Header = (&'static str, Value);

/// A JSON body of this type.
pub(super) fn json_body<T: JsonSchema>(named_examples: Value) -> Value {
    json!({ "application/json": { "schema": reference::<T>(), "examples": named_examples } })
}

/// One example with a summary.
pub(super) fn example(summary: &str, value: impl Into<Value>) -> Value {
    json!({ "summary": summary, "value": value.into() })
}

/// Text of this media type.
pub(super) fn text_body(named_examples: &Value) -> Value {
    json!({ "schema": { "type": "string" }, "examples": named_examples })
}

/// An answer with the headers that every answer has, and these.
pub(super) fn answer(description: &str, content: Value, headers: impl IntoIterator<Item = Header>) -> Value {
    let mut all: Map<String, Value> =
        headers.into_iter().map(|(name, what)| (name.to_owned(), what)).collect();
    all.insert(
        "x-request-id".to_owned(),
        header(
            "The name of this request, for questions about it.",
            json!({ "type": "string", "minLength": 1 }),
        ),
    );
    let mut answer = json!({ "description": description, "headers": all });
    if !content.is_null() {
        answer["content"] = content;
    }
    answer
}

/// `Cache-Control` with one of these values.
pub(super) fn cache_control(values: &[&str]) -> Header {
    (
        "Cache-Control",
        header("Whether and how the answer may be kept.", json!({ "type": "string", "enum": values })),
    )
}

/// `Vary` with this value.
pub(super) fn vary(on: &str) -> Header {
    ("Vary", header("What the answer depends on.", json!({ "type": "string", "const": on })))
}

/// `Retry-After` in seconds.
pub(super) fn retry_after() -> Header {
    let schema = json!({ "type": "integer", "minimum": 1, "examples": [86_400] });
    ("Retry-After", header("After how many seconds it may be tried again.", schema))
}

/// `Retry-After` in seconds, where there is no transcript and it is known when there may be one.
pub(super) fn asking_again() -> Header {
    let schema = json!({ "type": "integer", "minimum": 1, "examples": [40] });
    let what = "Where there is no transcript: after how many seconds it may be of use to ask again, where that is known.";
    ("Retry-After", optional_header(what, schema))
}

/// `WWW-Authenticate` of the bearer scheme.
pub(super) fn www_authenticate() -> Header {
    let schema =
        json!({ "type": "string", "pattern": "^Bearer ", "examples": ["Bearer realm=\"verbatim\""] });
    ("WWW-Authenticate", header("How to authenticate.", schema))
}

/// A refusal as problem details.
pub(super) fn refusal(
    status: (u16, &str),
    description: &str,
    details: &[(&str, &str)],
    headers: impl IntoIterator<Item = Header>,
) -> Value {
    let (code, title) = status;
    let examples: Map<String, Value> = details
        .iter()
        .map(|(name, detail)| {
            ((*name).to_owned(), json!({ "value": examples::problem(code, title, detail) }))
        })
        .collect();
    let content =
        json!({ "application/problem+json": { "schema": reference::<Problem>(), "examples": examples } });
    answer(description, content, std::iter::once(cache_control(&["no-store"])).chain(headers))
}

/// 500, which any operation may answer.
pub(super) fn fault() -> Value {
    let detail = "Something went wrong on our side: please try again in a moment.";
    refusal((500, "Internal Server Error"), "A fault of the service.", &[("fault", detail)], [])
}

/// A header that always comes.
pub(super) fn header(description: &str, schema: Value) -> Value {
    json!({ "description": description, "required": true, "schema": schema })
}

/// A header that comes where it has something to say.
pub(super) fn optional_header(description: &str, schema: Value) -> Value {
    json!({ "description": description, "required": false, "schema": schema })
}
