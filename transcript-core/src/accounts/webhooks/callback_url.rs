//! The address of a webhook, which an account chooses.

use url::{Host, Url};

/// The longest address, in bytes.
pub const CALLBACK_URL_MAX: usize = 2_048;

/// Checks an address before it is stored; the client checks again what it connects to.
///
/// # Errors
/// What is wrong, for a message that names the field.
pub fn check_callback_url(text: &str, allow_private: bool) -> Result<(), &'static str> {
    if text.len() > CALLBACK_URL_MAX {
        return Err("it has more than 2048 bytes");
    }
    // The parser drops some of them.
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err("it must contain no white space and no control characters");
    }
    let Ok(url) = Url::parse(text) else { return Err("it is not an address") };
    match url.scheme() {
        "https" => {}
        "http" if allow_private => {}
        _ => return Err("it must be an https address"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must contain no credentials; each call is signed");
    }
    if url.fragment().is_some() {
        return Err("it must contain no fragment");
    }
    match url.host() {
        Some(Host::Domain(name)) if allow_private || name.trim_end_matches('.').contains('.') => Ok(()),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) if allow_private => Ok(()),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => Err("its host must be a name, not an address"),
        _ => Err("its host must be a public name"),
    }
}
