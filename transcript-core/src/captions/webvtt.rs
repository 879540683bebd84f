//! WebVTT, read as leniently as players read it.
//!
//! Removed are the header, notes, styles and regions, cue identifiers and settings, and the formatting tags of
//! [`super::markup`], with the speaker name of a voice tag. Entities are decoded. Line breaks inside a cue stay.
//! A cue with unreadable times is left out and reported; the others are kept. Text after a blank line is still text.
//! `X-TIMESTAMP-MAP` is not applied: in a single file, and in segments that share one map, cue times count from the
//! start of the video.
//!
//! Text that players drop because of an irregularity is kept: times in unusual notation ([`super::timing`]) or
//! in reverse order, a line with an arrow in a cue's text ("ten --> eleven"), an unclosed `<`, and tags and
//! entities that WebVTT does not define.

use super::{
    CaptionError,
    cue_collector::CueCollector,
    cue_file::CueFile,
    sniff::is_webvtt,
    timing::{ARROW, TimingLine, lines},
    webvtt_header::WebVttHeader,
};

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let body = text.trim_start();
    if !is_webvtt(body) {
        return Err(CaptionError::not_captions("The captions do not begin with WEBVTT."));
    }
    let blank_lines =
        text.get(..text.len() - body.len()).map_or(0, |blank_lines| lines(blank_lines).count() - 1);
    let mut file = CueFile::for_webvtt();
    let mut header = WebVttHeader::new();
    let mut block = WebVttBlock::default();
    // Whether a blank line follows identifiers, as it does the first one.
    let mut has_blank_line = false;
    // The last line, if it may be a timing line that is cut: the file, or this part of a playlist, ended early. With it
    // the length of the open cue's text before it.
    let mut cut: Option<(u64, usize)> = None;
    for (line, number) in lines(body).zip(1 + blank_lines as u64..) {
        header.read_line(line);
        if is_webvtt(line) {
            // Parts are joined with one blank line: after another one the part before has ended with a whole line.
            count_cut(&mut file, cut.filter(|&(cut_line, _)| number <= cut_line + 2));
        }
        let times = match TimingLine::parse(line) {
            TimingLine::Times(start, end) => Some((start, end)),
            TimingLine::Invalid => None,
            TimingLine::NotTiming => {
                has_blank_line |= line.is_empty() && block.is_name() && !file.has_timing();
                block.read_line(line, number, &mut file)?;
                if !line.is_empty() {
                    cut = block.start_of_timing(line, &file).map(|length| (number, length));
                }
                continue;
            }
        };
        // The next cue needs no empty line before it; what precedes it after one is its identifier.
        match std::mem::replace(&mut block, WebVttBlock::Cue) {
            WebVttBlock::Cue => end_before_timing(&mut file, is_number)?,
            WebVttBlock::Untimed { length, .. } => {
                file.truncate(length);
                file.end()?;
            }
            WebVttBlock::Nothing if has_blank_line => end_before_timing(&mut file, is_name)?,
            WebVttBlock::Nothing | WebVttBlock::NonText => file.end()?,
        }
        file.begin(times, number);
        cut = is_cut(line).then_some((number, 0));
    }
    block.end(&mut file);
    // A line that is cut has no line end.
    if !body.ends_with(['\n', '\r']) {
        count_cut(&mut file, cut);
    }
    let mut cues = file.finish()?;
    (cues.language, cues.kind) = (header.language, header.kind);
    Ok(cues)
}

/// Lines up to a blank line.
#[derive(Clone, Copy, Debug, Default)]
enum WebVttBlock {
    /// No line so far.
    #[default]
    Nothing,
    /// A cue.
    Cue,
    /// A header, note, style or region: no text.
    NonText,
    /// An identifier if times follow, otherwise text of the cue before it.
    Untimed { line: u64, length: usize, content: UntimedContent },
}

/// Content of a block without times; of several lines the last one in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UntimedContent {
    /// Numbers and signs: an identifier.
    Identifier,
    /// One word with a digit: an identifier if nothing but times follow.
    Name,
    Text,
    /// A clock time: text, or the beginning of a timing line where the file ends.
    ClockTime,
    /// A timing line that is cut or has an unknown form, or a page in place of captions.
    Fault,
}

impl UntimedContent {
    fn new(line: &str) -> Self {
        let has_letter = line.chars().any(char::is_alphabetic);
        let is_page = ["<html", "<head", "<body", "<!", "<?"]
            .iter()
            .any(|tag| line.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)));
        if is_page || line.contains(ARROW) {
            Self::Fault
        } else if has_letter {
            if is_name(line) { Self::Name } else { Self::Text }
        } else {
            // A timing line with an unknown arrow has a fraction of two or more digits, or four colons.
            let is_fraction = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count() > 1;
            let has_fraction = line.split(['.', ',']).skip(1).any(is_fraction);
            match line.split_once([':', '：']) {
                None => Self::Identifier,
                Some(_) if has_fraction || line.matches(':').count() > 3 => Self::Fault,
                Some(_) if line.starts_with(|c: char| c.is_ascii_digit()) => Self::ClockTime,
                Some(_) => Self::Text,
            }
        }
    }
}

