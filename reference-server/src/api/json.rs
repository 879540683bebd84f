//! JSON in responses and requests.

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use transcript_core::accounts::StoredResponse;

use super::ProblemResponse;

/// Media type of a JSON response.
pub(crate) const JSON: &str = StoredResponse::JSON;

pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match json_bytes(serde_json::to_vec(body)) {
        Ok(bytes) => (status, [(CONTENT_TYPE, HeaderValue::from_static(JSON))], bytes).into_response(),
        Err(fault) => fault.into_response(),
    }
}

/// The JSON of a response.
///
/// # Errors
/// 500 if it was not written; the log has the cause.
pub(crate) fn json_bytes<E: fmt::Display>(written: Result<Vec<u8>, E>) -> Result<Vec<u8>, ProblemResponse> {
    written.map_err(|error| {
        tracing::error!(%error, "response body not serialized");
        ProblemResponse::fault()
    })
}

/// Returns the media type of a request body, without parameters.
fn content_type(headers: &HeaderMap) -> Option<&[u8]> {
    let kind = headers.get(CONTENT_TYPE)?.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    Some(kind.trim_ascii())
}

/// Returns whether the media type of a request body is JSON; `None` without a media type.
pub(crate) fn is_json(headers: &HeaderMap) -> Option<bool> {
    Some(content_type(headers)?.eq_ignore_ascii_case(b"application/json"))
}

/// Returns whether the media type of a request body is that of a form.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    content_type(headers).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded"))
}

/// Longest name of a field in an error, in characters.
pub(crate) const SHOWN_NAME_MAX: usize = 40;

/// JSON without two fields of one name in an object: readers differ on which of them counts.
struct UniqueJson(Value);

impl<'de> Deserialize<'de> for UniqueJson {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(UniqueJsonVisitor).map(Self)
    }
}

/// Builds the value of a [`UniqueJson`].
struct UniqueJsonVisitor;

impl<'de> Visitor<'de> for UniqueJsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(UniqueJson(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((name, UniqueJson(value))) = entries.next_entry::<String, UniqueJson>()? {
            if fields.contains_key(&name) {
                let shown: String = name.chars().take(SHOWN_NAME_MAX).collect();
                return Err(A::Error::custom(format_args!("duplicate field {shown:?}")));
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Parses a request body as a JSON object. `other` is the message for other JSON.
///
/// # Errors
/// 400, also for a field that occurs twice.
pub(crate) fn json_object(
    body: &[u8],
    other: impl FnOnce() -> String,
) -> Result<Map<String, Value>, ProblemResponse> {
    match serde_json::from_slice(body) {
        Ok(UniqueJson(Value::Object(fields))) => Ok(fields),
        Ok(_) => Err(ProblemResponse::bad("body", other())),
        // Every JSON has the expected type, so it is a field that occurs twice.
        Err(error) if error.is_data() => Err(ProblemResponse::bad("body", error.to_string())),
        Err(error) => {
            let place = format!("line {}, column {}", error.line(), error.column());
            Err(ProblemResponse::bad("body", format!("it is no valid JSON ({place})")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::ser::Error as _;

    use super::*;
    use crate::api::reply;

    struct Unwritable;

    impl Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("unwritable"))
        }
    }

    #[test]
    fn body_that_is_not_serialized_is_500() {
        assert_eq!(json(StatusCode::OK, &Unwritable).status(), StatusCode::INTERNAL_SERVER_ERROR);
        let stored = reply(StatusCode::OK, &Unwritable);
        assert_eq!(stored.status, 500);
        let body: Value = serde_json::from_slice(&stored.body).unwrap();
        assert_eq!(body["code"], 500);
    }
}
