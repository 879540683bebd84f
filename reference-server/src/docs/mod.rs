//! The documentation for developers, made of the `OpenAPI` document that the server gives to programs: `/docs`, a page
//! for each operation, and `/llms.txt`.
//!
//! Nothing is said here that the document does not say, so that the two cannot differ. The pages are whole without
//! scripts, and everything that they show comes from this server.

mod llms;
mod operation;
mod overview;
mod schema;
mod shell;
#[cfg(test)]
mod tests;
mod text;

use serde_json::{Map, Value};

pub(crate) use llms::llms_txt;
pub(crate) use operation::operation;
pub(crate) use overview::overview;
pub(crate) use shell::content_security_policy;

/// An operation of the document.
#[derive(Clone, Copy, Debug)]
struct Operation<'a> {
    id: &'a str,
    /// In capitals.
    method: &'static str,
    path: &'a str,
    tag: &'a str,
    summary: &'a str,
    value: &'a Value,
}

/// The methods that an operation may have, as the document and as HTTP write them.
const METHODS: [(&str, &str); 5] =
    [("get", "GET"), ("head", "HEAD"), ("post", "POST"), ("put", "PUT"), ("delete", "DELETE")];

/// The operations of a document: those of its first tag first, then in the order of their paths.
fn operations(document: &Value) -> Vec<Operation<'_>> {
    let tags = names(document);
    let mut found: Vec<Operation<'_>> = Vec::new();
    for (path, item) in object(&document["paths"]) {
        for (name, method) in METHODS {
            let value = &item[name];
            let Some(id) = value["operationId"].as_str() else { continue };
            let (tag, summary) = (string(&value["tags"][0]), string(&value["summary"]));
            found.push(Operation { id, method, path, tag, summary, value });
        }
    }
    found.sort_by_key(|operation| tags.iter().position(|tag| *tag == operation.tag));
    found
}

/// The names of the document's tags, in its order.
fn names(document: &Value) -> Vec<&str> {
    list(&document["tags"]).iter().map(|tag| string(&tag["name"])).collect()
}

/// The text of a value; empty where it is none.
fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The items of a value; none where it is no list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The fields of a value; none where it is no object.
fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
