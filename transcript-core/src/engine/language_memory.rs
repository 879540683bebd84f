//! The tracks of videos that lack a requested language.
//!
//! A stored absence names its reason only. A repeated request gets the tracks from here while the process runs, because
//! an archive of a program may store no tracks without transcript, and an archive may fail.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use crate::{transcript::TrackInfo, video::VideoId};

/// Number of videos. The search is linear, and only absences need it.
const VIDEOS_MAX: usize = 1_024;
/// Number of tracks of a video, here and in the archive. About 40 are usual where there are many.
pub(super) const TRACKS_MAX: usize = 100;

/// Tracks of the latest videos, oldest first.
#[derive(Debug, Default)]
pub(super) struct LanguageMemory {
    videos: Mutex<VecDeque<(VideoId, Vec<TrackInfo>)>>,
}

impl LanguageMemory {
    /// Remembers the tracks of a video.
    pub(super) fn insert(&self, video: &VideoId, tracks: &[TrackInfo]) {
        let mut videos = self.videos.lock().unwrap_or_else(PoisonError::into_inner);
        videos.retain(|(known, _)| known != video);
        if videos.len() >= VIDEOS_MAX {
            videos.pop_front();
        }
        videos.push_back((video.clone(), tracks.iter().take(TRACKS_MAX).cloned().collect()));
    }

    /// The tracks of a video; empty if unknown.
    pub(super) fn tracks(&self, video: &VideoId) -> Vec<TrackInfo> {
        let videos = self.videos.lock().unwrap_or_else(PoisonError::into_inner);
        let found = videos.iter().rfind(|(known, _)| known == video);
        found.map(|(_, tracks)| tracks.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        transcript::{LanguageTag, TrackKind},
        video::Platform,
    };

    #[test]
    fn language_memory_is_bounded_and_keeps_latest() {
        let memory = LanguageMemory::default();
        let video = |number: usize| VideoId::new(Platform::YouTube, &format!("{number:011}")).unwrap();
        let english = [TrackInfo::new(LanguageTag::english(), TrackKind::Human)];
        for number in 0..=VIDEOS_MAX {
            memory.insert(&video(number), &english);
        }
        memory.insert(&video(1), &[]);
        assert!(memory.tracks(&video(0)).is_empty() && memory.tracks(&video(1)).is_empty());
        assert_eq!(memory.tracks(&video(2)), english);
        assert_eq!(memory.videos.lock().unwrap().len(), VIDEOS_MAX);
    }
}
