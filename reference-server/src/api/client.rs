//! Address of the client: the socket's peer, or what a trusted proxy forwards.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, header::FORWARDED};
use ipnet::IpNet;

/// Network address of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Maximum number of hops that are read; longer chains are not legitimate.
const HOPS_MAX: usize = 32;

/// Time between two reports of ignored headers.
const REPORT_INTERVAL: Duration = Duration::from_secs(3_600);

impl ClientAddress {
    /// Returns the client address for a socket's peer and the trusted proxies.
    ///
    /// Each proxy appends its peer, so the rightmost address that is not a trusted proxy is the client. If
    /// `X-Forwarded-For` and `Forwarded` name different clients, one of them was passed through from outside, and
    /// neither is trusted.
    pub(crate) fn from_request(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let peer = peer.to_canonical();
        let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
        if !is_trusted(peer) {
            warn_of_ignored_headers(peer, headers);
            return Self(peer);
        }
        let walk = |hops: Vec<Option<IpAddr>>| {
            let mut nearest = peer;
            for hop in hops {
                // At an unreadable hop the last readable address is the client.
                let Some(address) = hop else { break };
                nearest = address;
                if !is_trusted(address) {
                    break;
                }
            }
            nearest
        };
        let listed = headers.contains_key(X_FORWARDED_FOR).then(|| walk(x_forwarded_for(headers)));
        let forwarded = headers.contains_key(FORWARDED).then(|| walk(forwarded(headers)));
        match (listed, forwarded) {
            (Some(one), Some(other)) if one != other => Self(peer),
            (Some(address), _) | (None, Some(address)) => Self(address),
            (None, None) => Self(peer),
        }
    }
}

/// Logs, at most once an hour, that a peer which may be a proxy sent a forwarding header but is not trusted.
fn warn_of_ignored_headers(peer: IpAddr, headers: &HeaderMap) {
    static DUE_AT: Mutex<Option<Instant>> = Mutex::new(None);
    let has_header = headers.contains_key(X_FORWARDED_FOR) || headers.contains_key(FORWARDED);
    if !has_header || !is_private(peer) {
        return;
    }
    let (now, mut due_at) = (Instant::now(), DUE_AT.lock().unwrap_or_else(PoisonError::into_inner));
    if due_at.is_some_and(|due_at| now < due_at) {
        return;
    }
    *due_at = now.checked_add(REPORT_INTERVAL);
    drop(due_at);
    tracing::warn!(
        "ignored the forwarding header of a peer that is not in server.trusted_proxies: if it is a proxy, all callers \
         behind it share the limits of one network"
    );
}

/// Whether the address is one of this machine or of a private network, as those of most proxies are.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

/// Returns the hops of `X-Forwarded-For`, nearest first; `None` for each unreadable one.
fn x_forwarded_for(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    hops(headers, &X_FORWARDED_FOR, node)
}

/// Returns the hops of `Forwarded` (RFC 7239), nearest first.
fn forwarded(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    hops(headers, &FORWARDED, |element| {
        let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
        node(value.trim().trim_matches('"'))
    })
}

fn hops(
    headers: &HeaderMap,
    name: &HeaderName,
    read: impl Fn(&str) -> Option<IpAddr>,
) -> Vec<Option<IpAddr>> {
    let mut hops = Vec::new();
    let values: Vec<_> = headers.get_all(name).iter().collect();
    for value in values.into_iter().rev() {
        let Ok(value) = value.to_str() else {
            hops.push(None);
            break;
        };
        hops.extend(value.rsplit(',').take(HOPS_MAX).map(|element| read(element.trim())));
    }
    hops.truncate(HOPS_MAX);
    hops
}

/// Parses an address with an optional port, which may be obfuscated (RFC 7239, 6.3): `192.0.2.1`,
/// `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:_hidden`.
fn node(text: &str) -> Option<IpAddr> {
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        // Without brackets all colons belong to the address.
        None if text.matches(':').count() != 1 => (text, ""),
        None => text.split_at(text.find(':')?),
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    address.parse().ok().filter(|_| is_port).map(|address: IpAddr| address.to_canonical())
}

