//! Where the server listens, and whom it believes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;
use url::Url;

use super::{
    layers::Raw,
    reader::Reader,
    value::{BaseUrl, Setting},
};

/// The longest that a server that is told to stop goes on as ever.
const STOP_DELAY_MAX: Duration = Duration::from_secs(300);

/// `server.*`
#[derive(Clone, Debug)]
pub struct Server {
    /// `server.listen`: where it listens; port 0 picks a free one.
    pub listen: SocketAddr,
    /// `server.base_url`: what links begin with; when absent, `http://{listen}`.
    pub base_url: Option<BaseUrl>,
    /// `server.trusted_proxies`: the networks whose forwarded client addresses are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// `server.stop_delay`: how long it goes on as ever once it is told to stop, but says that it is not ready.
    pub stop_delay: Duration,
    /// `server.cors_origins`: the origins whose pages may call `/api/keys` and `/mcp`.
    pub cors_origins: Vec<WebOrigin>,
}

impl Server {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let listen: SocketAddr = reader.value("server.listen", (Ipv4Addr::LOCALHOST, 8080).into());
        // Which port it will be when a free one is picked, nobody knows yet.
        let own_url = (listen.port() != 0).then(|| format!("http://{listen}"));
        Self {
            listen,
            base_url: reader.optional_or("server.base_url", own_url),
            trusted_proxies: reader.value("server.trusted_proxies", Vec::new()),
            cors_origins: reader.value("server.cors_origins", Vec::new()),
            stop_delay: reader.duration("server.stop_delay", Duration::ZERO, Duration::ZERO..=STOP_DELAY_MAX),
        }
    }

    /// Whether links lead to this machine: nobody else can follow them.
    pub fn is_here(&self) -> bool {
        self.base_url.as_ref().map_or_else(|| self.listen.ip().is_loopback(), BaseUrl::is_here)
    }

    /// What links begin with when the server listens at `address`.
    pub fn base_url_at(&self, address: SocketAddr) -> String {
        self.base_url.as_ref().map_or_else(|| format!("http://{address}"), |url| url.as_str().to_owned())
    }
}

/// The origin of a web page, as browsers send it: scheme, host, and port where it is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// The origin's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for WebOrigin {
    const ALLOWED: &'static str = "origins such as https://app.example.org (no path, and not *)";

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        let url = Url::parse(&text).map_err(|_| None)?;
        let origin = url.origin();
        // Parsing the origin's own text again must give nothing more: no path, query or user name.
        let plain = origin.is_tuple()
            && matches!(url.scheme(), "http" | "https")
            && url.as_str() == format!("{}/", origin.ascii_serialization());
        if plain { Ok(Self(origin.ascii_serialization())) } else { Err(None) }
    }

    fn show(&self) -> String {
        self.0.show()
    }
}
