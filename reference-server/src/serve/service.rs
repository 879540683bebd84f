//! Processing of every request: id, client address, log line, panics.

use std::{convert::Infallible, net::IpAddr, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{BoxError, Router, body::Body, response::IntoResponse};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CONNECTION,
        CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS,
    },
};
use http_body_util::Either;
use hyper::body::Body as _;
use ipnet::IpNet;
use tower::Service;
use tracing::Instrument as _;

#[cfg(feature = "otel")]
use crate::traces;
use crate::{
    api::{
        AllowedHosts, ClientAddress, CountedBody, PeerAddress, ProblemResponse, RequestId, ResponseBody,
        ResultOrigin, UNRESERVED_RESPONSE_BYTES, V1_PREFIX, X_REQUEST_ID, budgeted, check_head, is_identity,
    },
    log::{AccessLine, LogQueue},
    metrics::{ConnectionGuard, HotCounters, Metrics},
    page::WholeUri,
    response_cache::restrict_shared_caches,
    routes::{self, HtmlError, in_form_of},
    state::AppState,
};

/// The router with everything that all requests pass.
#[derive(Clone, Debug)]
pub(crate) struct HttpService {
    router: Router,
    trusted_proxies: Vec<IpNet>,
    log: LogQueue,
    hosts: AllowedHosts,
    app: Option<AppState>,
    metrics: Option<Arc<Metrics>>,
}

impl HttpService {
    /// Creates a service for this router.
    pub(crate) fn new(router: Router, trusted_proxies: Vec<IpNet>, log: LogQueue) -> Self {
        Self { router, trusted_proxies, log, hosts: AllowedHosts::default(), app: None, metrics: None }
    }

    /// Answers for these hosts only; by default for every host.
    pub(crate) fn with_hosts(self, hosts: AllowedHosts) -> Self {
        Self { hosts, ..self }
    }

    /// Adds the app whose cached responses are sent before the router is called.
    pub(crate) fn with_app(self, app: AppState) -> Self {
        Self { app: Some(app), ..self }
    }

