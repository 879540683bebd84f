//! The in-memory archive.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;

use super::{
    SharedState,
    eviction::{EvictionQueue, EvictionSlot, RECORD_BYTES},
};
use crate::{
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, ChangedVideo, FetchLease, FindOutcome, LazyTranscript,
        LeaseOutcome, PutRequest, StoredBody, StoredTranscript, TrackSelector, VectorsKey, VideoRecord,
        check_known_tracks, check_vectors, content_digest, parse_track_cursor, track_cursor,
    },
    body::{segments, zstd_frame},
    error::{Error, Result},
    ids::{Cursor, Holder},
    page::{Page, PageRequest, no_cursor},
    time::Timestamp,
    transcript::{TrackInfo, TrackKind, Transcript},
    video::{ShortLink, VideoId},
};

/// An in-memory [`Archive`]. A clone is the same archive.
#[derive(Clone, Debug, Default)]
pub struct MemoryArchive {
    state: SharedState<ArchiveState>,
}

impl MemoryArchive {
    /// An archive of about this many bytes: beyond, the videos whose last write is oldest are evicted.
    ///
    /// The newest video stays, whatever its size, and a withdrawal is never evicted.
    pub fn with_capacity(bytes_max: u64) -> Self {
        let archive = Self::default();
        archive.state.lock().eviction = Some(EvictionQueue::new(bytes_max));
        archive
    }
}

#[derive(Debug, Default)]
struct ArchiveState {
    videos: BTreeMap<VideoId, MemoryVideo>,
    leases: HashMap<(VideoId, TrackSelector), (Holder, Timestamp)>,
    links: HashMap<ShortLink, VideoId>,
    changes: u64,
    unindexed: UnindexedVideos,
    /// `None`: unlimited.
    eviction: Option<EvictionQueue>,
}

/// Videos that changed since a search index read them. They are recorded once they are first listed.
#[derive(Debug, Default)]
struct UnindexedVideos {
    is_recording: bool,
    changes: u64,
    by_video: HashMap<VideoId, u64>,
    by_change: BTreeMap<u64, VideoId>,
}

impl UnindexedVideos {
    fn record(&mut self, video: &VideoId) {
        if !self.is_recording {
            return;
        }
        self.changes += 1;
        if let Some(earlier) = self.by_video.insert(video.clone(), self.changes) {
            self.by_change.remove(&earlier);
        }
        self.by_change.insert(self.changes, video.clone());
    }
}

impl ArchiveState {
    /// Updates the size of a video after a write, and evicts what exceeds the capacity.
    fn evict_surplus(&mut self, video: &VideoId) {
        let Some(eviction) = &mut self.eviction else { return };
        if let Some(MemoryVideo { record, texts, vectors, slot }) = self.videos.get_mut(video) {
            let text_size: u64 = texts.iter().map(|text| text.memory_bytes()).sum();
            let vector_size: u64 = vectors.values().map(|vectors| vectors.bytes.len() as u64).sum();
            let records = (record.tracks.len() + record.absences.len() + vectors.len()) as u64;
            let size = text_size.saturating_add(vector_size).saturating_add(records * RECORD_BYTES);
            eviction.record_write(video, slot, size);
        }
        while let Some(video) = self.eviction.as_ref().and_then(EvictionQueue::next_video_to_evict).cloned() {
            self.delete_data(&video);
        }
    }

    /// Deletes everything of a video except its withdrawal.
    fn delete_data(&mut self, video: &VideoId) {
        let Some(stored) = self.videos.get_mut(video) else { return };
        self.unindexed.record(video);
        if let Some(eviction) = &mut self.eviction {
            eviction.remove(stored.slot);
        }
        let MemoryVideo { mut record, .. } = std::mem::take(stored);
        record.clear();
        match record.withdrawn {
            true => stored.record = record,
            false => drop(self.videos.remove(video)),
        }
        self.changes += 1;
    }
}

/// The stored data of one video.
#[derive(Debug, Default)]
struct MemoryVideo {
    record: VideoRecord,
    /// The texts of the record's revisions.
    texts: Vec<Arc<Transcript>>,
    /// Vectors by the content digest of their transcript.
    vectors: HashMap<Vec<u8>, MemoryVectors>,
    slot: EvictionSlot,
}

/// The vectors of one transcript.
#[derive(Debug)]
struct MemoryVectors {
    texts_sha256: [u8; 32],
    bytes: Vec<u8>,
}

impl MemoryVideo {
    fn stored(&self, selector: &TrackSelector) -> Option<StoredTranscript> {
        let index = *self.record.selectors.get(selector)?;
        let revision = self.record.revisions.get(index)?;
        Some(self.record.with_text(revision, Arc::clone(self.texts.get(index)?)))
    }

