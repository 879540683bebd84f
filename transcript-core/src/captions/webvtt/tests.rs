//! Tests of the WebVTT parser.

use crate::{
    captions::{CaptionErrorKind, CaptionFormat, parse_as, parse_with_report},
    transcript::Word,
};

fn check(body: &str, expect: &[(&str, u64, u64)]) {
    let segments = parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap();
    let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.end_ms())).collect();
    assert_eq!(found, expect, "{body:?}");
}

#[test]
fn webvtt_headers_notes_and_styles_are_dropped() {
    check(
        "WEBVTT - title\nKind: captions\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\n\n\
         NOTE a note\nof two lines\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:a\n\n\
         intro\n00:01.000 --> 00:02.000 align:start position:0%\nHello\nthere\n\n2\n00:03.000 --> \
         00:04.000\nBye",
        &[("Hello\nthere", 1_000, 2_000), ("Bye", 3_000, 4_000)],
    );
}

#[test]
fn webvtt_text_outside_cues_is_reported() {
    for (between, expect) in [
        ("00:03.000 --> xx\nlost words", &[6_u64] as &[u64]),
        ("--> 00:06.000\nlost", &[6]),
        ("abc --> 00:06.000\nlost", &[6]),
        ("1.000 --> 2.000\nlost", &[6]),
        ("NOTE\n\nbehind a note", &[8]),
        ("NOTE\n\na\n\nb", &[8, 10]),
        ("<html>Bad gateway</html>", &[6]),
        ("<!-- a comment -->", &[]),
        ("12:30", &[]),
        ("00:03.000 00:04.000\nlost", &[6]),
        ("NOTE a --> b\nno words", &[]),
        ("X-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000", &[]),
        ("STYLE\n::cue { color: red }", &[]),
        ("WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000", &[]),
        ("00:03.000 -->\nlost", &[6]),
        ("intro\n00:03.000 --> 00:04.000\nc", &[]),
        ("17", &[]),
    ] {
        let body =
            format!("WEBVTT\n\n00:01.000 --> 00:02.000\nok\n\n{between}\n\n\n00:08.000 --> 00:09.000\nbye");
        let parsed = parse_with_report(body.as_bytes()).unwrap();
        assert_eq!(parsed.left_out.lines, expect, "{between:?}");
        assert_eq!(parsed.segments.last().unwrap().text, "bye");
    }
}

#[test]
fn webvtt_identifier_before_blank_line_is_no_text() {
    let cue = |name: &str, second: u64, text: &str| {
        format!("{name}\n\n00:0{second}.000 --> 00:0{}.000\n{text}\n\n", second + 1)
    };
    for [one, two] in [["cue-1", "cue-2"], ["1", "2"], ["d3b07384-d9a0", "c157a790"]] {
        let body = format!("WEBVTT\n\n{}{}", cue(one, 1, "Hello"), cue(two, 3, "Bye"));
        check(&body, &[("Hello", 1_000, 2_000), ("Bye", 3_000, 4_000)]);
        assert_eq!(parse_with_report(body.as_bytes()).unwrap().left_out.count, 0, "{body:?}");
    }
    let body = format!("WEBVTT\n\n{}", cue("cue-1", 1, "Hello\n\nR2D2\n\nagain"));
    check(&body, &[("Hello\n\nR2D2\n\nagain", 1_000, 2_000)]);
    for text in ["Hello\n\n2024", "\u{4f60}\u{597d}\n\n\u{6211}\u{6709}3\u{4e2a}\u{82f9}\u{679c}"] {
        let body = format!("WEBVTT\n\n{}{}", cue("cue-1", 1, text), cue("cue-2", 3, "Bye"));
        let kept = text.trim_end_matches("\n\n2024");
        check(&body, &[(kept, 1_000, 2_000), ("Bye", 3_000, 4_000)]);
    }
    let body = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n\nR2D2\n\n00:03.000 --> 00:04.000\nBye";
    check(body, &[("Hello\n\nR2D2", 1_000, 2_000), ("Bye", 3_000, 4_000)]);
}

