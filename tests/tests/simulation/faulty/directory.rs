//! A directory behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    directory::{
        Account, AccountKey, AccountRef, AddAccountKeyOutcome, AddKeyOutcome, Directory, EraseOutcome,
        KeyAccessChange, KeyOwner, KeyRequests, KeySummary, LookupKey, NewAccountKey, NewKeyRecord,
        RedeemOutcome, RedeemRequest, RenewRequest, RotateOutcome, UpdateOutcome, VerificationToken,
    },
    ids::{AccountId, KeyId},
};

use super::nothing;
use crate::simulation::{oracle::Oracle, store_gate::StoreGate};

#[derive(Debug)]
pub(crate) struct FaultyDirectory {
    pub(crate) inner: Arc<dyn Directory>,
    pub(crate) gate: Arc<StoreGate>,
}

impl FaultyDirectory {
    fn inner(&self) -> Arc<dyn Directory> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl Directory for FaultyDirectory {
    async fn key_owner(&self, key_digest: &[u8]) -> Result<Option<KeyOwner>> {
        let (inner, digest) = (self.inner(), key_digest.to_vec());
        let work = async move { inner.key_owner(&digest).await };
        self.gate.pass("directory.key_owner", String::new, work, nothing).await
    }

    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Result<AddKeyOutcome> {
        let (inner, what) = (self.inner(), key.key.id.to_string());
        let work = async move { inner.add_key(key, live_per_subject).await };
        self.gate.pass("directory.add_key", || what, work, nothing).await
    }

    async fn renew_entitlement(&self, request: RenewRequest) -> Result<bool> {
        let (inner, what) = (self.inner(), request.key.to_string());
        let work = async move { inner.renew_entitlement(request).await };
        self.gate.pass("directory.renew_entitlement", || what, work, nothing).await
    }

    async fn rotate(&self, old_digest: &[u8], new: NewKeyRecord) -> Result<RotateOutcome> {
        let (inner, digest, made) = (self.inner(), old_digest.to_vec(), new.digest.clone());
        let work = async move { inner.rotate(&digest, new).await };
        let on_effect = move |oracle: &Oracle, rotated: &RotateOutcome| {
            if *rotated == RotateOutcome::Rotated {
                oracle.on_key_created(&made);
            }
        };
        self.gate.pass("directory.rotate", String::new, work, on_effect).await
    }

    async fn revoke_key(&self, key: &KeyId, now: Timestamp) -> Result<bool> {
        let (inner, key) = (self.inner(), key.clone());
        let what = key.to_string();
        let work = async move { inner.revoke_key(&key, now).await };
        self.gate.pass("directory.revoke_key", || what, work, nothing).await
    }

    async fn change_key_access(&self, key: &KeyId, change: KeyAccessChange) -> Result<bool> {
        let (inner, key, what) = (self.inner(), key.clone(), key.to_string());
        let work = async move { inner.change_key_access(&key, change).await };
        self.gate.pass("directory.change_key_access", || what, work, nothing).await
    }

    async fn add_key_requests(&self, requests: Vec<KeyRequests>) -> Result<Vec<KeyRequests>> {
        let inner = self.inner();
        let work = async move { inner.add_key_requests(requests).await };
        self.gate.pass("directory.add_key_requests", String::new, work, nothing).await
    }

    async fn add_account_key(&self, key: NewAccountKey, live_max: u32) -> Result<AddAccountKeyOutcome> {
        let (inner, what) = (self.inner(), key.key.id.to_string());
        let work = async move { inner.add_account_key(key, live_max).await };
        self.gate.pass("directory.add_account_key", || what, work, nothing).await
    }

    async fn account_keys(&self, account: &AccountId) -> Result<Vec<AccountKey>> {
        let (inner, account) = (self.inner(), account.clone());
        let work = async move { inner.account_keys(&account).await };
        self.gate.pass("directory.account_keys", String::new, work, nothing).await
    }

    async fn keys(&self, page: PageRequest) -> Result<Page<KeySummary>> {
        let inner = self.inner();
        self.gate.pass("directory.keys", String::new, async move { inner.keys(page).await }, nothing).await
    }

    async fn put_token(&self, token: VerificationToken) -> Result<()> {
        let inner = self.inner();
        let work = async move { inner.put_token(token).await };
        self.gate.pass("directory.put_token", String::new, work, nothing).await
    }

    async fn redeem(&self, request: RedeemRequest) -> Result<RedeemOutcome> {
        let (inner, made) = (self.inner(), request.key.digest.clone());
        let on_effect = move |oracle: &Oracle, redeemed: &RedeemOutcome| {
            if let RedeemOutcome::Issued { account, .. } = redeemed {
                oracle.on_account_changed(account);
                oracle.on_key_created(&made);
            }
        };
        self.gate
            .pass("directory.redeem", String::new, async move { inner.redeem(request).await }, on_effect)
            .await
    }

    async fn account(&self, account_ref: &AccountRef) -> Result<Option<Account>> {
        let (inner, account_ref) = (self.inner(), account_ref.clone());
        self.gate
            .pass("directory.account", String::new, async move { inner.account(&account_ref).await }, nothing)
            .await
    }

    async fn update_account(&self, account: Account) -> Result<UpdateOutcome> {
        let inner = self.inner();
        let work = async move { inner.update_account(account).await };
        let on_effect = |oracle: &Oracle, changed: &UpdateOutcome| {
            if let UpdateOutcome::Changed(account) = changed {
                oracle.on_account_changed(account);
            }
        };
        self.gate.pass("directory.update_account", String::new, work, on_effect).await
    }

    async fn erase_account(&self, id: &AccountId, version: u64, now: Timestamp) -> Result<EraseOutcome> {
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
