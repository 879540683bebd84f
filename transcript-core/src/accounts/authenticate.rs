//! Whose key it is.

use std::fmt;

use super::{Accounts, Refused};
use crate::{
    directory::{
        Account, Owner,
        key::{Key, Surface},
    },
    ids::KeyId,
};

/// What the holder of a key of a blocked account is told.
pub(crate) const BLOCKED: &str =
    "This account is blocked: please write to the operator of the service. Its credits are kept.";

/// Whoever calls with a good key.
#[derive(Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account, as it was when the key was looked up.
    pub account: Account,
    /// The key's public name.
    pub key: KeyId,
    /// The digest of the key: what a rotation compares and swaps.
    pub(super) key_digest: Vec<u8>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("account", &self.account.id)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Accounts {
    /// Whose key a bearer credential is. A typo, and a key of the other surface, are recognised without a
    /// look-up.
    ///
    /// A blocked account is told so with 401, since the specification (section 7) has no 403: its key opens
    /// nothing until the operator unblocks it.
    ///
    /// # Errors
    /// [`Refused::Unauthorized`] with what is wrong; [`Refused::Internal`] when the directory is away.
    pub async fn authenticate(&self, bearer: Option<&str>) -> Result<Caller, Refused> {
        let key = read_key(bearer)?;
        let accounts = self.clone();
        self.task(async move { accounts.caller(&key).await }).await
    }

    /// Whose key it is, on the engine's runtime.
    pub(super) async fn caller(&self, key: &Key) -> Result<Caller, Refused> {
        let key_digest = key.digest();
        match self.once(self.parts.directory.owner(&key_digest)).await? {
            Some(Owner::Account { account, .. }) if account.blocked => Err(unauthorized(BLOCKED)),
            Some(Owner::Account { key, account }) => Ok(Caller { account, key, key_digest }),
            Some(Owner::Lookup(_)) | None => Err(unauthorized(
                "The API key is unknown, or was replaced by a newer one. A lost key is replaced by registering \
                 again with the same e-mail address.",
            )),
        }
    }
}

/// The key that a bearer credential is.
pub(super) fn read_key(bearer: Option<&str>) -> Result<Key, Refused> {
    let Some(text) = bearer else {
        return Err(unauthorized(
            "This needs an API key in the header Authorization: Bearer <API_KEY>. POST /api/v1/register sends \
             one to your e-mail address.",
        ));
    };
    match Key::parse(text.trim()) {
        Some(key) if key.surface() == Surface::Account => Ok(key),
        Some(_) => Err(unauthorized(
            "This API key is for the look-up API (/api/transcript): the v1 API takes a key that begins with \
             vba_. POST /api/v1/register sends one to your e-mail address.",
        )),
        None => Err(unauthorized(
            "The API key is not one of this service: check that it was copied whole. It begins with vba_.",
        )),
    }
}

pub(super) fn unauthorized(message: &str) -> Refused {
    Refused::Unauthorized(message.to_owned())
}
