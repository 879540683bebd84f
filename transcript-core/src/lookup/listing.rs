//! Keys with usage, for operators.

use super::{KeyStatus, LookupKeys, keys::key_status};
use crate::{
    directory::{KeyAccessChange, KeySummary, RequestQuota},
    error::Result,
    ids::KeyId,
    ledger::terms::AllowancePeriod,
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
    /// Its owner's email address, if given.
    pub email: Option<String>,
    /// The subject of the paid plan that entitles it.
    pub subject: Option<String>,
    /// Until when that plan is proven.
    pub entitled_until: Option<Timestamp>,
    /// When it was revoked; `None` if it is live.
    pub revoked_at: Option<Timestamp>,
    /// When it expires, if ever.
    pub expires_at: Option<Timestamp>,
    /// Its maximum number of requests, if limited.
    pub quota: Option<RequestQuota>,
    /// Its requests. Those of the last seconds may be missing.
    pub requests: KeyRequestUsage,
}

/// The requests of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRequestUsage {
    /// All requests.
    pub total: u64,
    /// Requests of this UTC day.
    pub day: u64,
    /// Requests of this UTC month.
    pub month: u64,
    /// Time of the last one.
    pub last_at: Option<Timestamp>,
}

impl LookupKeys {
    /// The keys, oldest first, with revoked ones, page by page.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn list(&self, page: PageRequest) -> Result<Page<KeyWithUsage>> {
        let keys = self.clone();
        let work = async move {
            let page = keys.with_store_timeout(keys.directory.keys(page)).await?;
            let mut items = Vec::with_capacity(page.items.len());
            for key in page.items {
                items.push(keys.with_usage(key).await?);
            }
            Ok(Page { items, next: page.next })
        };
        self.transcripts.task(work).await?
    }

    /// Revokes a key: its credential is unknown from now on. Returns whether there was such a live key.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn revoke(&self, key: &KeyId) -> Result<bool> {
        let (keys, key) = (self.clone(), key.clone());
        let work = async move {
            let now = keys.clock.now();
            keys.with_store_timeout(keys.directory.revoke_key(&key, now)).await
        };
        self.transcripts.task(work).await?
    }

    /// Changes the expiry and the quota of a key. Returns whether there was such a live key.
    ///
    /// # Errors
    /// The ports' errors.
    pub async fn change_access(&self, key: &KeyId, change: KeyAccessChange) -> Result<bool> {
        let (keys, key) = (self.clone(), key.clone());
        let work =
            async move { keys.with_store_timeout(keys.directory.change_key_access(&key, change)).await };
        self.transcripts.task(work).await?
    }

    async fn with_usage(&self, summary: KeySummary) -> Result<KeyWithUsage> {
        let KeySummary { key, revoked_at } = summary;
        let now = self.clock.now();
        let status = key_status(&key, self.usage(&key, now).await?, now);
        let requests = &key.access.requests;
        Ok(KeyWithUsage {
            status,
            hint: key.key.hint,
            email: key.email,
            subject: key.subject,
            entitled_until: key.entitled_until,
            revoked_at,
            expires_at: key.access.expires_at,
            quota: key.access.quota,
            requests: KeyRequestUsage {
                total: requests.total,
                day: requests.within(AllowancePeriod::Day, now),
                month: requests.within(AllowancePeriod::Month, now),
                last_at: requests.last_at,
            },
        })
    }
}
