//! Builds the services of the two listeners from the settings.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};
use verbatim::Verbatim;

#[cfg(feature = "mcp")]
use crate::mcp::PassageCache;
use crate::{
    admin::{self, AdminState},
    api::{AllowedHosts, ByteBudget},
    config::{ServerSettings, Settings},
    log::LogQueue,
    metrics::{self, Metrics},
    openapi,
    operations::Operations,
    page::site::Site,
    response_cache::{ResponseCache, ResponseCacheOptions},
    routes::{Readiness, readiness, register_peer_request, router},
    serve::{self, HttpService},
    state::AppState,
};

/// Builds the service of the main listener. What it has does not depend on reloadable settings.
#[derive(Clone, Debug)]
pub(crate) struct ServiceBuilder {
    /// Address of the listener.
    pub(crate) address: SocketAddr,
    /// State of the routes at the start, whose caches all services share.
    pub(crate) app: AppState,
    /// Passages of transcripts for assistants.
    #[cfg(feature = "mcp")]
    pub(crate) passages: PassageCache,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: LogQueue,
}

impl ServiceBuilder {
    /// Creates the builder with empty caches, for a listener at this address.
    pub(crate) fn new(
        address: SocketAddr,
        verbatim: &Verbatim,
        body_memory: u64,
        cache_options: ResponseCacheOptions,
        metrics: Arc<Metrics>,
        log: LogQueue,
    ) -> Self {
        let app = AppState::new(
            verbatim.lookup().clone(),
            verbatim.accounts().clone(),
            verbatim.chat().clone(),
            verbatim.payments().clone(),
            verbatim.sandbox().cloned(),
            body_memory,
            cache_options,
        );
        Self {
            address,
            app,
            #[cfg(feature = "mcp")]
            passages: PassageCache::new(verbatim.chat().clone()),
            readiness: Readiness::new(verbatim.clone()),
            metrics,
            log,
        }
    }

    /// The builder of a service with this site.
    pub(crate) fn with_site(self, site: Site) -> Self {
        Self { app: self.app.with_site(site), ..self }
    }

    /// The builder of a service whose mails may be in this folder.
    pub(crate) fn with_outbox_folder(self, folder: PathBuf) -> Self {
        Self { app: self.app.with_outbox_folder(folder), ..self }
    }

    /// Returns the service with these settings, over the services of this handle.
    pub(crate) fn build(&self, settings: &ServerSettings, verbatim: &Verbatim) -> HttpService {
        let app = self.app.with_services(verbatim);
        let app = app.with_search(verbatim.search().clone(), settings.search_access());
        let routes = router(
            app.clone(),
            #[cfg(feature = "mcp")]
            self.passages.clone(),
            &settings.cors_origins,
            openapi::document,
        );
        let routes = routes.layer(from_fn_with_state(verbatim.clone(), register_peer_request));
        let routes = routes.merge(readiness::router(Arc::clone(&self.readiness)));
        let routes = routes.layer(from_fn(metrics::matched));
        HttpService::new(routes, settings.trusted_proxies.clone(), self.log.clone())
            .with_app(app)
            .with_metrics(Arc::clone(&self.metrics))
            .with_hosts(AllowedHosts::new(self.address, settings))
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
    pub(super) operations: Operations,
    pub(super) log: LogQueue,
}

impl AdminServiceBuilder {
    /// Returns the service with these settings, over the services of this handle.
    ///
    /// Its requests are not in the access log: they are in the audit log, and their addresses name accounts.
    pub(super) fn build(&self, settings: &Settings, verbatim: &Verbatim) -> HttpService {
        let routes = admin::router(AdminState {
            operations: self.operations.over(verbatim),
            body_budget: self.body_budget.clone(),
            bodies: Arc::clone(&self.bodies),
        });
        HttpService::new(routes, Vec::new(), self.log.without_requests())
            .with_hosts(AllowedHosts::new(self.address, &settings.server))
    }
}
