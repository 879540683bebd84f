//! TTML: `<tt>` with paragraphs that have a begin and an end or a duration.
//!
//! Times of nested elements are relative to their parent's begin. White space is folded as TTML defines unless
//! `xml:space="preserve"` is set; `<br/>` is a line break. A paragraph without times whose spans have times
//! becomes one segment per span. Styles, regions and metadata are ignored.

use super::{
    CaptionError,
    cue_collector::CueCollector,
    ttml_time::TimeBase,
    xml::{XmlDocument, XmlElement, XmlNode},
};
use crate::transcript::LanguageTag;

/// Open element: its times and how its white space counts.
#[derive(Clone, Copy)]
struct TtmlScope {
    begin: i64,
    end: Option<i64>,
    preserves_space: bool,
    kind: TtmlElementKind,
    /// Whether the element itself has times.
    is_timed: bool,
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

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let (mut document, root) = XmlDocument::open(text, "tt")?;
    let base = TimeBase::from_root(&root);
    let outer = TtmlScope {
        begin: 0,
        end: None,
        preserves_space: false,
        kind: TtmlElementKind::Inline,
        is_timed: false,
    };
    let mut scopes = vec![scope(&root, outer, &base, &[])];
    // The segments that are being read: a paragraph, and possibly a timed span in it.
    let mut open: Vec<TtmlText> = Vec::new();
    let mut cues = CueCollector::default();
    cues.language = root.attribute("lang").and_then(|tag| LanguageTag::parse(&tag).ok());
    while let Some(node) = document.next()? {
        let parent = scopes.last().copied().unwrap_or(outer);
        match node {
            XmlNode::Open(element) => {
                let inner = scope(&element, parent, &base, &scopes);
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
                    cues.add_between(words.text, parent.begin, parent.end.unwrap_or(parent.begin))?;
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
    Ok(cues)
}

fn scope(element: &XmlElement<'_>, parent: TtmlScope, base: &TimeBase, outer: &[TtmlScope]) -> TtmlScope {
    let time = |name: &str| element.attribute(name).and_then(|value| base.milliseconds(&value));
    let (begin, end, duration) = (time("begin"), time("end"), time("dur"));
    let is_timed = begin.is_some() || end.is_some() || duration.is_some();
    let start = parent.begin.saturating_add(begin.unwrap_or(0));
    let own_end = [
        end.map(|end| parent.begin.saturating_add(end)),
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
    }
}

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
            self.text.push_str(text);
            return;
        }
        for c in text.chars() {
            // XML's white space only: a no-break space is intentional.
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
    fn ttml_unreadable_body_returns_error_kind() {
        let kind = |body: &str| parse(body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("<tt><body/></tt>"), CaptionErrorKind::NoCues);
        assert_eq!(kind("<tt><body><p begin=\"1s\">cut"), CaptionErrorKind::Malformed);
    }
}
