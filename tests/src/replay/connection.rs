//! The proxy's server: CONNECT, TLS, and the requests inside the tunnels.

use std::{convert::Infallible, future::pending, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode, header::CONTENT_LENGTH};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
    upgrade::Upgraded,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    ReplayResponse, Script, SeenRequest, SeenTunnel, TestAuthority, Tunnel, UNEXPECTED,
    request_log::RequestLog, response::ResponseMode,
};

/// Maximum of connections served at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1_024;

/// Timeout of a request head and of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a request body that is read.
const BODY_MAX: usize = 1 << 20;

/// Pause before an interrupted response is aborted, so that its first part is really sent.
const FLUSH: Duration = Duration::from_millis(20);

type ReplayBody = BoxBody<Bytes, io::Error>;

/// State that all connections share.
#[derive(Clone, Debug)]
pub(super) struct ConnectionStage {
    script: Arc<Script>,
    log: Arc<RequestLog>,
    authority: Arc<TestAuthority>,
}

impl ConnectionStage {
    pub(super) fn new(script: Script, log: Arc<RequestLog>, authority: Arc<TestAuthority>) -> Self {
        Self { script: Arc::new(script), log, authority }
    }
}

/// Accepts connections until the proxy stops or is dropped.
pub(super) async fn accept(
    listener: std::net::TcpListener,
    stage: ConnectionStage,
    stopped: oneshot::Receiver<()>,
) {
    // It fails only without an I/O driver, which the proxy's runtime has.
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let accept_loop = async {
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve_client(stream, stage.clone(), Arc::new(permit)));
                }
                // Most likely out of file descriptors: some may be free again soon.
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::select! {
        () = accept_loop => {}
        _ = stopped => {}
    }
}

/// Serves one client's connection, before any tunnel.
async fn serve_client(stream: TcpStream, stage: ConnectionStage, permit: Arc<OwnedSemaphorePermit>) {
    // Without this, small responses wait for acknowledgements, and every test and measurement is slower.
    let _unsupported = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let (stage, permit) = (stage.clone(), Arc::clone(&permit));
        async move {
            if request.method() == Method::CONNECT {
                connect(request, stage, permit).await
            } else {
                let host = request.uri().host().unwrap_or_default().to_owned();
                let entry = read(&stage, "http", host, request).await;
                Ok(unexpected(&stage, entry, "no tunnel"))
            }
        }
    });
    let _client_left = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

/// Responds to a CONNECT request, and serves the tunnel if it is granted.
async fn connect(
    request: Request<Incoming>,
    stage: ConnectionStage,
    permit: Arc<OwnedSemaphorePermit>,
) -> io::Result<Response<ReplayBody>> {
    let host = request.uri().host().unwrap_or_default().to_ascii_lowercase();
    let port = request.uri().port_u16().unwrap_or(443);
    let tunnel = stage.script.tunnel(&host, port);
    let granted = matches!(tunnel, Tunnel::Open | Tunnel::OtherCertificate(_));
    let authorization = request.headers().get("proxy-authorization");
    stage.log.add_tunnel(SeenTunnel {
        host: host.clone(),
        port,
        granted,
        authorization: authorization.and_then(|value| value.to_str().ok()).map(str::to_owned),
    });
    let certificate_name = match tunnel {
        Tunnel::Open => host.clone(),
        Tunnel::OtherCertificate(name) => name,
        Tunnel::Refuse(status) => {
            return Ok(plain(status, "the replay proxy refuses this tunnel\n".to_owned()));
        }
        Tunnel::Never => pending().await,
        Tunnel::Close => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    tokio::spawn(async move {
        // Failures here are the client's: it disconnected, or does not trust the certificate.
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let _client_left = serve_tunnel(upgraded, host, &certificate_name, stage).await;
        }
        drop(permit);
    });
    Ok(plain(200, String::new()))
}

/// Serves TLS as the requested host, and the requests inside.
async fn serve_tunnel(
    upgraded: Upgraded,
    host: String,
    certificate_name: &str,
    stage: ConnectionStage,
) -> anyhow::Result<()> {
    let config = stage.authority.server_config(certificate_name, stage.script.is_http1_only())?;
    let stream =
        timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(TokioIo::new(upgraded))).await??;
    let closing = Arc::new(Notify::new());
    let service = service_fn(|request| {
        let (stage, host, closing) = (stage.clone(), host.clone(), Arc::clone(&closing));
        async move { Ok::<_, Infallible>(respond(&stage, host, request, &closing).await) }
    });
    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        _client_left = server.serve_connection(TokioIo::new(stream), service) => {}
        // Returning drops the connection, with either protocol.
        () = closing.notified() => {}
    }
    Ok(())
}

