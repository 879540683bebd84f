//! `OpenAPI` document of the admin API.

use schemars::{
    generate::{Contract, SchemaSettings},
    transform::RecursiveTransform,
};
use serde_json::{Map, Value, json};
use transcript_core::wire::v1::ErrorBody;

use super::table::{AdminEndpoint, ENDPOINTS};
use crate::routes::document::SCHEMAS;

/// The document.
pub(super) fn document() -> Value {
    let mut requests = generator(Contract::Deserialize);
    let mut responses = generator(Contract::Serialize);
    let error = responses.subschema_for::<ErrorBody>().to_value();
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let (status, response) = endpoint.response;
        let mut answers = refusals(endpoint, &error);
        answers.insert(
            status.to_string(),
            match status {
                204 => json!({ "description": "Done." }),
                _ => content("The result.", response(&mut responses).to_value()),
            },
        );
        let mut operation = json!({
            "operationId": endpoint.id,
            "summary": endpoint.summary,
            "security": [{ "token": [] }],
            "parameters": parameters(endpoint),
            "responses": answers,
        });
        if let Some(request) = endpoint.request {
            let schema = request(&mut requests).to_value();
            operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
        }
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation;
    }
    let mut schemas = requests.take_definitions(true);
    schemas.append(&mut responses.take_definitions(true));
    json!({
        "openapi": "3.1.1",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Verbatim: admin API",
            "description": "Operations of the operator, on the listener `admin.listen`. Each is recorded in the \
                            audit log under the name of the token.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" }
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An admin token (`vbo_…`), which `verbatim admin-tokens create` prints."
                }
            }
        }
    })
}

fn generator(contract: Contract) -> schemars::SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS.into();
        settings.contract = contract;
        settings.transforms = vec![Box::new(RecursiveTransform(|schema: &mut schemars::Schema| {
            schema.remove("default");
        }))];
    });
    settings.into_generator()
}

fn content(description: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

/// The refusals that an endpoint may answer with.
fn refusals(endpoint: &AdminEndpoint, error: &Value) -> Map<String, Value> {
    let all = [
        (400, "A parameter or a field is wrong.", endpoint.is_list || endpoint.request.is_some()),
        (401, "The token is missing, unknown or revoked.", true),
        (404, "There is no such key, account or job.", endpoint.path.contains('{')),
        (409, "It contradicts what is stored.", endpoint.method != "get"),
        (413, "The body is larger than 16 KiB.", endpoint.request.is_some()),
        (415, "The body is not JSON.", endpoint.request.is_some()),
        (500, "Internal error.", true),
        (503, "The storage cannot be reached.", true),
    ];
    let possible = all.into_iter().filter(|(_, _, is_possible)| *is_possible);
    possible.map(|(status, what, _)| (status.to_string(), content(what, error.clone()))).collect()
}

fn parameters(endpoint: &AdminEndpoint) -> Value {
    let text = json!({ "type": "string" });
    let mut all = Vec::new();
    for (name, what) in [
        ("id", "Id of the key."),
        ("account", "Id, email address or name of the account."),
        ("job", "Id of the job."),
    ] {
        if endpoint.path.contains(&format!("{{{name}}}")) {
            all.push(
                json!({ "name": name, "in": "path", "required": true, "description": what, "schema": text }),
            );
        }
    }
    if endpoint.is_list {
        all.push(json!({
            "name": "after", "in": "query", "description": "`next` of the previous page.", "schema": text
        }));
        all.push(json!({
            "name": "limit", "in": "query", "description": "Number of items.",
            "schema": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }
        }));
    }
    Value::Array(all)
}
