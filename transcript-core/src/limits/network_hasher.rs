//! Keyed digests of client networks and email addresses. Stores no address.

use std::net::IpAddr;

use super::{LimitRequest, network::ClientNetwork};
use crate::{keyed_digest::KeyedDigest, ledger::terms::AllowancePeriod, time::Timestamp};

/// Length of a digest, in hexadecimal digits.
const DIGITS: usize = 32;

/// Digests networks with the server's secret and a daily salt, and email addresses with the secret alone.
#[derive(Clone)]
pub(crate) struct NetworkHasher {
    digest: KeyedDigest,
}

crate::display::debug_as!(NetworkHasher, |_this| "NetworkHasher");

impl NetworkHasher {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self { digest: KeyedDigest::new(secret) }
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
        let limit_request = |(name, times): (String, u32)| {
            LimitRequest::one(format!("{purpose}/{name}"), count.saturating_mul(times), window_ms)
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

    /// The digest of an email address: the same every day, so that midnight does not end its limits.
    #[cfg(feature = "accounts")]
    pub(crate) fn address_digest(&self, address: &str) -> String {
        self.truncated("mail-address", address)
    }

    /// The digest of a network, with the day as salt.
    fn digest(&self, network: &str, now: Timestamp) -> String {
        self.truncated(&AllowancePeriod::Day.bucket(now), network)
    }

    /// The first 16 bytes of the keyed digest, in hexadecimal.
    fn truncated(&self, purpose: &str, text: &str) -> String {
        let mut digest = self.digest.digest(purpose, text);
        digest.truncate(DIGITS);
        digest
    }
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
