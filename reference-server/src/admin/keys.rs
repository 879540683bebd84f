//! Keys of the lookup API.

use axum::response::IntoResponse;
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::Deserialize;
use transcript_core::{
    directory::{FieldChange, KeyAccess, KeyAccessChange, RequestCounts},
    lookup::{CreateKeyRequest, KeyOrigin},
    wire::lookup::CreateKeyResponse,
};

use super::{
    AdminResult, failure,
    request::{PageBody, RequestFields, page, present},
};
use crate::{
    api::{PathName, V1ErrorResponse, json, path_name},
    operations::{KeyRow, Operations, parse_expiry, parse_quota},
};

/// A new key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    /// Label of the key.
    label: Option<String>,
    /// E-mail address of the owner. Nothing is sent to it.
    email: Option<String>,
    /// Maximum number of requests, such as `1000/day` or `20000/month`.
    quota: Option<String>,
    /// End of the key: a time (RFC 3339), a date (UTC), or a duration from now such as `30d`.
    expires: Option<String>,
}

/// Change of a key. A field that is absent keeps its value, null removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyChange {
    /// Maximum number of requests, such as `1000/day` or `20000/month`.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
    quota: Option<Option<String>>,
    /// End of the key: a time (RFC 3339), a date (UTC), or a duration from now such as `30d`.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
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
    let request = CreateKeyRequest { label, email, proof: None, origin: KeyOrigin::Operator, access };
    let created = operations.create_key(request).await.map_err(failure)?;
    Ok(json(StatusCode::CREATED, &CreateKeyResponse::from(&created)))
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
