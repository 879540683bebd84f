//! The archive in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;

use super::{
    Shared,
    bound::{Bound, Place, RECORD_BYTES, room},
    no_cursor, page_of,
};
use crate::{
    archive::{
        Absence, Archive, ArchivedTrack, Claim, Found, Keep, Lease, Stats, StoredBody, StoredTranscript,
        Wish, content_digest,
    },
    error::{Error, ErrorKind, Result, Retry},
    ids::{Cursor, Holder},
    page::{Page, PageRequest},
    time::Timestamp,
    transcript::{TrackInfo, Transcript},
    video::{Platform, ShortLink, VideoId},
    wire::{frame, segments},
};

/// An [`Archive`] in memory. A clone is the same archive.
#[derive(Clone, Debug, Default)]
pub struct MemoryArchive {
    shelves: Shared<Shelves>,
}

impl MemoryArchive {
    /// An archive that holds about this many bytes at most: beyond, videos are forgotten, first those of which
    /// nothing was kept for longest.
    ///
    /// The newest one stays, whatever it takes, and a withdrawal is never forgotten.
    pub fn up_to(bytes_max: u64) -> Self {
        let archive = Self::default();
        archive.shelves.lock().bound = Some(Bound::new(bytes_max));
        archive
    }
}

#[derive(Debug, Default)]
struct Shelves {
    videos: BTreeMap<VideoId, Shelf>,
    leases: HashMap<(VideoId, Wish), (Holder, Timestamp)>,
    links: HashMap<ShortLink, VideoId>,
    changes: u64,
    /// None: without end.
    bound: Option<Bound>,
}

impl Shelves {
    /// After something was kept of a video: what is too much now goes.
    fn weigh(&mut self, video: &VideoId) {
        let Some(bound) = &mut self.bound else { return };
        if let Some(shelf) = self.videos.get_mut(video) {
            let words: u64 = shelf.transcripts.iter().map(|stored| room(&stored.transcript)).sum();
            let records = (shelf.tracks.len() + shelf.absences.len()) as u64;
            bound.put(video, &mut shelf.place, words.saturating_add(records * RECORD_BYTES));
        }
        while let Some(video) = self.bound.as_ref().and_then(Bound::surplus).cloned() {
            self.clear(&video);
        }
    }

    /// Forgets all of a video but its withdrawal.
    fn clear(&mut self, video: &VideoId) {
        let Some(shelf) = self.videos.get_mut(video) else { return };
        if let Some(bound) = &mut self.bound {
            bound.take(shelf.place);
        }
        *shelf = Shelf { withdrawn: shelf.withdrawn, ..Shelf::default() };
        if !shelf.withdrawn {
            self.videos.remove(video);
        }
        self.changes += 1;
    }
}

/// What is stored of one video.
#[derive(Debug, Default)]
struct Shelf {
    withdrawn: bool,
    /// Every revision of every transcript, oldest first.
    transcripts: Vec<StoredTranscript>,
    /// Which of `transcripts` a wish means.
    wishes: BTreeMap<Wish, usize>,
    absences: BTreeMap<Wish, Absence>,
    /// In the order in which they became known; the track of every transcript is among them.
    tracks: Vec<TrackInfo>,
    place: Place,
}

impl Shelf {
    fn know(&mut self, track: &TrackInfo) {
        match self.tracks.iter_mut().find(|known| known.is_same(track)) {
            Some(known) => known.original |= track.original,
            None => self.tracks.push(track.clone()),
        }
    }

    /// The transcript that a wish means.
    fn stored(&self, wish: &Wish) -> Option<&StoredTranscript> {
        self.wishes.get(wish).and_then(|place| self.transcripts.get(*place))
    }

    fn add(&mut self, keep: &Keep, revision: u32, content_sha256: Vec<u8>) -> usize {
        self.transcripts.push(StoredTranscript {
            transcript: Arc::clone(&keep.transcript),
            revision,
            content_sha256,
            parser_version: keep.parser_version,
            stored_at: keep.now,
        });
        self.transcripts.len() - 1
    }

    fn keep(&mut self, keep: &Keep, content: Vec<u8>) {
        let stored = || keep.wishes.iter().filter_map(|wish| self.stored(wish));
        let replaced = keep.replace && stored().any(|stored| stored.content_sha256 != content);
        if replaced {
            let revision = stored().map(|stored| stored.revision).max().unwrap_or(0) + 1;
            let place = self.add(keep, revision, content);
            self.wishes.extend(keep.wishes.iter().map(|wish| (wish.clone(), place)));
        } else if keep.wishes.iter().any(|wish| !self.wishes.contains_key(wish)) {
            let same = self.transcripts.iter().rposition(|stored| stored.content_sha256 == content);
            let place = same.unwrap_or_else(|| self.add(keep, 1, content));
            for wish in &keep.wishes {
                self.wishes.entry(wish.clone()).or_insert(place);
            }
        }
        for track in keep.known_tracks.iter().chain([&keep.transcript.track]) {
            self.know(track);
        }
        for wish in &keep.wishes {
            self.absences.remove(wish);
        }
    }

