//! Archived data of a video, for display and for export: the newest revision of each transcript.

use serde::Serialize;
use transcript_core::{
    Error, ErrorKind, Page, PageRequest, Result, Retry,
    archive::{ArchivedTrack, FindOutcome, StoredTranscript, TrackSelector},
    body::segments::seconds,
    transcript::{Chapter, LiveStatus, Segment, TrackInfo, VideoMetadata, Word},
    video::VideoId,
};

use crate::ArchiveTools;

/// Name and version of the format that [`TranscriptExport::to_json`] writes.
pub(crate) const FORMAT: &str = "verbatim-export/1";

/// A transcript of a video with all its archived data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptExport {
    /// Selectors that it answers, in order; at least one.
    pub selectors: Vec<TrackSelector>,
    /// The transcript.
    pub stored: StoredTranscript,
    /// All known tracks of the video.
    pub known_tracks: Vec<TrackInfo>,
}

/// A track whose archived transcript cannot be read, or not be found because selectors are damaged.
#[derive(Clone, Debug)]
pub struct UnreadableTrack {
    /// The track.
    pub track: TrackInfo,
    /// Why it cannot be read, and what to do.
    pub error: Error,
}

/// All that is archived of a video.
#[derive(Clone, Debug, Default)]
pub struct ArchivedVideo {
    /// Known tracks, archived or not.
    pub tracks: Vec<ArchivedTrack>,
    /// Transcripts that can be read.
    pub archived: Vec<TranscriptExport>,
    /// Tracks with a transcript that cannot be read.
    pub unreadable: Vec<UnreadableTrack>,
}

impl ArchivedVideo {
    /// A video whose tracks cannot be read, for this reason.
    fn unreadable(video: &VideoId, error: &Error) -> Self {
        let message = format!(
            "the tracks of {video} cannot be read: {error}; repair it with `verbatim archive delete` and a new fetch, \
             or restore a backup"
        );
        let error = Error::new(error.kind(), error.retry(), message);
        Self {
            unreadable: vec![UnreadableTrack { track: TrackInfo::unreadable(), error }],
            ..Self::default()
        }
    }
}

impl ArchiveTools {
    /// Returns all archived transcripts of a video; none of a withdrawn one.
    ///
    /// # Errors
    /// Errors of the storage; `Corrupt` also if one of the transcripts cannot be read.
    pub async fn archived(&self, video: &VideoId) -> Result<Vec<TranscriptExport>> {
        let mut found = self.read_video(video).await?;
        found.unreadable.pop().map_or(Ok(found.archived), |unreadable| Err(unreadable.error))
    }

    /// Returns one page of the archived transcripts, ordered by video; none of withdrawn videos.
    ///
    /// A track that another one has replaced for all selectors is left out. A page can be empty before the last one.
    ///
    /// # Errors
    /// Errors of the storage; `Corrupt` also if one of the transcripts cannot be read.
    pub async fn list_archived(&self, page: PageRequest) -> Result<Page<StoredTranscript>> {
        let Page { items: tracks, next } = self.archive.list_tracks(page).await?;
        let mut items = Vec::new();
        for track in tracks {
            items.extend(self.track_transcript(&track).await?);
        }
        Ok(Page { items, next })
    }

    /// Transcript of an archived track; `None` if another one has replaced it, and of a withdrawn video.
    pub(crate) async fn track_transcript(&self, track: &ArchivedTrack) -> Result<Option<StoredTranscript>> {
        let Some(selector) = track.selectors.first() else { return Ok(None) };
        match self.archive.find(&track.video, selector, self.now()).await? {
            FindOutcome::Transcript(stored) => Ok(Some(stored)),
            FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound => Ok(None),
        }
    }

