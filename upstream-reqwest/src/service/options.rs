//! Options of a [`ServiceClient`](super::ServiceClient).

use std::{path::PathBuf, time::Duration};

use transcript_core::{Error, Result};
use url::Url;

use crate::{base_url::parse_base_url, http::ProxyVariables};

/// Upper bound of [`ServiceOptions::named_wait_max`].
const WAIT_MAX: Duration = Duration::from_secs(300);

/// Address, key and timeouts of a Verbatim server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceOptions {
    /// The server's URL, to which `/api/…` is added (`service.base_url`).
    ///
    /// It is http or https, without a query or a user name.
    pub base_url: String,
    /// A key: `vbk_…` for the lookup API, `vba_…` for the v1 API (`service.api_key`).
    ///
    /// Without one only archived transcripts and endpoints without authentication are available.
    pub api_key: Option<String>,
    /// A PEM file with root certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The environment's proxy for https; `None`: a direct connection.
    ///
    /// As [`crate::HttpOptions::proxy_variables`]. The client does not read the environment.
    pub proxy_variables: Option<ProxyVariables>,
    /// Timeout of one attempt, including its response (`service.timeout`).
    ///
    /// A server needs up to 25 s for a video that is not archived, and up to 60 s more for an answer of chat, unless
    /// its operator changed the defaults.
    pub timeout: Duration,
    /// Number of retries after a transient error, where a retry is safe.
    ///
    /// If a retry of a charged call reports that the lost request still runs, the client repeats it for up to 2 minutes
    /// more, which do not count. It does not wait without retries, or if the call is dropped: a repetition is then free
    /// only with the same idempotency key.
    pub retries: u32,
    /// The longest `Retry-After` that the client waits for before a retry.
    ///
    /// A longer one is returned to the caller immediately.
    pub named_wait_max: Duration,
}

impl ServiceOptions {
    /// Options for the server at this URL, without a key.
    ///
    /// The defaults are 60 s per attempt, 2 retries and `Retry-After` up to 10 s.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
            ca_file: None,
            proxy_variables: None,
            timeout: Duration::from_secs(60),
            retries: 2,
            named_wait_max: Duration::from_secs(10),
        }
    }

    /// The same options with this key.
    pub fn with_key(self, api_key: impl Into<String>) -> Self {
        Self { api_key: Some(api_key.into()), ..self }
    }

    /// Validates the options; returns the base URL.
    pub(super) fn check(&self) -> Result<Url> {
        let wrong = || {
            Error::invalid(
                "service.base_url must be the URL of a Verbatim server: http:// or https://, without a query \
                 or a user name",
            )
        };
        let url = parse_base_url(&self.base_url).ok_or_else(wrong)?;
        if self.timeout.is_zero() {
            return Err(Error::invalid("service.timeout must be more than zero"));
        }
        if self.named_wait_max > WAIT_MAX {
            return Err(Error::invalid("named_wait_max must be at most 5 minutes"));
        }
        Ok(url)
    }
}

// Omits the key.
transcript_core::debug_fields!(ServiceOptions |this| {
    base_url, has_key: this.api_key.is_some(), timeout, retries
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_options_invalid_url_is_rejected() {
        for valid in ["https://verbatim.example", "http://127.0.0.1:8080/", "https://a.example/under/this"] {
            assert!(ServiceOptions::new(valid).check().is_ok(), "{valid}");
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
        assert_eq!(never.check().unwrap_err().message(), "service.timeout must be more than zero");
        let endless = ServiceOptions { named_wait_max: Duration::MAX, ..ServiceOptions::new("https://a") };
        assert!(endless.check().unwrap_err().message().contains("named_wait_max"));
    }

    #[test]
    fn service_options_debug_hides_key() {
        let options = ServiceOptions::new("https://a").with_key("vbk_hush");
        assert!(!format!("{options:?}").contains("hush"));
    }
}
