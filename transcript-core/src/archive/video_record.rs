//! What an archive knows of one video, without the texts: the rules that the stores in Rust share.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Absence, ArchiveStats, ArchivedTrack, PutRequest, StoredTranscript, TrackSelector};
use crate::{
    ids::Cursor,
    time::Timestamp,
    transcript::{TrackInfo, Transcript, VideoDetails, VideoMetadata},
    video::VideoId,
};

/// The stored data of one video, without its texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct VideoRecord {
    pub(crate) withdrawn: bool,
    /// Every revision of every transcript, oldest first.
    pub(crate) revisions: Vec<Revision>,
    /// Index into `revisions` for each selector.
    pub(crate) selectors: BTreeMap<TrackSelector, usize>,
    pub(crate) absences: BTreeMap<TrackSelector, Absence>,
    /// In order of discovery; includes the track of every revision.
    pub(crate) tracks: Vec<TrackInfo>,
    #[serde(default)]
    pub(crate) metadata: VideoMetadata,
    /// Number of its newest change that a search index reads, in a [`super::KeyValueArchive`]; 0 if none was counted.
    #[serde(default)]
    pub(crate) index_change: u64,
}

/// One stored transcript, without its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Revision {
    pub(crate) revision: u32,
    pub(crate) content_sha256: Vec<u8>,
    pub(crate) track: TrackInfo,
    pub(crate) parser_version: u32,
    pub(crate) stored_at: Timestamp,
    /// Approximate size of the text.
    pub(crate) bytes: u64,
}

/// Effect of [`VideoRecord::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PutEffect {
    /// Whether a revision was added.
    pub(crate) is_new: bool,
    /// Whether transcripts found earlier may have become invalid.
    pub(crate) is_change: bool,
}

impl VideoRecord {
    /// A revision of this video with its text.
    pub(crate) fn with_text(&self, revision: &Revision, transcript: Arc<Transcript>) -> StoredTranscript {
        StoredTranscript {
            transcript,
            revision: revision.revision,
            content_sha256: revision.content_sha256.clone(),
            parser_version: revision.parser_version,
            stored_at: revision.stored_at,
            details: Arc::new(self.details()),
        }
    }

    fn details(&self) -> VideoDetails {
        VideoDetails { metadata: self.metadata.clone(), tracks: self.tracks.clone() }
    }

    pub(crate) fn find(&self, selector: &TrackSelector) -> Option<&Revision> {
        self.selectors.get(selector).and_then(|index| self.revisions.get(*index))
    }

    /// Whether a selector has the transcript with this content digest.
    pub(crate) fn is_selected(&self, content_sha256: &[u8]) -> bool {
        let mut selected = self.selectors.values().filter_map(|index| self.revisions.get(*index));
        selected.any(|revision| revision.content_sha256 == content_sha256)
    }

    /// Stores a transcript, with the behaviour of [`super::Archive::put`].
    pub(crate) fn put(&mut self, request: &PutRequest, content: Vec<u8>) -> PutEffect {
        let (before, revisions) = (self.selectors.clone(), self.revisions.len());
        let details = self.details();
        let stored = || request.selectors.iter().filter_map(|selector| self.find(selector));
        let replaced = request.replace && stored().any(|stored| stored.content_sha256 != content);
        if replaced {
            let revision = stored().map(|stored| stored.revision).max().unwrap_or(0) + 1;
            let index = self.add(request, revision, content);
            self.selectors.extend(request.selectors.iter().map(|selector| (selector.clone(), index)));
        } else if request.selectors.iter().any(|selector| !self.selectors.contains_key(selector)) {
            let same = self.revisions.iter().rposition(|stored| stored.content_sha256 == content);
            let index = same.unwrap_or_else(|| self.add(request, 1, content));
            for selector in &request.selectors {
                self.selectors.entry(selector.clone()).or_insert(index);
            }
        }
        self.merge_tracks(request.known_tracks.iter().chain([&request.transcript.track]));
        self.metadata = request.metadata.clone().or(&self.metadata);
        for selector in &request.selectors {
            self.absences.remove(selector);
        }
        PutEffect {
            is_new: self.revisions.len() > revisions,
            is_change: !before.is_empty() && (before != self.selectors || details != self.details()),
        }
    }

