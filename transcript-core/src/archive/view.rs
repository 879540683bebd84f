//! Views of a transcript: words with times, description, chunks, and pages of segments (extensions of both APIs).

use std::ops::Range;

use super::StoredTranscript;
use crate::{
    captions::TextFormat,
    transcript::{ChunkOptions, ChunkUnit, Segment, chars, fact_lines, front_matter, page_end},
};

pub use crate::transcript::{PAGE_CHARS, PAGE_CHARS_MAX};

/// What a response contains of a transcript besides its segments. The default is all segments alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TranscriptView {
    /// Whether words with times are included.
    pub words: bool,
    /// Whether the metadata include the description of the video.
    pub description: bool,
    /// Size of the chunks that are included.
    pub chunk: Option<ChunkOptions>,
    /// The page of the segments; `None` for all of them.
    pub page: Option<SegmentPageRequest>,
}

impl TranscriptView {
    /// The query parameters that select this view. The name of the page size differs between the APIs.
    pub fn parameters(self, max_chars: &'static str) -> Vec<(&'static str, String)> {
        let flag = |name, value: bool| value.then(|| (name, "true".to_owned()));
        let flags = [flag("words", self.words), flag("description", self.description)];
        let chunk = self.chunk.map(|chunk| match chunk.unit {
            ChunkUnit::Milliseconds => ("chunk", format!("{}s", chunk.size / 1_000)),
            ChunkUnit::Tokens => ("chunk", format!("{}t", chunk.size)),
        });
        let cursor = self.page.and_then(|page| page.cursor).map(|cursor| ("cursor", cursor.to_string()));
        let size = self.page.map(|page| (max_chars, page.chars_max.to_string()));
        flags.into_iter().chain([chunk, cursor, size]).flatten().collect()
    }
}

/// Page of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentPageRequest {
    /// Start of the page; `None` for the start of the transcript.
    pub cursor: Option<SegmentCursor>,
    /// Maximum number of characters of all texts of the page. A longer segment is the only one of its page.
    pub chars_max: u32,
}

/// Position in one revision of a transcript: a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentCursor {
    /// First four bytes of the content digest.
    digest: u32,
    /// Segment, from 0.
    segment: u32,
}

crate::display::display!(SegmentCursor, |this| format_args!("{:08x}-{}", this.digest, this.segment));

impl SegmentCursor {
    fn new(stored: &StoredTranscript, segment: usize) -> Self {
        // A transcript has less than 2^32 segments.
        Self { digest: stored.short_digest(), segment: u32::try_from(segment).unwrap_or(u32::MAX) }
    }

    /// Parses the text form of a cursor; `None` if it is not canonical.
    pub fn parse(text: &str) -> Option<Self> {
        let (digest, segment) = text.split_once('-')?;
        let cursor = Self { digest: u32::from_str_radix(digest, 16).ok()?, segment: segment.parse().ok()? };
        // Neither signs nor leading zeros.
        (cursor.to_string() == text).then_some(cursor)
    }
}

/// A cursor that belongs to another transcript or another revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorError;

crate::display::display!(
    CursorError,
    |_this| "it belongs to another transcript or an older revision: omit it to start at the beginning"
);

impl std::error::Error for CursorError {}

/// The segments that a view selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPage {
    /// Indexes of the segments.
    pub segments: Range<usize>,
    /// Start of the next page; `None` after the last one, and if all segments are selected.
    pub next: Option<SegmentCursor>,
    /// Characters of all texts of the transcript; `None` if no page was requested.
    pub total_chars: Option<u64>,
}

impl SegmentPage {
    /// The segments of this transcript that a view selects. All pages together have every segment once, in order.
    ///
    /// # Errors
    /// [`CursorError`] if the cursor belongs to another transcript or another revision.
    pub fn select(stored: &StoredTranscript, view: TranscriptView) -> Result<Self, CursorError> {
        let segments = &stored.transcript.segments;
        let Some(SegmentPageRequest { cursor, chars_max }) = view.page else {
            return Ok(Self { segments: 0..segments.len(), next: None, total_chars: None });
        };
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let start = usize::try_from(cursor.segment).map_err(|_| CursorError)?;
                if cursor.digest != stored.short_digest() || start >= segments.len() {
                    return Err(CursorError);
                }
                start
            }
        };
        let end = page_end(segments, start, chars_max);
        let next = (end < segments.len()).then(|| SegmentCursor::new(stored, end));
        Ok(Self { segments: start..end, next, total_chars: Some(segments.iter().map(chars).sum()) })
    }

    /// The segments of the page.
    pub fn of<'a>(&self, stored: &'a StoredTranscript) -> &'a [Segment] {
        stored.transcript.segments.get(self.segments.clone()).unwrap_or_default()
    }
}

