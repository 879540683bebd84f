//! The header of a WebVTT file.

use super::timing::TimingLine;
use crate::transcript::LanguageTag;

/// Maximum length of a kind, in bytes; the longest defined one is `descriptions`.
const KIND_LENGTH_MAX: usize = 16;

/// Metadata in the first block of a file: `Language: en`, `Kind: captions`.
pub(super) struct WebVttHeader {
    is_open: bool,
    pub(super) language: Option<LanguageTag>,
    pub(super) kind: Option<String>,
}

impl WebVttHeader {
    pub(super) fn new() -> Self {
        Self { is_open: true, language: None, kind: None }
    }

    /// Reads a line unless the header has ended.
    ///
    /// Some files have all fields in the first line, separated by `;`.
    pub(super) fn read_line(&mut self, line: &str) {
        self.is_open &= !line.trim().is_empty() && TimingLine::parse(line) == TimingLine::NotTiming;
        if !self.is_open {
            return;
        }
        for (name, value) in
            line.trim_start_matches("WEBVTT").split(';').filter_map(|part| part.split_once(':'))
        {
            let value = value.trim();
            if name.trim().eq_ignore_ascii_case("language") {
                self.language = LanguageTag::parse(value).ok();
            } else if name.trim().eq_ignore_ascii_case("kind")
                && value.len() <= KIND_LENGTH_MAX
                && value.bytes().all(|c| c.is_ascii_alphabetic())
            {
                self.kind = Some(value.to_ascii_lowercase());
            }
        }
    }
}
