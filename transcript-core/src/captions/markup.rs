//! Formatting tags of the platforms, recognized by name.
//!
//! Anything else is text: `List<T>`, `a < b` and `<inaudible>` stay.

use std::borrow::Cow;

use super::timing::parse_timestamp;

/// Text allowed between a tag's name and `>`, besides classes (`c.yellow`) and a slash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkupAnnotation {
    /// Attributes: `<font color="#fff">`.
    Attributes,
    /// Anything: `<v Ann Lee>`, `<lang en>`.
    Any,
}

const TAGS: [(&str, MarkupAnnotation); 15] = [
    ("b", MarkupAnnotation::Attributes),
    ("i", MarkupAnnotation::Attributes),
    ("u", MarkupAnnotation::Attributes),
    ("s", MarkupAnnotation::Attributes),
    ("em", MarkupAnnotation::Attributes),
    ("strong", MarkupAnnotation::Attributes),
    ("font", MarkupAnnotation::Attributes),
    ("span", MarkupAnnotation::Attributes),
    ("c", MarkupAnnotation::Attributes),
    ("v", MarkupAnnotation::Any),
    ("lang", MarkupAnnotation::Any),
    ("ruby", MarkupAnnotation::Attributes),
    ("rt", MarkupAnnotation::Attributes),
    ("br", MarkupAnnotation::Attributes),
    ("X-word-ms", MarkupAnnotation::Attributes),
];

/// Names of ASS overrides found in SRT and WebVTT files (`{\an8}`).
const OVERRIDES: [&str; 15] =
    ["an", "a", "pos", "move", "fade", "fad", "org", "fs", "fn", "i", "b", "u", "s", "c", "q"];

/// Text without its formatting.
#[derive(Debug)]
pub(crate) struct StrippedMarkup<'a> {
    /// The text; a line break tag becomes a line break.
    pub(crate) text: Cow<'a, str>,
    /// Whether there were times between its words (`<00:00:01.280>`).
    pub(crate) has_inline_times: bool,
}

/// Removes the formatting tags.
///
/// Entities are not decoded: decode them afterwards, so that an escaped `<` is never taken for the beginning
/// of a tag.
pub(crate) fn strip(text: &str) -> StrippedMarkup<'_> {
    strip_with(text, |_| None)
}

/// Removes formatting tags like [`strip`], and ASS overrides too.
pub(crate) fn strip_with_overrides(text: &str) -> StrippedMarkup<'_> {
    strip_with(text, override_length)
}

fn strip_with(text: &str, other_length: impl Fn(&str) -> Option<usize>) -> StrippedMarkup<'_> {
    let mut stripped = String::new();
    let mut has_inline_times = false;
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(['<', '{'])) {
        let start = from + found;
        let rest = text.get(start..).unwrap_or("");
        let (length, replacement) = match MarkupTag::parse(rest) {
            Some(tag) => {
                has_inline_times |= tag.is_time;
                (tag.length, if tag.is_break { "\n" } else { "" })
            }
            None => match other_length(rest) {
                Some(length) => (length, ""),
                None => {
                    from = start + 1;
                    continue;
                }
            },
        };
        stripped.push_str(text.get(copied..start).unwrap_or(""));
        stripped.push_str(replacement);
        from = start + length;
        copied = from;
    }
    if copied == 0 {
        return StrippedMarkup { text: Cow::Borrowed(text), has_inline_times };
    }
    stripped.push_str(text.get(copied..).unwrap_or(""));
    StrippedMarkup { text: Cow::Owned(stripped), has_inline_times }
}

struct MarkupTag {
    length: usize,
    is_break: bool,
    is_time: bool,
}

