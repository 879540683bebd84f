//! Writes a sentence anew: its own words, what was really said, and the moments that it rests on.

use std::{
    cell::{Cell, OnceCell},
    ops::Range,
};

use super::{
    super::question::is_unseen,
    Checked,
    clean::{MOMENT, clean},
    marks::{Part, is_quotation_mark},
    plain::{is_private, without_marks},
    source::{Around, Said, Source},
};
use crate::transcript::moment;

/// Stands for a quotation or a marker while the words around it are cleaned.
const PLACED: char = '\u{E001}';
/// How many times and names of sites of a sentence are looked for in what it cites.
const ASKED_MAX: u32 = 64;

/// What a quotation turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Quoted {
    /// Words of the transcript.
    Said(Said),
    /// A word or two of a passage that the sentence cites: too little to speak for the sentence.
    Word(Said),
    /// No quotation: words without marks around them.
    Words(String),
    /// What nobody said.
    False,
}

/// Writes a sentence anew from its parts.
pub(super) struct Writer<'a> {
    source: &'a Source,
    numbers: Vec<u32>,
    /// The model's words, and [`PLACED`] for each of `placed`.
    own: String,
    placed: Vec<String>,
    cited: Vec<Range<usize>>,
    /// Quotations that no citation of the sentence covers stand for themselves.
    marker: Option<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(source: &'a Source, numbers: Vec<u32>, quotes: &[Option<Quoted>]) -> Self {
        let said = || {
            quotes
                .iter()
                .flatten()
                .filter_map(|quote| if let Quoted::Said(said) = quote { Some(said) } else { None })
        };
        // Where every quotation is from elsewhere, what the sentence cites was wrong.
        let covers = |number: &u32| {
            let passage = source.passage(*number);
            passage.is_some_and(|passage| said().any(|said| overlap(&said.segments, &passage.segments)))
        };
        let is_elsewhere = said().count() > 0 && !numbers.iter().any(covers);
        let numbers = if is_elsewhere { Vec::new() } else { numbers };
        Self { source, numbers, own: String::new(), placed: Vec::new(), cited: Vec::new(), marker: None }
    }

    pub(super) fn write(mut self, parts: &[Part], quotes: &[Option<Quoted>]) -> Checked {
        for (part, quote) in parts.iter().zip(quotes) {
            let before = self.own.len();
            match (part, quote) {
                (Part::Text(text), _) => self.own.push_str(text),
                (Part::Quote(_), Some(Quoted::Words(words))) => self.own.push_str(words),
                (Part::Quote(_), Some(Quoted::Said(said))) => self.quotation(said),
                (Part::Quote(_), Some(Quoted::Word(said))) if self.is_cited(said) => {
                    self.place(format!("“{}”", shown(&said.words)));
                }
                (Part::Quote(_), Some(Quoted::Word(said))) => self.own.push_str(&shown(&said.words)),
                (Part::Cites(numbers), ..) => self.cites(numbers, quotes),
                _ => {}
            }
            if self.own.len() == before && !matches!(part, Part::Cites(_) if self.own.ends_with(PLACED)) {
                // What stood on either side of it was apart, and stays so.
                self.own.push(' ');
            }
        }
        self.finish()
    }

    fn place(&mut self, text: String) {
        self.own.push(PLACED);
        self.placed.push(text);
    }

    fn is_cited(&self, said: &Said) -> bool {
        self.numbers.iter().any(|number| {
            self.source.passage(*number).is_some_and(|passage| overlap(&said.segments, &passage.segments))
        })
    }

    fn quotation(&mut self, said: &Said) {
        self.place(format!("“{}”", shown(&said.words)));
        if !self.is_cited(said) {
            self.own.push(' ');
            self.cite(said.segments.clone());
        }
    }

    fn cites(&mut self, numbers: &[u32], quotes: &[Option<Quoted>]) {
        for number in numbers {
            let Some(passage) = self.source.passage(*number).filter(|_| self.numbers.contains(number)) else {
                continue;
            };
            let mut exact = quotes
                .iter()
                .flatten()
                .filter_map(|quote| match quote {
                    Quoted::Said(said) if overlap(&said.segments, &passage.segments) => {
                        Some(said.segments.clone())
                    }
                    _ => None,
                })
                .peekable();
            if exact.peek().is_none() {
                self.cite(passage.segments.clone());
            } else {
                exact.for_each(|segments| self.cite(segments));
            }
        }
    }

    /// Writes a marker; not twice the same one at one place.
    fn cite(&mut self, segments: Range<usize>) {
        let Some(segment) = self.source.segments().get(segments.start) else { return };
        let marker = format!("[{}]", moment(segment.start_ms / 1_000));
        let is_again = self.own.trim_end().ends_with(PLACED) && self.placed.last() == Some(&marker);
        if !is_again {
            self.place(marker.clone());
        }
        self.marker.get_or_insert(marker);
        if !self.cited.contains(&segments) {
            self.cited.push(segments);
        }
    }

    fn finish(self) -> Checked {
        let around: OnceCell<Vec<Around>> = OnceCell::new();
        let asked = Cell::new(0);
        let said = |text: &str| {
            asked.set(asked.get() + 1);
            let read = || self.numbers.iter().map(|number| self.source.words_around(*number)).collect();
            let has = |words: &Around| has_apart(&words.own, text) || has_apart(&words.beside, text);
            asked.get() <= ASKED_MAX && around.get_or_init(read).iter().any(has)
        };
        let own = clean(&without_marks(&self.own), &said);
        let moment = self.marker.as_deref().unwrap_or(" ");
        let text = tidy(&assembled(&own, &self.placed, moment));
        Checked { text, cited: self.cited, is_false: false }
    }
}

