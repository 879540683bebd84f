//! What a rule answers, and in which manner.

use std::{io::Write as _, sync::Arc, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use tokio::sync::Semaphore;

/// An answer to a request: a status, headers and a body, and the manner in which they are sent.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) delay: Duration,
    /// Opened by the test when the answer may begin.
    pub(super) gate: Option<Arc<Semaphore>>,
    pub(super) manner: Manner,
}

/// How an answer is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// At once, with its true length.
    Whole,
    /// So many bytes at a time, with a pause before each.
    Slow { bytes: usize, pause: Duration },
    /// With its true length in the header, but broken off after so many bytes.
    Cut { after: usize },
    /// The body over and over again, until the client leaves.
    Endless,
    /// Not even a status line; the connection stays open.
    Never,
    /// Not even a status line; the connection is closed.
    Closed,
}

impl Answer {
    /// An answer with this status and an empty body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            delay: Duration::ZERO,
            gate: None,
            manner: Manner::Whole,
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

    /// No answer at all, on a connection that stays open.
    pub fn never() -> Self {
        Self { manner: Manner::Never, ..Self::status(200) }
    }

    /// No answer at all, on a connection that is closed.
    pub fn closed() -> Self {
        Self { manner: Manner::Closed, ..Self::status(200) }
    }

    /// The same with this status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with this body.
    #[must_use]
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// The same with its body compressed with gzip, and a header that says so.
    #[must_use]
    pub fn gzipped(self) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to a vector cannot fail; if it ever does, the plain body is sent as it is.
        match encoder.write_all(&self.body).and_then(|()| encoder.finish()) {
            Ok(compressed) => self.body(compressed).header("content-encoding", "gzip"),
            Err(_) => self,
        }
    }

    /// The same, begun this much later.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The same, begun no sooner than this gate has a permit, and then at once for all: a test that waits for
    /// something to happen meanwhile needs no guess of how long that takes.
    #[must_use]
    pub fn held(self, gate: &Arc<Semaphore>) -> Self {
        Self { gate: Some(Arc::clone(gate)), ..self }
    }

    /// The same, sent this many bytes at a time with a pause before each.
    #[must_use]
    pub fn slowly(self, bytes: usize, pause: Duration) -> Self {
        Self { manner: Manner::Slow { bytes: bytes.max(1), pause }, ..self }
    }

    /// The same with a body that has no end: over and over, without a length, as long as the client listens.
    #[must_use]
    pub fn endlessly(self) -> Self {
        Self { manner: Manner::Endless, ..self }
    }

    /// The same, with its full length in the header but broken off after this many bytes.
    #[must_use]
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { manner: Manner::Cut { after: bytes }, ..self }
    }
}
