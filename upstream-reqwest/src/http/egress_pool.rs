//! The egress pool: the direct route, or proxies in rotation with a cooldown after errors.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, header};
use reqwest::dns::Resolve;
use tokio::time::Instant;
use transcript_core::Error;
use url::Url;

use super::{
    HttpError, HttpOptions, HttpRequest, body,
    options::ProxyVariables,
    resolve::{PublicOnly, PublicOrProxy, SystemResolver},
    tls::TlsConfigFactory,
};

/// Cooldown of a proxy that the platform throttles or blocks, unless the platform names a time.
const BLOCKED_COOLDOWN: Duration = Duration::from_secs(300);
const BLOCKED_COOLDOWN_MAX: Duration = Duration::from_secs(3_600);
/// Cooldown of a proxy that is unreachable, or reaches nothing.
const FAILED_COOLDOWN: Duration = Duration::from_secs(30);

/// Pause of a throttling platform on a route, unless the platform names a time.
///
/// And the longest pause, since lookups fail during it.
const THROTTLED_PAUSE: Duration = Duration::from_secs(60);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(300);

/// The first pause of a platform that blocks a route. Each further block doubles it.
///
/// A platform also blocks single requests of an address that it serves otherwise.
const BLOCK_FIRST: Duration = Duration::from_millis(800);
/// How long the first request after such a pause goes alone. It is short because the others wait.
const TRIAL_MAX: Duration = Duration::from_secs(1);

/// Number of idle connections kept per host, and for how long.
const IDLE_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// One egress route, with its own connections.
pub(super) struct EgressRoute {
    pub(super) client: reqwest::Client,
    /// Name in the log: `direct`, or the proxy's number and host.
    pub(super) name: String,
}

/// All egress routes.
pub(super) struct EgressPool {
    routes: Vec<EgressRoute>,
    tls: TlsConfigFactory,
    rotation: Mutex<EgressRotation>,
}

impl EgressPool {
    pub(super) fn new(options: &HttpOptions) -> Result<Self, Error> {
        Self::with_resolver(options, SystemResolver)
    }

    /// Creates a pool whose direct route resolves names in this way.
    pub(super) fn with_resolver(
        options: &HttpOptions,
        resolver: impl Resolve + 'static,
    ) -> Result<Self, Error> {
        let tls = TlsConfigFactory::new(options.ca_file.as_deref())?;
        let mut routes = Vec::new();
        for (index, proxy) in options.proxies.iter().enumerate() {
            routes.push(proxy_route(options, &tls, index + 1, proxy)?);
        }
        if let Some(variables) = options.proxy_variables.as_ref().filter(|_| routes.is_empty()) {
            routes.push(environment_route(options, &tls, variables, resolver)?);
        } else if routes.is_empty() {
            let client = client(options, &tls, |builder| builder.dns_resolver(PublicOnly(resolver)))?;
            routes.push(EgressRoute { client, name: "direct".to_owned() });
        }
        let rotation = Mutex::new(EgressRotation::new(routes.len()));
        Ok(Self { routes, tls, rotation })
    }

    /// The TLS configuration that all routes share.
    pub(super) fn tls(&self) -> &TlsConfigFactory {
        &self.tls
    }

    /// Selects the next route for this platform and returns its index.
    ///
    /// The `avoided` ones come after the free ones.
    ///
    /// # Errors
    /// The time until a route is available, when the platform is paused on all of them.
    pub(super) fn select(&self, platform: &'static str, avoided: &[usize]) -> Result<usize, Duration> {
        self.rotation().select(platform, avoided, Instant::now())
    }

    /// The route at an index from [`EgressPool::select`].
    pub(super) fn at(&self, index: usize) -> Option<&EgressRoute> {
        self.routes.get(index)
    }

    /// Whether a route that is not in `except` is not cooling down.
    pub(super) fn has_available(&self, except: &[usize]) -> bool {
        self.rotation().has_available(except, Instant::now())
    }

    /// Cools down a throttled route: others come first. The platform is paused on this route.
    pub(super) fn on_throttled(&self, index: usize, platform: &'static str, named: Option<Duration>) {
        self.cool_down(index, named);
        self.pause_platform(index, platform, named.unwrap_or(THROTTLED_PAUSE));
    }

