//! TTML: `<tt>` with paragraphs that have a begin and an end or a duration.
//!
//! Times of nested elements are relative to their parent's begin, unless that is impossible: see
//! [`TtmlReader::is_absolute`]. In an element with `timeContainer="seq"` they are relative to the end of the element
//! before. White space is folded as TTML defines unless `xml:space="preserve"` is set; `<br/>`
//! is a line break. A paragraph without times whose spans have times becomes one segment per span. A segment with an
//! unreadable begin is left out and reported. Styles, regions and metadata are ignored, and so are the readings of ruby
//! text (`tts:ruby="text"`), which are not spoken in addition.
//!
//! Files made from rolling captions repeat their lines; [`super::rolling`] removes the repetitions. If a file has a
//! `div` for each of several languages, one language is read, and the translations are left out and reported; so are
//! all other languages if one was selected.

use std::collections::HashSet;

use super::{
    CaptionError,
    cue_collector::{CueCollector, is_blank, too_many},
    cue_file::{CUES_MAX, Cue, collect},
    parsed::Occurrences,
    rolling::RepeatUnit,
    ttml_time::TimeBase,
    xml::{XmlDocument, XmlElement, XmlNode},
};
use crate::transcript::LanguageTag;

/// Maximum number of languages of a document; of others none is known.
const LANGUAGES_MAX: usize = 64;

/// Maximum number of styles of readings.
const READING_STYLES_MAX: usize = 64;

