//! The ways out: directly, or through proxies that take turns and rest when they are blocked.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, header};
use tokio::time::Instant;
use transcript_core::Error;
use url::Url;

use super::{HttpFault, HttpOptions, Request, body, resolve::PublicOnly, tls::Trust};

/// How long a proxy rests that the platform throttles or distrusts, unless the platform names a time.
const BLOCKED_REST: Duration = Duration::from_secs(300);
const BLOCKED_REST_MAX: Duration = Duration::from_secs(3_600);
/// How long a proxy rests that cannot be reached, or reaches nothing.
const FAILED_REST: Duration = Duration::from_secs(30);

/// How long a platform that throttles an exit is not asked through it at all, unless it names a time; and
/// the longest that it is heeded, since whoever asks meanwhile gets nothing.
const THROTTLED_SILENCE: Duration = Duration::from_secs(60);
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// How many idle connections are kept for each host, and how long.
const IDLE_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// One way out, with connections of its own.
pub(super) struct Exit {
    pub(super) client: reqwest::Client,
    /// What the log calls it: `direct`, or the proxy's place and host.
    pub(super) name: String,
}

/// All ways out.
pub(super) struct Exits {
    exits: Vec<Exit>,
    trust: Trust,
    turns: Mutex<Turns>,
}

impl Exits {
    pub(super) fn new(options: &HttpOptions) -> Result<Self, Error> {
        let trust = Trust::new(options.ca_file.as_deref())?;
        let mut exits = Vec::new();
        for (place, proxy) in options.proxies.iter().enumerate() {
            exits.push(proxied(options, &trust, place + 1, proxy)?);
        }
        if exits.is_empty() {
            let client = client(options, &trust, |builder| builder.dns_resolver(PublicOnly))?;
            exits.push(Exit { client, name: "direct".to_owned() });
        }
        let turns = Mutex::new(Turns::new(exits.len()));
        Ok(Self { exits, trust, turns })
    }

    /// Whom all of them trust.
    pub(super) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The place of the exit whose turn it is to ask this platform.
    ///
    /// # Errors
    /// How long the platform may be asked through none.
    pub(super) fn take_turn(&self, platform: &'static str) -> Result<usize, Duration> {
        self.turns().take(platform, Instant::now())
    }

    /// The exit at a place that [`Exits::take_turn`] gave.
    pub(super) fn at(&self, place: usize) -> Option<&Exit> {
        self.exits.get(place)
    }

    /// Whether there is another exit than this one that does not rest.
    pub(super) fn has_fresh(&self, besides: usize) -> bool {
        self.turns().has_fresh(besides, Instant::now())
    }

    /// Lets an exit rest that the platform throttles: others come first, and where there are none the
    /// platform is left alone.
    pub(super) fn throttled(&self, place: usize, platform: &'static str, named: Option<Duration>) {
        self.distrusted(place, named);
        self.silence(place, platform, named.unwrap_or(THROTTLED_SILENCE));
    }

    /// Lets an exit rest that the platform distrusts: others come first.
    pub(super) fn distrusted(&self, place: usize, named: Option<Duration>) {
        self.rest(place, named.unwrap_or(BLOCKED_REST).clamp(BLOCKED_REST, BLOCKED_REST_MAX));
    }

    /// Lets an exit rest that leads nowhere.
    pub(super) fn failed(&self, place: usize) {
        self.rest(place, FAILED_REST);
    }

    /// Lets nobody ask the platform through this exit for a while.
    pub(super) fn silence(&self, place: usize, platform: &'static str, time: Duration) {
        let time = time.min(SILENCE_MAX);
        let name = self.at(place).map(|exit| exit.name.as_str());
        tracing::info!(exit = name, platform, silence_s = time.as_secs(), "a platform is left alone");
        self.turns().silence(place, platform, Instant::now() + time);
    }

