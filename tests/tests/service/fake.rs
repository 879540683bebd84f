//! A server that sends scripted responses.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// The reaction to one request.
#[derive(Clone, Debug)]
pub(super) enum FakeReply {
    /// Sends these bytes, head included, and closes the connection.
    Raw(String),
    /// Sends these bytes, and then zeros without end.
    Endless(String),
    /// Never responds.
    Never,
}

impl FakeReply {
    /// A response with a status, header lines and a body.
    pub(super) fn new(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Raw(format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }
}

type FakeScript = dyn Fn(usize) -> FakeReply + Send + Sync;

/// The server; drop stops it.
pub(super) struct FakeService {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl FakeService {
    /// Starts a server that responds by `script`, which receives the number of earlier requests.
    pub(super) async fn start(script: impl Fn(usize) -> FakeReply + Send + Sync + 'static) -> Result<Self> {
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
        Ok(Self { url, requests, _tasks: tasks })
    }

    /// The heads of the received requests, in order and in lower case.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The value of a header in a head.
pub(super) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

async fn serve(mut stream: TcpStream, script: &FakeScript, log: &Mutex<Vec<String>>) -> Result<()> {
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
    let length = header(&head, "content-length").map_or(Ok(0), str::parse::<usize>)?;
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    let before = {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(head);
        log.len() - 1
    };
    match script(before) {
        FakeReply::Raw(answer) => stream.write_all(answer.as_bytes()).await?,
        FakeReply::Endless(start) => {
            stream.write_all(start.as_bytes()).await?;
            let zeros = vec![b'0'; 64 << 10];
            loop {
                stream.write_all(&zeros).await?;
            }
        }
        FakeReply::Never => std::future::pending().await,
    }
    Ok(stream.shutdown().await?)
}
