//! The in-memory archive.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;

use super::{
    SharedState,
    eviction::{EvictionQueue, EvictionSlot, RECORD_BYTES, text_bytes},
    no_cursor, page_of,
};
use crate::{
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, FetchLease, FindOutcome, LazyTranscript, LeaseOutcome,
        PutRequest, StoredBody, StoredTranscript, TrackSelector, content_digest,
    },
    body::{segments, zstd_frame},
    error::{Error, Result},
    ids::{Cursor, Holder},
    page::{Page, PageRequest},
    time::Timestamp,
    transcript::{TrackInfo, Transcript},
    video::{Platform, ShortLink, VideoId},
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
    videos: BTreeMap<VideoId, VideoRecord>,
    leases: HashMap<(VideoId, TrackSelector), (Holder, Timestamp)>,
    links: HashMap<ShortLink, VideoId>,
    changes: u64,
    /// `None`: unlimited.
    eviction: Option<EvictionQueue>,
}

impl ArchiveState {
    /// Updates the size of a video after a write, and evicts what exceeds the capacity.
    fn evict_surplus(&mut self, video: &VideoId) {
        let Some(eviction) = &mut self.eviction else { return };
        if let Some(record) = self.videos.get_mut(video) {
            let text_size: u64 = record.transcripts.iter().map(|stored| text_bytes(&stored.transcript)).sum();
            let records = (record.tracks.len() + record.absences.len()) as u64;
            eviction.record_write(video, &mut record.slot, text_size.saturating_add(records * RECORD_BYTES));
        }
        while let Some(video) = self.eviction.as_ref().and_then(EvictionQueue::next_video_to_evict).cloned() {
            self.delete_data(&video);
        }
    }

    /// Deletes everything of a video except its withdrawal.
    fn delete_data(&mut self, video: &VideoId) {
        let Some(record) = self.videos.get_mut(video) else { return };
        if let Some(eviction) = &mut self.eviction {
            eviction.remove(record.slot);
        }
        *record = VideoRecord { withdrawn: record.withdrawn, ..VideoRecord::default() };
        if !record.withdrawn {
            self.videos.remove(video);
        }
        self.changes += 1;
    }
}

/// The stored data of one video.
#[derive(Debug, Default)]
struct VideoRecord {
    withdrawn: bool,
    /// Every revision of every transcript, oldest first.
    transcripts: Vec<StoredTranscript>,
    /// Index into `transcripts` for each selector.
    selectors: BTreeMap<TrackSelector, usize>,
    absences: BTreeMap<TrackSelector, Absence>,
    /// In order of discovery; includes the track of every transcript.
    tracks: Vec<TrackInfo>,
    slot: EvictionSlot,
}

impl VideoRecord {
    fn add_known_track(&mut self, track: &TrackInfo) {
        match self.tracks.iter_mut().find(|known| known.is_same(track)) {
            Some(known) => known.original |= track.original,
            None => self.tracks.push(track.clone()),
        }
    }

    /// The transcript of a selector.
    fn stored(&self, selector: &TrackSelector) -> Option<&StoredTranscript> {
        self.selectors.get(selector).and_then(|index| self.transcripts.get(*index))
    }

    fn add(&mut self, request: &PutRequest, revision: u32, content_sha256: Vec<u8>) -> usize {
        self.transcripts.push(StoredTranscript {
            transcript: Arc::clone(&request.transcript),
            revision,
            content_sha256,
            parser_version: request.parser_version,
            stored_at: request.now,
        });
        self.transcripts.len() - 1
    }

    fn put(&mut self, request: &PutRequest, content: Vec<u8>) {
        let stored = || request.selectors.iter().filter_map(|selector| self.stored(selector));
        let replaced = request.replace && stored().any(|stored| stored.content_sha256 != content);
        if replaced {
            let revision = stored().map(|stored| stored.revision).max().unwrap_or(0) + 1;
            let index = self.add(request, revision, content);
            self.selectors.extend(request.selectors.iter().map(|selector| (selector.clone(), index)));
        } else if request.selectors.iter().any(|selector| !self.selectors.contains_key(selector)) {
            let same = self.transcripts.iter().rposition(|stored| stored.content_sha256 == content);
            let index = same.unwrap_or_else(|| self.add(request, 1, content));
            for selector in &request.selectors {
                self.selectors.entry(selector.clone()).or_insert(index);
            }
        }
        for track in request.known_tracks.iter().chain([&request.transcript.track]) {
            self.add_known_track(track);
        }
        for selector in &request.selectors {
            self.absences.remove(selector);
        }
    }

    /// A track with its archive state.
    fn archived(&self, video: &VideoId, track: &TrackInfo) -> ArchivedTrack {
        let newest = self
            .transcripts
            .iter()
            .filter(|stored| stored.transcript.track.is_same(track))
            .max_by_key(|stored| stored.revision);
        let answers = |index: &usize| {
            self.transcripts.get(*index).is_some_and(|stored| stored.transcript.track.is_same(track))
        };
        let selectors = self.selectors.iter().filter(|(_, index)| answers(index));
        ArchivedTrack {
            video: video.clone(),
            track: track.clone(),
            selectors: selectors.map(|(selector, _)| selector.clone()).collect(),
            revision: newest.map(|stored| stored.revision),
            stored_at: newest.map(|stored| stored.stored_at),
        }
    }

    fn tracks<'a>(&'a self, video: &'a VideoId) -> impl Iterator<Item = ArchivedTrack> + 'a {
        self.tracks.iter().map(move |track| self.archived(video, track))
    }
}

