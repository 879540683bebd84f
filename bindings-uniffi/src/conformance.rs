//! The core's conformance suite, for stores that an app implements, and stores of the core's to compare with.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{
    PageRequest, Timestamp,
    archive::{Absence, Archive, ArchivedTrack, Claim, Lease, Stats, Wish},
    directory::{
        Account, AccountRef, AddKey, Changed, Directory, Entitle, Erased, LookupKey, NewKey, Owner, Redeem,
        Redeemed, Rotated, Token,
    },
    ids::{AccountId, HoldId, Holder, KeyId, WalletId},
    ledger::{
        Balance, BalanceSince, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Ledger, Revoke,
        RevokeOutcome, Settle, SettleOutcome, Terms,
    },
    memory::{MemoryArchive, MemoryDirectory, MemoryLedger},
    testing::{Case, archive_cases, directory_cases, ledger_cases},
    video::{ShortLink, VideoId},
    wire::segments,
};
use verbatim::{Get, GetOutcome};

use crate::{
    call::run,
    error::{Failure, FailureKind, VerbatimError},
    ports::{
        AccountChange, AccountPage, ArchiveFind, ArchiveKeep, ArchiveStore, BalancePage, DirectoryStore,
        EntryPage, Foreign, KeyOwner, KeyPage, LedgerStore, Redemption, StoredRecord, TrackPage, VideoPage,
        archive_find, stored_record,
    },
    transcripts::Transcripts,
};

#[uniffi::export]
impl Transcripts {
    /// The segments of a transcript as the JSON of the look-up API, for comparison with the records.
    ///
    /// # Errors
    /// As [`Transcripts::get`].
    pub async fn get_json(&self, link: String) -> Result<String, VerbatimError> {
        let opener = Arc::clone(&self.opener);
        run(None, async move {
            match opener.open().await?.get(Get { link, language: None }).await? {
                GetOutcome::Found(found) => {
                    let json = segments::write(&found.stored.transcript.segments)?;
                    String::from_utf8(json)
                        .map_err(|_| Failure::of(FailureKind::Unexpected, "JSON is no text"))
                }
                GetOutcome::Missing(missing) => Err(missing.into()),
            }
        })
        .await
    }
}

/// How long a store may take for one call of the suite: it is busy with many at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// The names of a port's cases: `archive`, `ledger` or `directory`.
///
/// # Errors
/// `InvalidInput` when there is no such port.
#[uniffi::export]
pub fn conformance_cases(port: String) -> Result<Vec<String>, VerbatimError> {
    fn names<S: ?Sized>(cases: &[Case<S>]) -> Vec<String> {
        cases.iter().map(|case| case.name.to_owned()).collect()
    }
    match port.as_str() {
        "archive" => Ok(names(&archive_cases())),
        "ledger" => Ok(names(&ledger_cases())),
        "directory" => Ok(names(&directory_cases())),
        _ => Err(Failure::invalid(format!("there is no suite for {port:?}"))),
    }
}

/// Runs one case on a fresh archive.
///
/// # Errors
/// `Unexpected` with the rule that it breaks; `InvalidInput` when there is no such case.
#[uniffi::export]
pub async fn run_archive_case(name: String, store: Arc<dyn ArchiveStore>) -> Result<(), VerbatimError> {
    run_case(archive_cases(), name, Arc::new(Foreign::new("archive", store, PATIENCE)) as Arc<dyn Archive>)
        .await
}

/// Runs one case on a fresh ledger.
///
/// # Errors
/// As [`run_archive_case`].
#[uniffi::export]
pub async fn run_ledger_case(name: String, store: Arc<dyn LedgerStore>) -> Result<(), VerbatimError> {
    run_case(ledger_cases(), name, Arc::new(Foreign::new("ledger", store, PATIENCE)) as Arc<dyn Ledger>).await
}

/// Runs one case on a fresh directory.
///
/// # Errors
/// As [`run_archive_case`].
#[uniffi::export]
pub async fn run_directory_case(name: String, store: Arc<dyn DirectoryStore>) -> Result<(), VerbatimError> {
    run_case(
        directory_cases(),
        name,
        Arc::new(Foreign::new("directory", store, PATIENCE)) as Arc<dyn Directory>,
    )
    .await
}

