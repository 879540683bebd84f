//! The bodies of Surface B: JSON objects with the fields that are known, and no others.
//!
//! A field that nobody knows is refused rather than left aside: who writes `credit` for `credits` where money
//! is spent must not be answered as if it had been read.

use axum::body::Body;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde_json::{Map, Value};

use super::Denial;
use crate::http::read_body;

/// The largest body of a call without a conversation in it, in bytes.
pub(crate) const BODY_MAX: usize = 16 * 1024;

/// The fields of a body.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body of at most [`BODY_MAX`] bytes.
    ///
    /// # Errors
    /// As [`bytes`] and [`Fields::of`].
    pub(crate) async fn read(headers: &HeaderMap, body: Body, known: &[&str]) -> Result<Self, Denial> {
        Self::of(headers, &bytes(body, BODY_MAX).await?, known)
    }

    /// The fields of a body that was read.
    ///
    /// # Errors
    /// 415 when it is said to be something else than JSON; 400 when it is missing, no JSON object, or has a
    /// field that is none of those that are known.
    pub(crate) fn of(headers: &HeaderMap, bytes: &[u8], known: &[&str]) -> Result<Self, Denial> {
        let example = || {
            let fields: Vec<String> = known.iter().map(|name| format!("\"{name}\": …")).collect();
            format!("{{{}}}", fields.join(", "))
        };
        if bytes.trim_ascii().is_empty() {
            return Err(Denial::bad("body", format!("it is missing: send JSON such as {}", example())));
        }
        if !is_json(headers) {
            let message = "The body must be JSON: send Content-Type: application/json.";
            return Err(Denial::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let fields = match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(Denial::bad("body", format!("it must be a JSON object: {}", example()))),
            Err(error) => {
                let place = format!("line {}, column {}", error.line(), error.column());
                return Err(Denial::bad("body", format!("it is no valid JSON ({place})")));
            }
        };
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(fields)),
            Some(name) => {
                let shown: String = name.chars().take(40).collect();
                let what = format!("there is no field {shown:?}; known are: {}", known.join(", "));
                Err(Denial::bad("body", what))
            }
        }
    }

    /// A field, where it is there.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// 400 when it is missing or no text.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Denial> {
        match self.0.get(name) {
            Some(Value::String(text)) => Ok(text),
            None | Some(Value::Null) => Err(Denial::bad(name, "it is missing")),
            Some(_) => Err(Denial::bad(name, "it must be a string")),
        }
    }
}

/// The whole body.
///
/// # Errors
/// 413 when it is larger than `limit`, 408 when it takes too long, 400 when it breaks off.
pub(crate) async fn bytes(body: Body, limit: usize) -> Result<Vec<u8>, Denial> {
    Ok(read_body(body, limit).await?)
}

/// Whether a body is JSON by its type. One without a type is taken for what it must be.
fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_none_or(|kind| {
        let kind = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_body_is_said() {
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
            (None, b"{}", 400, "email: it is missing"),
            (None, b"{\"email\": null}", 400, "email: it is missing"),
            (None, b"{\"email\": 7}", 400, "email: it must be a string"),
            (None, b"{\"email\": [\"a\"]}", 400, "email: it must be a string"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            }
            let denial = Fields::of(&headers, body, &known)
                .and_then(|fields| fields.text("email").map(str::to_owned))
                .unwrap_err();
            let body = String::from_utf8_lossy(body);
            assert!(denial.message().starts_with(message), "{body}: {denial:?}");
            assert_eq!(denial.status(), status, "{body}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "Application/JSON; charset=utf-8".parse().unwrap());
        let fields = Fields::of(&headers, b"{\"email\": \" a \"}", &known).unwrap();
        assert_eq!(fields.text("email").unwrap(), " a ");
    }
}
