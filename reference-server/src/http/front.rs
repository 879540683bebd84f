//! What happens to every request, whatever its route: its name, its caller, its log line, its panics.

use std::{convert::Infallible, net::IpAddr, panic::AssertUnwindSafe, time::Instant};

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

use super::{
    ClientAddress, Refusal,
    head::refused,
    request_id::{RequestId, X_REQUEST_ID},
};
use crate::{
    log::{AccessLine, Log},
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
}

impl Front {
    /// A front before this router.
    pub(crate) fn new(router: Router, trusted_proxies: Vec<IpNet>, log: Log) -> Self {
        Self { router, trusted_proxies, log, app: None }
    }

    /// The same, with an app whose ready answers are sent before any router is asked.
    pub(crate) fn with_ready(self, app: App) -> Self {
        Self { app: Some(app), ..self }
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
        let ready = match refused(&request) {
            Some(refusal) => Some(in_form_of(request.uri().path(), refusal).map(Either::Right)),
            None => {
                let ready = self.app.as_ref().and_then(|app| app.bodies.ready(&request, started));
                ready.map(|ready| ready.map(Either::Left))
            }
        };
        let mut response = match ready {
            Some(response) => response,
            // In a box: a ready answer need not carry around the room for one that is made.
            None => Box::pin(self.make(request, peer, started)).await,
        };
        let header = id.header();
        if let Some(path) = path {
            self.log.access(AccessLine {
                method,
                path,
                status: response.status(),
                bytes: response.body().size_hint().exact().unwrap_or(0),
                took: started.elapsed(),
                id,
            });
        }
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, header);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    /// Makes the answer that was not ready. A panic becomes a 500.
    async fn make<B>(&self, request: Request<B>, peer: IpAddr, started: Instant) -> Response<AnswerBody>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let dress = Dress::of(&head.uri, &head.headers);
        let call = AssertUnwindSafe(async {
            if let Some(app) = &self.app {
                if let Some(response) = app.bodies.archived(&head, started).await {
                    return response.map(Either::Left);
                }
                if let Some(response) = v1::charged(app, &head).await {
                    return response.map(Either::Right);
                }
            }
            self.route(Request::from_parts(head, Body::new(body)), peer).await.map(Either::Right)
        });
        // The panic hook has logged what and where.
        let answer =
            call.catch_unwind().await.unwrap_or_else(|_| Refusal::fault().into_response().map(Either::Right));
        dress.on(answer)
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