    /// Deletes the vectors of transcripts that no selector has.
    fn delete_unused_vectors(&mut self) {
        let Self { record, vectors, .. } = self;
        vectors.retain(|content_sha256, _| record.is_selected(content_sha256));
    }
}

/// A found transcript, decoded from the start. Its body is encoded on each call, so that it is in memory once.
#[derive(Debug)]
struct FoundTranscript {
    stored: StoredTranscript,
    changes: u64,
}

impl LazyTranscript for FoundTranscript {
    fn revision(&self) -> u32 {
        self.stored.revision
    }

    fn change_counter(&self) -> u64 {
        self.changes
    }

    fn memory_bytes(&self) -> u64 {
        self.stored.transcript.memory_bytes().saturating_add(RECORD_BYTES)
    }

    fn track_kind(&self) -> Result<TrackKind> {
        Ok(self.stored.transcript.track.kind)
    }

    fn body(&self) -> Result<StoredBody> {
        let json = segments::write(&self.stored.transcript.segments)?;
        let frame = zstd_frame::uncompressed(&json);
        Ok(StoredBody {
            content_sha256: self.stored.content_sha256.clone(),
            source: self.stored.transcript.source.clone(),
            length: json.len() as u64,
            checksum: crc32fast::hash(&frame),
            segments: frame.into(),
            header: self.stored.transcript.without_segments(),
            details: Arc::clone(&self.stored.details),
        })
    }

    fn load(&self) -> Result<StoredTranscript> {
        Ok(self.stored.clone())
    }
}

