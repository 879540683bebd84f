//! The core's conformance suite, for stores of an app, and the core's stores in memory.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{
    PageRequest, Timestamp,
    archive::{Absence, Archive, ArchiveStats, ArchivedTrack, FetchLease, LeaseOutcome, TrackSelector},
    body::segments,
    directory::{
        self as core, Account, AccountRef, AddKeyOutcome, Directory, EraseOutcome, LookupKey, NewKeyRecord,
        RedeemOutcome, RedeemRequest, RenewRequest, RotateOutcome, VerificationToken,
    },
    ids::{AccountId, HoldId, Holder, KeyId, WalletId},
    ledger::{
        Balance, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger, PeriodBalance,
        RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
    },
    memory::{MemoryArchive, MemoryDirectory, MemoryLedger},
    testing::{ConformanceCase, archive_cases, directory_cases, ledger_cases},
    video::{ShortLink, VideoId},
};
use verbatim::{GetOutcome, GetRequest};

use crate::{
    call::run,
    error::{Failure, FailureKind, VerbatimError},
    ports::{
        AccountPage, ArchiveStore, BalancePage, DirectoryStore, EntryPage, FindOutcome, ForeignStore,
        KeyOwner, KeyPage, LedgerStore, PutRequest, StoredTranscript, TrackPage, UpdateOutcome, VideoPage,
    },
    transcripts::Transcripts,
};

#[uniffi::export]
impl Transcripts {
    /// The segments of a transcript as JSON of the lookup API, for comparison with the records.
    ///
    /// # Errors
    /// As [`Transcripts::get`].
    pub async fn get_json(&self, link: String) -> Result<String, VerbatimError> {
        let lazy = Arc::clone(&self.lazy);
        run(None, async move {
            match lazy.open().await?.get(GetRequest { link, ..GetRequest::default() }).await? {
                GetOutcome::Found(found) => {
                    let json = segments::write(&found.stored.transcript.segments)?;
                    String::from_utf8(json)
                        .map_err(|_| Failure::error(FailureKind::Unexpected, "the JSON is not UTF-8"))
                }
                GetOutcome::Missing(missing) => Err(missing.into()),
            }
        })
        .await
    }
}

/// Timeout of one store call of the suite, which makes many concurrent calls.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// Names of the cases of a port: `archive`, `ledger` or `directory`.
///
/// # Errors
/// `InvalidInput` if there is no such port.
#[uniffi::export]
pub fn conformance_cases(port: String) -> Result<Vec<String>, VerbatimError> {
    fn names<S: ?Sized>(cases: &[ConformanceCase<S>]) -> Vec<String> {
        cases.iter().map(|case| case.name.to_owned()).collect()
    }
    match port.as_str() {
        "archive" => Ok(names(&archive_cases())),
        "ledger" => Ok(names(&ledger_cases())),
        "directory" => Ok(names(&directory_cases())),
        _ => Err(Failure::invalid_input(format!("unknown port {port:?}; known: archive, ledger, directory"))),
    }
}

/// Runs one case on an empty archive.
///
/// # Errors
/// `Unexpected` with the violated rule; `InvalidInput` if there is no such case.
#[uniffi::export]
pub async fn run_archive_case(name: String, store: Arc<dyn ArchiveStore>) -> Result<(), VerbatimError> {
    run_case(
        archive_cases(),
        name,
        Arc::new(ForeignStore::new("archive", store, STORE_TIMEOUT)) as Arc<dyn Archive>,
    )
    .await
}

/// Runs one case on an empty ledger.
///
/// # Errors
/// As [`run_archive_case`].
#[uniffi::export]
pub async fn run_ledger_case(name: String, store: Arc<dyn LedgerStore>) -> Result<(), VerbatimError> {
    run_case(
        ledger_cases(),
        name,
        Arc::new(ForeignStore::new("ledger", store, STORE_TIMEOUT)) as Arc<dyn Ledger>,
    )
    .await
}

/// Runs one case on an empty directory.
///
/// # Errors
/// As [`run_archive_case`].
#[uniffi::export]
pub async fn run_directory_case(name: String, store: Arc<dyn DirectoryStore>) -> Result<(), VerbatimError> {
    run_case(
        directory_cases(),
        name,
        Arc::new(ForeignStore::new("directory", store, STORE_TIMEOUT)) as Arc<dyn Directory>,
    )
    .await
}

