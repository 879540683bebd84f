//! A speech-to-text service that answers as the test says.

use std::{
    future,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::Instant,
};

/// A request as the service saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its head, in lower case.
    pub(crate) head: String,
    pub(crate) body: Bytes,
    pub(crate) at: Instant,
}

impl Seen {
    /// The value of a field of the form.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let body = String::from_utf8_lossy(&self.body);
        let (_, rest) = body.split_once(&format!("name=\"{name}\"\r\n\r\n"))?;
        Some(rest.split("\r\n").next()?.to_owned())
    }

    /// The file of the form.
    pub(crate) fn file(&self) -> &[u8] {
        let place = |mark: &[u8]| self.body.windows(mark.len()).position(|window| window == mark);
        let start = place(b"filename=").and_then(|start| {
            let rest = self.body.get(start..)?;
            Some(start + rest.windows(4).position(|window| window == b"\r\n\r\n")? + 4)
        });
        let end = place(b"--\r\n").unwrap_or(self.body.len());
        start.and_then(|start| self.body.get(start..end)).unwrap_or_default()
    }

    /// How long the file is, in seconds: it must be WAV, of 16,000 samples of two bytes a second.
    pub(crate) fn seconds(&self) -> f64 {
        let word = self.file().get(40..44).and_then(|word| word.try_into().ok()).unwrap_or_default();
        f64::from(u32::from_le_bytes(word)) / 32_000.0
    }
}

/// What the service does.
pub(crate) enum Reply {
    /// It answers with a status, lines of headers and a body.
    Answer(u16, &'static str, String),
    /// It never ends its answer.
    Endless,
    /// It never begins one.
    Never,
    /// It hangs up.
    Closed,
    /// It begins its answer with these headers and this, and goes on with that once it gets a permit; it hangs up
    /// instead where there is nothing to go on with.
    Begun(&'static str, String, Arc<Semaphore>, Option<String>),
    /// This, once it gets a permit; each is for one answer.
    Held(Arc<Semaphore>, Box<Reply>),
}

impl Reply {
    pub(crate) fn json(body: &Value) -> Self {
        Self::Answer(200, "", body.to_string())
    }

    /// A transcription of these pieces: start, end, text.
    pub(crate) fn heard(pieces: &[(f64, f64, &str)]) -> Self {
        let segments: Vec<_> = pieces
            .iter()
            .map(|(start, end, text)| json!({"start": start, "end": end, "text": text}))
            .collect();
        let text: String = pieces.iter().map(|(.., text)| *text).collect();
        Self::json(&json!({"text": text, "language": "english", "segments": segments}))
    }
}

type Script = dyn Fn(&Seen, usize) -> Reply + Send + Sync;

/// The service; it ends with the value.
pub(crate) struct Service {
    pub(crate) base_url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

impl Service {
    /// A service that answers by `script`, which gets the request and how many came before.
    pub(crate) async fn start(
        script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                connections.spawn(async move {
                    // A client that leaves is no fault of the service.
                    let _ = serve(stream, script.as_ref(), &log).await;
                });
            }
        });
        Ok(Self { base_url, seen, _tasks: tasks })
    }

    /// The requests that came, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<Seen>>) -> Result<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let text = String::from_utf8_lossy(bytes.get(..head).unwrap_or_default()).to_lowercase();
    let length =
        text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).context("no length")?;
    let whole = head + length.trim().parse::<usize>()?;
    while bytes.len() < whole {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    let seen = Seen { head: text, body: Bytes::from(bytes.split_off(head)), at: Instant::now() };
    let before = {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(seen.clone());
        log.len() - 1
    };
    let reply = match script(&seen, before) {
        Reply::Held(may, reply) => {
            may.acquire().await?.forget();
            *reply
        }
        reply => reply,
    };
    match reply {
        Reply::Answer(status, headers, body) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
        }
        Reply::Begun(headers, start, may, rest) => {
            let length = start.len() + rest.as_ref().map_or(1, String::len);
            let head =
                format!("HTTP/1.1 200 X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n");
            stream.write_all((head + &start).as_bytes()).await?;
            may.acquire().await?.forget();
            stream.write_all(rest.unwrap_or_default().as_bytes()).await?;
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n{\"text\":\"").await?;
            loop {
                stream.write_all(&[b'a'; 4_096]).await?;
            }
        }
        Reply::Never => future::pending().await,
        Reply::Closed | Reply::Held(..) => {}
    }
    Ok(())
}
