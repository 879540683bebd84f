//! YouTube's XML with milliseconds: `<timedtext format="3">`, including uploads of styling tools.
//!
//! Pens, windows and positions are ignored. Text is escaped once and stays unchanged. Ruby readings stay in the
//! brackets that the format provides for players without ruby: 漢(かん)字(じ). `<br/>` is a line break. An
//! appending paragraph (`a="1"`) only moves the lines up: it is blank and is dropped. Recognized speech has a span for
//! each word, with its offset from the paragraph's start (`<s t="90">`); the first has none.
//!
//! Padding and copies of styling tools are removed; see [`super::styling`].

use std::borrow::Cow;

use super::{
    CaptionError,
    cue_collector::CueCollector,
    decimal::milliseconds,
    styling,
    time_marks::{TimeMark, TimedLine},
    xml::{XmlDocument, XmlElement, XmlNode},
};

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let (mut document, _) = XmlDocument::open(text, "timedtext")?;
    let mut cues = CueCollector::default();
    while let Some(node) = document.next()? {
        let XmlNode::Open(element) = node else { continue };
        // The second version of the format names its paragraphs `text`.
        if !matches!(element.name(), "p" | "text") {
            continue;
        }
        let times = times(&element);
        let place = element.attribute("wp").and_then(|place| place.parse().ok());
        let line = paragraph(&mut document)?;
        if let Some((start, duration)) = times {
            cues.add_line(line, start, duration, place)?;
        } else {
            cues.count_left_out(&line.text);
        }
    }
    Ok(cues)
}

/// Start and duration in milliseconds; absent values are zero.
fn times(element: &XmlElement<'_>) -> Option<(i64, i64)> {
    let start = element.attribute("t").map_or(Some(0), |start| milliseconds(&start))?;
    let duration = element.attribute("d").and_then(|duration| milliseconds(&duration)).unwrap_or(0);
    Some((start, duration))
}

