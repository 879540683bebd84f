//! One line per request.

use std::{io::Write, time::Duration};

use http::{HeaderValue, Method, StatusCode};
use serde::Serialize;
use transcript_core::Timestamp;

use crate::config::LogFormat;

/// The longest path that is written, in characters.
const PATH_MAX: usize = 120;

/// What is known of a request when its answer begins.
#[derive(Debug)]
pub(crate) struct AccessLine {
    /// Its method.
    pub(crate) method: Method,
    /// Its path, without the query.
    pub(crate) path: String,
    /// The answer's status.
    pub(crate) status: StatusCode,
    /// The length of the answer's body in bytes.
    pub(crate) bytes: u64,
    /// How long the answer took.
    pub(crate) took: Duration,
    /// The request's id.
    pub(crate) id: HeaderValue,
}

#[derive(Serialize)]
struct Json<'a> {
    timestamp: String,
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
    /// Writes the line. It runs on the log's own thread: nobody waits for it.
    pub(super) fn write(&self, now: Timestamp, format: LogFormat, to: &mut dyn Write) -> std::io::Result<()> {
        let path = shown(&self.path);
        let id = self.id.to_str().unwrap_or_default();
        let took_ms = self.took.as_micros() as f64 / 1000.0;
        let (status, method, bytes) = (self.status.as_u16(), self.method.as_str(), self.bytes);
        match format {
            LogFormat::Text => writeln!(to, "{now}  INFO {status} {method} {path} {took_ms}ms {bytes}B {id}"),
            LogFormat::Json => {
                let timestamp = now.to_string();
                let line = Json {
                    timestamp,
                    level: "INFO",
                    message: "request",
                    status,
                    method,
                    path: &path,
                    took_ms,
                    bytes,
                    request_id: id,
                };
                serde_json::to_writer(&mut *to, &line)?;
                to.write_all(b"\n")
            }
        }
    }
}

/// The path, cut to a length; and cut before anything that looks like a key: a caller may have put one
/// there by mistake.
fn shown(path: &str) -> String {
    let key = ["vbk_", "vba_"].into_iter().filter_map(|prefix| path.find(prefix)).min();
    let end = path.char_indices().nth(PATH_MAX).map(|(at, _)| at).unwrap_or(path.len());
    match key.filter(|at| *at < end).unwrap_or(end) {
        end if end == path.len() => path.to_owned(),
        end => format!("{}…", &path[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str, format: LogFormat) -> String {
        let line = AccessLine {
            method: Method::GET,
            path: path.to_owned(),
            status: StatusCode::OK,
            bytes: 17,
            took: Duration::from_micros(1_250),
            id: HeaderValue::from_static("a-1"),
        };
        let mut text = Vec::new();
        line.write(Timestamp::from_millis(0), format, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_line_for_people_and_one_for_machines() {
        let text = line("/api/transcript", LogFormat::Text);
        assert_eq!(text, "1970-01-01T00:00:00Z  INFO 200 GET /api/transcript 1.25ms 17B a-1\n");
        let json: serde_json::Value = serde_json::from_str(&line("/x\"", LogFormat::Json)).unwrap();
        assert_eq!((&json["path"], &json["took_ms"]), (&"/x\"".into(), &1.25.into()));
    }

    #[test]
    fn keys_and_endless_paths_are_cut() {
        assert!(line("/api/keys/vbk_secret", LogFormat::Text).contains(" /api/keys/… "));
        assert!(line(&"é".repeat(5_000), LogFormat::Text).len() < 400);
    }
}