    /// A track with what is archived of it.
    fn archived(&self, video: &VideoId, track: &TrackInfo) -> ArchivedTrack {
        let newest = self
            .transcripts
            .iter()
            .filter(|stored| stored.transcript.track.is_same(track))
            .max_by_key(|stored| stored.revision);
        let answers = |place: &usize| {
            self.transcripts.get(*place).is_some_and(|stored| stored.transcript.track.is_same(track))
        };
        let wishes = self.wishes.iter().filter(|(_, place)| answers(place));
        ArchivedTrack {
            video: video.clone(),
            track: track.clone(),
            wishes: wishes.map(|(wish, _)| wish.clone()).collect(),
            revision: newest.map(|stored| stored.revision),
            stored_at: newest.map(|stored| stored.stored_at),
        }
    }

    fn tracks<'a>(&'a self, video: &'a VideoId) -> impl Iterator<Item = ArchivedTrack> + 'a {
        self.tracks.iter().map(move |track| self.archived(video, track))
    }
}

/// About how much room a transcript takes.
fn bytes(transcript: &Transcript) -> u64 {
    let texts = transcript.segments.iter().map(|segment| segment.text.len() as u64 + 16);
    texts.sum()
}

fn body(stored: &StoredTranscript) -> Result<StoredBody> {
    let json = segments::write(&stored.transcript.segments)?;
    let frame = frame::uncompressed(&json);
    Ok(StoredBody {
        content_sha256: stored.content_sha256.clone(),
        source: stored.transcript.source.clone(),
        length: json.len() as u64,
        checksum: crc32fast::hash(&frame),
        segments: frame.into(),
    })
}

/// The cursor after a track: its video, and its place among the video's tracks.
fn cursor(video: &VideoId, place: usize) -> String {
    format!("{video}/{place}")
}

fn read_cursor(cursor: &Cursor) -> Option<(VideoId, usize)> {
    let (video, place) = cursor.as_str().rsplit_once('/')?;
    let (platform, id) = video.split_once('/')?;
    let video = VideoId::new(Platform::from_wire(platform)?, id).ok()?;
    Some((video, place.parse().ok()?))
}

#[async_trait]
impl Archive for MemoryArchive {
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found> {
        let shelves = self.shelves.lock();
        let Some(shelf) = shelves.videos.get(video) else {
            return Ok(Found::Nothing);
        };
        if shelf.withdrawn {
            return Ok(Found::Withdrawn);
        }
        if let Some(stored) = shelf.stored(wish) {
            return Ok(Found::Transcript(stored.clone()));
        }
        let absence = shelf.absences.get(wish).filter(|absence| absence.until > now);
        Ok(absence.map_or(Found::Nothing, |absence| Found::Absent(absence.clone())))
    }

    /// Made anew each time: here a transcript takes its room once.
    async fn body(&self, video: &VideoId, wish: &Wish) -> Result<Option<StoredBody>> {
        let stored = {
            let shelves = self.shelves.lock();
            let shelf = shelves.videos.get(video).filter(|shelf| !shelf.withdrawn);
            shelf.and_then(|shelf| shelf.stored(wish)).cloned()
        };
        stored.map(|stored| body(&stored)).transpose()
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let shelves = self.shelves.lock();
        let shelf = shelves.videos.get(video).filter(|shelf| !shelf.withdrawn);
        Ok(shelf.map_or_else(Vec::new, |shelf| shelf.tracks(video).collect()))
    }

    async fn keep(&self, keep: Keep) -> Result<StoredTranscript> {
        keep.check()?;
        // Before the lock: it takes a while.
        let content = content_digest(&keep.transcript);
        let mut shelves = self.shelves.lock();
        if shelves.videos.get(&keep.video).is_some_and(|shelf| shelf.withdrawn) {
            return Err(Error::new(ErrorKind::Conflict, Retry::Never, "the video is withdrawn"));
        }
        let shelf = shelves.videos.entry(keep.video.clone()).or_default();
        let before = shelf.wishes.clone();
        shelf.keep(&keep, content);
        let changed = !before.is_empty() && before != shelf.wishes;
        let stored = keep.wishes.first().and_then(|first| shelf.stored(first)).cloned();
        shelves.changes += u64::from(changed);
        shelves.weigh(&keep.video);
        stored.ok_or_else(|| Error::unexpected("a wish has no transcript after one was kept for it"))
    }

