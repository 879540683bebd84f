//! Parts of the `OpenAPI` document that several operations share: responses, parameters and examples.

mod common;
pub(crate) mod examples;
pub(crate) mod parameters;

pub(crate) use common::{add_common_responses, foreign_page};
use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::{Contract, SchemaSettings},
    transform::RecursiveTransform,
};
use serde_json::{Map, Value, json};
use transcript_core::{
    accounts::AccountsOptions,
    headers,
    lookup::LookupOptions,
    wire::{Problem, v1::ErrorBody},
};

/// Place of the schemas in the document.
const SCHEMAS: &str = "/components/schemas";

/// Settings that the document describes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentOptions<'a> {
    /// Settings of the lookup API.
    pub(crate) lookup: &'a LookupOptions,
    /// Settings of the v1 API.
    pub(crate) accounts: &'a AccountsOptions,
}

/// Generator of the schemas of a document, for bodies that the server reads or writes.
///
/// They have no defaults: a default that the client fills in is no promise of the server.
pub(crate) fn schema_generator(contract: Contract) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS.into();
        settings.contract = contract;
        settings.transforms = vec![Box::new(RecursiveTransform(|schema: &mut Schema| {
            schema.remove("default");
        }))];
    });
    settings.into_generator()
}

/// Adds to a document what all have: the versions of its form and of its schemas, and the licence.
pub(crate) fn with_common_fields(mut document: Value) -> Value {
    document["openapi"] = "3.1.1".into();
    document["jsonSchemaDialect"] = "https://json-schema.org/draft/2020-12/schema".into();
    document["info"]["license"] =
        json!({ "name": "MIT OR Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" });
    document
}

/// Name and description of a response header.
pub(crate) type ResponseHeader = (&'static str, Value);

/// Reference to the schema of a type.
fn reference<T: JsonSchema>() -> Value {
    json!({ "$ref": format!("#{SCHEMAS}/{}", T::schema_name()) })
}

/// Security: a key is optional.
pub(crate) fn optional_key() -> Value {
    json!([{}, { "bearer": [] }])
}

/// JSON body of a type.
pub(crate) fn json_body<T: JsonSchema>(named_examples: Value) -> Value {
    json!({ "application/json": { "schema": reference::<T>(), "examples": named_examples } })
}

pub(crate) fn example(summary: &str, value: impl Into<Value>) -> Value {
    json!({ "summary": summary, "value": value.into() })
}

pub(crate) fn text_body(named_examples: &Value) -> Value {
    json!({ "schema": { "type": "string" }, "examples": named_examples })
}

/// HTML body with this title.
pub(crate) fn page_body(title: &str) -> Value {
    let text = format!("<!DOCTYPE html><html lang=\"en\"><head><title>{title}</title></head></html>");
    text_body(&json!({ "page": { "value": text } }))
}

/// Response with the common headers and these.
pub(crate) fn answer(
    description: &str,
    content: Value,
    headers: impl IntoIterator<Item = ResponseHeader>,
) -> Value {
    let mut all: Map<String, Value> =
        headers.into_iter().map(|(name, what)| (name.to_owned(), what)).collect();
    all.insert(
        headers::X_REQUEST_ID.to_owned(),
        header("Id of this request, for support.", json!({ "type": "string", "minLength": 1 })),
    );
    let mut answer = json!({ "description": description, "headers": all });
    if !content.is_null() {
        answer["content"] = content;
    }
    answer
}

pub(crate) fn cache_control(values: &[&str]) -> ResponseHeader {
    ("Cache-Control", header("Caching rule of the response.", json!({ "type": "string", "enum": values })))
}

/// The response, which shared caches may store with `cdn.max_age`.
pub(crate) fn shareable(mut response: Value) -> Value {
    let stored = "public, max-age=0, s-maxage=3600, stale-while-revalidate=60, stale-if-error=86400";
    response["headers"]["Cache-Control"]["schema"] =
        json!({ "type": "string", "examples": ["no-cache", "no-store", stored] });
    // A stored response would have the id of another request.
    if let Some(id) = response["headers"][headers::X_REQUEST_ID].as_object_mut() {
        id.remove("required");
    }
    response
}

/// When a response has the status 415.
pub(crate) const UNSUPPORTED_BODY: &str = "The body is not JSON, or it is compressed.";

/// `Vary` with this value.
pub(crate) fn vary(on: &str) -> ResponseHeader {
    (
        "Vary",
        header("Request headers that the response depends on.", json!({ "type": "string", "const": on })),
    )
}

/// `ETag` of a body that clients may validate.
pub(crate) fn entity_tag(description: &str) -> ResponseHeader {
    let schema = json!({ "type": "string", "pattern": "^\"[A-Za-z0-9_-]+\"$" });
    ("ETag", optional_header(description, schema))
}

/// `Content-Encoding` of a compressed body.
pub(crate) fn content_encoding(description: &str) -> ResponseHeader {
    let schema = json!({ "type": "string", "enum": ["zstd", "br", "gzip"] });
    ("Content-Encoding", optional_header(description, schema))
}

/// `Retry-After` in seconds.
pub(crate) fn retry_after() -> ResponseHeader {
    ("Retry-After", header("Seconds until a retry is admitted.", seconds(86_400)))
}

/// `Retry-After` in seconds, for a failure that may pass.
pub(crate) fn retry_after_failure() -> ResponseHeader {
    let what = "Seconds until a retry may succeed, if there is no transcript and the time is known.";
    ("Retry-After", optional_header(what, seconds(40)))
}

/// Schema of a time to wait, with this example.
pub(crate) fn seconds(example: u32) -> Value {
    json!({ "type": "integer", "minimum": 1, "examples": [example] })
}

/// `WWW-Authenticate` of the bearer scheme.
pub(crate) fn www_authenticate() -> ResponseHeader {
    let schema =
        json!({ "type": "string", "pattern": "^Bearer ", "examples": ["Bearer realm=\"verbatim\""] });
    ("WWW-Authenticate", header("How to authenticate.", schema))
}

/// Error as problem details.
pub(crate) fn refusal(
    status: (u16, &str),
    description: &str,
    details: &[(&str, &str)],
    headers: impl IntoIterator<Item = ResponseHeader>,
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

/// Error of the v1 API (specification 7.2): `{error, code}`.
pub(crate) fn denial(
    status: u16,
    description: &str,
    messages: &[(&str, &str)],
    headers: impl IntoIterator<Item = ResponseHeader>,
) -> Value {
    let named: Map<String, Value> = messages
        .iter()
        .map(|(name, message)| {
            ((*name).to_owned(), json!({ "value": examples::value(ErrorBody::new(*message, status)) }))
        })
        .collect();
    let content = json_body::<ErrorBody>(Value::Object(named));
    answer(description, content, std::iter::once(cache_control(&["no-store"])).chain(headers))
}

/// Response 500, possible for every operation.
pub(crate) fn fault() -> Value {
    let detail = "The server could not process the request. Retry in a moment.";
    refusal((500, "Internal Server Error"), "Internal error.", &[("fault", detail)], [])
}

/// Header that is always sent.
pub(crate) fn header(description: &str, schema: Value) -> Value {
    json!({ "description": description, "required": true, "schema": schema })
}

/// Header that is sent only if it has a value.
pub(crate) fn optional_header(description: &str, schema: Value) -> Value {
    json!({ "description": description, "required": false, "schema": schema })
}