/// Open element: its times and how its white space counts.
#[derive(Clone, Copy)]
struct TtmlScope {
    begin: i64,
    end: Option<i64>,
    /// The end that the element itself names.
    own_end: Option<i64>,
    /// End of the last of its inner elements that are closed; its begin without one.
    inner_end: i64,
    /// Whether its inner elements follow one another.
    is_sequence: bool,
    preserves_space: bool,
    kind: TtmlElementKind,
    /// Whether the element itself has times.
    is_timed: bool,
    /// Whether its begin is unreadable: its own, or without one that of its parent.
    has_unreadable_begin: bool,
    /// Whether it is a paragraph that begins outside its parent.
    is_outside: bool,
    /// Index of its language in [`TtmlReader::languages`].
    language: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TtmlElementKind {
    /// Text of a segment: a paragraph, or a timed span in an untimed paragraph.
    Segment,
    /// Text of the enclosing segment, or of none.
    Inline,
    /// Metadata without text.
    Silent,
}

/// Scope of the document: no times, no language.
const OUTER: TtmlScope = TtmlScope {
    begin: 0,
    end: None,
    own_end: None,
    inner_end: 0,
    is_sequence: false,
    preserves_space: false,
    kind: TtmlElementKind::Inline,
    is_timed: false,
    has_unreadable_begin: false,
    is_outside: false,
    language: None,
};

/// Parses a document; of several languages, the one that matches `language` is read, if there is one.
pub(super) fn parse(text: &str, language: Option<&LanguageTag>) -> Result<CueCollector, CaptionError> {
    let mut reader = TtmlReader::default();
    reader.read(text)?;
    if reader.has_outside {
        let mut absolute = TtmlReader { is_absolute: true, ..TtmlReader::default() };
        absolute.read(text)?;
        if !absolute.has_outside {
            reader = absolute;
        }
    }
    reader.finish(language)
}

/// Reader of a document, with its cues.
#[derive(Default)]
struct TtmlReader {
    /// Whether the times of nested elements count from the start of the video, as Apple writes them.
    ///
    /// That is so if a paragraph would otherwise begin after its parent's end, and every paragraph, as written, begins
    /// within its parent.
    is_absolute: bool,
    /// Whether a paragraph with text begins outside its parent.
    has_outside: bool,
    languages: Vec<LanguageTag>,
    root_language: Option<usize>,
    /// Ids of the styles that make a span a reading.
    reading_styles: Vec<String>,
    /// The cues, each with its language.
    cues: Vec<(Cue, Option<usize>)>,
    left_out: Occurrences,
}

impl TtmlReader {
    fn read(&mut self, text: &str) -> Result<(), CaptionError> {
        let (mut document, root) = XmlDocument::open(text, "tt")?;
        let base = TimeBase::from_root(&root);
        let root = self.scope(&root, OUTER, &base, &[]);
        self.root_language = root.language;
        let mut scopes = vec![root];
        // The segments that are being read: a paragraph, and possibly a timed span in it.
        let mut open: Vec<TtmlText> = Vec::new();
        while let Some(node) = document.next()? {
            let parent = scopes.last().copied().unwrap_or(OUTER);
            match node {
                XmlNode::Open(element) => {
                    let inner = self.scope(&element, parent, &base, &scopes);
                    if inner.kind == TtmlElementKind::Segment {
                        open.push(TtmlText::default());
                    }
                    if element.name() == "br"
                        && let Some(words) = open.last_mut()
                    {
                        words.line_break();
                    }
                    scopes.push(inner);
                }
                XmlNode::Close => {
                    scopes.pop();
                    if let Some(outer) = scopes.last_mut() {
                        let end = parent.own_end.unwrap_or(parent.inner_end);
                        outer.inner_end = outer.inner_end.max(end);
                    }
                    if parent.kind == TtmlElementKind::Segment
                        && let Some(words) = open.pop()
                    {
                        self.add(words.text, parent)?;
                    }
                }
                XmlNode::Text(text) => {
                    if parent.kind != TtmlElementKind::Silent
                        && let Some(words) = open.last_mut()
                    {
                        words.push(&text, parent.preserves_space);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the text of a segment.
    fn add(&mut self, text: String, scope: TtmlScope) -> Result<(), CaptionError> {
        if is_blank(&text) {
            return Ok(());
        }
        if scope.has_unreadable_begin {
            self.left_out.add(None);
            return Ok(());
        }
        self.has_outside |= scope.is_outside;
        if self.cues.len() >= CUES_MAX {
            return Err(too_many());
        }
        let start_ms = scope.begin.max(0);
        let end_ms = scope.end.map_or(start_ms, |end| end.max(start_ms));
        let cue = Cue { text, start_ms, end_ms, marks: Vec::new(), highlight: None, part: 0 };
        self.cues.push((cue, scope.language));
        Ok(())
    }

    fn scope(
        &mut self,
        element: &XmlElement<'_>,
        parent: TtmlScope,
        base: &TimeBase,
        outer: &[TtmlScope],
    ) -> TtmlScope {
        let has = |name: &str| element.attribute(name).is_some();
        let time = |name: &str| element.attribute(name).and_then(|value| base.milliseconds(&value));
        let (begin, end, duration) = (time("begin"), time("end"), time("dur"));
        // A span with an unreadable begin is left out alone, and timed spans of such a paragraph stay.
        let is_timed =
            [begin, end, duration].iter().any(Option::is_some) || (element.name() == "span" && has("begin"));
        let parent_begin = if parent.is_sequence { parent.inner_end } else { parent.begin };
        let origin = if self.is_absolute { 0 } else { parent_begin };
        let start = begin.map_or(parent_begin, |begin| origin.saturating_add(begin));
        let own_end = [
            end.map(|end| origin.saturating_add(end)),
            duration.map(|duration| start.saturating_add(duration)),
        ];
        let own_end = own_end.into_iter().flatten().min();
        let in_untimed_paragraph = outer.iter().any(|scope| scope.kind == TtmlElementKind::Segment)
            && !outer.iter().any(|scope| scope.kind == TtmlElementKind::Segment && scope.is_timed);
        self.add_style(element);
        let kind = match element.name() {
            _ if parent.kind == TtmlElementKind::Silent => TtmlElementKind::Silent,
            "span" if self.is_reading(element) => TtmlElementKind::Silent,
            "metadata" | "title" | "desc" | "copyright" | "agent" | "head" => TtmlElementKind::Silent,
            "p" => TtmlElementKind::Segment,
            "span" if is_timed && in_untimed_paragraph => TtmlElementKind::Segment,
            _ => TtmlElementKind::Inline,
        };
        TtmlScope {
            begin: start,
            end: own_end.into_iter().chain(parent.end).min(),
            own_end,
            inner_end: start,
            is_sequence: element.attribute("timeContainer").is_some_and(|value| value == "seq"),
            preserves_space: element
                .attribute("space")
                .map_or(parent.preserves_space, |value| value == "preserve"),
            kind,
            is_timed,
            has_unreadable_begin: begin.is_none() && (has("begin") || parent.has_unreadable_begin),
            is_outside: element.name() == "p"
                && begin.is_some()
                && parent.begin > 0
                && (start < parent.begin || parent.end.is_some_and(|parent_end| start >= parent_end)),
            language: self.language(element, parent),
        }
    }

    /// Notes the style of readings that an element defines.
    fn add_style(&mut self, element: &XmlElement<'_>) {
        if element.name() == "style"
            && is_reading_role(element) == Some(true)
            && self.reading_styles.len() < READING_STYLES_MAX
        {
            self.reading_styles.extend(element.attribute("id").map(|id| id.into_owned()));
        }
    }

    /// Whether a span is the reading of another one, or has the brackets around it.
    fn is_reading(&self, span: &XmlElement<'_>) -> bool {
        let is_known = |id: &str| self.reading_styles.iter().any(|known| known == id);
        let by_style =
            || span.attribute("style").is_some_and(|ids| ids.split_ascii_whitespace().any(is_known));
        is_reading_role(span).unwrap_or_else(by_style)
    }

    /// Index of an element's language.
    ///
    /// That of a paragraph or span is not read: a speaker may change the language, and all of it is the transcript.
    fn language(&mut self, element: &XmlElement<'_>, parent: TtmlScope) -> Option<usize> {
        if matches!(element.name(), "p" | "span") {
            return parent.language;
        }
        let Some(tag) = element.attribute("lang") else { return parent.language };
        let tag = LanguageTag::parse(&tag).ok()?;
        if tag == LanguageTag::unknown() {
            return parent.language;
        }
        if let Some(known) = self.languages.iter().position(|known| *known == tag) {
            return Some(known);
        }
        if self.languages.len() >= LANGUAGES_MAX {
            return None;
        }
        self.languages.push(tag);
        Some(self.languages.len() - 1)
    }

    /// The languages of the cues that have one, in order.
    fn cue_languages(&self) -> impl Iterator<Item = &LanguageTag> {
        self.cues.iter().filter_map(move |(_, language)| self.languages.get((*language)?))
    }

    /// The language of a cue that is the wanted one or matches it.
    fn wanted_language(&self, wanted: &LanguageTag) -> Option<&LanguageTag> {
        let exact = self.cue_languages().find(|tag| *tag == wanted);
        exact.or_else(|| self.cue_languages().find(|tag| wanted.matches(tag)))
    }

    /// The language of the document if a cue is in it, else that of the first cue with one.
    fn main_language(&self) -> Option<&LanguageTag> {
        let root = self.root_language.and_then(|index| self.languages.get(index));
        root.filter(|root| self.cue_languages().any(|other| other.matches(root)))
            .or_else(|| self.cue_languages().next())
    }

    /// Leaves out the cues of all languages but the wanted one.
    ///
    /// Its variants, and cues without a language, stay if none of them is shown together with one of its cues.
    fn leave_out_others(&mut self, wanted: &LanguageTag) {
        let tag = |language: Option<usize>| language.and_then(|index| self.languages.get(index));
        let is_wanted = |language: Option<usize>| tag(language) == Some(wanted);
        let own = self.cues.iter().filter(|(_, language)| is_wanted(*language));
        let shown = ShownTimes::new(own.map(|(cue, _)| cue));
        let others = self.cues.iter().filter(|(cue, language)| !is_wanted(*language) && shown.has(cue));
        let coinciding: HashSet<Option<usize>> = others.map(|(_, language)| *language).collect();
        let left_out = &mut self.left_out;
        self.cues.retain(|(_, language)| {
            let is_other = tag(*language).is_some_and(|tag| !tag.matches(wanted));
            let stays = !is_other && !coinciding.contains(language);
            if !stays {
                left_out.add(None);
            }
            stays
        });
    }

    /// Leaves out the cues of languages that translate the main one.
    ///
    /// At least half of a translation's cues are shown together with one of the main language, which has at least half
    /// as many. Otherwise another language is speech: a credit throughout the video is no original.
    fn leave_out_translations(&mut self, main: &LanguageTag) {
        let is_main: Vec<bool> = self.languages.iter().map(|tag| tag.matches(main)).collect();
        if !is_main.contains(&false) {
            return;
        }
        let other = |language: Option<usize>| language.filter(|&index| is_main.get(index) == Some(&false));
        let kept = self.cues.iter().filter(|(_, language)| other(*language).is_none());
        let shown = ShownTimes::new(kept.map(|(cue, _)| cue));
        let mut counts = vec![(0_usize, 0_usize); is_main.len()];
        for (cue, language) in &self.cues {
            if let Some((all, together)) = other(*language).and_then(|index| counts.get_mut(index)) {
                *all += 1;
                *together += usize::from(shown.has(cue));
            }
        }
        let left_out = &mut self.left_out;
        self.cues.retain(|(_, language)| {
            let counts = other(*language).and_then(|index| counts.get(index));
            let is_translation =
                counts.is_some_and(|&(all, together)| together.min(shown.0.len()) * 2 >= all);
            if is_translation {
                left_out.add(None);
            }
            !is_translation
        });
    }

    fn finish(mut self, language: Option<&LanguageTag>) -> Result<CueCollector, CaptionError> {
        let wanted = language.and_then(|wanted| self.wanted_language(wanted)).cloned();
        let main = wanted.clone().or_else(|| self.main_language().cloned());
        if let Some(wanted) = &wanted {
            self.leave_out_others(wanted);
        } else if let Some(main) = &main {
            self.leave_out_translations(main);
        }
        let is_main = |tag: &LanguageTag| main.as_ref().is_none_or(|main| tag.matches(main));
        let tag = |index: usize| self.languages.get(index);
        let is_mixed =
            self.cues.iter().any(|(_, language)| language.and_then(tag).is_some_and(|tag| !is_main(tag)));
        let root = self.root_language.and_then(tag).filter(|root| is_main(root)).cloned();
        let language = root.or_else(|| main.clone().filter(|_| !is_mixed));
        let mut cues =
            collect(self.cues.into_iter().map(|(cue, _)| cue).collect(), self.left_out, RepeatUnit::Lines)?;
        cues.language = language;
        Ok(cues)
    }
}

/// When cues are shown: the starts, each with the latest end up to there.
struct ShownTimes(Vec<(i64, i64)>);

impl ShownTimes {
    fn new<'a>(cues: impl Iterator<Item = &'a Cue>) -> Self {
        let mut times: Vec<(i64, i64)> = cues.map(|cue| (cue.start_ms, cue.end_ms)).collect();
        times.sort_unstable();
        let mut latest = 0;
        for (_, end) in &mut times {
            latest = latest.max(*end);
            *end = latest;
        }
        Self(times)
    }

    /// Whether a cue is shown together with one of these.
    fn has(&self, cue: &Cue) -> bool {
        let before = self.0.partition_point(|&(start, _)| start < cue.end_ms);
        let last = before.checked_sub(1).and_then(|last| self.0.get(last));
        last.is_some_and(|&(_, latest)| latest > cue.start_ms)
    }
}

/// Whether the role of an element in ruby text is that of a reading; `None` if it names no role.
fn is_reading_role(element: &XmlElement<'_>) -> Option<bool> {
    let role = element.attribute("ruby")?;
    Some(matches!(&*role, "text" | "textContainer" | "delimiter"))
}

/// White space of XML only: a no-break space is intentional.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Text of a segment; white space is folded as text is added.
#[derive(Default)]
struct TtmlText {
    text: String,
    /// Whether white space is pending, which is written only if more text follows on the line.
    space: bool,
}

impl TtmlText {
    fn push(&mut self, text: &str, preserves_space: bool) {
        if preserves_space {
            if !text.is_empty() && std::mem::take(&mut self.space) && !text.starts_with(SPACE) {
                self.text.push(' ');
            }
            self.text.push_str(text);
            return;
        }
        for c in text.chars() {
            if SPACE.contains(&c) {
                self.space = !self.text.is_empty() && !self.text.ends_with(SPACE);
            } else {
                if std::mem::take(&mut self.space) {
                    self.text.push(' ');
                }
                self.text.push(c);
            }
        }
    }

    fn line_break(&mut self) {
        self.space = false;
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests;
