//! A call for a shell.

use super::{Body, Given, Request};

/// The call with curl.
pub(super) fn source(request: &Request<'_>) -> String {
    let call = request.call;
    let mut lines = vec![format!("curl --fail-with-body {}", quoted(&request.address(put_in)))];
    match request.method.as_str() {
        "GET" if !call.query.is_empty() => lines.push("--get".to_owned()),
        "HEAD" => {
            lines.push("--head".to_owned());
            lines.extend((!call.query.is_empty()).then(|| "--get".to_owned()));
        }
        "POST" if matches!(call.body, Body::None) => lines.push("--request POST".to_owned()),
        _ => {}
    }
    let pair = |name: &str, value: Given| quoted(&format!("{name}={}", put_in(value)));
    for (name, value) in call.query {
        lines.push(format!("--data-urlencode {}", pair(name, *value)));
    }
    if let Some(key) = call.key {
        lines.push(format!("--header {}", quoted(&format!("Authorization: Bearer ${key}"))));
    }
    for (name, value) in call.headers {
        lines.push(format!("--header {}", quoted(&format!("{name}: {}", put_in(*value)))));
    }
    match call.body {
        Body::None => {}
        Body::Json(fields) => {
            lines.push("--header 'Content-Type: application/json'".to_owned());
            lines.push(format!("--data {}", json(fields)));
        }
        Body::Form(fields) => {
            lines.extend(
                fields.iter().map(|(name, value)| format!("--data-urlencode {}", pair(name, *value))),
            );
        }
        Body::Raw(variable) => lines.push(format!("--data-binary \"${variable}\"")),
    }
    lines.join(" \\\n  ")
}

/// A value inside of a shell's word: no value of ours has a quotation mark in it.
fn put_in(value: Given) -> String {
    match value {
        Given::Text(text) => text.to_owned(),
        Given::Variable(name) => format!("${name}"),
    }
}

/// A word of the shell: in double quotes where something is put in.
fn quoted(text: &str) -> String {
    if text.contains('$') { format!("\"{text}\"") } else { format!("'{text}'") }
}

fn json(fields: &[(&str, Given)]) -> String {
    let has_variable = fields.iter().any(|(_, value)| matches!(value, Given::Variable(_)));
    let mark = if has_variable { "\\\"" } else { "\"" };
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{mark}{name}{mark}: {mark}{}{mark}", put_in(*value)))
        .collect();
    quoted(&format!("{{{}}}", fields.join(", ")))
}
