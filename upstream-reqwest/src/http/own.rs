//! Clients for services that the operator chose and has a key of: Stripe, speech-to-text. They are no platforms, and
//! nothing of the transport stands between: neither the platforms' proxies nor the environment's, so that nobody
//! else sees the key.

use std::{path::Path, time::Duration};

use http::{HeaderValue, header::InvalidHeaderValue};
use transcript_core::{Error, Result};

use super::Trust;

/// A client that goes nowhere by itself; it trusts the system's certificates and those of a PEM file. A connection may
/// take `connect_timeout` to come about, and a request `timeout` in all, where that is given.
///
/// # Errors
/// The file cannot be used, or the client cannot be set up.
pub(crate) fn own_client(
    ca_file: Option<&Path>,
    connect_timeout: Duration,
    timeout: Option<Duration>,
) -> Result<reqwest::Client> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(Trust::new(ca_file)?.config()?)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(connect_timeout)
        .user_agent(concat!("verbatim/", env!("CARGO_PKG_VERSION")));
    let builder = match timeout {
        Some(timeout) => builder.timeout(timeout),
        None => builder,
    };
    builder.build().map_err(|_| Error::unexpected("the HTTP client cannot be set up"))
}

/// A key as the header that carries it, which no log shows.
///
/// # Errors
/// The key holds what no header can.
pub(crate) fn bearer(key: &str) -> std::result::Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}"))?;
    value.set_sensitive(true);
    Ok(value)
}
