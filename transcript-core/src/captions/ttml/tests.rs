//! Tests of the parser of TTML.

use super::LanguageTag;
use crate::captions::{CaptionErrorKind, parse, parse_with_report, parse_with_report_in};

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
fn ttml_sequence_elements_follow_one_another() {
    let first = "<p begin=\"5s\" dur=\"2s\">first</p>";
    check(
        &format!(
            "<body><div timeContainer=\"seq\">{first}<p dur=\"2s\">second</p><p dur=\"2s\">third</p></div>\
             </body>"
        ),
        &[("first", 5_000, 7_000), ("second", 7_000, 9_000), ("third", 9_000, 11_000)],
    );
    // A pause before an element, an `end`, and an inner element without times.
    check(
        &format!(
            "<body timeContainer=\"seq\" begin=\"10s\"><div>{first}<p begin=\"1s\" end=\"3s\">beside</p></div>\
             <div timeContainer=\"par\"><p begin=\"1s\" end=\"2s\">next</p></div></body>"
        ),
        &[("beside", 11_000, 13_000), ("first", 15_000, 17_000), ("next", 18_000, 19_000)],
    );
    check(
        "<body><p timeContainer=\"seq\"><span dur=\"1s\">a</span> <span dur=\"1s\">b</span></p></body>",
        &[("a", 0, 1_000), ("b", 1_000, 2_000)],
    );
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

#[test]
fn ttml_wanted_language_is_read() {
    let p = |text: &str| format!("<p begin=\"1s\" end=\"2s\">{text}</p>");
    let div = |tag: &str, text: &str| format!("<div xml:lang=\"{tag}\">{}</div>", p(text));
    let divs = [div("en", "Hello"), div("fr-CA", "Bonjour"), div("pt-BR", "Olá")].concat();
    let document = format!("<tt xml:lang=\"en\"><body>{divs}</body></tt>");
    for (wanted, text, language) in [
        (Some("fr"), "Bonjour", "fr-CA"),
        (Some("pt-BR"), "Olá", "pt-BR"),
        (Some("en-GB"), "Hello", "en"),
        // No cue is in it.
        (Some("de"), "Hello", "en"),
        (None, "Hello", "en"),
    ] {
        let tag = wanted.map(|tag| LanguageTag::parse(tag).unwrap());
        let found = parse_with_report_in(document.as_bytes(), tag.as_ref()).unwrap();
        assert_eq!((found.segments.len(), found.left_out.count), (1, 2), "{wanted:?}");
        assert_eq!(found.segments[0].text, text, "{wanted:?}");
        assert_eq!(found.language.unwrap().as_str(), language, "{wanted:?}");
    }
}

#[test]
fn ttml_wanted_language_is_read_alone() {
    let p = |second: u64, text: &str| format!("<p begin=\"{second}s\" end=\"{}s\">{text}</p>", second + 1);
    let div = |tag: &str, seconds: std::ops::Range<u64>, text: &str| {
        let cues: String = seconds.map(|second| p(second, &format!("{text} {second}"))).collect();
        format!("<div xml:lang=\"{tag}\">{cues}</div>")
    };
    let check = |body: String, wanted: &str, expect: (&str, usize, u64)| {
        let document = format!("<tt><body>{body}</body></tt>");
        let tag = LanguageTag::parse(wanted).unwrap();
        let found = parse_with_report_in(document.as_bytes(), Some(&tag)).unwrap();
        let texts = found.segments.iter().filter(|segment| segment.text.starts_with(expect.0)).count();
        assert_eq!((texts, found.left_out.count), (expect.1, expect.2), "{wanted}");
        found.segments.len() - texts
    };
    // A language with few cues, and one that is spoken at other times.
    let sparse = [div("en", 0..1_000, "word"), div("de", 5..15, "Wort"), div("fr", 2_000..2_003, "mot")];
    for (wanted, text, count) in [("de", "Wort", 10), ("en", "word", 1_000), ("fr", "mot", 3)] {
        assert_eq!(check(sparse.concat(), wanted, (text, count, 1_013 - count as u64)), 0, "{wanted}");
    }
    // Of two variants at the same time the exact one is read, else the first one.
    let variants = [div("pt-BR", 0..5, "trem"), div("pt-PT", 0..5, "comboio")];
    assert_eq!(check(variants.concat(), "pt-PT", ("comboio", 5, 5)), 0);
    assert_eq!(check(variants.concat(), "pt", ("trem", 5, 5)), 0);
    // Without a language, cues at the same time are a translation.
    let unnamed = |seconds| div("und", seconds, "cue");
    assert_eq!(check(div("de", 0..5, "Wort") + &unnamed(4..9), "de", ("Wort", 5, 5)), 0);
    assert_eq!(check(div("de", 0..5, "Wort") + &unnamed(5..9), "de", ("Wort", 5, 0)), 4);
}

#[test]
fn ttml_readings_are_left_out() {
    let ruby = |base: &str, reading: &str, bracket: &str| {
        format!(
            "<body><p begin=\"1s\" end=\"2s\"><span tts:ruby=\"container\"><span {base}>漢</span><span {bracket}>(</span>\
             <span {reading}><span>かん</span></span><span {bracket}>)</span></span>字</p></body>"
        )
    };
    let plain = ruby("tts:ruby=\"base\"", "tts:ruby=\"text\"", "tts:ruby=\"delimiter\"");
    let containers =
        ruby("tts:ruby=\"baseContainer\"", "tts:ruby=\"textContainer\"", "tts:ruby=\"delimiter\"");
    let timed = ruby("tts:ruby=\"base\"", "begin=\"1s\" tts:ruby=\"text\"", "tts:ruby=\"delimiter\"");
    for body in [&plain, &containers, &timed] {
        check(body, &[("漢字", 1_000, 2_000)]);
    }
    let styles = "<head><styling><style xml:id=\"b\" tts:ruby=\"base\"/><style xml:id=\"r\" tts:ruby=\"text\"/>\
                  <style xml:id=\"d\" tts:ruby=\"delimiter\"/></styling></head>";
    let body = ruby("style=\"b\"", "style=\"s r\"", "style=\"d\"");
    let segments = parse(format!("<tt>{styles}{body}</tt>").as_bytes()).unwrap();
    assert_eq!(segments[0].text, "漢字");
    // The role of a span counts before that of its style.
    let body = ruby("style=\"r\" tts:ruby=\"base\"", "style=\"r\"", "style=\"d\"");
    let segments = parse(format!("<tt>{styles}{body}</tt>").as_bytes()).unwrap();
    assert_eq!(segments[0].text, "漢字");
    check(
        "<body><p begin=\"1s\" end=\"2s\"><span style=\"none\">漢</span></p></body>",
        &[("漢", 1_000, 2_000)],
    );
}
