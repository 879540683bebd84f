//! Options of the transport: settings `upstream.*`.

use std::{path::PathBuf, time::Duration};

use transcript_core::{Error, Result};

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
    /// A PEM file with root certificates that are trusted in addition to the system's.
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
    proxies: this.proxies.len(), ca_file, timeout, connect_timeout, read_timeout, retries, concurrency
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
    fn options_debug_hides_credentials() {
        let options =
            HttpOptions { proxies: vec!["http://me:secret@proxy".to_owned()], ..Default::default() };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
