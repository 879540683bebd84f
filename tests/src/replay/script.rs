//! What a proxy is to answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{Answer, Rule, SeenRequest, rule::LazyBody};

/// What the proxy does when a tunnel is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// It opens the tunnel.
    Open,
    /// It opens the tunnel, but the certificate at its end is for this other host.
    OtherCertificate(String),
    /// It refuses with this status: 403, 407, 502 …
    Refuse(u16),
    /// It never answers.
    Never,
    /// It closes the connection.
    Close,
}

/// What one host's tunnels do, in turn; the last one repeats.
#[derive(Clone, Debug)]
struct Tunnels {
    host: Option<String>,
    turns: Vec<Tunnel>,
    used: Arc<AtomicUsize>,
}

/// What a replay proxy is to answer: rules, of which the first that matches a request answers it.
///
/// Tunnels open for the hosts that the rules name, on port 443; any other is refused with a 403.
#[derive(Clone, Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
    tunnels: Vec<Tunnels>,
    latency: Duration,
    http1_only: bool,
}

impl Script {
    /// A script that expects nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The same with one rule more for each of these.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// The same, with tunnels to this host treated so, in turn; the last one repeats.
    #[must_use]
    pub fn tunnels(self, host: &str, turns: impl IntoIterator<Item = Tunnel>) -> Self {
        self.with_tunnels(Some(host.to_owned()), turns)
    }

    /// The same, with tunnels to every host treated so, in turn; the last one repeats.
    #[must_use]
    pub fn all_tunnels(self, turns: impl IntoIterator<Item = Tunnel>) -> Self {
        self.with_tunnels(None, turns)
    }

    fn with_tunnels(mut self, host: Option<String>, turns: impl IntoIterator<Item = Tunnel>) -> Self {
        self.tunnels.push(Tunnels { host, turns: turns.into_iter().collect(), used: Arc::default() });
        self
    }

    /// The same, with every answer begun this much later: the distance to a platform, for measurements.
    #[must_use]
    pub fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// The same, without HTTP/2.
    #[must_use]
    pub fn http1_only(self) -> Self {
        Self { http1_only: true, ..self }
    }

    pub(super) fn is_http1_only(&self) -> bool {
        self.http1_only
    }

    /// The answer to a request, or none when no rule expects it.
    pub(super) fn play(&self, request: &SeenRequest) -> Option<Answer> {
        let body = LazyBody::new(Box::new(|| serde_json::from_slice(&request.body).ok()));
        let mut answer = self.rules.iter().find(|rule| rule.matches(request, &body))?.next_answer();
        answer.delay = answer.delay.saturating_add(self.latency);
        Some(answer)
    }

    /// What is done with a tunnel to this host and port.
    pub(super) fn tunnel(&self, host: &str, port: u16) -> Tunnel {
        let scripted =
            self.tunnels.iter().find(|tunnels| tunnels.host.as_deref().is_none_or(|name| name == host));
        if let Some(Tunnels { turns, used, .. }) = scripted
            && let Some(last) = turns.len().checked_sub(1)
        {
            let turn = used.fetch_add(1, Ordering::Relaxed).min(last);
            return turns.get(turn).cloned().unwrap_or(Tunnel::Open);
        }
        let known = self.rules.iter().any(|rule| rule.hosts().iter().any(|name| name == host));
        if known && port == 443 { Tunnel::Open } else { Tunnel::Refuse(403) }
    }
}
