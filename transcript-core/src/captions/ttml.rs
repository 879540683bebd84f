//! TTML: `<tt>` with paragraphs that have a begin and an end or a duration.
//!
//! Times of nested elements are relative to their parent's begin, unless that is impossible: see
//! [`TtmlReader::is_absolute`]. White space is folded as TTML defines unless `xml:space="preserve"` is set; `<br/>`
//! is a line break. A paragraph without times whose spans have times becomes one segment per span. A segment with an
//! unreadable begin is left out and reported. Styles, regions and metadata are ignored.
//!
//! Files made from rolling captions repeat their lines; [`super::rolling`] removes the repetitions. If a file has a
//! `div` for each of several languages, one language is read, and the translations are left out and reported.

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

/// Open element: its times and how its white space counts.
#[derive(Clone, Copy)]
struct TtmlScope {
    begin: i64,
    end: Option<i64>,
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
    preserves_space: false,
    kind: TtmlElementKind::Inline,
    is_timed: false,
    has_unreadable_begin: false,
    is_outside: false,
    language: None,
};

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let mut reader = TtmlReader::default();
    reader.read(text)?;
    if reader.has_outside {
        let mut absolute = TtmlReader { is_absolute: true, ..TtmlReader::default() };
        absolute.read(text)?;
        if !absolute.has_outside {
            reader = absolute;
        }
    }
    reader.finish()
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
        let origin = if self.is_absolute { 0 } else { parent.begin };
        let start = begin.map_or(parent.begin, |begin| origin.saturating_add(begin));
        let own_end = [
            end.map(|end| origin.saturating_add(end)),
            duration.map(|duration| start.saturating_add(duration)),
            parent.end,
        ];
        let in_untimed_paragraph = outer.iter().any(|scope| scope.kind == TtmlElementKind::Segment)
            && !outer.iter().any(|scope| scope.kind == TtmlElementKind::Segment && scope.is_timed);
        let kind = match element.name() {
            _ if parent.kind == TtmlElementKind::Silent => TtmlElementKind::Silent,
            "metadata" | "title" | "desc" | "copyright" | "agent" | "head" => TtmlElementKind::Silent,
            "p" => TtmlElementKind::Segment,
            "span" if is_timed && in_untimed_paragraph => TtmlElementKind::Segment,
            _ => TtmlElementKind::Inline,
        };
        TtmlScope {
            begin: start,
            end: own_end.into_iter().flatten().min(),
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

    /// The language of the document if a cue is in it, else that of the first cue with one.
    fn main_language(&self) -> Option<&LanguageTag> {
        let in_cues = || self.cues.iter().filter_map(move |(_, language)| self.languages.get((*language)?));
        let root = self.root_language.and_then(|index| self.languages.get(index));
        root.filter(|root| in_cues().any(|other| other.matches(root))).or_else(|| in_cues().next())
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
        // The starts, each with the latest end up to there.
        let mut times: Vec<(i64, i64)> = kept.map(|(cue, _)| (cue.start_ms, cue.end_ms)).collect();
        times.sort_unstable();
        let mut latest = 0;
        for (_, end) in &mut times {
            latest = latest.max(*end);
            *end = latest;
        }
        let is_shown_with_main = |cue: &Cue| {
            let before = times.partition_point(|&(start, _)| start < cue.end_ms);
            let last = before.checked_sub(1).and_then(|last| times.get(last));
            last.is_some_and(|&(_, latest)| latest > cue.start_ms)
        };
        let mut counts = vec![(0_usize, 0_usize); is_main.len()];
        for (cue, language) in &self.cues {
            if let Some((all, together)) = other(*language).and_then(|index| counts.get_mut(index)) {
                *all += 1;
                *together += usize::from(is_shown_with_main(cue));
            }
        }
        let left_out = &mut self.left_out;
        self.cues.retain(|(_, language)| {
            let counts = other(*language).and_then(|index| counts.get(index));
            let is_translation = counts.is_some_and(|&(all, together)| together.min(times.len()) * 2 >= all);
            if is_translation {
                left_out.add(None);
            }
            !is_translation
        });
    }

    fn finish(mut self) -> Result<CueCollector, CaptionError> {
        let main = self.main_language().cloned();
        if let Some(main) = &main {
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
mod tests {
    use super::LanguageTag;
    use crate::captions::{CaptionErrorKind, parse, parse_with_report};

    fn check(body: &str, expect: &[(&str, u64, u64)]) {
        let document = format!(
            "<?xml version=\"1.0\"?><tt xmlns=\"http://www.w3.org/ns/ttml\" xmlns:ttp=\"p\" \
             ttp:frameRate=\"25\">\
             <head><metadata><ttm:title>no words</ttm:title></metadata><styling><style xml:id=\"s\"/>\
             </styling></head>\
             {body}</tt>"
        );
        let segments = parse(document.as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.end_ms())).collect();
        assert_eq!(found, expect, "{body:?}");
    }

    #[test]
    fn ttml_paragraphs_become_segments() {
        check(
            "<body><div>\n<p begin=\"00:00:01.000\" end=\"00:00:02:05\">one<br/>two</p>\n\
             <p begin=\"3s\" dur=\"500ms\">\n  a <span tts:color=\"red\">red &amp;\n  </span> word </p>\
             <p begin=\"100f\" end=\"125f\"><metadata>none</metadata>frames</p><p begin=\"6s\" \
             end=\"7s\"> </p></div></body>",
            &[("one\ntwo", 1_000, 2_200), ("a red & word", 3_000, 3_500), ("frames", 4_000, 5_000)],
        );
    }

    #[test]
    fn ttml_times_are_relative_to_parent() {
        check(
            "<body begin=\"10s\"><div begin=\"1s\" end=\"5s\"><p begin=\"1s\" end=\"2s\">a</p><p \
             begin=\"2s\">b</p>\
             <p begin=\"3s\" dur=\"9s\">c</p></div></body>",
            &[("a", 12_000, 13_000), ("b", 13_000, 15_000), ("c", 14_000, 15_000)],
        );
        check("<body><p>always</p></body>", &[("always", 0, 0)]);
        check("<body><p begin=\"2s\" end=\"1s\">backwards</p></body>", &[("backwards", 2_000, 2_000)]);
    }

    #[test]
    fn ttml_timed_spans_in_untimed_paragraph_are_segments() {
        check(
            "<body><p><span begin=\"1s\" end=\"2s\">a</span> <span begin=\"2s\" end=\"3s\">b<span \
             begin=\"0s\">c</span></span></p>\
             <p begin=\"4s\" end=\"6s\"><span begin=\"0s\">d</span> <span begin=\"1s\">e</span></p></body>",
            &[("a", 1_000, 2_000), ("bc", 2_000, 3_000), ("d e", 4_000, 6_000)],
        );
    }

    #[test]
    fn ttml_preserve_keeps_white_space() {
        check(
            "<body xml:space=\"preserve\"><p begin=\"1s\" end=\"2s\"> a\n  b </p></body>",
            &[(" a\n  b ", 1_000, 2_000)],
        );
    }

    #[test]
    fn ttml_change_of_white_space_keeps_words_apart() {
        for (text, expect) in [
            ("one <span xml:space=\"preserve\">two</span> three", "one two three"),
            ("one <span xml:space=\"preserve\"> two  </span> three", "one two  three"),
            ("one<span xml:space=\"preserve\">two</span>three", "onetwothree"),
            ("one <span xml:space=\"preserve\"></span>two", "one two"),
        ] {
            check(&format!("<body><p begin=\"1s\" end=\"2s\">{text}</p></body>"), &[(expect, 1_000, 2_000)]);
        }
    }

    #[test]
    fn ttml_bare_numbers_are_seconds() {
        check(
            "<body dur=\"20\"><div><p begin=\"9.731\" end=\"12.5\">a</p></div></body>",
            &[("a", 9_731, 12_500)],
        );
    }

    #[test]
    fn ttml_absolute_times_of_nested_elements_are_recognized() {
        check(
            "<body dur=\"2:00\"><div begin=\"0.312\" end=\"20\"><p begin=\"0.312\" end=\"9.5\">a</p></div>\
             <div begin=\"1:01.2\" end=\"1:20\"><p begin=\"1:02.345\" end=\"1:05\"><span begin=\"1:02.345\">b</span>\
             </p></div></body>",
            &[("a", 312, 9_500), ("b", 62_345, 65_000)],
        );
        // One paragraph that is outside its parent as it is written: all times are relative.
        check(
            "<body><div begin=\"10s\" end=\"15s\"><p begin=\"12s\" end=\"13s\">late</p></div>\
             <div begin=\"20s\" end=\"25s\"><p begin=\"1s\" end=\"2s\">b</p></div></body>",
            &[("b", 21_000, 22_000), ("late", 22_000, 22_000)],
        );
        // A paragraph without text shows nothing about the times.
        check(
            "<body><div begin=\"10s\" end=\"15s\"><p begin=\"12s\" end=\"13s\"> </p></div>\
             <div begin=\"1s\" end=\"20s\"><p begin=\"2s\" end=\"3s\">b</p></div></body>",
            &[("b", 3_000, 4_000)],
        );
        check(
            "<body><div begin=\"10s\" end=\"100s\"><div begin=\"50s\" end=\"90s\">\
             <p begin=\"55s\" end=\"70s\">nested</p></div></div></body>",
            &[("nested", 55_000, 70_000)],
        );
    }

    #[test]
    fn ttml_rolling_lines_appear_once() {
        let p = |begin: &str, end: &str, text: &str| format!("<p begin=\"{begin}\" end=\"{end}\">{text}</p>");
        let body = |paragraphs: [String; 3]| format!("<body><div>{}</div></body>", paragraphs.concat());
        check(
            &body([p("0s", "2.99s", "so we"), p("2.99s", "3s", "so we"), p("3s", "5s", "so we<br/>met him")]),
            &[("so we", 0, 2_990), ("met him", 3_000, 5_000)],
        );
        check(
            &body([p("0s", "1s", "No."), p("1s", "2s", "No."), p("2.001s", "3s", "No. Never.")]),
            &[("No.", 0, 1_000), ("No.", 1_000, 2_000), ("No. Never.", 2_001, 3_000)],
        );
        // The words of lyrics repeat within a line, and a cue without an end is no filler.
        check(
            &body([p("0s", "1s", "La"), p("1s", "2s", "La la"), p("2s", "3s", "La la la")]),
            &[("La", 0, 1_000), ("La la", 1_000, 2_000), ("La la la", 2_000, 3_000)],
        );
        check(
            "<body><p begin=\"0s\" end=\"1s\">No.</p><p begin=\"1s\">No.</p></body>",
            &[("No.", 0, 1_000), ("No.", 1_000, 1_000)],
        );
    }

    /// Checks the texts, the language and the number of cues that are left out.
    fn check_languages(root: &str, body: &str, expect: (&[&str], Option<&str>, u64)) {
        let document = format!("<tt {root}><body>{body}</body></tt>");
        let found = parse_with_report(document.as_bytes()).unwrap();
        let texts: Vec<_> = found.segments.iter().map(|segment| segment.text.as_str()).collect();
        let language = found.language.as_ref().map(LanguageTag::as_str);
        assert_eq!((texts.as_slice(), language, found.left_out.count), expect, "{document}");
    }

    #[test]
    fn ttml_translations_are_left_out() {
        let p = |begin: u64, text: &str| format!("<p begin=\"{begin}s\" end=\"{}s\">{text}</p>", begin + 1);
        let english = format!("<div xml:lang=\"en-US\">{}{}</div>", p(1, "Hello"), p(3, "Bye"));
        let french = format!("<div xml:lang=\"fr\">{}{}</div>", p(1, "Bonjour"), p(3, "Adieu"));
        let both = format!("{french}{english}");
        check_languages("xml:lang=\"en\"", &both, (&["Hello", "Bye"], Some("en"), 2));
        check_languages("", &both, (&["Bonjour", "Adieu"], Some("fr"), 2));
        check_languages("xml:lang=\"de\"", &english, (&["Hello", "Bye"], Some("en-US"), 0));
        check_languages("xml:lang=\"\"", &french, (&["Bonjour", "Adieu"], Some("fr"), 0));
        let unnamed = english.replace("en-US", "und");
        check_languages("xml:lang=\"en\"", &unnamed, (&["Hello", "Bye"], Some("en"), 0));
        // A second language at other times or in a paragraph is speech, and so is one beside few cues.
        let later = format!("{english}<div xml:lang=\"fr\">{}</div>", p(5, "Merci"));
        check_languages("xml:lang=\"en\"", &later, (&["Hello", "Bye", "Merci"], Some("en"), 0));
        check_languages("", &later, (&["Hello", "Bye", "Merci"], None, 0));
        let paragraph = format!("{}<p xml:lang=\"fr\" begin=\"1s\" end=\"2s\">Bonjour</p>", p(1, "Hello"));
        check_languages("xml:lang=\"en\"", &paragraph, (&["Hello", "Bonjour"], Some("en"), 0));
        let words: String = (0..1_000).map(|second| p(second, "mot")).collect();
        let credit = format!("<p begin=\"0s\" end=\"3600s\">Credit</p><div xml:lang=\"fr\">{words}</div>");
        let texts = [&["Credit"][..], &["mot"; 1_000]].concat();
        check_languages("xml:lang=\"en\"", &credit, (&texts, Some("en"), 0));
    }

    #[test]
    fn ttml_unreadable_body_returns_error_kind() {
        let kind = |body: &str| parse(body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("<tt><body/></tt>"), CaptionErrorKind::NoCues);
        assert_eq!(kind("<tt><body><p begin=\"1s\">cut"), CaptionErrorKind::Malformed);
    }
}
