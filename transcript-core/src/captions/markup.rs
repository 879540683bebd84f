//! Formatting tags of the platforms, recognized by name.
//!
//! Anything else is text: `List<T>`, `a < b` and `<inaudible>` stay. Only in WebVTT, which has references for angle
//! brackets in its text, are there voices, languages and classes of every tag.

use std::{borrow::Cow, ops::Range};

use html_escape::decode_html_entities_to_string;

use super::{time_marks::TimeMark, timing::parse_timestamp};

/// Format that a marked up text is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MarkupFormat {
    /// WebVTT.
    WebVtt,
    /// Any other format: angle brackets may be text.
    #[default]
    Other,
}

/// Text allowed between a tag's name and `>`, besides a slash, and in WebVTT classes (`c.yellow`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkupAnnotation {
    /// Attributes, each with a value: `<b class="x">`.
    Attributes,
    /// Anything that begins with an attribute, for names that are no words: `<font face=Comic Sans MS>`.
    AnyAttributes,
    /// Anything, in WebVTT only: `<v Ann Lee>`, `<lang en>`.
    AnyInWebVtt,
}

const TAGS: [(&str, MarkupAnnotation); 15] = [
    ("b", MarkupAnnotation::Attributes),
    ("i", MarkupAnnotation::Attributes),
    ("u", MarkupAnnotation::Attributes),
    ("s", MarkupAnnotation::Attributes),
    ("em", MarkupAnnotation::Attributes),
    ("strong", MarkupAnnotation::Attributes),
    ("font", MarkupAnnotation::AnyAttributes),
    ("span", MarkupAnnotation::AnyAttributes),
    ("c", MarkupAnnotation::Attributes),
    ("v", MarkupAnnotation::AnyInWebVtt),
    ("lang", MarkupAnnotation::AnyInWebVtt),
    ("ruby", MarkupAnnotation::Attributes),
    ("rt", MarkupAnnotation::Attributes),
    ("br", MarkupAnnotation::Attributes),
    ("X-word-ms", MarkupAnnotation::AnyAttributes),
];

/// Tags with which recognizers highlight the word that is being spoken.
const HIGHLIGHTS: [&str; 4] = ["u", "b", "font", "c"];

/// Names of ASS overrides, as found in SRT and WebVTT files (`{\an8}`).
const OVERRIDES: &[&str] = &[
    "an", "a", "pos", "move", "fade", "fad", "org", "fs", "fn", "i", "b", "u", "s", "c", "q", "1c", "2c",
    "3c", "4c", "alpha", "1a", "2a", "3a", "4a", "bord", "xbord", "ybord", "shad", "xshad", "yshad", "be",
    "blur", "fscx", "fscy", "fsp", "frx", "fry", "frz", "fr", "fax", "fay", "fe", "k", "K", "kf", "ko", "kt",
    "t", "r", "p", "pbo", "clip", "iclip",
];

/// Text without its formatting.
#[derive(Debug)]
pub(crate) struct StrippedMarkup<'a> {
    /// The text; a line break tag becomes a line break.
    pub(crate) text: Cow<'a, str>,
    /// The times between its words (`<00:00:01.280>`).
    pub(crate) marks: Vec<TimeMark>,
    /// The byte range of the only highlighted part; all of the text if there are several.
    pub(crate) highlight: Option<Range<usize>>,
}

/// Removes the formatting tags.
///
/// Entities are not decoded: decode them afterwards, so that an escaped `<` is never taken for the beginning
/// of a tag.
pub(crate) fn strip(text: &str) -> StrippedMarkup<'_> {
    strip_with(text, MarkupFormat::Other, |_| None)
}

/// Removes the formatting tags of a format like [`strip`], and ASS overrides too.
pub(crate) fn strip_with_overrides(text: &str, format: MarkupFormat) -> StrippedMarkup<'_> {
    strip_with(text, format, override_length)
}

