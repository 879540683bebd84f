//! Samples for Rust, with reqwest on tokio.

use super::{SampleBody, SampleParameter, SampleRequest};

/// What the program needs besides its code.
const DEPENDENCIES: &str = "\
// Dependencies: tokio = { version = \"1\", features = [\"full\"] }, serde_json = \"1\" and
// reqwest = { version = \"0.13\", features = [\"form\", \"json\", \"query\"] }
";

/// Renders a call with reqwest, as a whole program.
pub(super) fn source(request: &SampleRequest<'_>) -> String {
    let call = request.call;
    let mut calls = vec![format!(".{}({})", request.method.to_lowercase(), address(request))];
    if !call.query.is_empty() {
        calls.push(format!(".query(&[{}])", pairs(call.query)));
    }
    if let Some(key) = call.key {
        calls.push(format!(".bearer_auth(std::env::var(\"{key}\")?)"));
    }
    calls.extend(
        call.headers.iter().map(|(name, value)| format!(".header(\"{name}\", {})", expression(*value))),
    );
    match call.body {
        SampleBody::None => {}
        SampleBody::Json(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("\"{name}\": {}", expression(*value))).collect();
            calls.push(format!(".json(&serde_json::json!({{ {} }}))", fields.join(", ")));
        }
        SampleBody::Form(fields) => calls.push(format!(".form(&[{}])", pairs(fields))),
        SampleBody::Raw(variable) => calls.push(format!(".body(std::env::var(\"{variable}\")?)")),
    }
    calls.extend([".send()", ".await?", ".error_for_status()?"].map(str::to_owned));
    let print = match request.method.as_str() {
        "HEAD" => "println!(\"{} {:?}\", response.status(), response.headers());",
        _ => "println!(\"{}\", response.text().await?);",
    };
    format!(
        "{DEPENDENCIES}#[tokio::main]\nasync fn main() -> Result<(), Box<dyn std::error::Error>> {{\n    \
         let response = reqwest::Client::new()\n        {};\n    {print}\n    Ok(())\n}}\n",
        calls.join("\n        ")
    )
}

/// The address: a literal, or formatted from environment variables.
fn address(request: &SampleRequest<'_>) -> String {
    let address = request.address(|value| match value {
        SampleParameter::Text(text) => text.to_owned(),
        SampleParameter::Variable(_) => "{}".to_owned(),
        SampleParameter::List(texts) => texts.join(","),
    });
    let variables: Vec<String> = request
        .call
        .path
        .iter()
        .filter(|(_, value)| matches!(value, SampleParameter::Variable(_)))
        .map(|(_, value)| expression(*value))
        .collect();
    match variables.as_slice() {
        [] => format!("\"{address}\""),
        variables => format!("format!(\"{address}\", {})", variables.join(", ")),
    }
}

fn expression(value: SampleParameter) -> String {
    match value {
        SampleParameter::Text(text) => format!("\"{text}\""),
        SampleParameter::Variable(name) => format!("std::env::var(\"{name}\")?"),
        SampleParameter::List(texts) => format!("{texts:?}"),
    }
}

/// Names and values, all of one type.
fn pairs(fields: &[(&str, SampleParameter)]) -> String {
    let has_variable = fields.iter().any(|(_, value)| matches!(value, SampleParameter::Variable(_)));
    let value = |value: SampleParameter| match (has_variable, value) {
        (true, SampleParameter::Text(text)) => format!("\"{text}\".to_owned()"),
        (_, value) => expression(value),
    };
    let fields: Vec<String> =
        fields.iter().map(|(name, field)| format!("(\"{name}\", {})", value(*field))).collect();
    fields.join(", ")
}