/// Reads the text of the paragraph that was just opened, up to its end.
fn paragraph(document: &mut XmlDocument<'_>) -> Result<TimedLine<'static>, CaptionError> {
    let mut words = String::new();
    let (mut marks, mut parts) = (Vec::new(), 0);
    let mut span = String::new();
    let mut depth = 1;
    while depth > 0
        && let Some(node) = document.next()?
    {
        match node {
            XmlNode::Text(text) => span.push_str(&text),
            XmlNode::Open(element) => {
                depth += 1;
                push_span(&mut words, &mut span);
                match element.name() {
                    "br" => words.push('\n'),
                    "s" => {
                        parts += 1;
                        let offset = element.attribute("t").and_then(|offset| milliseconds(&offset));
                        marks.extend(offset.map(|time_ms| TimeMark { offset: words.len(), time_ms }));
                    }
                    _ => {}
                }
            }
            XmlNode::Close => {
                depth -= 1;
                push_span(&mut words, &mut span);
            }
        }
    }
    Ok(TimedLine { text: words.into(), marks, parts })
}

/// Moves a span's text into the paragraph, without the characters that styling tools add.
fn push_span(words: &mut String, span: &mut String) {
    words.push_str(&styling::remove_padding(Cow::Borrowed(span.as_str())));
    span.clear();
}

#[cfg(test)]
mod tests {
    use crate::{
        captions::{CaptionErrorKind, parse},
        transcript::Word,
    };

    fn check(paragraphs: &str, expect: &[(&str, u64, u64)]) {
        let body = format!(
            "\u{FEFF}<?xml version=\"1.0\"?><timedtext format=\"3\"><head><pen id=\"1\" b=\"1\"/>\
             <ws id=\"0\"/>\
             <wp id=\"0\"/></head><body><w t=\"0\" id=\"1\"/>{paragraphs}</body></timedtext>"
        );
        let segments = parse(body.as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.duration_ms)).collect();
        assert_eq!(found, expect, "{paragraphs:?}");
    }

    #[test]
    fn srv3_spans_are_joined_and_appending_dropped() {
        check(
            "<p t=\"6000\" d=\"3500\" w=\"1\"><s p=\"2\" ac=\"200\">oh</s><s t=\"1000\"> no</s></p>\
             <p t=\"9600\" w=\"1\" a=\"1\">\n</p><p t=\"9639\" d=\"500\" a=\"1\">\n</p>\n\
             <p t=\"9640\" d=\"10\" a=\"1\">kept</p><p t=\"9650\"><s>[Music]</s></p><p t=\"9700\" d=\"5\">\
             </p>",
            &[("oh no", 6_000, 3_500), ("kept", 9_640, 10), ("[Music]", 9_650, 0)],
        );
    }

    #[test]
    fn srv3_offsets_are_times_of_words() {
        let body = "<timedtext format=\"3\"><body><p t=\"100\" d=\"900\"><s p=\"2\">oh</s><s t=\"90\"> no</s></p>\
                    <p t=\"400\" a=\"1\">\n</p><p t=\"500\" d=\"50\"><s>yes</s></p>\
                    <p t=\"600\" d=\"9\"><s t=\"x\">not</s> timed</p></body></timedtext>";
        let words: Vec<Vec<_>> =
            parse(body.as_bytes()).unwrap().into_iter().map(|segment| segment.words).collect();
        assert_eq!(
            words,
            [
                vec![Word::new("oh", 100, 90), Word::new("no", 190, 310)],
                vec![Word::new("yes", 500, 50)],
                Vec::new(),
            ]
        );
    }

    #[test]
    fn srv3_text_stays_unchanged() {
        for (text, expect) in [
            ("first line\nsecond", "first line\nsecond"),
            ("one<br/>two<br></br>three", "one\ntwo\nthree"),
            ("<s>two </s><s> spaces </s>", "two  spaces "),
            ("&lt;i&gt; &amp;#39; 1 &lt; 2", "<i> &#39; 1 < 2"),
            ("<s p=\"1\">漢</s><s p=\"2\">(</s><s p=\"3\">かん</s><s p=\"2\">)</s>", "漢(かん)"),
            ("คำ\u{200B}พูด", "คำ\u{200B}พูด"),
        ] {
            check(&format!("<p t=\"1\" d=\"2\">{text}</p>"), &[(expect, 1, 2)]);
        }
    }

    #[test]
    fn srv3_styling_padding_is_removed() {
        let line = |text: &str| format!("<s p=\"2\">\u{200B} \u{200B}{text}\u{200B} \u{200B}</s>");
        let break_between = "<s p=\"1\">\u{200B}\n\u{200B}</s>";
        let edge = "<s p=\"1\">\u{200B}</s>";
        check(
            &format!(
                "<p t=\"1\" d=\"9\">{edge}&#8203;{}{break_between}{}{edge}</p>",
                line("one"),
                line("two")
            ),
            &[("one\ntwo", 1, 9)],
        );
        check(
            &format!("<p t=\"1\" d=\"9\">{edge}&#8203;{}{edge}</p><p>x\u{FEFF}y</p>", line("")),
            &[("xy", 0, 0)],
        );
        check("<p><s>20</s>&#8203;<s>年 </s>&#8203;<s>\u{200B} a</s></p>", &[("20年  a", 0, 0)]);
    }

    #[test]
    fn srv3_copies_at_same_place_are_dropped() {
        let line = |place: &str, text: &str| format!("<p t=\"1\" d=\"9\"{place}><s>{text}</s></p>");
        check(
            &[
                line(" wp=\"1\"", "shadow"),
                line(" wp=\"1\" p=\"3\"", "shadow"),
                line(" wp=\"1\"", "shadow"),
                // At another place, at none, and with another text.
                line(" wp=\"2\"", "shadow"),
                line("", "Yes."),
                line("", "Yes."),
                line(" wp=\"2\"", "Yes!"),
            ]
            .concat(),
            &[("shadow", 1, 9), ("shadow", 1, 9), ("Yes.", 1, 9), ("Yes.", 1, 9), ("Yes!", 1, 9)],
        );
        check(
            "<p t=\"0\" d=\"67\" wp=\"1\">fade</p><p t=\"0\" d=\"67\" wp=\"1\">fade</p>\
             <p t=\"67\" d=\"400\" wp=\"1\">fade</p><p t=\"467\" d=\"67\" wp=\"1\">fade</p>\
             <p t=\"534\" d=\"400\" wp=\"1\">fade</p>",
            &[("fade", 0, 534), ("fade", 534, 400)],
        );
        // A cue for each word. Only the title names a place.
        check(
            "<p t=\"0\" d=\"900\" wp=\"1\">Title</p><p t=\"0\" d=\"90\">no</p><p t=\"90\" d=\"90\">no</p>\
             <p t=\"180\" d=\"90\">no</p>",
            &[("Title", 0, 900), ("no", 0, 90), ("no", 90, 90), ("no", 180, 90)],
        );
    }

    #[test]
    fn srv3_second_version_and_odd_times_are_read() {
        check(
            "<text t=\"5\" d=\"6\">two</text><p t=\"x\">dropped</p><p t=\"-4\" d=\"6\">early</p>\
             <p d=\"1\">none</p>",
            &[("early", 0, 2), ("none", 0, 1), ("two", 5, 6)],
        );
    }

    #[test]
    fn srv3_unreadable_body_returns_error_kind() {
        let kind = |body: &str| parse(body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("<timedtext format=\"3\"><body/></timedtext>"), CaptionErrorKind::NoCues);
        assert_eq!(
            kind("<timedtext><body><p t=\"1\" a=\"1\">\n</p></body></timedtext>"),
            CaptionErrorKind::NoCues
        );
        assert_eq!(kind("<timedtext><body><p t=\"1\">cut"), CaptionErrorKind::Malformed);
    }
}
