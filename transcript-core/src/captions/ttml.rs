//! TTML: `<tt>` with paragraphs that have a begin and an end or a duration.
//!
//! Times of nested elements count from their parent's begin. White space is folded as TTML folds it unless
//! `xml:space="preserve"` says otherwise; `<br/>` is a line break. A paragraph without times of its own whose
//! spans have times gives one segment a span. Styles, regions and metadata are ignored.

use super::{
    CaptionError,
    cues::Cues,
    ttml_time::TimeBase,
    xml::{Document, Element, Node},
};
use crate::transcript::LanguageTag;

/// An element that is open: when it is shown, and how its white space counts.
#[derive(Clone, Copy)]
struct Scope {
    begin: i64,
    end: Option<i64>,
    preserves_space: bool,
    kind: Kind,
    /// Whether the element has times of its own.
    is_timed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The text of a segment: a paragraph, or a span with times in a paragraph without.
    Segment,
    /// Text that belongs to the segment around it, or to none.
    Inline,
    /// Metadata: no words.
    Silent,
}

pub(super) fn parse(text: &str) -> Result<Cues, CaptionError> {
    let (mut document, root) = Document::open(text, "tt")?;
    let base = TimeBase::of(&root);
    let outer = Scope { begin: 0, end: None, preserves_space: false, kind: Kind::Inline, is_timed: false };
    let mut scopes = vec![scope(&root, outer, &base, &[])];
    // The segments that are being read: a paragraph, and perhaps a timed span in it.
    let mut open: Vec<Words> = Vec::new();
    let mut cues = Cues::default();
    cues.language = root.attribute("lang").and_then(|tag| LanguageTag::parse(&tag).ok());
    while let Some(node) = document.next()? {
        let around = scopes.last().copied().unwrap_or(outer);
        match node {
            Node::Open(element) => {
                let inner = scope(&element, around, &base, &scopes);
                if inner.kind == Kind::Segment {
                    open.push(Words::default());
                }
                if element.name() == "br"
                    && let Some(words) = open.last_mut()
                {
                    words.line_break();
                }
                scopes.push(inner);
            }
            Node::Close => {
                scopes.pop();
                if around.kind == Kind::Segment
                    && let Some(words) = open.pop()
                {
                    cues.between(words.text, around.begin, around.end.unwrap_or(around.begin))?;
                }
            }
            Node::Text(text) => {
                if around.kind != Kind::Silent
                    && let Some(words) = open.last_mut()
                {
                    words.push(&text, around.preserves_space);
                }
            }
        }
    }
    Ok(cues)
}

fn scope(element: &Element<'_>, around: Scope, base: &TimeBase, outer: &[Scope]) -> Scope {
    let time = |name: &str| element.attribute(name).and_then(|value| base.milliseconds(&value));
    let (begin, end, duration) = (time("begin"), time("end"), time("dur"));
    let is_timed = begin.is_some() || end.is_some() || duration.is_some();
    let start = around.begin.saturating_add(begin.unwrap_or(0));
    let own_end = [
        end.map(|end| around.begin.saturating_add(end)),
        duration.map(|duration| start.saturating_add(duration)),
        around.end,
    ];
    let in_untimed_paragraph = outer.iter().any(|scope| scope.kind == Kind::Segment)
        && !outer.iter().any(|scope| scope.kind == Kind::Segment && scope.is_timed);
    let kind = match element.name() {
        _ if around.kind == Kind::Silent => Kind::Silent,
        "metadata" | "title" | "desc" | "copyright" | "agent" | "head" => Kind::Silent,
        "p" => Kind::Segment,
        "span" if is_timed && in_untimed_paragraph => Kind::Segment,
        _ => Kind::Inline,
    };
    Scope {
        begin: start,
        end: own_end.into_iter().flatten().min(),
        preserves_space: element
            .attribute("space")
            .map_or(around.preserves_space, |value| value == "preserve"),
        kind,
        is_timed,
    }
}

/// The text of a segment, with white space folded while it grows.
#[derive(Default)]
struct Words {
    text: String,
    /// Whether white space was read that is written only if more words follow on the line.
    space: bool,
}

impl Words {
    fn push(&mut self, text: &str, preserves_space: bool) {
        if preserves_space {
            self.text.push_str(text);
            return;
        }
        for c in text.chars() {
            // XML's white space only: a space that does not break is meant.
            if matches!(c, ' ' | '\t' | '\n' | '\r') {
                self.space = !self.text.is_empty() && !self.text.ends_with('\n');
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
    use crate::captions::{CaptionErrorKind, parse};

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
    fn paragraphs_are_segments() {
        check(
            "<body><div>\n<p begin=\"00:00:01.000\" end=\"00:00:02:05\">one<br/>two</p>\n\
             <p begin=\"3s\" dur=\"500ms\">\n  a <span tts:color=\"red\">red &amp;\n  </span> word </p>\
             <p begin=\"100f\" end=\"125f\"><metadata>none</metadata>frames</p><p begin=\"6s\" \
             end=\"7s\"> </p></div></body>",
            &[("one\ntwo", 1_000, 2_200), ("a red & word", 3_000, 3_500), ("frames", 4_000, 5_000)],
        );
    }

    #[test]
    fn times_count_from_the_parent() {
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
    fn timed_spans_are_segments_where_the_paragraph_has_no_times() {
        check(
            "<body><p><span begin=\"1s\" end=\"2s\">a</span> <span begin=\"2s\" end=\"3s\">b<span \
             begin=\"0s\">c</span></span></p>\
             <p begin=\"4s\" end=\"6s\"><span begin=\"0s\">d</span> <span begin=\"1s\">e</span></p></body>",
            &[("a", 1_000, 2_000), ("bc", 2_000, 3_000), ("d e", 4_000, 6_000)],
        );
    }

    #[test]
    fn white_space_is_kept_on_request() {
        check(
            "<body xml:space=\"preserve\"><p begin=\"1s\" end=\"2s\"> a\n  b </p></body>",
            &[(" a\n  b ", 1_000, 2_000)],
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let kind = |body: &str| parse(body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("<tt><body/></tt>"), CaptionErrorKind::NoCues);
        assert_eq!(kind("<tt><body><p begin=\"1s\">cut"), CaptionErrorKind::Malformed);
    }
}
