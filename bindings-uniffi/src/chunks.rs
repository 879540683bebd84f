//! Chunks of transcripts for retrieval, and pages of long ones.

use std::time::Duration;

use transcript_core::transcript::{self, ChunkOptions, ChunkUnit};

use crate::{
    error::{VerbatimError, count},
    transcript::{Segment, Transcript},
};

/// Consecutive segments of a transcript as one text.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Chunk {
    /// Text, on one line.
    pub text: String,
    /// Start in milliseconds, from the beginning of the video.
    pub start_ms: i64,
    /// End in milliseconds, from the beginning of the video.
    pub end_ms: i64,
    /// Address of the start in the video, if the platform has such addresses; otherwise that of the video.
    pub url: String,
    /// The segments.
    pub segments: Vec<Segment>,
}

/// Splits a transcript into chunks that last about this long. `overlap` is repeated at the beginning of the next chunk.
///
/// A segment is never split, a chunk ends with its chapter, and rather at a pause.
///
/// # Errors
/// `InvalidInput` if the size is 0, or the overlap more than half of it.
#[uniffi::export(default(overlap = None))]
pub fn chunks_by_time(
    transcript: Transcript,
    size: Duration,
    overlap: Option<Duration>,
) -> Result<Vec<Chunk>, VerbatimError> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let overlap = millis(overlap.unwrap_or_default());
    split(transcript, ChunkOptions { unit: ChunkUnit::Milliseconds, size: millis(size), overlap })
}

/// Splits a transcript into chunks of at most this number of estimated tokens of a language model.
///
/// As [`chunks_by_time`] otherwise; a longer segment is a whole chunk.
///
/// # Errors
/// As [`chunks_by_time`].
#[uniffi::export(default(overlap = 0))]
pub fn chunks_by_tokens(
    transcript: Transcript,
    size: u32,
    overlap: u32,
) -> Result<Vec<Chunk>, VerbatimError> {
    let (size, overlap) = (size.into(), overlap.into());
    split(transcript, ChunkOptions { unit: ChunkUnit::Tokens, size, overlap })
}

/// Splits a transcript into pages of at most this number of characters: every segment is in one page.
///
/// A segment is never split; a longer one is a whole page.
///
/// # Errors
/// `InvalidInput` if the size is 0 or more than 1,000,000.
#[uniffi::export(default(max_chars = 20000))]
pub fn pages_by_chars(transcript: Transcript, max_chars: u32) -> Result<Vec<Chunk>, VerbatimError> {
    let transcript = transcript.into_core()?;
    Ok(mirror(&transcript, transcript::pages(&transcript.segments, max_chars)?))
}

fn split(transcript: Transcript, options: ChunkOptions) -> Result<Vec<Chunk>, VerbatimError> {
    let chapters = transcript.metadata.clone().into_core()?.chapters;
    let transcript = transcript.into_core()?;
    Ok(mirror(&transcript, transcript::chunks(&transcript.segments, &chapters, options)?))
}

fn mirror(transcript: &transcript::Transcript, chunks: Vec<transcript::Chunk>) -> Vec<Chunk> {
    let chunk = |chunk: transcript::Chunk| Chunk {
        url: transcript.video.address_at(chunk.start_ms / 1_000),
        text: chunk.text,
        start_ms: count(chunk.start_ms),
        end_ms: count(chunk.end_ms),
        segments: transcript
            .segments
            .get(chunk.segments)
            .unwrap_or_default()
            .iter()
            .map(Segment::from)
            .collect(),
    };
    chunks.into_iter().map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;
    use crate::metadata::Chapter;

    #[test]
    fn chunks_end_with_chapters() {
        let segment = |text: &str, start_ms| Segment {
            text: text.to_owned(),
            start_ms,
            duration_ms: 1_000,
            words: Vec::new(),
        };
        let transcript = Transcript {
            segments: vec![segment("one", 0), segment("two", 1_000), segment("three", 2_000)],
            metadata: crate::VideoMetadata {
                chapters: vec![Chapter { title: "End".to_owned(), start_ms: 2_000 }],
                ..crate::VideoMetadata::default()
            },
            ..Transcript::from(&transcript::Transcript {
                video: transcript_core::video::VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
                title: None,
                author: None,
                duration_ms: None,
                track: transcript::TrackInfo::new(
                    transcript::LanguageTag::english(),
                    transcript::TrackKind::Human,
                ),
                source: String::new(),
                segments: Vec::new(),
            })
        };
        let texts = |chunks: Vec<Chunk>| chunks.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>();
        let by_time = chunks_by_time(transcript.clone(), Duration::from_secs(60), None).unwrap();
        assert_eq!(by_time[1].url, "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=2s");
        assert_eq!(texts(by_time), ["one two", "three"]);
        assert_eq!(texts(chunks_by_tokens(transcript.clone(), 2, 0).unwrap()).len(), 3);
        assert!(chunks_by_tokens(transcript.clone(), 0, 0).is_err());
        // Pages go on across chapters.
        let first = pages_by_chars(transcript.clone(), 11).unwrap().remove(0);
        assert_eq!((first.text.as_str(), first.start_ms, first.end_ms), ("one two three", 0, 3_000));
        assert_eq!(first.segments, transcript.segments);
        assert_eq!(texts(pages_by_chars(transcript.clone(), 6).unwrap()), ["one two", "three"]);
        assert!(pages_by_chars(transcript, 0).is_err());
    }
}