fn strip_with(
    text: &str,
    format: MarkupFormat,
    other_length: impl Fn(&str) -> Option<usize>,
) -> StrippedMarkup<'_> {
    let mut stripped = String::new();
    let mut marks = Vec::new();
    let mut highlights = Highlights::default();
    let mut ruby = Ruby::default();
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(['<', '{'])) {
        let start = from + found;
        let rest = text.get(start..).unwrap_or("");
        let tag = MarkupTag::parse(rest, format);
        let Some(length) = tag.as_ref().map(|tag| tag.length).or_else(|| other_length(rest)) else {
            from = start + 1;
            continue;
        };
        stripped.push_str(text.get(copied..start).unwrap_or(""));
        match tag.map(|tag| tag.kind) {
            Some(MarkupTagKind::Break) => stripped.push('\n'),
            Some(MarkupTagKind::Time(time_ms)) => marks.push(TimeMark { offset: stripped.len(), time_ms }),
            Some(MarkupTagKind::Highlight { is_end }) => highlights.add_tag(is_end, stripped.len()),
            Some(MarkupTagKind::Ruby { is_end: false }) => ruby.is_open = true,
            Some(MarkupTagKind::Ruby { is_end: true }) => {
                ruby.end_reading(&mut stripped, &mut marks);
                ruby.is_open = false;
            }
            Some(MarkupTagKind::Reading { is_end: false }) => ruby.begin_reading(&stripped, &marks),
            Some(MarkupTagKind::Reading { is_end: true }) => ruby.end_reading(&mut stripped, &mut marks),
            Some(MarkupTagKind::Formatting) | None => {}
        }
        from = start + length;
        copied = from;
    }
    if copied == 0 {
        return StrippedMarkup { text: Cow::Borrowed(text), marks, highlight: None };
    }
    stripped.push_str(text.get(copied..).unwrap_or(""));
    let highlight = highlights.only(stripped.len());
    StrippedMarkup { text: Cow::Owned(stripped), marks, highlight }
}

/// Text with readings above it, which are not spoken in addition: `<ruby>漢<rt>かん</rt></ruby>`.
#[derive(Default)]
struct Ruby {
    is_open: bool,
    /// Length of the text, and number of marks, before the open reading.
    reading: Option<(usize, usize)>,
}

impl Ruby {
    /// Begins a reading; outside of a ruby text there is none.
    fn begin_reading(&mut self, text: &str, marks: &[TimeMark]) {
        if self.is_open {
            self.reading.get_or_insert((text.len(), marks.len()));
        }
    }

    /// Removes the reading that ends here. One without an end stays: it may be all that follows.
    fn end_reading(&mut self, text: &mut String, marks: &mut Vec<TimeMark>) {
        if let Some((length, count)) = self.reading.take() {
            text.truncate(length);
            marks.truncate(count);
        }
    }
}

/// Highlighted parts of a text; of nested tags the outer one counts.
#[derive(Default)]
struct Highlights {
    open: usize,
    count: usize,
    first: Range<usize>,
}

impl Highlights {
    fn add_tag(&mut self, is_end: bool, offset: usize) {
        if !is_end {
            if self.count == 0 {
                self.first = offset..offset;
            }
            self.count += usize::from(self.open == 0);
            self.open += 1;
        } else if self.open > 0 {
            self.open -= 1;
            if self.open == 0 && self.count == 1 {
                self.first.end = offset;
            }
        }
    }

    /// The only part, or the whole text of this length if there are several or one has no end.
    fn only(self, length: usize) -> Option<Range<usize>> {
        match self.count {
            0 => None,
            1 if self.open == 0 => Some(self.first),
            _ => Some(0..length),
        }
    }
}

struct MarkupTag {
    length: usize,
    kind: MarkupTagKind,
}

/// What a tag adds to the text.
enum MarkupTagKind {
    Formatting,
    /// Beginning or end of a highlighted part.
    Highlight {
        is_end: bool,
    },
    /// Beginning or end of a text with readings.
    Ruby {
        is_end: bool,
    },
    /// Beginning or end of a reading.
    Reading {
        is_end: bool,
    },
    Break,
    /// The time of what follows, in milliseconds.
    Time(i64),
}

