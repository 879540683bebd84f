//! The directory: keys, accounts, verification tokens and the service's own secrets.
//!
//! A key itself is never stored: secrets arrive here as digests (SHA-256, 32 bytes).

pub mod key;
mod records;

use std::fmt;

use async_trait::async_trait;

pub use records::{
    Account, AccountRef, AddKey, Changed, Entitle, Erased, KeySummary, LookupKey, NewKey, Owner, PaidPeriod,
    Plan, Redeem, Redeemed, Rotated, Token,
};

use crate::{
    error::Result,
    ids::{AccountId, KeyId},
    page::{Page, PageRequest},
    time::Timestamp,
};

/// Who may call, and which wallet is theirs.
///
/// Every method is one transaction: it happens whole or not at all, and what it acknowledged survives
/// a crash. Dropping a future at any await leaves the call done or not done. A call with an id or
/// digest that is already stored by the same call is success, so that a call whose outcome is unknown
/// can be repeated; one that contradicts what is stored is [`crate::ErrorKind::Conflict`].
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] when the store cannot be reached.
#[async_trait]
pub trait Directory: fmt::Debug + Send + Sync + 'static {
    /// Whose key has this digest: one read authenticates either surface.
    ///
    /// **Behaviour**: none for an unknown, rotated or revoked key.
    async fn owner(&self, key_digest: &[u8]) -> Result<Option<Owner>>;

    /// Adds a key of Surface A.
    ///
    /// **Behaviour**
    /// - A key with a subject counts among that subject's live plus keys while its `entitled_until` lies
    ///   after `key.now` and it is not revoked; with `live_per_subject` of them already there a key of
    ///   that subject is [`AddKey::SubjectFull`] and nothing is stored; it tells when enough of them have
    ///   ended for one more.
    /// - The same key again (id and digest) is [`AddKey::Added`] and changes nothing, also when it is dead by
    ///   now. Keys of both surfaces share their ids and digests.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the id or the digest is another key's.
    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKey>;

    /// Puts off the end of a plus key's entitlement.
    ///
    /// **Behaviour**
    /// - Only for the key's own subject, and never brings it forward; returns whether the key is of that
    ///   subject (also when nothing changed). False for an unknown or revoked key.
    /// - A key whose entitlement has ended by `ask.now` becomes live again only while its subject has fewer
    ///   than `ask.live_per_subject` live plus keys, counted as in [`Directory::add_key`]; else false, and
    ///   nothing changes. One that is still live is not counted against itself.
    async fn entitle(&self, ask: Entitle) -> Result<bool>;

    /// Replaces a key by a new one of the same owner: compare-and-swap on the digest.
    ///
    /// **Behaviour**: the old key is dead at once, revoked at `new.now`; all else of the owner stays.
    /// [`Rotated::Stale`] when the old digest is no live key's, and nothing is stored. Never repeated
    /// blindly: a repeat of a rotation that took effect is [`Rotated::Stale`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the new id or digest is stored already; nothing changes.
    async fn rotate(&self, old_digest: &[u8], new: NewKey) -> Result<Rotated>;

    /// Revokes a key; returns whether there was such a live key.
    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool>;

    /// The keys of Surface A, oldest first, revoked ones included, page by page.
    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>>;

    /// Stores a verification token's digest. Issuing one voids no other; the same one again changes
    /// nothing, so that a used token stays used.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the digest is stored for another address.
    async fn put_token(&self, token: Token) -> Result<()>;

    /// Redeems a verification token, in one transaction with the making of the key.
    ///
    /// **Behaviour**
    /// - Unknown, void, used and expired (its end at or before `key.now`) tokens are
    ///   [`Redeemed::Invalid`]; only the same redemption again (key id and digest) tells what it did, while
    ///   that key lives.
    /// - For an address without an account one is made, on the free plan, its month anchored at
    ///   `key.now`, with `new_account` and `new_wallet`.
    /// - For an address that has one, `confirmed` must be set; else it is
    ///   [`Redeemed::NeedsConfirmation`], and nothing changes, the token included.
    /// - The token is used up, the address's other tokens are void, the account's old keys are dead.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the key's id or digest, or the id of the account that would be
    /// made, is stored already; nothing changes.
    async fn redeem(&self, ask: Redeem) -> Result<Redeemed>;

    /// An account.
    async fn account(&self, who: &AccountRef) -> Result<Option<Account>>;

    /// Stores a changed account: compare-and-swap on its version, which grows by one.
    ///
    /// **Behaviour**: `account.version` is the version that was read; [`Changed::Stale`] when it is no
    /// longer the stored one. The e-mail address and the wallet never change this way: others are ignored.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the customer is another account's.
    async fn change_account(&self, account: Account) -> Result<Changed>;

    /// Erases an account's personal data: its address, keys, tokens and names at the payment provider. Its
    /// wallet's entries stay. Compare-and-swap on its version.
    ///
    /// **Behaviour**: `version` is the version that was read; [`Erased::Stale`] when it is no longer the stored
    /// one, and nothing changes. An erased account is no longer found by any reference, and its address can
    /// register anew; erasing it again is [`Erased::Missing`].
    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<Erased>;

    /// The accounts, oldest first, page by page.
    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>>;
}

/// The service's own secrets, made once and shared by all its machines.
#[async_trait]
pub trait Secrets: fmt::Debug + Send + Sync + 'static {
    /// The secret with this name; where there is none yet, `fresh` becomes it.
    ///
    /// **Behaviour**: whoever stores first wins, and everyone gets that one.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] when the store cannot be reached.
    async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>>;
}
