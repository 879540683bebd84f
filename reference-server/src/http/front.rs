//! What happens to every request, whatever its route: its name, its caller, its log line, its panics.

use std::{convert::Infallible, net::IpAddr, panic::AssertUnwindSafe, time::Instant};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use http::{HeaderValue, Request, header::X_CONTENT_TYPE_OPTIONS};
use hyper::body::Body as _;
use ipnet::IpNet;
use tower::Service;

use super::{
    ClientAddress, Refusal,
    request_id::{X_REQUEST_ID, request_id},
};
use crate::log::{AccessLine, Log};

/// The router, and what every request passes on its way there and back.
#[derive(Debug)]
pub(crate) struct Front {
    router: Router,
    trusted_proxies: Vec<IpNet>,
    log: Log,
}

impl Front {
    /// A front before this router.
    pub(crate) fn new(router: Router, trusted_proxies: Vec<IpNet>, log: Log) -> Self {
        Self { router, trusted_proxies, log }
    }

    /// Answers a request that came from `peer`. It never fails: a panic becomes a 500.
    pub(crate) async fn answer(&self, mut request: Request<Body>, peer: IpAddr) -> Response {
        let started = Instant::now();
        let id = request_id(request.headers());
        let client = ClientAddress::of(peer, request.headers(), &self.trusted_proxies);
        request.extensions_mut().insert(client);
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let mut router = self.router.clone();
        let call = AssertUnwindSafe(async move { router.call(request).await });
        let mut response = match call.catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            // The panic hook has logged what and where.
            Err(_) => Refusal::fault().into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, id.clone());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        self.log.access(AccessLine {
            method,
            path,
            status: response.status(),
            bytes: response.body().size_hint().exact().unwrap_or(0),
            took: started.elapsed(),
            id,
        });
        response
    }

    /// The same for a request off the wire.
    pub(crate) async fn serve(
        &self,
        request: Request<hyper::body::Incoming>,
        peer: IpAddr,
    ) -> Result<Response, Infallible> {
        Ok(self.answer(request.map(Body::new), peer).await)
    }
}