impl WebVttBlock {
    fn is_name(&self) -> bool {
        matches!(self, Self::Untimed { content: UntimedContent::Name, .. })
    }

    /// If its last line may be the beginning of a timing line after the text of a cue: the length of that text.
    fn start_of_timing(&self, line: &str, file: &CueFile) -> Option<usize> {
        match self {
            Self::Untimed { length, .. } if file.is_open() => {
                (UntimedContent::new(line) == UntimedContent::ClockTime).then_some(*length)
            }
            _ => None,
        }
    }

    /// Reads a line that is no timing line.
    fn read_line(&mut self, line: &str, number: u64, file: &mut CueFile) -> Result<(), CaptionError> {
        if line.is_empty() {
            self.end(file);
        } else if matches!(self, Self::Nothing) {
            *self = if is_non_text(line, file) {
                file.end()?;
                if is_webvtt(line) {
                    file.begin_part();
                }
                Self::NonText
            } else {
                let length = file.payload().len();
                Self::Untimed { line: number, length, content: UntimedContent::new(line) }
            };
        } else if let Self::Untimed { content, .. } = self {
            *content = (*content).max(UntimedContent::new(line));
        }
        if file.is_open() {
            file.push_line(line);
        }
        Ok(())
    }

    /// Ends the block at a blank line, after which the cue may have more text.
    fn end(&mut self, file: &mut CueFile) {
        if let Self::Untimed { line, length, content } = std::mem::take(self) {
            let is_no_text = matches!(content, UntimedContent::Identifier | UntimedContent::Fault);
            if !is_no_text && file.is_open() {
                return;
            }
            file.truncate(length);
            match content {
                UntimedContent::Identifier | UntimedContent::Name => {}
                UntimedContent::Text => file.count_left_out(line),
                UntimedContent::ClockTime | UntimedContent::Fault => file.count_fault(line),
            }
        }
    }
}

/// Whether a line begins a block that has no text.
fn is_non_text(line: &str, file: &CueFile) -> bool {
    // Some programs write a blank line before fields of the header.
    let fields = ["Kind:", "Language:"];
    let names = ["NOTE", "STYLE", "REGION", "X-TIMESTAMP-MAP", "<!--"];
    let begins = |names: &[&str]| names.iter().any(|name| line.starts_with(name));
    is_webvtt(line) || begins(&names) || !file.has_timing() && begins(&fields)
}

/// Whether a timing line is cut within its second time, which is shorter than the first one then.
///
/// A time with all of its decimals is whole: some programs leave out its hours.
fn is_cut(line: &str) -> bool {
    let decimals = |time: &str| time.rsplit_once(['.', ',']).map_or(0, |(_, decimals)| decimals.len());
    let Some((start, end)) = line.split_once(ARROW) else { return false };
    let (start, end) = (start.trim(), end.trim());
    end.len() < start.len() && (decimals(start) == 0 || decimals(end) < decimals(start))
}

/// Counts the cue of a timing line that was cut: its number, and the length of the text before it.
fn count_cut(file: &mut CueFile, cut: Option<(u64, usize)>) {
    if let Some((line, length)) = cut {
        file.truncate(length);
        file.count_fault(line);
    }
}

/// Whether a line may be an identifier: one word of letters and digits, not a sentence without spaces.
fn is_name(line: &str) -> bool {
    let is_one_word = line.is_ascii() && !line.contains(char::is_whitespace);
    let has = |is_kind: fn(&u8) -> bool| line.as_bytes().iter().any(is_kind);
    is_one_word && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

fn is_number(line: &str) -> bool {
    !line.is_empty() && line.bytes().all(|c| c.is_ascii_digit())
}

/// Ends the open cue at a timing line. An identifier after its text and a blank line is that of the next cue.
fn end_before_timing(file: &mut CueFile, is_identifier: impl Fn(&str) -> bool) -> Result<(), CaptionError> {
    if let Some((text, last)) = file.payload().trim_end_matches('\n').rsplit_once('\n')
        && is_identifier(last)
        && text.rsplit('\n').next().is_some_and(|line_before| line_before.trim().is_empty())
        && (!text.trim().is_empty() || is_number(last))
    {
        let length = text.len();
        file.truncate(length);
    }
    file.end()
}

#[cfg(test)]
mod tests;
