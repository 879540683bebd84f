//! Results of finished chunks, kept in memory until their video is transcribed. No I/O.
//!
//! An attempt after one that failed or took too long goes on where that one ended. So no finished chunk is paid for
//! twice, unless only one of them is for a language: its first chunk is shorter.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{
    transcript::{LanguageTag, Segment, Word},
    video::VideoId,
};

use super::{chunking::AudioChunk, loudness::Loudness};

/// How long the results of a video are kept after its last chunk.
const AGE_MAX: Duration = Duration::from_secs(3_600);
/// Maximum number of videos, and of bytes of all results: ten minutes of speech have about 100 KB with their words.
const VIDEOS_MAX: usize = 16;
const BYTES_MAX: usize = 32 << 20;

/// Transcription of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkResult {
    pub(super) language: Option<LanguageTag>,
    pub(super) segments: Vec<Segment>,
}

impl ChunkResult {
    /// Length of the text in bytes.
    pub(super) fn length(&self) -> usize {
        self.segments.iter().map(|segment| segment.text.len()).sum()
    }

    fn memory_bytes(&self) -> usize {
        let word_bytes = |word: &Word| size_of::<Word>() + word.text.len();
        let words = self.segments.iter().flat_map(|segment| &segment.words).map(word_bytes);
        size_of::<Self>() + self.segments.len() * size_of::<Segment>() + self.length() + words.sum::<usize>()
    }
}

/// Identifies the audio of a video, and the kind of request for its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AudioKey {
    video: VideoId,
    length_ms: u64,
    /// Digest of the loudness: the platform may send another file the next time.
    digest: u64,
    is_timed: bool,
}

impl AudioKey {
    pub(super) fn new(video: &VideoId, loudness: &Loudness, is_timed: bool) -> Self {
        let mut hasher = DefaultHasher::new();
        loudness.frames.hash(&mut hasher);
        Self { video: video.clone(), length_ms: loudness.length_ms(), digest: hasher.finish(), is_timed }
    }
}

/// The results of chunks of videos without a transcript yet.
#[derive(Debug, Default)]
pub(super) struct FinishedChunks(Mutex<Vec<FinishedVideo>>);

#[derive(Debug)]
struct FinishedVideo {
    key: AudioKey,
    changed_at: Instant,
    chunks: HashMap<AudioChunk, ChunkResult>,
}

impl FinishedVideo {
    fn memory_bytes(&self) -> usize {
        self.chunks.values().map(ChunkResult::memory_bytes).sum()
    }
}

impl FinishedChunks {
    /// The result of a chunk, if it is kept.
    pub(super) fn find(&self, key: &AudioKey, chunk: AudioChunk) -> Option<ChunkResult> {
        let videos = self.lock();
        videos.iter().find(|video| video.key == *key)?.chunks.get(&chunk).cloned()
    }

    /// Keeps the result of a chunk. Those of the videos that were changed first are dropped for it.
    pub(super) fn put(&self, key: &AudioKey, chunk: AudioChunk, result: ChunkResult) {
        let mut videos = self.lock();
        let found = videos.iter().position(|video| video.key == *key);
        let mut video = match found {
            Some(index) => videos.remove(index),
            None => FinishedVideo { key: key.clone(), changed_at: Instant::now(), chunks: HashMap::new() },
        };
        video.changed_at = Instant::now();
        video.chunks.insert(chunk, result);
        // The last one is the one that was changed last.
        videos.push(video);
        let bytes = |videos: &[FinishedVideo]| videos.iter().map(FinishedVideo::memory_bytes).sum::<usize>();
        while videos.len() > VIDEOS_MAX || bytes(&videos) > BYTES_MAX {
            videos.remove(0);
        }
    }

    /// Drops the results of a video that is transcribed.
    pub(super) fn remove(&self, video: &VideoId) {
        self.lock().retain(|finished| finished.key.video != *video);
    }

    /// The videos whose results are not too old.
    fn lock(&self) -> MutexGuard<'_, Vec<FinishedVideo>> {
        let mut videos = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        videos.retain(|video| video.changed_at.elapsed() < AGE_MAX);
        videos
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    fn key(name: &str) -> AudioKey {
        let video = VideoId::new(Platform::YouTube, name).unwrap();
        AudioKey { video, length_ms: 9_000, digest: 1, is_timed: true }
    }

    fn result(text: &str) -> ChunkResult {
        ChunkResult { language: None, segments: vec![Segment::new(text, 0, 1_000)] }
    }

    const CHUNK: AudioChunk = AudioChunk { start_ms: 0, end_ms: 3_000 };

    #[tokio::test(start_paused = true)]
    async fn finished_chunk_is_found_for_same_audio_until_it_expires() {
        let finished = FinishedChunks::default();
        let key = key("video-00000");
        finished.put(&key, CHUNK, result("Hello."));
        assert_eq!(finished.find(&key, CHUNK), Some(result("Hello.")));
        assert_eq!(finished.find(&key, AudioChunk { end_ms: 2_000, ..CHUNK }), None);
        for other in [
            AudioKey { length_ms: 9_001, ..key.clone() },
            AudioKey { digest: 2, ..key.clone() },
            AudioKey { is_timed: false, ..key.clone() },
        ] {
            assert_eq!(finished.find(&other, CHUNK), None, "{other:?}");
        }
        tokio::time::advance(AGE_MAX / 2).await;
        assert!(finished.find(&key, CHUNK).is_some());
        tokio::time::advance(AGE_MAX / 2).await;
        assert_eq!(finished.find(&key, CHUNK), None);

        finished.put(&key, CHUNK, result("Hello."));
        finished.remove(&key.video);
        assert_eq!(finished.find(&key, CHUNK), None);
    }

    #[tokio::test]
    async fn finished_chunks_are_bounded_by_videos_and_bytes() {
        let finished = FinishedChunks::default();
        let keys: Vec<_> = (0..=VIDEOS_MAX).map(|number| key(&format!("video-{number:05}"))).collect();
        for key in &keys {
            finished.put(key, CHUNK, result("Hello."));
        }
        let is_kept = |number: usize| finished.find(&keys[number], CHUNK).is_some();
        assert!(!is_kept(0) && is_kept(1) && is_kept(VIDEOS_MAX));
        finished.put(
            &keys[2],
            AudioChunk { start_ms: 3_000, end_ms: 6_000 },
            result(&"a".repeat(BYTES_MAX - 4_000)),
        );
        finished.put(&keys[3], CHUNK, result(&"a".repeat(4_000)));
        assert!(!is_kept(2) && is_kept(3), "the larger one is kept");
        finished.put(&keys[3], CHUNK, result(&"a".repeat(BYTES_MAX)));
        assert!(!is_kept(3), "more than the limit is kept");
    }
}
