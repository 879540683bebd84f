//! An archive behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, CompactOutcome, CompactRequest, FetchLease,
        FindOutcome, LazyTranscript, LeaseOutcome, PutRequest, StoredBody, StoredTranscript, TrackSelector,
        VectorsKey, VerifyArchiveOutcome, VerifyArchiveRequest,
    },
    ids::Holder,
    test_doubles::ArchiveWrapper,
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

use super::nothing;
use crate::simulation::{oracle::Oracle, store_gate::StoreGate};

#[derive(Debug)]
pub(crate) struct FaultyArchive {
    pub(crate) inner: Arc<dyn Archive>,
    pub(crate) gate: Arc<StoreGate>,
}

impl FaultyArchive {
    fn store(&self) -> Arc<dyn Archive> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl ArchiveWrapper for FaultyArchive {
    fn inner(&self) -> &dyn Archive {
        self.inner.as_ref()
    }

    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        let what = format!("{video} {selector}");
        let (inner, video, selector) = (self.store(), video.clone(), selector.clone());
        let work = async move { inner.find(&video, &selector, now).await };
        self.gate.pass("archive.find", || what, work, nothing).await
    }

    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        let what = format!("{video} {selector}");
        let (inner, video, selector) = (self.store(), video.clone(), selector.clone());
        let work = async move { inner.find_lazy(&video, &selector).await };
        self.gate.pass("archive.find_lazy", || what, work, nothing).await
    }

    async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>> {
        let what = format!("{video} {selector}");
        let (inner, video, selector) = (self.store(), video.clone(), selector.clone());
        let work = async move { inner.stored_body(&video, &selector).await };
        self.gate.pass("archive.stored_body", || what, work, nothing).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let (inner, video) = (self.store(), video.clone());
        let what = video.to_string();
        let work = async move { inner.tracks(&video).await };
        self.gate.pass("archive.tracks", || what, work, nothing).await
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        let (inner, video, selectors) = (self.store(), request.video.clone(), request.selectors.clone());
        let what = format!("{video} {selectors:?}");
        let work = async move { inner.put(request).await };
        let on_effect = move |oracle: &Oracle, _: &StoredTranscript| oracle.on_archived(&video, &selectors);
        self.gate.pass("archive.put", || what, work, on_effect).await
    }

    async fn put_and_release(&self, request: PutRequest, holder: &Holder) -> Result<StoredTranscript> {
        let (inner, video, selectors) = (self.store(), request.video.clone(), request.selectors.clone());
        let what = format!("{video} {selectors:?} of {holder}");
        let holder = holder.clone();
        let work = async move { inner.put_and_release(request, &holder).await };
        let on_effect = move |oracle: &Oracle, _: &StoredTranscript| oracle.on_archived(&video, &selectors);
        self.gate.pass("archive.put_and_release", || what, work, on_effect).await
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        let what = format!("{} {} {}", absence.video, absence.selector, absence.reason);
        let inner = self.store();
        let work = async move { inner.put_absence(absence).await };
        self.gate.pass("archive.put_absence", || what, work, nothing).await
    }

    async fn add_known_tracks(&self, video: &VideoId, tracks: &[TrackInfo], now: Timestamp) -> Result<()> {
        let what = format!("{video} {} tracks", tracks.len());
        let (inner, video, tracks) = (self.store(), video.clone(), tracks.to_vec());
        let work = async move { inner.add_known_tracks(&video, &tracks, now).await };
        self.gate.pass("archive.add_known_tracks", || what, work, nothing).await
    }

    async fn vectors(&self, key: &VectorsKey) -> Result<Option<Vec<u8>>> {
        let (inner, key) = (self.store(), key.clone());
        let what = key.video.to_string();
        let work = async move { inner.vectors(&key).await };
        self.gate.pass("archive.vectors", || what, work, nothing).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        let what = format!("{} {} for {} until {}", lease.video, lease.selector, lease.holder, lease.until);
        let inner = self.store();
        let work = async move { inner.acquire_lease(lease).await };
        self.gate.pass("archive.acquire_lease", || what, work, nothing).await
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        let what = format!("{video} {selector} of {holder}");
        let (inner, video, selector, holder) =
            (self.store(), video.clone(), selector.clone(), holder.clone());
        let work = async move { inner.release_lease(&video, &selector, &holder).await };
        self.gate.pass("archive.release_lease", || what, work, nothing).await
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        let (inner, link) = (self.store(), link.clone());
        let what = link.code().to_owned();
        let work = async move { inner.short_link(&link).await };
        self.gate.pass("archive.short_link", || what, work, nothing).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let what = format!("{} {video}", link.code());
        let (inner, link, video) = (self.store(), link.clone(), video.clone());
        let work = async move { inner.put_short_link(&link, &video).await };
        self.gate.pass("archive.put_short_link", || what, work, nothing).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        let what = format!("{video} {withdrawn}");
        let (inner, video) = (self.store(), video.clone());
        let work = async move { inner.withdraw(&video, withdrawn, now).await };
        self.gate.pass("archive.withdraw", || what, work, nothing).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        let (inner, gone, video) = (self.store(), video.clone(), video.clone());
        let what = video.to_string();
        let work = async move { inner.delete(&video).await };
        let on_effect = move |oracle: &Oracle, (): &()| oracle.on_deleted(&gone);
        self.gate.pass("archive.delete", || what, work, on_effect).await
    }

    async fn change_counter(&self) -> Result<u64> {
        let inner = self.store();
        self.gate
            .pass("archive.change_counter", String::new, async move { inner.change_counter().await }, nothing)
            .await
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let inner = self.store();
        self.gate
            .pass("archive.list_tracks", String::new, async move { inner.list_tracks(page).await }, nothing)
            .await
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let inner = self.store();
        let work = async move { inner.list_withdrawn(page).await };
        self.gate.pass("archive.list_withdrawn", String::new, work, nothing).await
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        let inner = self.store();
        self.gate.pass("archive.stats", String::new, async move { inner.stats().await }, nothing).await
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactOutcome> {
        let inner = self.store();
        let work = async move { inner.compact(request).await };
        self.gate.pass("archive.compact", String::new, work, nothing).await
    }

    async fn verify(&self, request: VerifyArchiveRequest) -> Result<VerifyArchiveOutcome> {
        let inner = self.store();
        let work = async move { inner.verify(request).await };
        self.gate.pass("archive.verify", String::new, work, nothing).await
    }
}
