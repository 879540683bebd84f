//! Stores and settings that are broken on purpose: the oracle must detect each.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::IdempotencyStore,
    archive::{Archive, FetchLease, LeaseOutcome, PutRequest, StoredBody, StoredTranscript, TrackSelector},
    ids::{HoldId, Holder},
    ledger::{
        GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, Ledger, Pool, SettleOutcome, SettleRequest,
    },
    test_doubles::{ArchiveWrapper, LedgerWrapper},
    video::VideoId,
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
    /// A stored body has no words.
    EmptyBody,
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
    pub(crate) const ALL: [Self; 14] = [
        Self::DoubleCharge,
        Self::SpendAll,
        Self::NeverSettle,
        Self::SpendTwice,
        Self::LoseGrant,
        Self::LoseResponse,
        Self::Overdraw,
        Self::LoseTranscript,
        Self::GarbleTranscript,
        Self::EmptyBody,
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
impl ArchiveWrapper for BrokenArchive {
    fn inner(&self) -> &dyn Archive {
        self.inner.as_ref()
    }

    async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>> {
        let body = self.inner.stored_body(video, selector).await?;
        Ok(body.map(|body| match self.mutation {
            Mutation::EmptyBody => {
                StoredBody { segments: zstd::encode_all(&b"[]"[..], 0).unwrap_or_default().into(), ..body }
            }
            _ => body,
        }))
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

    /// Both calls have the defect.
    async fn put_and_release(&self, request: PutRequest, holder: &Holder) -> Result<StoredTranscript> {
        let (video, selector) = (request.video.clone(), request.selectors[0].clone());
        let stored = Archive::put(self, request).await?;
        Archive::release_lease(self, &video, &selector, holder).await?;
        Ok(stored)
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
}

fn second(id: &HoldId) -> HoldId {
    HoldId::new(format!("{id}-again"))
}

#[async_trait]
impl LedgerWrapper for BrokenLedger {
    fn inner(&self) -> &dyn Ledger {
        self.inner.as_ref()
    }

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
}
