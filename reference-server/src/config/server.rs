//! Settings of the HTTP server.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;
use url::Url;

use super::{
    layers::RawSettings,
    value::{BaseUrl, ParseSetting},
};

/// `server.*`
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// `server.listen`: listening address; port 0 selects a free port.
    pub listen: SocketAddr,
    /// `server.base_url`: prefix of all links. If unset, `http://{listen}`.
    pub base_url: Option<BaseUrl>,
    /// `server.trusted_proxies`: networks whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// `server.stop_delay`: how long the server serves after the stop signal while it is not ready.
    pub stop_delay: Duration,
    /// `server.cors_origins`: origins of pages that may call `/api/keys` and `/mcp`.
    pub cors_origins: Vec<WebOrigin>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            base_url: None,
            trusted_proxies: Vec::new(),
            stop_delay: Duration::ZERO,
            cors_origins: Vec::new(),
        }
    }
}

impl ServerSettings {
    /// Returns the address of links without `server.base_url`; `None` while the port is not known.
    pub(super) fn own_address(&self) -> Option<String> {
        (self.listen.port() != 0).then(|| format!("http://{}", self.listen))
    }

    /// Whether links lead to this machine.
    pub fn is_loopback(&self) -> bool {
        self.base_url.as_ref().map_or_else(|| self.listen.ip().is_loopback(), BaseUrl::is_loopback)
    }

    /// Returns the prefix of links while the server listens at `address`.
    pub fn base_url_at(&self, address: SocketAddr) -> String {
        self.base_url.as_ref().map_or_else(|| format!("http://{address}"), |url| url.as_str().to_owned())
    }
}

/// Origin of a web page as browsers send it: scheme, host, and port unless it is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// Returns the origin as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ParseSetting for WebOrigin {
    const ALLOWED: &'static str = "origins such as https://app.example.org (no path, and not *)";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        let url = Url::parse(&text).map_err(|_| None)?;
        let origin = url.origin();
        // A path, query or user name would differ from the serialized origin.
        let plain = origin.is_tuple()
            && matches!(url.scheme(), "http" | "https")
            && url.as_str() == format!("{}/", origin.ascii_serialization());
        if plain { Ok(Self(origin.ascii_serialization())) } else { Err(None) }
    }

    fn show(&self) -> String {
        self.0.show()
    }
}