    /// Returns all that is archived of the videos on one page of [`transcript_core::archive::Archive::list_tracks`], as
    /// [`ArchiveTools::read_video`] does.
    ///
    /// A video whose tracks are on two pages is returned with both.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn list_exports(&self, page: PageRequest) -> Result<Page<ArchivedVideo>> {
        let Page { items: tracks, next } = self.archive.list_tracks(page).await?;
        let mut videos: Vec<VideoId> = tracks.into_iter().map(|track| track.video).collect();
        videos.dedup();
        let mut items = Vec::new();
        for video in videos {
            items.push(self.read_video(&video).await?);
        }
        Ok(Page { items, next })
    }

    /// Returns how many archived or withdrawn videos no list has: their rows are damaged, or of a later version.
    ///
    /// It is 0 if the archive does not count its videos. A difference is counted again, and the lower number returned,
    /// because videos may be fetched and deleted at the same time.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn unlisted_videos(&self) -> Result<u64> {
        match self.count_unlisted_videos().await? {
            0 => Ok(0),
            count => Ok(count.min(self.count_unlisted_videos().await?)),
        }
    }

    async fn count_unlisted_videos(&self) -> Result<u64> {
        let Ok(before) = self.archive.stats().await else { return Ok(0) };
        let mut page = PageRequest::first();
        let mut last: Option<VideoId> = None;
        let mut listed = 0_u64;
        loop {
            let tracks = self.archive.list_tracks(page).await?;
            for track in tracks.items {
                if last.as_ref() != Some(&track.video) {
                    last = Some(track.video);
                    listed += 1;
                }
            }
            let Some(next) = tracks.next else { break };
            page = PageRequest { after: Some(next), ..PageRequest::first() };
        }
        let (mut page, mut withdrawn) = (PageRequest::first(), 0_u64);
        loop {
            let found = self.archive.list_withdrawn(page).await?;
            withdrawn += found.items.len() as u64;
            let Some(next) = found.next else { break };
            page = PageRequest { after: Some(next), ..PageRequest::first() };
        }
        let Ok(after) = self.archive.stats().await else { return Ok(0) };
        let archived = before.videos.min(after.videos).saturating_sub(listed);
        // A withdrawn video may be archived, too.
        Ok(archived.max(before.withdrawn.min(after.withdrawn).saturating_sub(withdrawn)))
    }

    /// Returns all archived transcripts of a video, also those that cannot be read; none of a withdrawn one.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn read_video(&self, video: &VideoId) -> Result<ArchivedVideo> {
        let tracks = match self.archive.tracks(video).await {
            Err(error) if error.is_unreadable() => return Ok(ArchivedVideo::unreadable(video, &error)),
            tracks => tracks?,
        };
        let mut known: Vec<TrackInfo> = tracks.iter().map(|track| track.track.clone()).collect();
        known.retain(|track| !track.is_unreadable());
        let mut archived: Vec<TranscriptExport> = Vec::new();
        let mut unreadable: Vec<UnreadableTrack> = Vec::new();
        // Collected: with the iterator across an await, the compiler does not prove that the future is `Send`.
        let selectors = tracks.iter().flat_map(|track| track.selectors.iter().map(move |one| (track, one)));
        for (track, selector) in selectors.collect::<Vec<_>>() {
            let stored = match self.archive.find(video, selector, self.now()).await {
                Ok(FindOutcome::Transcript(stored)) => stored,
                Ok(_) => continue,
                Err(error) if error.is_unreadable() => {
                    // Each selector of the track has the same transcript, in most cases.
                    if !unreadable.iter().any(|one| one.track == track.track) {
                        unreadable.push(UnreadableTrack { track: track.track.clone(), error });
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            let same = archived.iter_mut().find(|one| one.stored.content_sha256 == stored.content_sha256);
            match same {
                Some(one) => one.selectors.push(selector.clone()),
                None => archived.push(TranscriptExport {
                    selectors: vec![selector.clone()],
                    stored,
                    known_tracks: known.clone(),
                }),
            }
        }
        archived.iter_mut().for_each(|one| one.selectors.sort());
        unreadable.extend(self.find_unserved(video, &tracks).await?);
        Ok(ArchivedVideo { tracks, archived, unreadable })
    }

    /// Returns the archived tracks without a selector because selectors are damaged, not because another track replaced
    /// them.
    async fn find_unserved(&self, video: &VideoId, tracks: &[ArchivedTrack]) -> Result<Vec<UnreadableTrack>> {
        let has_selector = tracks.iter().any(|track| !track.selectors.is_empty());
        let mut unserved = Vec::new();
        for ArchivedTrack { track, selectors, revision, .. } in tracks {
            let own = track.selector();
            let is_replaced = tracks.iter().any(|other| other.selectors.contains(&own));
            if !selectors.is_empty() || revision.is_none() || is_replaced {
                continue;
            }
            let error = match self.archive.find(video, &own, self.now()).await {
                Err(error) if error.is_unreadable() => error,
                Ok(FindOutcome::Absence(_) | FindOutcome::NotFound) if !has_selector => Error::new(
                    ErrorKind::Corrupt,
                    Retry::Never,
                    format!(
                        "the archived transcript of {video} ({}) has no selector; repair it with `verbatim archive \
                         verify --repair refetch`, `verbatim archive refresh`, `verbatim import` or `verbatim archive \
                         delete`",
                        track.language
                    ),
                ),
                found => {
                    found?;
                    continue;
                }
            };
            unserved.push(UnreadableTrack { track: track.clone(), error });
        }
        Ok(unserved)
    }
}

/// Returns a withdrawal as JSON, which [`crate::ImportDraft::read`] reads; it contains no text.
///
/// # Errors
/// None known.
pub fn withdrawal_to_json(video: &VideoId) -> Result<String> {
    let document = ExportedWithdrawal {
        format: FORMAT,
        platform: video.platform().as_str(),
        video_id: video.id(),
        available: false,
        withdrawn: true,
        transcript: [],
    };
    let json = serde_json::to_string_pretty(&document);
    json.map(|json| json + "\n").map_err(|error| Error::unexpected(error.to_string()))
}

impl TranscriptExport {
    /// Name that is unique among the transcripts of the video, for use in file names.
    ///
    /// It has letters, digits, `-`, `_` and `.` only: the language, with the first selector in front if the transcript
    /// does not answer the language, as a translation.
    pub fn name(&self) -> String {
        let language = &self.stored.transcript.track.language;
        let own = TrackSelector::Language(language.clone());
        let name = match self.selectors.first() {
            Some(selector) if !self.selectors.contains(&own) => format!("{selector}.{language}"),
            _ => language.to_string(),
        };
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        name.chars().map(|c| if is_safe(c) { c } else { '_' }).collect()
    }

    /// Returns the transcript as JSON, which [`crate::ImportDraft::read`] reads without loss.
    ///
    /// Only the revision and the storage time depend on the archive. The JSON has all transcript fields of the lookup
    /// API's response, with the same meaning.
    ///
    /// # Errors
    /// None known: every transcript can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        let transcript = &self.stored.transcript;
        let metadata = &self.stored.details.metadata;
        let document = ExportDocument {
            format: FORMAT,
            platform: transcript.video.platform().as_str(),
            video_id: transcript.video.id(),
            available: true,
            source: &transcript.source,
            title: transcript.title.as_deref(),
            author: transcript.author.as_deref(),
            duration: transcript.duration_ms.map(seconds),
            language: transcript.track.language.as_str(),
            kind: transcript.track.kind.as_str(),
            is_generated: transcript.track.is_generated(),
            track_name: transcript.track.name.as_deref(),
            original: transcript.track.original,
            selectors: self.selectors.iter().map(TrackSelector::as_str).collect(),
            tracks: self.known_tracks.iter().map(ExportedTrack::from).collect(),
            revision: self.stored.revision,
            stored_at: self.stored.stored_at.to_string(),
            parser_version: self.stored.parser_version,
            metadata: ExportedMetadata::new(metadata),
            chapters: metadata.chapters.iter().map(ExportedChapter::from).collect(),
            transcript: transcript.segments.iter().map(ExportedSnippet::from).collect(),
        };
        let json = serde_json::to_string_pretty(&document);
        json.map(|json| json + "\n").map_err(|error| Error::unexpected(error.to_string()))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportDocument<'a> {
    format: &'a str,
    platform: &'a str,
    video_id: &'a str,
    available: bool,
    source: &'a str,
    title: Option<&'a str>,
    author: Option<&'a str>,
    duration: Option<f64>,
    language: &'a str,
    kind: &'a str,
    is_generated: bool,
    track_name: Option<&'a str>,
    original: bool,
    #[serde(rename = "wishes")]
    selectors: Vec<&'a str>,
    tracks: Vec<ExportedTrack<'a>>,
    revision: u32,
    stored_at: String,
    parser_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<ExportedMetadata<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chapters: Vec<ExportedChapter<'a>>,
    transcript: Vec<ExportedSnippet<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportedWithdrawal<'a> {
    format: &'a str,
    platform: &'a str,
    video_id: &'a str,
    available: bool,
    withdrawn: bool,
    transcript: [(); 0],
}

#[derive(Serialize)]
struct ExportedTrack<'a> {
    language: &'a str,
    kind: &'a str,
    name: Option<&'a str>,
    original: bool,
}

