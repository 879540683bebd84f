//! Bodies of the v1 API: JSON objects with known fields only.
//!
//! An unknown field is rejected, not ignored: a typo such as `credit` for `credits` in a request that spends credits
//! must not succeed.

use axum::body::Body;
use http::HeaderMap;
use serde_json::{Map, Value};

pub(crate) use crate::api::BODY_MAX;
use crate::api::{ByteBudget, SHOWN_NAME_MAX, V1ErrorResponse, is_json, json_object, read_body};

#[derive(Debug)]
pub(crate) struct BodyFields(Map<String, Value>);

impl BodyFields {
    /// Reads and parses a body of at most [`BODY_MAX`] bytes.
    ///
    /// # Errors
    /// See [`read_body`] and [`BodyFields::parse`].
    pub(crate) async fn read(
        headers: &HeaderMap,
        body: Body,
        budget: &ByteBudget,
        known: &[&str],
    ) -> Result<Self, V1ErrorResponse> {
        Self::parse(headers, &read_body(headers, body, BODY_MAX, budget).await?, known)
    }

    /// Parses a body.
    ///
    /// # Errors
    /// 415 for another content type than JSON; 400 if the body is missing, is not a JSON object, or has an unknown
    /// field or one twice.
    pub(crate) fn parse(headers: &HeaderMap, bytes: &[u8], known: &[&str]) -> Result<Self, V1ErrorResponse> {
        let example = || {
            let fields: Vec<String> = known.iter().map(|name| format!("\"{name}\": …")).collect();
            format!("{{{}}}", fields.join(", "))
        };
        if bytes.trim_ascii().is_empty() {
            return Err(V1ErrorResponse::bad(
                "body",
                format!("it is missing: send JSON such as {}", example()),
            ));
        }
        // A missing content type is accepted.
        if is_json(headers) == Some(false) {
            return Err(V1ErrorResponse::not_json());
        }
        let fields = json_object(bytes, || format!("it must be a JSON object: {}", example()))?;
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(fields)),
            Some(name) => {
                let shown: String = name.chars().take(SHOWN_NAME_MAX).collect();
                let what = format!("there is no field {shown:?}; known are: {}", known.join(", "));
                Err(V1ErrorResponse::bad("body", what))
            }
        }
    }

    /// Returns a field, if present.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns a required text field.
    ///
    /// # Errors
    /// 400 if the field is missing or not a string.
    pub(crate) fn text(&self, name: &str) -> Result<&str, V1ErrorResponse> {
        match self.0.get(name) {
            Some(Value::String(text)) => Ok(text),
            None | Some(Value::Null) => Err(V1ErrorResponse::bad(name, "it is missing")),
            Some(_) => Err(V1ErrorResponse::bad(name, "it must be a string")),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn body_fields_invalid_body_is_described() {
        let known = ["email", "plan"];
        for (kind, body, status, message) in [
            (None, &b""[..], 400, "body: it is missing: send JSON such as {\"email\": …, \"plan\": …}"),
            (Some("text/plain"), b" \n", 400, "body: it is missing"),
            (Some("text/plain"), b"{}", 415, "The body must be JSON"),
            (Some("application/x-www-form-urlencoded"), b"email=a", 415, "The body must be JSON"),
            (None, b"{", 400, "body: it is no valid JSON (line 1, column 1)"),
            (None, b"\xff\xfe", 400, "body: it is no valid JSON"),
            (None, b"{\"email\": \"\xff\"}", 400, "body: it is no valid JSON"),
            (None, b"[]", 400, "body: it must be a JSON object"),
            (None, b"\"email\"", 400, "body: it must be a JSON object"),
            (
                None,
                b"{\"email\": \"a\", \"e\\u001bmail\": 1}",
                400,
                "body: there is no field \"e\\u{1b}mail\"",
            ),
            (
                None,
                b"{\"email\": \"a\", \"plan\": 1, \"e\\u006dail\": \"b\"}",
                400,
                "body: duplicate field \"email\" at line 1 column",
            ),
            (
                None,
                b"{\"plan\": [{\"a\": 1, \"a\": 1}]}",
                400,
                "body: duplicate field \"a\" at line 1 column",
            ),
            (None, b"{\"plan\": [{\"a\": 1}, {\"a\": {\"a\": null}}]}", 400, "email: it is missing"),
            (None, b"{}", 400, "email: it is missing"),
            (None, b"{\"email\": null}", 400, "email: it is missing"),
            (None, b"{\"email\": 7}", 400, "email: it must be a string"),
            (None, b"{\"email\": [\"a\"]}", 400, "email: it must be a string"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            }
            let denial = BodyFields::parse(&headers, body, &known)
                .and_then(|fields| fields.text("email").map(str::to_owned))
                .unwrap_err();
            let body = String::from_utf8_lossy(body);
            assert!(denial.body().error.starts_with(message), "{body}: {denial:?}");
            assert_eq!(denial.status(), status, "{body}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "Application/JSON; charset=utf-8".parse().unwrap());
        let fields = BodyFields::parse(&headers, b"{\"email\": \" a \"}", &known).unwrap();
        assert_eq!(fields.text("email").unwrap(), " a ");
    }
}
