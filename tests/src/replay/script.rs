//! Scripts: the rules and tunnels of a replay proxy.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{ReplayResponse, Rule, SeenRequest, rule::LazyBody};

/// The reaction of the proxy to a CONNECT request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// Opens the tunnel.
    Open,
    /// Opens the tunnel, but with the certificate of this other host.
    OtherCertificate(String),
    /// Rejects it with this status: 403, 407, 502 …
    Refuse(u16),
    /// Never responds.
    Never,
    /// Closes the connection.
    Close,
}

/// The reactions to one host's tunnels in order; the last one repeats.
#[derive(Clone, Debug)]
struct Tunnels {
    host: Option<String>,
    reactions: Vec<Tunnel>,
    used: Arc<AtomicUsize>,
}

/// The rules of a replay proxy: the first one that matches a request responds.
///
/// Tunnels open for the hosts that the rules name, on port 443; any other tunnel is rejected with a 403.
#[derive(Clone, Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
    tunnels: Vec<Tunnels>,
    latency: Duration,
    http1_only: bool,
}

impl Script {
    /// A script without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds rules.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Sets the reactions to tunnels to this host, in order; the last one repeats.
    #[must_use]
    pub fn tunnels(self, host: &str, reactions: impl IntoIterator<Item = Tunnel>) -> Self {
        self.with_tunnels(Some(host.to_owned()), reactions)
    }

    /// Sets the reactions to tunnels to every host, in order; the last one repeats.
    #[must_use]
    pub fn all_tunnels(self, reactions: impl IntoIterator<Item = Tunnel>) -> Self {
        self.with_tunnels(None, reactions)
    }

    fn with_tunnels(mut self, host: Option<String>, reactions: impl IntoIterator<Item = Tunnel>) -> Self {
        self.tunnels.push(Tunnels { host, reactions: reactions.into_iter().collect(), used: Arc::default() });
        self
    }

    /// Delays the start of every response: the network distance of a platform, for benchmarks.
    #[must_use]
    pub fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Disables HTTP/2.
    #[must_use]
    pub fn http1_only(self) -> Self {
        Self { http1_only: true, ..self }
    }

    pub(super) fn is_http1_only(&self) -> bool {
        self.http1_only
    }

    /// The response to a request, or `None` if no rule matches it.
    pub(super) fn play(&self, request: &SeenRequest) -> Option<ReplayResponse> {
        let body = LazyBody::new(Box::new(|| serde_json::from_slice(&request.body).ok()));
        let mut response = self.rules.iter().find(|rule| rule.matches(request, &body))?.next_response();
        response.delay = response.delay.saturating_add(self.latency);
        Some(response)
    }

    /// The reaction to a tunnel to this host and port.
    pub(super) fn tunnel(&self, host: &str, port: u16) -> Tunnel {
        let scripted =
            self.tunnels.iter().find(|tunnels| tunnels.host.as_deref().is_none_or(|name| name == host));
        if let Some(Tunnels { reactions, used, .. }) = scripted
            && let Some(last) = reactions.len().checked_sub(1)
        {
            let index = used.fetch_add(1, Ordering::Relaxed).min(last);
            return reactions.get(index).cloned().unwrap_or(Tunnel::Open);
        }
        let known = self.rules.iter().any(|rule| rule.hosts().iter().any(|name| name == host));
        if known && port == 443 { Tunnel::Open } else { Tunnel::Refuse(403) }
    }
}