    fn add(&mut self, request: &PutRequest, revision: u32, content_sha256: Vec<u8>) -> usize {
        let texts = request.transcript.segments.iter().map(|segment| segment.text.len() as u64 + 16);
        self.revisions.push(Revision {
            revision,
            content_sha256,
            track: request.transcript.track.clone(),
            parser_version: request.parser_version,
            stored_at: request.now,
            bytes: texts.sum(),
        });
        self.revisions.len() - 1
    }

    /// Adds tracks, with the behaviour of [`super::Archive::add_known_tracks`]; returns whether that is a change.
    pub(crate) fn add_known_tracks(&mut self, tracks: &[TrackInfo]) -> bool {
        let before = self.tracks.clone();
        self.merge_tracks(tracks);
        !self.selectors.is_empty() && before != self.tracks
    }

    fn merge_tracks<'a>(&mut self, tracks: impl IntoIterator<Item = &'a TrackInfo>) {
        for track in tracks {
            match self.tracks.iter_mut().find(|known| known.is_same(track)) {
                Some(known) => known.original |= track.original,
                None => self.tracks.push(track.clone()),
            }
        }
    }

    /// Deletes everything except the withdrawal.
    pub(crate) fn clear(&mut self) {
        *self = Self { withdrawn: self.withdrawn, ..Self::default() };
    }

    /// The known tracks with their archive state.
    pub(crate) fn tracks<'a>(&'a self, video: &'a VideoId) -> impl Iterator<Item = ArchivedTrack> + 'a {
        self.tracks.iter().map(move |track| self.archived_track(video, track))
    }

    fn archived_track(&self, video: &VideoId, track: &TrackInfo) -> ArchivedTrack {
        let of_track = self.revisions.iter().filter(|stored| stored.track.is_same(track));
        let newest = of_track.max_by_key(|stored| stored.revision);
        let serves =
            |index: &usize| self.revisions.get(*index).is_some_and(|stored| stored.track.is_same(track));
        let selectors = self.selectors.iter().filter(|(_, index)| serves(index));
        ArchivedTrack {
            video: video.clone(),
            track: track.clone(),
            selectors: selectors.map(|(selector, _)| selector.clone()).collect(),
            revision: newest.map(|stored| stored.revision),
            stored_at: newest.map(|stored| stored.stored_at),
        }
    }
}

impl ArchiveStats {
    /// Adds the figures of one video.
    pub(crate) fn add(&mut self, record: &VideoRecord) {
        self.videos += u64::from(!record.revisions.is_empty());
        self.transcripts += record.revisions.len() as u64;
        self.absences += record.absences.len() as u64;
        self.withdrawn += u64::from(record.withdrawn);
        self.bytes += record.revisions.iter().map(|stored| stored.bytes).sum::<u64>();
    }

    /// Subtracts the figures of one video.
    pub(crate) fn subtract(&mut self, record: &VideoRecord) {
        let mut of_video = Self::default();
        of_video.add(record);
        self.videos = self.videos.saturating_sub(of_video.videos);
        self.transcripts = self.transcripts.saturating_sub(of_video.transcripts);
        self.absences = self.absences.saturating_sub(of_video.absences);
        self.withdrawn = self.withdrawn.saturating_sub(of_video.withdrawn);
        self.bytes = self.bytes.saturating_sub(of_video.bytes);
    }
}

/// The cursor after a track: its video, and its index among the video's tracks.
pub(crate) fn track_cursor(video: &VideoId, index: usize) -> String {
    format!("{video}/{index}")
}

/// The position that [`track_cursor`] returned.
pub(crate) fn parse_track_cursor(cursor: &Cursor) -> Option<(VideoId, usize)> {
    let (video, index) = cursor.as_str().rsplit_once('/')?;
    Some((VideoId::from_name(video)?, index.parse().ok()?))
}
