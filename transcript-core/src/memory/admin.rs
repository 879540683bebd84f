//! Admin tokens and the audit log in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::SharedState;
use crate::{
    admin::{AdminStore, AdminToken, AuditEntry, AuditId, AuditResult, NewAdminToken},
    error::{Error, Result},
    ids::Cursor,
    page::{Page, PageRequest},
    time::Timestamp,
};

/// Most entries of the audit log in memory; the oldest are dropped.
const ENTRIES_MAX: usize = 10_000;

/// An in-memory [`AdminStore`]. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryAdminStore {
    state: SharedState<AdminState>,
}

#[derive(Debug, Default)]
struct AdminState {
    /// Tokens by name, with their digests.
    tokens: BTreeMap<String, (Vec<u8>, AdminToken)>,
    /// Entries by descending number: newest first.
    entries: BTreeMap<std::cmp::Reverse<u64>, AuditEntry>,
    last: u64,
}

#[async_trait]
impl AdminStore for MemoryAdminStore {
    async fn add_admin_token(&self, token: NewAdminToken) -> Result<bool> {
        let mut state = self.state.lock();
        let NewAdminToken { name, digest, now } = token;
        if let Some((stored, _)) = state.tokens.get(&name) {
            return Ok(*stored == digest);
        }
        if state.tokens.values().any(|(stored, _)| *stored == digest) {
            return Err(Error::conflict("the digest belongs to another admin token"));
        }
        let token = AdminToken { name: name.clone(), created_at: now, revoked_at: None };
        state.tokens.insert(name, (digest, token));
        Ok(true)
    }

    async fn admin_name(&self, digest: &[u8]) -> Result<Option<String>> {
        let state = self.state.lock();
        let mut tokens = state.tokens.values();
        let found = tokens.find(|(stored, token)| stored == digest && token.revoked_at.is_none());
        Ok(found.map(|(_, token)| token.name.clone()))
    }

    async fn revoke_admin_token(&self, name: &str, now: Timestamp) -> Result<bool> {
        let mut state = self.state.lock();
        let token = state.tokens.get_mut(name).filter(|(_, token)| token.revoked_at.is_none());
        Ok(token.map(|(_, token)| token.revoked_at = Some(now)).is_some())
    }

    async fn admin_tokens(&self, page: PageRequest) -> Result<Page<AdminToken>> {
        let state = self.state.lock();
        let after = page.after.as_ref().map(|cursor| cursor.as_str().to_owned());
        let tokens = state.tokens.values().map(|(_, token)| token.clone());
        let rest = tokens.filter(|token| after.as_ref().is_none_or(|after| token.name > *after));
        Ok(Page::cut(rest, &page, |token| token.name.clone()))
    }

    async fn begin_audit(&self, entry: AuditEntry) -> Result<()> {
        let mut state = self.state.lock();
        if state.entries.values().all(|stored| stored.id != entry.id) {
            state.last += 1;
            let number = std::cmp::Reverse(state.last);
            state.entries.insert(number, entry);
            if state.entries.len() > ENTRIES_MAX {
                state.entries.pop_last();
            }
        }
        Ok(())
    }

    async fn end_audit(&self, id: &AuditId, result: AuditResult, subject: Option<String>) -> Result<()> {
        let mut state = self.state.lock();
        let running = state.entries.values_mut().find(|entry| entry.id == *id && entry.result.is_none());
        if let Some(entry) = running {
            entry.result = Some(result);
            entry.subject = entry.subject.take().or(subject);
        }
        Ok(())
    }

    async fn audit_log(&self, page: PageRequest) -> Result<Page<AuditEntry>> {
        let state = self.state.lock();
        let before = match &page.after {
            Some(_) => Cursor::number(page.after.as_ref())?,
            None => u64::MAX,
        };
        let rest = state.entries.iter().filter(|(number, _)| number.0 < before);
        let rest = rest.map(|(number, entry)| (number.0, entry.clone()));
        let page = Page::cut(rest, &page, |(number, _)| number.to_string());
        Ok(Page { items: page.items.into_iter().map(|(_, entry)| entry).collect(), next: page.next })
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::admin_conformance!(Arc::new(super::MemoryAdminStore::default()));
}