impl MarkupTag {
    /// Parses the formatting tag at the beginning of a text that begins with `<`, if there is one.
    fn parse(text: &str, format: MarkupFormat) -> Option<Self> {
        let inner = text.strip_prefix('<')?;
        // No tag has a `<` inside: stopping there keeps a row of unclosed tags linear.
        let end = inner.find(['<', '>'])?;
        if !inner.get(end..)?.starts_with('>') {
            return None;
        }
        let (inner, length) = (inner.get(..end)?, end + 2);
        if let Some(time_ms) = parse_timestamp(inner) {
            return Some(Self { length, kind: MarkupTagKind::Time(time_ms) });
        }
        let (inner, is_end) = inner.strip_prefix('/').map_or((inner, false), |inner| (inner, true));
        let name_end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(inner.len());
        let (name, rest) = inner.split_at_checked(name_end)?;
        let &(known, annotation) = TAGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        let kind = match known {
            "br" => MarkupTagKind::Break,
            "ruby" => MarkupTagKind::Ruby { is_end },
            "rt" => MarkupTagKind::Reading { is_end },
            _ if HIGHLIGHTS.contains(&known) => MarkupTagKind::Highlight { is_end },
            _ => MarkupTagKind::Formatting,
        };
        let is_tag = match format {
            MarkupFormat::WebVtt => is_annotation_in_webvtt(rest, annotation),
            MarkupFormat::Other if annotation == MarkupAnnotation::AnyInWebVtt => false,
            // Programs that make SRT of YouTube's WebVTT leave its colors.
            MarkupFormat::Other if known == "c" && !is_end => {
                name == "c" && (rest.is_empty() || is_class(rest))
            }
            // `a <b > c` is text.
            MarkupFormat::Other if rest.trim().is_empty() => rest.is_empty() || is_end || known.len() > 1,
            MarkupFormat::Other => is_annotation(rest, annotation),
        };
        is_tag.then_some(Self { length, kind })
    }
}

/// Whether the text after a tag's name can belong to it in WebVTT, which allows anything after a class.
fn is_annotation_in_webvtt(rest: &str, kind: MarkupAnnotation) -> bool {
    rest.starts_with('.')
        || rest.trim().is_empty()
        || kind == MarkupAnnotation::AnyInWebVtt && rest.starts_with(char::is_whitespace)
        || is_annotation(rest, kind)
}

/// Whether a text is classes and nothing else: `.colorE5E5E5`.
fn is_class(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
    };
    text.strip_prefix('.').is_some_and(|names| names.split('.').all(is_name))
}

/// Whether the text after a tag's name is attributes, or a slash; `if a <b and c> d` is not a tag.
fn is_annotation(rest: &str, kind: MarkupAnnotation) -> bool {
    let rest = rest.trim_end();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.trim().is_empty() {
        return true;
    }
    if !rest.starts_with(char::is_whitespace) {
        return false;
    }
    let mut rest = rest.trim_start();
    while !rest.is_empty() {
        let Some(after) = after_attribute(rest) else { return false };
        if kind == MarkupAnnotation::AnyAttributes {
            return true;
        }
        rest = after.trim_start();
    }
    true
}

/// The text after the attribute with a value that a text begins with, if there is one.
fn after_attribute(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
    let name_end = text.find(|c: char| !is_name(c))?;
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let value = text.get(name_end..)?.trim_start().strip_prefix('=')?.trim_start();
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => Some(value.get(1..)?.split_once(quote).map_or("", |(_, after)| after)),
        _ => value.find(char::is_whitespace).map_or(Some(""), |end| value.get(end..)),
    }
}

