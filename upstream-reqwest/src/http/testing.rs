//! A small proxy on the loopback that plays a platform, for the tests of this crate: it accepts CONNECT
//! for any host, speaks TLS under a certificate of its own authority, and answers as the test says.
//! So the code under test is the code in production, to the URL.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{Http, HttpOptions};

/// A request as the platform saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) host: String,
    /// Method, path and query.
    pub(crate) line: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// What the platform does for an answer, step by step; afterwards it closes the connection.
pub(crate) enum Step {
    Write(Vec<u8>),
    Wait(Duration),
}

/// An answer with this status and body.
pub(crate) fn answer(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    vec![Step::Write([head.as_bytes(), body].concat())]
}

type Script = dyn Fn(&Seen, usize) -> Vec<Step> + Send + Sync;

/// The proxy; it ends with the value.
pub(crate) struct Platform {
    address: SocketAddr,
    folder: tempfile::TempDir,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

impl Platform {
    /// A platform that answers each request by `script`, which gets the request and how many came before.
    pub(crate) async fn start(script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), script).await
    }

    async fn start_in(
        folder: tempfile::TempDir,
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (pem, config) = authority();
        std::fs::write(folder.path().join("ca.pem"), pem).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, acceptor.clone(), Arc::clone(&script), Arc::clone(&log)));
            }
        });
        Self { address, folder, seen, _tasks: tasks }
    }

    /// The proxy's address, for the options.
    pub(crate) fn proxy(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Options that reach this platform quickly: short pauses are the transport's own.
    pub(crate) fn options(&self) -> HttpOptions {
        HttpOptions {
            proxies: vec![self.proxy()],
            ca_file: Some(self.folder.path().join("ca.pem")),
            ..HttpOptions::default()
        }
    }

    /// A transport that reaches this platform.
    pub(crate) fn http(&self) -> Arc<Http> {
        Arc::new(Http::new(self.options()).unwrap())
    }

    /// The requests that came, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn authority() -> (String, ServerConfig) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = ca.self_signed(&ca_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let names = vec!["www.youtube.com".to_owned()];
    let certificate =
        CertificateParams::new(names).unwrap().signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (pem, config)
}

async fn serve(
    mut stream: TcpStream,
    acceptor: TlsAcceptor,
    script: Arc<Script>,
    log: Arc<Mutex<Vec<Seen>>>,
) -> Option<()> {
    let (connect, _) = read_head(&mut stream).await?;
    let host = connect.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    let mut stream = acceptor.accept(stream).await.ok()?;
    let (line, headers) = read_head(&mut stream).await?;
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let line = line.trim_end_matches(" HTTP/1.1").to_owned();
    let seen = Seen { host, line, headers, body: String::from_utf8(body).unwrap() };
    let before = {
        let mut log = log.lock().unwrap();
        log.push(seen.clone());
        log.len() - 1
    };
    for step in script(&seen, before) {
        match step {
            Step::Write(bytes) => stream.write_all(&bytes).await.ok()?,
            Step::Wait(time) => tokio::time::sleep(time).await,
        }
        stream.flush().await.ok()?;
    }
    stream.shutdown().await.ok()
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, BTreeMap<String, String>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    Some((line, headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect()))
}
