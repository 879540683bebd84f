//! Directory of API keys, accounts, verification tokens and the service's secrets.
//!
//! Keys and tokens are never stored in plain text; the directory receives their SHA-256 digests (32 bytes).

pub mod api_key;
mod key_access;
mod records;

use std::fmt;

use async_trait::async_trait;

pub use key_access::{
    FieldChange, KeyAccess, KeyAccessChange, KeyRequests, PeriodRequests, RequestCounts, RequestQuota,
};
pub use records::{
    Account, AccountKey, AccountRef, AddAccountKeyOutcome, AddKeyOutcome, EraseOutcome, KeyOwner, KeySummary,
    LookupKey, NewAccountKey, NewKeyRecord, PaidPeriod, Plan, RedeemOutcome, RedeemRequest, RenewRequest,
    RotateOutcome, UpdateOutcome, VerificationToken,
};

use crate::{
    error::{Error, Result},
    ids::{AccountId, KeyId},
    page::{Page, PageRequest},
    time::Timestamp,
};

/// Store of API keys and accounts; maps a key to its wallet.
///
/// Each method is one transaction: it applies entirely or not at all, and an acknowledged change survives a crash. If
/// a future is dropped, the call has either applied or not. A call with an id or digest that the same call already
/// stored succeeds, so a call with an unknown outcome can be repeated; a call that contradicts the stored record is
/// [`crate::ErrorKind::Conflict`].
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
#[async_trait]
pub trait Directory: fmt::Debug + Send + Sync + 'static {
    /// Returns the owner of the key with this digest; one read authenticates keys of both APIs.
    ///
    /// **Behaviour**: `None` for an unknown, rotated or revoked key.
    async fn key_owner(&self, key_digest: &[u8]) -> Result<Option<KeyOwner>>;

    /// Adds a key of the lookup API.
    ///
    /// **Behaviour**
    /// - A key with a subject counts as one of the subject's live plus keys while its `entitled_until` is after
    ///   `key.now` and it is not revoked. If the subject already has `live_per_subject` live keys, the outcome is
    ///   [`AddKeyOutcome::SubjectFull`] and nothing is stored; `room_at` is when enough of them have ended for another.
    /// - The same key again (id and digest) is [`AddKeyOutcome::Added`] and changes nothing, also if it is no longer
    ///   live. Keys of both APIs share one namespace of ids and digests.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the id or the digest belongs to another key.
    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKeyOutcome>;

    /// Extends the entitlement of a plus key.
    ///
    /// **Behaviour**
    /// - Applies only if the subject is the key's own, and never shortens the entitlement. Returns whether the key
    ///   belongs to the subject, also if nothing changed; false for an unknown or revoked key.
    /// - A key whose entitlement ended at or before `request.now` becomes live again only if its subject has fewer than
    ///   `request.live_per_subject` live plus keys, counted as in [`Directory::add_key`]; otherwise the result is false
    ///   and nothing changes. A live key is not counted against itself.
    async fn renew_entitlement(&self, request: RenewRequest) -> Result<bool>;

    /// Replaces a key by a new key of the same owner; compare-and-swap on the digest.
    ///
    /// **Behaviour**: the old key is revoked at `new.now`; the owner's other data stays. If no live key has the old
    /// digest, the outcome is [`RotateOutcome::Stale`] and nothing is stored. Do not repeat a rotation blindly: the
    /// repeat of one that applied is [`RotateOutcome::Stale`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the new id or digest is already stored; nothing changes.
    async fn rotate(&self, old_digest: &[u8], new: NewKeyRecord) -> Result<RotateOutcome>;

    /// Revokes a key; returns whether a live key with this id existed.
    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool>;

    /// Changes expiry and quota of a live key of the lookup API; returns whether there is such a key.
    ///
    /// The default implementation supports no change.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] from the default implementation.
    async fn change_key_access(&self, _key: &KeyId, _change: KeyAccessChange) -> Result<bool> {
        Err(Error::unsupported("this directory stores no expiry and no quota of keys"))
    }

    /// Adds requests to the counts of keys; returns the new counts.
    ///
    /// **Behaviour**
    /// - Requests of a day or month before the stored one add to the total only; those of a later one begin its count.
    /// - An unknown key is left out. Not idempotent: a repeated call counts twice.
    ///
    /// The default implementation counts nothing.
    async fn add_key_requests(&self, _requests: Vec<KeyRequests>) -> Result<Vec<KeyRequests>> {
        Ok(Vec::new())
    }

    /// Stores a further key of an account, unless it has `live_max` live keys.
    ///
    /// **Behaviour**: the account's other keys stay. The same key again (id and digest) is
    /// [`AddAccountKeyOutcome::Added`] and changes nothing, also if it is no longer live.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the id or the digest belongs to another key;
    /// [`crate::ErrorKind::Unsupported`] from the default implementation.
    async fn add_account_key(&self, _key: NewAccountKey, _live_max: u32) -> Result<AddAccountKeyOutcome> {
        Err(Error::unsupported("this directory stores one key for an account"))
    }

    /// The live keys of an account, oldest first. An unknown account has none.
    ///
    /// **Behaviour**: a successor ([`Directory::rotate`]) has the name of the key that it replaced, and no last use.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] from the default implementation.
    async fn account_keys(&self, _account: &AccountId) -> Result<Vec<AccountKey>> {
        Err(Error::unsupported("this directory does not list the keys of an account"))
    }

    /// Lists the keys of the lookup API, oldest first, with revoked ones.
    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>>;

    /// Stores the digest of a verification token.
    ///
    /// It voids no other token, and storing it again changes nothing, so a used token stays used.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the digest is stored for another address.
    async fn put_token(&self, token: VerificationToken) -> Result<()>;

    /// Redeems a verification token and creates the account's key in one transaction.
    ///
    /// **Behaviour**
    /// - Unknown, void, used and expired tokens (`expires_at` at or before `key.now`) are [`RedeemOutcome::Invalid`].
    ///   So are, in the stores of this project, those that expire after [`VerificationToken::expiry_max`]. The same
    ///   redemption again (key id and digest) returns the first outcome while that key is live.
    /// - For an address without an account, an account is created with `new_account` and `new_wallet`, on the free
    ///   plan, with its months anchored at `key.now`.
    /// - For an address with an account, `confirmed` must be set; otherwise the outcome is
    ///   [`RedeemOutcome::NeedsConfirmation`] and nothing changes, the token included.
    /// - The token becomes used, the other tokens of the address become void, and the old keys of the account are
    ///   revoked.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the key's id or digest, or the id of the account to create, is already stored;
    /// nothing changes.
    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemOutcome>;

    /// Returns an account.
    async fn account(&self, reference: &AccountRef) -> Result<Option<Account>>;

    /// Stores a changed account; compare-and-swap on its version, which is incremented.
    ///
    /// **Behaviour**: `account.version` is the version that was read; the outcome is [`UpdateOutcome::Stale`] if it is
    /// no longer the stored one. The email address and the wallet cannot change; other values are ignored.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the customer belongs to another account.
    async fn update_account(&self, account: Account) -> Result<UpdateOutcome>;

    /// Erases an account's personal data: its address, keys, tokens and ids at the payment provider.
    ///
    /// The entries of its wallet stay. Compare-and-swap on its version.
    ///
    /// **Behaviour**: `version` is the version that was read; if it is no longer the stored one, the outcome is
    /// [`EraseOutcome::Stale`] and nothing changes. No reference finds an erased account, and its address can register
    /// again; erasing it again is [`EraseOutcome::Missing`].
    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<EraseOutcome>;

    /// Lists the accounts, oldest first.
    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>>;
}

/// Store of the service's secrets, created once and shared by all servers.
#[async_trait]
pub trait SecretStore: fmt::Debug + Send + Sync + 'static {
    /// Returns the secret with this name; if there is none, stores `fresh` as the secret.
    ///
    /// **Behaviour**: the first stored value wins, and every caller receives it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
    async fn get_or_create(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>>;
}
