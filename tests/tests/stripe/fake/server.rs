//! The HTTP server of the fake: authentication, idempotency and dispatch.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    FakeStripeShared, KEY,
    state::{FakeRejection, FormFields, StripeState},
};

/// A request and its response.
#[derive(Clone, Debug)]
pub(crate) struct FakeExchange {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The raw query or form.
    pub(crate) fields: String,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) status: u16,
    pub(crate) answer: Value,
}

pub(super) async fn start(shared: Arc<FakeStripeShared>) -> Result<(SocketAddr, JoinSet<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            connections.spawn(async move {
                let service = service_fn(move |request| answer(Arc::clone(&shared), request));
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                // A client may close its connection at any time.
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    Ok((address, server))
}

async fn answer(
    shared: Arc<FakeStripeShared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let fields = match head.method {
        Method::GET => head.uri.query().unwrap_or_default().to_owned(),
        _ => String::from_utf8_lossy(&body).into_owned(),
    };
    let path = head.uri.path().to_owned();
    let (status, value) = match shared.is_away.load(Ordering::Relaxed) {
        true => (503, FakeRejection::new(503, "", "").body()),
        false => handle(&mut shared.state(), &head.headers, &head.method, &path, &fields),
    };
    let exchange = FakeExchange {
        method: head.method,
        path,
        fields,
        idempotency_key: text(&head.headers, "idempotency-key"),
        status,
        answer: value.clone(),
    };
    shared.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    let response = Response::builder()
        .status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .header(header::CONTENT_TYPE, "application/json")
        .header("request-id", "req_verbatim");
    let body = serde_json::to_vec_pretty(&value).unwrap_or_default();
    Ok(response.body(Full::new(body.into())).unwrap_or_default())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Handles one request: checks the API key, the version and the idempotency key.
fn handle(
    state: &mut StripeState,
    headers: &HeaderMap,
    method: &Method,
    path: &str,
    fields: &str,
) -> (u16, Value) {
    let reject = |refusal: FakeRejection| (refusal.status, refusal.body());
    if text(headers, "authorization") != Some(format!("Bearer {KEY}")) {
        return reject(FakeRejection::new(401, "api_key_invalid", ""));
    }
    if text(headers, "stripe-version").as_deref() != Some("2026-08-26.dahlia") {
        return reject(FakeRejection::new(400, "unknown_version", ""));
    }
    let request_line = format!("{method} {path} {fields}");
    let key = text(headers, "idempotency-key").filter(|_| *method == Method::POST);
    if let Some((first, status, value)) = key.as_ref().and_then(|key| state.idempotent_responses.get(key)) {
        return match *first == request_line {
            true => (*status, value.clone()),
            false => reject(FakeRejection::new(400, "idempotency_error", "")),
        };
    }
    let outcome = state.handle(method, path, &FormFields::parse(fields));
    let (status, value) = outcome.map_or_else(reject, |value| (200, value));
    if let Some(key) = key {
        state.idempotent_responses.insert(key, (request_line, status, value.clone()));
    }
    (status, value)
}

impl FakeRejection {
    fn body(&self) -> Value {
        json!({ "error": {
            "type": "invalid_request_error",
            "code": self.code,
            "param": self.param,
            "message": "The fake rejects this request.",
        }})
    }
}
