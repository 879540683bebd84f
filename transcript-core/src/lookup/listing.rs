//! Keys as operators see them.

use super::{KeyStatus, Lookup};
use crate::{
    directory::KeySummary,
    error::Result,
    ids::KeyId,
    page::{Page, PageRequest},
    time::Timestamp,
};

/// A key as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKey {
    /// Its plan and what it has used.
    pub status: KeyStatus,
    /// The key's first characters.
    pub hint: String,
    /// Its owner's e-mail address, where one was given.
    pub email: Option<String>,
    /// Whose paid plan it is entitled by.
    pub subject: Option<String>,
    /// Until when that plan was proven.
    pub entitled_until: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl Lookup {
    /// The keys, oldest first, revoked ones included, page by page.
    ///
    /// # Errors
    /// The ports' faults.
    pub async fn keys(&self, page: PageRequest) -> Result<Page<ListedKey>> {
        let lookup = self.clone();
        let work = async move {
            let page = lookup.bounded(lookup.parts.directory.keys(page)).await?;
            let mut items = Vec::with_capacity(page.items.len());
            for key in page.items {
                items.push(lookup.listed(key).await?);
            }
            Ok(Page { items, next: page.next })
        };
        self.parts.transcripts.task(work).await?
    }

    /// Revokes a key: whoever has it is a stranger from now on. Returns whether there was such a live key.
    ///
    /// # Errors
    /// The ports' faults.
    pub async fn revoke_key(&self, key: &KeyId) -> Result<bool> {
        let (lookup, key) = (self.clone(), key.clone());
        let work = async move {
            let now = lookup.parts.clock.now();
            lookup.bounded(lookup.parts.directory.revoke_key(&key, now)).await
        };
        self.parts.transcripts.task(work).await?
    }

    async fn listed(&self, summary: KeySummary) -> Result<ListedKey> {
        let KeySummary { key, revoked_at } = summary;
        let now = self.parts.clock.now();
        let status = self.status(&key, self.key_use(&key, now).await?, now);
        Ok(ListedKey {
            status,
            hint: key.key.hint,
            email: key.email,
            subject: key.subject,
            entitled_until: key.entitled_until,
            revoked_at,
        })
    }
}
