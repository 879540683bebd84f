//! The languages of videos that lack a requested one.
//!
//! A stored absence names its reason only. A repeated request gets the languages from here, while the process runs.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use crate::{transcript::LanguageTag, video::VideoId};

/// Number of videos. The search is linear, and only absences need it.
const VIDEOS_MAX: usize = 1_024;

/// Languages of the latest videos, oldest first.
#[derive(Debug, Default)]
pub(super) struct LanguageMemory {
    videos: Mutex<VecDeque<(VideoId, Vec<LanguageTag>)>>,
}

impl LanguageMemory {
    /// Remembers the languages of a video.
    pub(super) fn insert(&self, video: &VideoId, languages: &[LanguageTag]) {
        let mut videos = self.videos.lock().unwrap_or_else(PoisonError::into_inner);
        videos.retain(|(known, _)| known != video);
        if videos.len() >= VIDEOS_MAX {
            videos.pop_front();
        }
        videos.push_back((video.clone(), languages.to_vec()));
    }

    /// The languages of a video; empty if unknown.
    pub(super) fn languages(&self, video: &VideoId) -> Vec<LanguageTag> {
        let videos = self.videos.lock().unwrap_or_else(PoisonError::into_inner);
        let found = videos.iter().rfind(|(known, _)| known == video);
        found.map(|(_, languages)| languages.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::Platform;

    #[test]
    fn language_memory_is_bounded_and_keeps_latest() {
        let memory = LanguageMemory::default();
        let video = |number: usize| VideoId::new(Platform::YouTube, &format!("{number:011}")).unwrap();
        let english = [LanguageTag::english()];
        for number in 0..=VIDEOS_MAX {
            memory.insert(&video(number), &english);
        }
        memory.insert(&video(1), &[]);
        assert!(memory.languages(&video(0)).is_empty() && memory.languages(&video(1)).is_empty());
        assert_eq!(memory.languages(&video(2)), english);
        assert_eq!(memory.videos.lock().unwrap().len(), VIDEOS_MAX);
    }
}
