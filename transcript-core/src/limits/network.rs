//! Client networks, for counting misses, new keys and connections. Stores no address, only a keyed digest.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{LIMIT_MAX, LimitRequest};
use crate::{ledger::terms::AllowancePeriod, time::Timestamp};

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

/// Digests networks with the server's secret and a daily salt.
#[derive(Clone)]
pub(crate) struct NetworkHasher {
    secret: Arc<[u8]>,
}

crate::display::debug_as!(NetworkHasher, |_this| "NetworkHasher");

impl NetworkHasher {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self { secret: secret.into() }
    }

    /// Builds the rate limit requests of one action of a client's network: at most `count` in `window_ms`.
    ///
    /// `purpose` is the kind of action, and the prefix of the buckets.
    ///
    /// See [`ClientNetwork::of_client`]. Clients without a known address share one network.
    pub(crate) fn limit_requests(
        &self,
        purpose: &str,
        client: Option<IpAddr>,
        count: u32,
        window_ms: u64,
        now: Timestamp,
    ) -> Vec<LimitRequest> {
        let limit_request = |(name, times): (String, u32)| LimitRequest {
            bucket: format!("{purpose}/{name}"),
            max: u32::min(count.saturating_mul(times), LIMIT_MAX),
            window_ms,
            cost: 1,
        };
        self.digests(client, now).into_iter().map(limit_request).collect()
    }

    /// The digests of a client's networks on that day, each with its limit factor.
    pub(crate) fn digests(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<(String, u32)> {
        let name = |network: String, times| (self.digest(&network, now), times);
        match client {
            None => vec![name("unknown".to_owned(), 1)],
            Some(client) => ClientNetwork::of_client(client)
                .map(|(network, times)| name(network.to_string(), times))
                .collect(),
        }
    }

    /// The first 16 bytes of the keyed digest, in hexadecimal, with the day as salt.
    pub(crate) fn digest(&self, network: &str, now: Timestamp) -> String {
        // HMAC accepts a key of any length, so there is always a digest.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return String::new() };
        mac.update(AllowancePeriod::Day.bucket(now).as_bytes());
        mac.update(b"\0");
        mac.update(network.as_bytes());
        mac.finalize().into_bytes().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

fn prefix(address: Ipv6Addr, length: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(address: &str, now: Timestamp) -> Vec<LimitRequest> {
        NetworkHasher::new(vec![1; 32]).limit_requests("mint", Some(address.parse().unwrap()), 5, 1_000, now)
    }

    #[test]
    fn network_digest_depends_on_prefix() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        assert_eq!(requests("192.0.2.1", now), requests("::ffff:192.0.2.1", now));
        assert_ne!(requests("192.0.2.1", now), requests("192.0.2.2", now));
        assert_eq!(requests("2001:db8:1:2::1", now), requests("2001:db8:1:2:ffff::2", now));
        let (one, other) = (requests("2001:db8:1:2::1", now), requests("2001:db8:1:3::1", now));
        assert_ne!(one[0], other[0]);
        assert_eq!(one[1], other[1]);
        assert_eq!((one[0].max, one[1].max), (5, 20));
        assert_ne!(other[1], requests("2001:db8:2:3::1", now)[1]);
    }

    #[test]
    fn network_digest_changes_daily_and_hides_address() {
        let today = Timestamp::from_millis(1_000_000_000_000);
        let tomorrow = Timestamp::from_millis(1_000_086_400_000);
        assert_ne!(requests("192.0.2.1", today), requests("192.0.2.1", tomorrow));
        assert!(!requests("192.0.2.1", today)[0].bucket.contains("192"));
    }
}
