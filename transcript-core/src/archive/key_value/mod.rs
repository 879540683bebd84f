//! An archive over a store of keys and values.

mod changes;
mod keys;

use std::{fmt, future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use async_trait::async_trait;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::sync::{Mutex, MutexGuard};

use self::changes::{Changes, VideoChange};
use super::{
    Absence, Archive, ArchiveStats, ArchivedTrack, ChangedVideo, FetchLease, FindOutcome, LeaseOutcome,
    PutRequest, StoredTranscript, TrackSelector, VideoRecord, check_known_tracks, content_digest,
    parse_track_cursor, track_cursor,
};
use crate::{
    debug_fields,
    error::{Error, Result},
    ids::Holder,
    page::{Page, PageRequest, no_cursor},
    time::Timestamp,
    transcript::{TrackInfo, Transcript},
    video::{ShortLink, VideoId},
};

/// A store of keys and values: an embedded database, a table with two columns, a folder.
///
/// [`KeyValueArchive`] makes an archive of it. Keys are texts of at most some 200 bytes; values are JSON of up to some
/// megabytes. An implementation that blocks, as embedded databases do, is called on the threads of the runtime: one
/// that waits for a disk for long moves its work to `tokio::task::spawn_blocking`.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached; [`Error::with_cause`]
/// keeps the error of the database.
#[async_trait]
pub trait KeyValueStore: fmt::Debug + Send + Sync + 'static {
    /// The value of a key.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>>;

    /// Applies all changes in one transaction: all or none, durable when the call returns. No key occurs twice.
    async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()>;

    /// Lists the keys that begin with `prefix` and are greater than `after`, in ascending order of their bytes.
    ///
    /// `after` begins with `prefix`. At most `limit` keys are returned; fewer only if there are no more.
    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>>;
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValueChange {
    /// The key.
    pub key: String,
    /// Its new value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// An archive over a [`KeyValueStore`].
///
/// It passes the conformance suite of archives over every store that does what [`KeyValueStore`] says. Its writes take
/// turns, so one process at a time may use the store, through one `KeyValueArchive` and its clones. Texts are stored
/// once for each content, and everything else of a video in one value. A search index over it stays up to date.
///
/// ```
/// use std::{
///     collections::BTreeMap,
///     sync::{Arc, Mutex},
/// };
///
/// use async_trait::async_trait;
/// use transcript_core::{
///     Result,
///     archive::{Archive, KeyValueArchive, KeyValueChange, KeyValueStore},
/// };
///
/// #[derive(Debug, Default)]
/// struct Map(Mutex<BTreeMap<String, Vec<u8>>>);
///
/// #[async_trait]
/// impl KeyValueStore for Map {
///     async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
///         Ok(self.0.lock().unwrap().get(key).cloned())
///     }
///
///     async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()> {
///         let mut map = self.0.lock().unwrap();
///         for KeyValueChange { key, value } in changes {
///             match value {
///                 Some(value) => map.insert(key, value),
///                 None => map.remove(&key),
///             };
///         }
///         Ok(())
///     }
///
///     async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
///         let map = self.0.lock().unwrap();
///         let keys = map.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
///         Ok(keys.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let archive = KeyValueArchive::new(Arc::new(Map::default()));
/// assert_eq!(archive.stats().await?.transcripts, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct KeyValueArchive {
    store: Arc<dyn KeyValueStore>,
    /// Held from the first read of a change until its write.
    writing: Arc<Mutex<PendingWrite>>,
}

/// A write that has begun.
///
/// A caller may be dropped while it waits, and the store may finish its write later. The next change waits for it, so
/// that it reads what was written.
#[derive(Default)]
struct PendingWrite(Option<Pin<Box<dyn Future<Output = Result<()>> + Send>>>);

debug_fields!(PendingWrite {});

impl PendingWrite {
    /// Waits for the write, if there is one.
    async fn finish(&mut self) -> Result<()> {
        poll_fn(|context| {
            // Put back only while it waits: one that panicked would panic again in each later change.
            let Some(mut write) = self.0.take() else { return Poll::Ready(Ok(())) };
            let written = write.as_mut().poll(context);
            if written.is_pending() {
                self.0 = Some(write);
            }
            written
        })
        .await
    }
}

/// Figures of the whole archive, in one value.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Totals {
    changes: u64,
    /// Number of the newest change that a search index reads.
    #[serde(default)]
    index_changes: u64,
    stats: ArchiveStats,
}

