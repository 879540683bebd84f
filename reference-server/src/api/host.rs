//! The hosts that a listener answers for, and requests of this machine.
//!
//! A web page can let its own name point to a loopback address (DNS rebinding). Its scripts then read this server as
//! their own origin, whatever the CORS rules are. Only the host of the request shows it.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderName, HeaderValue, Request, StatusCode, header::HOST, request::Parts, uri::Authority};
use url::Host;

use super::ProblemResponse;
use crate::config::{HostPattern, ServerSettings, is_loopback_host, without_final_dot};

/// Sentence of a 421.
pub(crate) const OTHER_HOST: &str = "This server does not answer for this host.";

/// Hosts that a listener answers for.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedHosts(Option<HostRules>);

#[derive(Clone, Debug)]
struct HostRules {
    /// The listening address, which is compared first.
    listen: String,
    /// Whether other machines reach the listener.
    is_public: bool,
    base_url: Option<Host>,
    listed: Vec<HostPattern>,
}

/// Address of the socket's peer. Unlike [`super::ClientAddress`] it depends on no header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

impl AllowedHosts {
    /// The hosts of a listener at this address.
    ///
    /// Without `server.allowed_hosts`, a listener that other machines reach answers for every name: its operator may
    /// have given it any.
    pub(crate) fn new(listen: SocketAddr, settings: &ServerSettings) -> Self {
        let is_public = !listen.ip().to_canonical().is_loopback();
        if is_public && settings.allowed_hosts.is_empty() {
            return Self(None);
        }
        Self(Some(HostRules {
            listen: listen.to_string(),
            is_public,
            base_url: settings.base_url.as_ref().and_then(|url| url.host()).map(without_final_dot),
            listed: settings.allowed_hosts.clone(),
        }))
    }

    /// Returns the error for a request to another host: 421, or 400 if it names no valid host.
    ///
    /// The host of an absolute target, or of HTTP/2's `:authority`, counts as well as the header.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Option<ProblemResponse> {
        let rules = self.0.as_ref()?;
        let (target, header) = (request.uri().authority(), request.headers().get(HOST));
        if target.is_none() && header.is_some_and(|value| value.as_bytes() == rules.listen.as_bytes()) {
            return None;
        }
        let hosts = [target.map(Authority::as_str).map(host_of), header.map(host_of_header)];
        let refused =
            hosts.into_iter().flatten().find(|host| !host.as_ref().is_some_and(|host| rules.allow(host)))?;
        Some(match refused {
            None => ProblemResponse::bad("Host", "this is not a host name or address"),
            Some(_) => {
                tracing::debug!("request for a host refused that is not in server.allowed_hosts");
                ProblemResponse::new(StatusCode::MISDIRECTED_REQUEST, OTHER_HOST)
            }
        })
    }
}

impl HostRules {
    fn allow(&self, host: &Host) -> bool {
        is_loopback_host(host)
            || self.base_url.as_ref() == Some(host)
            || self.listed.iter().any(|listed| listed.matches(host))
            // Health checks and metrics use addresses. A page needs a name to be directed elsewhere.
            || self.is_public && !matches!(host, Host::Domain(_))
    }
}

/// Whether a request comes from this machine, names this machine and passed no proxy or tunnel.
///
/// `server.trusted_proxies` does not matter: a proxy on this machine forwards requests of others.
pub(crate) fn is_local(head: &Parts) -> bool {
    let peer = head.extensions.get::<PeerAddress>();
    let mut hosts = [
        head.uri.authority().map(Authority::as_str).map(host_of),
        Some(head.headers.get(HOST).and_then(host_of_header)),
    ]
    .into_iter()
    .flatten();
    peer.is_some_and(|PeerAddress(peer)| peer.to_canonical().is_loopback())
        && hosts.all(|host| host.as_ref().is_some_and(is_loopback_host))
        && !head.headers.keys().any(is_forwarding)
}

/// Whether a header is one that proxies, tunnels and content delivery networks add.
fn is_forwarding(name: &HeaderName) -> bool {
    let name = name.as_str();
    const NAMES: [&str; 3] = ["via", "cdn-loop", "x-envoy-external-address"];
    const PARTS: [&str; 8] =
        ["forwarded", "real-ip", "client-ip", "clientip", "connecting-ip", "remote-", "original-", "proxy"];
    NAMES.contains(&name) || name.starts_with("cf-") || PARTS.iter().any(|part| name.contains(part))
}

fn host_of_header(value: &HeaderValue) -> Option<Host> {
    host_of(value.to_str().ok()?)
}

