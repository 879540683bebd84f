//! Egress routes for external programs.

use std::{path::PathBuf, time::Duration};

use super::{HttpError, HttpTransport, egress_pool::resolving_names};

/// An egress route in the form that an external program uses.
#[derive(Clone)]
pub(crate) struct ProgramEgress {
    index: usize,
    /// The proxy's URL with its credentials; `None` for the direct route.
    pub(crate) proxy: Option<String>,
    /// Hosts that are reached without the proxy, as in `NO_PROXY`.
    pub(crate) no_proxy: Option<String>,
    /// Root certificates to trust in addition to the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

impl ProgramEgress {
    /// Index of the route, for requests that must use the same one.
    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

impl HttpTransport {
    /// Selects the next egress route for a platform, which is named by the first of its hosts.
    ///
    /// # Errors
    /// [`HttpError::CoolingDown`] while the platform is paused on every route.
    pub(crate) fn egress(&self, platform: &'static str) -> Result<ProgramEgress, HttpError> {
        let index = self.pool.select(platform, &[]);
        let index = index.map_err(|left| HttpError::CoolingDown { left, attempted: false })?;
        let variables = self.options.proxy_variables.as_ref().filter(|_| self.options.proxies.is_empty());
        let proxy = self.options.proxies.get(index).or(variables.map(|variables| &variables.https_proxy));
        let proxy = proxy.map(|proxy| resolving_names(proxy));
        let no_proxy = variables.map(|variables| variables.no_proxy.clone());
        Ok(ProgramEgress { index, proxy, no_proxy, ca_file: self.options.ca_file.clone() })
    }

    /// Cools a route down after a platform blocked it, and pauses the platform in `pause` on it, at most for that time.
    ///
    /// Returns whether another route is available.
    pub(crate) fn leave_egress(
        &self,
        egress: &ProgramEgress,
        pause: Option<(&'static str, Duration)>,
    ) -> bool {
        self.pool.leave(egress.index, pause)
    }

    /// Notes that a platform returned what was requested over a route.
    pub(crate) fn resume_on_egress(&self, egress: &ProgramEgress, platform: &'static str) {
        self.pool.resume_platform(egress.index, platform);
    }
}

// Omits the proxy's URL, which may hold credentials.
transcript_core::debug_fields!(ProgramEgress { index });
