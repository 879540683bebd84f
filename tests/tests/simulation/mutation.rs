//! Stores and settings that are broken on purpose: an oracle that does not catch them proves nothing.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    accounts::Replies,
    archive::{Absence, Archive, ArchivedTrack, Claim, Found, Keep, Lease, Stats, StoredTranscript, Wish},
    ids::{HoldId, Holder, WalletId},
    ledger::{
        Balance, BalanceSince, Entry, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Ledger, Pool,
        Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
    },
    video::{ShortLink, VideoId},
};

use super::{forgetful::ForgetfulReplies, world::Plan};

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// A hold takes a second hold along, which is settled with it.
    DoubleCharge,
    /// A settlement spends everything, whatever it was asked.
    ChargeForNothing,
    /// A settlement is acknowledged and not done.
    NeverSettle,
    /// What is held and settled in one step is so twice.
    SpendTwice,
    /// A gift is acknowledged and not made.
    LoseGift,
    /// A reply that is to be repeated is forgotten.
    ForgetReply,
    /// Limits are ten times as high.
    Overdraw,
    /// What is kept is lost again.
    LoseTranscript,
    /// What is kept is changed.
    GarbleTranscript,
    /// Everyone gets the lease.
    BlindLease,
    /// A renewal that comes late brings the lease's end forward.
    EarlierLease,
    /// The lease is never given back and lasts for ever.
    EternalLease,
    /// Stores are waited for, however long they take.
    EndlessPatience,
}

impl Mutation {
    pub(crate) const ALL: [Self; 13] = [
        Self::DoubleCharge,
        Self::ChargeForNothing,
        Self::NeverSettle,
        Self::SpendTwice,
        Self::LoseGift,
        Self::ForgetReply,
        Self::Overdraw,
        Self::LoseTranscript,
        Self::GarbleTranscript,
        Self::BlindLease,
        Self::EarlierLease,
        Self::EternalLease,
        Self::EndlessPatience,
    ];

    /// The plan with the settings broken, where it is they that are.
    pub(crate) fn plan(self, mut plan: Plan) -> Plan {
        if self == Self::EndlessPatience {
            plan.engine.store = Duration::from_secs(24 * 3_600);
        }
        plan.mutation = Some(self);
        plan
    }

    pub(super) fn archive(mutation: Option<Self>, inner: Arc<dyn Archive>) -> Arc<dyn Archive> {
        match mutation {
            Some(mutation) => Arc::new(BrokenArchive { inner, mutation }),
            None => inner,
        }
    }

    pub(super) fn replies(mutation: Option<Self>, inner: Arc<dyn Replies>) -> Arc<dyn Replies> {
        match mutation {
            Some(Self::ForgetReply) => Arc::new(ForgetfulReplies(inner)),
            _ => inner,
        }
    }

    pub(super) fn ledger(mutation: Option<Self>, inner: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
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
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found> {
        self.inner.find(video, wish, now).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        self.inner.tracks(video).await
    }

    async fn keep(&self, mut keep: Keep) -> Result<StoredTranscript> {
        if self.mutation == Mutation::GarbleTranscript
            && let Some(segment) = Arc::make_mut(&mut keep.transcript).segments.last_mut()
        {
            segment.text.push('!');
        }
        let video = keep.video.clone();
        let stored = self.inner.keep(keep).await?;
        if self.mutation == Mutation::LoseTranscript {
            self.inner.forget(&video).await?;
        }
        Ok(stored)
    }

    async fn keep_absence(&self, absence: Absence) -> Result<()> {
        self.inner.keep_absence(absence).await
    }

    async fn claim(&self, mut lease: Lease) -> Result<Claim> {
        match self.mutation {
            Mutation::EarlierLease => {
                self.inner.unclaim(&lease.video, &lease.wish, &lease.holder).await?;
            }
            Mutation::BlindLease => return Ok(Claim::Claimed),
            Mutation::EternalLease => lease.until = Timestamp::from_millis(i64::MAX),
            _ => {}
        }
        self.inner.claim(lease).await
    }

    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()> {
        match self.mutation {
            Mutation::EternalLease => Ok(()),
            _ => self.inner.unclaim(video, wish, holder).await,
        }
    }

    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.inner.link(link).await
    }

    async fn keep_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        self.inner.keep_link(link, video).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.inner.withdraw(video, withdrawn, now).await
    }

    async fn forget(&self, video: &VideoId) -> Result<()> {
        self.inner.forget(video).await
    }

    async fn changes(&self) -> Result<u64> {
        self.inner.changes().await
    }

    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        self.inner.page(page).await
    }

    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        self.inner.withdrawn(page).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.inner.stats().await
    }
}

/// The second hold's id.
fn second(id: &HoldId) -> HoldId {
    HoldId::new(format!("{id}-again"))
}

#[async_trait]
impl Ledger for BrokenLedger {
    async fn hold(&self, mut ask: HoldRequest) -> Result<HoldOutcome> {
        if self.mutation == Mutation::Overdraw {
            for pool in ask.legs.iter_mut().flat_map(|leg| &mut leg.terms.pools) {
                if let Pool::Allowance { limit, .. } = pool {
                    *limit *= 10;
                }
            }
        }
        if self.mutation == Mutation::DoubleCharge {
            self.inner.hold(HoldRequest { id: second(&ask.id), ..ask.clone() }).await?;
        }
        self.inner.hold(ask).await
    }

    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        if self.mutation == Mutation::SpendTwice {
            self.inner.spend(HoldRequest { id: second(&ask.id), ..ask.clone() }).await?;
        }
        self.inner.spend(ask).await
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        self.inner.extend(id, until).await
    }

    async fn settle(&self, mut ask: Settle) -> Result<SettleOutcome> {
        match self.mutation {
            Mutation::NeverSettle => return Ok(SettleOutcome::Settled { balances: Vec::new() }),
            Mutation::ChargeForNothing => ask.spent.iter_mut().for_each(|spent| *spent = 1),
            Mutation::DoubleCharge => {
                self.inner.settle(Settle { id: second(&ask.id), ..ask.clone() }).await?;
            }
            _ => {}
        }
        self.inner.settle(ask).await
    }

    async fn grant(&self, grant: Grant) -> Result<GrantOutcome> {
        if self.mutation == Mutation::LoseGift {
            return Ok(GrantOutcome::Known);
        }
        self.inner.grant(grant).await
    }

    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome> {
        self.inner.revoke(ask).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        self.inner.balance(wallet, terms).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        self.inner.balance_since(wallet, terms, since).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        self.inner.expire(now, limit).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        self.inner.entries(wallet, page).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        self.inner.wallets(page).await
    }
}
