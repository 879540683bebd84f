//! A directory behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    directory::{
        Account, AccountRef, AddKey, Changed, Directory, Entitle, Erased, KeySummary, LookupKey, NewKey,
        Owner, Redeem, Redeemed, Rotated, Token,
    },
    ids::{AccountId, KeyId},
};

use super::nothing;
use crate::simulation::{gate::Gate, oracle::Oracle};

#[derive(Debug)]
pub(crate) struct FaultyDirectory {
    pub(crate) inner: Arc<dyn Directory>,
    pub(crate) gate: Arc<Gate>,
}

impl FaultyDirectory {
    fn inner(&self) -> Arc<dyn Directory> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl Directory for FaultyDirectory {
    async fn owner(&self, key_digest: &[u8]) -> Result<Option<Owner>> {
        let (inner, digest) = (self.inner(), key_digest.to_vec());
        let work = async move { inner.owner(&digest).await };
        self.gate.pass("directory.owner", String::new, work, nothing).await
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKey> {
        let (inner, what) = (self.inner(), key.key.id.to_string());
        let work = async move { inner.add_key(key, live_per_subject).await };
        self.gate.pass("directory.add_key", || what, work, nothing).await
    }

    async fn entitle(&self, ask: Entitle) -> Result<bool> {
        let (inner, what) = (self.inner(), ask.key.to_string());
        let work = async move { inner.entitle(ask).await };
        self.gate.pass("directory.entitle", || what, work, nothing).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKey) -> Result<Rotated> {
        let (inner, digest, made) = (self.inner(), old_digest.to_vec(), new.digest.clone());
        let work = async move { inner.rotate(&digest, new).await };
        let told = move |oracle: &Oracle, rotated: &Rotated| {
            if *rotated == Rotated::Rotated {
                oracle.key_made(&made);
            }
        };
        self.gate.pass("directory.rotate", String::new, work, told).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        let (inner, key) = (self.inner(), key.clone());
        let what = key.to_string();
        let work = async move { inner.revoke_key(&key, now).await };
        self.gate.pass("directory.revoke_key", || what, work, nothing).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let inner = self.inner();
        self.gate.pass("directory.keys", String::new, async move { inner.keys(page).await }, nothing).await
    }

    async fn put_token(&self, token: Token) -> Result<()> {
        let inner = self.inner();
        let work = async move { inner.put_token(token).await };
        self.gate.pass("directory.put_token", String::new, work, nothing).await
    }

    async fn redeem(&self, ask: Redeem) -> Result<Redeemed> {
        let (inner, made) = (self.inner(), ask.key.digest.clone());
        let told = move |oracle: &Oracle, redeemed: &Redeemed| {
            if let Redeemed::Issued { account, .. } = redeemed {
                oracle.account_changed(account);
                oracle.key_made(&made);
            }
        };
        self.gate.pass("directory.redeem", String::new, async move { inner.redeem(ask).await }, told).await
    }

    async fn account(&self, who: &AccountRef) -> Result<Option<Account>> {
        let (inner, who) = (self.inner(), who.clone());
        self.gate
            .pass("directory.account", String::new, async move { inner.account(&who).await }, nothing)
            .await
    }

    async fn change_account(&self, account: Account) -> Result<Changed> {
        let inner = self.inner();
        let work = async move { inner.change_account(account).await };
        let told = |oracle: &Oracle, changed: &Changed| {
            if let Changed::Changed(account) = changed {
                oracle.account_changed(account);
            }
        };
        self.gate.pass("directory.change_account", String::new, work, told).await
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<Erased> {
        let (inner, id) = (self.inner(), id.clone());
        let what = id.to_string();
        let work = async move { inner.erase_account(&id, version, now).await };
        self.gate.pass("directory.erase_account", || what, work, nothing).await
    }

    async fn accounts(&self, page: PageRequest) -> Result<Page<Account>> {
        let inner = self.inner();
        self.gate
            .pass("directory.accounts", String::new, async move { inner.accounts(page).await }, nothing)
            .await
    }
}
