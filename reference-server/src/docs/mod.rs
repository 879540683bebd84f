//! Documentation for developers, rendered from the server's `OpenAPI` document.
//!
//! It consists of `/docs`, a page for each operation, guides, and `/llms.txt`.
//!
//! The reference comes from the document, so that the two cannot differ; the guides take numbers, addresses, calls and
//! responses from the server. The pages need no scripts and load nothing from other servers.

mod console;
mod guides;
mod llms;
mod markdown;
mod operation;
mod overview;
mod samples;
mod schema;
mod shell;
#[cfg(test)]
mod tests;
mod text;

use serde_json::{Map, Value};

pub(crate) use guides::guide;
pub(crate) use llms::llms_txt;
pub(crate) use operation::operation;
pub(crate) use overview::overview;
pub(crate) use shell::POLICY;

/// Operation of the document.
#[derive(Clone, Copy, Debug)]
struct DocsOperation<'a> {
    id: &'a str,
    /// In capitals.
    method: &'static str,
    path: &'a str,
    tag: &'a str,
    summary: &'a str,
    value: &'a Value,
}

impl DocsOperation<'_> {
    /// Whether only the pages, payment providers and tools of the service call it.
    fn is_internal(&self) -> bool {
        self.value["x-internal"] == true
    }
}

/// Methods of operations, in the spelling of the document and of HTTP.
const METHODS: [(&str, &str); 5] =
    [("get", "GET"), ("head", "HEAD"), ("post", "POST"), ("put", "PUT"), ("delete", "DELETE")];

/// Returns the operations of a document, by the order of tags, then by path.
fn operations(document: &Value) -> Vec<DocsOperation<'_>> {
    let tags: Vec<&str> = tags(document).iter().map(|tag| string(&tag["name"])).collect();
    let mut found: Vec<DocsOperation<'_>> = Vec::new();
    for (path, item) in object(&document["paths"]) {
        for (name, method) in METHODS {
            let value = &item[name];
            let Some(id) = value["operationId"].as_str() else { continue };
            let (tag, summary) = (string(&value["tags"][0]), string(&value["summary"]));
            found.push(DocsOperation { id, method, path, tag, summary, value });
        }
    }
    found.sort_by_key(|operation| tags.iter().position(|tag| *tag == operation.tag));
    found
}

/// Returns the operations that programs call.
fn public_operations(document: &Value) -> Vec<DocsOperation<'_>> {
    let mut all = operations(document);
    all.retain(|operation| !operation.is_internal());
    all
}

/// Paths of the pages of all operations and guides, relative to the root.
pub(crate) fn page_paths(document: &Value) -> impl Iterator<Item = String> {
    let operations =
        public_operations(document).into_iter().map(|operation| format!("docs/{}", operation.id));
    operations.chain(guides::all().map(|guide| format!("docs/guides/{}", guide.name)))
}

/// Returns the tags in reading order: lookups first, then as in the document, which is alphabetical.
fn tags(document: &Value) -> Vec<&Value> {
    let mut tags: Vec<&Value> = list(&document["tags"]).iter().collect();
    tags.sort_by_key(|tag| tag["name"] != "transcripts");
    tags
}

/// Returns the text of a value, or an empty text.
fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Formats a value on one line.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats the value of an example: a text as it is, anything else as indented JSON.
fn example_text(example: &Value) -> String {
    match &example["value"] {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// Returns the items of a value, empty if it is not a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the fields of a value, empty if it is not an object.
fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
