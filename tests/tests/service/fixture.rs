//! A server in front of a platform, and its clients.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use upstream_reqwest::service::{ServiceClient, ServiceOptions};
use verbatim_tests::replay::ReplayProxy;

use crate::server::{
    harness::{ServerFixture, create_keys},
    platform::{serve_platform, start_platform},
};

/// A video of the platform.
pub(super) const VIDEO: &str = "dyke-walk-0";
/// Another video of the platform.
pub(super) const OTHER: &str = "dyke-walk-1";
/// A video that the platform does not have.
pub(super) const NONE: &str = "aaaaaaaaaaa";

/// A running server.
pub(super) struct ServiceFixture {
    pub(super) proxy: ReplayProxy,
    pub(super) data: TempDir,
    pub(super) server: ServerFixture,
}

impl ServiceFixture {
    /// Starts a server whose platform has [`VIDEO`] and [`OTHER`], with these settings.
    pub(super) fn start(more: &[(&str, &str)]) -> Result<Self> {
        Self::start_with_platform(start_platform(&[VIDEO, OTHER], Duration::ZERO)?, more)
    }

    /// Starts a server in front of this platform.
    pub(super) fn start_with_platform(proxy: ReplayProxy, more: &[(&str, &str)]) -> Result<Self> {
        let data = TempDir::new()?;
        let server = serve_platform(&data, &proxy, more)?;
        Ok(Self { proxy, data, server })
    }

    /// The server's base URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A new key of its lookup API.
    pub(super) fn key(&self) -> Result<String> {
        create_keys(&self.data, 1)?.pop().context("no key")
    }

    /// A client without a key.
    pub(super) fn client(&self) -> Result<ServiceClient> {
        Ok(ServiceClient::new(&ServiceOptions::new(self.url()))?)
    }
}

pub(super) fn link(video: &str) -> String {
    format!("https://youtu.be/{video}")
}
