//! Headers of responses that shared caches may store.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, CACHE_CONTROL},
};
use transcript_core::{headers, video::VideoId};
use verbatim::surrogate_key;

use crate::{
    api::{X_REQUEST_ID, header_name},
    config::CdnSettings,
};

/// The keys of a response, separated by spaces, and by commas: caches read the one or the other.
const KEY_HEADERS: [HeaderName; 2] =
    [header_name!(headers::SURROGATE_KEY), HeaderName::from_static("cache-tag")];

/// Permission to store public responses.
#[derive(Clone, Debug)]
pub(crate) struct SharedCaching {
    cache_control: HeaderValue,
}

/// Headers of the responses with one video.
#[derive(Clone, Debug)]
pub(super) struct SharedHeaders {
    cache_control: HeaderValue,
    key: HeaderValue,
}

impl SharedCaching {
    /// Creates the permission; `None` if the settings give none.
    pub(crate) fn new(settings: &CdnSettings) -> Option<Self> {
        let cache_control = HeaderValue::try_from(settings.cache_control()?).ok()?;
        Some(Self { cache_control })
    }

    pub(super) fn for_video(&self, video: &VideoId) -> Option<SharedHeaders> {
        // Ids have URL-safe characters only.
        let key = HeaderValue::try_from(surrogate_key(video)).ok()?;
        Some(SharedHeaders { cache_control: self.cache_control.clone(), key })
    }
}

impl SharedHeaders {
    /// Adds the headers, unless the request has a key.
    pub(super) fn apply(&self, request_headers: &HeaderMap, headers: &mut HeaderMap) {
        if request_headers.contains_key(AUTHORIZATION) {
            return;
        }
        headers.insert(CACHE_CONTROL, self.cache_control.clone());
        for name in KEY_HEADERS {
            headers.insert(name, self.key.clone());
        }
    }
}

/// Removes from any response what a shared cache must not store.
///
/// Some caches store responses without `Cache-Control`, such as that of `/health`. The id of a request may be chosen by
/// its client.
pub(crate) fn restrict_shared_caches(headers: &mut HeaderMap) {
    match headers.get(CACHE_CONTROL) {
        None => {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        Some(rule) if rule.as_bytes().starts_with(b"public") => {
            headers.remove(X_REQUEST_ID);
        }
        Some(_) => {}
    }
}