/// Host of `host` or `host:port`, without the final dot of an absolute name.
fn host_of(text: &str) -> Option<Host> {
    let authority: Authority = text.parse().ok().filter(|_| !text.contains('@'))?;
    // `Authority` does not check what follows the host. A port may be empty (RFC 3986, 3.2.3).
    let rest = text.strip_prefix(authority.host())?;
    let is_port = |port: &str| port.is_empty() || (!port.starts_with('+') && port.parse::<u16>().is_ok());
    if !rest.is_empty() && !rest.strip_prefix(':').is_some_and(is_port) {
        return None;
    }
    Host::parse(authority.host()).ok().map(without_final_dot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SettingSources, Settings};

    fn hosts(listen: &str, settings: &[(&str, &str)]) -> AllowedHosts {
        let environment = settings.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let sources = SettingSources { data: "/data".into(), file: None, environment, flags: Vec::new() };
        AllowedHosts::new(listen.parse().unwrap(), &Settings::load(sources).unwrap().server)
    }

    fn head(target: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        request.body(()).unwrap()
    }

    fn check(hosts: &AllowedHosts, host: &str, expect: Option<u16>) {
        let status = |request| hosts.check(&request).map(|refusal| refusal.status().as_u16());
        assert_eq!(status(head("/", &[("host", host)])), expect, "{host}");
        if let Ok(target) = format!("http://{host}/").parse::<http::Uri>() {
            let request = head(&target.to_string(), &[("host", "localhost")]);
            assert_eq!(status(request), expect, "absolute target {host}");
        }
    }

    const LOOPBACK: [&str; 10] = [
        "127.0.0.1:8080",
        "127.0.0.1",
        "127.9.9.9:1",
        "localhost",
        "LOCALHOST:8080",
        "localhost.",
        "v.localhost:80",
        "[::1]",
        "[::1]:8080",
        "[::ffff:127.0.0.1]",
    ];

    #[test]
    fn loopback_listener_answers_for_loopback_names_only() {
        for listen in ["127.0.0.1:8080", "[::1]:8080"] {
            let hosts = hosts(listen, &[]);
            for host in LOOPBACK {
                check(&hosts, host, None);
            }
            for host in [
                "evil.example",
                "evil.example:8080",
                "localhost.evil.example",
                "notlocalhost",
                "127.0.0.1.evil.example",
                "192.168.1.1",
                "[fd00::1]",
                "0.0.0.0",
            ] {
                check(&hosts, host, Some(421));
            }
            for host in [
                "",
                ":80",
                "a b",
                "localhost@evil.example",
                "evil.example@localhost",
                "[::1",
                "[::1]x",
                "[::1]:99999",
                "localhost:abc",
                "localhost:+80",
                "localhost:80.",
                "h\u{e9}",
            ] {
                let refusal = hosts.check(&head("/", &[("host", host)]));
                assert_eq!(refusal.map(|refusal| refusal.status().as_u16()), Some(400), "{host:?}");
            }
            // A browser names the host that it connected to in both places.
            let both = head("http://localhost/", &[("host", "evil.example")]);
            assert_eq!(hosts.check(&both).unwrap().status(), 421);
            // Programs that speak HTTP/1.0 name no host.
            assert!(hosts.check(&head("/", &[])).is_none());
        }
    }

    #[test]
    fn loopback_listener_behind_proxy_answers_for_base_url_and_allowed_hosts() {
        let settings = [
            ("VERBATIM_SERVER__BASE_URL", "https://Example.org./verbatim"),
            ("VERBATIM_SERVER__ALLOWED_HOSTS", "V.example.net.,*.tunnel.example,10.0.0.1"),
        ];
        let hosts = hosts("127.0.0.1:8080", &settings);
        for host in LOOPBACK.into_iter().chain([
            "example.org",
            "EXAMPLE.org:443",
            "example.org.",
            "v.example.net:8443",
            "v.example.net.:8443",
            "a.tunnel.example",
            "a.b.tunnel.example",
            "a.tunnel.example.",
            "10.0.0.1",
        ]) {
            check(&hosts, host, None);
        }
        for host in ["a.example.org", "tunnel.example", "eviltunnel.example", "10.0.0.2", "x.v.example.net"] {
            check(&hosts, host, Some(421));
        }
    }

    #[test]
    fn public_listener_answers_for_all_names_unless_they_are_set() {
        check(&hosts("0.0.0.0:80", &[]), "any.example", None);
        let listed = hosts("0.0.0.0:80", &[("VERBATIM_SERVER__ALLOWED_HOSTS", "v.example")]);
        for host in ["v.example", "10.1.2.3:80", "[2001:db8::1]", "localhost"] {
            check(&listed, host, None);
        }
        check(&listed, "evil.example", Some(421));
    }

    #[test]
    fn local_request_has_loopback_peer_and_host_and_no_proxy() {
        let local = |peer: &str, target: &str, headers: &[(&str, &str)]| {
            let mut request = head(target, headers);
            request.extensions_mut().insert(PeerAddress(peer.parse().unwrap()));
            is_local(&request.into_parts().0)
        };
        for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            for host in LOOPBACK {
                assert!(local(peer, "/", &[("host", host)]), "{peer} {host}");
            }
        }
        for peer in ["192.0.2.1", "10.0.0.1", "::ffff:10.0.0.1"] {
            assert!(!local(peer, "/", &[("host", "localhost")]), "{peer}");
        }
        for host in ["v.example", "10.0.0.1", "", "localhost@v.example"] {
            assert!(!local("127.0.0.1", "/", &[("host", host)]), "{host}");
        }
        assert!(!local("127.0.0.1", "/", &[]));
        assert!(!local("127.0.0.1", "http://v.example/", &[("host", "localhost")]));
        for name in [
            "forwarded",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-real-ip",
            "via",
            "true-client-ip",
            "cf-connecting-ip",
            "cf-ray",
            "cdn-loop",
            "fly-client-ip",
            "x-original-host",
            "x-azure-clientip",
        ] {
            let value = if name == "via" { "1.1 proxy" } else { "127.0.0.1" };
            assert!(!local("127.0.0.1", "/", &[("host", "localhost"), (name, value)]), "{name}");
        }
    }
}
