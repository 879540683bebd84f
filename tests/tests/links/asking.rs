//! Asking the production resolver through a proxy.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail, ensure};
use transcript_core::{
    Clock,
    supplier::{LinkResolver, Resolved, SupplyError},
    video::VideoLink,
};
use upstream_reqwest::{Http, HttpOptions, ShortLinks};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

pub(crate) const TIKTOK: &str = "vm.tiktok.com";
pub(crate) const INSTAGRAM: &str = "www.instagram.com";
pub(crate) const X: &str = "t.co";

/// All hosts that may ever be asked for a short link.
const HOSTS: [&str; 5] = [TIKTOK, "vt.tiktok.com", "www.tiktok.com", INSTAGRAM, X];
/// How long a resolver has for one link. No test comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of following a link.
pub(crate) type Outcome = Result<Resolved, SupplyError>;

/// The rule by which a short link redirects.
pub(crate) fn redirect(host: &str, path: &str, target: &str) -> Rule {
    Rule::new("HEAD", host, path).answer(Answer::status(301).header("location", target))
}

/// A script of one redirect.
pub(crate) fn redirecting(host: &str, path: &str, target: &str) -> Script {
    Script::new().rule(redirect(host, path, target))
}

/// The options of a transport through these proxies, without retries.
pub(crate) fn options(proxies: &[&ReplayProxy]) -> HttpOptions {
    HttpOptions {
        proxies: proxies.iter().map(|proxy| proxy.url()).collect(),
        ca_file: proxies.first().map(|proxy| proxy.ca_file().to_owned()),
        timeout: Duration::from_secs(30),
        retries: 0,
        ..HttpOptions::default()
    }
}

/// Follows a link through one proxy, without retries.
pub(crate) async fn follow(proxy: &ReplayProxy, link: &str) -> Result<Outcome> {
    follow_with(options(&[proxy]), link, PATIENCE).await
}

/// Follows a link with these options, and within this time.
pub(crate) async fn follow_with(options: HttpOptions, link: &str, patience: Duration) -> Result<Outcome> {
    let VideoLink::Short(link) = VideoLink::parse(link)? else { bail!("{link} is no short link") };
    let resolver = ShortLinks::new(Arc::new(Http::new(options)?), Arc::new(SystemClock::default()));
    Ok(resolver.resolve(&link, SystemClock::default().now().plus(patience)).await)
}

/// Fails unless the link means this video.
pub(crate) fn check_video(outcome: &Outcome, id: &str) -> Result<()> {
    match outcome {
        Ok(Resolved::Video(video)) if video.id() == id => Ok(()),
        other => bail!("{other:?} came instead of {id}"),
    }
}

/// Fails unless the link leads nowhere, and the sentence has this part.
pub(crate) fn check_nowhere(outcome: &Outcome, part: &str) -> Result<()> {
    match outcome {
        Ok(Resolved::Nowhere(why)) if why.contains(part) && !why.ends_with('.') => Ok(()),
        other => bail!("{other:?} came instead of nowhere ({part})"),
    }
}

/// Fails unless a failure came for this reason, with a sentence for people.
pub(crate) fn check_failure(outcome: &Outcome, expect: &str) -> Result<()> {
    let Err(error) = outcome else { bail!("{outcome:?} came instead of {expect}") };
    ensure!(error.reason().as_str() == expect, "{error:?} came instead of {expect}");
    let message = error.message();
    ensure!(message.ends_with('.') && !message.contains("://"), "no sentence for people: {message}");
    Ok(())
}

/// Fails when anything but a short link's own host was asked, or tried to be.
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
