//! Writes verified sentences with transcript text for quotations and time markers for citations.

use std::{
    cell::{Cell, OnceCell},
    ops::Range,
};

use super::{
    super::question::is_invisible,
    CheckedSentence,
    claims::ClaimChecker,
    normalize::{is_private, remove_marks},
    sanitize::{TIME_PLACEHOLDER, remove_links, replace_times},
    sentence_parser::SentencePart,
    times,
    transcript_index::{SpokenContext, SpokenText, TranscriptIndex},
};

/// Placeholder for a quotation or a marker while the text around it is sanitized.
const ITEM_PLACEHOLDER: char = '\u{E001}';
/// Maximum of times and host names of a sentence that are looked up in the cited passages.
pub(super) const LOOKUPS_MAX: u32 = 64;

/// Classification of a quotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuotedSpan {
    /// Text of the transcript.
    Verified(SpokenText),
    /// One or two words of a cited passage: too little to support the sentence.
    Fragment(SpokenText),
    /// No quotation; the words are written without marks.
    Unquoted(String),
    /// Not in the transcript.
    NotFound,
}

/// Writes a sentence from its parts.
pub(super) struct AnswerWriter<'a> {
    source: &'a TranscriptIndex,
    numbers: Vec<u32>,
    /// Text of the model, with [`ITEM_PLACEHOLDER`] for each item of `items`.
    draft: String,
    items: Vec<String>,
    cited: Vec<Range<usize>>,
    /// First marker of the sentence.
    marker: Option<String>,
}

impl<'a> AnswerWriter<'a> {
    pub(super) fn new(source: &'a TranscriptIndex, numbers: Vec<u32>) -> Self {
        Self { source, numbers, draft: String::new(), items: Vec::new(), cited: Vec::new(), marker: None }
    }

    pub(super) fn write(
        mut self,
        parts: &[SentencePart],
        quotes: &[Option<QuotedSpan>],
        claims: &ClaimChecker,
    ) -> CheckedSentence {
        for (part, quote) in parts.iter().zip(quotes) {
            let before = self.draft.len();
            match (part, quote) {
                (SentencePart::Text(text), _) => self.draft.push_str(text),
                (SentencePart::Quote(_), Some(QuotedSpan::Unquoted(words))) => self.draft.push_str(words),
                (SentencePart::Quote(_), Some(QuotedSpan::Verified(spoken))) => self.write_quotation(spoken),
                (SentencePart::Quote(_), Some(QuotedSpan::Fragment(spoken))) if self.is_cited(spoken) => {
                    self.push_item(format!("“{}”", quotable(&spoken.words)));
                }
                (SentencePart::Quote(_), Some(QuotedSpan::Fragment(spoken))) => {
                    self.draft.push_str(&quotable(&spoken.words))
                }
                (SentencePart::Cites(numbers), ..) => self.write_citations(numbers, quotes),
                _ => {}
            }
            if self.draft.len() == before
                && !matches!(part, SentencePart::Cites(_) if self.draft.ends_with(ITEM_PLACEHOLDER))
            {
                // A removed part must not join the text on both sides.
                self.draft.push(' ');
            }
        }
        self.finish(claims)
    }

    fn push_item(&mut self, text: String) {
        self.draft.push(ITEM_PLACEHOLDER);
        self.items.push(text);
    }

    fn is_cited(&self, spoken: &SpokenText) -> bool {
        self.numbers.iter().any(|number| {
            self.source.passage(*number).is_some_and(|passage| overlap(&spoken.segments, &passage.segments))
        })
    }

    fn write_quotation(&mut self, spoken: &SpokenText) {
        self.push_item(format!("“{}”", quotable(&spoken.words)));
        if !self.is_cited(spoken) {
            self.draft.push(' ');
            self.write_marker(spoken.segments.clone());
        }
    }

