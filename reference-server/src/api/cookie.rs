//! Cookies of requests and responses.

use axum::response::Response;
use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};

/// Returns the value of a cookie, the first one if there are several.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// Adds a cookie, by name and value, to a response of the service with this address.
///
/// It is hidden from scripts, and for encrypted connections only if the address begins with `https`.
pub(crate) fn add_cookie(
    response: &mut Response,
    base_url: &str,
    (name, value): (&str, &str),
    path: &str,
    max_age_s: u64,
    same_site: &str,
) {
    let secure = if base_url.starts_with("https://") { "; Secure" } else { "" };
    let cookie =
        format!("{name}={value}; Path={path}; Max-Age={max_age_s}; HttpOnly; SameSite={same_site}{secure}");
    // Names, values and paths have only characters that a header allows.
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}
