//! Schemas as tables: a row for each field, those of a field's own fields below it.

use maud::{Markup, html};
use serde_json::Value;

use super::{list, object, string, text::inline};

/// How deep fields of fields are shown. No schema of ours is as deep.
const DEPTH_MAX: usize = 5;

/// A table of the fields of a schema; of one without fields, its type.
pub(super) fn table(document: &Value, schema: &Value) -> Markup {
    let schema = resolved(document, schema);
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
struct Row<'a> {
    name: String,
    is_required: bool,
    kind: String,
    meaning: String,
    schema: &'a Value,
}

fn rows<'a>(document: &'a Value, schema: &'a Value, above: &str, depth: usize) -> Vec<Row<'a>> {
    let mut all = Vec::new();
    if depth >= DEPTH_MAX {
        return all;
    }
    let required = list(&schema["required"]);
    for (name, field) in object(&schema["properties"]) {
        let inner = resolved(document, field);
        let meaning =
            field["description"].as_str().or_else(|| inner["description"].as_str()).unwrap_or_default();
        let full = format!("{above}{name}");
        all.push(Row {
            is_required: required.iter().any(|known| known == name.as_str()),
            kind: kind(document, field),
            meaning: meaning.to_owned(),
            schema: inner,
            name: full.clone(),
        });
        let items = resolved(document, &inner["items"]);
        let mark = if items["properties"].is_object() { "[]." } else { "." };
        let of = if items["properties"].is_object() { items } else { inner };
        all.extend(rows(document, of, &format!("{full}{mark}"), depth + 1));
    }
    all
}

/// What a schema is called: its type, those of its items, or what it is one of.
pub(super) fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolved(document, schema);
    let options = list(&schema["anyOf"]).iter().chain(list(&schema["oneOf"]));
    let options: Vec<String> = options.map(|option| kind(document, option)).collect();
    if !options.is_empty() {
        return options.join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => {
            format!("list of {}", plural(&kind(document, &schema["items"])))
        }
        Value::String(name) => match schema["format"].as_str() {
            // How many bits a number has is our business.
            Some(format) if name == "string" => format!("{name} ({format})"),
            _ => name.clone(),
        },
        Value::Array(names) => names.iter().map(string).collect::<Vec<_>>().join(" or "),
        _ if !schema["const"].is_null() => "constant".to_owned(),
        _ => "any".to_owned(),
    }
}

fn plural(name: &str) -> String {
    match name {
        "any" => "anything".to_owned(),
        name => format!("{name}s"),
    }
}

/// What a value may be, where the schema bounds it.
pub(super) fn limits(schema: &Value) -> Markup {
    let bound = |name: &str| (!schema[name].is_null()).then(|| shown(&schema[name]));
    let bounds = [
        ("at least", bound("minimum"), ""),
        ("at most", bound("maximum"), ""),
        ("at least", bound("minLength"), " characters"),
        ("at most", bound("maxLength"), " characters"),
        ("at most", bound("maxItems"), " items"),
        ("by default", bound("default"), ""),
    ];
    let allowed = list(&schema["enum"]);
    html! {
        @if !allowed.is_empty() {
            p.limits {
                "One of: "
                @for (place, value) in allowed.iter().enumerate() {
                    @if place > 0 { ", " }
                    code { (shown(value)) }
                }
            }
        }
        @if !schema["const"].is_null() { p.limits { "Always " code { (shown(&schema["const"])) } } }
        @for (word, bound, unit) in &bounds {
            @if let Some(bound) = bound { p.limits { (word) " " (bound) (unit) } }
        }
        @if let Some(pattern) = schema["pattern"].as_str() { p.limits { "Pattern: " code { (pattern) } } }
    }
}

/// A value on one line.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The schema itself, where this is a reference to it.
pub(super) fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let Some(reference) = schema["$ref"].as_str() else { return schema };
    document.pointer(reference.trim_start_matches('#')).unwrap_or(schema)
}