    fn write_citations(&mut self, numbers: &[u32], quotes: &[Option<QuotedSpan>]) {
        for number in numbers {
            let Some(passage) = self.source.passage(*number).filter(|_| self.numbers.contains(number)) else {
                continue;
            };
            let mut exact = quotes
                .iter()
                .flatten()
                .filter_map(|quote| match quote {
                    QuotedSpan::Verified(spoken) if overlap(&spoken.segments, &passage.segments) => {
                        Some(spoken.segments.clone())
                    }
                    _ => None,
                })
                .peekable();
            if exact.peek().is_none() {
                self.write_marker(passage.segments.clone());
            } else {
                exact.for_each(|segments| self.write_marker(segments));
            }
        }
    }

    /// Writes a marker; skips a repetition at the same position.
    fn write_marker(&mut self, segments: Range<usize>) {
        let Some(marker) = self.source.marker(&segments) else { return };
        let is_repeated =
            self.draft.trim_end().ends_with(ITEM_PLACEHOLDER) && self.items.last() == Some(&marker);
        if !is_repeated {
            self.push_item(marker.clone());
        }
        self.marker.get_or_insert(marker);
        if !self.cited.contains(&segments) {
            self.cited.push(segments);
        }
    }

    /// Text of the cited passages.
    fn spoken(&self) -> SpokenContext {
        let mut spoken = SpokenContext::default();
        self.cited.iter().for_each(|segments| spoken.add(&self.source.words_of_segments(segments)));
        spoken
    }

    fn finish(self, claims: &ClaimChecker) -> CheckedSentence {
        let (context, amounts) = (OnceCell::new(), OnceCell::new());
        let lookups = Cell::new(0);
        let spoken = || {
            lookups.set(lookups.get() + 1);
            (lookups.get() <= LOOKUPS_MAX).then(|| context.get_or_init(|| self.spoken()))
        };
        let is_spoken = |text: &str| spoken().is_some_and(|spoken| times::is_written_in(text, spoken));
        let draft = remove_links(&remove_marks(&self.draft), &is_spoken);
        // Without a citation, times stay until the passages that support the sentence are known.
        let draft = replace_times(&draft, &mut |time, _| {
            self.cited.is_empty() || spoken().is_some_and(|spoken| claims.has_time(time, spoken, &amounts))
        });
        let time = self.marker.as_deref().unwrap_or(" ");
        let text = collapse_spaces(&assemble(&draft, &self.items, time));
        CheckedSentence { text, cited: self.cited, ..CheckedSentence::default() }
    }
}

/// Replaces the times of a sentence without a citation, once the passages that support it are known.
///
/// `marker` is the time of these passages; a time that `is_spoken` finds in them stays.
pub(super) fn place_times(text: &str, marker: &str, is_spoken: &dyn Fn(&str) -> bool) -> String {
    let draft = replace_times(text, &mut |time, _| is_spoken(time));
    if draft.contains(TIME_PLACEHOLDER) { collapse_spaces(&assemble(&draft, &[], marker)) } else { draft }
}

/// Inserts the placed items and neutralizes Markdown and HTML.
///
/// No marker becomes a link, an image or a definition, and no sign a tag, an entity or a block.
fn assemble(draft: &str, items: &[String], time: &str) -> String {
    let (mut text, mut items, mut has_text) = (String::with_capacity(draft.len()), items.iter(), false);
    for (at, c) in draft.char_indices() {
        let rest = draft.get(at + c.len_utf8()..).unwrap_or_default();
        let marker = match c {
            ITEM_PLACEHOLDER => items.next().map_or(" ", String::as_str),
            TIME_PLACEHOLDER => time,
            _ => "",
        };
        match c {
            ITEM_PLACEHOLDER | TIME_PLACEHOLDER if marker.len() > 1 && text.trim_end().ends_with(marker) => {}
            ITEM_PLACEHOLDER | TIME_PLACEHOLDER => {
                if text.ends_with('!') {
                    text.push(' ');
                }
                text.push_str(marker);
                has_text |= marker.starts_with('“');
            }
            ':' if text.ends_with(']') && !has_text => {}
            '(' | ':' if text.ends_with(']') => {
                text.push(' ');
                text.push(c);
            }
            '>' if !text.trim_end().ends_with(char::is_alphanumeric) => {}
            '<' if rest.starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!' | '?')) => {
                text.push_str("< ")
            }
            '&' if is_entity(rest) => text.push_str("& "),
            c => text.push(c),
        }
        has_text |= c.is_alphabetic();
    }
    text
}