impl<'a> From<&'a TrackInfo> for ExportedTrack<'a> {
    fn from(track: &'a TrackInfo) -> Self {
        Self {
            language: track.language.as_str(),
            kind: track.kind.as_str(),
            name: track.name.as_deref(),
            original: track.original,
        }
    }
}

#[derive(Serialize)]
struct ExportedSnippet<'a> {
    text: &'a str,
    start: f64,
    duration: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<ExportedWord<'a>>,
}

impl<'a> From<&'a Segment> for ExportedSnippet<'a> {
    fn from(segment: &'a Segment) -> Self {
        Self {
            text: &segment.text,
            start: seconds(segment.start_ms),
            duration: seconds(segment.duration_ms),
            words: segment.words.iter().map(ExportedWord::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct ExportedWord<'a> {
    text: &'a str,
    start: f64,
    duration: f64,
}

impl<'a> From<&'a Word> for ExportedWord<'a> {
    fn from(word: &'a Word) -> Self {
        Self { text: &word.text, start: seconds(word.start_ms), duration: seconds(word.duration_ms) }
    }
}

#[derive(Serialize)]
struct ExportedChapter<'a> {
    title: &'a str,
    start: f64,
}

impl<'a> From<&'a Chapter> for ExportedChapter<'a> {
    fn from(chapter: &'a Chapter) -> Self {
        Self { title: &chapter.title, start: seconds(chapter.start_ms) }
    }
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportedMetadata<'a> {
    author_id: Option<&'a str>,
    author_url: Option<&'a str>,
    published_at: Option<String>,
    thumbnail_url: Option<&'a str>,
    live: Option<&'a str>,
    description: Option<&'a str>,
}

impl<'a> ExportedMetadata<'a> {
    /// `None` if nothing but chapters is known.
    fn new(metadata: &'a VideoMetadata) -> Option<Self> {
        let exported = Self {
            author_id: metadata.author_id.as_deref(),
            author_url: metadata.author_url.as_deref(),
            published_at: metadata.published_at.map(|time| time.to_string()),
            thumbnail_url: metadata.thumbnail_url.as_deref(),
            live: metadata.live.map(LiveStatus::as_str),
            description: metadata.description.as_deref(),
        };
        (exported != Self::default()).then_some(exported)
    }
}

#[cfg(test)]
mod tests;
