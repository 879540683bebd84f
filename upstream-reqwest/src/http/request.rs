//! What is asked and what is answered; and the rule about where a request may go.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::{Host, Url};

use super::HttpFault;

/// One request. It may be sent several times, so it is cheap to send again.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The hosts that this request may go to: its platform's. One that begins with a dot stands for every
    /// host below that name.
    pub(crate) hosts: &'static [&'static str],
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// How many bytes of the answer are read, after decompression. A longer answer is a fault; with 0 the
    /// body is left unread, however long it is.
    pub(crate) answer_max: usize,
    /// Whether the platform throttles this kind of request apart from all others: a 429 then says nothing
    /// of the exit, and is not tried again.
    pub(crate) throttled_apart: bool,
}

impl Request {
    /// The platform, by the first of its hosts.
    pub(super) fn platform(&self) -> &'static str {
        self.hosts.first().copied().unwrap_or_default()
    }

    /// Refuses an address that is not one of the platform's own.
    pub(super) fn check(&self) -> Result<(), HttpFault> {
        if is_allowed(&self.url, self.hosts) { Ok(()) } else { Err(HttpFault::ForeignAddress) }
    }
}

/// Whether the address is one that we go to: https on its own port, a host of the list, nobody's name and
/// password in it. Addresses come from the platforms' answers, so nothing is taken for granted.
pub(crate) fn is_allowed(url: &Url, hosts: &[&str]) -> bool {
    let known = match url.host() {
        // A trailing dot, an address in numbers or another spelling is not on the list.
        Some(Host::Domain(host)) => hosts.iter().any(|known| is_of(host, known)),
        _ => false,
    };
    let plain = url.username().is_empty() && url.password().is_none();
    // `port` is none where the port is the scheme's own.
    url.scheme() == "https" && known && plain && url.port().is_none()
}

/// Whether a host is a known one, or lies below a known name that begins with a dot.
fn is_of(host: &str, known: &str) -> bool {
    match host.strip_suffix(known) {
        Some(below) => below.is_empty() != known.starts_with('.'),
        None => false,
    }
}

/// An answer, whatever its status; only 408, 429 and 5xx are faults of the transport.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// Where a redirect leads, made absolute. It is not followed.
    pub(crate) location: Option<Url>,
    /// The cookies that it sets, as they are written. Nobody keeps them unless an errand does.
    pub(crate) cookies: Vec<HeaderValue>,
    pub(crate) body: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str) -> bool {
        let request = Request {
            method: Method::GET,
            url: Url::parse(url).unwrap(),
            hosts: &["www.youtube.com", "youtu.be"],
            headers: HeaderMap::new(),
            body: Bytes::new(),
            answer_max: 1,
            throttled_apart: false,
        };
        request.check().is_ok()
    }

    #[test]
    fn a_dot_stands_for_all_hosts_below_a_name() {
        for (host, expect) in [
            ("v16-webapp.tiktok.com", true),
            ("a.b.tiktok.com", true),
            ("tiktok.com", false),
            ("eviltiktok.com", false),
            (".tiktok.com", false),
            ("tiktok.com.evil.example", false),
        ] {
            assert_eq!(is_of(host, ".tiktok.com"), expect, "{host}");
        }
        assert!(is_of("x.com", "x.com") && !is_of("a.x.com", "x.com") && !is_of("ax.com", "x.com"));
    }

    #[test]
    fn requests_go_to_known_hosts_only() {
        for allowed in
            ["https://www.youtube.com/a?b=c", "HTTPS://WWW.YouTube.com/", "https://www.youtube.com:443/"]
        {
            assert!(check(allowed), "{allowed}");
        }
        for refused in [
            "http://www.youtube.com/",
            "ftp://www.youtube.com/",
            "https://www.youtube.com:8443/",
            "https://me@www.youtube.com/",
            "https://:pw@www.youtube.com/",
            "https://www.youtube.com.evil.example/",
            "https://evil.example/www.youtube.com",
            "https://www.youtube.com./",
            "https://youtube.com/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://2130706433/",
            "https://www.youtube.com@evil.example/",
            "https://www.youtube.com\\@evil.example/",
            "https://ｗｗｗ.youtube.com.evil.example/",
            "file:///etc/passwd",
            "data:text/plain,x",
        ] {
            // The one with a backslash is read as the known host with an odd path, which is as it should be.
            let is_own =
                Url::parse(refused).unwrap().host_str() == Some("www.youtube.com") && refused.contains('\\');
            assert_eq!(check(refused), is_own, "{refused}");
        }
    }
}
