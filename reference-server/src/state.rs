//! Shared state of the routes.

use std::sync::Arc;

use transcript_core::{
    accounts::{
        Accounts,
        payments::{Payments, Sandbox},
    },
    chat::Chat,
    lookup::Lookup,
};

use crate::{altcha::AltchaProvider, response_cache::ResponseCache};

/// Shared state of the routes.
#[derive(Clone, Debug)]
pub(crate) struct AppState {
    /// The lookup API.
    pub(crate) lookup: Lookup,
    /// The v1 API.
    pub(crate) accounts: Accounts,
    /// Chat about videos.
    pub(crate) chat: Chat,
    /// Plans and credit packs.
    pub(crate) payments: Payments,
    /// Sandbox checkout without real payments, if enabled.
    pub(crate) sandbox: Option<Sandbox>,
    /// Response cache of both APIs and the watch pages.
    pub(crate) bodies: Arc<ResponseCache>,
}

impl AppState {
    /// Creates the state with empty caches.
    pub(crate) fn new(
        lookup: Lookup,
        accounts: Accounts,
        chat: Chat,
        payments: Payments,
        sandbox: Option<Sandbox>,
    ) -> Self {
        let lookup = lookup.with_challenges(Arc::new(AltchaProvider));
        let bodies = Arc::new(ResponseCache::new(lookup.clone()));
        Self { lookup, accounts, chat, payments, sandbox, bodies }
    }
}
