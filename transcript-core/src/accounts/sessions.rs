//! Sessions of account holders in browsers: sign-in links, and what a session may do.

use std::{net::IpAddr, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};

use super::{
    EffectivePlan, NewSession, RedeemLinkRequest, Session, SessionStore, V1Error, call_context::CallContext,
    form_random::link_randoms, rate_limit::AccountLimits,
};
use crate::{
    directory::{Account, AccountRef, Directory},
    error::Result,
    hex,
    ids::{AccountId, SessionId},
    keyed_digest::KeyedDigest,
    limits::{MINUTE_MS, network_hasher::NetworkHasher},
    time::{Random, Timestamp},
};

/// The random bytes of a token: 256 bits, in hexadecimal.
const TOKEN_BYTES: u32 = 32;
const TOKEN_LENGTH: usize = 64;
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// How long a session lasts without use.
const IDLE_MAX: Duration = DAY.saturating_mul(30);
/// How long a session lasts at most.
const AGE_MAX: Duration = DAY.saturating_mul(180);
/// The use of a session is stored at most once in this time: a page view is a read.
const TOUCH_INTERVAL: Duration = Duration::from_secs(3_600);
/// Maximum number of sessions of an account.
const SESSIONS_MAX: u32 = 20;
/// The longest label of a browser, in characters.
const DEVICE_LENGTH_MAX: usize = 80;

/// A session that was opened, with its token.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// The token, which the browser stores. It is never stored or logged here.
    pub token: String,
    /// The session.
    pub session: Session,
    /// How long the browser may keep the token.
    pub lifetime: Duration,
}

crate::debug_fields!(OpenedSession { session });

/// The signed-in holder of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPrincipal {
    /// The account. A blocked one can be read, and buys nothing.
    pub account: Account,
    /// The session.
    pub session: Session,
}

/// Opens, reads and ends the sessions of accounts.
///
/// Uses the directory, the sessions and the rate limiter.
#[derive(Debug)]
pub struct AccountSessions {
    pub(super) context: Arc<CallContext>,
    pub(super) limits: Arc<AccountLimits>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) sessions: Arc<dyn SessionStore>,
    /// Digests networks for their rate limit.
    pub(super) networks: NetworkHasher,
    /// Derives the token of a session from the form that opened it.
    pub(super) digest: KeyedDigest,
}

impl AccountSessions {
    /// Redeems the token of a sign-in link; `None` for one that is invalid, used or expired.
    ///
    /// Opens a new session with a new token, whatever the browser had before. `form` is the
    /// [`AccountSessions::form_token`] of the page with the button, or empty: the same form again, within ten to twenty
    /// seconds, returns the same session.
    ///
    /// # Errors
    /// [`V1Error::RateLimited`] after too many attempts from the network; [`V1Error::Internal`].
    pub async fn sign_in(
        self: &Arc<Self>,
        link: &str,
        form: &str,
        device: &str,
        client: Option<IpAddr>,
    ) -> Result<Option<OpenedSession>, V1Error> {
        let (sessions, device) = (Arc::clone(self), label(device));
        let (link, form) = (link.to_owned(), form.to_owned());
        let work = async move {
            let (context, now) = (&sessions.context, sessions.context.now());
            let limit = context.options.verify_per_network_per_minute;
            let limits = sessions.networks.limit_requests("sign-in", client, limit, MINUTE_MS, now);
            if let Some(retry_after_ms) = sessions.limits.acquire(limits, now).await? {
                return Err(V1Error::rate_limited(
                    "Too many sign-in links were opened from your network",
                    retry_after_ms,
                ));
            }
            let Some(digest) = digest_of(&link) else { return Ok(None) };
            for random in link_randoms(context, &sessions.digest, "sign-in", &link, &form) {
                let token = new_token(random.as_ref());
                let request = RedeemLinkRequest {
                    link: digest.clone(),
                    digest: Sha256::digest(token.as_bytes()).to_vec(),
                    session: SessionId::new(context.random_id("session")),
                    device: device.clone(),
                    now,
                    expires_at: now.plus(IDLE_MAX),
                    account_max: SESSIONS_MAX,
                };
                let opened = context.retry_store(|| sessions.sessions.redeem_link(request.clone())).await;
                if let Some(session) = opened.map_err(V1Error::from_store_error)? {
                    return Ok(Some(OpenedSession { token, session, lifetime: AGE_MAX }));
                }
            }
            Ok(None)
        };
        self.context.task(work).await
    }

