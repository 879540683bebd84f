//! Names of headers as constants.

/// The [`http::HeaderName`] of a name in [`transcript_core::headers`], as a constant.
macro_rules! header_name {
    ($name:expr) => {{
        const LOWER: &[u8] = &$crate::api::lower_case::<{ $name.len() }>($name);
        // The compiler rejects an empty name.
        http::HeaderName::from_static(match std::str::from_utf8(LOWER) {
            Ok(name) => name,
            Err(_) => "",
        })
    }};
}

pub(crate) use header_name;

/// Converts a name of this length to lower case, which `http` requires of constants.
pub(crate) const fn lower_case<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut lower = [0; LENGTH];
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    lower
}
