//! Bodies of the health and version endpoints.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of the lookup API (specification 9).
pub(crate) const INTERFACE_VERSION: &str = "2.0.0";
/// Paths of health checks.
pub(crate) const HEALTH_PATHS: [&str; 3] = ["/readyz", "/healthz", "/health"];

/// Response of `GET /health`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

impl Health {
    /// The response of a running server.
    pub(crate) const OK: Self = Self { status: "ok" };
}

/// Response of `GET /version`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Version {
    /// Name of the program.
    name: &'static str,
    /// Version of the program.
    version: &'static str,
    /// Version of the lookup API (specification 9).
    #[schemars(description = "Version of the lookup API.")]
    interface: &'static str,
}

impl Version {
    /// The versions of this program.
    pub(crate) const CURRENT: Self =
        Self { name: "verbatim", version: env!("CARGO_PKG_VERSION"), interface: INTERFACE_VERSION };
}
