//! Stores and settings that are broken on purpose: the oracle must detect each.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    accounts::IdempotencyStore,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, FetchLease, FindOutcome, LazyTranscript, LeaseOutcome,
        PutRequest, StoredTranscript, TrackSelector,
    },
    ids::{HoldId, Holder, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, Pool, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
    },
    video::{ShortLink, VideoId},
};

use super::{lossy_idempotency::LossyIdempotencyStore, world::WorldConfig};

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Each hold adds a second hold, which is settled with it.
    DoubleCharge,
    /// A settle spends the whole hold, whatever the request says.
    SpendAll,
    /// A settle is acknowledged and not executed.
    NeverSettle,
    /// A spend is executed twice.
    SpendTwice,
    /// A grant is acknowledged and not executed.
    LoseGrant,
    /// A completed response is lost.
    LoseResponse,
    /// Allowances are ten times as high.
    Overdraw,
    /// An archived transcript is deleted again.
    LoseTranscript,
    /// An archived transcript is altered.
    GarbleTranscript,
    /// Every caller acquires the lease.
    BlindLease,
    /// A late renewal shortens the lease.
    EarlierLease,
    /// A lease is never released and does not expire.
    EndlessLease,
    /// Store calls have no effective timeout.
    NoStoreTimeout,
}

impl Mutation {
    pub(crate) const ALL: [Self; 13] = [
        Self::DoubleCharge,
        Self::SpendAll,
        Self::NeverSettle,
        Self::SpendTwice,
        Self::LoseGrant,
        Self::LoseResponse,
        Self::Overdraw,
        Self::LoseTranscript,
        Self::GarbleTranscript,
        Self::BlindLease,
        Self::EarlierLease,
        Self::EndlessLease,
        Self::NoStoreTimeout,
    ];

    /// Applies the defect to the configuration, if it is one of settings.
    pub(crate) fn apply(self, mut config: WorldConfig) -> WorldConfig {
        if self == Self::NoStoreTimeout {
            config.engine.store_timeout = Duration::from_secs(24 * 3_600);
        }
        config.mutation = Some(self);
        config
    }

    pub(super) fn wrap_archive(mutation: Option<Self>, inner: Arc<dyn Archive>) -> Arc<dyn Archive> {
        match mutation {
            Some(mutation) => Arc::new(BrokenArchive { inner, mutation }),
            None => inner,
        }
    }

    pub(super) fn wrap_idempotency_store(
        mutation: Option<Self>,
        inner: Arc<dyn IdempotencyStore>,
    ) -> Arc<dyn IdempotencyStore> {
        match mutation {
            Some(Self::LoseResponse) => Arc::new(LossyIdempotencyStore(inner)),
            _ => inner,
        }
    }

    pub(super) fn wrap_ledger(mutation: Option<Self>, inner: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        match mutation {
            Some(mutation) => Arc::new(BrokenLedger { inner, mutation }),
            None => inner,
        }
    }
}

#[derive(Debug)]
struct BrokenArchive {
    inner: Arc<dyn Archive>,
    mutation: Mutation,
}

#[derive(Debug)]
struct BrokenLedger {
    inner: Arc<dyn Ledger>,
    mutation: Mutation,
}

#[async_trait]
impl Archive for BrokenArchive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        self.inner.find(video, selector, now).await
    }

    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        self.inner.find_lazy(video, selector).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        self.inner.tracks(video).await
    }

    async fn put(&self, mut request: PutRequest) -> Result<StoredTranscript> {
        if self.mutation == Mutation::GarbleTranscript
            && let Some(segment) = Arc::make_mut(&mut request.transcript).segments.last_mut()
        {
            segment.text.push('!');
        }
        let video = request.video.clone();
        let stored = self.inner.put(request).await?;
        if self.mutation == Mutation::LoseTranscript {
            self.inner.delete(&video).await?;
        }
        Ok(stored)
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        self.inner.put_absence(absence).await
    }

    async fn acquire_lease(&self, mut lease: FetchLease) -> Result<LeaseOutcome> {
        match self.mutation {
            Mutation::EarlierLease => {
                self.inner.release_lease(&lease.video, &lease.selector, &lease.holder).await?;
            }
            Mutation::BlindLease => return Ok(LeaseOutcome::Acquired),
            Mutation::EndlessLease => lease.until = Timestamp::from_millis(i64::MAX),
            _ => {}
        }
        self.inner.acquire_lease(lease).await
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        match self.mutation {
            Mutation::EndlessLease => Ok(()),
            _ => self.inner.release_lease(video, selector, holder).await,
        }
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.inner.short_link(link).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        self.inner.put_short_link(link, video).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.inner.withdraw(video, withdrawn, now).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.inner.delete(video).await
    }

    async fn change_counter(&self) -> Result<u64> {
        self.inner.change_counter().await
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        self.inner.list_tracks(page).await
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        self.inner.list_withdrawn(page).await
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        self.inner.stats().await
    }
}

/// The id of the second hold.
fn second(id: &HoldId) -> HoldId {
    HoldId::new(format!("{id}-again"))
}

#[async_trait]
impl Ledger for BrokenLedger {
    async fn hold(&self, mut request: HoldRequest) -> Result<HoldOutcome> {
        if self.mutation == Mutation::Overdraw {
            for pool in request.legs.iter_mut().flat_map(|leg| &mut leg.terms.pools) {
                if let Pool::Allowance { limit, .. } = pool {
                    *limit *= 10;
                }
            }
        }
        if self.mutation == Mutation::DoubleCharge {
            let _ = self.inner.hold(HoldRequest { id: second(&request.id), ..request.clone() }).await?;
        }
        self.inner.hold(request).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        if self.mutation == Mutation::SpendTwice {
            let _ = self.inner.spend(HoldRequest { id: second(&request.id), ..request.clone() }).await?;
        }
        self.inner.spend(request).await
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.inner.extend(id, expires_at).await
    }

    async fn settle(&self, mut request: SettleRequest) -> Result<SettleOutcome> {
        match self.mutation {
            Mutation::NeverSettle => return Ok(SettleOutcome::Settled { balances: Vec::new() }),
            Mutation::SpendAll => request.spent.iter_mut().for_each(|spent| *spent = 1),
            Mutation::DoubleCharge => {
                let settle = SettleRequest { id: second(&request.id), ..request.clone() };
                let _ = self.inner.settle(settle).await?;
            }
            _ => {}
        }
        self.inner.settle(request).await
    }

    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome> {
        if self.mutation == Mutation::LoseGrant {
            return Ok(GrantOutcome::Exists);
        }
        self.inner.grant(grant).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        self.inner.revoke(request).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        self.inner.balance(wallet, terms).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        self.inner.balance_since(wallet, terms, since).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        self.inner.expire(now, limit).await
    }

    async fn shorten_holds(&self, latest: Timestamp) -> Result<()> {
        self.inner.shorten_holds(latest).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.inner.entries(wallet, page).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        self.inner.wallets(page).await
    }
}