/// Writes a transcript, or the page that a view selects, as text: WebVTT with times of words if the view has them.
///
/// Cues have the ends and numbers that they have in the whole file, so the pages of SRT are together the whole file.
///
/// Front matter, if requested, is YAML before Markdown, lines before plain text, and a comment of WebVTT. SRT has no
/// place for it.
pub fn write_text(
    stored: &StoredTranscript,
    format: TextFormat,
    view: TranscriptView,
    has_front_matter: bool,
) -> String {
    let (transcript, metadata) = (&stored.transcript, &stored.details.metadata);
    let page = SegmentPage::select(stored, view);
    let page = page.map_or(0..transcript.segments.len(), |page| page.segments);
    let text = format.format_page(transcript, page, view.words);
    match format {
        TextFormat::Markdown if has_front_matter => front_matter(transcript, metadata) + &text,
        TextFormat::Text if has_front_matter => fact_lines(transcript, metadata) + "\n" + &text,
        TextFormat::WebVtt if has_front_matter => {
            let (head, cues) = text.split_once('\n').unwrap_or((&text, ""));
            format!("{head}\n\nNOTE\n{}{cues}", fact_lines(transcript, metadata))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        archive::content_digest,
        transcript::{VideoDetails, test_transcript},
    };

    fn stored(texts: &[&str]) -> StoredTranscript {
        let segments = texts.iter().zip(0..).map(|(text, n)| Segment::new(*text, n * 1_000, 1_000)).collect();
        let transcript = test_transcript(segments);
        let content_sha256 = content_digest(&transcript);
        StoredTranscript {
            transcript: transcript.into(),
            revision: 1,
            parser_version: 1,
            stored_at: crate::time::Timestamp::from_millis(0),
            content_sha256,
            details: VideoDetails::default().into(),
        }
    }

    fn view(cursor: Option<SegmentCursor>, chars_max: u32) -> TranscriptView {
        TranscriptView { page: Some(SegmentPageRequest { cursor, chars_max }), ..TranscriptView::default() }
    }

    #[test]
    fn pages_have_every_segment_once() {
        let stored = stored(&["äöü", "b", "a long segment", "c", "", "d"]);
        for chars_max in 1..30 {
            let (mut found, mut cursor) = (Vec::new(), None);
            loop {
                let page = SegmentPage::select(&stored, view(cursor, chars_max)).unwrap();
                assert_eq!(page.total_chars, Some(20));
                let chars: u64 = page.of(&stored).iter().map(chars).sum();
                assert!(chars <= u64::from(chars_max) || page.segments.len() == 1, "{page:?}");
                found.extend(page.segments);
                match page.next {
                    Some(next) => cursor = SegmentCursor::parse(&next.to_string()),
                    None => break,
                }
            }
            assert_eq!(found, Vec::from_iter(0..6), "{chars_max}");
        }
        let all = SegmentPage::select(&stored, TranscriptView::default()).unwrap();
        assert_eq!((all.segments, all.next, all.total_chars), (0..6, None, None));
    }

    #[test]
    fn subtitle_pages_are_together_the_whole_file() {
        let mut stored = stored(&["so we met", "him", "No.", "No.", " ", "last"]);
        let mut transcript = (*stored.transcript).clone();
        for segment in &mut transcript.segments {
            // Lines of automatic captions overlap; an unknown duration is 0.
            segment.duration_ms = if segment.text == "him" { 0 } else { 1_800 };
        }
        stored.transcript = transcript.into();
        for format in [TextFormat::Srt, TextFormat::WebVtt] {
            let whole = write_text(&stored, format, TranscriptView::default(), false);
            for chars_max in 1..20 {
                let (mut pages, mut cursor) = (Vec::new(), None);
                loop {
                    let page_view = view(cursor, chars_max);
                    let page = write_text(&stored, format, page_view, false);
                    pages.push(page.trim_start_matches("WEBVTT\n").trim_matches('\n').to_owned());
                    cursor = SegmentPage::select(&stored, page_view).unwrap().next;
                    if cursor.is_none() {
                        break;
                    }
                }
                pages.retain(|page| !page.is_empty());
                let whole = whole.trim_start_matches("WEBVTT\n").trim_matches('\n');
                assert_eq!(pages.join("\n\n"), whole, "{chars_max}");
            }
        }
    }

    #[test]
    fn cursor_of_other_transcript_is_rejected() {
        let (one, other) = (stored(&["a", "b"]), stored(&["a", "c"]));
        let next = SegmentPage::select(&one, view(None, 1)).unwrap().next.unwrap();
        assert!(SegmentPage::select(&one, view(Some(next), 1)).is_ok());
        assert_eq!(SegmentPage::select(&other, view(Some(next), 1)), Err(CursorError));
        let beyond = SegmentCursor::new(&one, 2);
        assert_eq!(SegmentPage::select(&one, view(Some(beyond), 1)), Err(CursorError));
        for text in
            ["", "-", "1-2", "00000000-01", "00000000-+1", "0000000G-1", "000000001-1", "00000000-1-1"]
        {
            assert_eq!(SegmentCursor::parse(text), None, "{text}");
        }
    }
}