async fn run_case<S: ?Sized + Send + Sync + 'static>(
    cases: Vec<ConformanceCase<S>>,
    name: String,
    store: Arc<S>,
) -> Result<(), VerbatimError> {
    let case = cases.into_iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Failure::invalid_input(format!("unknown case {name:?}")))?;
    run(None, async move {
        match case.run(store).await {
            None => Ok(()),
            Some(rule) => Err(Failure::error(FailureKind::Unexpected, rule)),
        }
    })
    .await
}

/// A store of the core behind the interface for apps.
struct MemoryStore<S>(S);

type StoreResult<T> = Result<T, VerbatimError>;

/// The core's archive in memory, to wrap or to compare with.
#[uniffi::export]
pub fn memory_archive() -> Arc<dyn ArchiveStore> {
    Arc::new(MemoryStore(MemoryArchive::default()))
}

/// The core's ledger in memory.
#[uniffi::export]
pub fn memory_ledger() -> Arc<dyn LedgerStore> {
    Arc::new(MemoryStore(MemoryLedger::default()))
}

/// The core's directory of keys and accounts in memory.
#[uniffi::export]
pub fn memory_directory() -> Arc<dyn DirectoryStore> {
    Arc::new(MemoryStore(MemoryDirectory::default()))
}

#[async_trait]
impl ArchiveStore for MemoryStore<MemoryArchive> {
    async fn find(
        &self,
        video: VideoId,
        selector: TrackSelector,
        now: Timestamp,
    ) -> StoreResult<FindOutcome> {
        Ok(self.0.find(&video, &selector, now).await?.into())
    }
    async fn tracks(&self, video: VideoId) -> StoreResult<Vec<ArchivedTrack>> {
        Ok(self.0.tracks(&video).await?)
    }
    async fn put(&self, request: PutRequest) -> StoreResult<StoredTranscript> {
        Ok(self.0.put(request.into_core()?).await?.into())
    }
    async fn put_absence(&self, absence: Absence) -> StoreResult<()> {
        Ok(self.0.put_absence(absence).await?)
    }
    async fn acquire_lease(&self, lease: FetchLease) -> StoreResult<LeaseOutcome> {
        Ok(self.0.acquire_lease(lease).await?)
    }
    async fn release_lease(
        &self,
        video: VideoId,
        selector: TrackSelector,
        holder: Holder,
    ) -> StoreResult<()> {
        Ok(self.0.release_lease(&video, &selector, &holder).await?)
    }
    async fn short_link(&self, link: ShortLink) -> StoreResult<Option<VideoId>> {
        Ok(self.0.short_link(&link).await?)
    }
    async fn put_short_link(&self, link: ShortLink, video: VideoId) -> StoreResult<()> {
        Ok(self.0.put_short_link(&link, &video).await?)
    }
    async fn withdraw(&self, video: VideoId, withdrawn: bool, now: Timestamp) -> StoreResult<()> {
        Ok(self.0.withdraw(&video, withdrawn, now).await?)
    }
    async fn delete(&self, video: VideoId) -> StoreResult<()> {
        Ok(self.0.delete(&video).await?)
    }
    async fn change_counter(&self) -> StoreResult<u64> {
        Ok(self.0.change_counter().await?)
    }
    async fn list_tracks(&self, page: PageRequest) -> StoreResult<TrackPage> {
        let page = self.0.list_tracks(page).await?;
        Ok(TrackPage { items: page.items, next: page.next })
    }
    async fn list_withdrawn(&self, page: PageRequest) -> StoreResult<VideoPage> {
        let page = self.0.list_withdrawn(page).await?;
        Ok(VideoPage { items: page.items, next: page.next })
    }
    async fn stats(&self) -> StoreResult<ArchiveStats> {
        Ok(self.0.stats().await?)
    }
}

