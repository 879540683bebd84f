//! Tests of the parsers with recorded bodies of the platforms.
//!
//! The recordings are not part of the repository. `VERBATIM_RECORDINGS` names their folder. Without it, nothing
//! is checked, and the test prints that.

use std::path::PathBuf;

use crate::{
    captions::{
        CaptionErrorKind,
        CaptionErrorKind::{Empty, NoCues, NotCaptions},
        CaptionFormat,
        CaptionFormat::{Json3, Srv3, TimedText, WebVtt},
        parse, sniff, write_webvtt_with_words,
    },
    transcript::{Segment, Word},
};

/// Expected result of a recorded body.
///
/// Fields: file, format, number of segments, number of words, and in milliseconds the start of the first segment,
/// the start of the last one and its end.
struct ExpectedRecording(&'static str, CaptionFormat, usize, usize, [u64; 3]);

const READABLE: [ExpectedRecording; 16] = [
    ExpectedRecording(
        "youtube/timedtext/asr_50min_acAsrConf.json3",
        Json3,
        1053,
        7578,
        [0, 2_970_520, 2_974_800],
    ),
    ExpectedRecording("youtube/timedtext/asr_2026_punctuated.json3", Json3, 3, 20, [80, 6_080, 10_880]),
    ExpectedRecording("youtube/timedtext/asr_fr_pens.srv3.xml", Srv3, 3, 18, [6_319, 679_130, 683_750]),
    ExpectedRecording("youtube/timedtext/asr_music_only.srv3.xml", Srv3, 5, 5, [1_560, 337_780, 341_760]),
    ExpectedRecording("youtube/timedtext/manual_en.srv3.xml", Srv3, 8, 48, [10_200, 45_110, 46_420]),
    ExpectedRecording("youtube/timedtext/ytt_BoldItalicUnderline.srv3.xml", Srv3, 1, 0, [1, 1, 4_989]),
    ExpectedRecording("youtube/timedtext/ytt_Colors.srv3.xml", Srv3, 24, 0, [1, 15_065, 20_104]),
    ExpectedRecording("youtube/timedtext/ytt_Fade.srv3.xml", Srv3, 4, 8, [1, 3_988, 5_022]),
    ExpectedRecording("youtube/timedtext/ytt_FaultTolerance.srv3.xml", Srv3, 3, 0, [1, 1, 4_989]),
    ExpectedRecording("youtube/timedtext/ytt_Ruby.srv3.xml", Srv3, 5, 0, [1, 1, 4_989]),
    ExpectedRecording("youtube/timedtext/ytt_TextDirection.srv3.xml", Srv3, 14, 0, [1, 4_989, 9_626]),
    ExpectedRecording("youtube/timedtext/ytt_reference.srv3.xml", Srv3, 53, 0, [0, 52_000, 56_000]),
    ExpectedRecording(
        "youtube/timedtext/manual_zh_hant_classic.xml",
        TimedText,
        2,
        5,
        [6_500, 8_300, 11_000],
    ),
    ExpectedRecording("youtube/timedtext/asr_rolling.vtt", WebVtt, 3, 8, [286_070, 304_080, 305_069]),
    ExpectedRecording("tiktok/caption.asr.vtt", WebVtt, 3, 22, [0, 11_020, 12_200]),
    ExpectedRecording("x/caption.x-word-ms.vtt", WebVtt, 3, 19, [0, 6_084, 7_084]),
];

const UNREADABLE: [(&str, CaptionErrorKind); 3] = [
    ("youtube/timedtext/empty_200.body", Empty),
    ("youtube/timedtext/html_instead_of_captions.body", NotCaptions),
    ("youtube/timedtext/empty_transcript.xml", NoCues),
];

#[expect(clippy::disallowed_methods, reason = "only the test command knows the folder of the recordings")]
fn recordings() -> Option<PathBuf> {
    let folder = std::env::var_os("VERBATIM_RECORDINGS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("VERBATIM_RECORDINGS is not set: no recorded captions are checked");
    }
    folder
}

fn check(name: &str, segments: &[Segment], words: usize, [start, last_start, last_end]: [u64; 3]) {
    let first = segments.first().unwrap();
    let last = segments.last().unwrap();
    assert_eq!([first.start_ms, last.start_ms, last.end_ms()], [start, last_start, last_end], "{name}");
    if words > 0 {
        let found: usize = segments.iter().map(|segment| segment.text.split_whitespace().count()).sum();
        assert_eq!(found, words, "{name}");
    }
    for segment in segments {
        let text = &segment.text;
        assert!(!text.contains(['\u{200B}', '\u{FEFF}', '\0']), "{name}: {text:?}");
        // None of the recordings has a tag or a double space in its text.
        let is_markup =
            text.contains("<c") || text.contains("<X-") || text.contains("<0") || text.contains("&#");
        assert!(!is_markup && !text.contains("  "), "{name}: {text:?}");
    }
}

#[test]
fn recordings_parse_to_expected_segments() {
    let Some(folder) = recordings() else { return };
    for ExpectedRecording(name, format, count, words, times) in READABLE {
        let body = std::fs::read(folder.join(name)).unwrap();
        assert_eq!(sniff(&body), Some(format), "{name}");
        let segments = parse(&body).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(segments.len(), count, "{name}");
        check(name, &segments, words, times);
    }
    for (name, kind) in UNREADABLE {
        let body = std::fs::read(folder.join(name)).unwrap();
        assert_eq!(parse(&body).unwrap_err().kind(), kind, "{name}");
    }
    let listed = READABLE.iter().map(|known| known.0).chain(UNREADABLE.map(|(name, _)| name));
    let listed: Vec<_> = listed.map(|name| folder.join(name)).collect();
    for entry in std::fs::read_dir(folder.join("youtube/timedtext")).unwrap() {
        let path = entry.unwrap().path();
        assert!(listed.contains(&path), "{} is not checked by any test", path.display());
    }
}

#[test]
fn recordings_text_equals_displayed_text() {
    let Some(folder) = recordings() else { return };
    let texts = |name: &str| -> Vec<String> {
        let body = std::fs::read(folder.join(name)).unwrap();
        parse(&body).unwrap().into_iter().map(|segment| segment.text).collect()
    };
    // The padding of styling tools is removed, and ruby readings are in their brackets. A line that fades appears once
    // for each time it is steady.
    assert_eq!(
        texts("youtube/timedtext/ytt_Fade.srv3.xml"),
        ["Simple fade", "Complex fade", "Complex fade", "Complex fade"]
    );
    assert!(
        texts("youtube/timedtext/ytt_Ruby.srv3.xml")
            .iter()
            .skip(1)
            .all(|text| text.contains(")by(ビ)") || text.contains("(ルビ)"))
    );
    assert!(texts("youtube/timedtext/ytt_reference.srv3.xml").contains(&"漢(かん)字(じ)".to_owned()));
    // The rolling line appears once.
    let rolling = texts("youtube/timedtext/asr_rolling.vtt");
    let words: Vec<_> = rolling.iter().map(|text| text.split_whitespace().count()).collect();
    assert_eq!(words, [1, 1, 6]);
    // Line breaks inside a cue stay.
    assert!(texts("youtube/timedtext/manual_zh_hant_classic.xml")[0].contains("]\n"));
}

#[test]
fn recordings_json_keeps_every_word() {
    let Some(folder) = recordings() else { return };
    let body = std::fs::read(folder.join("youtube/timedtext/asr_50min_acAsrConf.json3")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let pieces =
        json["events"].as_array().unwrap().iter().filter_map(|event| event["segs"].as_array()).flatten();
    let all: String = pieces.filter_map(|piece| piece["utf8"].as_str()).collect();
    let found: String = parse(&body).unwrap().into_iter().map(|segment| segment.text).collect();
    let without_space = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    assert_eq!(without_space(&found), without_space(&all));
}

#[test]
fn recordings_words_have_times() {
    let Some(folder) = recordings() else { return };
    let read =
        |name: &str| parse(&std::fs::read(folder.join("youtube/timedtext").join(name)).unwrap()).unwrap();
    let without_space = |text: &str| text.split_whitespace().collect::<String>();
    for name in ["asr_50min_acAsrConf.json3", "asr_2026_punctuated.json3", "asr_fr_pens.srv3.xml"] {
        let segments = read(name);
        for segment in &segments {
            let words: String = segment.words.iter().map(|word| without_space(&word.text)).collect();
            assert_eq!(words, without_space(&segment.text), "{name}");
            assert!(segment.words.is_sorted_by_key(|word| word.start_ms), "{name}: {segment:?}");
            let inside = segment.start_ms..=segment.end_ms();
            assert!(segment.words.iter().all(|word| inside.contains(&word.start_ms)), "{name}: {segment:?}");
        }
        let read_back = parse(write_webvtt_with_words(&segments).as_bytes()).unwrap();
        // A lone word that fills its cue has no time.
        let words = |segments: &[Segment]| -> Vec<_> {
            let words = segments.iter().map(|segment| &segment.words).filter(|words| words.len() > 1);
            words.flatten().map(|word| (word.text.clone(), word.start_ms)).collect()
        };
        assert_eq!(words(&read_back), words(&segments), "{name}");
    }
    let first: Vec<Word> = read("asr_2026_punctuated.json3").swap_remove(0).words;
    assert_eq!(first[..2], [Word::new("So,", 80, 240), Word::new("this", 320, 320)]);
    assert_eq!(first[7], Word::new("3D", 2_399, 480), "the next line starts then");
    // Rolling lines appear once, with the words that remain.
    let rolling = read("asr_rolling.vtt").pop().unwrap().words;
    let starts: Vec<_> = rolling.iter().map(|word| (word.text.as_str(), word.start_ms)).collect();
    assert_eq!(starts[..2], [("this", 304_080), ("will", 304_199)]);
    assert_eq!(starts.last(), Some(&("telling", 305_069)));
    for name in ["manual_en.srv3.xml", "manual_zh_hant_classic.xml", "asr_music_only.srv3.xml"] {
        assert!(read(name).iter().all(|segment| segment.words.is_empty()), "{name}");
    }
}