impl MarkupTag {
    /// Parses the formatting tag at the beginning of a text that begins with `<`, if there is one.
    fn parse(text: &str) -> Option<Self> {
        let inner = text.strip_prefix('<')?;
        // No tag has a `<` inside: stopping there keeps a row of unclosed tags linear.
        let end = inner.find(['<', '>'])?;
        if !inner.get(end..)?.starts_with('>') {
            return None;
        }
        let (inner, length) = (inner.get(..end)?, end + 2);
        if parse_timestamp(inner).is_some() {
            return Some(Self { length, is_break: false, is_time: true });
        }
        let inner = inner.strip_prefix('/').unwrap_or(inner);
        let name_end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(inner.len());
        let (name, rest) = inner.split_at_checked(name_end)?;
        let &(known, annotation) = TAGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        is_annotation(rest, annotation).then_some(Self { length, is_break: known == "br", is_time: false })
    }
}

/// Whether the text after a tag's name can belong to it; `if a <b and c> d` is not a tag.
fn is_annotation(rest: &str, kind: MarkupAnnotation) -> bool {
    let rest = rest.trim_end().strip_suffix('/').unwrap_or(rest);
    // Speech has no classes, and WebVTT allows anything after them.
    if rest.starts_with('.') || rest.trim().is_empty() {
        return true;
    }
    if !rest.starts_with(char::is_whitespace) {
        return false;
    }
    let attribute_name =
        rest.trim_start().split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or("");
    kind == MarkupAnnotation::Any
        || (rest.contains('=')
            && rest
                .trim_start()
                .get(attribute_name.len()..)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
            && attribute_name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Length of the ASS override at the beginning of a text, if there is one: `{\an8}`, `{\b1\i1}`.
fn override_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("{\\")?;
    let end = inner.find(['{', '}', '\n'])?;
    if !inner.get(end..)?.starts_with('}') {
        return None;
    }
    let is_override = |part: &str| {
        OVERRIDES.iter().any(|name| {
            part.strip_prefix(name).is_some_and(|value| {
                *name == "fn" || value.bytes().all(|c| c.is_ascii_digit() || b"ABCDEF&H(),.- ".contains(&c))
            })
        })
    };
    inner.get(..end)?.split('\\').all(is_override).then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(strip_with_overrides(text).text, expect, "{text:?}");
    }

    #[test]
    fn markup_formatting_tags_are_removed() {
        for (text, expect) in [
            ("<i>so</i> <B>loud</B>", "so loud"),
            ("<c.yellow.bg_x>a</c><c>b</c><c.a >c</c>", "abc"),
            ("<i.loud far off>a</i><ruby.x y>b<rt.z z>c</rt></ruby>", "abc"),
            ("<v Ann Lee>hi</v> <v.loud Bob>ho", "hi ho"),
            ("<lang en-GB>hi</lang>", "hi"),
            ("<ruby>漢<rt>かん</rt></ruby>", "漢かん"),
            ("<font color=\"#fff\" size='2'>x</font><font color = red>y", "xy"),
            ("<span class=\"a\">x</span>", "x"),
            ("<em>a</em><strong>b</strong><u>c</u><s>d</s>", "abcd"),
            ("<X-word-ms ms=10,20 index=1 character_ranges=0-2>Do come</X-word-ms>", "Do come"),
            ("a<br>b<br/>c<BR />d", "a\nb\nc\nd"),
            ("now<00:01:02.345><c> then</c>", "now then"),
            ("{\\an8}up {\\b1\\i1}here{\\pos(192,210)}", "up here"),
            ("{\\c&H00FF00&}green{\\fnComic Sans}", "green"),
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
            "&lt;i&gt;",
        ] {
            check(text, text);
        }
        check("<<i>i>", "<i>");
        assert_eq!(strip("{\\an8}").text, "{\\an8}");
    }

    #[test]
    fn markup_inline_times_are_detected() {
        assert!(strip("a<00:00:01.280> b").has_inline_times);
        assert!(strip("<00:01.280>").has_inline_times);
        assert!(!strip("<c>a</c>").has_inline_times);
    }
}