#[async_trait]
impl LedgerStore for MemoryStore<MemoryLedger> {
    async fn hold(&self, request: HoldRequest) -> StoreResult<HoldOutcome> {
        Ok(self.0.hold(request).await?)
    }
    async fn spend(&self, request: HoldRequest) -> StoreResult<HoldOutcome> {
        Ok(self.0.spend(request).await?)
    }
    async fn extend(&self, id: HoldId, until: Timestamp) -> StoreResult<HoldState> {
        Ok(self.0.extend(&id, until).await?)
    }
    async fn settle(&self, request: SettleRequest) -> StoreResult<SettleOutcome> {
        Ok(self.0.settle(request).await?)
    }
    async fn grant(&self, request: GrantRequest) -> StoreResult<GrantOutcome> {
        Ok(self.0.grant(request).await?)
    }
    async fn revoke(&self, request: RevokeRequest) -> StoreResult<RevokeOutcome> {
        Ok(self.0.revoke(request).await?)
    }
    async fn balance(&self, wallet: WalletId, terms: Terms) -> StoreResult<Balance> {
        Ok(self.0.balance(&wallet, &terms).await?)
    }
    async fn balance_since(
        &self,
        wallet: WalletId,
        terms: Terms,
        since: Timestamp,
    ) -> StoreResult<PeriodBalance> {
        Ok(self.0.balance_since(&wallet, &terms, since).await?)
    }
    async fn expire(&self, now: Timestamp, limit: u32) -> StoreResult<u32> {
        Ok(self.0.expire(now, limit).await?)
    }
    async fn entries(&self, wallet: WalletId, page: PageRequest) -> StoreResult<EntryPage> {
        let page = self.0.entries(&wallet, page).await?;
        Ok(EntryPage { items: page.items, next: page.next })
    }
    async fn wallets(&self, page: PageRequest) -> StoreResult<BalancePage> {
        let page = self.0.wallets(page).await?;
        Ok(BalancePage { items: page.items, next: page.next })
    }
}

#[async_trait]
impl DirectoryStore for MemoryStore<MemoryDirectory> {
    async fn key_owner(&self, key_digest: Vec<u8>) -> StoreResult<Option<KeyOwner>> {
        Ok(self.0.key_owner(&key_digest).await?.map(|owner| match owner {
            core::KeyOwner::Lookup(key) => KeyOwner::Lookup { key },
            core::KeyOwner::Account { key, account } => KeyOwner::V1 { key, account },
        }))
    }
    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> StoreResult<AddKeyOutcome> {
        Ok(self.0.add_key(key, live_per_subject).await?)
    }
    async fn renew_entitlement(&self, request: RenewRequest) -> StoreResult<bool> {
        Ok(self.0.renew_entitlement(request).await?)
    }
    async fn rotate(&self, old_digest: Vec<u8>, new_key: NewKeyRecord) -> StoreResult<RotateOutcome> {
        Ok(self.0.rotate(&old_digest, new_key).await?)
    }
    async fn revoke_key(&self, key: KeyId, now: Timestamp) -> StoreResult<bool> {
        Ok(self.0.revoke_key(&key, now).await?)
    }
    async fn keys(&self, page: PageRequest) -> StoreResult<KeyPage> {
        let page = self.0.keys(page).await?;
        Ok(KeyPage { items: page.items, next: page.next })
    }
    async fn put_token(&self, token: VerificationToken) -> StoreResult<()> {
        Ok(self.0.put_token(token).await?)
    }
    async fn redeem(&self, request: RedeemRequest) -> StoreResult<RedeemOutcome> {
        Ok(self.0.redeem(request).await?)
    }
    async fn account(&self, reference: AccountRef) -> StoreResult<Option<Account>> {
        Ok(self.0.account(&reference).await?)
    }
    async fn update_account(&self, account: Account) -> StoreResult<UpdateOutcome> {
        Ok(match self.0.update_account(account).await? {
            core::UpdateOutcome::Changed(account) => UpdateOutcome::Changed { account },
            core::UpdateOutcome::Stale => UpdateOutcome::Stale,
            core::UpdateOutcome::Missing => UpdateOutcome::Missing,
        })
    }
    async fn erase_account(&self, id: AccountId, version: u64, now: Timestamp) -> StoreResult<EraseOutcome> {
        Ok(self.0.erase_account(&id, version, now).await?)
    }
    async fn accounts(&self, page: PageRequest) -> StoreResult<AccountPage> {
        let page = self.0.accounts(page).await?;
        Ok(AccountPage { items: page.items, next: page.next })
    }
}