/// Length of the ASS override at the beginning of a text, if there is one: `{\an8}`, `{\b1\i1}`.
fn override_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("{\\")?;
    let end = inner.find(['{', '}', '\n'])?;
    if !inner.get(end..)?.starts_with('}') {
        return None;
    }
    let is_override = |part: &str| {
        OVERRIDES
            .iter()
            .any(|&name| part.strip_prefix(name).is_some_and(|value| is_override_value(name, value)))
    };
    inner.get(..end)?.split('\\').all(is_override).then_some(end + 3)
}

/// Whether a text can be the value of the ASS override with this name.
///
/// `{\alpha}` is a formula, and `{\t}` a part of a program.
fn is_override_value(name: &str, value: &str) -> bool {
    let is_number = |c: u8| c.is_ascii_digit() || b"ABCDEF&H(),.+- ".contains(&c);
    match name {
        "fn" => true,
        "alpha" => value.starts_with('&') && value.bytes().all(is_number),
        "t" => value.starts_with('(') && value.bytes().all(is_number),
        // The commands of a drawing are letters.
        "clip" | "iclip" => {
            value.starts_with('(') && value.bytes().all(|c| is_number(c) || b"mnlbspc".contains(&c))
        }
        _ => value.bytes().all(is_number),
    }
}

/// Characters of the references `&#128;` to `&#159;` in HTML: those of Windows-1252.
const WINDOWS_1252: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ";

