//! Networks: whose misses and new keys are counted. No address is stored, only a keyed digest of it.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{
    ledger::terms::Period,
    limits::{COUNT_MAX, Take},
    time::Timestamp,
};

/// How many times a /64's limit its /48 has.
const WIDE_FACTOR: u32 = 4;

/// Digests networks with the server's secret and a daily salt.
#[derive(Clone)]
pub(crate) struct Networks {
    secret: Arc<[u8]>,
}

impl fmt::Debug for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Networks")
    }
}

impl Networks {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self { secret: secret.into() }
    }

    /// What one use of `what` takes from a caller's network: at most `count` in `per_ms`.
    ///
    /// An IPv4 address is a network of its own; an IPv6 network is a /64, and its /48 has four times the
    /// limit. Callers without a known address share one network.
    pub(crate) fn takes(
        &self,
        what: &str,
        client: Option<IpAddr>,
        count: u32,
        per_ms: u64,
        now: Timestamp,
    ) -> Vec<Take> {
        let take = |(name, times): (String, u32)| Take {
            bucket: format!("{what}/{name}"),
            count: u32::min(count.saturating_mul(times), COUNT_MAX),
            per_ms,
            cost: 1,
        };
        self.names(client, now).into_iter().map(take).collect()
    }

    /// The digests of a caller's networks on that day, each with how many times a limit it has.
    pub(crate) fn names(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<(String, u32)> {
        let name = |network: String, times| (self.digest(&network, now), times);
        match client.map(|address| address.to_canonical()) {
            None => vec![name("unknown".to_owned(), 1)],
            Some(IpAddr::V4(address)) => vec![name(address.to_string(), 1)],
            Some(IpAddr::V6(address)) => vec![
                name(format!("{}/64", prefix(address, 64)), 1),
                name(format!("{}/48", prefix(address, 48)), WIDE_FACTOR),
            ],
        }
    }

    /// The first 16 bytes of the keyed digest, in hexadecimal, with the day as salt.
    pub(crate) fn digest(&self, network: &str, now: Timestamp) -> String {
        // A key of any length is accepted, so there is always a digest.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return String::new() };
        mac.update(Period::Day.bucket(now).as_bytes());
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

    fn takes(address: &str, now: Timestamp) -> Vec<Take> {
        Networks::new(vec![1; 32]).takes("mint", Some(address.parse().unwrap()), 5, 1_000, now)
    }

    #[test]
    fn networks_are_told_apart_by_their_prefix() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        assert_eq!(takes("192.0.2.1", now), takes("::ffff:192.0.2.1", now));
        assert_ne!(takes("192.0.2.1", now), takes("192.0.2.2", now));
        assert_eq!(takes("2001:db8:1:2::1", now), takes("2001:db8:1:2:ffff::2", now));
        let (one, other) = (takes("2001:db8:1:2::1", now), takes("2001:db8:1:3::1", now));
        assert_ne!(one[0], other[0]);
        assert_eq!(one[1], other[1]);
        assert_eq!((one[0].count, one[1].count), (5, 20));
        assert_ne!(other[1], takes("2001:db8:2:3::1", now)[1]);
    }

    #[test]
    fn the_salt_changes_daily_and_no_address_is_kept() {
        let today = Timestamp::from_millis(1_000_000_000_000);
        let tomorrow = Timestamp::from_millis(1_000_086_400_000);
        assert_ne!(takes("192.0.2.1", today), takes("192.0.2.1", tomorrow));
        assert!(!takes("192.0.2.1", today)[0].bucket.contains("192"));
    }
}
