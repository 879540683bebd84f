//! The service that answers now, which a reload replaces.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::HttpService;

/// The service for requests that begin now. Clones share it.
///
/// A request keeps the service that it began with, so it ends with the settings that it began with.
#[derive(Clone, Debug)]
pub(crate) struct CurrentService(Arc<ArcSwap<HttpService>>);

impl CurrentService {
    /// Begins with this service.
    pub(crate) fn new(service: HttpService) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(service)))
    }

    /// The service for a request.
    pub(crate) fn load(&self) -> Arc<HttpService> {
        self.0.load_full()
    }

    /// Replaces the service for later requests, also on open connections.
    pub(crate) fn replace(&self, service: HttpService) {
        self.0.store(Arc::new(service));
    }
}
