//! Addresses of services that the operator chose.

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
