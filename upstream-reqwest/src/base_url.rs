//! Addresses of services that the operator chose.

use transcript_core::{Error, Result};
use url::Url;

/// Parses an http or https address without a user name, a query and a fragment. `None` for any other text.
pub(crate) fn parse_base_url(address: &str) -> Option<Url> {
    let is_plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    Url::parse(address).ok().filter(is_plain)
}

/// The URL of a path below a base URL, which is the value of `setting`.
///
/// # Errors
/// [`transcript_core::ErrorKind::Invalid`], naming the setting.
pub(crate) fn endpoint_url(setting: &str, base_url: &str, path: &str) -> Result<Url> {
    let mut url = parse_base_url(base_url).ok_or_else(|| {
        Error::invalid(format!(
            "{setting} must be http:// or https://, /v1 included, without a query or a user name"
        ))
    })?;
    let path = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}
