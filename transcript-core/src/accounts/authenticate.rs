//! Authentication of v1 API keys.

use std::sync::Arc;

use super::{V1Error, call_context::CallContext};
use crate::{
    directory::{
        Account, Directory, KeyOwner,
        api_key::{ApiKey, ApiKind},
    },
    error::Result as StoreResult,
    ids::KeyId,
    lookup::request_counter::RequestCounter,
};

/// The message for a key of a blocked account.
pub(crate) const BLOCKED: &str =
    "This account is blocked. Write to the operator of the service; the remaining credits are kept.";

/// The authenticated caller: an account and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountPrincipal {
    /// The account, as it was when the key was looked up.
    pub account: Account,
    /// The key's public name.
    pub key: KeyId,
    /// The digest of the key; a key rotation compares and swaps it.
    pub(super) key_digest: Vec<u8>,
}

crate::debug_fields!(AccountPrincipal |this| { account: this.account.id, key });

/// Authenticates v1 API keys, and counts their requests. Uses the directory.
#[derive(Debug)]
pub struct Authenticator {
    pub(super) context: Arc<CallContext>,
    pub(super) directory: Arc<dyn Directory>,
    /// Requests that are not stored yet: holders see when a key was last used.
    pub(super) requests: RequestCounter,
}

impl Authenticator {
    /// Authenticates a bearer credential.
    /// A typo, and a key of the lookup API, are detected without a lookup.
    ///
    /// A blocked account gets 401, because specification 7.2 has no 403: its key is rejected until the
    /// operator unblocks it.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`] with the reason; [`V1Error::Internal`] if the directory is unavailable.
    pub async fn authenticate(self: &Arc<Self>, bearer: Option<&str>) -> Result<AccountPrincipal, V1Error> {
        let key = parse_key(bearer)?;
        let authenticator = Arc::clone(self);
        let work = async move {
            let key_digest = key.digest();
            match authenticator.context.call_store(authenticator.directory.key_owner(&key_digest)).await? {
                Some(KeyOwner::Account { account, .. }) if account.blocked => Err(unauthorized(BLOCKED)),
                Some(KeyOwner::Account { key, account }) => {
                    authenticator.count_use(&key);
                    Ok(AccountPrincipal { account, key, key_digest })
                }
                Some(KeyOwner::Lookup(_)) | None => Err(unauthorized(
                    "The API key is unknown, or was replaced by a newer one. A lost key is replaced by registering \
                     again with the same email address.",
                )),
            }
        };
        self.context.task(work).await
    }

    /// Counts a request of a key.
    pub(super) fn count_use(&self, key: &KeyId) {
        self.requests.count_use(key, self.context.now());
    }

    /// Adds the requests that were counted since the last call to the directory.
    ///
    /// # Errors
    /// Those of the directory: the requests stay counted, for the next call.
    pub async fn flush_requests(&self) -> StoreResult<()> {
        self.requests.flush().await
    }
}

/// Parses the key of a bearer credential.
pub(super) fn parse_key(bearer: Option<&str>) -> Result<ApiKey, V1Error> {
    let Some(text) = bearer else {
        return Err(unauthorized(
            "This needs an API key in the header Authorization: Bearer <API_KEY>. POST /api/v1/register sends \
             one to your email address.",
        ));
    };
    match ApiKey::parse(text.trim()) {
        Some(key) if key.kind() == ApiKind::V1 => Ok(key),
        Some(key) if key.kind() == ApiKind::Admin => Err(unauthorized(
            "This is a token of the admin API: the v1 API takes a key that begins with vba_.",
        )),
        Some(_) => Err(unauthorized(
            "This API key is for the lookup API (/api/transcript): the v1 API takes a key that begins with \
             vba_. POST /api/v1/register sends one to your email address.",
        )),
        None => Err(unauthorized(
            "The API key is not one of this service: check that it was copied whole. It begins with vba_.",
        )),
    }
}

pub(super) fn unauthorized(message: &str) -> V1Error {
    V1Error::Unauthorized(message.to_owned())
}
