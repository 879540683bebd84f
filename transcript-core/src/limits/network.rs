//! Client networks, for counting misses, new keys and connections.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Factor between the limit of a /64 and that of its /48.
const PREFIX_48_FACTOR: u32 = 4;

/// A network whose clients share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientNetwork {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// The prefix of an IPv6 address, and its length.
    V6(Ipv6Addr, u8),
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(prefix, length) => write!(f, "{prefix}/{length}"),
        }
    }
}

impl ClientNetwork {
    /// The networks of a client, each with the factor of its limit.
    ///
    /// An IPv4 address is one network. An IPv6 network is a /64, and its /48 has four times the limit.
    pub fn of_client(client: IpAddr) -> impl Iterator<Item = (Self, u32)> {
        let (nearest, site) = match client.to_canonical() {
            IpAddr::V4(address) => (Self::V4(address), None),
            IpAddr::V6(address) => (
                Self::V6(prefix(address, 64), 64),
                Some((Self::V6(prefix(address, 48), 48), PREFIX_48_FACTOR)),
            ),
        };
        std::iter::once((nearest, 1)).chain(site)
    }
}

fn prefix(address: Ipv6Addr, length: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - length)))
}
