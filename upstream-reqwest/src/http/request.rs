//! Requests and responses of the transport, and the rule which URLs are allowed.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::{Host, Url};

use super::HttpError;

/// One request. It is cheap to send several times.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// Allowed hosts, all of one platform.
    ///
    /// An entry that begins with a dot matches every host below that name.
    pub(crate) hosts: &'static [&'static str],
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Maximum length of the body in bytes, after decompression.
    ///
    /// A longer body is an error; with 0 the body is not read.
    pub(crate) response_max: usize,
    /// Whether the platform has a separate rate limit for this kind of request.
    ///
    /// A 429 then does not count against the egress route and is not retried.
    pub(crate) has_own_rate_limit: bool,
}

impl HttpRequest {
    /// A GET request, which shares the platform's rate limit.
    pub(crate) fn get(
        url: Url,
        hosts: &'static [&'static str],
        headers: HeaderMap,
        response_max: usize,
    ) -> Self {
        Self {
            method: Method::GET,
            url,
            hosts,
            headers,
            body: Bytes::new(),
            response_max,
            has_own_rate_limit: false,
        }
    }

    /// The platform, named by the first of its hosts.
    pub(super) fn platform(&self) -> &'static str {
        self.hosts.first().copied().unwrap_or_default()
    }

    /// Rejects a URL outside the allowed hosts.
    pub(super) fn check(&self) -> Result<(), HttpError> {
        if is_allowed(&self.url, self.hosts) { Ok(()) } else { Err(HttpError::DisallowedHost) }
    }
}

/// A URL in the source code.
pub(crate) fn parse_constant(address: &'static str) -> Url {
    Url::parse(address).expect("invariant: URLs in the source code are valid")
}

/// Whether a URL is allowed: https on the default port, a host of the list, no user name or password.
///
/// URLs come from the platforms' responses and are untrusted.
pub(crate) fn is_allowed(url: &Url, hosts: &[&str]) -> bool {
    let known = match url.host() {
        // A trailing dot, a numeric address or another spelling is not on the list.
        Some(Host::Domain(host)) => hosts.iter().any(|known| matches_host(host, known)),
        _ => false,
    };
    let plain = url.username().is_empty() && url.password().is_none();
    // `port` is `None` for the scheme's default port.
    url.scheme() == "https" && known && plain && url.port().is_none()
}

/// Whether a host equals a known one, or is below a known name that begins with a dot.
fn matches_host(host: &str, known: &str) -> bool {
    match host.strip_suffix(known) {
        Some(below) => below.is_empty() != known.starts_with('.'),
        None => false,
    }
}

/// A response of any status; only 408, 429 and 5xx are transport errors.
#[derive(Clone, Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    /// Absolute target of a redirect. It is not followed.
    pub(crate) location: Option<Url>,
    /// Raw `Set-Cookie` values. Only a [`crate::social::PlatformSession`] stores them.
    pub(crate) cookies: Vec<HeaderValue>,
    pub(crate) body: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str) -> bool {
        let request = HttpRequest {
            method: Method::GET,
            url: Url::parse(url).unwrap(),
            hosts: &["www.youtube.com", "youtu.be"],
            headers: HeaderMap::new(),
            body: Bytes::new(),
            response_max: 1,
            has_own_rate_limit: false,
        };
        request.check().is_ok()
    }

    #[test]
    fn host_rule_leading_dot_matches_hosts_below() {
        for (host, expect) in [
            ("v16-webapp.tiktok.com", true),
            ("a.b.tiktok.com", true),
            ("tiktok.com", false),
            ("eviltiktok.com", false),
            (".tiktok.com", false),
            ("tiktok.com.evil.example", false),
        ] {
            assert_eq!(matches_host(host, ".tiktok.com"), expect, "{host}");
        }
        assert!(
            matches_host("x.com", "x.com")
                && !matches_host("a.x.com", "x.com")
                && !matches_host("ax.com", "x.com")
        );
    }

    #[test]
    fn request_unknown_host_is_rejected() {
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
            // Look-alikes: another alphabet, an accent, an invisible character, encoded dots.
            "https://www.y\u{43e}utube.com/",
            "https://www.youtub\u{e9}.com/",
            "https://xn--www-youtube-com.example/",
            "https://www.youtube.com\u{200b}.evil.example/",
            "https://www.youtube.com%2eevil.example/",
            "https://www\u{3002}youtube\u{3002}com.evil.example/",
            "https://169.254.169.254/latest/meta-data",
            "https://[::ffff:169.254.169.254]/",
            "https://[fd00:ec2::254]/",
            "https://0xa9fea9fe/",
            "file:///etc/passwd",
            "data:text/plain,x",
        ] {
            // The URL with a backslash parses as the allowed host with an odd path, which is correct.
            let is_allowed_host =
                Url::parse(refused).unwrap().host_str() == Some("www.youtube.com") && refused.contains('\\');
            assert_eq!(check(refused), is_allowed_host, "{refused}");
        }
    }
}
