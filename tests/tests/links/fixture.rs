//! Calls of the production link resolver through a proxy.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail, ensure};
use transcript_core::{
    Clock,
    supplier::{LinkResolver, ResolveOutcome, SupplyError},
    video::VideoLink,
};
use upstream_reqwest::{HttpOptions, HttpShortLinkResolver, HttpTransport};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::social::supplier_calls;

pub(crate) const TIKTOK: &str = "vm.tiktok.com";
pub(crate) const INSTAGRAM: &str = "www.instagram.com";
pub(crate) const X: &str = "t.co";

/// All hosts that may receive a request for a short link.
const HOSTS: [&str; 5] = [TIKTOK, "vt.tiktok.com", "www.tiktok.com", INSTAGRAM, X];
/// Timeout for one link. No test comes near it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Outcome of resolving a link.
pub(crate) type CallOutcome = Result<ResolveOutcome, SupplyError>;

/// A rule that redirects a short link.
pub(crate) fn redirect(host: &str, path: &str, target: &str) -> Rule {
    Rule::new("HEAD", host, path).respond(ReplayResponse::status(301).header("location", target))
}

pub(crate) fn redirecting(host: &str, path: &str, target: &str) -> Script {
    Script::new().rule(redirect(host, path, target))
}

/// The options of a transport through these proxies, without retries.
pub(crate) fn options(proxies: &[&ReplayProxy]) -> HttpOptions {
    supplier_calls::options(proxies, proxies[0].ca_file())
}

/// Resolves a link through one proxy, without retries.
pub(crate) async fn follow(proxy: &ReplayProxy, link: &str) -> Result<CallOutcome> {
    follow_with(options(&[proxy]), link, TIMEOUT).await
}

/// Resolves a link with these options and this timeout.
pub(crate) async fn follow_with(options: HttpOptions, link: &str, timeout: Duration) -> Result<CallOutcome> {
    let VideoLink::Short(link) = VideoLink::parse(link)? else { bail!("{link} is no short link") };
    let resolver =
        HttpShortLinkResolver::new(Arc::new(HttpTransport::new(options)?), Arc::new(SystemClock::default()));
    Ok(resolver.resolve(&link, SystemClock::default().now().plus(timeout)).await)
}

/// Fails unless the link resolved to this video.
pub(crate) fn check_video(outcome: &CallOutcome, id: &str) -> Result<()> {
    match outcome {
        Ok(ResolveOutcome::Video(video)) if video.id() == id => Ok(()),
        other => bail!("expected {id}, got {other:?}"),
    }
}

/// Fails unless the link leads to no video with a message that contains `part`.
pub(crate) fn check_no_video(outcome: &CallOutcome, part: &str) -> Result<()> {
    match outcome {
        Ok(ResolveOutcome::NotAVideo(why)) if why.contains(part) && !why.ends_with('.') => Ok(()),
        other => bail!("expected no video ({part}), got {other:?}"),
    }
}

/// Fails if any host other than those of short links received a request or a connection.
pub(crate) fn check_hosts(proxy: &ReplayProxy) -> Result<()> {
    let (tunnels, requests) = (proxy.tunnels(), proxy.requests());
    let is_own = |host: &str| HOSTS.contains(&host);
    ensure!(tunnels.iter().all(|tunnel| is_own(&tunnel.host) && tunnel.port == 443), "{tunnels:?}");
    ensure!(
        requests.iter().all(|request| is_own(&request.host) && request.scheme == "https"),
        "{requests:?}"
    );
    Ok(())
}