#[test]
fn webvtt_text_after_blank_line_is_text_of_cue() {
    let body = |text: &str| {
        format!(
            "WEBVTT\n\nKind: captions\n\n00:01.000 --> 00:02.000\n{text}\n\nintro\n\
             00:03.000 --> 00:04.000\nbye\n"
        )
    };
    for (text, expect) in [
        ("hello\n\nworld", "hello\n\nworld"),
        ("hello\n\n\n- two\nlines\n\n7", "hello\n\n\n- two\nlines"),
        ("\nhello", "hello"),
        ("hello\n\n// end", "hello\n\n// end"),
        ("hello\n\nNOTE no text", "hello"),
        ("at\n\n12:30.", "at\n\n12:30."),
        ("at\n\n12:30 - 13:45", "at\n\n12:30 - 13:45"),
        ("at\n\n10:15:30", "at\n\n10:15:30"),
        ("at\n\n3:2, 4:1", "at\n\n3:2, 4:1"),
        ("at\n\n♪ 1:2:3 ♪", "at\n\n♪ 1:2:3 ♪"),
        ("at\n\n12:30.5", "at\n\n12:30.5"),
        ("at\n\n12：30", "at\n\n12：30"),
        ("at\n\n12:30\n\n7\n3:2!\n\n:)", "at\n\n12:30\n\n7\n3:2!\n\n:)"),
    ] {
        check(&body(text), &[(expect, 1_000, 2_000), ("bye", 3_000, 4_000)]);
        assert_eq!(parse_with_report(body(text).as_bytes()).unwrap().left_out.count, 0, "{text:?}");
    }
    check("WEBVTT\n\n00:01.000 --> 00:02.000\na\n\nb", &[("a\n\nb", 1_000, 2_000)]);
}

#[test]
fn webvtt_cut_within_timing_line_is_reported() {
    let (first, timing) =
        ("WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nok\n\n", "00:00:02.000 --> 00:00:03.000");
    let second = first.replace('1', "3").replace("02.", "04.");
    for end in "00:".len()..timing.len() {
        let cut = format!("{first}{}", timing.get(..end).unwrap());
        assert_eq!(parse_with_report(cut.as_bytes()).unwrap().left_out.lines, [6], "{cut:?}");
        let parts = format!("{cut}\n\n{second}");
        assert_eq!(parse_with_report(parts.as_bytes()).unwrap().left_out.lines, [6], "{parts:?}");
    }
    // A cue may be empty, and a text may look like the beginning of a timing line.
    for end in [
        timing,
        "00:02.000 --> 00:03.000 line:0\n",
        "7",
        "00:02.000 --> 00:03.000\nat\n12:30",
        "00:00:02.000 --> 00:03.000\n",
        "00:00:02.500 --> 00:00:03\n",
        "00:02.000 --> 00:03.000\nat\n\n12:30\n",
    ] {
        for whole in [format!("{first}{end}"), format!("{first}{end}\n\n{second}")] {
            assert_eq!(parse_with_report(whole.as_bytes()).unwrap().left_out.count, 0, "{whole:?}");
        }
    }
    let only = parse_with_report(b"WEBVTT\n\n00:00:01.0").unwrap_err();
    assert_eq!(only.kind(), CaptionErrorKind::Malformed);
}

#[test]
fn webvtt_all_line_ends_and_byte_order_mark_are_read() {
    for end in ["\n", "\r\n", "\r", "\r\r\n"] {
        let body = "\u{FEFF}WEBVTT\n\n00:01.000 --> 00:02.000\na\nb\n\n00:02.000 --> 00:03.000\nc\n";
        check(&body.replace('\n', end), &[("a\nb", 1_000, 2_000), ("c", 2_000, 3_000)]);
    }
}

#[test]
fn webvtt_tags_are_removed_before_entities_are_decoded() {
    check(
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Tom &amp; &lt;i&gt; List&lt;T&gt; &#39;x&#39; \
         &#x4e2d;&lrm;\n\n\
         00:02.000 --> 00:03.000\n<c.yellow>a</c> <00:00:02.500><c>b</c> <\n\n\
         00:03.000 --> 00:04.000\n&nbsp;\n",
        &[("Tom & <i> List<T> 'x' 中\u{200E}", 1_000, 2_000), ("a b <", 2_000, 3_000)],
    );
}

