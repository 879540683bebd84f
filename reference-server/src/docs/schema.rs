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
    let required = |name: &str| list(&schema["required"]).iter().any(|known| known == name);
    // What always comes stands first.
    let mut fields: Vec<(&String, &Value)> = object(&schema["properties"]).collect();
    fields.sort_by_key(|(name, _)| !required(name));
    for (name, field) in fields {
        let inner = resolved(document, field);
        let meaning =
            field["description"].as_str().or_else(|| inner["description"].as_str()).unwrap_or_default();
        let full = format!("{above}{name}");
        all.push(Row {
            is_required: required(name),
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
    let mut options: Vec<String> = choices(schema).map(|option| kind(document, option)).collect();
    options.dedup();
    if !options.is_empty() {
        return options.join(" or ");
    }
    let named = |name: &str| match (name, schema["format"].as_str()) {
        ("array", _) => format!("list of {}", plural(&kind(document, &schema["items"]))),
        // How many bits a number has is our business.
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

/// The schemas that one may choose among.
fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    list(&schema["anyOf"]).iter().chain(list(&schema["oneOf"]))
}

fn plural(name: &str) -> String {
    match name {
        "any" => "anything".to_owned(),
        name => format!("{name}s"),
    }
}

/// What a value may be, where the schema bounds it: on a line of its own.
pub(super) fn limits(schema: &Value) -> Markup {
    let bounds = bounds(schema);
    let single = choices(schema).map(|choice| &choice["const"]).filter(|value| !value.is_null());
    let allowed: Vec<&Value> = list(&schema["enum"]).iter().chain(single).collect();
    html! {
        @if !bounds.is_empty() { p.limits { (bounds.join("; ")) } }
        @if !allowed.is_empty() {
            p.limits {
                "One of "
                @for (place, value) in allowed.iter().enumerate() {
                    @if place > 0 { ", " }
                    code { (shown(value)) }
                }
            }
        }
        @if !schema["const"].is_null() { p.limits { "Always " code { (shown(&schema["const"])) } } }
        @if let Some(pattern) = schema["pattern"].as_str() { p.limits { "Pattern " code { (pattern) } } }
    }
}

/// The bounds of a schema in words.
fn bounds(schema: &Value) -> Vec<String> {
    let range = |least: &str, most: &str, unit: &str| match (
        schema.get(least).map(shown),
        schema.get(most).map(shown),
    ) {
        (Some(least), Some(most)) if least == most => Some(format!("exactly {least}{unit}")),
        (Some(least), Some(most)) => Some(format!("from {least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    };
    let default = schema.get("default").map(|value| format!("by default {}", shown(value)));
    let ranges = [
        range("minimum", "maximum", ""),
        range("minLength", "maxLength", " characters").filter(|text| text != "at least 1 characters"),
        range("minItems", "maxItems", " items"),
    ];
    ranges.into_iter().flatten().chain(default).collect()
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
