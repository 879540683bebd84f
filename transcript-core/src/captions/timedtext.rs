//! YouTube's first XML format: `<transcript><text start="1.54" dur="4.16">`.
//!
//! The text is markup inside of XML, so it is escaped twice: `&amp;#39;` is an apostrophe, `&lt;i&gt;` is
//! formatting and `&amp;lt;i&amp;gt;` is spoken text. Hence the order: decode the XML, remove the formatting
//! tags of [`super::markup`], decode HTML's entities. Line breaks stay; an empty `<text/>` is dropped.

use super::{
    CaptionError,
    cue_collector::CueCollector,
    decimal::seconds_as_ms,
    markup,
    xml::{XmlDocument, XmlElement, XmlNode},
};

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let (mut document, _) = XmlDocument::open(text, "transcript")?;
    let mut cues = CueCollector::default();
    while let Some(node) = document.next()? {
        let XmlNode::Open(element) = node else { continue };
        if element.name() != "text" {
            continue;
        }
        let times = times(&element);
        let words = document.text_of_element()?;
        if let Some((start, duration)) = times {
            let mut plain = String::with_capacity(words.len());
            markup::decode_references(&markup::strip(&words).text, &mut plain);
            cues.add_with_duration(plain, start, duration)?;
        } else {
            cues.count_left_out(&words);
        }
    }
    Ok(cues)
}

/// Start and duration in milliseconds; absent values and an unreadable duration are zero.
///
/// `None` if the start is unreadable: the time of the text is unknown then.
fn times(element: &XmlElement<'_>) -> Option<(i64, i64)> {
    let start = element.attribute("start").map_or(Some(0), |start| seconds_as_ms(&start))?;
    let duration = element.attribute("dur").and_then(|duration| seconds_as_ms(&duration)).unwrap_or(0);
    Some((start, duration))
}

#[cfg(test)]
mod tests {
    use crate::captions::{CaptionErrorKind, parse};

    fn check(cues: &str, expect: &[(&str, u64, u64)]) {
        let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\" ?><transcript>{cues}</transcript>");
        let segments = parse(body.as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.duration_ms)).collect();
        assert_eq!(found, expect, "{cues:?}");
    }

    #[test]
    fn timedtext_text_is_unescaped_twice() {
        for (text, expect) in [
            ("I&amp;#39;m", "I'm"),
            ("don&amp;#146;t", "don’t"),
            ("Tom &amp;amp; Ann", "Tom & Ann"),
            ("Tom &amp; Ann", "Tom & Ann"),
            ("&quot;yes&quot; &amp;quot;no&amp;quot;", "\"yes\" \"no\""),
            ("we do &lt;i&gt;not&lt;/i&gt; know", "we do not know"),
            ("&lt;font color=&quot;#E5E5E5&quot;&gt;x&lt;/font&gt;", "x"),
            ("one&lt;br/&gt;two", "one\ntwo"),
            ("List&lt;T&gt; and 1 &lt; 2", "List<T> and 1 < 2"),
            ("the &amp;lt;b&amp;gt; tag", "the <b> tag"),
            ("first\nsecond", "first\nsecond"),
            (" as  given ", " as  given "),
            ("<i>real</i> elements<br/>too", "real elements\ntoo"),
            ("caf&eacute; &bogus; &amp;bogus;", "café &bogus; &bogus;"),
            ("<![CDATA[raw & &#39;]]>", "raw & '"),
        ] {
            check(&format!("<text start=\"1.54\" dur=\"4.16\">{text}</text>"), &[(expect, 1_540, 4_160)]);
        }
    }

    #[test]
    fn timedtext_absent_and_odd_times_are_handled() {
        check(
            "<text start=\"5\">no duration</text><text dur=\"1\">no start</text><text start=\"7\"/>\
             <text start=\"8\" dur=\"1\"> </text><text start=\"NaN\">dropped</text><text start=\"1e1\" \
             dur=\"x\">ten</text>\
             <text start=\"-1\" dur=\"3\">early</text><text start=\"1e30\">never</text>",
            &[("no start", 0, 1_000), ("early", 0, 2_000), ("no duration", 5_000, 0), ("ten", 10_000, 0)],
        );
    }

    #[test]
    fn timedtext_segments_are_ordered_by_start() {
        check(
            "<text start=\"2\">b</text><text start=\"1\">a</text><text start=\"2\">c</text>",
            &[("a", 1_000, 0), ("b", 2_000, 0), ("c", 2_000, 0)],
        );
    }

    #[test]
    fn timedtext_unreadable_body_returns_error_kind() {
        let kind = |body: &str| parse(body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("<transcript></transcript>"), CaptionErrorKind::NoCues);
        assert_eq!(kind("<transcript><text start=\"0\"/></transcript>"), CaptionErrorKind::NoCues);
        assert_eq!(kind("<transcript><text start=\"0\">cut o"), CaptionErrorKind::Malformed);
        assert_eq!(kind("<transcript><text start=\"0\">a</text>"), CaptionErrorKind::Malformed);
        assert_eq!(kind("<transcript><text>a</transcript>"), CaptionErrorKind::Malformed);
    }
}
