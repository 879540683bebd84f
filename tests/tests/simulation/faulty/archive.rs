//! An archive behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    archive::{Absence, Archive, ArchivedTrack, Claim, Found, Keep, Lease, Stats, StoredTranscript, Wish},
    ids::Holder,
    video::{ShortLink, VideoId},
};

use super::nothing;
use crate::simulation::{gate::Gate, oracle::Oracle};

#[derive(Debug)]
pub(crate) struct FaultyArchive {
    pub(crate) inner: Arc<dyn Archive>,
    pub(crate) gate: Arc<Gate>,
}

impl FaultyArchive {
    fn inner(&self) -> Arc<dyn Archive> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl Archive for FaultyArchive {
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found> {
        let what = format!("{video} {wish}");
        let (inner, video, wish) = (self.inner(), video.clone(), wish.clone());
        let work = async move { inner.find(&video, &wish, now).await };
        self.gate.pass("archive.find", || what, work, nothing).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let (inner, video) = (self.inner(), video.clone());
        let what = video.to_string();
        let work = async move { inner.tracks(&video).await };
        self.gate.pass("archive.tracks", || what, work, nothing).await
    }

    async fn keep(&self, keep: Keep) -> Result<StoredTranscript> {
        let (inner, video, wishes) = (self.inner(), keep.video.clone(), keep.wishes.clone());
        let what = format!("{video} {wishes:?}");
        let work = async move { inner.keep(keep).await };
        let told = move |oracle: &Oracle, _: &StoredTranscript| oracle.kept(&video, &wishes);
        self.gate.pass("archive.keep", || what, work, told).await
    }

    async fn keep_absence(&self, absence: Absence) -> Result<()> {
        let what = format!("{} {} {}", absence.video, absence.wish, absence.reason);
        let inner = self.inner();
        let work = async move { inner.keep_absence(absence).await };
        self.gate.pass("archive.keep_absence", || what, work, nothing).await
    }

    async fn claim(&self, lease: Lease) -> Result<Claim> {
        let what = format!("{} {} for {} until {}", lease.video, lease.wish, lease.holder, lease.until);
        let inner = self.inner();
        let work = async move { inner.claim(lease).await };
        self.gate.pass("archive.claim", || what, work, nothing).await
    }

    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()> {
        let what = format!("{video} {wish} of {holder}");
        let (inner, video, wish, holder) = (self.inner(), video.clone(), wish.clone(), holder.clone());
        let work = async move { inner.unclaim(&video, &wish, &holder).await };
        self.gate.pass("archive.unclaim", || what, work, nothing).await
    }

    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        let (inner, link) = (self.inner(), link.clone());
        let what = link.code().to_owned();
        let work = async move { inner.link(&link).await };
        self.gate.pass("archive.link", || what, work, nothing).await
    }

    async fn keep_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let what = format!("{} {video}", link.code());
        let (inner, link, video) = (self.inner(), link.clone(), video.clone());
        let work = async move { inner.keep_link(&link, &video).await };
        self.gate.pass("archive.keep_link", || what, work, nothing).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        let what = format!("{video} {withdrawn}");
        let (inner, video) = (self.inner(), video.clone());
        let work = async move { inner.withdraw(&video, withdrawn, now).await };
        self.gate.pass("archive.withdraw", || what, work, nothing).await
    }

    async fn forget(&self, video: &VideoId) -> Result<()> {
        let (inner, gone, video) = (self.inner(), video.clone(), video.clone());
        let what = video.to_string();
        let work = async move { inner.forget(&video).await };
        let told = move |oracle: &Oracle, (): &()| oracle.forgotten(&gone);
        self.gate.pass("archive.forget", || what, work, told).await
    }

    async fn changes(&self) -> Result<u64> {
        let inner = self.inner();
        self.gate.pass("archive.changes", String::new, async move { inner.changes().await }, nothing).await
    }

    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let inner = self.inner();
        self.gate.pass("archive.page", String::new, async move { inner.page(page).await }, nothing).await
    }

    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let inner = self.inner();
        let work = async move { inner.withdrawn(page).await };
        self.gate.pass("archive.withdrawn", String::new, work, nothing).await
    }

    async fn stats(&self) -> Result<Stats> {
        let inner = self.inner();
        self.gate.pass("archive.stats", String::new, async move { inner.stats().await }, nothing).await
    }
}