/// A lease of a selector.
#[derive(Debug, Serialize, Deserialize)]
struct LeaseRecord {
    holder: Holder,
    until: Timestamp,
}

impl KeyValueArchive {
    /// The archive in this store.
    pub fn new(store: Arc<dyn KeyValueStore>) -> Self {
        Self { store, writing: Arc::default() }
    }

    async fn read<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.store.get(key).await?.map(|value| decode(key, &value)).transpose()
    }

    async fn record(&self, video: &VideoId) -> Result<Option<VideoRecord>> {
        self.read(&keys::video(video)).await
    }

    async fn totals(&self) -> Result<Totals> {
        Ok(self.read(keys::TOTALS).await?.unwrap_or_default())
    }

    /// The text with this content, whose digest is checked.
    async fn text(&self, video: &VideoId, content: &[u8]) -> Result<Arc<Transcript>> {
        let key = keys::text(video, content);
        let text: Transcript = self.read(&key).await?.ok_or_else(|| corrupt(&key))?;
        match content_digest(&text) == content {
            true => Ok(Arc::new(text)),
            false => Err(corrupt(&key)),
        }
    }

    /// Writes the changes of a video, with the totals of the archive.
    async fn write_video(
        &self,
        writing: MutexGuard<'_, PendingWrite>,
        video: &VideoId,
        (before, after): (Option<VideoRecord>, &mut VideoRecord),
        change: VideoChange,
        mut changes: Changes,
    ) -> Result<()> {
        let mut totals = self.totals().await?;
        if let Some(before) = &before {
            totals.stats.subtract(before);
        }
        totals.stats.add(after);
        totals.changes += u64::from(change.is_change);
        if change.is_unindexed {
            totals.index_changes += 1;
            let earlier = before.as_ref().map_or(0, |before| before.index_change);
            self.delete_unindexed(earlier, &mut changes).await?;
            after.index_change = totals.index_changes;
            changes.put(keys::unindexed(totals.index_changes), video)?;
        }
        changes.put(keys::video(video), &*after)?;
        changes.put(keys::TOTALS.to_owned(), &totals)?;
        self.write(writing, changes).await
    }

    /// Deletes the key of a change that a search index has not read, if there is one.
    async fn delete_unindexed(&self, change: u64, changes: &mut Changes) -> Result<()> {
        let key = keys::unindexed(change);
        if change > 0 && self.store.get(&key).await?.is_some() {
            changes.delete(key);
        }
        Ok(())
    }

    /// Begins a change, after a write whose caller was dropped.
    async fn begin(&self) -> MutexGuard<'_, PendingWrite> {
        let mut writing = self.writing.lock().await;
        // Its error had a caller, who did not wait for it.
        let _ = writing.finish().await;
        writing
    }

    async fn write(&self, mut writing: MutexGuard<'_, PendingWrite>, changes: Changes) -> Result<()> {
        let store = Arc::clone(&self.store);
        writing.0 = Some(Box::pin(async move { store.write(changes.0).await }));
        writing.finish().await
    }

    /// The next page of what `items` returns for each video. Their keys are those of the order.
    async fn page<T>(
        &self,
        mut after: String,
        page: &PageRequest,
        items: impl Fn(&VideoId, &VideoRecord) -> Vec<(String, T)> + Send,
    ) -> Result<Page<T>>
    where
        T: Send,
    {
        let mut found: Vec<(String, T)> = Vec::new();
        loop {
            let records = keys::list(&*self.store, keys::VIDEOS, &after, keys::LIST_MAX).await?;
            let is_last = records.len() < keys::LIST_MAX;
            for (key, value) in records {
                let name = key.strip_prefix(keys::VIDEOS).unwrap_or_default();
                let video = VideoId::from_name(name).ok_or_else(|| corrupt(&key))?;
                found.extend(items(&video, &decode(&key, &value)?));
                after = key;
            }
            if is_last || found.len() > page.size() {
                let found = Page::cut(found, page, |(cursor, _)| cursor.clone());
                let items = found.items.into_iter().map(|(_, item)| item).collect();
                return Ok(Page { items, next: found.next });
            }
        }
    }
}

fn decode<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T> {
    serde_json::from_slice(value).map_err(|_| corrupt(key))
}

