//! A local proxy that plays a platform in the tests of this crate.
//!
//! It accepts CONNECT for any host, speaks TLS with a certificate of a test authority, and sends scripted
//! responses. The code under test is the production code, including its URLs.

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

use super::{HttpOptions, HttpTransport};

/// A request as the platform received it.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) host: String,
    /// Method, path and query.
    pub(crate) line: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// One step of a scripted response. After the last step the connection closes.
pub(crate) enum ScriptStep {
    Write(Vec<u8>),
    Wait(Duration),
}

/// A response with this status and body.
pub(crate) fn reply(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Vec<ScriptStep> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    vec![ScriptStep::Write([head.as_bytes(), body].concat())]
}

type PlatformScript = dyn Fn(&SeenRequest, usize) -> Vec<ScriptStep> + Send + Sync;

/// The proxy; it stops on drop.
pub(crate) struct FakePlatform {
    address: SocketAddr,
    folder: tempfile::TempDir,
    requests: Arc<Mutex<Vec<SeenRequest>>>,
    _tasks: JoinSet<()>,
}

impl FakePlatform {
    /// Starts a platform that runs `script` for each request.
    ///
    /// The script receives the request and the number of earlier ones.
    pub(crate) async fn start(
        script: impl Fn(&SeenRequest, usize) -> Vec<ScriptStep> + Send + Sync + 'static,
    ) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), script).await
    }

    async fn start_in(
        folder: tempfile::TempDir,
        script: impl Fn(&SeenRequest, usize) -> Vec<ScriptStep> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (pem, config) = authority();
        std::fs::write(folder.path().join("ca.pem"), pem).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Arc<PlatformScript>, _) = (Arc::new(script), Arc::clone(&requests));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, acceptor.clone(), Arc::clone(&script), Arc::clone(&log)));
            }
        });
        Self { address, folder, requests, _tasks: tasks }
    }

    /// The proxy's URL, for the options.
    pub(crate) fn proxy(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Options that reach this platform.
    pub(crate) fn options(&self) -> HttpOptions {
        HttpOptions {
            proxies: vec![self.proxy()],
            ca_file: Some(self.folder.path().join("ca.pem")),
            ..HttpOptions::default()
        }
    }

    /// A transport that reaches this platform.
    pub(crate) fn http(&self) -> Arc<HttpTransport> {
        Arc::new(HttpTransport::new(self.options()).unwrap())
    }

    /// The received requests, in order.
    pub(crate) fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn authority() -> (String, ServerConfig) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = ca.self_signed(&ca_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let names = ["www.youtube.com", "video.twimg.com"].map(str::to_owned).to_vec();
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
    script: Arc<PlatformScript>,
    log: Arc<Mutex<Vec<SeenRequest>>>,
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
    let request = SeenRequest { host, line, headers, body: String::from_utf8(body).unwrap() };
    let before = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        log.len() - 1
    };
    for step in script(&request, before) {
        match step {
            ScriptStep::Write(bytes) => stream.write_all(&bytes).await.ok()?,
            ScriptStep::Wait(time) => tokio::time::sleep(time).await,
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
