//! The metrics endpoint, and the listener for it and for the admin API, apart from the service's listener.

use std::{future::Future, sync::Arc, time::Duration};

use axum::{Router, extract::State, response::Response, routing::get};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};

use super::{ConnectionLimits, CurrentService, HttpService, Listener, serve as accept};
use crate::{
    api::{AllowedHosts, ProblemResponse},
    log::LogQueue,
    metrics::MetricsSources,
    routes::{health, readiness},
};

/// Media type of the metrics text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Limit of concurrent connections of each of the two listeners.
const CONNECTIONS: usize = 64;

/// Routes of the metrics listener: `GET /metrics` and the health endpoints.
pub(crate) fn router(sources: MetricsSources) -> Router {
    let readiness = Arc::clone(&sources.readiness);
    let metrics = Router::new()
        .route("/metrics", get(metrics).fallback(readiness::method_not_allowed))
        .route("/health", get(health::health).fallback(readiness::method_not_allowed))
        .with_state(Arc::new(sources));
    metrics.merge(readiness::router(readiness)).fallback(not_found)
}

async fn metrics(State(sources): State<Arc<MetricsSources>>) -> Result<Response, ProblemResponse> {
    let text = sources.text().await.map_err(|_| ProblemResponse::fault())?;
    let mut response = Response::new(text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS));
    Ok(response)
}

async fn not_found() -> ProblemResponse {
    ProblemResponse::new(
        StatusCode::NOT_FOUND,
        "There is nothing at this address. Try /metrics, /healthz or /readyz.",
    )
}

/// The service of the metrics listener. Requests for metrics are not logged.
pub(crate) fn service(routes: Router, log: &LogQueue, hosts: AllowedHosts) -> HttpService {
    HttpService::new(routes, Vec::new(), log.without_requests()).with_hosts(hosts)
}

/// Serves metrics or the admin API until `stop` resolves. Running requests may then take as long as `grace`.
pub(crate) async fn serve(
    listener: Listener,
    service: CurrentService,
    grace: Duration,
    stop: impl Future<Output = ()>,
) {
    let limits = ConnectionLimits { connections: CONNECTIONS, grace, ..ConnectionLimits::default() };
    accept(listener, service, limits, stop).await;
}