    /// Adds metrics of responses and connections.
    pub(crate) fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Proxies whose forwarding headers are trusted.
    pub(crate) fn trusted_proxies(&self) -> &[IpNet] {
        &self.trusted_proxies
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn connection(&self) -> Option<ConnectionGuard> {
        self.metrics.as_ref().map(Metrics::connection)
    }

    /// Answers a request from `peer`. A panic becomes a 500.
    pub(crate) async fn answer<B>(&self, request: Request<B>, peer: IpAddr) -> Response<ResponseBody>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let started = Instant::now();
        let id = RequestId::from_headers(request.headers());
        let method = request.method().clone();
        let path = self.log.path(request.uri());
        let refusal = check_head(&request).or_else(|| self.hosts.check(&request));
        let ready = match &refusal {
            Some(_) => None,
            None => self.app.as_ref().and_then(|app| routes::cached(app, &request, started)),
        };
        let counters = HotCounters::for_path(request.uri().path());
        let (mut response, from) = match (ready, refusal) {
            (Some(ready), _) => (ready, Some(ResultOrigin::Ready)),
            (None, Some(refusal)) => {
                let mut refused = in_form_of(request.uri().path(), refusal).map(Either::Right);
                if refused.status() == StatusCode::NOT_IMPLEMENTED {
                    // Another server may not agree on where the body ends.
                    refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                (self.page_of_error(&request).apply(refused), None)
            }
            // Boxed, so that a cached response does not carry the state of the slow path.
            (None, None) => Box::pin(self.make(request, peer, started, &id)).await,
        };
        let took = started.elapsed();
        if let Some(metrics) = &self.metrics {
            metrics.count(counters, from, &response, took);
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
        if self.app.as_ref().is_some_and(|app| app.bodies.is_shared()) {
            restrict_shared_caches(headers);
        }
        response
    }

    /// The page that an error of this request becomes in a browser.
    fn page_of_error<B>(&self, request: &Request<B>) -> HtmlError {
        let app = self.app.as_ref();
        let page = app
            .map(|app| HtmlError::for_request(&app.site, request.method(), request.uri(), request.headers()));
        page.unwrap_or_default()
    }

    /// Computes a response that was not cached, and returns its origin if the router was not called.
    ///
    /// A panic becomes a 500.
    async fn make<B>(
        &self,
        request: Request<B>,
        peer: IpAddr,
        started: Instant,
        id: &RequestId,
    ) -> (Response<ResponseBody>, Option<ResultOrigin>)
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let html_error = self.page_of_error(&request);
        let (head, body) = request.into_parts();
        let uri = head.uri.clone();
        let call = AssertUnwindSafe(async {
            if let Some(app) = &self.app
                && let Some((response, from)) = routes::archived(app, &head, started).await
            {
                return (response, Some(from));
            }
            // Every log line of the request has its id. The span is also exported as a trace.
            let span = tracing::error_span!("request", request_id = %id);
            #[cfg(feature = "otel")]
            traces::begin(&span, &head, peer, &self.trusted_proxies);
            let request = Request::from_parts(head, Body::new(body));
            let response = self.route(request, peer).instrument(span.clone()).await;
            #[cfg(feature = "otel")]
            traces::end(&span, &response);
            (response.map(Either::Right), None)
        });
        // The panic hook has logged the panic.
        let fault = |_| (in_form_of(uri.path(), ProblemResponse::fault()).map(Either::Right), None);
        let (answer, from) = call.catch_unwind().await.unwrap_or_else(fault);
        (html_error.apply(answer), from)
    }

    async fn route(&self, mut request: Request<Body>, peer: IpAddr) -> Response<Body> {
        let has_body = !request.body().is_end_stream();
        let is_encoded = has_body && !is_identity(request.headers());
        let is_v1 = request.uri().path().starts_with(V1_PREFIX);
        let client = ClientAddress::from_request(peer, request.headers(), &self.trusted_proxies);
        let uri = WholeUri(request.uri().clone());
        request.extensions_mut().insert(uri);
        request.extensions_mut().insert(client);
        request.extensions_mut().insert(PeerAddress(peer));
        match self.router.clone().call(request).await {
            Ok(mut response) => {
                if response.status() == StatusCode::NOT_MODIFIED {
                    // The router counts the bytes of the omitted body.
                    response.headers_mut().remove(CONTENT_LENGTH);
                }
                if has_body && is_before_end_of_body(response.status()) {
                    // The unread rest of the body blocks the connection, so the client must not reuse it.
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                if is_encoded && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
                    // The accepted content codings (RFC 9110, 15.5.16).
                    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
                }
                match &self.app {
                    Some(app) => reserve(app, response, is_v1),
                    None => response,
                }
            }
            Err(never) => match never {},
        }
    }

    /// Answers a request of a connection.
    pub(crate) async fn serve(
        &self,
        request: Request<hyper::body::Incoming>,
        peer: IpAddr,
    ) -> Result<Response<ResponseBody>, Infallible> {
        Ok(self.answer(request, peer).await)
    }
}

/// Whether a response with this status may be sent before the request body is read.
fn is_before_end_of_body(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// Returns a large response with a reservation of its memory, or 503 if there is none.
///
/// A response of the v1 API may be paid, so it is always sent; its route reserves before the charge.
fn reserve(app: &AppState, response: Response<Body>, is_v1: bool) -> Response<Body> {
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    let Some(bytes) = bytes.filter(|bytes| *bytes > UNRESERVED_RESPONSE_BYTES) else { return response };
    if response.extensions().get::<CountedBody>().is_some() {
        return response;
    }
    let reserved = match is_v1 {
        true => app.account_budget.reserve_available(bytes),
        false => match app.body_budget.try_reserve(bytes) {
            Ok(reserved) => Some(reserved),
            Err(exhausted) => return with_origins_of(response.headers(), exhausted.into_response()),
        },
    };
    match reserved {
        Some(reserved) => response.map(|body| budgeted(body, reserved)),
        None => response,
    }
}

/// The response with the origins of the one that it replaces, so that their pages see its status.
fn with_origins_of(replaced: &HeaderMap, mut response: Response<Body>) -> Response<Body> {
    let names: [HeaderName; 2] = [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS];
    for name in names {
        if let Some(value) = replaced.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}
