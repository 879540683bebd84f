//! Cookies of one platform session: dropped with it, and sent only to the hosts that they belong to.

use http::HeaderValue;
use url::Url;

/// Maximum number of cookies and bytes per cookie. TikTok sets five or six of 50 to 300 bytes.
const COOKIES_MAX: usize = 32;
const LENGTH_MAX: usize = 4_096;

/// Cookies set by the responses of one platform session.
#[derive(Debug, Default)]
pub(crate) struct CookieJar {
    kept: Vec<Cookie>,
}

/// A cookie with its scope.
struct Cookie {
    name: String,
    value: String,
    /// The host it is sent to, and whether also to all hosts below that.
    host: String,
    below: bool,
    path: String,
}

impl CookieJar {
    /// Stores the cookies that a response from this URL sets.
    pub(crate) fn take(&mut self, from: &Url, set: &[HeaderValue]) {
        for value in set {
            let Some(cookie) = Cookie::read(from, value) else { continue };
            self.kept.retain(|kept| !kept.is_replaced_by(&cookie));
            // An empty value deletes a cookie.
            if !cookie.value.is_empty() && self.kept.len() < COOKIES_MAX {
                self.kept.push(cookie);
            }
        }
    }

    /// The `Cookie` header of a request to this URL; `None` if no cookie matches.
    pub(crate) fn header(&self, to: &Url) -> Option<HeaderValue> {
        let host = to.host_str()?;
        let ours = self.kept.iter().filter(|cookie| cookie.applies_to(host, to.path()));
        let pairs: Vec<_> = ours.map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        if pairs.is_empty() {
            return None;
        }
        let mut header = HeaderValue::from_str(&pairs.join("; ")).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

impl Cookie {
    fn read(from: &Url, value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok().filter(|text| text.len() <= LENGTH_MAX)?;
        let mut parts = text.split(';').map(str::trim);
        let (name, value) = parts.next()?.split_once('=')?;
        let host = from.host_str()?;
        let mut cookie = Self {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            host: host.to_owned(),
            below: false,
            path: "/".to_owned(),
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key.trim().to_ascii_lowercase().as_str() {
                "domain" => {
                    let domain = value.trim().trim_start_matches('.').to_ascii_lowercase();
                    // The platforms' names have two parts (`tiktok.com`), so a single label is a registry's.
                    let is_own = is_within(host, &domain) && domain.contains('.');
                    if !is_own {
                        return None;
                    }
                    (cookie.host, cookie.below) = (domain, true);
                }
                "path" if value.starts_with('/') => cookie.path = value.trim().to_owned(),
                "max-age" if value.trim().starts_with(['0', '-']) => cookie.value.clear(),
                _ => {}
            }
        }
        (!cookie.name.is_empty()).then_some(cookie)
    }

    fn is_replaced_by(&self, other: &Self) -> bool {
        (&self.name, &self.host, &self.path) == (&other.name, &other.host, &other.path)
    }

    fn applies_to(&self, host: &str, path: &str) -> bool {
        let is_host = if self.below { is_within(host, &self.host) } else { host == self.host };
        let rest = path.strip_prefix(self.path.as_str());
        let is_path =
            rest.is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        is_host && is_path
    }
}

/// Whether a host equals this one or is below it.
fn is_within(host: &str, name: &str) -> bool {
    let below = host.strip_suffix(name);
    !name.is_empty() && below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

// Omits the value, which is a secret.
transcript_core::debug_fields!(Cookie { name, host });

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(set: &[&str], to: &str) -> String {
        let from = Url::parse("https://www.tiktok.com/@_/video/1").unwrap();
        let mut cookies = CookieJar::default();
        let set: Vec<_> = set.iter().map(|text| HeaderValue::from_str(text).unwrap()).collect();
        cookies.take(&from, &set);
        let header = cookies.header(&Url::parse(to).unwrap());
        header.map(|header| header.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    #[test]
    fn cookie_in_scope_is_sent() {
        let set = [
            "ttwid=1%7Cabc; Domain=.tiktok.com; Path=/; Secure; HttpOnly; SameSite=None; Max-Age=31536000",
            "tt_chain_token=xyz==; Path=/; Domain=tiktok.com",
            "own=1",
            "deep=2; path=/api",
        ];
        for (to, expect) in [
            ("https://www.tiktok.com/", "ttwid=1%7Cabc; tt_chain_token=xyz==; own=1"),
            ("https://www.tiktok.com/api/x", "ttwid=1%7Cabc; tt_chain_token=xyz==; own=1; deep=2"),
            ("https://www.tiktok.com/apis", "ttwid=1%7Cabc; tt_chain_token=xyz==; own=1"),
            ("https://v16-webapp.tiktok.com/a", "ttwid=1%7Cabc; tt_chain_token=xyz=="),
            ("https://v16.tiktokcdn.com/a", ""),
            ("https://eviltiktok.com/a", ""),
        ] {
            assert_eq!(sent(&set, to), expect, "{to}");
        }
    }

    #[test]
    fn cookie_foreign_domain_is_dropped() {
        for domain in ["com", ".com", "tiktokcdn.com", "evil.example", "v16.tiktok.com", ""] {
            assert_eq!(sent(&[&format!("a=1; Domain={domain}")], "https://www.tiktok.com/"), "", "{domain}");
        }
        assert_eq!(
            sent(&["no pair", "=x", &format!("a={}", "x".repeat(5_000))], "https://www.tiktok.com/"),
            ""
        );
    }

    #[test]
    fn cookie_last_value_wins_and_empty_deletes() {
        let to = "https://www.tiktok.com/";
        assert_eq!(sent(&["a=1", "a=2"], to), "a=2");
        assert_eq!(sent(&["a=1", "a=; Max-Age=0"], to), "");
        assert_eq!(sent(&["a=1", "a=gone; max-age=0"], to), "");
        let many: Vec<_> = (0..40).map(|number| format!("c{number}=1")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(sent(&many, to).split("; ").count(), COOKIES_MAX);
    }
}