#[async_trait]
impl Archive for MemoryArchive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        let state = self.state.lock();
        let Some(video) = state.videos.get(video) else {
            return Ok(FindOutcome::NotFound);
        };
        if video.record.withdrawn {
            return Ok(FindOutcome::Withdrawn);
        }
        if let Some(stored) = video.stored(selector) {
            return Ok(FindOutcome::Transcript(stored));
        }
        let absence = video.record.absences.get(selector).filter(|absence| absence.until > now);
        Ok(absence.map_or(FindOutcome::NotFound, |absence| FindOutcome::Absence(absence.clone())))
    }

    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        let state = self.state.lock();
        let video = state.videos.get(video).filter(|video| !video.record.withdrawn);
        let stored = video.and_then(|video| video.stored(selector));
        Ok(stored.map(|stored| Arc::new(FoundTranscript { stored, changes: state.changes }) as _))
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let state = self.state.lock();
        let found = state.videos.get(video).filter(|found| !found.record.withdrawn);
        Ok(found.map_or_else(Vec::new, |found| found.record.tracks(video).collect()))
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        request.check()?;
        // Before the lock, because it takes a while.
        let content = content_digest(&request.transcript);
        let mut state = self.state.lock();
        if state.videos.get(&request.video).is_some_and(|video| video.record.withdrawn) {
            return Err(Error::conflict("the video is withdrawn"));
        }
        let video = state.videos.entry(request.video.clone()).or_default();
        let effect = video.record.put(&request, content);
        if effect.is_new {
            video.texts.push(Arc::clone(&request.transcript));
            video.delete_unused_vectors();
        }
        let stored = request.selectors.first().and_then(|first| video.stored(first));
        state.changes += u64::from(effect.is_change);
        state.unindexed.record(&request.video);
        state.evict_surplus(&request.video);
        stored.ok_or_else(|| Error::unexpected("a selector has no transcript after one was stored for it"))
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        let mut state = self.state.lock();
        let video = absence.video.clone();
        let stored = state.videos.entry(video.clone()).or_default();
        stored.record.absences.insert(absence.selector.clone(), absence);
        state.evict_surplus(&video);
        Ok(())
    }

    async fn add_known_tracks(&self, video: &VideoId, tracks: &[TrackInfo], _now: Timestamp) -> Result<()> {
        check_known_tracks(tracks)?;
        let mut state = self.state.lock();
        let stored = state.videos.entry(video.clone()).or_default();
        let is_change = stored.record.add_known_tracks(tracks);
        state.changes += u64::from(is_change);
        state.evict_surplus(video);
        Ok(())
    }

    async fn vectors(&self, key: &VectorsKey) -> Result<Option<Vec<u8>>> {
        let state = self.state.lock();
        let video = state.videos.get(&key.video).filter(|video| !video.record.withdrawn);
        let stored = video.and_then(|video| video.vectors.get(&key.content_sha256));
        let stored = stored.filter(|stored| stored.texts_sha256 == key.texts_sha256);
        Ok(stored.map(|stored| stored.bytes.clone()))
    }

    async fn put_vectors(&self, key: &VectorsKey, vectors: Vec<u8>) -> Result<()> {
        check_vectors(&vectors)?;
        let mut state = self.state.lock();
        let video = state.videos.get_mut(&key.video).filter(|video| !video.record.withdrawn);
        if let Some(video) = video.filter(|video| video.record.is_selected(&key.content_sha256)) {
            let stored = MemoryVectors { texts_sha256: key.texts_sha256, bytes: vectors };
            video.vectors.insert(key.content_sha256.clone(), stored);
            state.evict_surplus(&key.video);
        }
        Ok(())
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        let mut state = self.state.lock();
        let key = (lease.video.clone(), lease.selector.clone());
        let mut expires_at = lease.until;
        match state.leases.get_mut(&key) {
            Some((holder, end)) if *holder == lease.holder => expires_at = expires_at.max(*end),
            Some((_, end)) if *end > lease.now => {
                *end = lease.end_of_other(*end);
                return Ok(LeaseOutcome::Busy { until: *end });
            }
            Some(_) | None => {}
        }
        state.leases.insert(key, (lease.holder, expires_at));
        Ok(LeaseOutcome::Acquired)
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        let mut state = self.state.lock();
        let key = (video.clone(), selector.clone());
        if state.leases.get(&key).is_some_and(|(owner, _)| owner == holder) {
            state.leases.remove(&key);
        }
        Ok(())
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        Ok(self.state.lock().links.get(link).cloned())
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.links.contains_key(link) {
            return Ok(());
        }
        state.links.insert(link.clone(), video.clone());
        if let Some(eviction) = &mut state.eviction {
            eviction.put_link(link);
            while let Some(oldest) = eviction.pop_link_to_evict() {
                state.links.remove(&oldest);
            }
        }
        Ok(())
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, _now: Timestamp) -> Result<()> {
        let mut state = self.state.lock();
        state.videos.entry(video.clone()).or_default().record.withdrawn = withdrawn;
        state.changes += 1;
        state.unindexed.record(video);
        Ok(())
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.state.lock().delete_data(video);
        Ok(())
    }

    async fn change_counter(&self) -> Result<u64> {
        Ok(self.state.lock().changes)
    }

    async fn unindexed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        let mut state = self.state.lock();
        state.unindexed.is_recording = true;
        let changed = state.unindexed.by_change.iter().take(limit as usize);
        Ok(changed.map(|(change, video)| ChangedVideo { video: video.clone(), change: *change }).collect())
    }

    async fn newest_change(&self) -> Result<Option<u64>> {
        Ok(Some(self.state.lock().unindexed.changes))
    }

    async fn delete_unindexed_videos(&self, videos: &[ChangedVideo]) -> Result<()> {
        let unindexed = &mut self.state.lock().unindexed;
        for ChangedVideo { video, change } in videos {
            if unindexed.by_video.get(video) == Some(change) {
                unindexed.by_video.remove(video);
                unindexed.by_change.remove(change);
            }
        }
        Ok(())
    }

    async fn record_unindexed_video(&self, video: &VideoId) -> Result<()> {
        self.state.lock().unindexed.record(video);
        Ok(())
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let after =
            page.after.as_ref().map(|cursor| parse_track_cursor(cursor).ok_or_else(no_cursor)).transpose()?;
        let state = self.state.lock();
        let tracks = state.videos.iter().flat_map(|(video, stored)| {
            stored.record.tracks(video).enumerate().map(move |(index, track)| ((video.clone(), index), track))
        });
        let rest = tracks
            .filter(|(_, track)| track.revision.is_some())
            .filter(|(key, _)| after.as_ref().is_none_or(|after| key > after));
        let page = Page::cut(rest, &page, |((video, index), _)| track_cursor(video, *index));
        Ok(Page { items: page.items.into_iter().map(|(_, track)| track).collect(), next: page.next })
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let state = self.state.lock();
        let withdrawn = state.videos.iter().filter(|(_, stored)| stored.record.withdrawn);
        let mut videos: Vec<_> = withdrawn.map(|(video, _)| (video.to_string(), video.clone())).collect();
        videos.sort();
        let after = page.after.as_ref().map(Cursor::as_str);
        let rest = videos.into_iter().filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        let page = Page::cut(rest, &page, |(name, _)| name.clone());
        Ok(Page { items: page.items.into_iter().map(|(_, video)| video).collect(), next: page.next })
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        let state = self.state.lock();
        let mut stats = ArchiveStats { links: state.links.len() as u64, ..ArchiveStats::default() };
        for MemoryVideo { record, .. } in state.videos.values() {
            stats.add(record);
        }
        Ok(stats)
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::archive_conformance!(Arc::new(super::MemoryArchive::default()));

    mod within_capacity {
        use std::sync::Arc;

        // Far above what the cases store: below its capacity the archive behaves the same.
        crate::archive_conformance!(Arc::new(crate::memory::MemoryArchive::with_capacity(1 << 30)));
    }
}
