//! Tests of PDF files, read with the tools of Poppler.

use std::{io::Write as _, process::Command};

use proptest::prelude::*;
use transcript_core::{
    transcript::{Chapter, LanguageTag, Segment, VideoDetails},
    video::{Platform, VideoId},
};

use super::*;

fn document(title: &str, language: &str, words: &[&str]) -> Result<Vec<u8>, PdfError> {
    let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
    let mut transcript = crate::testing::transcript(&video);
    transcript.title = Some(title.to_owned());
    transcript.track.language = LanguageTag::parse(language).unwrap();
    let segment = |(index, text): (usize, &&str)| Segment::new(*text, index as u64 * 61_000, 1_000);
    transcript.segments = words.iter().enumerate().map(segment).collect();
    let mut details = VideoDetails::default();
    details.metadata.chapters = vec![Chapter { start_ms: 61_000, title: "Second part".to_owned() }];
    let stored = crate::testing::stored(transcript, details);
    pdf_document(&PageContext::for_test("/watch/video_site/x"), &stored)
}

/// The output of a tool of Poppler for this file.
fn poppler(tool: &str, options: &[&str], pdf: &[u8]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pdf).unwrap();
    let standard_output = (tool == "pdftotext").then_some("-");
    let output = Command::new(tool).args(options).arg(file.path()).args(standard_output).output();
    let output = output.expect("poppler-utils is installed");
    // Poppler 22 reads a boolean of tagged files as another type.
    let errors = String::from_utf8_lossy(&output.stderr)
        .replace("Syntax Error: Suspects object is wrong type (boolean)\n", "");
    assert!(output.status.success() && errors.is_empty(), "{tool}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text, without the marks of direction that pdftotext adds.
fn text(pdf: &[u8]) -> String {
    let text = poppler("pdftotext", &[], pdf).replace(['\u{202a}', '\u{202b}', '\u{202c}'], "");
    text.replace("\u{a0}\u{a0}", " ").replace('\u{a0}', " ")
}

fn assert_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn pdf_has_head_words_and_links() {
    let words = ["Größe “naïve” façade", "Zweiter Absatz ✓"];
    let pdf = document("Über <b> Ω & Жук 🎵", "de", &words).unwrap();
    let parts = [
        "Über <b> Ω & Жук 🎵",
        "Ann · German",
        "From YouTube: https://www.youtube.com/watch?v=dQw4w9WgXcQ",
        "0:00 Größe “naïve” façade",
        "Second part",
        "1:01 Zweiter Absatz ✓",
    ];
    assert_parts(&text(&pdf), &parts);
    let about = poppler("pdfinfo", &[], &pdf);
    assert_parts(&about, &["Über <b> Ω & Жук 🎵", "Ann", "Pages:           1\n"]);
    assert!(!about.contains("CreationDate"), "{about}");
    let links = poppler("pdfinfo", &["-url"], &pdf);
    assert_parts(&links, &["watch?v=dQw4w9WgXcQ\n", "watch?v=dQw4w9WgXcQ&t=61s\n"]);
    assert!(String::from_utf8_lossy(&pdf).contains("/Lang(de)"));
    let structure = poppler("pdfinfo", &["-struct-text"], &pdf);
    assert_parts(&structure, &["H1 (block)\n", "H2 (block)\n", "P (block)\n", "Link (inline)\n", "\"1:01\""]);
    assert_eq!(document("Über <b> Ω & Жук 🎵", "de", &words).unwrap(), pdf);
}

#[test]
fn pdf_of_right_to_left_words_keeps_their_order() {
    let pdf = document("مرحبا بالعالم", "ar", &["السلام عليكم ورحمة الله", "hello 123"]).unwrap();
    // pdftotext reverses the letters of a ligature.
    let found = text(&pdf).replace("السالم", "السلام");
    assert_parts(&found, &["مرحبا بالعالم", "السلام عليكم ورحمة الله", "hello 123"]);
    let links = poppler("pdfinfo", &["-url"], &pdf);
    assert_parts(&links, &["watch?v=dQw4w9WgXcQ&t=61s\n"]);
    let pdf = document("שלום", "he", &["שלום עולם וברכה"]).unwrap();
    assert_parts(&text(&pdf), &["שלום עולם וברכה"]);
}

#[test]
fn pdf_of_japanese_words_has_font_of_system() {
    let pdf = document("日本語「音楽」", "ja", &["こんにちは世界。English も。"]).unwrap();
    assert_parts(&text(&pdf), &["日本語「音楽」", "こんにちは世界。English も。"]);
}

#[test]
fn pdf_names_letters_without_font_and_spells_symbols() {
    let error = document("A talk", "en", &["Garay: \u{10d50}\u{10d51}"]).unwrap_err();
    assert!(matches!(&error, PdfError::NoFont { letters } if letters == "\u{10d50}\u{10d51}"), "{error:?}");
    let pdf = document("A \u{e123} talk", "en", &["Private \u{10fffd} use"]).unwrap();
    assert_parts(&text(&pdf), &["A [U+E123] talk", "Private [U+10FFFD] use"]);
}

#[test]
fn pdf_continues_on_pages_up_to_limit() {
    let (word, marks) = ("x".repeat(10_000), "a\u{301}\u{302}".repeat(20) + &"\u{303}".repeat(5_000));
    let (joined, tagged) = ("👩\u{200d}".repeat(300), "👩".to_owned() + &"\u{e0061}".repeat(300));
    let long = "all the words ".repeat(800);
    let words = [&word, &long, &marks, &joined, &tagged].map(String::as_str);
    let pdf = document(&word, "en", &words).unwrap();
    let text = text(&pdf);
    assert_eq!(text.matches('x').count(), 20_000);
    assert_eq!(text.matches("words").count(), 800);
    let mut fonts = FontSet::select(&BTreeSet::new(), None).unwrap();
    let mut writer = PdfWriter::new(&mut fonts, false, 2);
    let write = |_| writer.write(Block::new(BlockKind::Words, "word ".repeat(800)));
    let written = (0..10).map(write).collect::<Result<Vec<_>, _>>();
    assert!(matches!(written, Err(PdfError::TooLong)), "{written:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn pdf_of_any_words_never_panics(
        title in "(\\PC|[\u{0}-\u{1f}\u{202a}-\u{202e}\u{2066}-\u{2069}\u{200b}-\u{200f}\u{fe0f}\u{e0001}لاשनि👩🏽ก]){0,60}",
        words in "([a-zل-يא-ת\u{202a}-\u{202e}\u{2066}-\u{2069}\u{300}-\u{310}\u{64b}-\u{652}👩🏽\u{200d}💻\u{fe0f} ]){0,300}",
        language in prop::sample::select(vec!["en", "ar", "ja"]),
    ) {
        let written = document(&title, language, &[&words]);
        prop_assert!(matches!(written, Ok(_) | Err(PdfError::NoFont { .. })), "{:?}", written.err());
        let written = document("🎙\u{fe0f} A talk", language, &[&words]);
        prop_assert!(written.is_ok(), "{:?}", written.err());
    }
}
