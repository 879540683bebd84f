//! The port of browser sessions and sign-in links.

use std::{fmt, time::Duration};

use async_trait::async_trait;

use crate::{
    error::Result,
    ids::{AccountId, SessionId},
    time::Timestamp,
};

/// A session: a browser in which the holder of an account is signed in. Its token is not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The public id, by which the holder revokes it.
    pub id: SessionId,
    /// The account.
    pub account: AccountId,
    /// The label of the browser and its system, for the list of sessions.
    pub device: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last used, to the hour.
    pub last_seen_at: Timestamp,
    /// When it ends unless it is used before.
    pub expires_at: Timestamp,
}

/// A new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// SHA-256 of the token: 32 bytes.
    pub digest: Vec<u8>,
    /// The session.
    pub session: Session,
    /// Maximum number of sessions of the account. The least recently used ones above it end.
    pub account_max: u32,
}

/// A sign-in link, without its token.
#[derive(Clone, Debug)]
pub struct SignInLink {
    /// SHA-256 of the token: 32 bytes.
    pub digest: Vec<u8>,
    /// The account.
    pub account: AccountId,
    /// Expiry of the link.
    pub expires_at: Timestamp,
    /// Current time.
    pub now: Timestamp,
}

impl SignInLink {
    /// How long a link is valid.
    pub const VALIDITY: Duration = Duration::from_secs(30 * 60);

    /// The latest expiry of a link that is valid at `now`: a clock that was ahead made those with a later one.
    pub fn expiry_max(now: Timestamp) -> Timestamp {
        now.expiry_max(Self::VALIDITY)
    }
}

/// The redemption of a sign-in link for a new session.
#[derive(Clone, Debug)]
pub struct RedeemLinkRequest {
    /// SHA-256 of the link's token.
    pub link: Vec<u8>,
    /// SHA-256 of the session's token: 32 bytes.
    pub digest: Vec<u8>,
    /// Id of the session.
    pub session: SessionId,
    /// Label of the browser.
    pub device: String,
    /// Current time.
    pub now: Timestamp,
    /// Expiry of the session.
    pub expires_at: Timestamp,
    /// Maximum number of sessions of the account.
    pub account_max: u32,
}

/// The store of sessions and sign-in links. Each method is one transaction, durable once acknowledged.
///
/// It receives SHA-256 digests of tokens, never the tokens. A write deletes some expired sessions and links.
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
#[async_trait]
pub trait SessionStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a session.
    ///
    /// **Behaviour**: of the account's sessions, the `account_max` most recently used ones stay, this one among
    /// them. The same session again (digest and id) changes nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the digest belongs to another session.
    async fn open_session(&self, session: NewSession) -> Result<()>;

    /// The session with this digest.
    ///
    /// **Behaviour**: `None` for an unknown or revoked one, and from its expiry on.
    async fn session(&self, digest: &[u8], now: Timestamp) -> Result<Option<Session>>;

    /// Moves last use and expiry of a session; returns whether it exists.
    ///
    /// **Behaviour**: neither moves back.
    async fn touch_session(&self, digest: &[u8], now: Timestamp, expires_at: Timestamp) -> Result<bool>;

    /// The sessions of an account that have not expired, the most recently used one first.
    async fn sessions(&self, account: &AccountId, now: Timestamp) -> Result<Vec<Session>>;

    /// Ends a session of this account; returns whether it existed.
    async fn revoke_session(&self, account: &AccountId, session: &SessionId) -> Result<bool>;

    /// Ends all sessions of an account except this one, and its sign-in links; returns the number of sessions.
    async fn revoke_sessions(&self, account: &AccountId, except: Option<&SessionId>) -> Result<u64>;

    /// Stores the digest of a sign-in link. The same link again changes nothing, so a used one stays used.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the digest is stored for another account.
    async fn put_link(&self, link: SignInLink) -> Result<()>;

    /// Redeems a sign-in link, and opens a session as [`SessionStore::open_session`], in one transaction.
    ///
    /// **Behaviour**
    /// - `None` for an unknown, used or expired link (`expires_at` at or before `now`), and for one that expires after
    ///   [`SignInLink::expiry_max`]; nothing changes.
    /// - The same redemption again (link and digest) returns the session while it exists.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the session's digest belongs to another session; nothing changes.
    async fn redeem_link(&self, request: RedeemLinkRequest) -> Result<Option<Session>>;
}