/// Responds to one request inside a tunnel.
async fn respond(
    stage: &ConnectionStage,
    host: String,
    request: Request<Incoming>,
    closing: &Notify,
) -> Response<ReplayBody> {
    let mut entry = read(stage, "https", host, request).await;
    let Some(reply) = stage.script.play(&entry) else {
        return unexpected(stage, entry, "no rule of the script matches it");
    };
    entry.expected = true;
    stage.log.add_request(entry);
    sleep(reply.delay).await;
    if let Some(gate) = &reply.gate {
        // The permit is returned at once for the other responses.
        drop(gate.acquire().await);
    }
    match reply.mode {
        ResponseMode::Never => pending().await,
        ResponseMode::Closed => {
            closing.notify_one();
            pending().await
        }
        _ => response(reply),
    }
}

/// Reads a whole request. A body that is too long or interrupted counts as empty.
async fn read(
    stage: &ConnectionStage,
    scheme: &'static str,
    host: String,
    request: Request<Incoming>,
) -> SeenRequest {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_MAX).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let query = head.uri.query().unwrap_or_default();
    SeenRequest {
        at: stage.log.elapsed(),
        scheme,
        host,
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: head.headers,
        body,
        expected: false,
    }
}

/// Records an unexpected request and responds with [`UNEXPECTED`].
fn unexpected(stage: &ConnectionStage, entry: SeenRequest, why: &str) -> Response<ReplayBody> {
    let text =
        format!("replay proxy: {} {}://{}{}: {why}\n", entry.method, entry.scheme, entry.host, entry.path);
    stage.log.add_request(entry);
    plain(UNEXPECTED, text)
}

fn plain(status: u16, text: String) -> Response<ReplayBody> {
    response(if text.is_empty() {
        ReplayResponse::status(status)
    } else {
        ReplayResponse::text(text).with_status(status)
    })
}

/// The HTTP response, sent in its mode.
fn response(reply: ReplayResponse) -> Response<ReplayBody> {
    let ReplayResponse { status, headers, body, mode: manner, .. } = reply;
    let length = body.len();
    let mut response = Response::new(match manner {
        ResponseMode::Slow { bytes, pause } => slow(body, bytes, pause),
        ResponseMode::Cut { after } => cut(body, after),
        ResponseMode::Endless => endless(body),
        ResponseMode::Whole | ResponseMode::Never | ResponseMode::Closed => {
            Full::new(body).map_err(|never| match never {}).boxed()
        }
    });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (http::HeaderName::try_from(name), http::HeaderValue::try_from(value))
        {
            response.headers_mut().append(name, value);
        }
    }
    if matches!(manner, ResponseMode::Slow { .. } | ResponseMode::Cut { .. }) {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

/// The body in pieces, with a pause before each.
fn slow(body: Bytes, bytes: usize, pause: Duration) -> ReplayBody {
    let pieces = stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        sleep(pause).await;
        let piece = rest.split_to(bytes.min(rest.len()));
        Some((Ok(Frame::data(piece)), rest))
    });
    BodyExt::boxed(StreamBody::new(Box::pin(pieces)))
}

/// The start of the body, and then an aborted connection.
fn cut(mut body: Bytes, after: usize) -> ReplayBody {
    let beginning = body.split_to(after.min(body.len()));
    let pieces = stream::unfold(Some(beginning), |rest| async move {
        match rest {
            Some(piece) if !piece.is_empty() => Some((Ok(Frame::data(piece)), Some(Bytes::new()))),
            Some(_) => {
                sleep(FLUSH).await;
                Some((Err(io::ErrorKind::ConnectionAborted.into()), None))
            }
            None => None,
        }
    });
    BodyExt::boxed(StreamBody::new(Box::pin(pieces)))
}

/// The body repeated without end. Flow control limits the data in flight.
fn endless(body: Bytes) -> ReplayBody {
    let piece = if body.is_empty() { Bytes::from_static(b"\0") } else { body };
    let pieces = stream::unfold(piece, |piece| async move {
        // The proxy has one thread: without this, a fast client would occupy it.
        tokio::task::yield_now().await;
        Some((Ok(Frame::data(piece.clone())), piece))
    });
    BodyExt::boxed(StreamBody::new(Box::pin(pieces)))
}