/// Whether the text after an ampersand makes it an HTML entity.
fn is_entity(rest: &str) -> bool {
    let name: String = rest.chars().take(32).take_while(|c| c.is_ascii_alphanumeric() || *c == '#').collect();
    let lower = name.to_lowercase();
    let begins = |known: &&str| lower.starts_with(known);
    rest.get(name.len()..).is_some_and(|rest| rest.starts_with(';') && !name.is_empty())
        || ["#", "quot", "amp", "lt", "gt", "laquo", "raquo"].iter().any(begins)
}

pub(super) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Prepares transcript text for quotation.
///
/// Nothing in the result ends the quotation, resembles a marker or is invisible.
fn quotable(words: &str) -> String {
    let quotable = words.chars().filter(|c| !is_invisible(*c) && !is_private(*c)).map(|c| match c {
        // Those that could end the quotation, and the first half of a pair with them.
        '"' | '“' | '”' | '„' | '＂' | '〝' | '〞' | '❝' | '❞' => '\'',
        '[' | '［' | '【' => '(',
        ']' | '］' | '】' => ')',
        '<' => '‹',
        '>' => '›',
        '\u{2028}' | '\u{2029}' => ' ',
        c if c.is_control() => ' ',
        c => c,
    });
    quotable.collect()
}

/// Removes brackets that contain only white space and punctuation, except those of a quotation.
fn remove_empty_brackets(text: &str) -> String {
    const PAIRS: [(char, char); 8] = [
        ('(', ')'),
        ('{', '}'),
        ('（', '）'),
        ('〔', '〕'),
        ('〖', '〗'),
        ('⟦', '⟧'),
        ('❲', '❳'),
        ('⦗', '⦘'),
    ];
    let (mut kept, mut is_quoted) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        kept.push(c);
        is_quoted = c == '“' || (is_quoted && c != '”');
        let pair = PAIRS.iter().find(|(_, close)| *close == c && !is_quoted);
        let Some((open, _)) = pair else { continue };
        let inside = kept.trim_end_matches(c).trim_end_matches([' ', ',', ';', '&', '-', '–', '—']);
        // `FastAPI()`
        let is_call = inside.strip_suffix('(').is_some_and(|name| {
            name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && kept.get(inside.len()..).is_some_and(|end| end.starts_with(')'))
        });
        if inside.ends_with(*open) && !is_call {
            kept.truncate(inside.len() - open.len_utf8());
        }
    }
    kept
}

/// Collapses double spaces that removals leave.
///
/// A space before punctuation is dropped unless that would join two words, or it is in a quotation: the text between “
/// and ”.
fn collapse_spaces(text: &str) -> String {
    let text = remove_empty_brackets(text);
    let mut collapse_spaces = String::with_capacity(text.len());
    let (mut letters, mut is_quoted) = (text.chars().peekable(), false);
    while let Some(c) = letters.next() {
        is_quoted = c == '“' || (is_quoted && c != '”');
        let ends =
            matches!(c, '.' | ',' | ';' | '!' | '?') && !letters.peek().is_some_and(|c| c.is_alphanumeric());
        if (c == ' ' || (ends && !is_quoted)) && collapse_spaces.ends_with(' ') {
            collapse_spaces.pop();
        }
        collapse_spaces.push(c);
    }
    collapse_spaces
}
