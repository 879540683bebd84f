//! Property tests: no body causes a panic or breaks the guarantees of [`super::super::parse`].

use proptest::prelude::*;

use crate::{
    captions::{CaptionFormat, SEGMENTS_MAX, TIME_MAX_MS, is_blank, parse, parse_as, sniff},
    transcript::Segment,
};

const FORMATS: [CaptionFormat; 6] = [
    CaptionFormat::TimedText,
    CaptionFormat::Srv3,
    CaptionFormat::Json3,
    CaptionFormat::WebVtt,
    CaptionFormat::Srt,
    CaptionFormat::Ttml,
];

const BODIES: [&str; 6] = [
    "<?xml version=\"1.0\"?><transcript><text start=\"1.54\" dur=\"4.16\">I&amp;#39;m &lt;i&gt;in&lt;\
     /i&gt;</text><text/></transcript>",
    "<timedtext format=\"3\"><head><pen id=\"1\"/></head><body><p t=\"10\" d=\"20\"><s t=\"3\">\
     \u{200B} \u{200B}a</s><br/>&lt;</p></body></timedtext>",
    "{\"wireMagic\":\"pb3\",\"events\":[{\"tStartMs\":0,\"dDurationMs\":5,\"segs\":[{\"utf8\":\"in\\n\",\
     \"tOffsetMs\":1}]}]}",
    "WEBVTT\n\nNOTE x\n\n1\n00:00:01.000 --> 00:00:02.000 line:0\n<v A>one &amp; <00:00:01.500><c>two</c>\
     \n\n00:02.000 --> 00:03.000\none two\nthree\n",
    "1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}<b>one</b>\r\n\r\n2\r\n00:00:02,000 --> 00:00:03,000\r\n\
     one two\r\n",
    "<tt ttp:frameRate=\"25\"><body begin=\"1s\"><p begin=\"00:00:01:12\" dur=\"9f\">a<br/><span \
     begin=\"1t\">b</span></p></body></tt>",
];

/// Fragments with a meaning for one of the parsers.
const FRAGMENTS: [&str; 24] = [
    "<",
    ">",
    "&",
    ";",
    "-->",
    "\n\n",
    "\r",
    "\0",
    "\u{200B}",
    "\u{FEFF}",
    "</",
    "/>",
    "<!--",
    "<![CDATA[",
    "<!DOCTYPE",
    "\"",
    "{",
    "}",
    "[",
    "1e99",
    "-9",
    "99999999999999999999",
    "&#x110000;",
    "00:00:01.000 --> 00:00:02.000",
];

fn check_guarantees(segments: &[Segment]) {
    assert!(!segments.is_empty() && segments.len() <= SEGMENTS_MAX);
    assert!(segments.is_sorted_by_key(|segment| segment.start_ms));
    for segment in segments {
        assert!(!is_blank(&segment.text) && !segment.text.contains('\0'), "{segment:?}");
        assert!(segment.start_ms <= TIME_MAX_MS && segment.end_ms() <= TIME_MAX_MS, "{segment:?}");
    }
}

fn check_body(body: &[u8]) {
    sniff(body);
    if let Ok(segments) = parse(body) {
        check_guarantees(&segments);
    }
    for format in FORMATS {
        if let Ok(segments) = parse_as(format, body) {
            check_guarantees(&segments);
        }
    }
}

#[test]
fn parse_base_bodies_are_valid() {
    for (body, format) in BODIES.into_iter().zip(FORMATS) {
        assert_eq!(sniff(body.as_bytes()), Some(format), "{body}");
        check_guarantees(&parse(body.as_bytes()).unwrap());
    }
}

#[test]
fn parse_truncated_bodies_never_panic() {
    for body in BODIES {
        for end in 0..body.len() {
            check_body(&body.as_bytes()[..end]);
        }
    }
}

proptest! {
    #[test]
    fn parse_arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        check_body(&body);
    }

    #[test]
    fn parse_arbitrary_text_after_signature_never_panics(signature in 0..6_usize, text in "\\PC{0,200}") {
        let signatures =
            ["WEBVTT\n\n", "<transcript>", "{\"events\":", "<timedtext>", "<tt>", "1\n00:01 --> 00:02\n"];
        check_body(format!("{}{text}", signatures[signature]).as_bytes());
    }

    #[test]
    fn parse_mutated_bodies_never_panic(
        body in 0..BODIES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..5_u8, any::<u8>()), 1..8),
    ) {
        let mut body = BODIES[body].as_bytes().to_vec();
        for (position, change, byte) in changes {
            let position = position.index(body.len() + 1);
            match change {
                0 => body.truncate(position.max(1)),
                1 if position < body.len() => body[position] = byte,
                2 => body.insert(position, byte),
                3 if position < body.len() => drop(body.remove(position)),
                _ => drop(body.splice(position..position, FRAGMENTS[usize::from(byte) % FRAGMENTS.len()].bytes())),
            }
        }
        check_body(&body);
    }
}