/// Whether a text stands in words with no digit or colon beside it that would make it a part of another.
fn has_apart(words: &str, text: &str) -> bool {
    let joins = |c: char| c.is_numeric() || super::clean::is_colon(c);
    !text.is_empty()
        && words.match_indices(text).any(|(at, found)| {
            let before = words.get(..at).and_then(|words| words.chars().next_back());
            let after = words.get(at + found.len()..).and_then(|words| words.chars().next());
            !before.is_some_and(joins) && !after.is_some_and(joins)
        })
}

/// The sentence with what is placed in it, so that Markdown and HTML read nothing into it: no marker becomes a link,
/// an image or a definition, and no sign a tag, an entity or a block.
fn assembled(own: &str, placed: &[String], moment: &str) -> String {
    let (mut text, mut placed, mut says) = (String::with_capacity(own.len()), placed.iter(), false);
    for (at, c) in own.char_indices() {
        let rest = own.get(at + c.len_utf8()..).unwrap_or_default();
        let marker = match c {
            PLACED => placed.next().map_or(" ", String::as_str),
            MOMENT => moment,
            _ => "",
        };
        match c {
            PLACED | MOMENT if marker.len() > 1 && text.trim_end().ends_with(marker) => {}
            PLACED | MOMENT => {
                if text.ends_with('!') {
                    text.push(' ');
                }
                text.push_str(marker);
                says |= marker.starts_with('“');
            }
            ':' if text.ends_with(']') && !says => {}
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
        says |= c.is_alphabetic();
    }
    text
}

/// Whether what follows an ampersand makes it an entity of HTML.
fn is_entity(rest: &str) -> bool {
    let name: String = rest.chars().take(32).take_while(|c| c.is_ascii_alphanumeric() || *c == '#').collect();
    let lower = name.to_lowercase();
    let begins = |known: &&str| lower.starts_with(known);
    rest.get(name.len()..).is_some_and(|rest| rest.starts_with(';') && !name.is_empty())
        || ["#", "quot", "amp", "lt", "gt", "laquo", "raquo"].iter().any(begins)
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Words of the transcript as they stand between quotation marks: nothing in them ends the quotation, looks like
/// a marker, or is not seen.
fn shown(words: &str) -> String {
    let shown = words.chars().filter(|c| !is_unseen(*c) && !is_private(*c)).map(|c| match c {
        c if is_quotation_mark(c) => '\'',
        '[' | '［' | '【' => '(',
        ']' | '］' | '】' => ')',
        '<' => '‹',
        '>' => '›',
        '\u{2028}' | '\u{2029}' => ' ',
        c if c.is_control() => ' ',
        c => c,
    });
    shown.collect()
}

/// Brackets in which nothing is left, with nothing but white space and signs between two citations.
fn without_empty_brackets(text: &str) -> String {
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
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        kept.push(c);
        let Some((open, _)) = PAIRS.iter().find(|(_, close)| *close == c) else { continue };
        let inside = kept.trim_end_matches(c).trim_end_matches([' ', ',', ';', '&', '-', '–', '—']);
        if inside.ends_with(*open) {
            kept.truncate(inside.len() - open.len_utf8());
        }
    }
    kept
}

/// One space where taking something out left two, and none before a mark that ends, unless that joins two words.
fn tidy(text: &str) -> String {
    let text = without_empty_brackets(text);
    let mut tidy = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let ends =
            matches!(c, '.' | ',' | ';' | '!' | '?') && !letters.peek().is_some_and(|c| c.is_alphanumeric());
        if (c == ' ' || ends) && tidy.ends_with(' ') {
            tidy.pop();
        }
        tidy.push(c);
    }
    tidy
}
