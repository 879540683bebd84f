//! HTTP clients for services outside the platforms: Stripe, speech-to-text, receivers of webhooks.
//!
//! They do not use the platforms' proxies, and those of the environment only where a user asks for it: a proxy sees the
//! host, never the key, since it forwards the encrypted connection.

use std::{path::Path, time::Duration};

use http::{HeaderValue, header::InvalidHeaderValue};
use transcript_core::{Error, Result};

#[cfg(feature = "webhooks")]
use super::resolve::{PublicOnly, SystemResolver};
use super::{ProxyVariables, TlsConfigFactory};

/// Builds a client without redirects that trusts the system's certificates and a PEM file.
///
/// `connect_timeout` limits a connection; `timeout`, if given, limits a whole request. Only https requests use the
/// proxy.
///
/// # Errors
/// The file cannot be read, the proxy's URL is invalid, or the client cannot be built.
pub(crate) fn build_service_client(
    ca_file: Option<&Path>,
    proxy: Option<&ProxyVariables>,
    connect_timeout: Duration,
    timeout: Option<Duration>,
) -> Result<reqwest::Client> {
    let builder = client_builder(ca_file, connect_timeout)?;
    let builder = match proxy {
        Some(variables) => builder.proxy(variables.proxy(reqwest::Proxy::https)?.0),
        None => builder,
    };
    let builder = match timeout {
        Some(timeout) => builder.timeout(timeout),
        None => builder,
    };
    build(builder)
}

/// Builds a client for the addresses that accounts choose: it connects to public addresses only, unless private ones
/// are allowed, and keeps no connection.
///
/// # Errors
/// As [`build_service_client`].
#[cfg(feature = "webhooks")]
pub(crate) fn build_webhook_client(
    ca_file: Option<&Path>,
    allow_private: bool,
    connect_timeout: Duration,
    timeout: Duration,
) -> Result<reqwest::Client> {
    let builder = client_builder(ca_file, connect_timeout)?.timeout(timeout).pool_max_idle_per_host(0);
    // The connection goes to the checked address: the name is not resolved again.
    build(if allow_private { builder } else { builder.dns_resolver(PublicOnly(SystemResolver)) })
}

/// A client without proxy and redirects.
fn client_builder(ca_file: Option<&Path>, connect_timeout: Duration) -> Result<reqwest::ClientBuilder> {
    Ok(reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(TlsConfigFactory::new(ca_file)?.config()?)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(connect_timeout)
        .user_agent(concat!("verbatim/", env!("CARGO_PKG_VERSION"))))
}

fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client> {
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
