//! Scripted responses, and how they are sent.

use std::{io::Write as _, sync::Arc, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use tokio::sync::Semaphore;

/// A scripted response: status, headers, body, and how they are sent.
#[derive(Clone, Debug)]
pub struct ReplayResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) delay: Duration,
    /// A semaphore: the response starts when the test adds a permit.
    pub(super) gate: Option<Arc<Semaphore>>,
    pub(super) mode: ResponseMode,
}

/// How a response is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponseMode {
    /// At once, with its true length.
    Whole,
    /// This many bytes at a time, with a pause before each.
    Slow { bytes: usize, pause: Duration },
    /// With its true length in the header, but interrupted after this many bytes.
    Cut { after: usize },
    /// The body repeated until the client disconnects.
    Endless,
    /// Not even a status line; the connection stays open.
    Never,
    /// Not even a status line; the connection is closed.
    Closed,
}

impl ReplayResponse {
    /// A response with this status and an empty body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            delay: Duration::ZERO,
            gate: None,
            mode: ResponseMode::Whole,
        }
    }

    /// A 200 with this content type and body.
    pub fn bytes(content_type: &str, body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", content_type).body(body)
    }

    /// A 200 with this text as its body.
    pub fn text(body: impl Into<String>) -> Self {
        Self::bytes("text/plain; charset=utf-8", body.into())
    }

    /// A 200 with this JSON as its body.
    pub fn json(body: &Value) -> Self {
        Self::bytes("application/json; charset=UTF-8", body.to_string())
    }

    /// No response, on a connection that stays open.
    pub fn never() -> Self {
        Self { mode: ResponseMode::Never, ..Self::status(200) }
    }

    /// No response, on a connection that is closed.
    pub fn closed() -> Self {
        Self { mode: ResponseMode::Closed, ..Self::status(200) }
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Compresses the body with gzip and adds the header for it.
    #[must_use]
    pub fn gzipped(self) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to a vector cannot fail; if it ever does, the body is sent uncompressed.
        match encoder.write_all(&self.body).and_then(|()| encoder.finish()) {
            Ok(compressed) => self.body(compressed).header("content-encoding", "gzip"),
            Err(_) => self,
        }
    }

    /// Delays the start of the response.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Delays the start of the response until the gate has a permit, which is then free for other responses. A test
    /// that waits for an event before the response needs no guessed delay.
    #[must_use]
    pub fn gated(self, gate: &Arc<Semaphore>) -> Self {
        Self { gate: Some(Arc::clone(gate)), ..self }
    }

    /// Sends this many bytes at a time, with a pause before each.
    #[must_use]
    pub fn slowly(self, bytes: usize, pause: Duration) -> Self {
        Self { mode: ResponseMode::Slow { bytes: bytes.max(1), pause }, ..self }
    }

    /// Repeats the body without end and without a length, until the client disconnects.
    #[must_use]
    pub fn endlessly(self) -> Self {
        Self { mode: ResponseMode::Endless, ..self }
    }

    /// Interrupts the body after this many bytes, with its full length in the header.
    #[must_use]
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { mode: ResponseMode::Cut { after: bytes }, ..self }
    }
}