    /// Cools down a route that a platform blocks, and pauses the platform in `pause` on it, at most for that time.
    ///
    /// Returns whether another route is available.
    pub(super) fn leave(&self, index: usize, pause: Option<(&'static str, Duration)>) -> bool {
        if let Some((platform, max)) = pause {
            self.block_platform(index, platform, max);
        }
        self.cool_down(index, None);
        self.has_available(&[index])
    }

    /// Cools down a route that the platform blocks: others come first.
    pub(super) fn cool_down(&self, index: usize, named: Option<Duration>) {
        self.start_cooldown(
            index,
            named.unwrap_or(BLOCKED_COOLDOWN).clamp(BLOCKED_COOLDOWN, BLOCKED_COOLDOWN_MAX),
        );
    }

    /// Cools down a route that is unreachable.
    pub(super) fn on_failed(&self, index: usize) {
        self.start_cooldown(index, FAILED_COOLDOWN);
    }

    /// Pauses a platform on this route.
    pub(super) fn pause_platform(&self, index: usize, platform: &'static str, time: Duration) {
        let time = time.min(PAUSE_MAX);
        let name = self.at(index).map(|route| route.name.as_str());
        tracing::info!(route = name, platform, pause_s = time.as_secs(), "egress paused");
        self.rotation().pause(index, platform, Instant::now() + time);
    }

    /// Pauses a platform that blocks this route, at first briefly and at most for `max`.
    ///
    /// The pause ends with [`EgressPool::resume_platform`]; a block after the pause doubles it.
    fn block_platform(&self, index: usize, platform: &'static str, max: Duration) {
        let pause = self.rotation().block(index, platform, max, Instant::now());
        if let Some(pause) = pause {
            let name = self.at(index).map(|route| route.name.as_str());
            tracing::info!(route = name, platform, pause_ms = pause.as_millis(), "egress blocked");
        }
    }

    /// Ends the pause of a blocking platform on this route: it has returned what was requested.
    pub(super) fn resume_platform(&self, index: usize, platform: &'static str) {
        self.rotation().blocks.remove(&(index, platform));
    }

    /// Time until a route is available for this platform; `None` if one is.
    pub(super) fn remaining_pause(&self, platform: &'static str) -> Option<Duration> {
        self.rotation().remaining_pause(platform, Instant::now())
    }

    fn start_cooldown(&self, index: usize, cooldown: Duration) {
        if self.routes.len() > 1 {
            let name = self.at(index).map(|route| route.name.as_str());
            tracing::info!(route = name, cooldown_s = cooldown.as_secs(), "egress cooldown started");
            self.rotation().cool_down(index, Instant::now() + cooldown);
        }
    }

    fn rotation(&self) -> MutexGuard<'_, EgressRotation> {
        // The state is a few numbers, consistent after every operation.
        self.rotation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn proxy_route(
    options: &HttpOptions,
    tls: &TlsConfigFactory,
    number: usize,
    text: &str,
) -> Result<EgressRoute, Error> {
    let wrong = || {
        Error::invalid(format!(
            "upstream.proxy: number {number} is not a valid proxy URL; use http://, https:// or \
             socks5://host:port, with user:password@ before the host where needed"
        ))
    };
    let url = Url::parse(text.trim()).map_err(|_| wrong())?;
    let known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    if !known || !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong());
    }
    let name = format!("proxy {number} ({host})");
    // The error is dropped because it may hold the URL.
    let proxy = reqwest::Proxy::all(resolving_names(text)).map_err(|_| wrong())?;
    let client = client(options, tls, |builder| builder.proxy(proxy))?;
    Ok(EgressRoute { client, name })
}

/// The route of the environment's variables: a proxy, and a direct connection to the hosts that they except.
fn environment_route(
    options: &HttpOptions,
    tls: &TlsConfigFactory,
    variables: &ProxyVariables,
    resolver: impl Resolve + 'static,
) -> Result<EgressRoute, Error> {
    let (proxy, host) = variables.proxy(reqwest::Proxy::all)?;
    let name = format!("HTTPS_PROXY ({host})");
    // The proxy itself may have a private address.
    let resolver = PublicOrProxy { proxy: host, resolver };
    let client = client(options, tls, |builder| builder.proxy(proxy).dns_resolver(resolver))?;
    Ok(EgressRoute { client, name })
}

