//! A server that sends scripted responses, such as a Verbatim server, a model or a receiver of webhooks.

use std::{
    future,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, ensure};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::Instant,
};

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: Bytes,
    pub(crate) at: Instant,
}

impl SeenRequest {
    /// The value of a header, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The value of a form field.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let body = String::from_utf8_lossy(&self.body);
        let (_, rest) = body.split_once(&format!("name=\"{name}\"\r\n\r\n"))?;
        Some(rest.split("\r\n").next()?.to_owned())
    }

    /// The file of the form.
    pub(crate) fn file(&self) -> &[u8] {
        let find = |mark: &[u8]| self.body.windows(mark.len()).position(|window| window == mark);
        let start = find(b"filename=").and_then(|start| {
            let rest = self.body.get(start..)?;
            Some(start + rest.windows(4).position(|window| window == b"\r\n\r\n")? + 4)
        });
        let end = find(b"--\r\n").unwrap_or(self.body.len());
        start.and_then(|start| self.body.get(start..end)).unwrap_or_default()
    }

    /// Length of the file in seconds. The file must be WAV with 16,000 samples of two bytes a second.
    pub(crate) fn seconds(&self) -> f64 {
        let word = self.file().get(40..44).and_then(|word| word.try_into().ok()).unwrap_or_default();
        f64::from(u32::from_le_bytes(word)) / 32_000.0
    }
}

/// The reaction to one request.
#[derive(Clone, Debug)]
pub(crate) enum FakeReply {
    /// Sends these bytes, head included, and closes the connection.
    Raw(String),
    /// Sends these bytes, and then zeros without end.
    Endless(String),
    /// Never responds.
    Never,
    /// Closes the connection.
    Closed,
    /// Sends headers and the start of a body, waits for a permit, and sends the rest.
    ///
    /// With `None` it closes the connection instead of sending the rest.
    Partial(&'static str, String, Arc<Semaphore>, Option<String>),
    /// Waits for a permit, which it uses up, and then reacts like this.
    Gated(Arc<Semaphore>, Box<FakeReply>),
}

impl FakeReply {
    /// A response with a status, header lines and a body.
    pub(crate) fn new(status: u16, headers: &str, body: impl Into<String>) -> Self {
        let body = body.into();
        Self::Raw(format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::new(200, "", body.to_string())
    }

    /// A transcription with these segments: start, end, text.
    pub(crate) fn transcription(segments: &[(f64, f64, &str)]) -> Self {
        let json_segments: Vec<_> = segments
            .iter()
            .map(|(start, end, text)| json!({"start": start, "end": end, "text": text}))
            .collect();
        let text: String = segments.iter().map(|(.., text)| *text).collect();
        Self::json(&json!({"text": text, "language": "english", "segments": json_segments}))
    }
}

type FakeScript = dyn Fn(&SeenRequest, usize) -> FakeReply + Send + Sync;

/// The server; drop stops it.
pub(crate) struct FakeService {
    pub(crate) url: String,
    /// Its address as that of an OpenAI-compatible service.
    pub(crate) base_url: String,
    requests: Arc<Mutex<Vec<SeenRequest>>>,
    _tasks: JoinSet<()>,
}

impl FakeService {
    /// Starts a server that responds by `script`, called with the request and the number of earlier ones.
    pub(crate) async fn start(
        script: impl Fn(&SeenRequest, usize) -> FakeReply + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Arc<FakeScript>, _) = (Arc::new(script), Arc::clone(&requests));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                connections.spawn(async move {
                    // A client that disconnects is not an error.
                    let _ = serve(stream, script.as_ref(), &log).await;
                });
            }
        });
        Ok(Self { base_url: format!("{url}/v1"), url, requests, _tasks: tasks })
    }

    /// The received requests, in order.
    pub(crate) fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(mut stream: TcpStream, script: &FakeScript, log: &Mutex<Vec<SeenRequest>>) -> Result<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).to_lowercase();
    let mut request = SeenRequest { head, body: Bytes::new(), at: Instant::now() };
    ensure!(request.header("transfer-encoding").is_none(), "a body without a length");
    let length = request.header("content-length").map_or(Ok(0), str::parse::<usize>)?;
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    (request.body, request.at) = (Bytes::from(bytes.split_off(end)), Instant::now());
    let before = {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(request.clone());
        log.len() - 1
    };
    let reply = match script(&request, before) {
        FakeReply::Gated(permits, reply) => {
            permits.acquire().await?.forget();
            *reply
        }
        reply => reply,
    };
    match reply {
        FakeReply::Raw(response) => stream.write_all(response.as_bytes()).await?,
        FakeReply::Endless(start) => {
            stream.write_all(start.as_bytes()).await?;
            let zeros = vec![b'0'; 64 << 10];
            loop {
                stream.write_all(&zeros).await?;
            }
        }
        FakeReply::Partial(headers, start, permits, rest) => {
            let length = start.len() + rest.as_ref().map_or(1, String::len);
            let head =
                format!("HTTP/1.1 200 X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n");
            stream.write_all((head + &start).as_bytes()).await?;
            permits.acquire().await?.forget();
            stream.write_all(rest.unwrap_or_default().as_bytes()).await?;
        }
        FakeReply::Never => future::pending().await,
        FakeReply::Closed | FakeReply::Gated(..) => {}
    }
    Ok(())
}
