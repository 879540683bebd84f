//! Builds the services of the two listeners from the settings.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};
use verbatim::Verbatim;

use super::operations;
use crate::{
    admin::{self, AdminState},
    api::{AllowedHosts, ByteBudget},
    config::Settings,
    log::LogQueue,
    mcp::PassageCache,
    metrics::{self, Metrics},
    openapi,
    response_cache::ResponseCache,
    routes::{Readiness, readiness, register_peer_request, router},
    serve::{self, HttpService},
    state::AppState,
};

/// Builds the service of the main listener. What it has does not depend on reloadable settings.
#[derive(Clone, Debug)]
pub(super) struct ServiceBuilder {
    /// Address of the listener.
    pub(super) address: SocketAddr,
    /// State of the routes at the start, whose caches all services share.
    pub(super) app: AppState,
    /// Passages of transcripts for assistants.
    pub(super) passages: PassageCache,
    pub(super) readiness: Arc<Readiness>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) log: LogQueue,
}

impl ServiceBuilder {
    /// Returns the service with these settings, over the services of this handle.
    pub(super) fn build(&self, settings: &Settings, verbatim: &Verbatim) -> HttpService {
        let app = self.app.with_services(verbatim);
        let routes =
            router(app.clone(), self.passages.clone(), &settings.server.cors_origins, openapi::document);
        let routes = routes.layer(from_fn_with_state(verbatim.clone(), register_peer_request));
        let routes = routes.merge(readiness::router(Arc::clone(&self.readiness)));
        let routes = routes.layer(from_fn(metrics::matched));
        let trusted_proxies = settings.server.trusted_proxies.clone();
        HttpService::new(routes, trusted_proxies, self.log.clone())
            .with_app(app)
            .with_metrics(Arc::clone(&self.metrics))
            .with_hosts(AllowedHosts::new(self.address, &settings.server))
    }
}

/// Builds the service of the metrics listener.
#[derive(Clone, Debug)]
pub(super) struct MetricsServiceBuilder {
    /// Address of the listener.
    pub(super) address: SocketAddr,
    pub(super) routes: Router,
    pub(super) log: LogQueue,
}

impl MetricsServiceBuilder {
    /// Returns the service with these settings.
    pub(super) fn build(&self, settings: &Settings) -> HttpService {
        let hosts = AllowedHosts::new(self.address, &settings.server);
        serve::metrics::service(self.routes.clone(), &self.log, hosts)
    }
}

/// Builds the service of the admin listener.
#[derive(Clone, Debug)]
pub(super) struct AdminServiceBuilder {
    /// Address of the listener.
    pub(super) address: SocketAddr,
    pub(super) body_budget: ByteBudget,
    pub(super) bodies: Arc<ResponseCache>,
    pub(super) log: LogQueue,
}

impl AdminServiceBuilder {
    /// Returns the service with these settings, over the services of this handle.
    ///
    /// Its requests are not in the access log: they are in the audit log, and their addresses name accounts.
    pub(super) fn build(&self, settings: &Settings, verbatim: &Verbatim) -> HttpService {
        let operations = operations(settings, verbatim);
        let routes = admin::router(AdminState {
            operations,
            body_budget: self.body_budget.clone(),
            bodies: Arc::clone(&self.bodies),
        });
        HttpService::new(routes, Vec::new(), self.log.without_requests())
            .with_hosts(AllowedHosts::new(self.address, &settings.server))
    }
}
