//! What an operator does with the archive.

use std::time::Duration;

use transcript_core::{
    Error, PageRequest, Result,
    archive::{Absence, ArchivedTrack, Compact, Compacted, Found, Stats, StoredTranscript, Wish},
    engine::Outcome,
    supplier::Resolved,
    video::{VideoId, VideoLink},
};

use crate::{Archived, Found as FoundTranscript, Get, GetOutcome, Missing, Verbatim};

/// How many transcripts are looked at before one is told how far the work is.
const COMPACT_AT_ONCE: u32 = 200;

/// What is known about a video.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The video.
    pub video: VideoId,
    /// Whether the operator took it down. Then nothing else is told of it.
    pub withdrawn: bool,
    /// The tracks that it is known to have, archived or not.
    pub tracks: Vec<ArchivedTrack>,
    /// The transcripts that are archived.
    pub archived: Vec<Archived>,
    /// Why its default transcript is not archived, where that is remembered.
    pub absence: Option<Absence>,
    /// Where a person can read it.
    pub watch_url: String,
}

impl Shown {
    /// Whether the archive knows anything at all about the video.
    pub fn is_known(&self) -> bool {
        self.withdrawn || !self.tracks.is_empty() || self.absence.is_some()
    }
}

/// What came of a refresh.
#[derive(Clone, Debug)]
pub enum Refreshed {
    /// What was fetched is archived as a new revision.
    Changed(StoredTranscript),
    /// What was fetched is what is archived already.
    Unchanged(StoredTranscript),
    /// Nothing was fetched, and what is archived stays.
    Missing(Missing),
}

impl Verbatim {
    /// The video that a link names, without asking anybody: a short link must have been followed before.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the link is none, or a short one that is not known;
    /// otherwise the storage's faults.
    pub async fn known_video(&self, link: &str) -> Result<VideoId> {
        let short = match VideoLink::parse(link).map_err(|error| Error::invalid(error.to_string()))? {
            VideoLink::Video(video) => return Ok(video),
            VideoLink::Short(short) => short,
        };
        match self.transcripts().resolve(&short, false).await {
            Ok(Some(Resolved::Video(video))) => Ok(video),
            Ok(_) => Err(Error::invalid(
                "this short link is not known here, and nobody is asked: give the video's own link",
            )),
            Err(failure) => Err(Error::unavailable(failure.message())),
        }
    }

    /// What the archive knows about a video.
    ///
    /// # Errors
    /// As [`Verbatim::known_video`].
    pub async fn show(&self, link: &str) -> Result<Shown> {
        let video = self.known_video(link).await?;
        let found = self.transcripts().find(&video, &Wish::Default).await?;
        Ok(Shown {
            withdrawn: matches!(found, Found::Withdrawn),
            absence: match found {
                Found::Absent(absence) => Some(absence),
                Found::Transcript(_) | Found::Withdrawn | Found::Nothing => None,
            },
            tracks: self.archive().tracks(&video).await?,
            archived: self.archived(&video).await?,
            watch_url: self.lookup().options().watch_url(&VideoLink::Video(video.clone()), None),
            video,
        })
    }

    /// Deletes everything that is archived and known of a video, but for a withdrawal.
    ///
    /// # Errors
    /// The storage's faults.
    pub async fn delete(&self, video: &VideoId) -> Result<()> {
        self.archive().forget(video).await
    }

    /// Takes a video down, or puts it back: everybody is told that the operator withdrew it. What is
    /// stored of it stays stored.
    ///
    /// # Errors
    /// The storage's faults.
    pub async fn withdraw(&self, video: &VideoId, withdrawn: bool) -> Result<()> {
        self.archive().withdraw(video, withdrawn, self.now()).await
    }

    /// Fetches a transcript again, now, and keeps it as a new revision when it has changed. Nobody is
    /// charged.
    ///
    /// # Errors
    /// As [`Verbatim::get`].
    pub async fn refresh(&self, ask: Get) -> Result<Refreshed> {
        let wish = ask.wish()?;
        let video = match self.video(&ask.link).await? {
            Ok(video) => video,
            Err(missing) => return Ok(Refreshed::Missing(missing)),
        };
        let before = match self.archive().find(&video, &wish, self.now()).await? {
            Found::Transcript(stored) => Some(stored.content_sha256),
            Found::Absent(_) | Found::Withdrawn | Found::Nothing => None,
        };
        let outcome: Outcome = self.transcripts().refresh(&video, &wish).await;
        Ok(match self.told(&video, outcome)? {
            GetOutcome::Missing(missing) => Refreshed::Missing(missing),
            GetOutcome::Found(FoundTranscript { stored, .. }) => {
                if before.as_ref() == Some(&stored.content_sha256) {
                    Refreshed::Unchanged(stored)
                } else {
                    Refreshed::Changed(stored)
                }
            }
        })
    }

    /// Brings what was stored longer ago than this into a smaller form; nobody who looks it up can tell. `told` hears of
    /// each part of the work, with what came of it so far.
    ///
    /// It may run beside servers, be broken off at any instant, and be begun again: then it goes on with what is
    /// left.
    ///
    /// # Errors
    /// The storage's faults; what is done by then stays done.
    pub async fn compact(
        &self,
        older_than: Duration,
        mut told: impl FnMut(&Compacted) + Send,
    ) -> Result<Compacted> {
        let stored_before = self.now().minus(older_than);
        let mut all = Compacted::default();
        let mut after = None;
        loop {
            let page = PageRequest { after, limit: COMPACT_AT_ONCE };
            let some = self.archive().compact(Compact { stored_before, page }).await?;
            all.looked_at += some.looked_at;
            all.compacted += some.compacted;
            all.bytes_before += some.bytes_before;
            all.bytes_after += some.bytes_after;
            all.damaged.extend(some.damaged);
            told(&all);
            after = some.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// How much the archive holds.
    ///
    /// # Errors
    /// The storage's faults.
    pub async fn stats(&self) -> Result<Stats> {
        self.archive().stats().await
    }
}