/// Approximate size of a transcript's text.
fn reported_bytes(transcript: &Transcript) -> u64 {
    let texts = transcript.segments.iter().map(|segment| segment.text.len() as u64 + 16);
    texts.sum()
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
        text_bytes(&self.stored.transcript).saturating_add(RECORD_BYTES)
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
        })
    }

    fn load(&self) -> Result<StoredTranscript> {
        Ok(self.stored.clone())
    }
}

/// The cursor after a track: its video, and its index among the video's tracks.
fn cursor(video: &VideoId, index: usize) -> String {
    format!("{video}/{index}")
}

fn parse_cursor(cursor: &Cursor) -> Option<(VideoId, usize)> {
    let (video, index) = cursor.as_str().rsplit_once('/')?;
    let (platform, id) = video.split_once('/')?;
    let video = VideoId::new(Platform::from_wire(platform)?, id).ok()?;
    Some((video, index.parse().ok()?))
}

#[async_trait]
impl Archive for MemoryArchive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        let state = self.state.lock();
        let Some(record) = state.videos.get(video) else {
            return Ok(FindOutcome::NotFound);
        };
        if record.withdrawn {
            return Ok(FindOutcome::Withdrawn);
        }
        if let Some(stored) = record.stored(selector) {
            return Ok(FindOutcome::Transcript(stored.clone()));
        }
        let absence = record.absences.get(selector).filter(|absence| absence.until > now);
        Ok(absence.map_or(FindOutcome::NotFound, |absence| FindOutcome::Absence(absence.clone())))
    }

    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        let state = self.state.lock();
        let record = state.videos.get(video).filter(|record| !record.withdrawn);
        let stored = record.and_then(|record| record.stored(selector)).cloned();
        Ok(stored.map(|stored| Arc::new(FoundTranscript { stored, changes: state.changes }) as _))
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let state = self.state.lock();
        let record = state.videos.get(video).filter(|record| !record.withdrawn);
        Ok(record.map_or_else(Vec::new, |record| record.tracks(video).collect()))
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        request.check()?;
        // Before the lock, because it takes a while.
        let content = content_digest(&request.transcript);
        let mut state = self.state.lock();
        if state.videos.get(&request.video).is_some_and(|record| record.withdrawn) {
            return Err(Error::conflict("the video is withdrawn"));
        }
        let record = state.videos.entry(request.video.clone()).or_default();
        let before = record.selectors.clone();
        record.put(&request, content);
        let changed = !before.is_empty() && before != record.selectors;
        let stored = request.selectors.first().and_then(|first| record.stored(first)).cloned();
        state.changes += u64::from(changed);
        state.evict_surplus(&request.video);
        stored.ok_or_else(|| Error::unexpected("a selector has no transcript after one was stored for it"))
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        let mut state = self.state.lock();
        let video = absence.video.clone();
        let record = state.videos.entry(video.clone()).or_default();
        record.absences.insert(absence.selector.clone(), absence);
        state.evict_surplus(&video);
        Ok(())
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        let mut state = self.state.lock();
        let key = (lease.video, lease.selector);
        let mut expires_at = lease.until;
        match state.leases.get(&key) {
            Some((holder, end)) if *holder == lease.holder => expires_at = expires_at.max(*end),
            Some((_, end)) if *end > lease.now => return Ok(LeaseOutcome::Busy { until: *end }),
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
        state.videos.entry(video.clone()).or_default().withdrawn = withdrawn;
        state.changes += 1;
        Ok(())
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.state.lock().delete_data(video);
        Ok(())
    }

    async fn change_counter(&self) -> Result<u64> {
        Ok(self.state.lock().changes)
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let after =
            page.after.as_ref().map(|cursor| parse_cursor(cursor).ok_or_else(no_cursor)).transpose()?;
        let state = self.state.lock();
        let tracks = state.videos.iter().flat_map(|(video, record)| {
            record.tracks(video).enumerate().map(move |(index, track)| ((video.clone(), index), track))
        });
        let rest = tracks
            .filter(|(_, track)| track.revision.is_some())
            .filter(|(key, _)| after.as_ref().is_none_or(|after| key > after));
        let page = page_of(rest, page.size(), |((video, index), _)| cursor(video, *index));
        Ok(Page { items: page.items.into_iter().map(|(_, track)| track).collect(), next: page.next })
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let state = self.state.lock();
        let withdrawn = state.videos.iter().filter(|(_, record)| record.withdrawn);
        let mut videos: Vec<_> = withdrawn.map(|(video, _)| (video.to_string(), video.clone())).collect();
        videos.sort();
        let after = page.after.as_ref().map(Cursor::as_str);
        let rest = videos.into_iter().filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        let page = page_of(rest, page.size(), |(name, _)| name.clone());
        Ok(Page { items: page.items.into_iter().map(|(_, video)| video).collect(), next: page.next })
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        let state = self.state.lock();
        let mut stats = ArchiveStats { links: state.links.len() as u64, ..ArchiveStats::default() };
        for record in state.videos.values() {
            stats.videos += u64::from(!record.transcripts.is_empty());
            stats.transcripts += record.transcripts.len() as u64;
            stats.absences += record.absences.len() as u64;
            stats.withdrawn += u64::from(record.withdrawn);
            stats.bytes +=
                record.transcripts.iter().map(|stored| reported_bytes(&stored.transcript)).sum::<u64>();
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
