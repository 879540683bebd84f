//! The listener for whoever reads figures, apart from that of the service.

use std::{future::Future, sync::Arc, time::Duration};

use axum::{Router, extract::State, response::Response, routing::get};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use tokio::net::TcpListener;

use super::Sources;
use crate::{
    http::{Bounds, Front, Refusal, serve as accept},
    log::Log,
    ready,
};

/// The media type of the text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// How many may be connected at once.
const CONNECTIONS: usize = 64;

/// `GET /metrics`, and what the service's own listener says of how it is.
pub(crate) fn router(sources: Sources) -> Router {
    let readiness = Arc::clone(&sources.readiness);
    let metrics = Router::new()
        .route("/metrics", get(metrics).fallback(ready::wrong_method))
        .with_state(Arc::new(sources));
    metrics.merge(ready::router(readiness)).fallback(nothing)
}

async fn metrics(State(sources): State<Arc<Sources>>) -> Result<Response, Refusal> {
    let text = sources.text().await.map_err(|_| Refusal::fault())?;
    let mut response = Response::new(text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS));
    Ok(response)
}

async fn nothing() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "There is nothing at this address: /metrics, /healthz and /readyz are there.",
    )
}

/// Serves whoever asks until `stop` is ready. Who reads figures leaves no lines in the log.
pub(crate) async fn serve(listener: TcpListener, routes: Router, log: &Log, stop: impl Future<Output = ()>) {
    let front = Front::new(routes, Vec::new(), log.without_requests());
    let bounds = Bounds { connections: CONNECTIONS, grace: Duration::from_secs(1), ..Bounds::default() };
    accept(listener, front, bounds, stop).await;
}