/// Appends a text to another with its character references decoded, as browsers decode them.
pub(crate) fn decode_references(text: &str, decoded: &mut String) {
    if !text.contains('&') {
        decoded.push_str(text);
        return;
    }
    let start = decoded.len();
    decode_html_entities_to_string(text, decoded);
    let is_control = |c: char| matches!(c, '\u{80}'..='\u{9F}');
    // Those that the text itself has come from no reference.
    if !text.contains(is_control)
        && let Some(new) = decoded.get(start..)
        && new.contains(is_control)
    {
        let letter = |c: char| match c {
            '\u{80}'..='\u{9F}' => WINDOWS_1252.chars().nth(u32::from(c) as usize - 0x80).unwrap_or(c),
            _ => c,
        };
        let new: String = new.chars().map(letter).collect();
        decoded.truncate(start);
        decoded.push_str(&new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        for format in [MarkupFormat::WebVtt, MarkupFormat::Other] {
            assert_eq!(strip_with_overrides(text, format).text, expect, "{text:?}");
        }
    }

    #[test]
    fn markup_voices_and_classes_are_tags_in_webvtt_only() {
        for (text, expect) in [
            ("<c.yellow.bg_x>a</c><c>b</c><c.a >c</c>", "abc"),
            ("<i.loud far off>a</i><ruby.x y>b<rt.z z>c</rt></ruby>", "ab"),
            ("<v Ann Lee>hi</v> <v.loud Bob>ho", "hi ho"),
            ("<lang en-GB>hi</lang>", "hi"),
            ("<b >a</b >", "a"),
        ] {
            assert_eq!(strip_with_overrides(text, MarkupFormat::WebVtt).text, expect, "{text:?}");
        }
        for text in [
            "the sign says <V.O. ANN> and <i.e. the bridge> ok",
            "<v Ann> <v> <lang x> <C.O. Lee> <c.a b> <s.o.>",
            "if a <b > c, vitamin <C> and <v/>",
        ] {
            assert_eq!(strip_with_overrides(text, MarkupFormat::Other).text, text);
        }
    }

    #[test]
    fn markup_formatting_tags_are_removed() {
        for (text, expect) in [
            ("<i>so</i> <B>loud</B>", "so loud"),
            ("<c.colorE5E5E5.b_x>a</c><c>b</c><br >", "ab\n"),
            ("<ruby>漢<rt>かん</rt></ruby>", "漢"),
            ("<ruby>漢<rt><i>かん</i></rt>字<rt>じ</ruby>です", "漢字です"),
            ("<ruby>漢<rt>かん", "漢かん"),
            ("漢<rt>かん</rt><ruby>字</ruby>", "漢かん字"),
            ("<font color=\"#fff\" size='2'>x</font><font color = red>y", "xy"),
            ("<font color=red face=Comic Sans MS>x</font><b class=\"a b\" id=c>y</b>", "xy"),
            ("<span class=\"a\">x</span>", "x"),
            ("<em>a</em><strong>b</strong><u>c</u><s>d</s>", "abcd"),
            ("<X-word-ms ms=10,20 index=1 character_ranges=0-2>Do come</X-word-ms>", "Do come"),
            ("a<br>b<br/>c<BR />d", "a\nb\nc\nd"),
            ("now<00:01:02.345><c> then</c>", "now then"),
            ("{\\an8}up {\\b1\\i1}here{\\pos(192,210)}", "up here"),
            ("{\\c&H00FF00&}green{\\fnComic Sans}", "green"),
            ("{\\fad(200,200)\\blur3}Hello {\\k20}wor{\\kf15}ld", "Hello world"),
            ("{\\bord2\\shad0\\alpha&HFF&\\1c&H00FF00&\\r}a", "a"),
            ("{\\p0\\be1\\frz-10\\fscx120\\fax0.1}b", "b"),
            ("{\\clip(m 0 0 l 100 0 100 50)}a{\\t(0,500,\\fs30\\alpha&HFF&)}b", "ab"),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn markup_other_text_is_unchanged() {
        for text in [
            "List<T> and Vec<String>",
            "a < b and c > d",
            "if a <b and c> d",
            "if a <b x=1 or c> then",
            "if a <b x+y=1> then",
            "i <i = 3> j",
            "<inaudible> <music playing>",
            "<bold>x</bold> <code>",
            "an open <i",
            "<v",
            "<<<<",
            "<>",
            "</>",
            "x <3 y",
            "<12:30 train>",
            "{\\displaystyle x} {curly} {\\an8 {\\",
            "{\\alpha} {\\beta} {\\frac} {\\rho} {\\pi} {\\t} {\\bad} {\\clip}",
            "&lt;i&gt;",
        ] {
            check(text, text);
        }
        check("<<i>i>", "<i>");
        assert_eq!(strip("{\\an8}").text, "{\\an8}");
    }

    #[test]
    fn markup_inline_times_keep_their_place() {
        let marks = |text: &str| -> Vec<_> {
            strip(text).marks.iter().map(|mark| (mark.offset, mark.time_ms)).collect()
        };
        assert_eq!(marks("<b>é</b><00:00:01.280> b<br><00:02,5>"), [(2, 1_280), (5, 2_500)]);
        assert_eq!(marks("<00:01.280>"), [(0, 1_280)]);
        assert_eq!(marks("<c>a</c>"), []);
        assert_eq!(marks("<ruby>漢<rt><00:01.000>かん</rt></ruby><00:02.000>字"), [(3, 2_000)]);
    }

    #[test]
    fn markup_highlight_is_only_marked_part() {
        for (text, expect) in [
            ("<u>é</u> b", Some(0..2)),
            ("a <font color=\"#0f0\"><b>b</b></font> c", Some(2..3)),
            ("<i>a</i> b", None),
            ("<u>a</u> <u>b</u> c", Some(0..5)),
            ("a <u>b", Some(0..3)),
            ("a </u>b", None),
            ("a b", None),
        ] {
            assert_eq!(strip(text).highlight, expect, "{text:?}");
        }
    }

    #[test]
    fn markup_references_are_those_of_html() {
        for (text, expect) in [
            ("don&#146;t &#150; &#x93;x&#148; &amp; &#129;", "don’t – “x” & \u{81}"),
            ("&#128;&#159;&eacute;", "€Ÿé"),
            ("&amp;#146;", "&#146;"),
            ("a\u{92} &amp;", "a\u{92} &"),
            ("a", "a"),
        ] {
            let mut decoded = "x".to_owned();
            decode_references(text, &mut decoded);
            assert_eq!(decoded, format!("x{expect}"), "{text:?}");
        }
    }
}
