//! Limit of the open connections of a network.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ipnet::IpNet;
use transcript_core::limits::network::ClientNetwork;

type NetworkCounts = HashMap<ClientNetwork, u32>;

/// Counts the open connections of each network. It is locked when a connection opens and closes, never for a request.
#[derive(Debug)]
pub(super) struct NetworkLimit {
    connections_max: u32,
    /// A connection of a trusted proxy belongs to many clients and is not counted.
    trusted_proxies: Vec<IpNet>,
    counts: Mutex<NetworkCounts>,
}

/// A counted connection. Drop ends it.
#[derive(Debug)]
pub(super) struct NetworkPermit {
    limit: Arc<NetworkLimit>,
    peer: IpAddr,
}

impl NetworkLimit {
    /// Creates a limit of this many connections for each network.
    pub(super) fn new(connections_max: u32, trusted_proxies: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self { connections_max, trusted_proxies, counts: Mutex::default() })
    }

    /// Counts a connection of this peer; `None` if one of its networks is at its limit.
    pub(super) fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<NetworkPermit> {
        let peer = peer.to_canonical();
        let permit = || NetworkPermit { limit: Arc::clone(self), peer };
        if self.is_trusted(peer) {
            return Some(permit());
        }
        let mut counts = self.counts();
        let is_full = ClientNetwork::of_client(peer).any(|(network, factor)| {
            counts.get(&network).is_some_and(|count| *count >= self.connections_max.saturating_mul(factor))
        });
        if is_full {
            return None;
        }
        for (network, _) in ClientNetwork::of_client(peer) {
            *counts.entry(network).or_default() += 1;
        }
        Some(permit())
    }

    fn is_trusted(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(&peer))
    }

    fn counts(&self) -> MutexGuard<'_, NetworkCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NetworkPermit {
    fn drop(&mut self) {
        if self.limit.is_trusted(self.peer) {
            return;
        }
        let mut counts = self.limit.counts();
        for (network, _) in ClientNetwork::of_client(self.peer) {
            if let Entry::Occupied(mut entry) = counts.entry(network) {
                *entry.get_mut() -= 1;
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_limit_counts_addresses_and_prefixes() {
        let limit = NetworkLimit::new(2, vec!["10.0.0.0/8".parse().unwrap()]);
        let open = |peer: &str| limit.acquire(peer.parse().unwrap());
        let one = open("192.0.2.1").unwrap();
        let _two = open("::ffff:192.0.2.1").unwrap();
        assert!(open("192.0.2.1").is_none());
        let _other = open("192.0.2.2").unwrap();
        drop(one);
        let _again = open("192.0.2.1").unwrap();
        // A trusted proxy is not counted.
        let _proxied = [(); 5].map(|()| open("10.1.1.1").unwrap());
        // A /64 is one network, and its /48 has four times the limit.
        let hosts = ["2001:db8::1", "2001:db8::2"].map(|peer| open(peer).unwrap());
        assert!(open("2001:db8::3").is_none());
        let subnets = [1, 1, 2, 2, 3, 3].map(|subnet| open(&format!("2001:db8:0:{subnet}::1")).unwrap());
        assert!(open("2001:db8:0:4::1").is_none());
        drop((hosts, subnets));
        assert_eq!(limit.counts().len(), 2);
    }
}
