//! Which server is asked, and how patiently.

use std::{fmt, path::PathBuf, time::Duration};

use transcript_core::{Error, Result};
use url::Url;

/// The longest wait that [`ServiceOptions::named_wait_max`] may be.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// Where a Verbatim server is, and with which key it is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceOptions {
    /// The server's address, to which `/api/…` is added (`service.base_url`): http or https, without a query or a
    /// user name.
    pub base_url: String,
    /// A key: `vbk_…` for Surface A, `vba_…` for Surface B (`service.api_key`). Without one only what is archived
    /// can be had, and what needs no key.
    pub api_key: Option<String>,
    /// A PEM file with root certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// How long one attempt may take, its answer included (`service.timeout`). A server takes its own time for
    /// what is not archived: 25 s unless its operator chose otherwise.
    pub timeout: Duration,
    /// How often a request that failed in passing is sent again, where that is safe.
    pub retries: u32,
    /// The longest wait that the server may name and that is waited for before a request is sent again; a longer
    /// one is told to the caller at once.
    pub named_wait_max: Duration,
}

impl ServiceOptions {
    /// The server at this address, without a key: 60 s for an attempt, 2 retries, named waits of up to 10 s.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
            ca_file: None,
            timeout: Duration::from_secs(60),
            retries: 2,
            named_wait_max: Duration::from_secs(10),
        }
    }

    /// The same, with this key.
    pub fn with_key(self, api_key: impl Into<String>) -> Self {
        Self { api_key: Some(api_key.into()), ..self }
    }

    /// The address that paths are added to, when the options are sound.
    pub(super) fn check(&self) -> Result<Url> {
        let wrong = || {
            Error::invalid(
                "service.base_url must be the address of a Verbatim server: http:// or https://, without a query \
                 or a user name",
            )
        };
        let url = Url::parse(&self.base_url).map_err(|_| wrong())?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_plain {
            return Err(wrong());
        }
        if self.timeout.is_zero() || self.named_wait_max > WAIT_MAX {
            return Err(Error::invalid(
                "service.timeout must be more than zero, and named waits at most 5 minutes",
            ));
        }
        Ok(url)
    }
}

impl fmt::Debug for ServiceOptions {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceOptions")
            .field("base_url", &self.base_url)
            .field("has_key", &self.api_key.is_some())
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_taken() {
        for good in ["https://verbatim.example", "http://127.0.0.1:8080/", "https://a.example/under/this"] {
            assert!(ServiceOptions::new(good).check().is_ok(), "{good}");
        }
        for bad in [
            "",
            "verbatim.example",
            "ftp://a",
            "https://me@a",
            "https://:x@a",
            "https://a?k=1",
            "https://a#b",
        ] {
            let error = ServiceOptions::new(bad).check().unwrap_err();
            assert!(error.message().contains("service.base_url"), "{bad}: {error}");
        }
        let never = ServiceOptions { timeout: Duration::ZERO, ..ServiceOptions::new("https://a") };
        assert!(never.check().unwrap_err().message().contains("service.timeout"));
        let endless = ServiceOptions { named_wait_max: Duration::MAX, ..ServiceOptions::new("https://a") };
        assert!(endless.check().is_err());
    }

    #[test]
    fn the_key_is_never_shown() {
        let options = ServiceOptions::new("https://a").with_key("vbk_hush");
        assert!(!format!("{options:?}").contains("hush"));
    }
}
