//! A server behind a platform, and clients of it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use upstream_reqwest::service::{ServiceClient, ServiceOptions};
use verbatim_tests::replay::ReplayProxy;

use crate::server::{
    harness::{Server, keys},
    platform::{platform, settings},
};

/// The video that the platform has.
pub(super) const VIDEO: &str = "dyke-walk-0";
/// One more.
pub(super) const OTHER: &str = "dyke-walk-1";
/// One that it does not have.
pub(super) const NONE: &str = "aaaaaaaaaaa";

/// A running server.
pub(super) struct Stage {
    pub(super) proxy: ReplayProxy,
    pub(super) data: TempDir,
    pub(super) server: Server,
}

impl Stage {
    /// A server whose platform has [`VIDEO`] and [`OTHER`], with these settings.
    pub(super) fn with(more: &[(&str, &str)]) -> Result<Self> {
        Self::before(platform(&[VIDEO, OTHER], Duration::ZERO)?, more)
    }

    /// A server before this platform.
    pub(super) fn before(proxy: ReplayProxy, more: &[(&str, &str)]) -> Result<Self> {
        let data = TempDir::new()?;
        let own = settings(&proxy);
        let mut all: Vec<_> = own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.extend(more);
        let server = Server::start(&data, &all)?;
        Ok(Self { proxy, data, server })
    }

    /// Its address.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A key of its look-up API.
    pub(super) fn key(&self) -> Result<String> {
        keys(&self.data, 1)?.pop().context("no key")
    }

    /// A client without a key.
    pub(super) fn client(&self) -> Result<ServiceClient> {
        Ok(ServiceClient::new(&ServiceOptions::new(self.url()))?)
    }
}

/// A link to a video.
pub(super) fn link(video: &str) -> String {
    format!("https://youtu.be/{video}")
}