    /// Opens a session of an account whose holder has proved the email address otherwise.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn open(self: &Arc<Self>, account: &AccountId, device: &str) -> Result<OpenedSession, V1Error> {
        let (sessions, account, device) = (Arc::clone(self), account.clone(), label(device));
        let work = async move {
            let (context, now) = (&sessions.context, sessions.context.now());
            let token = new_token(context.random.as_ref());
            let session = Session {
                id: SessionId::new(context.random_id("session")),
                account,
                device,
                created_at: now,
                last_seen_at: now,
                expires_at: now.plus(IDLE_MAX),
            };
            let digest = Sha256::digest(token.as_bytes()).to_vec();
            let new = NewSession { digest, session: session.clone(), account_max: SESSIONS_MAX };
            let opened = context.retry_store(|| sessions.sessions.open_session(new.clone())).await;
            opened.map_err(V1Error::from_store_error)?;
            Ok(OpenedSession { token, session, lifetime: AGE_MAX })
        };
        self.context.task(work).await
    }

    /// The holder of a session token; `None` if it is malformed, unknown, revoked or expired, or if the clock was wrong
    /// by more than a day when it was opened.
    ///
    /// Extends the session by its use.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn authenticate(self: &Arc<Self>, token: &str) -> Result<Option<SessionPrincipal>, V1Error> {
        let Some(digest) = digest_of(token) else { return Ok(None) };
        let sessions = Arc::clone(self);
        let work = async move {
            let (context, now) = (&sessions.context, sessions.context.now());
            let found = context.retry_store(|| sessions.sessions.session(&digest, now)).await;
            let found = found.map_err(V1Error::from_store_error)?;
            let Some(session) = found.filter(|session| is_current(session, now)) else { return Ok(None) };
            let account = AccountRef::Id(session.account.clone());
            let account = context.retry_store(|| sessions.directory.account(&account)).await;
            let Some(account) = account.map_err(V1Error::from_store_error)? else { return Ok(None) };
            if now.since(session.last_seen_at) >= TOUCH_INTERVAL {
                let expires_at = now.plus(IDLE_MAX).min(session.created_at.plus(AGE_MAX));
                // The session is valid whether or not its use is stored.
                if let Err(error) = sessions.sessions.touch_session(&digest, now, expires_at).await {
                    tracing::warn!(%error, "session use not stored");
                }
            }
            Ok(Some(SessionPrincipal { account, session }))
        };
        self.context.task(work).await
    }

    /// The sessions of an account, the most recently used one first.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn list(self: &Arc<Self>, account: &AccountId) -> Result<Vec<Session>, V1Error> {
        let (sessions, account) = (Arc::clone(self), account.clone());
        let work = async move {
            let now = sessions.context.now();
            let list = sessions.context.retry_store(|| sessions.sessions.sessions(&account, now)).await;
            let mut list = list.map_err(V1Error::from_store_error)?;
            list.retain(|session| is_current(session, now));
            Ok(list)
        };
        self.context.task(work).await
    }

    /// Ends a session of an account. An unknown one is success.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn revoke(self: &Arc<Self>, account: &AccountId, session: &SessionId) -> Result<(), V1Error> {
        let (sessions, account, session) = (Arc::clone(self), account.clone(), session.clone());
        let work = async move {
            let revoke = || sessions.sessions.revoke_session(&account, &session);
            sessions.context.retry_store(revoke).await.map(drop).map_err(V1Error::from_store_error)
        };
        self.context.task(work).await
    }

    /// Ends all sessions of an account except this one, and its sign-in links.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn revoke_others(
        self: &Arc<Self>,
        account: &AccountId,
        except: &SessionId,
    ) -> Result<(), V1Error> {
        let (sessions, account, except) = (Arc::clone(self), account.clone(), except.clone());
        let work = async move {
            let revoke = || sessions.sessions.revoke_sessions(&account, Some(&except));
            sessions.context.retry_store(revoke).await.map(drop).map_err(V1Error::from_store_error)
        };
        self.context.task(work).await
    }

    /// The effective plan of an account now.
    pub fn effective_plan(&self, account: &Account) -> EffectivePlan {
        self.context.effective_plan(account, self.context.now())
    }

    /// A new random token in hexadecimal, such as the one that makes a form's submission unique.
    pub fn form_token(&self) -> String {
        hex::encode(&self.context.random.bytes(16))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.context.now()
    }
}

/// Whether a session ends within its time from now: that of a clock that was ahead would outlive it.
fn is_current(session: &Session, now: Timestamp) -> bool {
    session.expires_at <= now.expiry_max(IDLE_MAX)
}

/// A new token of a session or link: 64 hexadecimal digits.
pub(super) fn new_token(random: &dyn Random) -> String {
    hex::encode(&random.bytes(TOKEN_BYTES))
}

/// The id of what one submission of a form creates: the same form creates no second one.
///
/// `token` is the form's [`AccountSessions::form_token`]. The id is a digest, so the owner cannot choose that of
/// another record.
pub(super) fn form_id(prefix: &str, owner: &AccountId, token: &str) -> String {
    let digest = Sha256::digest(format!("{owner}\n{token}"));
    format!("{prefix}-{}", hex::encode(digest.get(..16).unwrap_or_default()))
}

/// The digest of a token of a session or a mail; `None` if it is malformed.
pub(super) fn digest_of(token: &str) -> Option<Vec<u8>> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_token = token.len() == TOKEN_LENGTH && token.bytes().all(is_digit);
    is_token.then(|| Sha256::digest(token.as_bytes()).to_vec())
}

/// The label of a browser without control characters, cut to its maximum.
fn label(device: &str) -> String {
    device.chars().filter(|c| !c.is_control()).take(DEVICE_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_of_clock_that_was_ahead_is_over() {
        let now = Timestamp::from_millis(1_795_132_800_000);
        let session = |lead: Duration| Session {
            id: SessionId::new("session"),
            account: AccountId::new("ann"),
            device: String::new(),
            created_at: now.plus(lead),
            last_seen_at: now.plus(lead),
            expires_at: now.plus(lead).plus(IDLE_MAX),
        };
        for (lead, expected) in [(Duration::ZERO, true), (DAY, true), (DAY.saturating_mul(365), false)] {
            assert_eq!(is_current(&session(lead), now), expected, "{lead:?}");
        }
    }
}
