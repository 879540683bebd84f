//! Schemas as tables: one row per field, nested fields below their parent.

use maud::{Markup, html};
use serde_json::Value;

use super::{list, object, string, text::inline, value_text};

/// Maximum depth of nested fields; no schema of the API is as deep.
const DEPTH_MAX: usize = 5;

/// Renders the fields of a schema as a table, or its type if it has no fields.
pub(super) fn table(document: &Value, schema: &Value) -> Markup {
    let schema = resolve(document, schema);
    let rows = rows(document, schema, "", 0);
    html! {
        @if rows.is_empty() {
            p { (kind(document, schema)) @if let Some(what) = schema["description"].as_str() { ": " (inline(what)) } }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Fields" {
                table {
                    thead { tr { th scope="col" { "Field" } th scope="col" { "Type" } th scope="col" { "Meaning" } } }
                    tbody {
                        @for row in &rows {
                            tr {
                                th scope="row" {
                                    code { (row.name) }
                                    @if row.is_required { " " small.required { "required" } }
                                }
                                td { (row.kind) }
                                td { (inline(&row.meaning)) (limits(row.schema)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One field.
struct SchemaRow<'a> {
    name: String,
    is_required: bool,
    kind: String,
    meaning: String,
    schema: &'a Value,
}

fn rows<'a>(document: &'a Value, schema: &'a Value, above: &str, depth: usize) -> Vec<SchemaRow<'a>> {
    let mut all = Vec::new();
    if depth >= DEPTH_MAX {
        return all;
    }
    let required = |name: &str| list(&schema["required"]).iter().any(|known| known == name);
    // Required fields come first.
    let mut fields: Vec<(&String, &Value)> = object(&schema["properties"]).collect();
    fields.sort_by_key(|(name, _)| !required(name));
    for (name, field) in fields {
        let inner = resolve(document, field);
        let meaning =
            field["description"].as_str().or_else(|| inner["description"].as_str()).unwrap_or_default();
        let full = format!("{above}{name}");
        all.push(SchemaRow {
            is_required: required(name),
            kind: kind(document, field),
            meaning: meaning.to_owned(),
            schema: inner,
            name: full.clone(),
        });
        let items = resolve(document, &inner["items"]);
        let mark = if items["properties"].is_object() { "[]." } else { "." };
        let of = if items["properties"].is_object() { items } else { inner };
        all.extend(rows(document, of, &format!("{full}{mark}"), depth + 1));
    }
    all
}

/// Returns the type of a schema, with the type of its items or its alternatives.
pub(super) fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    let mut options: Vec<String> = choices(schema).map(|option| kind(document, option)).collect();
    options.dedup();
    if !options.is_empty() {
        return options.join(" or ");
    }
    let named = |name: &str| match (name, schema["format"].as_str()) {
        ("array", _) => format!("list of {}", plural(&kind(document, &schema["items"]))),
        // The bit width of a number is omitted.
        ("string", Some(format)) => format!("string ({format})"),
        (name, _) => name.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => named(name),
        Value::Array(names) => names.iter().map(|name| named(string(name))).collect::<Vec<_>>().join(" or "),
        _ if !schema["const"].is_null() => "constant".to_owned(),
        _ => "any".to_owned(),
    }
}

/// Returns the alternatives of a schema.
fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    list(&schema["anyOf"]).iter().chain(list(&schema["oneOf"]))
}

fn plural(name: &str) -> String {
    match name {
        "any" => "anything".to_owned(),
        name => format!("{name}s"),
    }
}

/// Renders the bounds of a schema as a paragraph, if any.
pub(super) fn limits(schema: &Value) -> Markup {
    let bounds = bounds(schema);
    let single = choices(schema).map(|choice| &choice["const"]).filter(|value| !value.is_null());
    let allowed: Vec<&Value> = list(&schema["enum"]).iter().chain(single).collect();
    html! {
        @if !bounds.is_empty() { p.limits { (bounds.join("; ")) } }
        @if !allowed.is_empty() {
            p.limits {
                "One of "
                @for (index, value) in allowed.iter().enumerate() {
                    @if index > 0 { ", " }
                    code { (value_text(value)) }
                }
            }
        }
        @if !schema["const"].is_null() { p.limits { "Always " code { (value_text(&schema["const"])) } } }
        @if let Some(pattern) = schema["pattern"].as_str() { p.limits { "Pattern " code { (pattern) } } }
    }
}

/// Describes the bounds of a schema.
fn bounds(schema: &Value) -> Vec<String> {
    let range = |least: &str, most: &str, unit: &str| match (
        schema.get(least).map(value_text),
        schema.get(most).map(value_text),
    ) {
        (Some(least), Some(most)) if least == most => Some(format!("exactly {least}{unit}")),
        (Some(least), Some(most)) => Some(format!("from {least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    };
    let default = schema.get("default").map(|value| format!("by default {}", value_text(value)));
    let ranges = [
        range("minimum", "maximum", ""),
        range("minLength", "maxLength", " characters").filter(|text| text != "at least 1 characters"),
        range("minItems", "maxItems", " items"),
    ];
    ranges.into_iter().flatten().chain(default).collect()
}

/// Resolves a reference to a schema.
pub(super) fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let Some(reference) = schema["$ref"].as_str() else { return schema };
    document.pointer(reference.trim_start_matches('#')).unwrap_or(schema)
}
