//! Compares an index with the archive.

use std::collections::BTreeMap;

use super::Indexer;
use crate::{
    archive::ArchivedTrack,
    error::Result,
    page::PageRequest,
    transcript::{LanguageTag, TrackSelector},
    video::VideoId,
};

/// Most differences that are reported; further ones are counted.
const DIFFERENCES_MAX: usize = 1_000;

/// A transcript that index and archive do not have in the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDifference {
    /// The video.
    pub video: VideoId,
    /// Language of the transcript.
    pub language: LanguageTag,
    /// What differs, for people.
    pub problem: &'static str,
}

/// Outcome of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCheck {
    /// Transcripts that were compared.
    pub compared: u64,
    /// The first 1,000 differences.
    pub differences: Vec<IndexDifference>,
    /// Number of all differences.
    pub total: u64,
    /// Whether the index was complete, with all changes, before the comparison.
    pub is_complete: bool,
}

impl IndexCheck {
    fn add(&mut self, video: &VideoId, language: &LanguageTag, problem: &'static str) {
        self.total += 1;
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(IndexDifference {
                video: video.clone(),
                language: language.clone(),
                problem,
            });
        }
    }
}

/// The documents of some videos in the index, with their digests.
type IndexedTracks = BTreeMap<(VideoId, TrackSelector), (LanguageTag, String)>;

impl Indexer {
    /// Compares every archived transcript with its document, and every document with the archive.
    ///
    /// Videos that change during the comparison may be reported: repeat it then. The documents' digests are read into
    /// memory, some 150 bytes each.
    ///
    /// # Errors
    /// Errors of the archive and of the index.
    pub async fn check(&self, mut on_progress: impl FnMut(u64) + Send) -> Result<IndexCheck> {
        let state = self.index.rebuild_state().await?;
        let has_changes = !self.changed_videos(1).await?.is_empty();
        let mut check =
            IndexCheck { is_complete: state.is_complete && !has_changes, ..IndexCheck::default() };
        let mut indexed = self.indexed_tracks().await?;
        let mut page = PageRequest::first();
        loop {
            let found = self.archive.list_tracks(page).await?;
            for track in found.items {
                self.check_track(&track, &mut indexed, &mut check).await?;
            }
            on_progress(check.compared);
            let Some(next) = found.next else { break };
            page = PageRequest { after: Some(next), ..PageRequest::first() };
        }
        for ((video, _), (language, _)) in &indexed {
            check.add(video, language, "the index has it, the archive does not");
        }
        Ok(check)
    }

    async fn check_track(
        &self,
        track: &ArchivedTrack,
        indexed: &mut IndexedTracks,
        check: &mut IndexCheck,
    ) -> Result<()> {
        let Some(selector) = track.selectors.first() else { return Ok(()) };
        let document = indexed.remove(&(track.video.clone(), selector.clone()));
        let expected = self.track_digest(track).await?;
        check.compared += u64::from(expected.is_some());
        let language = &track.track.language;
        match (expected, document) {
            (Some(expected), Some((_, digest))) if expected != digest => {
                check.add(&track.video, language, "the index has an earlier form of it");
            }
            (Some(_), None) => check.add(&track.video, language, "the index lacks it"),
            (None, Some(_)) => {
                check.add(&track.video, language, "the index has it, the archive does not show it");
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        Ok(())
    }

    async fn indexed_tracks(&self) -> Result<IndexedTracks> {
        let mut tracks = IndexedTracks::new();
        let mut page = PageRequest::first();
        loop {
            let found = self.index.list(page).await?;
            tracks.extend(
                found
                    .items
                    .into_iter()
                    .map(|track| ((track.video, track.selector), (track.language, track.digest))),
            );
            let Some(next) = found.next else { return Ok(tracks) };
            page = PageRequest { after: Some(next), ..PageRequest::first() };
        }
    }
}