async fn run_case<S: ?Sized + Send + Sync + 'static>(
    cases: Vec<Case<S>>,
    name: String,
    store: Arc<S>,
) -> Result<(), VerbatimError> {
    let case = cases.into_iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Failure::invalid(format!("there is no case {name:?}")))?;
    run(None, async move {
        match case.broken_rule(store).await {
            None => Ok(()),
            Some(rule) => Err(Failure::of(FailureKind::Unexpected, rule)),
        }
    })
    .await
}

/// A store of the core's behind an app's interface.
struct Memory<S>(S);

type Told<T> = Result<T, VerbatimError>;

/// An archive in memory, behind the interface of an app's: to be wrapped, and to compare with.
#[uniffi::export]
pub fn memory_archive() -> Arc<dyn ArchiveStore> {
    Arc::new(Memory(MemoryArchive::default()))
}

/// A ledger in memory, behind the interface of an app's.
#[uniffi::export]
pub fn memory_ledger() -> Arc<dyn LedgerStore> {
    Arc::new(Memory(MemoryLedger::default()))
}

/// Keys and accounts in memory, behind the interface of an app's.
#[uniffi::export]
pub fn memory_directory() -> Arc<dyn DirectoryStore> {
    Arc::new(Memory(MemoryDirectory::default()))
}

#[async_trait]
impl ArchiveStore for Memory<MemoryArchive> {
    async fn find(&self, video: VideoId, wish: Wish, now: Timestamp) -> Told<ArchiveFind> {
        Ok(archive_find(self.0.find(&video, &wish, now).await?))
    }
    async fn tracks(&self, video: VideoId) -> Told<Vec<ArchivedTrack>> {
        Ok(self.0.tracks(&video).await?)
    }
    async fn keep(&self, keep: ArchiveKeep) -> Told<StoredRecord> {
        Ok(stored_record(&self.0.keep(keep.into_core()?).await?))
    }
    async fn keep_absence(&self, absence: Absence) -> Told<()> {
        Ok(self.0.keep_absence(absence).await?)
    }
    async fn claim(&self, lease: Lease) -> Told<Claim> {
        Ok(self.0.claim(lease).await?)
    }
    async fn unclaim(&self, video: VideoId, wish: Wish, holder: Holder) -> Told<()> {
        Ok(self.0.unclaim(&video, &wish, &holder).await?)
    }
    async fn link(&self, link: ShortLink) -> Told<Option<VideoId>> {
        Ok(self.0.link(&link).await?)
    }
    async fn keep_link(&self, link: ShortLink, video: VideoId) -> Told<()> {
        Ok(self.0.keep_link(&link, &video).await?)
    }
    async fn withdraw(&self, video: VideoId, withdrawn: bool, now: Timestamp) -> Told<()> {
        Ok(self.0.withdraw(&video, withdrawn, now).await?)
    }
    async fn forget(&self, video: VideoId) -> Told<()> {
        Ok(self.0.forget(&video).await?)
    }
    async fn changes(&self) -> Told<u64> {
        Ok(self.0.changes().await?)
    }
    async fn page(&self, page: PageRequest) -> Told<TrackPage> {
        let page = self.0.page(page).await?;
        Ok(TrackPage { items: page.items, next: page.next })
    }
    async fn withdrawn(&self, page: PageRequest) -> Told<VideoPage> {
        let page = self.0.withdrawn(page).await?;
        Ok(VideoPage { items: page.items, next: page.next })
    }
    async fn stats(&self) -> Told<Stats> {
        Ok(self.0.stats().await?)
    }
}

