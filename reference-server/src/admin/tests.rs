//! Tests of the document of the admin API. The operations are tested with the built server.

use super::{document::document, table::ENDPOINTS};
use crate::operations::QUOTA_PATTERN;

/// With `UPDATE=1` this writes the document.
#[test]
fn admin_document_matches_stored_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/admin-openapi.json");
    let text = format!("{:#}\n", document());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap();
    assert!(stored == text, "{path} differs: run this test with UPDATE=1");
}

#[test]
fn admin_document_references_exist() {
    fn references(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(|name| name.as_str()).map(ToOwned::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > ENDPOINTS.len());
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

/// Tools that send what the document allows get no 400.
#[test]
fn admin_document_describes_operations_and_bounds_of_requests() {
    let document = document();
    let tags: Vec<_> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for endpoint in ENDPOINTS {
        let operation = &document["paths"][endpoint.path][endpoint.method.as_str().to_ascii_lowercase()];
        assert!(tags.contains(&&operation["tags"][0]), "{}", endpoint.id);
        assert!(operation["description"].as_str().is_some_and(|text| !text.is_empty()), "{}", endpoint.id);
        for parameter in operation["parameters"].as_array().unwrap() {
            let schema = &parameter["schema"];
            assert!(schema["minLength"] == 1 || schema["minimum"] == 1, "{} {parameter}", endpoint.id);
        }
    }
    let schemas = &document["components"]["schemas"];
    for (field, bound, value) in [
        ("NewKey/properties/quota", "pattern", QUOTA_PATTERN.into()),
        ("NewKey/properties/expires", "minLength", 1.into()),
        ("NewKey/properties/label", "maxLength", 100.into()),
        ("KeyChange/properties/quota", "pattern", QUOTA_PATTERN.into()),
        ("KeyChange", "minProperties", serde_json::Value::from(1)),
        ("NewGrant/properties/credits", "minimum", 1.into()),
        ("WithdrawalRequest/properties/link", "minLength", 1.into()),
    ] {
        assert_eq!(schemas.pointer(&format!("/{field}")).unwrap()[bound], value, "{field}");
    }
    let is_required = |path: &str, method: &str| &document["paths"][path][method]["requestBody"]["required"];
    assert_eq!(is_required("/admin/keys", "post"), false);
    assert_eq!(is_required("/admin/keys/{id}", "patch"), true);
    assert_eq!(is_required("/admin/withdrawals", "post"), true);
}

#[test]
fn admin_endpoints_of_one_path_are_neighbours() {
    let groups: Vec<_> = ENDPOINTS.chunk_by(|one, next| one.path == next.path).collect();
    let paths: std::collections::HashSet<_> = groups.iter().map(|group| group[0].path).collect();
    assert_eq!(paths.len(), groups.len());
    let ids: std::collections::HashSet<_> = ENDPOINTS.iter().map(|endpoint| endpoint.id).collect();
    assert_eq!(ids.len(), ENDPOINTS.len());
}