fn is_port(text: &str) -> bool {
    let is_hidden = |name: &str| name.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c));
    text.parse::<u16>().is_ok() || text.strip_prefix('_').is_some_and(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, lines: &[(&'static str, &str)], expect: &str) {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"].iter().map(|net| net.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let address = ClientAddress::from_request(peer.parse().unwrap(), &headers, &trusted);
        assert_eq!(address.0.to_string(), expect, "{peer} {lines:?}");
    }

    #[test]
    fn client_untrusted_peer_headers_are_ignored() {
        check("192.0.2.1", &[], "192.0.2.1");
        check("192.0.2.1", &[("x-forwarded-for", "1.1.1.1")], "192.0.2.1");
        check("192.0.2.1", &[("forwarded", "for=1.1.1.1")], "192.0.2.1");
        check("::ffff:192.0.2.1", &[], "192.0.2.1");
    }

    #[test]
    fn private_addresses_are_those_of_likely_proxies() {
        for (address, expect) in [
            ("127.0.0.2", true),
            ("172.16.0.1", true),
            ("192.168.1.1", true),
            ("::1", true),
            ("fd00::1", true),
            ("192.0.2.1", false),
            ("172.32.0.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_private(address.parse().unwrap()), expect, "{address}");
        }
    }

    #[test]
    fn client_is_rightmost_untrusted_address() {
        let list = |value| [("x-forwarded-for", value)];
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &list("1.1.1.1"), "1.1.1.1");
        check("::ffff:10.0.0.1", &list("1.1.1.1"), "1.1.1.1");
        check("10.0.0.1", &list("6.6.6.6, 1.1.1.1"), "1.1.1.1");
        check("10.0.0.1", &list("6.6.6.6, 1.1.1.1 , 10.0.0.2"), "1.1.1.1");
        check("10.0.0.1", &list("10.0.0.3, 10.0.0.2"), "10.0.0.3");
        check("10.0.0.1", &list("1.1.1.1:4711"), "1.1.1.1");
        check("fd00::1", &list("2001:db8::1"), "2001:db8::1");
        check("fd00::1", &list("[2001:db8::1]:80"), "2001:db8::1");
        check("10.0.0.1", &list("::ffff:1.1.1.1"), "1.1.1.1");
        check("10.0.0.1", &list("[2001:db8::1]"), "2001:db8::1");
        check("10.0.0.1", &list("6.6.6.6, 2001:db8::1, fd00::2, 10.0.0.2"), "2001:db8::1");
        check("10.0.0.1", &[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "1.1.1.1")], "1.1.1.1");
    }

    #[test]
    fn client_unreadable_hop_ends_chain() {
        let list = |value| [("x-forwarded-for", value)];
        check("10.0.0.1", &list("unknown"), "10.0.0.1");
        check("10.0.0.1", &list(""), "10.0.0.1");
        for odd in
            ["1.1.1.1:", "1.1.1.1:port", "1.1.1.1:99999", "[1.1.1.1", "[::1]x", "fe80::1%eth0", "1.1.1.1/8"]
        {
            check("10.0.0.1", &list(odd), "10.0.0.1");
        }
        check("10.0.0.1", &list("6.6.6.6, nonsense, 10.0.0.2"), "10.0.0.2");
        check("10.0.0.1", &list(&"10.0.0.2,".repeat(5_000)), "10.0.0.1");
    }

    #[test]
    fn client_forwarded_header_is_read() {
        check("10.0.0.1", &[("forwarded", "for=6.6.6.6, For=\"1.1.1.1:80\";proto=https")], "1.1.1.1");
        check("10.0.0.1", &[("forwarded", "proto=http;for=\"[2001:db8::1]:4711\"")], "2001:db8::1");
        check("10.0.0.1", &[("forwarded", "for=\"[2001:db8::1]:_port\"")], "2001:db8::1");
        check("10.0.0.1", &[("forwarded", "for=\"1.1.1.1:_a.b-c\"")], "1.1.1.1");
        check("10.0.0.1", &[("forwarded", "for=6.6.6.6, for=_hidden, for=10.0.0.2")], "10.0.0.2");
        check("10.0.0.1", &[("forwarded", "for=_hidden, for=1.1.1.1, for=\"[fd00::2]\"")], "1.1.1.1");
        check("10.0.0.1", &[("forwarded", "for=unknown")], "10.0.0.1");
        check("10.0.0.1", &[("forwarded", "for=6.6.6.6"), ("forwarded", "for=1.1.1.1")], "1.1.1.1");
        check("10.0.0.1", &[("forwarded", "for=_hidden")], "10.0.0.1");
        check("10.0.0.1", &[("forwarded", "by=1.1.1.1")], "10.0.0.1");
    }

    #[test]
    fn client_conflicting_headers_are_ignored() {
        check("10.0.0.1", &[("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "1.1.1.1")], "1.1.1.1");
        check("10.0.0.1", &[("forwarded", "for=6.6.6.6"), ("x-forwarded-for", "1.1.1.1")], "10.0.0.1");
    }
}
