//! What happens to every request, whatever its route: its name, its caller, its log line, its panics.

use std::{convert::Infallible, net::IpAddr, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{BoxError, Router, body::Body, response::IntoResponse};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::{Either, Full};
use hyper::body::Body as _;
use ipnet::IpNet;
use tower::Service;
use tracing::Instrument as _;

use super::{
    ClientAddress, Refusal,
    head::refused,
    request_id::{RequestId, X_REQUEST_ID},
};
#[cfg(feature = "otel")]
use crate::traces;
use crate::{
    log::{AccessLine, Log},
    metrics::{CameFrom, Connection, Hot, Metrics},
    routes::{App, Dress, in_form_of, v1},
};

/// The body of an answer: ready bytes, or what a route makes.
pub(crate) type AnswerBody = Either<Full<Bytes>, Body>;

/// The router, and what every request passes on its way there and back.
#[derive(Debug)]
pub(crate) struct Front {
    router: Router,
    trusted_proxies: Vec<IpNet>,
    log: Log,
    app: Option<App>,
    metrics: Option<Arc<Metrics>>,
}

impl Front {
    /// A front before this router.
    pub(crate) fn new(router: Router, trusted_proxies: Vec<IpNet>, log: Log) -> Self {
        Self { router, trusted_proxies, log, app: None, metrics: None }
    }

    /// The same, with an app whose ready answers are sent before any router is asked.
    pub(crate) fn with_ready(self, app: App) -> Self {
        Self { app: Some(app), ..self }
    }

    /// The same, whose answers and connections are counted.
    pub(crate) fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// What counts a connection for as long as it is kept.
    pub(crate) fn connection(&self) -> Option<Connection> {
        self.metrics.as_ref().map(Metrics::connection)
    }

    /// Answers a request that came from `peer`. It never fails: a panic becomes a 500.
    pub(crate) async fn answer<B>(&self, request: Request<B>, peer: IpAddr) -> Response<AnswerBody>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let started = Instant::now();
        let id = RequestId::of(request.headers());
        let method = request.method().clone();
        let path = self.log.path(request.uri());
        let refusal = refused(&request);
        let ready = match &refusal {
            Some(_) => None,
            None => self.app.as_ref().and_then(|app| app.bodies.ready(&request, started)),
        };
        let hot = Hot::of(request.uri().path());
        let (mut response, from) = match (ready, refusal) {
            (Some(ready), _) => (ready.map(Either::Left), Some(CameFrom::Ready)),
            (None, Some(refusal)) => (in_form_of(request.uri().path(), refusal).map(Either::Right), None),
            // In a box: a ready answer need not carry around the room for one that is made.
            (None, None) => Box::pin(self.make(request, peer, started, &id)).await,
        };
        let took = started.elapsed();
        if let Some(metrics) = &self.metrics {
            metrics.count(hot, from, &response, took);
        }
        let header = id.header();
        if let Some(path) = path {
            self.log.access(AccessLine {
                method,
                path,
                status: response.status(),
                bytes: response.body().size_hint().exact().unwrap_or(0),
                took,
                id,
            });
        }
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, header);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    /// Makes the answer that was not ready; tells where it came from, where the router was not asked. A panic becomes
    /// a 500.
    async fn make<B>(
        &self,
        request: Request<B>,
        peer: IpAddr,
        started: Instant,
        id: &RequestId,
    ) -> (Response<AnswerBody>, Option<CameFrom>)
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let dress = Dress::of(&head.uri, &head.headers);
        let call = AssertUnwindSafe(async {
            if let Some(app) = &self.app {
                if let Some((response, from)) = app.bodies.archived(&head, started).await {
                    return (response.map(Either::Left), Some(from));
                }
                if let Some(response) = v1::charged(app, &head).await {
                    return (response.map(Either::Right), Some(CameFrom::Ready));
                }
            }
            // What is logged of it names it, whatever is logged; and it is what is traced.
            let span = tracing::error_span!("request", request_id = %id);
            #[cfg(feature = "otel")]
            traces::begin(&span, &head, peer, &self.trusted_proxies);
            let request = Request::from_parts(head, Body::new(body));
            let response = self.route(request, peer).instrument(span.clone()).await;
            #[cfg(feature = "otel")]
            traces::end(&span, &response);
            (response.map(Either::Right), None)
        });
        // The panic hook has logged what and where.
        let fault = |_| (Refusal::fault().into_response().map(Either::Right), None);
        let (answer, from) = call.catch_unwind().await.unwrap_or_else(fault);
        (dress.on(answer), from)
    }

    async fn route(&self, mut request: Request<Body>, peer: IpAddr) -> Response<Body> {
        let client = ClientAddress::of(peer, request.headers(), &self.trusted_proxies);
        request.extensions_mut().insert(client);
        match self.router.clone().call(request).await {
            Ok(mut response) => {
                if response.status() == StatusCode::NOT_MODIFIED {
                    // The router counts the bytes of the body that is not there.
                    response.headers_mut().remove(CONTENT_LENGTH);
                }
                if matches!(response.status(), StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
                    // The rest of the body is in the way of another request: its sender must know that none is heard.
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                response
            }
            Err(never) => match never {},
        }
    }

    /// The same for a request off the wire.
    pub(crate) async fn serve(
        &self,
        request: Request<hyper::body::Incoming>,
        peer: IpAddr,
    ) -> Result<Response<AnswerBody>, Infallible> {
        Ok(self.answer(request, peer).await)
    }
}