    fn rest(&self, place: usize, rest: Duration) {
        if self.exits.len() > 1 {
            let name = self.at(place).map(|exit| exit.name.as_str());
            tracing::info!(exit = name, rest_s = rest.as_secs(), "a proxy rests");
            self.turns().rest(place, Instant::now() + rest);
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        // The state is a few numbers, whole at every moment.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn proxied(options: &HttpOptions, trust: &Trust, number: usize, text: &str) -> Result<Exit, Error> {
    let wrong = || {
        Error::invalid(format!(
            "upstream.proxy: number {number} is no proxy address; give http://, https:// or \
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
    // The error is dropped because it may hold the address.
    let proxy = reqwest::Proxy::all(resolving_names(text)).map_err(|_| wrong())?;
    let client = client(options, trust, |builder| builder.proxy(proxy))?;
    Ok(Exit { client, name })
}

/// The address of a proxy that resolves names itself: `socks5h` is SOCKS5 with that. Resolving them here would tell
/// the local name server where the requests go, and give addresses that are near to us instead of the proxy.
pub(super) fn resolving_names(proxy: &str) -> String {
    match proxy.trim().split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("socks5") => format!("socks5h://{rest}"),
        _ => proxy.trim().to_owned(),
    }
}

fn client(
    options: &HttpOptions,
    trust: &Trust,
    exit: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, Error> {
    let builder = reqwest::Client::builder()
        // Before the own proxy: it drops what the environment says.
        .no_proxy()
        .tls_backend_preconfigured(trust.config()?)
        .default_headers(HeaderMap::from_iter([(header::ACCEPT_ENCODING, body::ACCEPTED)]))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.read_timeout)
        .pool_max_idle_per_host(IDLE_MAX)
        .pool_idle_timeout(IDLE_TIMEOUT);
    exit(builder).build().map_err(|_| Error::unexpected("the HTTP client cannot be set up"))
}

/// Whose turn it is: pure, so that it can be tested without proxies.
#[derive(Debug)]
struct Turns {
    next: usize,
    /// When the rest of each exit ends, where one was begun.
    rests: Vec<Option<Instant>>,
    /// Until when a platform is not asked through an exit at all, by the exit's place and the platform.
    silences: BTreeMap<(usize, &'static str), Instant>,
}

impl Turns {
    fn new(count: usize) -> Self {
        Self { next: 0, rests: vec![None; count], silences: BTreeMap::new() }
    }

    /// The next exit that does not rest; where all rest, the one whose rest ends first among those through
    /// which the platform may be asked. Where there is none, the time until there is one.
    fn take(&mut self, platform: &'static str, now: Instant) -> Result<usize, Duration> {
        self.silences.retain(|_, until| *until > now);
        let count = self.rests.len().max(1);
        let order = (0..count).map(|step| (self.next + step) % count);
        let open = order.filter(|&place| !self.silences.contains_key(&(place, platform)));
        let fresh = open.clone().find(|&place| !self.rests_at(place, now));
        let place = fresh.or_else(|| open.min_by_key(|&place| self.rests.get(place).copied().flatten()));
        let Some(place) = place else {
            let ends = self.silences.iter().filter(|((_, of), _)| *of == platform).map(|(_, until)| *until);
            return Err(ends.min().map_or(Duration::ZERO, |end| end.duration_since(now)));
        };
        self.next = (place + 1) % count;
        Ok(place)
    }

    fn has_fresh(&self, besides: usize, now: Instant) -> bool {
        (0..self.rests.len()).any(|place| place != besides && !self.rests_at(place, now))
    }

    fn rest(&mut self, place: usize, until: Instant) {
        if let Some(rest) = self.rests.get_mut(place) {
            *rest = (*rest).max(Some(until));
        }
    }

    fn silence(&mut self, place: usize, platform: &'static str, until: Instant) {
        let end = self.silences.entry((place, platform)).or_insert(until);
        *end = (*end).max(until);
    }

    fn rests_at(&self, place: usize, now: Instant) -> bool {
        self.rests.get(place).copied().flatten().is_some_and(|until| until > now)
    }
}

impl HttpFault {
    /// What the fault means for the exit that it was met at: whether, and how, it should rest.
    pub(super) fn tell(&self, exits: &Exits, place: usize, request: &Request) {
        match self {
            Self::Throttled(_) if request.throttled_apart => {}
            Self::Throttled(named) => exits.throttled(place, request.platform(), *named),
            Self::Unreachable(_) | Self::ProxyCredentials => exits.failed(place),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: &str = "www.youtube.com";

    #[test]
    fn exits_take_turns() {
        let now = Instant::now();
        let mut turns = Turns::new(3);
        let taken: Vec<_> = (0..5).map(|_| turns.take(SITE, now).unwrap()).collect();
        assert_eq!(taken, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn who_rests_is_passed_over_until_all_rest() {
        let (now, secs) = (Instant::now(), Duration::from_secs);
        let mut turns = Turns::new(3);
        turns.rest(0, now + secs(30));
        let take = |turns: &mut Turns, at| turns.take(SITE, at).unwrap();
        assert_eq!([(); 3].map(|()| take(&mut turns, now)), [1, 2, 1]);
        assert!(turns.has_fresh(1, now));
        turns.rest(2, now + secs(10));
        assert!(!turns.has_fresh(1, now));
        turns.rest(1, now + secs(20));
        assert_eq!([(); 2].map(|()| take(&mut turns, now)), [2, 2]);
        assert_eq!(take(&mut turns, now + secs(20)), 1, "its rest is over");
        // A shorter rest never shortens a longer one.
        turns.rest(0, now + secs(1));
        assert!(turns.rests_at(0, now + secs(29)));
    }

    #[test]
    fn a_platform_is_left_alone_while_it_may_be_asked_through_no_exit() {
        let (now, secs) = (Instant::now(), Duration::from_secs);
        let mut sole = Turns::new(1);
        sole.silence(0, SITE, now + secs(60));
        sole.silence(0, SITE, now + secs(5));
        assert_eq!(sole.take(SITE, now + secs(10)), Err(secs(50)), "a shorter silence never shortens one");
        assert_eq!(sole.take("t.co", now), Ok(0), "another platform has said nothing");
        assert_eq!(sole.take(SITE, now + secs(60)), Ok(0));

        let mut turns = Turns::new(2);
        turns.silence(0, SITE, now + secs(60));
        turns.rest(1, now + secs(300));
        assert_eq!([turns.take(SITE, now), turns.take(SITE, now)], [Ok(1), Ok(1)], "it only rests");
        turns.silence(1, SITE, now + secs(30));
        assert_eq!(turns.take(SITE, now), Err(secs(30)));
    }

    #[test]
    fn proxy_addresses_are_checked_without_being_shown() {
        let options = HttpOptions::default();
        let trust = Trust::new(None).unwrap();
        for good in [
            "http://proxy.example:3128",
            "https://me:pa%40ss@proxy.example",
            "socks5://me:secret@10.0.0.1:1080",
            " socks5h://proxy.example/ ",
        ] {
            let exit = proxied(&options, &trust, 1, good).unwrap();
            assert!(!exit.name.contains("secret") && !exit.name.contains('@'), "{}", exit.name);
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
            let error = proxied(&options, &trust, 7, bad).err().expect(bad);
            assert!(error.message().contains("number 7") && !error.message().contains("secret"), "{error}");
        }
    }
}