#[test]
fn webvtt_broken_cues_are_dropped_others_kept() {
    check(
        "WEBVTT\n\n00:5s.000 --> 00:06.000\nbroken\n\n00:xx --> 00:04.000\nunreadable\n\n\
         00:01.000-->00:02.20\nshort\n\n00:02,500 --> 00:03,000\ncomma\n\n00:06.000 --> 00:07.000\n\n\
         -00:00:01.000 --> 00:00:00.500\nnegative\n\n9999:00:00.000 --> 9999:00:01.000\nlate",
        &[("negative", 0, 500), ("short", 1_000, 2_200), ("comma", 2_500, 3_000)],
    );
}

#[test]
fn webvtt_irregular_cues_keep_text() {
    check(
        "WEBVTT\n\n00:05.000 --> 00:04.000\nbackwards\n\n00:06.000 --> 00:07.000\nten --> eleven\n\n\
         00:59.000 --> 00:60.000\nsixty\n\n01:01.000 --> 01:02.000line:0\nglued settings\n\n\
         01:03.000 --> 01:04.000\0line:0\nzero byte",
        &[
            ("backwards", 5_000, 5_000),
            ("ten --> eleven", 6_000, 7_000),
            ("sixty", 59_000, 60_000),
            ("glued settings", 61_000, 62_000),
            ("zero byte", 63_000, 64_000),
        ],
    );
}

#[test]
fn webvtt_note_inside_cue_is_text() {
    check(
        "WEBVTT\n\nNOTE no words\n00:00.000 -->\n\n00:01.000 --> 00:02.000\nNOTE one\n\n\
         00:02.000 --> 00:03.000\nNOTE one\nNOTE two\n",
        &[("NOTE one", 1_000, 2_000), ("NOTE one\nNOTE two", 2_000, 3_000)],
    );
}

#[test]
fn webvtt_timing_line_ends_previous_cue() {
    check(
        "WEBVTT\n00:01.000 --> 00:02.000\na\n00:02.000 --> 00:03.000\nb --> c\n \n7\n00:03.000 --> \
         00:04.000\n8\n",
        &[("a", 1_000, 2_000), ("b --> c", 2_000, 3_000), ("8", 3_000, 4_000)],
    );
    // The cue before it may be empty.
    let empty = "WEBVTT\n\n00:01.000 --> 00:02.000\n \n7\n00:03.000 --> 00:04.000\nbye";
    check(empty, &[("bye", 3_000, 4_000)]);
}

#[test]
fn webvtt_rolling_lines_appear_once() {
    check(
        "WEBVTT\n\n00:00.000 --> 00:02.990\n \nso<00:00:00.100><c> we</c>\n\n00:02.990 --> 00:03.000\n\
         so we\n \n\n\
         00:03.000 --> 00:05.000\nso we\nmet<00:00:03.100><c> him</c>\n",
        &[("so we", 0, 2_990), ("met him", 3_000, 5_000)],
    );
}

#[test]
fn webvtt_inline_times_are_times_of_words() {
    let body = "WEBVTT\n\n00:00.000 --> 00:02.990\n \nso<00:00:00.100><c> we &amp;</c>\n\n\
                00:02.990 --> 00:03.000\nso we &amp;\n \n\n\
                00:03.000 --> 00:05.000\nso we &amp;\nmet<00:00:03.100><c> him</c><00:04.500>\n\n\
                00:06.000 --> 00:07.000\n<v Ann>a<00:07.000> b<00:06.000> c\n";
    let segments = parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap();
    let words: Vec<Vec<_>> = segments.into_iter().map(|segment| segment.words).collect();
    assert_eq!(
        words,
        [
            vec![Word::new("so", 0, 100), Word::new("we &", 100, 2_890)],
            vec![Word::new("met", 3_000, 100), Word::new("him", 3_100, 1_400)],
            Vec::new(),
        ]
    );
}

