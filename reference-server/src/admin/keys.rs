//! Keys of the lookup API.

use axum::response::IntoResponse;
use http::{StatusCode, Uri};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use transcript_core::{
    directory::{FieldChange, KeyAccess, KeyAccessChange, RequestCounts},
    lookup::{CreateKeyRequest, KeyOrigin},
    wire::lookup::{CreateKeyResponse, KeyRequest},
};

use super::{
    AdminResult, failure,
    request::{PageBody, RequestFields, page, present},
};
use crate::{
    api::{PathName, V1ErrorResponse, json, path_name},
    operations::{KeyRow, Operations, QUOTA_PATTERN, parse_expiry, parse_quota, quota_text},
};

/// A new key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    /// Label of the key: one line.
    #[serde(default)]
    #[schemars(schema_with = "label")]
    label: Option<String>,
    /// Email address of the owner. Nothing is sent to it.
    #[serde(default)]
    #[schemars(schema_with = "email")]
    email: Option<String>,
    /// Maximum number of requests, such as `1000/day` or `20000/month`.
    #[schemars(regex(pattern = QUOTA_PATTERN))]
    quota: Option<String>,
    /// End of the key: a time (RFC 3339), a date (UTC), or a duration from now such as `30d`.
    #[schemars(length(min = 1))]
    expires: Option<String>,
}

fn label(generator: &mut SchemaGenerator) -> Schema {
    key_field(generator, "label")
}

fn email(generator: &mut SchemaGenerator) -> Schema {
    key_field(generator, "email")
}

/// The schema of a field that has the rules of the lookup API.
fn key_field(generator: &mut SchemaGenerator, name: &str) -> Schema {
    let schema = KeyRequest::json_schema(generator);
    let field = schema.get("properties").and_then(|fields| fields.get(name)).cloned();
    field.and_then(|field| Schema::try_from(field).ok()).unwrap_or_default()
}

/// A new key with its limits.
#[derive(Serialize, JsonSchema)]
pub(super) struct NewKeyRow {
    #[serde(flatten)]
    created: CreateKeyResponse,
    /// When it expires.
    expires: Option<String>,
    /// Maximum number of requests, such as `1000/day`.
    quota: Option<String>,
}

/// Change of a key. A field that is absent keeps its value, null removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub(super) struct KeyChange {
    /// Maximum number of requests, such as `1000/day` or `20000/month`.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>", regex(pattern = QUOTA_PATTERN))]
    quota: Option<Option<String>>,
    /// End of the key: a time (RFC 3339), a date (UTC), or a duration from now such as `30d`.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(min = 1))]
    expires: Option<Option<String>>,
}

pub(super) async fn list(operations: Operations, uri: Uri) -> AdminResult {
    let page = operations.list_keys(page(uri.query())?).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &PageBody::<KeyRow>::new(&page)))
}

pub(super) async fn create(
    operations: Operations,
    RequestFields(NewKey { label, email, quota, expires }): RequestFields<NewKey>,
) -> AdminResult {
    let now = operations.verbatim().now();
    let access = KeyAccess {
        quota: quota.map(|text| field("quota", parse_quota(&text))).transpose()?,
        expires_at: expires.map(|text| field("expires", parse_expiry(&text, now))).transpose()?,
        requests: RequestCounts::default(),
    };
    let (expires, quota) =
        (access.expires_at.map(|end| end.to_string()), access.quota.as_ref().map(quota_text));
    let request = CreateKeyRequest { label, email, proof: None, origin: KeyOrigin::Operator, access };
    let created = operations.create_key(request).await.map_err(failure)?;
    let row = NewKeyRow { created: CreateKeyResponse::from(&created), expires, quota };
    Ok(json(StatusCode::CREATED, &row))
}

pub(super) async fn change(
    operations: Operations,
    path: PathName,
    RequestFields(KeyChange { quota, expires }): RequestFields<KeyChange>,
) -> AdminResult {
    if quota.is_none() && expires.is_none() {
        return Err(V1ErrorResponse::bad("body", "it changes nothing: send quota, expires or both"));
    }
    let now = operations.verbatim().now();
    let change = KeyAccessChange {
        quota: changed("quota", quota, parse_quota)?,
        expires_at: changed("expires", expires, |text| parse_expiry(text, now))?,
    };
    operations.change_key(&path_name(path), change).await.map_err(failure)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn revoke(operations: Operations, path: PathName) -> AdminResult {
    operations.revoke_key(&path_name(path)).await.map_err(failure)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn field<T>(name: &str, parsed: Result<T, String>) -> Result<T, V1ErrorResponse> {
    parsed.map_err(|message| V1ErrorResponse::bad(name, message))
}

fn changed<T>(
    name: &str,
    value: Option<Option<String>>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<FieldChange<T>, V1ErrorResponse> {
    Ok(match value {
        None => FieldChange::Keep,
        Some(None) => FieldChange::Clear,
        Some(Some(text)) => FieldChange::Set(field(name, parse(&text))?),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use http_body_util::BodyExt as _;
    use serde_json::{Value, from_slice, from_value, json};
    use verbatim::{Options, Verbatim};

    use super::*;
    use crate::operations::Operator;

    #[tokio::test]
    async fn created_key_has_its_quota_and_expiry() {
        let verbatim = Verbatim::open(Options::default().without_suppliers()).await.unwrap();
        let operations = Operations::new(verbatim, PathBuf::new(), Operator::of_command());
        for (fields, quota, expires) in [
            (
                json!({ "quota": "3/day", "expires": "2099-01-31" }),
                json!("3/day"),
                json!("2099-01-31T00:00:00Z"),
            ),
            (json!({}), Value::Null, Value::Null),
        ] {
            let fields = RequestFields(from_value(fields).unwrap());
            let created = create(operations.clone(), fields).await.unwrap();
            assert_eq!(created.status(), StatusCode::CREATED);
            let body = created.into_body().collect().await.unwrap().to_bytes();
            let row: Value = from_slice(&body).unwrap();
            assert!(row["key"].as_str().unwrap().starts_with("vbk_"));
            assert_eq!((&row["quota"], &row["expires"]), (&quota, &expires), "{row}");
        }
    }
}
