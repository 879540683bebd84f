//! Options of the transport: settings `upstream.*`.

use std::{path::PathBuf, time::Duration};

use transcript_core::{Error, Result};
use url::Url;

use super::egress_pool::resolving_names;

/// Maximum number of proxies: each has its own connection pool.
const PROXIES_MAX: usize = 256;
/// Maximum of concurrent requests, and of retries of one request.
const CONCURRENCY_MAX: u32 = 4_096;
const RETRIES_MAX: u32 = 10;

/// Options of the transport.
///
/// ```
/// use upstream_reqwest::{HttpOptions, HttpTransport};
///
/// let options = HttpOptions { proxies: vec!["http://10.0.0.7:3128".to_owned()], ..HttpOptions::default() };
/// let http = HttpTransport::new(options)?;
/// # Ok::<(), transcript_core::Error>(())
/// ```
#[derive(Clone, smart_default::SmartDefault)]
pub struct HttpOptions {
    /// Proxies for every request, in rotation. Empty: requests leave directly.
    ///
    /// The schemes are `http://`, `https://` and `socks5://`, with `user:password@` where needed. A SOCKS proxy
    /// resolves the names.
    pub proxies: Vec<String>,
    /// The proxy of the environment, used if `proxies` is empty. The transport does not read it.
    pub proxy_variables: Option<ProxyVariables>,
    /// Root certificates that are trusted in addition to the system's: a PEM file, or a folder as of
    /// `openssl rehash`.
    pub ca_file: Option<PathBuf>,
    /// Timeout of one attempt, from its start to the last byte of the response.
    #[default(Duration::from_secs(20))]
    pub timeout: Duration,
    /// Timeout of a connection attempt.
    #[default(Duration::from_secs(10))]
    pub connect_timeout: Duration,
    /// Longest pause between bytes while a response is read.
    #[default(Duration::from_secs(10))]
    pub read_timeout: Duration,
    /// Number of retries of a request after a transient error.
    #[default(2)]
    pub retries: u32,
    /// Maximum number of concurrent requests.
    #[default(32)]
    pub concurrency: u32,
}

/// Values of the standard variables for proxies.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyVariables {
    /// `HTTPS_PROXY`: the address of the proxy.
    pub https_proxy: String,
    /// `NO_PROXY`: hosts and networks that are reached directly, separated by commas; `*` for all.
    pub no_proxy: String,
}

// The address may hold credentials.
transcript_core::debug_fields!(ProxyVariables { no_proxy });

impl ProxyVariables {
    /// Reads the variables, in capitals or not; `None` if no proxy is set.
    ///
    /// `ALL_PROXY` applies if `HTTPS_PROXY` is not set.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let read = |name: &str| {
            let value = variable(name).or_else(|| variable(&name.to_ascii_lowercase()));
            value.filter(|value| !value.trim().is_empty())
        };
        // Desktops set a scheme for it that few programs know.
        let is_known = |proxy: &String| !proxy.starts_with("socks://");
        let proxy = read("HTTPS_PROXY").or_else(|| read("ALL_PROXY").filter(is_known))?;
        // As other programs, without a scheme.
        let https_proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
        Some(Self { https_proxy, no_proxy: read("NO_PROXY").unwrap_or_default() })
    }

    /// The proxy of a kind, which the excepted hosts do not use, and the proxy's host.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if the URL is invalid, which the message does not repeat.
    pub(super) fn proxy(
        &self,
        kind: impl FnOnce(String) -> reqwest::Result<reqwest::Proxy>,
    ) -> Result<(reqwest::Proxy, String)> {
        let wrong = || {
            Error::invalid(
                "HTTPS_PROXY is not a valid proxy URL; use http://, https:// or socks5://host:port",
            )
        };
        let url = Url::parse(self.https_proxy.trim()).map_err(|_| wrong())?;
        let known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        let host = url.host_str().filter(|host| known && !host.is_empty()).ok_or_else(wrong)?;
        let proxy = kind(resolving_names(&self.https_proxy)).map_err(|_| wrong())?;
        Ok((proxy.no_proxy(reqwest::NoProxy::from_string(&self.no_proxy)), host.to_owned()))
    }
}

impl HttpOptions {
    pub(super) fn check(&self) -> Result<()> {
        if self.timeout.is_zero() || self.connect_timeout.is_zero() || self.read_timeout.is_zero() {
            return Err(Error::invalid("upstream.timeout must be longer than zero"));
        }
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            return Err(Error::invalid(format!("upstream.concurrency must be 1 to {CONCURRENCY_MAX}")));
        }
        if self.retries > RETRIES_MAX {
            return Err(Error::invalid(format!("upstream.retries must be at most {RETRIES_MAX}")));
        }
        if self.proxies.len() > PROXIES_MAX {
            return Err(Error::invalid(format!("upstream.proxy takes at most {PROXIES_MAX} proxies")));
        }
        Ok(())
    }
}

// Omits the proxies' URLs, which may hold credentials.
transcript_core::debug_fields!(HttpOptions |this| {
    proxies: this.proxies.len(), proxy_variables, ca_file, timeout, connect_timeout, read_timeout, retries, concurrency
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_rejected() {
        let default = HttpOptions::default();
        assert!(default.check().is_ok());
        for (options, named) in [
            (HttpOptions { timeout: Duration::ZERO, ..default.clone() }, "timeout"),
            (HttpOptions { concurrency: 0, ..default.clone() }, "concurrency"),
            (HttpOptions { retries: 11, ..default.clone() }, "retries"),
            (HttpOptions { proxies: vec![String::new(); 257], ..default.clone() }, "proxy"),
        ] {
            assert!(options.check().unwrap_err().message().contains(named), "{named}");
        }
    }

    #[test]
    fn proxy_variables_are_read_in_order() {
        let read = |set: &[(&str, &str)]| {
            let find = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            ProxyVariables::read(find).map(|found| (found.https_proxy, found.no_proxy))
        };
        let found = |proxy: &str, direct: &str| Some((proxy.to_owned(), direct.to_owned()));
        assert_eq!(read(&[("NO_PROXY", "*"), ("HTTPS_PROXY", " ")]), None);
        assert_eq!(
            read(&[("HTTPS_PROXY", "http://a:1"), ("ALL_PROXY", "http://b:1")]),
            found("http://a:1", "")
        );
        assert_eq!(
            read(&[("https_proxy", "a:1"), ("no_proxy", ".example")]),
            found("http://a:1", ".example")
        );
        assert_eq!(read(&[("all_proxy", "socks5://b:1")]), found("socks5://b:1", ""));
    }

    #[test]
    fn options_debug_hides_credentials() {
        let options =
            HttpOptions { proxies: vec!["http://me:secret@proxy".to_owned()], ..Default::default() };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