#[test]
fn webvtt_cue_split_by_playlist_is_joined() {
    check(
        "WEBVTT\n\n00:01.000 --> 00:02.000\nsame\n\nWEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00.000\n\n\
         00:02.000 --> 00:03.000\nsame\n\n00:03.000 --> 00:04.000\nsame\n",
        &[("same", 1_000, 3_000), ("same", 3_000, 4_000)],
    );
}

#[test]
fn webvtt_overlapping_cues_at_seam_are_joined() {
    check(
        "WEBVTT\n\n00:00.000 --> 00:10.000\n[Music]\n\n00:02.000 --> 00:09.000\nSo we met\n\n\
         WEBVTT\n\n00:00.000 --> 00:10.000\n[Music]\n\n00:02.000 --> 00:09.000\nSo we met\n\n\
         00:09.000 --> 00:12.000\nhim\n\n\
         WEBVTT\n\n00:00.000 --> 00:14.000\n[Music]\n\n00:13.000 --> 00:14.000\nso we met\n",
        &[
            ("[Music]", 0, 14_000),
            ("So we met", 2_000, 9_000),
            ("him", 9_000, 12_000),
            ("so we met", 13_000, 14_000),
        ],
    );
    // Of many cues in a part those that end last are known at its end.
    let short: String = (10..40).map(|s| format!("00:{s}.000 --> 00:{s}.500\nat {s}\n\n")).collect();
    let long = "00:00.000 --> 00:50.000\n[Music]\n\n";
    let body = format!("WEBVTT\n\n{long}{short}WEBVTT\n\n{long}");
    assert_eq!(parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap().len(), 31);
    // What is in one part twice was said twice.
    check(
        "WEBVTT\n\n00:01.000 --> 00:02.000\nNo.\n\n00:02.000 --> 00:03.000\nNo.\n\n\
         WEBVTT\n\n00:02.000 --> 00:03.000\nNo.\n\n00:03.000 --> 00:04.000\nNo.\n",
        &[("No.", 1_000, 2_000), ("No.", 2_000, 3_000), ("No.", 3_000, 4_000)],
    );
}

#[test]
fn webvtt_header_sets_language_and_kind() {
    for (header, language, kind) in [
        ("WEBVTT\nKind: captions\nLanguage: pt_br", Some("pt-BR"), Some("captions")),
        ("WEBVTT Kind: Subtitles; Language: de", Some("de"), Some("subtitles")),
        ("WEBVTT\rlanguage:zh-Hant", Some("zh-Hant"), None),
        ("WEBVTT\nLanguage: the one of Shakespeare\nKind: no kind", None, None),
        ("WEBVTT - Language\n\nLanguage: en", None, None),
        ("WEBVTT", None, None),
    ] {
        let parsed =
            parse_with_report(format!("{header}\n\n00:01.000 --> 00:02.000\nLanguage: fr\n").as_bytes())
                .unwrap();
        assert_eq!(parsed.language.as_ref().map(|tag| tag.as_str()), language, "{header:?}");
        assert_eq!(parsed.kind.as_deref(), kind, "{header:?}");
    }
}

#[test]
fn webvtt_other_formats_are_rejected() {
    let kind = |body: &str| parse_as(CaptionFormat::WebVtt, body.as_bytes()).unwrap_err().kind();
    assert_eq!(kind("<html></html>"), CaptionErrorKind::NotCaptions);
    assert_eq!(kind("00:01.000 --> 00:02.000\na"), CaptionErrorKind::NotCaptions);
    assert_eq!(kind("WEBVTT"), CaptionErrorKind::NoCues);
    assert_eq!(kind("WEBVTT\n\n00:01.000 --> 00:02.000\n\n"), CaptionErrorKind::NoCues);
    assert_eq!(kind("WEBVTT\n\nNOTE nothing"), CaptionErrorKind::NoCues);
    assert_eq!(kind("WEBVTT\n\nNo speech\n"), CaptionErrorKind::NoCues);
    assert_eq!(kind("WEBVTT\n\n<html>Bad gateway</html>\n"), CaptionErrorKind::Malformed);
}
