//! Bodies and page parameters of requests.

use axum::{
    Extension,
    extract::{FromRequest, FromRequestParts, Request, rejection::ExtensionRejection},
};
use http::request::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use transcript_core::{Page, PageRequest, ids::Cursor, page::PAGE_LIMIT};

use super::AdminState;
use crate::{
    api::{BODY_MAX, V1ErrorResponse, check_spelling, is_json, json_object, number, parameter, read_body},
    operations::Operations,
};

/// Longest cursor, in bytes.
pub(super) const CURSOR_MAX: usize = 200;
/// Items of a page, unless requested otherwise.
pub(super) const PAGE_SIZE: u32 = 100;

/// JSON body of a request. An empty one is `{}`.
///
/// It is refused with 400, 408, 413 or 415.
pub(super) struct RequestFields<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AdminState> for RequestFields<T> {
    type Rejection = V1ErrorResponse;

    async fn from_request(request: Request, state: &AdminState) -> Result<Self, V1ErrorResponse> {
        let (head, body) = request.into_parts();
        let bytes = read_body(&head.headers, body, BODY_MAX, &state.body_budget).await?;
        let text = if bytes.trim_ascii().is_empty() { b"{}" } else { &bytes[..] };
        // A missing content type is accepted.
        if is_json(&head.headers) == Some(false) {
            return Err(V1ErrorResponse::not_json());
        }
        // Of a list, serde reads the items as the fields in their order.
        let fields = json_object(text, || "it must be a JSON object".to_owned())?;
        read_fields(&fields).map(Self)
    }
}

/// Reads the fields of a body.
///
/// # Errors
/// 400, whose message names the field that is wrong.
fn read_fields<T: DeserializeOwned>(fields: &Map<String, Value>) -> Result<T, V1ErrorResponse> {
    let read = |fields: Map<String, Value>| {
        serde_json::from_value::<T>(Value::Object(fields)).map_err(|error| error.to_string())
    };
    read(fields.clone()).map_err(|error| {
        // serde names a field that is missing or unknown, but none with a wrong value: alone, it has the same error.
        let is_wrong = |(name, value): &(&String, &Value)| {
            let alone = Map::from_iter([((*name).clone(), (*value).clone())]);
            error.starts_with("invalid ") && read(alone).is_err_and(|alone| alone == error)
        };
        let name = fields.iter().find(is_wrong).map_or("body", |(name, _)| name.as_str());
        V1ErrorResponse::bad(name, &error)
    })
}

/// The operations of the operator who sends the request.
impl<S: Send + Sync> FromRequestParts<S> for Operations {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, ExtensionRejection> {
        Extension::from_request_parts(head, state).await.map(|Extension(operations)| operations)
    }
}

/// Parses the page parameters of a link. Other parameters are ignored, unless they are spelled almost as these.
///
/// # Errors
/// 400.
pub(super) fn page(query: Option<&str>) -> Result<PageRequest, V1ErrorResponse> {
    let query = query.unwrap_or_default();
    check_spelling(query, &["after", "limit"])?;
    let after = parameter(query, "after")?;
    if after.as_ref().is_some_and(|after| !(1..=CURSOR_MAX).contains(&after.len())) {
        return Err(V1ErrorResponse::bad("after", "it is not the `next` of a page"));
    }
    let limit = match parameter(query, "limit")? {
        Some(text) => number(&text, 1..=PAGE_LIMIT),
        None => Some(PAGE_SIZE),
    };
    let limit = limit
        .ok_or_else(|| V1ErrorResponse::bad("limit", format!("give a number from 1 to {PAGE_LIMIT}")))?;
    Ok(PageRequest { after: after.map(|after| Cursor::new(after.into_owned())), limit })
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(super) struct PageBody<T> {
    /// The items.
    items: Vec<T>,
    /// The `after` of the next page; null after the last one.
    next: Option<String>,
}

impl<T> PageBody<T> {
    pub(super) fn new<'a, V: 'a>(page: &'a Page<V>) -> Self
    where
        T: From<&'a V>,
    {
        let items = page.items.iter().map(T::from).collect();
        Self { items, next: page.next.as_ref().map(|cursor| cursor.as_str().to_owned()) }
    }
}

/// Reads a field that may be null: `None` if it is absent, `Some(None)` for null.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    field: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(field).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        name: String,
        credits: Option<u64>,
    }

    #[test]
    fn fields_wrong_value_is_named() {
        for (fields, expect) in [
            (json!({ "name": "a", "credits": -5 }), "credits: invalid value: integer `-5`"),
            (json!({ "name": 5, "credits": 5 }), "name: invalid type: integer `5`"),
            (json!({ "credits": "five" }), "credits: invalid type: string"),
            (json!({ "credits": 5 }), "body: missing field `name`"),
            (json!({ "name": "a", "other": 1 }), "body: unknown field `other`"),
        ] {
            let refused = read_fields::<Fields>(fields.as_object().unwrap()).unwrap_err();
            assert!(refused.body().error.starts_with(expect), "{refused:?}");
        }
        let fields = json!({ "name": "a", "credits": 5 });
        let Fields { name, credits } = read_fields(fields.as_object().unwrap()).unwrap();
        assert_eq!((name.as_str(), credits), ("a", Some(5)));
    }
}
