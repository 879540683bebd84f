//! What WebVTT and SRT have in common: cues of a timing line and text, and the ways of wild files.

use std::borrow::Cow;

use html_escape::decode_html_entities;

use super::{
    CaptionError, SEGMENTS_MAX, TIME_MAX_MS, cues, cues::Cues, markup, reading::Occurrences, rolling,
};

/// What stands before a blank line inside a cue, so that no reader takes it for the cue's end: our own
/// writers put it there, and it shows nothing.
pub(crate) const BLANK_LINE_MARK: char = '\u{200B}';

/// A cue as the file has it, before repetitions are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cue {
    /// The text, without tags and with entities decoded.
    pub(super) text: String,
    /// The start in milliseconds.
    pub(super) start_ms: i64,
    /// The end in milliseconds, not before the start.
    pub(super) end_ms: i64,
    /// Whether there were times between the words.
    pub(super) has_inline_times: bool,
    /// Whether it is the first one after a header in the middle of the body, where one file of a segmented
    /// playlist was put behind another.
    pub(super) after_seam: bool,
}

/// A cue whose text is being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The start and the end in milliseconds, where they can be read.
    times: Option<(i64, i64)>,
    /// The number of the line with the times.
    line: u64,
}

/// The cues of a file, one line after the other.
#[derive(Debug, Default)]
pub(super) struct CueFile {
    cues: Vec<Cue>,
    /// The cue whose text is being read, and its lines so far, each with its end.
    open: Option<Open>,
    payload: String,
    left_out: Occurrences,
    seam: bool,
    /// Whether a timing line was seen, be it a broken one.
    has_timing: bool,
}

impl CueFile {
    /// Begins a cue with these times, or one whose times cannot be read, in the line with this number.
    pub(super) fn begin(&mut self, times: Option<(i64, i64)>, line: u64) {
        self.has_timing = true;
        self.open = Some(Open { times, line });
        self.payload.clear();
    }

    /// Whether a cue's text is being read.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The lines of the open cue, each with its end.
    pub(super) fn payload(&self) -> &str {
        &self.payload
    }

    /// Takes back the last lines of the open cue.
    pub(super) fn truncate(&mut self, length: usize) {
        self.payload.truncate(length);
    }

    /// Adds a line to the open cue.
    pub(super) fn line(&mut self, line: &str) {
        self.payload.push_str(line);
        self.payload.push('\n');
    }

    /// Notes that a header stands in the middle of the body.
    pub(super) fn seam(&mut self) {
        self.seam = true;
    }

    /// Notes that words stand in the line with this number that are of no cue.
    pub(super) fn leave_out(&mut self, line: u64) {
        self.left_out.add(Some(line));
    }

    /// Ends the open cue.
    pub(super) fn end(&mut self) -> Result<(), CaptionError> {
        let Some(Open { times, line }) = self.open.take() else {
            return Ok(());
        };
        let payload = unmarked(without_blank_lines_around(&self.payload));
        let stripped = markup::strip_with_overrides(&payload);
        let text = decode_html_entities(&stripped.text).into_owned();
        if cues::is_blank(&text) {
            return Ok(());
        }
        let Some((start_ms, end_ms)) = times.filter(|&(start, _)| start <= TIME_MAX_MS as i64) else {
            self.left_out.add(Some(line));
            return Ok(());
        };
        // Rolling files say everything up to three times.
        if self.cues.len() >= 3 * SEGMENTS_MAX {
            return Err(cues::too_many());
        }
        let after_seam = std::mem::take(&mut self.seam) && !self.cues.is_empty();
        let has_inline_times = stripped.has_inline_times;
        self.cues.push(Cue { text, start_ms, end_ms, has_inline_times, after_seam });
        Ok(())
    }

    /// The file's cues, each said once.
    pub(super) fn finish(mut self) -> Result<Cues, CaptionError> {
        self.end()?;
        if !self.has_timing {
            return Ok(Cues::default());
        }
        let mut file = close_seams(self.cues);
        file.sort_by_key(|cue| cue.start_ms);
        rolling::unroll(&mut file);
        let mut gathered = Cues::default();
        gathered.left_out(self.left_out);
        for cue in file {
            gathered.between(cue.text, cue.start_ms, cue.end_ms)?;
        }
        Ok(gathered)
    }

    /// Whether there was any timing line at all.
    pub(super) fn has_timing(&self) -> bool {
        self.has_timing
    }
}

/// The lines between the first and the last one that is not blank, without the last line's end.
fn without_blank_lines_around(payload: &str) -> &str {
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

/// Whether a line is a blank one with the mark that makes it visible to readers.
pub(crate) fn is_marked_blank(line: &str) -> bool {
    line.strip_prefix(BLANK_LINE_MARK).is_some_and(|rest| rest.trim().is_empty())
}

/// The lines without the marks of blank ones.
fn unmarked(payload: &str) -> Cow<'_, str> {
    if !payload.lines().any(is_marked_blank) {
        return Cow::Borrowed(payload);
    }
    let lines = payload.split('\n').map(|line| match line.strip_prefix(BLANK_LINE_MARK) {
        Some(blank) if blank.trim().is_empty() => blank,
        _ => line,
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Joins the cues that a segmented playlist cut in two: the same text on both sides of a seam, touching.
fn close_seams(cues: Vec<Cue>) -> Vec<Cue> {
    let mut joined: Vec<Cue> = Vec::with_capacity(cues.len());
    for cue in cues {
        match joined.last_mut() {
            Some(last)
                if cue.after_seam
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
