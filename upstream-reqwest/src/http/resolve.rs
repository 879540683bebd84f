//! Name resolution for direct connections: only public addresses are accepted.
//!
//! The host list already restricts requests. This check protects against a name server that lies and against
//! listed names that point to private networks.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

#[derive(Debug)]
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

/// Drops the private, loopback, link-local, unique-local, multicast and reserved addresses of another resolver.
#[derive(Debug)]
pub(super) struct PublicOnly<R>(pub(super) R);

/// Error of a name whose addresses are all non-public.
#[derive(Debug)]
pub(super) struct PrivateAddressError;

impl fmt::Display for PrivateAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name resolves to non-public addresses only")
    }
}

impl std::error::Error for PrivateAddressError {}

impl<R: Resolve> Resolve for PublicOnly<R> {
    fn resolve(&self, name: Name) -> Resolving {
        keep_public(self.0.resolve(name))
    }
}

/// As [`PublicOnly`], but also accepts the private addresses of a proxy.
#[derive(Debug)]
pub(super) struct PublicOrProxy<R> {
    /// The host name of the proxy.
    pub(super) proxy: String,
    pub(super) resolver: R,
}

impl<R: Resolve> Resolve for PublicOrProxy<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = name.as_str().eq_ignore_ascii_case(&self.proxy);
        let found = self.resolver.resolve(name);
        if is_proxy { found } else { keep_public(found) }
    }
}

fn keep_public(found: Resolving) -> Resolving {
    Box::pin(async move {
        let found = found.await?;
        // The connection is made to these addresses: the name is not resolved again.
        Ok(Box::new(public_addresses(found)?.into_iter()) as Addrs)
    })
}

/// The public addresses of a name.
fn public_addresses(found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, PrivateAddressError> {
    let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
    if public.is_empty() { Err(PrivateAddressError) } else { Ok(public) }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let reserved = match (a, b, c) {
        // The metadata service of one cloud has a public address.
        (168, 63, 129) if d == 16 => true,
        // "This network" (RFC 791) and shared carrier addresses (RFC 6598).
        (0, ..) | (100, 64..=127, _) => true,
        // Protocol assignments and benchmarking networks (RFC 2544).
        (192, 0, 0) | (198, 18..=19, _) => true,
        // Reserved for future use, and the broadcast address.
        (240.., ..) => true,
        _ => false,
    };
    !(reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // An IPv4 address behind a translator (RFC 6052): networks with only IPv6 reach IPv4 hosts this way.
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => embedded(g, h),
        // 6to4 carries the IPv4 address in the next two segments.
        (0x2002, _) => embedded(b, c),
        // Teredo (2001::/32) and documentation (2001:db8::/32, 3fff::/20) host no web server.
        (0x2001, 0 | 0xdb8) | (0x3fff, 0..=0x0fff) => false,
        // Everything else outside the global unicast block is loopback, mapped, local or reserved.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_outside_public_range_is_rejected() {
        for address in
            ["142.250.1.1", "8.8.8.8", "100.63.0.1", "172.32.0.1", "2a00:1450:4001::8a", "64:ff9b::8.8.8.8"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "fe80::1",
            "fec0::1",
            "fd00::1",
            "fc00::1",
            "ff02::1",
            "2001:db8::1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "2002:7f00:1::",
            "2001::1",
            // Metadata services of clouds.
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn name_with_public_and_private_addresses_has_public_ones_only() {
        let found = |addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 443));
            public_addresses(addresses.collect::<Vec<_>>().into_iter())
        };
        let mixed = found(&["127.0.0.1", "142.250.1.1", "::ffff:10.0.0.1", "169.254.169.254"]).unwrap();
        assert_eq!(mixed, ["142.250.1.1:443".parse().unwrap()]);
        assert!(found(&["10.0.0.1", "fd00::1"]).is_err() && found(&[]).is_err());
    }

    #[tokio::test]
    async fn resolver_private_name_is_refused() {
        let Err(error) = PublicOnly(SystemResolver).resolve("localhost".parse().unwrap()).await else {
            panic!("localhost must not resolve")
        };
        assert!(error.is::<PrivateAddressError>());
    }
}
