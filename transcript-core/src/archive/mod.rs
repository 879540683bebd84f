//! The archive: the lasting store of transcripts. What it holds is free on Surface A, for ever.

mod digest;
mod records;
mod stored_body;
mod unread;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

pub use digest::content_digest;
pub use records::{
    Absence, ArchivedTrack, Claim, Compact, Compacted, Found, KNOWN_TRACKS_MAX, Keep, Lease, Stats,
    StoredTranscript, Wish,
};
pub use stored_body::StoredBody;
pub use unread::Unread;

use crate::{
    error::Result,
    ids::Holder,
    page::{Page, PageRequest},
    time::Timestamp,
    video::{ShortLink, VideoId},
};

/// The lasting store of transcripts, absences, short links and fetch leases.
///
/// Its key is (video, [`Wish`]). A transcript is stored once and may answer several wishes; which wish
/// means which transcript is decided when it is kept, never when it is read.
///
/// Every method but [`Archive::compact`] is one transaction: it happens whole or not at all, and what it acknowledged
/// survives a crash. Each may be repeated with the same arguments after a fault whose outcome is unknown.
/// Dropping a future at any await leaves the call done or not done, nothing in between.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] when the store cannot be reached,
/// [`crate::ErrorKind::Corrupt`] when stored data cannot be read back, and
/// [`crate::ErrorKind::Unsupported`] when the store is read-only or of a newer version.
#[async_trait]
pub trait Archive: fmt::Debug + Send + Sync + 'static {
    /// What is known about a wish: the hot path, one read by its exact key.
    ///
    /// **Behaviour**
    /// - A withdrawn video is [`Found::Withdrawn`], whatever is stored of it.
    /// - A transcript comes before an absence; the newest revision is returned.
    /// - An absence whose `until` is at or before `now` is [`Found::Nothing`].
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found>;

    /// The transcript of a wish as it is stored, for an answer that is put together without reading it: the
    /// hottest path.
    ///
    /// **Behaviour**
    /// - It is of the transcript that [`Archive::find`] finds at that moment; none where that finds none.
    /// - None, too, where the transcript is not stored in this form, as in a store that knows nothing of
    ///   it: whoever asks then goes on to `find`. That is what this method does unless it is overridden.
    /// - What was damaged on disk is [`crate::ErrorKind::Corrupt`] or none. A checksum of what is returned
    ///   is enough to tell: the words are checked against their digest when the transcript is found.
    /// - Unlike other methods it is awaited wherever somebody asks: any executor may poll it.
    async fn body(&self, video: &VideoId, wish: &Wish) -> Result<Option<StoredBody>> {
        let _ = (video, wish);
        Ok(None)
    }

    /// The transcript of a wish, found and still to be read: for whoever may never look at its words.
    ///
    /// **Behaviour**
    /// - It reads as what [`Archive::find`] finds at that moment, in one snapshot with its
    ///   [`Unread::changes`]; none where that finds none.
    /// - None, too, where the transcript is not stored in a form that can be left unread: whoever asks then
    ///   goes on to `find`. That is what this method does unless it is overridden.
    /// - What was damaged on disk is [`crate::ErrorKind::Corrupt`], here or when it is read.
    /// - Like [`Archive::body`] it is awaited wherever somebody asks: any executor may poll it.
    async fn unread(&self, video: &VideoId, wish: &Wish) -> Result<Option<Arc<dyn Unread>>> {
        let _ = (video, wish);
        Ok(None)
    }

    /// The tracks of a video, archived and only known, in the order in which they became known.
    ///
    /// **Behaviour**
    /// - A track that is archived names the wishes that it answers; none when another track's transcript
    ///   has replaced it for all of them. An unknown or withdrawn video has no tracks.
    /// - Tracks are the same when language, kind and name are; one is original once any supplier said so.
    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>>;

    /// Keeps a transcript for one or several wishes.
    ///
    /// **Behaviour**
    /// - Without `replace`, a wish that has a transcript keeps it: the first one stays. The others get the
    ///   newest stored one of the video with the same content or, where there is none, the new one as
    ///   revision 1.
    /// - With `replace`, every wish gets the new transcript, with a revision one higher than the highest
    ///   that any of them had; unless all that they have has the same content already, which then stays,
    ///   as without `replace`. Earlier revisions are never deleted.
    /// - The known tracks, and then the transcript's own, are joined to those known before; the absences of
    ///   these wishes are cleared.
    /// - Returns what `find` now returns for the first wish.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the video is withdrawn, and nothing is stored;
    /// [`crate::ErrorKind::Invalid`] when there is no wish, no segment, or the transcript is of another
    /// video.
    async fn keep(&self, keep: Keep) -> Result<StoredTranscript>;

    /// Remembers that there is nothing for a wish, until a moment. It replaces an earlier absence.
    ///
    /// **Behaviour**: it never hides a transcript that is stored.
    async fn keep_absence(&self, absence: Absence) -> Result<()>;

    /// Claims the right to fetch a wish, so that one worker at a time asks upstream.
    ///
    /// **Behaviour**
    /// - Free, or its `until` at or before `lease.now`: [`Claim::Claimed`].
    /// - Held by the same holder: renewed to the new `until`, never brought forward, since a renewal whose
    ///   caller gave up may arrive after later ones; [`Claim::Claimed`].
    /// - Held by another: [`Claim::Busy`] with the moment when that lease ends.
    async fn claim(&self, lease: Lease) -> Result<Claim>;

    /// Gives a claim back. One that is held by another, or by nobody, is left as it is.
    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()>;

    /// The video that a short link means, where it was learnt.
    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>>;

    /// Remembers what a short link means, for ever. The first answer stays.
    async fn keep_link(&self, link: &ShortLink, video: &VideoId) -> Result<()>;

    /// Takes a video down, or puts it back. Stored transcripts stay stored, but are no longer found.
    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()>;

    /// Deletes all transcripts, absences and known tracks of a video. A missing one is success.
    ///
    /// **Behaviour**: a withdrawal, leases and the learnt short links stay. Revisions begin at 1 again.
    async fn forget(&self, video: &VideoId) -> Result<()>;

    /// Counts the changes that can make a transcript untrue that was found before, so that whoever keeps
    /// what they found can ask with one cheap read whether it still holds.
    ///
    /// **Behaviour**
    /// - It grows whenever a transcript is replaced, withdrawn, put back or forgotten, and when a video
    ///   that has transcripts gets another one; by whichever process.
    /// - It never shrinks. The first transcript of a video, absences, leases and short links leave it as
    ///   it is, so that what was found can be kept while others are being fetched.
    async fn changes(&self) -> Result<u64>;

    /// The newest revision of every archived track, by video, page by page. Withdrawn ones are included,
    /// tracks that are only known are not.
    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>>;

    /// The videos that are withdrawn, whether anything is stored of them or not, by video, page by page.
    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>>;

    /// How much the archive holds. It takes no longer for a large archive than for a small one, or hardly.
    async fn stats(&self) -> Result<Stats>;

    /// Brings some transcripts that were stored long ago into a smaller form, where the store has one. That is
    /// what this method leaves undone unless it is overridden.
    ///
    /// **Behaviour**
    /// - Nobody can tell by what is found: [`Archive::find`] and [`Archive::body`] return what they returned before,
    ///   to the byte, and [`Archive::changes`] does not grow.
    /// - Each transcript is a transaction of its own: it is read back out of the smaller form before that takes the
    ///   other's place, and only while that is still what was read. So it may be called while others read,
    ///   keep and forget, and may be killed at any instant.
    /// - Whoever begins at the first page again finds only what is left to do.
    async fn compact(&self, ask: Compact) -> Result<Compacted> {
        let _ = ask;
        Ok(Compacted::default())
    }
}
