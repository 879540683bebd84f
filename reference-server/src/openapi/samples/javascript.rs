//! Samples for the fetch API of browsers and Node.

use super::{SampleBody, SampleParameter, SampleRequest};

/// Renders a call with fetch.
pub(super) fn source(request: &SampleRequest<'_>) -> String {
    let call = request.call;
    let mut text = String::new();
    let mut address = request.address(|value| match value {
        SampleParameter::Text(text) => text.to_owned(),
        SampleParameter::Variable(name) => format!("${{process.env.{name}}}"),
        SampleParameter::List(texts) => texts.join(","),
    });
    if !call.query.is_empty() {
        text.push_str(&format!("const query = new URLSearchParams({});\n", object(call.query)));
        address.push_str("?${query}");
    }
    let mark = if address.contains("${") { '`' } else { '"' };
    let mut options = Vec::new();
    if !request.is_get() {
        options.push(format!("method: \"{}\"", request.method));
    }
    let mut headers = Vec::new();
    if let Some(key) = call.key {
        headers.push(format!("Authorization: `Bearer ${{process.env.{key}}}`"));
    }
    headers.extend(call.headers.iter().map(|(name, value)| format!("\"{name}\": {}", expression(*value))));
    if matches!(call.body, SampleBody::Json(_)) {
        headers.push("\"Content-Type\": \"application/json\"".to_owned());
    }
    if !headers.is_empty() {
        options.push(format!("headers: {{ {} }}", headers.join(", ")));
    }
    match call.body {
        SampleBody::None => {}
        SampleBody::Json(fields) => options.push(format!("body: JSON.stringify({})", object(fields))),
        SampleBody::Form(fields) => options.push(format!("body: new URLSearchParams({})", object(fields))),
        SampleBody::Raw(variable) => options.push(format!("body: process.env.{variable}")),
    }
    let options = match options.is_empty() {
        true => String::new(),
        false => format!(", {{\n  {},\n}}", options.join(",\n  ")),
    };
    text.push_str(&format!("const response = await fetch({mark}{address}{mark}{options});\n"));
    text.push_str("if (!response.ok) throw new Error(await response.text());\n");
    text.push_str(match (call.is_json, request.method.as_str()) {
        (true, _) => "console.log(await response.json());\n",
        (false, "HEAD") => "console.log(response.status, response.headers);\n",
        (false, _) => "console.log(await response.text());\n",
    });
    text
}

fn expression(value: SampleParameter) -> String {
    match value {
        SampleParameter::Text(text) => format!("\"{text}\""),
        SampleParameter::Variable(name) => format!("process.env.{name}"),
        SampleParameter::List(texts) => format!("{texts:?}"),
    }
}

fn object(fields: &[(&str, SampleParameter)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}: {}", expression(*value))).collect();
    format!("{{ {} }}", fields.join(", "))
}
