//! Archive: the permanent store of transcripts. The lookup API serves what it holds for free.

mod digest;
mod key_value;
mod lazy_transcript;
mod records;
mod stored_body;
mod vectors;
mod verify;
mod video_record;
pub mod view;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

pub use digest::content_digest;
pub use key_value::{KeyValueArchive, KeyValueChange, KeyValueStore};
pub use lazy_transcript::LazyTranscript;
pub use records::{
    Absence, ArchiveStats, ArchivedTrack, ChangedVideo, CompactOutcome, CompactRequest, DamagedTranscript,
    FetchLease, FindOutcome, KNOWN_TRACKS_MAX, LeaseOutcome, PutRequest, StoredTranscript,
    VerifyArchiveOutcome, VerifyArchiveRequest, check_known_tracks,
};
pub use stored_body::StoredBody;
pub use vectors::{VECTORS_BYTES_MAX, VectorsKey, check_vectors};
pub(crate) use video_record::{VideoRecord, parse_track_cursor, track_cursor};

pub use crate::transcript::TrackSelector;

use crate::{
    error::Result,
    ids::Holder,
    page::{Page, PageRequest},
    time::Timestamp,
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

/// Permanent store of transcripts, absences, short links and fetch leases.
///
/// Its key is (video, [`TrackSelector`]). A transcript is stored once and may serve several selectors. Which
/// transcript serves a selector is decided when it is stored, never when it is read.
///
/// Every method but [`Archive::compact`], [`Archive::verify`] and the default [`Archive::put_and_release`] is one
/// transaction: all of it happens or nothing, and an acknowledged change survives a crash.
/// Each call may be repeated with the same arguments after a fault whose outcome is unknown. Dropping a future at any
/// await leaves the call done or not done, nothing in between.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached,
/// [`crate::ErrorKind::Corrupt`] if stored data cannot be read back, and
/// [`crate::ErrorKind::Unsupported`] if the store is read-only or of a newer version.
#[async_trait]
pub trait Archive: fmt::Debug + Send + Sync + 'static {
    /// Looks up a selector of a video: the hot path, one read by exact key.
    ///
    /// **Behaviour**
    /// - A withdrawn video is [`FindOutcome::Withdrawn`], whatever is stored for it.
    /// - A transcript comes before an absence; the newest revision is returned.
    /// - An absence whose `until` is at or before `now` is [`FindOutcome::NotFound`].
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome>;

    /// Finds a selector's transcript without decoding it, to be sent as it is stored or decoded on request.
    ///
    /// **Behaviour**
    /// - It decodes to what [`Archive::find`] returns at that moment, in one snapshot with its
    ///   [`LazyTranscript::change_counter`]; `None` if `find` has none.
    /// - Also `None` if the transcript is not stored in a form that can stay undecoded; the caller then calls
    ///   `find`. The default implementation always returns `None`.
    /// - Data damaged on disk is `None` or [`crate::ErrorKind::Corrupt`], here or in [`LazyTranscript::load`]. A
    ///   checksum of the stored bytes is enough here: decoding checks the text against its digest.
    /// - Unlike other methods, it is awaited on the caller's executor: any executor may poll it.
    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        let _ = (video, selector);
        Ok(None)
    }

    /// Returns a selector's transcript as it is stored, to be sent without decoding: the hottest path.
    ///
    /// **Behaviour**
    /// - It is [`LazyTranscript::body`] of what [`Archive::find_lazy`] returns at that moment, and awaited like it. The
    ///   default implementation calls both; a store overrides it if it can read the body with less work.
    async fn stored_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<StoredBody>> {
        self.find_lazy(video, selector).await?.map(|found| found.body()).transpose()
    }

    /// Lists the tracks of a video, archived or only known, in the order in which they became known.
    ///
    /// **Behaviour**
    /// - An archived track lists the selectors that it serves: none if another track's transcript has replaced it
    ///   for all of them. An unknown or withdrawn video has no tracks.
    /// - Tracks with equal language, kind and name are the same. A track is original once any supplier reported it
    ///   as original.
    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>>;

    /// Stores a transcript for one or several selectors.
    ///
    /// **Behaviour**
    /// - Without `replace`, a selector that has a transcript keeps it. The others get the newest stored transcript
    ///   of the video with the same content or, if there is none, the new one as revision 1.
    /// - With `replace`, every selector gets the new transcript, with a revision one above the highest that any of
    ///   them had. If all that they have already has the same content, it stays, as without `replace`. Earlier
    ///   revisions are never deleted.
    /// - The stored form of a transcript that gets another selector, or is put again with `replace`, is written again
    ///   without reading the old one: that repairs a damaged transcript.
    /// - The known tracks, then the transcript's own track, are merged into those known before; the known fields of the
    ///   metadata replace those known before. The absences of these selectors are deleted.
    /// - Returns what `find` now returns for the first selector.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the video is withdrawn; nothing is stored then.
    /// [`crate::ErrorKind::Invalid`] if there is no selector, no segment, or the transcript belongs to another
    /// video.
    async fn put(&self, request: PutRequest) -> Result<StoredTranscript>;

    /// Stores a transcript and releases the holder's lease of the first selector.
    ///
    /// **Behaviour**
    /// - As [`Archive::put`], then as [`Archive::release_lease`]. If the put fails, the lease stays.
    /// - The default implementation calls both, and ignores a failed release: the lease expires. A store overrides it
    ///   if it can do both in one transaction.
    ///
    /// # Errors
    /// As [`Archive::put`].
    async fn put_and_release(&self, request: PutRequest, holder: &Holder) -> Result<StoredTranscript> {
        let lease = request.selectors.first().map(|selector| (request.video.clone(), selector.clone()));
        let stored = self.put(request).await?;
        if let Some((video, selector)) = lease
            && let Err(error) = self.release_lease(&video, &selector, holder).await
        {
            tracing::warn!(%video, %error, "lease release failed");
        }
        Ok(stored)
    }

    /// Stores an absence of a selector until it expires. It replaces an earlier absence.
    ///
    /// **Behaviour**: an absence never hides a stored transcript.
    async fn put_absence(&self, absence: Absence) -> Result<()>;

    /// Adds tracks that a video is known to have, although a fetch brought no transcript.
    ///
    /// The default implementation adds none: the engine then knows the languages of an absence while it runs.
    ///
    /// **Behaviour**
    /// - They are merged into those known before, as [`Archive::put`] does, and are no transcripts. It is a change if
    ///   the video has transcripts and a track is new.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for more than [`KNOWN_TRACKS_MAX`] tracks.
    async fn add_known_tracks(&self, video: &VideoId, tracks: &[TrackInfo], now: Timestamp) -> Result<()> {
        let _ = (video, tracks, now);
        Ok(())
    }

    /// Returns the vectors that [`Archive::put_vectors`] stored under this key.
    ///
    /// The default implementation returns none: chat then computes them once for each process.
    ///
    /// **Behaviour**: a withdrawn video and a deleted transcript have none.
    async fn vectors(&self, key: &VectorsKey) -> Result<Option<Vec<u8>>> {
        let _ = key;
        Ok(None)
    }

    /// Stores the vectors of a transcript, in the encoding of the caller. They replace earlier ones of this transcript.
    ///
    /// The default implementation stores none.
    ///
    /// **Behaviour**
    /// - Nothing is stored if no selector of the video has this transcript, or if the video is withdrawn.
    /// - They are deleted with their transcript, and when another revision replaces it for all its selectors. It is no
    ///   change, and the statistics do not count them.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for more than [`VECTORS_BYTES_MAX`] bytes.
    async fn put_vectors(&self, key: &VectorsKey, vectors: Vec<u8>) -> Result<()> {
        let _ = key;
        check_vectors(&vectors)
    }

    /// Acquires or renews the fetch lease of a selector, so that one worker at a time fetches it.
    ///
    /// **Behaviour**
    /// - Free, or its `until` at or before `lease.now`: [`LeaseOutcome::Acquired`].
    /// - Held by the same holder: renewed to the new `until`, never shortened, because a renewal whose caller gave
    ///   up may arrive after later ones; [`LeaseOutcome::Acquired`].
    /// - Held by another holder: [`LeaseOutcome::Busy`] with the expiry of that lease, which is shortened if it is too
    ///   late ([`FetchLease::end_of_other`]). Stores in other languages need not shorten it.
    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome>;

    /// Releases a lease. A lease of another holder is left unchanged, and so is a free one.
    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()>;

    /// Returns the video of a short link; `None` if it was never resolved.
    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>>;

    /// Stores the video of a short link permanently. The first value stays.
    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()>;

    /// Withdraws a video or reinstates it. Transcripts of a withdrawn video stay stored, but are not found.
    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()>;

    /// Deletes all transcripts, absences and known tracks of a video. A missing video is success.
    ///
    /// **Behaviour**: a withdrawal, leases and resolved short links stay. Revisions begin at 1 again.
    async fn delete(&self, video: &VideoId) -> Result<()>;

    /// Returns the change counter, which grows when a transcript found earlier may have become invalid.
    ///
    /// A cache checks with this one cheap read whether its entries are still valid.
    ///
    /// **Behaviour**
    /// - It grows whenever a transcript is replaced, withdrawn, reinstated or deleted, and when a video that has
    ///   transcripts gets another one, in any process.
    /// - It shrinks only with the data, as after a failover. The first transcript of a video, absences, leases and
    ///   short links do not change it, so that caches stay valid while other videos are fetched.
    async fn change_counter(&self) -> Result<u64>;

    /// Checks that the store accepts writes.
    ///
    /// **Behaviour**: a store on a disk or a server commits a small write that changes no data, as durably as any
    /// other. The default implementation only reads.
    async fn check_writable(&self) -> Result<()> {
        self.change_counter().await.map(|_| ())
    }

    /// Lists videos whose responses in shared caches may be outdated, the last changed first, at most `limit`.
    ///
    /// The default implementation lists none.
    ///
    /// **Behaviour**
    /// - A video is recorded, in the same transaction, when a transcript of it is replaced or deleted, when it gets
    ///   another one, and when it is withdrawn or restored. It stays until [`Archive::delete_changed_videos`], in any
    ///   process, once for all changes.
    async fn changed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        let _ = limit;
        Ok(Vec::new())
    }

    /// Deletes videos from [`Archive::changed_videos`].
    ///
    /// **Behaviour**: a video that changed again since it was listed stays, with its newest change.
    async fn delete_changed_videos(&self, videos: &[ChangedVideo]) -> Result<()> {
        let _ = videos;
        Ok(())
    }

    /// Lists videos that changed since a search index read them, the longest changed first, at most `limit`.
    ///
    /// The default implementation lists none: a search over such an archive finds what its index was built from, and
    /// nothing stored later.
    ///
    /// **Behaviour**
    /// - A list may be shorter than `limit`, but has at least 100 videos if as many are recorded: an indexer leaves
    ///   some in it that it cannot read.
    /// - A video is recorded, in the same transaction, when a transcript or a known field of its metadata is stored,
    ///   replaced or deleted, and when it is withdrawn or restored; also when a put with `replace` writes the same
    ///   content again, which an index may have found unreadable. It stays until [`Archive::delete_unindexed_videos`],
    ///   in any process, once for all changes.
    /// - A later change of a video has a higher number, even after the record of an earlier one was deleted.
    async fn unindexed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        let _ = limit;
        Ok(Vec::new())
    }

    /// Returns the highest number of [`Archive::unindexed_videos`] so far, 0 before the first change.
    ///
    /// The number only grows. If it is lower than an index has seen it, the archive is an earlier copy of itself, such
    /// as a restored backup, and the index is built again.
    ///
    /// The default implementation returns `None`: the archive does not number changes, or the index is stored with it.
    async fn newest_change(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Deletes videos from [`Archive::unindexed_videos`].
    ///
    /// **Behaviour**: a video that changed again since it was listed stays, with its newest change.
    async fn delete_unindexed_videos(&self, videos: &[ChangedVideo]) -> Result<()> {
        let _ = videos;
        Ok(())
    }

    /// Records a video in [`Archive::unindexed_videos`] with a new number, as if it had changed.
    ///
    /// An indexer calls it for a video that a build of its index leaves out, so that the video is tried again. The
    /// default implementation records none: such a video is left out until it changes or the index is built again.
    async fn record_unindexed_video(&self, video: &VideoId) -> Result<()> {
        let _ = video;
        Ok(())
    }

    /// Lists the newest revision of every archived track, ordered by video, in pages.
    ///
    /// Withdrawn tracks are included; tracks that are only known are not.
    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>>;

    /// Lists the withdrawn videos, with or without stored data, ordered by video, in pages.
    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>>;

    /// Returns size figures. A large archive takes about as long as a small one.
    async fn stats(&self) -> Result<ArchiveStats>;

    /// Moves some old transcripts to cold storage, if the store has one.
    ///
    /// The default implementation does nothing.
    ///
    /// **Behaviour**
    /// - Results stay the same: [`Archive::find`] and [`Archive::stored_body`] return the same bytes as before, and
    ///   [`Archive::change_counter`] does not grow.
    /// - Each transcript is a separate transaction. Its cold form is decoded before it replaces the other form, and
    ///   replaces it only if that form has not changed since it was read. So the method may be called during other
    ///   reads, puts and deletions, and may be killed at any instant.
    /// - A new run from the first page finds only what is left to do.
    async fn compact(&self, request: CompactRequest) -> Result<CompactOutcome> {
        let _ = request;
        Ok(CompactOutcome::default())
    }

    /// Reads some stored transcripts and checks that they decode to what was stored.
    ///
    /// The default implementation checks what [`Archive::find`] returns for each listed track, and deletes the whole
    /// video of a damaged transcript.
    ///
    /// **Behaviour**
    /// - Changes nothing without [`VerifyArchiveRequest::delete_damaged`]. With it, each damaged transcript is deleted
    ///   in a separate transaction, which checks it again first: its selectors have none then, and the known tracks
    ///   stay.
    /// - A transcript of a newer version of the store is listed, but not deleted.
    /// - A store that can also lists damaged selectors, and sets them again if damaged transcripts are to be deleted.
    ///   It sets none of a video that has no selector: its newest transcript may be one that was replaced.
    /// - A store that is unreachable is an error; a transcript that cannot be read is not.
    /// - The method may be called during reads, puts and deletions, and may be killed at any instant. A cursor stays
    ///   valid.
    async fn verify(&self, request: VerifyArchiveRequest) -> Result<VerifyArchiveOutcome> {
        verify::verify_tracks(self, request).await
    }

    /// Serves what is stored of a video without any selector: sets those of its archived tracks.
    ///
    /// Sound selectors stay. Returns whether no damaged selector remains; the default implementation does nothing.
    async fn restore_selectors(&self, video: &VideoId) -> Result<bool> {
        let _ = video;
        Ok(false)
    }
}
