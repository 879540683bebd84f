//! Tests of the reports about bodies that are only partly readable.

use crate::captions::{CaptionErrorKind, Occurrences, parse, parse_with_report};

fn found(count: u64, lines: &[u64]) -> Occurrences {
    Occurrences { count, lines: lines.to_vec() }
}

#[test]
fn parse_counts_broken_characters_by_line() {
    let body = b"\xEF\xBB\xBF\n\nWEBVTT\n\n00:01.000 --> 00:02.000\ncaf\xC3 cr\xC3me\r\nna\xC3ve\r\n\r\n\
        00:03.000 --> 00:04.000\nnul\0 and \xEF\xBF\xBD\n";
    let parsed = parse_with_report(body).unwrap();
    assert_eq!(parsed.unreadable, found(5, &[6, 7, 10]));
    assert_eq!(parsed.segments[1].text, "nul\u{FFFD} and \u{FFFD}");
    assert_eq!(parsed.left_out, found(0, &[]));
    let many = format!("WEBVTT\n\n00:01.000 --> 00:02.000\na{}", "\n\u{FFFD}".repeat(9));
    assert_eq!(parse_with_report(many.as_bytes()).unwrap().unreadable, found(9, &[5, 6, 7, 8, 9]));
    let json = br#"{"wireMagic":"pb3","events":[{"segs":[{"utf8":"a\ufffd b\u0000"}]}]}"#;
    assert_eq!(parse_with_report(json).unwrap().unreadable, found(2, &[]));
}

#[test]
fn parse_counts_left_out_cues_by_line() {
    for (body, left_out) in [
        (
            "WEBVTT\n\n00:01.000 --> 00:02.000\na\n\n00:1b.000 --> 00:20.000\nb\n\n1\n00:03.000 --> 00:0d\n\n\
             5000:00:00.000 --> 5000:00:01.000\nlate\n",
            found(2, &[6, 12]),
        ),
        (
            "1\n00:00:01,000 --> 00:00:0x\nlost\n\n2\n00:00:02,000 --> 00:00:03,000\na\n\n3\n\
             00:00:04,000 --> 00:00:0y\nlost too",
            found(2, &[2, 10]),
        ),
        (
            "<transcript><text start=\"1\">a</text><text start=\"x\">b</text><text start=\"y\"/></transcript>",
            found(1, &[]),
        ),
        (
            "<tt><body><p begin=\"1s\">a</p><p begin=\"x\" end=\"2s\">b</p><p begin=\"\"/></body></tt>",
            found(1, &[]),
        ),
        (
            "<tt><body><p begin=\"\"><span begin=\"1s\">a</span><span end=\"2s\">b</span></p>\
             <div begin=\"x\"><p>c</p></div></body></tt>",
            found(2, &[]),
        ),
        ("<timedtext format=\"3\"><body><p t=\"1\">a</p><p t=\"x\">b</p></body></timedtext>", found(1, &[])),
        (
            "{\"events\":[{\"segs\":[{\"utf8\":\"a\"}]},{\"tStartMs\":\"x\",\"segs\":[{\"utf8\":\"b\"}]},\
             {\"tStartMs\":9999999999999,\"segs\":[{\"utf8\":\"c\"}]}]}",
            found(2, &[]),
        ),
    ] {
        let parsed = parse_with_report(body.as_bytes()).unwrap();
        assert_eq!(parsed.left_out, left_out, "{body:?}");
        assert_eq!(parsed.segments.len(), 1, "{body:?}");
    }
}

#[test]
fn parse_body_without_readable_text_is_rejected() {
    for (body, says) in [
        ("WEBVTT\n\n00:1x.000 --> 00:20.000\na\n\n00:2x.000 --> 00:30.000\nb\n", "no cue's times"),
        ("1\n00:00:01,000 --> 00:00:02,000\n\u{FFFD} \u{FFFD}\n", "No character"),
    ] {
        let error = parse(body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), CaptionErrorKind::Malformed, "{body:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn parse_ttml_reports_language() {
    let body = "<tt xml:lang=\"fr-CA\"><body><div><p begin=\"0s\" end=\"1s\">mots</p></div></body></tt>";
    assert_eq!(parse_with_report(body.as_bytes()).unwrap().language.unwrap().as_str(), "fr-CA");
}
