//! Samples for Python's standard library.

use super::{SampleBody, SampleParameter, SampleRequest};

/// Renders a call with urllib.
pub(super) fn source(request: &SampleRequest<'_>) -> String {
    let call = request.call;
    let is_json = call.is_json;
    let sends_json = matches!(call.body, SampleBody::Json(_));
    let sends_form = matches!(call.body, SampleBody::Form(_));
    let variables = call.key.is_some() || source_uses_variables(request);
    let mut text = String::new();
    for (module, is_needed) in [("json", is_json || sends_json), ("os", variables)] {
        if is_needed {
            text.push_str(&format!("import {module}\n"));
        }
    }
    if !call.query.is_empty() || sends_form {
        text.push_str("import urllib.parse\n");
    }
    text.push_str("import urllib.request\n\n");
    let mut address = request.address(|value| match value {
        SampleParameter::Text(text) => text.to_owned(),
        SampleParameter::Variable(name) => format!("{{os.environ['{name}']}}"),
        SampleParameter::List(texts) => texts.join(","),
    });
    if !call.query.is_empty() {
        text.push_str(&format!("query = urllib.parse.urlencode({})\n", dictionary(call.query)));
        address.push_str("?{query}");
    }
    let mark = if address.contains('{') { "f" } else { "" };
    let mut arguments = vec![format!("{mark}\"{address}\"")];
    match call.body {
        SampleBody::None if request.method == "POST" => arguments.push("data=b\"\"".to_owned()),
        SampleBody::None => {}
        SampleBody::Json(fields) => {
            arguments.push(format!("data=json.dumps({}).encode()", dictionary(fields)))
        }
        SampleBody::Form(fields) => {
            arguments.push(format!("data=urllib.parse.urlencode({}).encode()", dictionary(fields)));
        }
        SampleBody::Raw(variable) => arguments.push(format!("data=os.environ[\"{variable}\"].encode()")),
    }
    let mut headers = Vec::new();
    if let Some(key) = call.key {
        headers.push(format!("\"Authorization\": f\"Bearer {{os.environ['{key}']}}\""));
    }
    headers.extend(call.headers.iter().map(|(name, value)| format!("\"{name}\": {}", expression(*value))));
    if sends_json {
        headers.push("\"Content-Type\": \"application/json\"".to_owned());
    }
    if !headers.is_empty() {
        arguments.push(format!("headers={{{}}}", headers.join(", ")));
    }
    if let method @ ("HEAD" | "DELETE") = request.method.as_str() {
        arguments.push(format!("method=\"{method}\""));
    }
    text.push_str(&format!("request = urllib.request.Request(\n    {},\n)\n", arguments.join(",\n    ")));
    text.push_str("with urllib.request.urlopen(request) as response:\n");
    text.push_str(match (is_json, request.method.as_str()) {
        (true, _) => "    print(json.dumps(json.load(response), indent=2))\n",
        (false, "HEAD") => "    print(response.status, response.headers)\n",
        (false, _) => "    print(response.read().decode())\n",
    });
    text
}

fn source_uses_variables(request: &SampleRequest<'_>) -> bool {
    let call = request.call;
    let body = match call.body {
        SampleBody::Json(fields) | SampleBody::Form(fields) => fields,
        SampleBody::Raw(_) => return true,
        SampleBody::None => &[],
    };
    let mut all = call.path.iter().chain(call.query).chain(call.headers).chain(body);
    all.any(|(_, value)| matches!(value, SampleParameter::Variable(_)))
}

fn expression(value: SampleParameter) -> String {
    match value {
        SampleParameter::Text(text) => format!("\"{text}\""),
        SampleParameter::Variable(name) => format!("os.environ[\"{name}\"]"),
        SampleParameter::List(texts) => format!("{texts:?}"),
    }
}

fn dictionary(fields: &[(&str, SampleParameter)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\": {}", expression(*value))).collect();
    format!("{{{}}}", fields.join(", "))
}
