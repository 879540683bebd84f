//! The proxy's server: CONNECT, TLS, and the requests inside.

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
    Answer, Script, SeenRequest, SeenTunnel, TestAuthority, Tunnel, UNEXPECTED, answer::Manner,
    ledger::Ledger,
};

/// How many connections are served at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1_024;

/// How long a client may take for a request's head or a TLS handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of a request's body is read; more is an unexpected request.
const BODY_MAX: usize = 1 << 20;

/// How long a broken-off answer waits before it breaks, so that its first part is really sent.
const FLUSH: Duration = Duration::from_millis(20);

type Body = BoxBody<Bytes, io::Error>;

/// What all connections share.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    script: Arc<Script>,
    seen: Arc<Ledger>,
    authority: Arc<TestAuthority>,
}

impl Stage {
    pub(super) fn new(script: Script, seen: Arc<Ledger>, authority: Arc<TestAuthority>) -> Self {
        Self { script: Arc::new(script), seen, authority }
    }
}

/// Accepts connections until it is told to stop, or the proxy is gone.
pub(super) async fn accept(listener: std::net::TcpListener, stage: Stage, stopped: oneshot::Receiver<()>) {
    // It fails only without an I/O driver, which the proxy's runtime has.
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let accepting = async {
        while let Ok(place) = Arc::clone(&room).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve_client(stream, stage.clone(), Arc::new(place)));
                }
                // Out of file descriptors, most likely: some may be free again soon.
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = stopped => {}
    }
}

/// One client's connection, before any tunnel.
async fn serve_client(stream: TcpStream, stage: Stage, place: Arc<OwnedSemaphorePermit>) {
    // Without this, small answers wait for acknowledgements and every test and measurement is slower.
    let _unsupported = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let (stage, place) = (stage.clone(), Arc::clone(&place));
        async move {
            if request.method() == Method::CONNECT {
                connect(request, stage, place).await
            } else {
                let host = request.uri().host().unwrap_or_default().to_owned();
                let seen = read(&stage, "http", host, request).await;
                Ok(unexpected(&stage, seen, "no tunnel"))
            }
        }
    });
    let _client_left = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

/// Answers a request for a tunnel, and serves the tunnel when it is granted.
async fn connect(
    request: Request<Incoming>,
    stage: Stage,
    place: Arc<OwnedSemaphorePermit>,
) -> io::Result<Response<Body>> {
    let host = request.uri().host().unwrap_or_default().to_ascii_lowercase();
    let port = request.uri().port_u16().unwrap_or(443);
    let tunnel = stage.script.tunnel(&host, port);
    let granted = matches!(tunnel, Tunnel::Open | Tunnel::OtherCertificate(_));
    let authorization = request.headers().get("proxy-authorization");
    stage.seen.add_tunnel(SeenTunnel {
        host: host.clone(),
        port,
        granted,
        authorization: authorization.and_then(|value| value.to_str().ok()).map(str::to_owned),
    });
    let certified = match tunnel {
        Tunnel::Open => host.clone(),
        Tunnel::OtherCertificate(name) => name,
        Tunnel::Refuse(status) => {
            return Ok(plain(status, "the replay proxy refuses this tunnel\n".to_owned()));
        }
        Tunnel::Never => pending().await,
        Tunnel::Close => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    tokio::spawn(async move {
        // Failures here are the client's: it left, or it does not trust the certificate.
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let _client_left = serve_tunnel(upgraded, host, &certified, stage).await;
        }
        drop(place);
    });
    Ok(plain(200, String::new()))
}

/// TLS as the host that was asked for, and the requests inside.
async fn serve_tunnel(upgraded: Upgraded, host: String, certified: &str, stage: Stage) -> anyhow::Result<()> {
    let config = stage.authority.server_config(certified, stage.script.is_http1_only())?;
    let stream = timeout(PATIENCE, TlsAcceptor::from(config).accept(TokioIo::new(upgraded))).await??;
    let closing = Arc::new(Notify::new());
    let service = service_fn(|request| {
        let (stage, host, closing) = (stage.clone(), host.clone(), Arc::clone(&closing));
        async move { Ok::<_, Infallible>(answer_request(&stage, host, request, &closing).await) }
    });
    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        _client_left = server.serve_connection(TokioIo::new(stream), service) => {}
        // Leaving this function drops the connection itself, whichever protocol it speaks.
        () = closing.notified() => {}
    }
    Ok(())
}

/// Answers one request inside a tunnel.
async fn answer_request(
    stage: &Stage,
    host: String,
    request: Request<Incoming>,
    closing: &Notify,
) -> Response<Body> {
    let mut seen = read(stage, "https", host, request).await;
    let Some(answer) = stage.script.play(&seen) else {
        return unexpected(stage, seen, "no rule of the script expects it");
    };
    seen.expected = true;
    stage.seen.add_request(seen);
    sleep(answer.delay).await;
    if let Some(gate) = &answer.gate {
        // It is given back at once, for the others; a gate that is closed holds nobody.
        drop(gate.acquire().await);
    }
    match answer.manner {
        Manner::Never => pending().await,
        Manner::Closed => {
            closing.notify_one();
            pending().await
        }
        _ => response(answer),
    }
}

/// Reads a request whole. A body that is too long or broken off counts as empty.
async fn read(stage: &Stage, scheme: &'static str, host: String, request: Request<Incoming>) -> SeenRequest {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_MAX).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let query = head.uri.query().unwrap_or_default();
    SeenRequest {
        at: stage.seen.age(),
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

/// Keeps a request that the script does not expect, and says so to the client.
fn unexpected(stage: &Stage, seen: SeenRequest, why: &str) -> Response<Body> {
    let text = format!("replay proxy: {} {}://{}{}: {why}\n", seen.method, seen.scheme, seen.host, seen.path);
    stage.seen.add_request(seen);
    plain(UNEXPECTED, text)
}

fn plain(status: u16, text: String) -> Response<Body> {
    response(if text.is_empty() { Answer::status(status) } else { Answer::text(text).with_status(status) })
}

/// The answer on its way, in its manner.
fn response(answer: Answer) -> Response<Body> {
    let Answer { status, headers, body, manner, .. } = answer;
    let length = body.len();
    let mut response = Response::new(match manner {
        Manner::Slow { bytes, pause } => slow(body, bytes, pause),
        Manner::Cut { after } => cut(body, after),
        Manner::Endless => endless(body),
        Manner::Whole | Manner::Never | Manner::Closed => {
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
    if matches!(manner, Manner::Slow { .. } | Manner::Cut { .. }) {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

/// The body in pieces, with a pause before each.
fn slow(body: Bytes, bytes: usize, pause: Duration) -> Body {
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

/// The body's beginning, and then a broken connection.
fn cut(mut body: Bytes, after: usize) -> Body {
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

/// The body over and over. What is in flight is bounded by what the client takes.
fn endless(body: Bytes) -> Body {
    let piece = if body.is_empty() { Bytes::from_static(b"\0") } else { body };
    let pieces = stream::unfold(piece, |piece| async move {
        // The proxy has one thread: without this, a client that reads fast would keep it to itself.
        tokio::task::yield_now().await;
        Some((Ok(Frame::data(piece.clone())), piece))
    });
    BodyExt::boxed(StreamBody::new(Box::pin(pieces)))
}