    async fn keep_absence(&self, absence: Absence) -> Result<()> {
        let mut shelves = self.shelves.lock();
        let video = absence.video.clone();
        let shelf = shelves.videos.entry(video.clone()).or_default();
        shelf.absences.insert(absence.wish.clone(), absence);
        shelves.weigh(&video);
        Ok(())
    }

    async fn claim(&self, lease: Lease) -> Result<Claim> {
        let mut shelves = self.shelves.lock();
        let key = (lease.video, lease.wish);
        let mut ends = lease.until;
        match shelves.leases.get(&key) {
            Some((holder, until)) if *holder == lease.holder => ends = ends.max(*until),
            Some((_, until)) if *until > lease.now => return Ok(Claim::Busy { until: *until }),
            Some(_) | None => {}
        }
        shelves.leases.insert(key, (lease.holder, ends));
        Ok(Claim::Claimed)
    }

    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()> {
        let mut shelves = self.shelves.lock();
        let key = (video.clone(), wish.clone());
        if shelves.leases.get(&key).is_some_and(|(held_by, _)| held_by == holder) {
            shelves.leases.remove(&key);
        }
        Ok(())
    }

    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        Ok(self.shelves.lock().links.get(link).cloned())
    }

    async fn keep_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let mut guard = self.shelves.lock();
        let shelves = &mut *guard;
        if shelves.links.contains_key(link) {
            return Ok(());
        }
        shelves.links.insert(link.clone(), video.clone());
        if let Some(bound) = &mut shelves.bound {
            bound.put_link(link);
            while let Some(oldest) = bound.surplus_link() {
                shelves.links.remove(&oldest);
            }
        }
        Ok(())
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, _now: Timestamp) -> Result<()> {
        let mut shelves = self.shelves.lock();
        shelves.videos.entry(video.clone()).or_default().withdrawn = withdrawn;
        shelves.changes += 1;
        Ok(())
    }

    async fn forget(&self, video: &VideoId) -> Result<()> {
        self.shelves.lock().clear(video);
        Ok(())
    }

    async fn changes(&self) -> Result<u64> {
        Ok(self.shelves.lock().changes)
    }

    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let after =
            page.after.as_ref().map(|cursor| read_cursor(cursor).ok_or_else(no_cursor)).transpose()?;
        let shelves = self.shelves.lock();
        let tracks = shelves.videos.iter().flat_map(|(video, shelf)| {
            shelf.tracks(video).enumerate().map(move |(place, track)| ((video.clone(), place), track))
        });
        let rest = tracks
            .filter(|(_, track)| track.revision.is_some())
            .filter(|(key, _)| after.as_ref().is_none_or(|after| key > after));
        let page = page_of(rest, page.size(), |((video, place), _)| cursor(video, *place));
        Ok(Page { items: page.items.into_iter().map(|(_, track)| track).collect(), next: page.next })
    }

    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let shelves = self.shelves.lock();
        let withdrawn = shelves.videos.iter().filter(|(_, shelf)| shelf.withdrawn);
        let mut videos: Vec<_> = withdrawn.map(|(video, _)| (video.to_string(), video.clone())).collect();
        videos.sort();
        let after = page.after.as_ref().map(Cursor::as_str);
        let rest = videos.into_iter().filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        let page = page_of(rest, page.size(), |(name, _)| name.clone());
        Ok(Page { items: page.items.into_iter().map(|(_, video)| video).collect(), next: page.next })
    }

    async fn stats(&self) -> Result<Stats> {
        let shelves = self.shelves.lock();
        let mut stats = Stats { links: shelves.links.len() as u64, ..Stats::default() };
        for shelf in shelves.videos.values() {
            stats.videos += u64::from(!shelf.transcripts.is_empty());
            stats.transcripts += shelf.transcripts.len() as u64;
            stats.absences += shelf.absences.len() as u64;
            stats.withdrawn += u64::from(shelf.withdrawn);
            stats.bytes += shelf.transcripts.iter().map(|stored| bytes(&stored.transcript)).sum::<u64>();
        }
        Ok(stats)
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::archive_conformance!(Arc::new(super::MemoryArchive::default()));

    mod up_to_a_bound {
        use std::sync::Arc;

        // Far above what the cases keep: within the bound nothing is otherwise.
        crate::archive_conformance!(Arc::new(crate::memory::MemoryArchive::up_to(1 << 30)));
    }
}
