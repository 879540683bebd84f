//! Sessions and sign-in links in memory.

use std::{cmp::Reverse, collections::HashMap};

use async_trait::async_trait;

use super::SharedState;
use crate::{
    accounts::{NewSession, RedeemLinkRequest, Session, SessionStore, SignInLink},
    error::{Error, Result},
    ids::{AccountId, SessionId},
    time::Timestamp,
};

/// An in-memory [`SessionStore`]. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemorySessions {
    state: SharedState<SessionState>,
}

#[derive(Debug, Default)]
struct SessionState {
    /// Sessions by digest.
    sessions: HashMap<Vec<u8>, Session>,
    /// Links by digest.
    links: HashMap<Vec<u8>, StoredLink>,
}

#[derive(Debug)]
struct StoredLink {
    account: AccountId,
    expires_at: Timestamp,
    /// The digest of the session that it was redeemed for.
    used_for: Option<Vec<u8>>,
}

impl SessionState {
    fn delete_expired(&mut self, now: Timestamp) {
        self.sessions.retain(|_, session| session.expires_at > now);
        self.links.retain(|_, link| link.expires_at > now);
    }

    fn open(&mut self, new: NewSession) -> Result<()> {
        let NewSession { digest, session, account_max } = new;
        if let Some(stored) = self.sessions.get(&digest) {
            return match stored.id == session.id {
                true => Ok(()),
                false => Err(Error::conflict("the digest belongs to another session")),
            };
        }
        self.delete_expired(session.created_at);
        let account = session.account.clone();
        // The new session stays also if a clock that was ahead wrote later uses of others.
        let others = self.sessions.iter().filter(|(_, session)| session.account == account);
        let mut by_use: Vec<_> =
            others.map(|(digest, session)| (session.last_seen_at, digest.clone())).collect();
        by_use.sort_by_key(|(used_at, _)| Reverse(*used_at));
        for (_, digest) in by_use.into_iter().skip(account_max.saturating_sub(1) as usize) {
            self.sessions.remove(&digest);
        }
        self.sessions.insert(digest, session);
        Ok(())
    }
}

#[async_trait]
impl SessionStore for MemorySessions {
    async fn open_session(&self, session: NewSession) -> Result<()> {
        self.state.lock().open(session)
    }

    async fn session(&self, digest: &[u8], now: Timestamp) -> Result<Option<Session>> {
        let state = self.state.lock();
        Ok(state.sessions.get(digest).filter(|session| session.expires_at > now).cloned())
    }

    async fn touch_session(&self, digest: &[u8], now: Timestamp, expires_at: Timestamp) -> Result<bool> {
        let mut state = self.state.lock();
        let Some(session) = state.sessions.get_mut(digest) else { return Ok(false) };
        session.last_seen_at = session.last_seen_at.max(now);
        session.expires_at = session.expires_at.max(expires_at);
        Ok(true)
    }

    async fn sessions(&self, account: &AccountId, now: Timestamp) -> Result<Vec<Session>> {
        let state = self.state.lock();
        let live = state.sessions.values().filter(|session| session.account == *account);
        let mut live: Vec<_> = live.filter(|session| session.expires_at > now).cloned().collect();
        live.sort_by(|a, b| (Reverse(a.last_seen_at), &a.id).cmp(&(Reverse(b.last_seen_at), &b.id)));
        Ok(live)
    }

    async fn revoke_session(&self, account: &AccountId, id: &SessionId) -> Result<bool> {
        let mut state = self.state.lock();
        let before = state.sessions.len();
        state.sessions.retain(|_, session| session.account != *account || session.id != *id);
        Ok(state.sessions.len() < before)
    }

    async fn revoke_sessions(&self, account: &AccountId, except: Option<&SessionId>) -> Result<u64> {
        let mut state = self.state.lock();
        let before = state.sessions.len();
        state.sessions.retain(|_, session| session.account != *account || Some(&session.id) == except);
        state.links.retain(|_, link| link.account != *account);
        Ok((before - state.sessions.len()) as u64)
    }

    async fn put_link(&self, link: SignInLink) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(stored) = state.links.get(&link.digest) {
            return match stored.account == link.account {
                true => Ok(()),
                false => Err(Error::conflict("the link's digest is stored for another account")),
            };
        }
        state.delete_expired(link.now);
        let SignInLink { digest, account, expires_at, now: _ } = link;
        state.links.insert(digest, StoredLink { account, expires_at, used_for: None });
        Ok(())
    }

    async fn redeem_link(&self, request: RedeemLinkRequest) -> Result<Option<Session>> {
        let mut state = self.state.lock();
        let Some(link) = state.links.get(&request.link) else { return Ok(None) };
        if let Some(used_for) = &link.used_for {
            let is_repeat = *used_for == request.digest;
            return Ok(is_repeat.then(|| state.sessions.get(&request.digest).cloned()).flatten());
        }
        if link.expires_at <= request.now || link.expires_at > SignInLink::expiry_max(request.now) {
            return Ok(None);
        }
        let session = Session {
            id: request.session,
            account: link.account.clone(),
            device: request.device,
            created_at: request.now,
            last_seen_at: request.now,
            expires_at: request.expires_at,
        };
        let (digest, account_max) = (request.digest, request.account_max);
        state.open(NewSession { digest: digest.clone(), session: session.clone(), account_max })?;
        if let Some(link) = state.links.get_mut(&request.link) {
            link.used_for = Some(digest);
        }
        Ok(Some(session))
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::sessions_conformance!(Arc::new(super::MemorySessions::default()));
}
