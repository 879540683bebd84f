//! Request lines of the log.

use std::{borrow::Cow, io, time::Duration};

use http::{Method, StatusCode};
use serde::Serialize;

use super::escape::request_text;
use crate::{
    api::{HEALTH_PATHS, RequestId},
    config::LogFormat,
};

/// Data of a request at the start of its response.
#[derive(Debug)]
pub(crate) struct AccessLine {
    pub(crate) method: Method,
    /// Path, without the query.
    pub(crate) path: Cow<'static, str>,
    /// Status of the response.
    pub(crate) status: StatusCode,
    /// Length of the response body, in bytes.
    pub(crate) bytes: u64,
    /// Duration until the response.
    pub(crate) took: Duration,
    pub(crate) id: RequestId,
}

#[derive(Serialize)]
struct JsonFields<'a> {
    timestamp: &'a str,
    level: &'static str,
    message: &'static str,
    status: u16,
    method: &'a str,
    path: &'a str,
    took_ms: f64,
    bytes: u64,
    request_id: &'a str,
}

impl AccessLine {
    /// Whether it is a successful health check.
    ///
    /// Its level is debug: checks of load balancers outnumber the requests of a small service.
    pub(super) fn is_passed_health_check(&self) -> bool {
        self.status == StatusCode::OK && HEALTH_PATHS.contains(&&*self.path)
    }

    /// Appends the line, written `now`, to a buffer.
    ///
    /// Runs on the log's thread. The text format is assembled by hand, because under load it is a large part of the
    /// cost of a cached response.
    ///
    /// # Errors
    /// The serializer failed.
    pub(super) fn write(&self, now: &str, format: LogFormat, to: &mut Vec<u8>) -> io::Result<()> {
        let (path, method) = (request_text(&self.path), request_text(self.method.as_str()));
        let status = self.status;
        let level = if self.is_passed_health_check() { "DEBUG" } else { "INFO" };
        match format {
            LogFormat::Text => {
                let padding = if level.len() < 5 { "  " } else { " " };
                for part in [now, padding, level, " ", status.as_str(), " ", &method, " ", &path, " "] {
                    to.extend_from_slice(part.as_bytes());
                }
                milliseconds(self.took, to);
                to.extend_from_slice(b"ms ");
                to.extend_from_slice(itoa::Buffer::new().format(self.bytes).as_bytes());
                to.extend_from_slice(b"B ");
                self.id.write(to);
            }
            LogFormat::Json => {
                let mut id = Vec::new();
                self.id.write(&mut id);
                let line = JsonFields {
                    timestamp: now,
                    level,
                    message: "request",
                    status: status.as_u16(),
                    method: &method,
                    path: &path,
                    took_ms: self.took.as_micros() as f64 / 1000.0,
                    bytes: self.bytes,
                    request_id: std::str::from_utf8(&id).unwrap_or_default(),
                };
                serde_json::to_writer(&mut *to, &line)?;
            }
        }
        to.push(b'\n');
        Ok(())
    }
}

/// Formats a duration in milliseconds, to the microsecond, without trailing zeros.
fn milliseconds(took: Duration, to: &mut Vec<u8>) {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    to.extend_from_slice(itoa::Buffer::new().format(micros / 1_000).as_bytes());
    let mut rest = micros % 1_000;
    if rest > 0 {
        to.push(b'.');
    }
    let mut divisor = 100;
    while rest > 0 {
        to.push(b'0' + (rest / divisor) as u8);
        rest %= divisor;
        divisor /= 10;
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn line(path: &str, format: LogFormat) -> String {
        line_with_status(path, StatusCode::OK, format)
    }

    fn line_with_status(path: &str, status: StatusCode, format: LogFormat) -> String {
        let line = AccessLine {
            method: Method::GET,
            path: Cow::Owned(path.to_owned()),
            status,
            bytes: 17,
            took: Duration::from_micros(1_250),
            id: RequestId::FromClient(HeaderValue::from_static("a-1")),
        };
        let mut text = Vec::new();
        line.write("1970-01-01T00:00:00Z", format, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn access_milliseconds_match_float_format() {
        for number in [0, 1, 9, 10, 999, 1_000, 1_001, 1_010, 1_100, 12_000, 123_456, 7_000_050] {
            let mut text = Vec::new();
            milliseconds(Duration::from_micros(number), &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), (number as f64 / 1000.0).to_string());
        }
    }

    #[test]
    fn access_line_text_and_json() {
        let text = line("/api/transcript", LogFormat::Text);
        assert_eq!(text, "1970-01-01T00:00:00Z  INFO 200 GET /api/transcript 1.25ms 17B a-1\n");
        let json: serde_json::Value = serde_json::from_str(&line("/x\"", LogFormat::Json)).unwrap();
        assert_eq!((&json["path"], &json["took_ms"]), (&"/x\"".into(), &1.25.into()));
    }

    #[test]
    fn access_line_of_passed_health_check_is_debug() {
        for path in ["/readyz", "/healthz", "/health"] {
            let text = line(path, LogFormat::Text);
            assert_eq!(text, format!("1970-01-01T00:00:00Z DEBUG 200 GET {path} 1.25ms 17B a-1\n"));
            assert!(line(path, LogFormat::Json).contains(r#""level":"DEBUG""#), "{path}");
            let failed = line_with_status(path, StatusCode::SERVICE_UNAVAILABLE, LogFormat::Text);
            assert!(failed.contains("  INFO 503 GET "), "{failed}");
        }
        assert!(line("/healthz/x", LogFormat::Text).contains("  INFO 200 "));
    }

    #[test]
    fn access_path_is_cut_at_key_and_limit() {
        assert!(line("/api/keys/vbk_secret", LogFormat::Text).contains(" /api/keys/… "));
        assert!(line("/vb/x?vba_secret", LogFormat::Text).contains(" /vb/x?… "));
        assert!(line("/%76bk_secret", LogFormat::Json).contains("\"/…\""));
        assert!(line(&"é".repeat(5_000), LogFormat::Text).len() < 400);
        assert!(line("/\u{9b}2J\u{202e}", LogFormat::Text).is_ascii());
    }
}
