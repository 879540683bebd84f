//! A server that answers as the test says.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// What it does.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// It sends these bytes, head and all, and hangs up.
    Raw(String),
    /// It sends these bytes, and then zeros without end.
    Endless(String),
    /// It never answers.
    Never,
}

impl Reply {
    /// An answer with a status, lines of headers and a body.
    pub(super) fn of(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Raw(format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }
}

type Script = dyn Fn(usize) -> Reply + Send + Sync;

/// The server; it ends with the value.
pub(super) struct Fake {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Fake {
    /// A server that answers by `script`, which gets how many requests came before.
    pub(super) async fn start(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                connections.spawn(async move {
                    // A client that leaves is no fault of the server.
                    let _ = serve(stream, script.as_ref(), &log).await;
                });
            }
        });
        Ok(Self { url, seen, _tasks: tasks })
    }

    /// The heads of the requests that came, in order and in lower case.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The value of a header in a head.
pub(super) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

async fn serve(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<String>>) -> Result<()> {
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
        Reply::Raw(answer) => stream.write_all(answer.as_bytes()).await?,
        Reply::Endless(start) => {
            stream.write_all(start.as_bytes()).await?;
            let zeros = vec![b'0'; 64 << 10];
            loop {
                stream.write_all(&zeros).await?;
            }
        }
        Reply::Never => std::future::pending().await,
    }
    Ok(stream.shutdown().await?)
}
