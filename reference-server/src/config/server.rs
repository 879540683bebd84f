//! Settings of the HTTP server.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use ipnet::{IpNet, Ipv4Net};
use url::{Host, Url};

use super::{
    layers::RawSettings,
    listen::{FileMode, ListenAddress},
    value::{BaseUrl, ParseSetting, WordSetting, text, without_final_dot, word},
};

/// `server.*`
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub(crate) struct ServerSettings {
    /// `server.listen`: listening address; port 0 selects a free port.
    #[default(ListenAddress::Tcp((Ipv4Addr::LOCALHOST, 8080).into()))]
    pub(crate) listen: ListenAddress,
    /// `server.socket_mode`: permissions of a unix socket.
    #[default(FileMode(0o660))]
    pub(crate) socket_mode: FileMode,
    /// `server.base_url`: prefix of all links. If unset, `http://{listen}`.
    pub(crate) base_url: Option<BaseUrl>,
    /// `server.trusted_proxies`: networks whose forwarding headers are trusted.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// `server.allowed_hosts`: further host names that requests may name.
    pub(crate) allowed_hosts: Vec<HostPattern>,
    /// `server.stop_delay`: how long the server serves after the stop signal while it is not ready.
    pub(crate) stop_delay: Duration,
    /// `server.cors_origins`: origins of pages that may call `/api/keys`, `/api/v1/register`, `/api/search` and
    /// `/mcp`.
    pub(crate) cors_origins: Vec<WebOrigin>,
    /// `server.connections`: most open connections.
    #[default(10_000)]
    pub(crate) connections: u32,
    /// `server.connections_per_network`: most open connections of a network that is no trusted proxy.
    #[default(512)]
    pub(crate) connections_per_network: u32,
    /// `server.min_read_rate`: slowest rate at which a client may read a response, in bytes per second.
    #[default(4 << 10)]
    pub(crate) min_read_rate: u64,
    /// `server.body_memory`: memory of all large bodies that are not shared, in bytes.
    #[default(256 << 20)]
    pub(crate) body_memory: u64,
    /// `search.access`: who may search the archive. If unset, everyone on this machine, else callers with a key.
    pub(crate) search_access: Option<SearchAccess>,
    /// `admin.listen`: address of the admin listener. If unset, there is none.
    pub(crate) admin: Option<AdminAddress>,
}

impl ServerSettings {
    /// Returns the address of links without `server.base_url`; `None` while the port is not known.
    pub(super) fn own_address(&self) -> Option<String> {
        let address = self.listen.socket_address();
        (address.port() != 0).then(|| format!("http://{address}"))
    }

    /// Whether links lead to this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.base_url.as_ref().map_or_else(|| self.ip().is_loopback(), BaseUrl::is_loopback)
    }

    /// Who may search the archive.
    pub(crate) fn search_access(&self) -> SearchAccess {
        let default = if self.is_local_only() { SearchAccess::Everyone } else { SearchAccess::Keys };
        self.search_access.unwrap_or(default)
    }

    /// Whether both the listening address and links are of this machine.
    pub(crate) fn is_local_only(&self) -> bool {
        self.ip().is_loopback() && self.is_loopback()
    }

    /// The listening IP address, an IPv4 address in its own form; that of a unix socket is unspecified.
    pub(crate) fn ip(&self) -> IpAddr {
        self.listen.socket_address().ip().to_canonical()
    }

    /// Returns the prefix of links while the server listens at `address`.
    pub(crate) fn base_url_at(&self, address: SocketAddr) -> String {
        self.base_url.as_ref().map_or_else(|| format!("http://{address}"), |url| url.as_str().to_owned())
    }
}

/// Address of the admin listener. A port alone is on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdminAddress(pub(crate) SocketAddr);

impl ParseSetting for AdminAddress {
    const ALLOWED: &'static str = "a port, or an IP address and a port such as 127.0.0.1:9465";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = word(raw)?;
        let port = || text.parse::<u16>().ok().map(|port| (Ipv4Addr::LOCALHOST, port).into());
        text.parse().ok().or_else(port).map(Self).ok_or(None)
    }

    fn show(&self) -> String {
        self.0.to_string().show()
    }
}

impl ParseSetting for IpNet {
    const ALLOWED: &'static str = "a network such as 10.0.0.0/8, or an address";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = text(raw)?;
        let network = text.parse::<Self>().or_else(|_| text.parse::<IpAddr>().map(Self::from));
        network.map(canonical).map_err(|_| None)
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

/// A network of IPv4 addresses in the form of IPv6 ones, in its own form: peers are compared in that form.
fn canonical(network: IpNet) -> IpNet {
    /// Length of the prefix `::ffff:0:0/96`.
    const MAPPED: u8 = 96;
    let IpNet::V6(mapped) = network else { return network };
    let length = mapped.prefix_len().checked_sub(MAPPED);
    let own = length.zip(mapped.addr().to_ipv4_mapped());
    own.and_then(|(length, address)| Ipv4Net::new(address, length).ok()).map_or(network, IpNet::V4)
}

/// Host that requests may name: one name or address, or all names below a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPattern {
    host: Host,
    /// Whether it matches the names below `host`, and not `host`.
    is_below: bool,
}

impl HostPattern {
    /// Whether a host fits.
    pub(crate) fn matches(&self, host: &Host) -> bool {
        match (host, &self.host) {
            (Host::Domain(name), Host::Domain(known)) if self.is_below => {
                name.strip_suffix(known.as_str()).is_some_and(|below| below.ends_with('.'))
            }
            (host, known) => !self.is_below && host == known,
        }
    }
}

impl ParseSetting for HostPattern {
    const ALLOWED: &'static str =
        "host names such as example.org, or *.example.org for all names below it, without a port";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        let (is_below, name) = text.strip_prefix("*.").map_or((false, text.as_str()), |name| (true, name));
        let host = without_final_dot(Host::parse(name).map_err(|_| None)?);
        let fits = match &host {
            Host::Domain(name) => !name.contains('*') && name.split('.').all(|label| !label.is_empty()),
            Host::Ipv4(_) | Host::Ipv6(_) => !is_below,
        };
        fits.then_some(Self { host, is_below }).ok_or(None)
    }

    fn show(&self) -> String {
        format!("\"{}{}\"", if self.is_below { "*." } else { "" }, self.host)
    }
}

/// Origin of a web page as browsers send it: scheme, host, and port unless it is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebOrigin(String);

impl WebOrigin {
    /// Returns the origin as text.
    pub(crate) fn as_str(&self) -> &str {
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

/// Who may search the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchAccess {
    /// Every caller.
    Everyone,
    /// Callers with an API key.
    Keys,
    /// No caller: the archive is not indexed.
    Off,
}

impl WordSetting for SearchAccess {
    const ALLOWED: &'static str = "everyone, keys or off";
    const WORDS: &'static [(&'static str, Self)] =
        &[("everyone", Self::Everyone), ("keys", Self::Keys), ("off", Self::Off)];
}