#[async_trait]
impl LedgerStore for Memory<MemoryLedger> {
    async fn hold(&self, ask: HoldRequest) -> Told<HoldOutcome> {
        Ok(self.0.hold(ask).await?)
    }
    async fn spend(&self, ask: HoldRequest) -> Told<HoldOutcome> {
        Ok(self.0.spend(ask).await?)
    }
    async fn extend(&self, id: HoldId, until: Timestamp) -> Told<HoldState> {
        Ok(self.0.extend(&id, until).await?)
    }
    async fn settle(&self, ask: Settle) -> Told<SettleOutcome> {
        Ok(self.0.settle(ask).await?)
    }
    async fn grant(&self, grant: Grant) -> Told<GrantOutcome> {
        Ok(self.0.grant(grant).await?)
    }
    async fn revoke(&self, ask: Revoke) -> Told<RevokeOutcome> {
        Ok(self.0.revoke(ask).await?)
    }
    async fn balance(&self, wallet: WalletId, terms: Terms) -> Told<Balance> {
        Ok(self.0.balance(&wallet, &terms).await?)
    }
    async fn balance_since(&self, wallet: WalletId, terms: Terms, since: Timestamp) -> Told<BalanceSince> {
        Ok(self.0.balance_since(&wallet, &terms, since).await?)
    }
    async fn expire(&self, now: Timestamp, limit: u32) -> Told<u32> {
        Ok(self.0.expire(now, limit).await?)
    }
    async fn entries(&self, wallet: WalletId, page: PageRequest) -> Told<EntryPage> {
        let page = self.0.entries(&wallet, page).await?;
        Ok(EntryPage { items: page.items, next: page.next })
    }
    async fn wallets(&self, page: PageRequest) -> Told<BalancePage> {
        let page = self.0.wallets(page).await?;
        Ok(BalancePage { items: page.items, next: page.next })
    }
}

#[async_trait]
impl DirectoryStore for Memory<MemoryDirectory> {
    async fn owner(&self, key_digest: Vec<u8>) -> Told<Option<KeyOwner>> {
        Ok(self.0.owner(&key_digest).await?.map(|owner| match owner {
            Owner::Lookup(key) => KeyOwner::OfLookups { key },
            Owner::Account { key, account } => KeyOwner::OfAccount { key_id: key, holder: account },
        }))
    }
    async fn add_key(&self, key: LookupKey, live_per_subject: u32) -> Told<AddKey> {
        Ok(self.0.add_key(key, live_per_subject).await?)
    }
    async fn entitle(&self, ask: Entitle) -> Told<bool> {
        Ok(self.0.entitle(ask).await?)
    }
    async fn rotate(&self, old_digest: Vec<u8>, new_key: NewKey) -> Told<Rotated> {
        Ok(self.0.rotate(&old_digest, new_key).await?)
    }
    async fn revoke_key(&self, key: KeyId, now: Timestamp) -> Told<bool> {
        Ok(self.0.revoke_key(&key, now).await?)
    }
    async fn keys(&self, page: PageRequest) -> Told<KeyPage> {
        let page = self.0.keys(page).await?;
        Ok(KeyPage { items: page.items, next: page.next })
    }
    async fn put_token(&self, token: Token) -> Told<()> {
        Ok(self.0.put_token(token).await?)
    }
    async fn redeem(&self, ask: Redeem) -> Told<Redemption> {
        Ok(match self.0.redeem(ask).await? {
            Redeemed::Issued { account, first } => Redemption::Issued { holder: account, first },
            Redeemed::NeedsConfirmation => Redemption::NeedsConfirmation,
            Redeemed::Invalid => Redemption::Invalid,
        })
    }
    async fn account(&self, who: AccountRef) -> Told<Option<Account>> {
        Ok(self.0.account(&who).await?)
    }
    async fn change_account(&self, account: Account) -> Told<AccountChange> {
        Ok(match self.0.change_account(account).await? {
            Changed::Changed(holder) => AccountChange::Done { holder },
            Changed::Stale => AccountChange::Stale,
            Changed::Missing => AccountChange::Missing,
        })
    }
    async fn erase_account(&self, id: AccountId, version: u64, now: Timestamp) -> Told<Erased> {
        Ok(self.0.erase_account(&id, version, now).await?)
    }
    async fn accounts(&self, page: PageRequest) -> Told<AccountPage> {
        let page = self.0.accounts(page).await?;
        Ok(AccountPage { items: page.items, next: page.next })
    }
}
