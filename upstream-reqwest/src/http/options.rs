//! The knobs of the transport: settings `upstream.*` (design section 7).

use std::{fmt, path::PathBuf, time::Duration};

use transcript_core::{Error, Result};

/// The most proxies that are taken: each has a connection pool of its own.
const PROXIES_MAX: usize = 256;
/// The most requests at once, and the most tries of one.
const CONCURRENCY_MAX: u32 = 4_096;
const RETRIES_MAX: u32 = 10;

/// Options of the transport.
///
/// ```
/// use upstream_reqwest::{Http, HttpOptions};
///
/// let options = HttpOptions { proxies: vec!["http://10.0.0.7:3128".to_owned()], ..HttpOptions::default() };
/// let http = Http::new(options)?;
/// # Ok::<(), transcript_core::Error>(())
/// ```
#[derive(Clone)]
pub struct HttpOptions {
    /// Proxies for every request, used in turn: `http://`, `https://` or `socks5://`, with
    /// `user:password@` where needed. A SOCKS proxy resolves the names. None: requests leave directly.
    pub proxies: Vec<String>,
    /// A PEM file with root certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The longest that one attempt takes, from its start to the last byte of the answer.
    pub timeout: Duration,
    /// The longest that a connection takes to come about.
    pub connect_timeout: Duration,
    /// The longest silence while an answer is read.
    pub read_timeout: Duration,
    /// How often a request that met a passing fault is tried again.
    pub retries: u32,
    /// How many requests are under way at once.
    pub concurrency: u32,
}

impl Default for HttpOptions {
    /// No proxy, the system's certificates, 20 s an attempt (10 s to connect, 10 s of silence), 2 retries,
    /// 32 requests at once.
    fn default() -> Self {
        Self {
            proxies: Vec::new(),
            ca_file: None,
            timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(10),
            retries: 2,
            concurrency: 32,
        }
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

impl fmt::Debug for HttpOptions {
    /// Without the proxies' addresses, which may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("proxies", &self.proxies.len())
            .field("ca_file", &self.ca_file)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("retries", &self.retries)
            .field("concurrency", &self.concurrency)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_accepted_and_nonsense_is_not() {
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
    fn credentials_are_never_shown() {
        let options =
            HttpOptions { proxies: vec!["http://me:secret@proxy".to_owned()], ..Default::default() };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
