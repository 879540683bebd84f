//! Cues shared by WebVTT and SRT: a timing line and text, with the irregularities of real files.

use std::{borrow::Cow, ops::Range};

use super::{
    CaptionError, SEGMENTS_MAX, TIME_MAX_MS, cue_collector,
    cue_collector::CueCollector,
    karaoke,
    markup::{self, MarkupFormat, StrippedMarkup},
    parsed::Occurrences,
    rolling::{self, RepeatUnit},
    time_marks::TimeMark,
};

/// Invisible mark before a blank line inside a cue, so that no reader takes the line for the cue's end.
///
/// The SRT and WebVTT writers of this crate add it.
pub(crate) const BLANK_LINE_MARK: char = '\u{200B}';

/// Number of cues of a playlist's part that the next part may repeat: those that end last.
const SEAM_CUES_MAX: usize = 16;

/// Maximum number of cues of a file: rolling files repeat each line up to three times.
pub(super) const CUES_MAX: usize = 3 * SEGMENTS_MAX;

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
    /// The byte range of the only highlighted part of the text; all of it if there are several.
    pub(super) highlight: Option<Range<usize>>,
    /// Number of headers in the middle of the body before it: each begins the next part of a playlist.
    pub(super) part: usize,
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
    /// Number of headers in the middle of the body so far.
    part: usize,
    /// Whether there was a timing line, valid or not, or a fault in place of one.
    has_timing: bool,
    format: MarkupFormat,
}

impl CueFile {
    /// Creates a file of WebVTT; [`CueFile::default`] is one of SRT.
    pub(super) fn for_webvtt() -> Self {
        Self { format: MarkupFormat::WebVtt, ..Self::default() }
    }

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

    /// Records a header in the middle of the body: the start of the next part of a playlist.
    pub(super) fn begin_part(&mut self) {
        self.part += 1;
    }

    /// Counts text outside of cues, in the line with this number.
    pub(super) fn count_left_out(&mut self, line: u64) {
        self.left_out.add(Some(line));
    }

    /// Counts a timing line that is cut, or what has replaced cues, in the line with this number.
    pub(super) fn count_fault(&mut self, line: u64) {
        self.has_timing = true;
        self.count_left_out(line);
    }

    /// Ends the open cue.
    pub(super) fn end(&mut self) -> Result<(), CaptionError> {
        let Some(OpenCue { times, line }) = self.open.take() else {
            return Ok(());
        };
        let payload = remove_blank_line_marks(trim_blank_lines(&self.payload));
        let stripped = markup::strip_with_overrides(&payload, self.format);
        let (text, marks, highlight) = decode_entities(&stripped);
        if cue_collector::is_blank(&text) {
            return Ok(());
        }
        let Some((start_ms, end_ms)) = times.filter(|&(start, _)| start <= TIME_MAX_MS as i64) else {
            self.left_out.add(Some(line));
            return Ok(());
        };
        if self.cues.len() >= CUES_MAX {
            return Err(cue_collector::too_many());
        }
        self.cues.push(Cue { text, start_ms, end_ms, marks, highlight, part: self.part });
        Ok(())
    }

    /// Returns the cues of the file without repetitions.
    pub(super) fn finish(mut self) -> Result<CueCollector, CaptionError> {
        self.end()?;
        if !self.has_timing {
            // Words instead of cues, as "No speech", are not a part of any.
            self.left_out = Occurrences::default();
        }
        collect(join_split_cues(self.cues), self.left_out, RepeatUnit::Words)
    }

    /// Whether there was a timing line.
    pub(super) fn has_timing(&self) -> bool {
        self.has_timing
    }
}

/// Returns the cues without copies of lines that only display them.
pub(super) fn collect(
    mut cues: Vec<Cue>,
    left_out: Occurrences,
    unit: RepeatUnit,
) -> Result<CueCollector, CaptionError> {
    cues.sort_by_key(|cue| cue.start_ms);
    let mut cues = karaoke::join_highlighted(cues);
    rolling::remove_rolling_repeats(&mut cues, unit);
    let mut collector = CueCollector::default();
    collector.set_left_out(left_out);
    for cue in cues {
        collector.add_timed(cue.text, cue.start_ms, cue.end_ms, &cue.marks)?;
    }
    Ok(collector)
}

/// Decodes the entities of a text, and moves its marks and its highlighted part along.
fn decode_entities(stripped: &StrippedMarkup<'_>) -> (String, Vec<TimeMark>, Option<Range<usize>>) {
    let mut text = String::with_capacity(stripped.text.len());
    let mut marks = Vec::with_capacity(stripped.marks.len());
    let mut from = 0;
    for mark in &stripped.marks {
        markup::decode_references(stripped.text.get(from..mark.offset).unwrap_or(""), &mut text);
        marks.push(TimeMark { offset: text.len(), ..*mark });
        from = mark.offset;
    }
    markup::decode_references(stripped.text.get(from..).unwrap_or(""), &mut text);
    let decoded_length = |length: usize| {
        if !stripped.text.contains('&') {
            return length;
        }
        let mut front = String::new();
        markup::decode_references(stripped.text.get(..length).unwrap_or(""), &mut front);
        front.len()
    };
    let highlight =
        stripped.highlight.as_ref().map(|part| decoded_length(part.start)..decoded_length(part.end));
    (text, marks, highlight)
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
/// Each part has all cues that are shown in its time, so the one at a seam is in both. Such a pair has equal text in
/// adjacent parts, without a gap.
fn join_split_cues(cues: Vec<Cue>) -> Vec<Cue> {
    let mut joined: Vec<Cue> = Vec::with_capacity(cues.len());
    // Indices of the cues that end last: of the previous part those that have no copy yet, and of the current part.
    let (mut previous, mut current): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut part = 0;
    for cue in cues {
        if cue.part != part {
            part = cue.part;
            previous = std::mem::take(&mut current);
        }
        let original = |is_original: fn(&Cue, &Cue) -> bool| {
            previous.iter().rposition(|&index| {
                let earlier = joined.get(index);
                earlier.is_some_and(|earlier| earlier.text == cue.text && is_original(earlier, &cue))
            })
        };
        let original_index = original(|earlier, cue| earlier.start_ms == cue.start_ms)
            .or_else(|| original(|earlier, cue| (earlier.start_ms..=earlier.end_ms).contains(&cue.start_ms)));
        let index = original_index.map_or(joined.len(), |index| previous.remove(index));
        match joined.get_mut(index) {
            Some(earlier) => earlier.end_ms = earlier.end_ms.max(cue.end_ms),
            None => joined.push(cue),
        }
        current.push(index);
        let end_ms = |index: &usize| joined.get(*index).map(|cue| cue.end_ms);
        if current.len() > SEAM_CUES_MAX
            && let Some(first) = current.iter().copied().min_by_key(end_ms)
        {
            current.retain(|&index| index != first);
        }
    }
    joined
}
