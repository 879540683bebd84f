//! Tools over the archive.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;
use transcript_core::{
    Clock, Error, PageRequest, Result, Timestamp,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, CompactOutcome, CompactRequest, FindOutcome,
        StoredTranscript, TrackSelector, VerifyArchiveOutcome, VerifyArchiveRequest,
    },
    engine::{FetchOutcome, FetchRequest, Transcripts},
    supplier::ResolveOutcome,
    video::{VideoId, VideoLink},
};

use crate::{
    ArchivedVideo, FoundTranscript, GetOutcome, GetRequest, Options, SystemClock, TranscriptExport,
    UnavailableTranscript, UnreadableTrack,
};

/// Number of transcripts scanned per progress report.
const COMPACT_PAGE: u32 = 200;

/// What the archive stores about a video.
#[derive(Clone, Debug)]
pub struct VideoReport {
    /// The video.
    pub video: VideoId,
    /// Whether the operator withdrew it; then the other fields are empty.
    pub withdrawn: bool,
    /// Known tracks, archived or not.
    pub tracks: Vec<ArchivedTrack>,
    /// Archived transcripts that can be read.
    pub archived: Vec<TranscriptExport>,
    /// Tracks with an archived transcript that cannot be read.
    pub unreadable: Vec<UnreadableTrack>,
    /// Stored absence of the default track, if there is one.
    pub absence: Option<Absence>,
    /// Page on which a user can read the transcript (feature `lookup`).
    #[cfg(feature = "lookup")]
    pub watch_url: String,
}

impl VideoReport {
    /// Whether the archive has any data about the video.
    pub fn is_known(&self) -> bool {
        self.withdrawn || !self.tracks.is_empty() || !self.unreadable.is_empty() || self.absence.is_some()
    }
}

/// Outcome of a refresh.
#[derive(Clone, Debug)]
pub enum RefreshOutcome {
    /// The fetched transcript is archived as a new revision, or in place of one that could not be read.
    Changed(StoredTranscript),
    /// The fetched transcript equals the archived one.
    Unchanged(StoredTranscript),
    /// Nothing was fetched; the archived transcript stays.
    Missing(UnavailableTranscript),
}

/// Import, export, search, refresh, and the functions of an operator. Free of charge, without accounts.
///
/// A clone is a handle to the same archive.
#[derive(Clone, Debug)]
pub struct ArchiveTools {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) transcripts: Transcripts,
    pub(crate) clock: Arc<SystemClock>,
    /// The runtime of the engine.
    pub(crate) runtime: Handle,
    /// The URLs of watch pages.
    #[cfg(feature = "lookup")]
    pub(crate) lookup: transcript_core::lookup::LookupOptions,
}

impl ArchiveTools {
    #[cfg_attr(not(feature = "lookup"), expect(unused_variables, reason = "there are no watch pages"))]
    pub(crate) fn new(
        archive: &Arc<dyn Archive>,
        transcripts: Transcripts,
        clock: Arc<SystemClock>,
        runtime: Handle,
        options: Options,
    ) -> Self {
        Self {
            archive: Arc::clone(archive),
            transcripts,
            clock,
            runtime,
            #[cfg(feature = "lookup")]
            lookup: options.lookup,
        }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the video of a link without network access: a short link must be known.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if the link is invalid, or an unknown short link; otherwise errors of
    /// the storage.
    pub async fn known_video(&self, link: &str) -> Result<VideoId> {
        let short = match VideoLink::parse(link)? {
            VideoLink::Video(video) => return Ok(video),
            VideoLink::Short(short) => short,
        };
        match self.transcripts.resolve(&short, false).await {
            Ok(Some(ResolveOutcome::Video(video))) => Ok(video),
            Ok(_) => Err(Error::invalid(
                "unknown short link, and short links are not resolved here: give the link of the video itself",
            )),
            Err(failure) => Err(Error::unavailable(failure.message())),
        }
    }

    /// Returns the state of a video in the archive.
    ///
    /// # Errors
    /// As [`ArchiveTools::known_video`].
    pub async fn show(&self, link: &str) -> Result<VideoReport> {
        let video = self.known_video(link).await?;
        let found = self.transcripts.find(&video, &TrackSelector::Default).await;
        let ArchivedVideo { tracks, archived, unreadable } = self.read_video(&video).await?;
        Ok(VideoReport {
            withdrawn: matches!(found, Ok(FindOutcome::Withdrawn)),
            absence: match found {
                Ok(FindOutcome::Absence(absence)) => Some(absence),
                Ok(FindOutcome::Transcript(_) | FindOutcome::Withdrawn | FindOutcome::NotFound) => None,
                Err(error) if error.is_unreadable() => None,
                Err(error) => return Err(error),
            },
            tracks,
            archived,
            unreadable,
            #[cfg(feature = "lookup")]
            watch_url: self.lookup.watch_url(&VideoLink::Video(video.clone()), None),
            video,
        })
    }

    /// Deletes all archived data of a video, except a withdrawal.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn delete(&self, video: &VideoId) -> Result<()> {
        self.archive.delete(video).await
    }