#[cold]
fn corrupt(key: &str) -> Error {
    Error::corrupt(format!("the value of the key {key:?} cannot be read back"))
}

#[async_trait]
impl Archive for KeyValueArchive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        let Some(record) = self.record(video).await? else { return Ok(FindOutcome::NotFound) };
        if record.withdrawn {
            return Ok(FindOutcome::Withdrawn);
        }
        if let Some(revision) = record.find(selector) {
            let text = self.text(video, &revision.content_sha256).await;
            return match text {
                Ok(text) => Ok(FindOutcome::Transcript(record.with_text(revision, text))),
                // It was deleted after the record was read.
                Err(_) if self.record(video).await?.is_none_or(|record| record.find(selector).is_none()) => {
                    Ok(FindOutcome::NotFound)
                }
                Err(error) => Err(error),
            };
        }
        let absence = record.absences.get(selector).filter(|absence| absence.until > now);
        Ok(absence.map_or(FindOutcome::NotFound, |absence| FindOutcome::Absence(absence.clone())))
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let record = self.record(video).await?.filter(|record| !record.withdrawn);
        Ok(record.map_or_else(Vec::new, |record| record.tracks(video).collect()))
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        request.check()?;
        let content = content_digest(&request.transcript);
        let writing = self.begin().await;
        let before = self.record(&request.video).await?;
        let mut record = before.clone().unwrap_or_default();
        if record.withdrawn {
            return Err(Error::conflict("the video is withdrawn"));
        }
        let effect = record.put(&request, content.clone());
        let mut changes = Changes::default();
        // Also if it is stored already: that repairs a damaged text.
        if record.revisions.iter().any(|revision| revision.content_sha256 == content) {
            changes.put(keys::text(&request.video, &content), request.transcript.as_ref())?;
        }
        let video = &request.video;
        let change = VideoChange { is_change: effect.is_change, is_unindexed: true };
        self.write_video(writing, video, (before, &mut record), change, changes).await?;
        let first = request.selectors.first().and_then(|first| record.find(first));
        let first = first.ok_or_else(|| Error::unexpected("a selector has no transcript after a put"))?;
        let text = match first.content_sha256 == content {
            true => request.transcript,
            false => self.text(video, &first.content_sha256).await?,
        };
        Ok(record.with_text(first, text))
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        let writing = self.begin().await;
        let before = self.record(&absence.video).await?;
        let mut record = before.clone().unwrap_or_default();
        let video = absence.video.clone();
        record.absences.insert(absence.selector.clone(), absence);
        let change = VideoChange { is_change: false, is_unindexed: false };
        self.write_video(writing, &video, (before, &mut record), change, Changes::default()).await
    }

    async fn add_known_tracks(&self, video: &VideoId, tracks: &[TrackInfo], _now: Timestamp) -> Result<()> {
        check_known_tracks(tracks)?;
        let writing = self.begin().await;
        let before = self.record(video).await?;
        let mut record = before.clone().unwrap_or_default();
        let change = VideoChange { is_change: record.add_known_tracks(tracks), is_unindexed: false };
        self.write_video(writing, video, (before, &mut record), change, Changes::default()).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        let writing = self.begin().await;
        let key = keys::lease(&lease.video, &lease.selector);
        let mut until = lease.until;
        match self.read::<LeaseRecord>(&key).await? {
            Some(held) if held.holder == lease.holder => until = until.max(held.until),
            Some(held) if held.until > lease.now => {
                let until = lease.end_of_other(held.until);
                if until < held.until {
                    let mut changes = Changes::default();
                    changes.put(key, &LeaseRecord { holder: held.holder, until })?;
                    self.write(writing, changes).await?;
                }
                return Ok(LeaseOutcome::Busy { until });
            }
            Some(_) | None => {}
        }
        let mut changes = Changes::default();
        changes.put(key, &LeaseRecord { holder: lease.holder, until })?;
        self.write(writing, changes).await?;
        Ok(LeaseOutcome::Acquired)
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        let writing = self.begin().await;
        let key = keys::lease(video, selector);
        if self.read::<LeaseRecord>(&key).await?.is_none_or(|held| held.holder != *holder) {
            return Ok(());
        }
        let mut changes = Changes::default();
        changes.delete(key);
        self.write(writing, changes).await
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.read(&keys::link(link)).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        let writing = self.begin().await;
        let key = keys::link(link);
        if self.store.get(&key).await?.is_some() {
            return Ok(());
        }
        let mut totals = self.totals().await?;
        totals.stats.links += 1;
        let mut changes = Changes::default();
        changes.put(key, video)?;
        changes.put(keys::TOTALS.to_owned(), &totals)?;
        self.write(writing, changes).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, _now: Timestamp) -> Result<()> {
        let writing = self.begin().await;
        let before = self.record(video).await?;
        let mut record = before.clone().unwrap_or_default();
        record.withdrawn = withdrawn;
        self.write_video(writing, video, (before, &mut record), VideoChange::FULL, Changes::default()).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        let writing = self.begin().await;
        let Some(before) = self.record(video).await? else { return Ok(()) };
        let mut contents: Vec<_> = before.revisions.iter().map(|one| one.content_sha256.as_slice()).collect();
        contents.sort_unstable();
        contents.dedup();
        let mut changes = Changes::default();
        contents.iter().for_each(|content| changes.delete(keys::text(video, content)));
        let mut record = before.clone();
        record.clear();
        self.write_video(writing, video, (Some(before), &mut record), VideoChange::FULL, changes).await
    }

    async fn change_counter(&self) -> Result<u64> {
        Ok(self.totals().await?.changes)
    }

    async fn check_writable(&self) -> Result<()> {
        let writing = self.begin().await;
        self.write(writing, Changes::check()).await
    }

    async fn unindexed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        let limit = keys::LIST_MAX.min(limit as usize);
        let found = keys::list(&*self.store, keys::UNINDEXED, keys::UNINDEXED, limit).await?;
        let changed = found.into_iter().map(|(key, value)| {
            let number = key.strip_prefix(keys::UNINDEXED).and_then(|number| number.parse().ok());
            let change = number.ok_or_else(|| corrupt(&key))?;
            Ok(ChangedVideo { video: decode(&key, &value)?, change })
        });
        changed.collect()
    }

    async fn newest_change(&self) -> Result<Option<u64>> {
        Ok(Some(self.totals().await?.index_changes))
    }

    async fn delete_unindexed_videos(&self, videos: &[ChangedVideo]) -> Result<()> {
        let writing = self.begin().await;
        let mut changes = Changes::default();
        // A video that changed again has the key of the newer change.
        for ChangedVideo { change, .. } in videos {
            self.delete_unindexed(*change, &mut changes).await?;
        }
        if changes.0.is_empty() { Ok(()) } else { self.write(writing, changes).await }
    }

    async fn record_unindexed_video(&self, video: &VideoId) -> Result<()> {
        let writing = self.begin().await;
        let Some(before) = self.record(video).await? else { return Ok(()) };
        let (change, mut record) = (VideoChange { is_change: false, is_unindexed: true }, before.clone());
        self.write_video(writing, video, (Some(before), &mut record), change, Changes::default()).await
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let after = page.after.as_ref().map(|cursor| parse_track_cursor(cursor).ok_or_else(no_cursor));
        let after = after.transpose()?;
        let last = after.as_ref().map(|(video, position)| (keys::video(video), *position));
        let tracks = |video: &VideoId, record: &VideoRecord| {
            let tracks = record.tracks(video).enumerate().filter(|(_, track)| track.revision.is_some());
            let key = keys::video(video);
            let tracks = tracks.filter(|(index, _)| {
                last.as_ref().is_none_or(|(last, position)| (&key, index) > (last, position))
            });
            tracks.map(|(index, track)| (track_cursor(video, index), track)).collect()
        };
        // The video of the cursor may have more tracks, so the list begins with it.
        let before = after.as_ref().map_or_else(|| keys::VIDEOS.to_owned(), |(video, _)| keys::before(video));
        self.page(before, &page, tracks).await
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let after = match &page.after {
            None => keys::VIDEOS.to_owned(),
            Some(cursor) => keys::video(&VideoId::from_name(cursor.as_str()).ok_or_else(no_cursor)?),
        };
        let withdrawn = |video: &VideoId, record: &VideoRecord| match record.withdrawn {
            true => vec![(video.to_string(), video.clone())],
            false => Vec::new(),
        };
        self.page(after, &page, withdrawn).await
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        Ok(self.totals().await?.stats)
    }
}

#[cfg(test)]
mod tests;
