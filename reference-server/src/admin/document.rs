//! `OpenAPI` document of the admin API.

use http::Method;
use schemars::{SchemaGenerator, generate::Contract};
use serde_json::{Map, Value, json};
use transcript_core::{page::PAGE_LIMIT, wire::v1::ErrorBody};

use super::{
    request::{CURSOR_MAX, PAGE_SIZE},
    table::{AdminEndpoint, ENDPOINTS},
};
use crate::routes::document::{UNSUPPORTED_BODY, schema_generator, with_common_fields};

/// What the first part of a path after `/admin/` names.
const TAGS: [(&str, &str); 7] = [
    ("accounts", "Accounts of the v1 API, their keys and credits."),
    ("audit-log", "What operators did."),
    ("document", "The description of the admin API."),
    ("jobs", "Jobs of all accounts."),
    ("keys", "Keys of the lookup API."),
    ("ledger-audits", "Checks of the ledger."),
    ("withdrawals", "Videos that are taken down."),
];

fn tag(endpoint: &AdminEndpoint) -> &'static str {
    match endpoint.path.split('/').nth(2) {
        Some("openapi.json") => "document",
        name => name.unwrap_or_default(),
    }
}

/// Whether the object of this reference is not valid without fields.
fn has_required_fields(reference: &Value, generator: &SchemaGenerator) -> bool {
    let name = reference["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    let schema = generator.definitions().get(name);
    schema.is_some_and(|schema| schema.get("required").is_some() || schema.get("minProperties").is_some())
}

/// The document.
pub(super) fn document() -> Value {
    let mut requests = schema_generator(Contract::Deserialize);
    let mut responses = schema_generator(Contract::Serialize);
    let error = responses.subschema_for::<ErrorBody>().to_value();
    let mut paths = json!({});
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
            "tags": [tag(endpoint)],
            "summary": endpoint.summary,
            "description": endpoint.description,
            "security": [{ "token": [] }],
            "parameters": parameters(endpoint),
            "responses": answers,
        });
        if let Some(request) = endpoint.request {
            let schema = request(&mut requests).to_value();
            // An absent body is `{}`.
            operation["requestBody"] = json!({
                "required": has_required_fields(&schema, &requests),
                "content": { "application/json": { "schema": schema } }
            });
        }
        paths[endpoint.path][endpoint.method.as_str().to_ascii_lowercase()] = operation;
    }
    let mut schemas = requests.take_definitions(true);
    schemas.append(&mut responses.take_definitions(true));
    with_common_fields(json!({
        "info": {
            "title": "Verbatim: admin API",
            "description": "Operations of the operator, on the listener `admin.listen`. Each is recorded in the \
                            audit log under the name of the token.",
            "version": env!("CARGO_PKG_VERSION"),
            "contact": { "name": "Operator of this server" }
        },
        "servers": [{ "url": "/", "description": "The listener `admin.listen`." }],
        "tags": TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
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
    }))
}

fn content(description: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

/// The refusals that an endpoint may answer with.
fn refusals(endpoint: &AdminEndpoint, error: &Value) -> Map<String, Value> {
    let all = [
        (400, "A parameter or a field is wrong.", endpoint.is_list || endpoint.request.is_some()),
        (401, "The token is missing, unknown or revoked.", true),
        (404, "There is no such key, account, grant or job.", endpoint.path.contains('{')),
        (409, "It contradicts what is stored.", endpoint.method != Method::GET),
        (413, "The body is larger than 16 KiB.", endpoint.request.is_some()),
        (415, UNSUPPORTED_BODY, endpoint.request.is_some()),
        (500, "Internal error.", true),
        (503, "The storage cannot be reached.", true),
    ];
    let possible = all.into_iter().filter(|(_, _, is_possible)| *is_possible);
    possible.map(|(status, what, _)| (status.to_string(), content(what, error.clone()))).collect()
}

fn parameters(endpoint: &AdminEndpoint) -> Value {
    let mut all = Vec::new();
    for (name, what) in [
        ("id", "Id of the key."),
        ("account", "Id, email address or name of the account."),
        ("grant", "Id of the grant."),
        ("job", "Id of the job."),
    ] {
        if endpoint.path.contains(&format!("{{{name}}}")) {
            all.push(json!({
                "name": name, "in": "path", "required": true, "description": what,
                "schema": { "type": "string", "minLength": 1 }
            }));
        }
    }
    if endpoint.is_list {
        all.push(json!({
            "name": "after", "in": "query", "description": "`next` of the previous page.",
            "schema": { "type": "string", "minLength": 1, "maxLength": CURSOR_MAX }
        }));
        all.push(json!({
            "name": "limit", "in": "query", "description": "Number of items.",
            "schema": { "type": "integer", "minimum": 1, "maximum": PAGE_LIMIT, "default": PAGE_SIZE }
        }));
    }
    Value::Array(all)
}
