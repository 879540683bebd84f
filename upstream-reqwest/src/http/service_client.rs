//! HTTP clients for services that the operator chose and has a key for: Stripe, speech-to-text.
//!
//! They do not use the platforms' proxies, and those of the environment only where a user asks for it: a proxy sees the
//! host, never the key, since it forwards the encrypted connection.

use std::{path::Path, time::Duration};

use http::{HeaderValue, header::InvalidHeaderValue};
use transcript_core::{Error, Result};

use super::{ProxyVariables, TlsConfigFactory};

/// Builds a client without redirects that trusts the system's certificates and a PEM file.
///
/// `connect_timeout` limits a connection; `timeout`, if given, limits a whole request. Only https requests use the proxy.
///
/// # Errors
/// The file cannot be read, the proxy's URL is invalid, or the client cannot be built.
pub(crate) fn build_service_client(
    ca_file: Option<&Path>,
    proxy: Option<&ProxyVariables>,
    connect_timeout: Duration,
    timeout: Option<Duration>,
) -> Result<reqwest::Client> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(TlsConfigFactory::new(ca_file)?.config()?)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(connect_timeout)
        .user_agent(concat!("verbatim/", env!("CARGO_PKG_VERSION")));
    let builder = match proxy {
        Some(variables) => builder.proxy(variables.proxy(reqwest::Proxy::https)?.0),
        None => builder,
    };
    let builder = match timeout {
        Some(timeout) => builder.timeout(timeout),
        None => builder,
    };
    builder.build().map_err(|_| Error::unexpected("the HTTP client cannot be built"))
}

/// The `Authorization` header of a key, marked sensitive so that no log shows it.
///
/// # Errors
/// The key has a character that a header cannot hold.
pub(crate) fn bearer(key: &str) -> std::result::Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}"))?;
    value.set_sensitive(true);
    Ok(value)
}
