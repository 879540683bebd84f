//! The key of a client, which can be replaced while calls wait.

use std::sync::{Arc, OnceLock};

use transcript_core::directory::api_key::ApiKind;

/// The key of a client for its requests, and the one that has replaced it.
///
/// A call that waits finds the later keys without a lock: a fork copies a lock that a thread of the runtime holds.
/// A key of the other API replaces none: a lookup would be refused, and a batch would begin to buy.
pub struct ConnectionKey {
    text: Option<String>,
    /// The last key of the other API before this one.
    other: Option<String>,
    next: OnceLock<Arc<Self>>,
}

impl ConnectionKey {
    /// A key without a later one; `None` for anonymous requests.
    pub fn new(text: Option<String>) -> Arc<Self> {
        Arc::new(Self { text, other: None, next: OnceLock::new() })
    }

    /// The text of the key; `None` for anonymous requests.
    pub fn text(&self) -> Option<String> {
        self.text.clone()
    }

    /// The API of the key.
    pub fn api(&self) -> ApiKind {
        Self::api_of(self.text.as_deref())
    }

    /// The API of a key by its prefix, also of a malformed one; that of lookups without a key.
    pub fn api_of(text: Option<&str>) -> ApiKind {
        match text {
            Some(text) if text.starts_with(ApiKind::V1.prefix()) => ApiKind::V1,
            _ => ApiKind::Lookup,
        }
    }

    /// The current text for requests to an API: that of this key or a later one.
    pub fn current(&self, api: ApiKind) -> Option<String> {
        let mut key = self;
        while let Some(next) = key.next.get() {
            key = next;
        }
        if key.api() == api { key.text.clone() } else { key.other.clone() }
    }

    /// Replaces the current key.
    pub fn replace(current: &mut Arc<Self>, text: String) {
        let mut next = Self { text: Some(text), other: current.other.clone(), next: OnceLock::new() };
        if next.api() != current.api() {
            next.other.clone_from(&current.text);
        }
        let next = Arc::new(next);
        // The current key has no later one.
        let _is_set = current.next.set(Arc::clone(&next));
        *current = next;
    }
}

// Without keys.
transcript_core::debug_fields!(ConnectionKey {});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_call_gets_later_keys_of_its_api_only() {
        let first = ConnectionKey::new(Some("vba_1".to_owned()));
        let mut current = Arc::clone(&first);
        let buys = || first.current(ApiKind::V1);
        assert_eq!((buys().as_deref(), first.current(ApiKind::Lookup)), (Some("vba_1"), None));
        for (key, expected) in
            [("vba_2", "vba_2"), ("vbk_1", "vba_2"), ("vbk_2", "vba_2"), ("vba_3", "vba_3")]
        {
            ConnectionKey::replace(&mut current, key.to_owned());
            assert_eq!(buys().as_deref(), Some(expected), "{key}");
        }
        assert_eq!(first.current(ApiKind::Lookup).as_deref(), Some("vbk_2"));
        assert_eq!(current.text().as_deref(), Some("vba_3"));
    }
}