/// The URL of a proxy in the form that makes the proxy resolve names: `socks5h` for SOCKS5.
///
/// Local resolution would disclose the hosts to the local name server and return addresses near this host, not
/// near the proxy.
pub(super) fn resolving_names(proxy: &str) -> String {
    match proxy.trim().split_once("://") {
        Some((scheme, authority)) if scheme.eq_ignore_ascii_case("socks5") => {
            format!("socks5h://{authority}")
        }
        _ => proxy.trim().to_owned(),
    }
}

fn client(
    options: &HttpOptions,
    tls: &TlsConfigFactory,
    configure: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, Error> {
    let builder = reqwest::Client::builder()
        // Before the proxy is set: `no_proxy` removes the proxies of the environment.
        .no_proxy()
        .tls_backend_preconfigured(tls.config()?)
        .default_headers(HeaderMap::from_iter([(header::ACCEPT_ENCODING, body::ACCEPTED)]))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.read_timeout)
        .pool_max_idle_per_host(IDLE_MAX)
        .pool_idle_timeout(IDLE_TIMEOUT);
    configure(builder).build().map_err(|_| Error::unexpected("the HTTP client cannot be built"))
}

/// Rotation state without I/O, so that it can be tested without proxies.
#[derive(Debug)]
struct EgressRotation {
    next: usize,
    /// End of each route's cooldown, if it had one.
    cooldowns: Vec<Option<Instant>>,
    /// End of each platform pause, by route index and platform.
    pauses: BTreeMap<(usize, &'static str), Instant>,
    /// The platforms that block a route, by route index and platform.
    blocks: BTreeMap<(usize, &'static str), PlatformBlock>,
}

/// A platform that blocks a route.
#[derive(Debug)]
struct PlatformBlock {
    /// End of the pause, or of the time in which a trial goes alone.
    ends_at: Instant,
    length: Duration,
    /// The longest pause. A block is forgotten so long after its end.
    max: Duration,
    is_trial: bool,
}

impl EgressRotation {
    fn new(count: usize) -> Self {
        Self { next: 0, cooldowns: vec![None; count], pauses: BTreeMap::new(), blocks: BTreeMap::new() }
    }

    /// The next route that is neither avoided nor cooling down.
    ///
    /// If there is none, the one whose cooldown ends first among those on which the platform is not paused. If there is
    /// none, the time until there is one.
    fn select(&mut self, platform: &'static str, avoided: &[usize], now: Instant) -> Result<usize, Duration> {
        self.pauses.retain(|_, ends_at| *ends_at > now);
        self.blocks.retain(|_, block| block.ends_at + block.max > now);
        let count = self.cooldowns.len().max(1);
        let order = (0..count).map(|step| (self.next + step) % count);
        let unpaused = order.filter(|&index| self.paused_until(index, platform, now).is_none());
        let is_free = |index: &usize| !avoided.contains(index) && !self.is_cooling_down(*index, now);
        let available = unpaused.clone().find(is_free);
        let index =
            available.or_else(|| unpaused.min_by_key(|&index| self.cooldowns.get(index).copied().flatten()));
        let Some(index) = index else {
            return Err(self.remaining_pause(platform, now).unwrap_or_default());
        };
        if let Some(block) = self.blocks.get_mut(&(index, platform)) {
            block.ends_at = now + block.length.min(TRIAL_MAX);
            block.is_trial = true;
        }
        self.next = (index + 1) % count;
        Ok(index)
    }

    fn has_available(&self, except: &[usize], now: Instant) -> bool {
        (0..self.cooldowns.len()).any(|index| !except.contains(&index) && !self.is_cooling_down(index, now))
    }

    fn cool_down(&mut self, index: usize, ends_at: Instant) {
        if let Some(cooldown) = self.cooldowns.get_mut(index) {
            *cooldown = (*cooldown).max(Some(ends_at));
        }
    }

    fn pause(&mut self, index: usize, platform: &'static str, ends_at: Instant) {
        let end = self.pauses.entry((index, platform)).or_insert(ends_at);
        *end = (*end).max(ends_at);
    }

    /// Notes that a platform blocks a route. Returns the new pause; `None` if one is running.
    fn block(
        &mut self,
        index: usize,
        platform: &'static str,
        max: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let new = PlatformBlock { ends_at: now, length: Duration::ZERO, max, is_trial: false };
        let block = self.blocks.entry((index, platform)).or_insert(new);
        // Requests that were sent together meet the same block.
        if block.ends_at > now && !block.is_trial {
            return None;
        }
        block.length = block.length.saturating_mul(2).max(BLOCK_FIRST).min(max);
        (block.ends_at, block.is_trial) = (now + block.length, false);
        Some(block.length)
    }

    /// When a platform may be called over this route again; `None` if it may be now.
    fn paused_until(&self, index: usize, platform: &'static str, now: Instant) -> Option<Instant> {
        let pause = self.pauses.get(&(index, platform)).copied();
        let block = self.blocks.get(&(index, platform)).map(|block| block.ends_at);
        pause.max(block).filter(|ends_at| *ends_at > now)
    }

    fn remaining_pause(&self, platform: &'static str, now: Instant) -> Option<Duration> {
        let ends = (0..self.cooldowns.len()).map(|index| self.paused_until(index, platform, now));
        let first = ends.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        Some(first.duration_since(now))
    }

    fn is_cooling_down(&self, index: usize, now: Instant) -> bool {
        self.cooldowns.get(index).copied().flatten().is_some_and(|ends_at| ends_at > now)
    }
}

impl HttpError {
    /// Applies this error to the route that it occurred on: cooldown, platform pause or nothing.
    pub(super) fn apply_to(&self, pool: &EgressPool, index: usize, request: &HttpRequest) {
        match self {
            Self::Throttled(_) if request.has_own_rate_limit => {}
            Self::Throttled(named) => pool.on_throttled(index, request.platform(), *named),
            Self::Unreachable(_) | Self::ProxyCredentials => pool.on_failed(index),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLATFORM_HOST: &str = "www.youtube.com";

    #[test]
    fn rotation_selects_routes_in_order() {
        let now = Instant::now();
        let mut rotation = EgressRotation::new(3);
        let selected: Vec<_> = (0..5).map(|_| rotation.select(PLATFORM_HOST, &[], now).unwrap()).collect();
        assert_eq!(selected, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn rotation_cooling_route_is_skipped_until_all_cool() {
        let (now, secs) = (Instant::now(), Duration::from_secs);
        let mut rotation = EgressRotation::new(3);
        rotation.cool_down(0, now + secs(30));
        let select = |rotation: &mut EgressRotation, at| rotation.select(PLATFORM_HOST, &[], at).unwrap();
        assert_eq!([(); 3].map(|()| select(&mut rotation, now)), [1, 2, 1]);
        assert!(rotation.has_available(&[1], now));
        rotation.cool_down(2, now + secs(10));
        assert!(!rotation.has_available(&[1], now));
        rotation.cool_down(1, now + secs(20));
        assert_eq!([(); 2].map(|()| select(&mut rotation, now)), [2, 2]);
        assert_eq!(select(&mut rotation, now + secs(20)), 1, "its cooldown is over");
        // A shorter cooldown does not shorten a longer one.
        rotation.cool_down(0, now + secs(1));
        assert!(rotation.is_cooling_down(0, now + secs(29)));
    }

    #[test]
    fn rotation_avoided_route_is_selected_last() {
        let now = Instant::now();
        let mut rotation = EgressRotation::new(3);
        let mut select = |avoided: &[usize]| rotation.select(PLATFORM_HOST, avoided, now).unwrap();
        assert_eq!([select(&[0]), select(&[2, 1]), select(&[0, 1])], [1, 0, 2]);
        assert_eq!([select(&[0, 1, 2]), select(&[])], [0, 1]);
    }

    #[test]
    fn rotation_platform_paused_on_all_routes_returns_time() {
        let (now, secs) = (Instant::now(), Duration::from_secs);
        let mut sole = EgressRotation::new(1);
        sole.pause(0, PLATFORM_HOST, now + secs(60));
        sole.pause(0, PLATFORM_HOST, now + secs(5));
        assert_eq!(
            sole.select(PLATFORM_HOST, &[], now + secs(10)),
            Err(secs(50)),
            "a shorter pause is ignored"
        );
        assert_eq!(sole.select("t.co", &[], now), Ok(0), "another platform is not paused");
        assert_eq!(sole.select(PLATFORM_HOST, &[], now + secs(60)), Ok(0));

        let mut rotation = EgressRotation::new(2);
        rotation.pause(0, PLATFORM_HOST, now + secs(60));
        rotation.cool_down(1, now + secs(300));
        assert_eq!(
            [rotation.select(PLATFORM_HOST, &[], now), rotation.select(PLATFORM_HOST, &[], now)],
            [Ok(1), Ok(1)],
            "a cooling route is used last"
        );
        rotation.pause(1, PLATFORM_HOST, now + secs(30));
        assert_eq!(rotation.select(PLATFORM_HOST, &[], now), Err(secs(30)));
    }

    #[test]
    fn rotation_block_grows_until_platform_responds() {
        let (now, secs, millis) = (Instant::now(), Duration::from_secs, Duration::from_millis);
        let mut sole = EgressRotation::new(1);
        let max = secs(60);
        assert_eq!(sole.block(0, PLATFORM_HOST, max, now), Some(millis(800)));
        assert_eq!(sole.block(0, PLATFORM_HOST, max, now), None, "requests sent together count once");
        assert_eq!(sole.select(PLATFORM_HOST, &[], now), Err(millis(800)));
        assert_eq!(sole.select("t.co", &[], now), Ok(0), "another platform is not paused");
        let (mut at, mut trial) = (now + millis(800), millis(800));
        for expect in [1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000].map(millis) {
            assert_eq!(sole.select(PLATFORM_HOST, &[], at), Ok(0));
            assert_eq!(sole.select(PLATFORM_HOST, &[], at), Err(trial), "one trial at a time");
            assert_eq!(sole.block(0, PLATFORM_HOST, max, at), Some(expect));
            assert_eq!(sole.select(PLATFORM_HOST, &[], at), Err(expect));
            (at, trial) = (at + expect, secs(1));
        }
        assert_eq!(sole.select(PLATFORM_HOST, &[], at), Ok(0));
        assert_eq!(sole.select(PLATFORM_HOST, &[], at + secs(1)), Ok(0), "a trial without a result");
        sole.blocks.remove(&(0, PLATFORM_HOST));
        assert_eq!([(); 2].map(|()| sole.select(PLATFORM_HOST, &[], at)), [Ok(0), Ok(0)]);
        assert_eq!(sole.block(0, PLATFORM_HOST, max, at), Some(millis(800)), "from the start again");
        let quiet = at + secs(62);
        assert_eq!([(); 2].map(|()| sole.select(PLATFORM_HOST, &[], quiet)), [Ok(0), Ok(0)], "forgotten");

        let mut rotation = EgressRotation::new(2);
        rotation.block(0, PLATFORM_HOST, max, now);
        assert_eq!([(); 2].map(|()| rotation.select(PLATFORM_HOST, &[], now)), [Ok(1), Ok(1)]);
        assert_eq!(rotation.remaining_pause(PLATFORM_HOST, now), None);
    }

    #[test]
    fn proxy_invalid_url_is_rejected_without_secret() {
        let options = HttpOptions::default();
        let tls = TlsConfigFactory::new(None).unwrap();
        for valid in [
            "http://proxy.example:3128",
            "https://me:pa%40ss@proxy.example",
            "socks5://me:secret@10.0.0.1:1080",
            " socks5h://proxy.example/ ",
        ] {
            let route = proxy_route(&options, &tls, 1, valid).unwrap();
            assert!(!route.name.contains("secret") && !route.name.contains('@'), "{}", route.name);
        }
        for bad in [
            "",
            "proxy.example:3128",
            "socks4://secret:1",
            "ftp://secret",
            "http://",
            "http://secret/path",
            "http://secret?x",
        ] {
            let error = proxy_route(&options, &tls, 7, bad).err().expect(bad);
            assert!(error.message().contains("number 7") && !error.message().contains("secret"), "{error}");
        }
    }
}
