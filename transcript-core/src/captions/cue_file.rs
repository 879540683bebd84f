//! Cues shared by WebVTT and SRT: a timing line and text, with the irregularities of real files.

use std::borrow::Cow;

use html_escape::decode_html_entities_to_string;

use super::{
    CaptionError, SEGMENTS_MAX, TIME_MAX_MS, cue_collector,
    cue_collector::CueCollector,
    markup::{self, StrippedMarkup},
    parsed::Occurrences,
    rolling,
    time_marks::TimeMark,
};

/// Invisible mark before a blank line inside a cue, so that no reader takes the line for the cue's end.
///
/// The SRT and WebVTT writers of this crate add it.
pub(crate) const BLANK_LINE_MARK: char = '\u{200B}';

/// Cue as written in the file, before repetitions are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cue {
    /// The text, without tags and with entities decoded.
    pub(super) text: String,
    /// The start in milliseconds.
    pub(super) start_ms: i64,
    /// The end in milliseconds, not before the start.
    pub(super) end_ms: i64,
    /// The times between its words.
    pub(super) marks: Vec<TimeMark>,
    /// Whether it is the first cue after a header in the middle of the body.
    ///
    /// Such a header begins the next segment of a playlist.
    pub(super) after_segment_boundary: bool,
}

/// Cue whose text is being read.
#[derive(Clone, Copy, Debug)]
struct OpenCue {
    /// Start and end in milliseconds; `None` if unreadable.
    times: Option<(i64, i64)>,
    /// Number of the timing line.
    line: u64,
}

/// Cues of a file, added line by line.
#[derive(Debug, Default)]
pub(super) struct CueFile {
    cues: Vec<Cue>,
    /// The cue whose text is being read; `payload` has its lines so far, each with its line end.
    open: Option<OpenCue>,
    payload: String,
    left_out: Occurrences,
    at_segment_boundary: bool,
    /// Whether there was a timing line, valid or not.
    has_timing: bool,
}

impl CueFile {
    /// Begins a cue at the line with this number; `times` is `None` if they are unreadable.
    pub(super) fn begin(&mut self, times: Option<(i64, i64)>, line: u64) {
        self.has_timing = true;
        self.open = Some(OpenCue { times, line });
        self.payload.clear();
    }

    /// Whether a cue's text is being read.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Lines of the open cue, each with its line end.
    pub(super) fn payload(&self) -> &str {
        &self.payload
    }

    /// Removes the last lines of the open cue.
    pub(super) fn truncate(&mut self, length: usize) {
        self.payload.truncate(length);
    }

    /// Appends a line to the open cue.
    pub(super) fn push_line(&mut self, line: &str) {
        self.payload.push_str(line);
        self.payload.push('\n');
    }

    /// Records a header in the middle of the body: the start of the next playlist segment.
    pub(super) fn mark_segment_boundary(&mut self) {
        self.at_segment_boundary = true;
    }

    /// Counts text outside of cues, in the line with this number.
    pub(super) fn count_left_out(&mut self, line: u64) {
        self.left_out.add(Some(line));
    }

    /// Ends the open cue.
    pub(super) fn end(&mut self) -> Result<(), CaptionError> {
        let Some(OpenCue { times, line }) = self.open.take() else {
            return Ok(());
        };
        let payload = remove_blank_line_marks(trim_blank_lines(&self.payload));
        let stripped = markup::strip_with_overrides(&payload);
        let (text, marks) = decode_entities(&stripped);
        if cue_collector::is_blank(&text) {
            return Ok(());
        }
        let Some((start_ms, end_ms)) = times.filter(|&(start, _)| start <= TIME_MAX_MS as i64) else {
            self.left_out.add(Some(line));
            return Ok(());
        };
        // Rolling files repeat each line up to three times.
        if self.cues.len() >= 3 * SEGMENTS_MAX {
            return Err(cue_collector::too_many());
        }
        let after_seam = std::mem::take(&mut self.at_segment_boundary) && !self.cues.is_empty();
        self.cues.push(Cue { text, start_ms, end_ms, marks, after_segment_boundary: after_seam });
        Ok(())
    }

    /// Returns the cues of the file without repetitions.
    pub(super) fn finish(mut self) -> Result<CueCollector, CaptionError> {
        self.end()?;
        if !self.has_timing {
            return Ok(CueCollector::default());
        }
        let mut file = join_split_cues(self.cues);
        file.sort_by_key(|cue| cue.start_ms);
        rolling::remove_rolling_repeats(&mut file);
        let mut collector = CueCollector::default();
        collector.set_left_out(self.left_out);
        for cue in file {
            collector.add_timed(cue.text, cue.start_ms, cue.end_ms, &cue.marks)?;
        }
        Ok(collector)
    }

    /// Whether there was a timing line.
    pub(super) fn has_timing(&self) -> bool {
        self.has_timing
    }
}

/// Decodes the entities of a text, and moves its marks along.
fn decode_entities(stripped: &StrippedMarkup<'_>) -> (String, Vec<TimeMark>) {
    let mut text = String::with_capacity(stripped.text.len());
    let mut marks = Vec::with_capacity(stripped.marks.len());
    let mut from = 0;
    for mark in &stripped.marks {
        decode_html_entities_to_string(stripped.text.get(from..mark.offset).unwrap_or(""), &mut text);
        marks.push(TimeMark { offset: text.len(), ..*mark });
        from = mark.offset;
    }
    decode_html_entities_to_string(stripped.text.get(from..).unwrap_or(""), &mut text);
    (text, marks)
}

/// The lines from the first to the last non-blank one, without the last line's end.
fn trim_blank_lines(payload: &str) -> &str {
    let mut text = payload;
    while let Some((line, rest)) = text.split_once('\n')
        && line.trim().is_empty()
    {
        text = rest;
    }
    let mut text = text.strip_suffix('\n').unwrap_or(text);
    while let Some((rest, line)) = text.rsplit_once('\n')
        && line.trim().is_empty()
    {
        text = rest;
    }
    text
}

/// Whether a line is blank but for the mark that keeps it inside its cue.
pub(crate) fn is_marked_blank(line: &str) -> bool {
    line.strip_prefix(BLANK_LINE_MARK).is_some_and(|rest| rest.trim().is_empty())
}

/// The lines without the marks of blank lines.
fn remove_blank_line_marks(payload: &str) -> Cow<'_, str> {
    if !payload.lines().any(is_marked_blank) {
        return Cow::Borrowed(payload);
    }
    let lines = payload.split('\n').map(|line| match line.strip_prefix(BLANK_LINE_MARK) {
        Some(blank) if blank.trim().is_empty() => blank,
        _ => line,
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Joins cues that a segmented playlist split.
///
/// Such a pair has equal text on both sides of a segment boundary, without a gap.
fn join_split_cues(cues: Vec<Cue>) -> Vec<Cue> {
    let mut joined: Vec<Cue> = Vec::with_capacity(cues.len());
    for cue in cues {
        match joined.last_mut() {
            Some(last)
                if cue.after_segment_boundary
                    && last.text == cue.text
                    && last.start_ms <= cue.start_ms
                    && cue.start_ms <= last.end_ms =>
            {
                last.end_ms = last.end_ms.max(cue.end_ms);
            }
            _ => joined.push(cue),
        }
    }
    joined
}
