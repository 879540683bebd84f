//! Keys with usage, for operators.

use super::{KeyStatus, Lookup};
use crate::{
    directory::KeySummary,
    error::Result,
    ids::KeyId,
    page::{Page, PageRequest},
    time::Timestamp,
};

/// A key with its usage, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyWithUsage {
    /// Its plan and usage.
    pub status: KeyStatus,
    /// The key's first characters.
    pub hint: String,
    /// Its owner's e-mail address, if given.
    pub email: Option<String>,
    /// The subject of the paid plan that entitles it.
    pub subject: Option<String>,
    /// Until when that plan is proven.
    pub entitled_until: Option<Timestamp>,
    /// When it was revoked; `None` if it is live.
    pub revoked_at: Option<Timestamp>,
}

impl Lookup {
    /// The keys, oldest first, with revoked ones, page by page.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn keys(&self, page: PageRequest) -> Result<Page<KeyWithUsage>> {
        let lookup = self.clone();
        let work = async move {
            let page = lookup.with_store_timeout(lookup.deps.directory.keys(page)).await?;
            let mut items = Vec::with_capacity(page.items.len());
            for key in page.items {
                items.push(lookup.listed(key).await?);
            }
            Ok(Page { items, next: page.next })
        };
        self.deps.transcripts.task(work).await?
    }

    /// Revokes a key: its credential is unknown from now on. Returns whether there was such a live key.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn revoke_key(&self, key: &KeyId) -> Result<bool> {
        let (lookup, key) = (self.clone(), key.clone());
        let work = async move {
            let now = lookup.deps.clock.now();
            lookup.with_store_timeout(lookup.deps.directory.revoke_key(&key, now)).await
        };
        self.deps.transcripts.task(work).await?
    }

    async fn listed(&self, summary: KeySummary) -> Result<KeyWithUsage> {
        let KeySummary { key, revoked_at } = summary;
        let now = self.deps.clock.now();
        let status = self.status(&key, self.key_usage(&key, now).await?, now);
        Ok(KeyWithUsage {
            status,
            hint: key.key.hint,
            email: key.email,
            subject: key.subject,
            entitled_until: key.entitled_until,
            revoked_at,
        })
    }
}