    /// Withdraws a video, or restores it.
    ///
    /// Requests for a withdrawn video return that the operator withdrew it. Stored data stays stored.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn withdraw(&self, video: &VideoId, withdrawn: bool) -> Result<()> {
        self.archive.withdraw(video, withdrawn, self.now()).await
    }

    /// Fetches a transcript again and stores it as a new revision if it has changed. Free of charge.
    ///
    /// It also repairs an archived transcript that cannot be read.
    ///
    /// # Errors
    /// As [`crate::Verbatim::get`].
    pub async fn refresh(&self, request: GetRequest) -> Result<RefreshOutcome> {
        let selector = request.selector()?;
        let video = match self.video(&request.link, true).await? {
            Ok(video) => video,
            Err(missing) => return Ok(RefreshOutcome::Missing(missing)),
        };
        let before = match self.archive.find(&video, &selector, self.now()).await {
            Ok(FindOutcome::Transcript(stored)) => Some(stored.content_sha256),
            Ok(FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound) => None,
            Err(error) if error.is_unreadable() => None,
            Err(error) => return Err(error),
        };
        let outcome: FetchOutcome = self.transcripts.refresh(&video, &selector).await;
        Ok(match self.to_get_outcome(&video, outcome)? {
            GetOutcome::Missing(missing) => RefreshOutcome::Missing(missing),
            GetOutcome::Found(FoundTranscript { stored, .. }) => {
                if before.as_ref() == Some(&stored.content_sha256) {
                    RefreshOutcome::Unchanged(stored)
                } else {
                    RefreshOutcome::Changed(stored)
                }
            }
        })
    }

    /// Moves transcripts stored longer ago than this to cold storage; lookups return the same results.
    ///
    /// `on_progress` receives the totals after each page. Servers may run at the same time. The compaction can be
    /// interrupted at any time; the next run continues with the rest.
    ///
    /// # Errors
    /// Errors of the storage; finished pages stay done.
    pub async fn compact(
        &self,
        older_than: Duration,
        mut on_progress: impl FnMut(&CompactOutcome) + Send,
    ) -> Result<CompactOutcome> {
        let stored_before = self.now().minus(older_than);
        let mut total = CompactOutcome::default();
        let mut after = None;
        loop {
            let page = PageRequest { after, limit: COMPACT_PAGE };
            let outcome = self.archive.compact(CompactRequest { stored_before, page }).await?;
            total.scanned += outcome.scanned;
            total.compacted += outcome.compacted;
            total.bytes_before += outcome.bytes_before;
            total.bytes_after += outcome.bytes_after;
            total.damaged.extend(outcome.damaged);
            on_progress(&total);
            after = outcome.next;
            if after.is_none() {
                return Ok(total);
            }
        }
    }

    /// Reads one page of stored transcripts and checks them; see [`Archive::verify`].
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn verify(&self, request: VerifyArchiveRequest) -> Result<VerifyArchiveOutcome> {
        self.archive.verify(request).await
    }

    /// Serves what is stored of a video without a selector; see [`Archive::restore_selectors`].
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn restore_selectors(&self, video: &VideoId) -> Result<bool> {
        self.archive.restore_selectors(video).await
    }

    /// Fetches a transcript that [`ArchiveTools::verify`] deleted or found without a selector. Free of charge.
    ///
    /// # Errors
    /// As [`crate::Verbatim::get`].
    pub async fn refetch(&self, video: &VideoId, selector: &TrackSelector) -> Result<GetOutcome> {
        let fetch = FetchRequest { video: video.clone(), selector: selector.clone(), payer: None };
        let outcome = self.transcripts.get(fetch).await;
        self.to_get_outcome(video, outcome)
    }

    /// Statistics of the archive.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn stats(&self) -> Result<ArchiveStats> {
        self.archive.stats().await
    }
}
