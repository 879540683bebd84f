//! Samples for the shell.

use super::{SampleBody, SampleParameter, SampleRequest};

/// Renders a call with curl.
pub(super) fn source(request: &SampleRequest<'_>) -> String {
    let call = request.call;
    let mut lines = vec![format!("curl --fail-with-body {}", quoted(&request.address(put_in)))];
    match request.method.as_str() {
        "GET" if !call.query.is_empty() => lines.push("--get".to_owned()),
        "HEAD" => {
            lines.push("--head".to_owned());
            lines.extend((!call.query.is_empty()).then(|| "--get".to_owned()));
        }
        "DELETE" => lines.push("--request DELETE".to_owned()),
        "POST" if matches!(call.body, SampleBody::None) => lines.push("--request POST".to_owned()),
        _ => {}
    }
    let pair = |name: &str, value: SampleParameter| quoted(&format!("{name}={}", put_in(value)));
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
        SampleBody::None => {}
        SampleBody::Json(fields) => {
            lines.push("--header 'Content-Type: application/json'".to_owned());
            lines.push(format!("--data {}", json(fields)));
        }
        SampleBody::Form(fields) => {
            lines.extend(
                fields.iter().map(|(name, value)| format!("--data-urlencode {}", pair(name, *value))),
            );
        }
        SampleBody::Raw(variable) => lines.push(format!("--data-binary \"${variable}\"")),
    }
    lines.join(" \\\n  ")
}

/// Value inside a shell word. No value contains a quotation mark.
fn put_in(value: SampleParameter) -> String {
    match value {
        SampleParameter::Text(text) => text.to_owned(),
        SampleParameter::Variable(name) => format!("${name}"),
        SampleParameter::List(texts) => texts.join(", "),
    }
}

/// Quoted shell word: in double quotes if it contains a variable.
fn quoted(text: &str) -> String {
    if text.contains('$') { format!("\"{text}\"") } else { format!("'{text}'") }
}

fn json(fields: &[(&str, SampleParameter)]) -> String {
    let has_variable = fields.iter().any(|(_, value)| matches!(value, SampleParameter::Variable(_)));
    let mark = if has_variable { "\\\"" } else { "\"" };
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| match value {
            SampleParameter::List(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| format!("{mark}{text}{mark}")).collect();
                format!("{mark}{name}{mark}: [{}]", texts.join(", "))
            }
            value => format!("{mark}{name}{mark}: {mark}{}{mark}", put_in(*value)),
        })
        .collect();
    quoted(&format!("{{{}}}", fields.join(", ")))
}
