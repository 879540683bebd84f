//! Tests of the terms and of the moments.

use std::sync::Arc;

use super::{
    SearchDocument, SearchMoment, SearchQuery, SearchTotal, expression::RunMode, moments::moments,
    text_match::match_text, tokens::IndexTokenizers,
};
use crate::{
    archive::{StoredTranscript, content_digest},
    chat::tokenizer::{TokenKind, terms_with_ranges},
    time::Timestamp,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, TrackSelector, Transcript},
    video::{Platform, VideoId},
};

fn stored(language: &str, lines: &[&str]) -> StoredTranscript {
    let transcript = Transcript {
        video: VideoId::new(Platform::YouTube, "aaaaaaaaaaa").unwrap(),
        title: Some("Tide tables".to_owned()),
        author: Some("Sea News".to_owned()),
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::parse(language).unwrap(), TrackKind::Human),
        source: "imported".to_owned(),
        segments: lines.iter().zip(0..).map(|(line, n)| Segment::new(*line, n * 3_000, 2_500)).collect(),
    };
    StoredTranscript {
        content_sha256: content_digest(&transcript),
        transcript: Arc::new(transcript),
        revision: 1,
        parser_version: 1,
        stored_at: Timestamp::from_millis(0),
        details: Arc::default(),
    }
}

fn found(query: &str, stored: &StoredTranscript) -> Option<Vec<SearchMoment>> {
    let query = SearchQuery::parse(query).compile(RunMode::Strict)?;
    Some(moments(&stored.transcript.segments, &match_text(&query, stored, &IndexTokenizers::default())?))
}

fn rows(lines: &[&str], row_terms: usize) -> SearchDocument {
    SearchDocument::new(TrackSelector::Default, &stored("en", lines), row_terms)
}

#[test]
fn document_rows_repeat_terms_of_others() {
    let document = rows(&["one walrus", "two cats", "three pelicans"], 2);
    assert_eq!(document.rows.len(), 3);
    let first = &document.rows[0];
    assert_eq!((first.title.as_str(), first.channel.as_str()), ("tide tables", "sea news"));
    assert_eq!(first.words, "one walrus");
    let has = |text: &str, term: &str| text.split(' ').any(|known| known == term);
    for term in ["·entabl", "·enwalrus"] {
        assert!(has(&first.extras, term), "{term}: {}", first.extras);
    }
    for term in ["two", "cats", "·encat", "pelicans"] {
        assert!(has(&first.others, term), "{term}: {}", first.others);
    }
    assert!(!has(&first.others, "walrus"));
    assert_eq!(rows(&["one walrus"], 4_000).rows.len(), 1);
}

#[test]
fn document_phrases_are_in_one_row() {
    let words: Vec<String> = (100..400).map(|n| format!("w{n}")).collect();
    let document = rows(&[&words.join(" ")], 100);
    let lengths: Vec<usize> = document.rows.iter().map(|row| row.words.split(' ').count()).collect();
    assert_eq!(lengths, [100, 163, 163]);
    for phrase in words.windows(64) {
        let phrase = phrase.join(" ");
        assert!(document.rows.iter().any(|row| row.words.contains(&phrase)), "{phrase}");
    }
}

/// FTS5 ends a term at every ASCII character that is neither a letter nor a digit.
#[test]
fn document_terms_have_no_separator() {
    let lines = ["snake_case, it's ⑴ ½ ㎯ ﷺ a\u{37a}b", "Straße-Ärger 火山 e\u{301}_ 3.5"];
    for row in rows(&lines, 4).rows {
        for text in [row.title, row.channel, row.words, row.extras, row.others, row.facets] {
            let is_term =
                |letter: char| !letter.is_ascii() || letter.is_ascii_alphanumeric() || letter == ' ';
            assert!(text.chars().all(is_term), "{text}");
        }
    }
}

#[test]
fn document_memory_is_bounded() {
    let words: Vec<String> = (0..40_000).map(|n| format!("w{n}")).collect();
    let lines: Vec<String> = words.chunks(10).map(|words| words.join(" ")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let document = rows(&lines, 100);
    assert_eq!(document.rows.len(), 64);
    let bytes: usize =
        document.rows.iter().map(|row| row.words.len() + row.extras.len() + row.others.len()).sum();
    assert!(bytes < 64 * 17_000 * 8, "{bytes}");
}

#[test]
fn match_best_moments_come_first() {
    let lines = [
        "A tide came in the early morning, they said.",
        "Then a tide table, with tables and more.",
        "Nothing.",
    ];
    let moments = found("tide tables", &stored("en", &lines)).unwrap();
    assert_eq!(moments.len(), 2);
    assert_eq!(moments[0].text, lines[1]);
    assert_eq!(moments[0].matches, [(7, 11), (12, 17), (24, 30)]);
    assert_eq!(moments[1].matches, [(2, 6)]);
}

#[test]
fn match_title_alone_has_no_moments() {
    assert_eq!(found("\"tide tables\"", &stored("en", &["Nothing of it."])), Some(Vec::new()));
    assert_eq!(found("tide nothing", &stored("en", &["Nothing of it."])).unwrap().len(), 1);
    assert_eq!(found("absent", &stored("en", &["Nothing of it."])), None);
}

#[test]
fn match_unspaced_segments_are_joined_without_space() {
    let moments = found("爆发", &stored("zh", &["今天讲火山", "爆发的原因"])).unwrap();
    assert_eq!(moments[0].text, "今天讲火山爆发的原因");
    assert_eq!(moments[0].matches, [(5, 7)]);
}

#[test]
fn match_single_characters_adjoin_in_phrase() {
    let check = |query: &str, lines: &[&str], expect: Option<&[(u32, u32)]>| {
        let found = found(query, &stored("zh", lines));
        let matches = found.map(|moments| moments.into_iter().next().map(|moment| moment.matches));
        assert_eq!(matches.flatten().as_deref(), expect, "{query}");
    };
    check("\"3月\"", &["在3月的雨"], Some(&[(1, 3)]));
    check("\"3月\"", &["3 个人，月"], None);
    check("\"第3章\"", &["看第3章吧"], Some(&[(1, 4)]));
    check("\"第3章\"", &["第章3"], None);
    check("\"火山3月\"", &["看火山3月份"], Some(&[(1, 5)]));
    check("\"火山3月\"", &["火山月3月"], None);
    check("\"B 站 now\"", &["on B", "站, now"], Some(&[(3, 4), (5, 6), (8, 11)]));
    check("雨 -\"3月\"", &["3月的雨"], None);
    check("雨 -\"3月\"", &["3 月的雨和3个人"], None);
    check("雨 -\"3月\"", &["月的雨3"], Some(&[(2, 3)]));
}

#[test]
fn match_channel_has_single_characters() {
    let mut stored = stored("zh", &["王先生"]);
    for (author, query, expect) in [
        ("王志安", "channel:王", true),
        ("Sea News", "channel:王", false),
        ("老B站", "channel:B站", true),
        ("B 大站", "channel:B站", false),
    ] {
        Arc::make_mut(&mut stored.transcript).author = Some(author.to_owned());
        assert_eq!(found(query, &stored).is_some(), expect, "{author}: {query}");
    }
}

#[test]
fn match_kana_are_joined_and_keep_voicing() {
    let lines = ["バザーのおもちゃとはさみ"];
    for (query, expect) in [
        ("オモチャ", Some((4, 8))),
        ("ばざー", Some((0, 3))),
        ("ハサミ", Some((9, 12))),
        ("パサー", None),
        ("らーめん", None),
    ] {
        let found = found(query, &stored("ja", &lines)).map(|moments| moments[0].matches[0]);
        assert_eq!(found, expect, "{query}");
    }
}

/// A transcript with segments of these lengths in seconds.
fn timed(language: &str, lines: &[&str], seconds: u64) -> StoredTranscript {
    let mut stored = stored(language, lines);
    let duration = seconds * 1_000;
    let segments = lines.iter().zip(0..).map(|(line, n)| Segment::new(*line, n * duration, duration));
    Arc::make_mut(&mut stored.transcript).segments = segments.collect();
    stored
}

#[test]
fn match_moment_begins_near_match() {
    let texts = [("zh", "今天我们讲一讲", "火山"), ("th", "วันนี้เรามาพูดถึง", "ภูเขาไฟ")];
    for (language, line, query) in texts {
        let mut lines = vec![line; 20];
        lines.push(query);
        let moments = found(query, &timed(language, &lines, 4)).unwrap();
        let SearchMoment { start_ms, end_ms, .. } = moments[0];
        assert!((65_001..=80_000).contains(&start_ms) && end_ms == 84_000, "{language}: {start_ms} {end_ms}");
    }
}

#[test]
fn match_word_in_two_segments_is_in_one_moment() {
    let moments = |query: &str, lines: &[&str], seconds: u64| {
        let moments = found(query, &timed("ja", lines, seconds)).unwrap_or_default();
        moments.into_iter().map(|moment| (moment.text, moment.matches)).collect::<Vec<_>>()
    };
    let lines = ["フランスとシ", "ンガポール"];
    let expect = [("フランスとシンガポール".to_owned(), vec![(5, 11)])];
    assert_eq!(moments("シンガポール", &lines, 3), expect);
    assert_eq!(moments("\"シンガポール\"", &lines, 3), expect);
    // Also where a moment would end before the second one.
    assert_eq!(moments("シンガポール", &lines, 20), expect);
    assert_eq!(moments("フランス", &lines, 3), [("フランスとシンガポール".to_owned(), vec![(0, 4)])]);
    assert!(moments("シンガポール", &["フランスとシ。", "ンガポール"], 3).is_empty());
}

#[test]
fn match_phrase_in_several_segments_is_in_one_moment() {
    let check = |query: &str, lines: &[&str], seconds: u64, expect: (u64, usize, usize)| {
        let moments = found(query, &timed("en", lines, seconds)).unwrap();
        let first = &moments[0];
        assert_eq!((first.start_ms, first.matches.len(), moments.len()), expect, "{query}");
    };
    let lines =
        ["we walked", "for a day", "over the hills", "until the purple", "elephant sanctuary appeared"];
    // The last segment begins after 15 seconds.
    check("\"purple elephant sanctuary\"", &lines, 4, (0, 3, 1));
    check("\"the purple elephant\"", &lines, 20, (60_000, 3, 1));
    check("\"hills until the purple elephant\"", &lines, 20, (40_000, 5, 1));
    check("purple elephant", &lines, 20, (60_000, 1, 2));
    // The first line has the usual length of a moment.
    let long = "word ".repeat(60) + "purple";
    let lines = ["we walked", long.as_str(), "elephant", "sanctuary appeared"];
    check("\"purple elephant sanctuary\"", &lines, 3, (3_000, 3, 1));
}

#[test]
fn match_digits_of_other_scripts_are_those_of_ascii() {
    let lines = [
        ("ar", "في عام ١٩٣٢"),
        ("fa", "سال ۱۹۳۲"),
        ("hi", "यह १९३२ है"),
        ("th", "ปี๑๙๓๒"),
        ("ja", "１９３２年"),
        ("en", "in 1932"),
    ];
    for query in ["1932", "١٩٣٢", "१९३२", "\"1932\""] {
        for (language, line) in lines {
            assert!(found(query, &stored(language, &[line])).is_some(), "{query}: {line}");
        }
    }
    assert!(found("12000", &stored("ar", &["ثمن ١٢٬٠٠٠ دينار"])).is_some());
    assert!(found("3.5", &stored("ar", &["٣٫٥ كيلو"])).is_some());
    assert_eq!(found("35", &stored("ar", &["٣٫٥ كيلو"])), None);
}

#[test]
fn match_fraction_is_its_numbers() {
    let half = stored("en", &["Add 1½ cups"]);
    assert_eq!(found("½", &half).unwrap()[0].matches, [(5, 6)]);
    assert!(found("1/2", &half).is_some() && found("1½", &half).is_some());
    assert_eq!(found("12", &half).or(found("11", &half)), None);
    assert!(found("½", &stored("en", &["Add 1/2 cup"])).is_some());
}

#[test]
fn match_and_index_end_run_at_pause() {
    for (start_ms, is_word) in [(14_999, true), (15_000, false), (590_000, false)] {
        let mut stored = stored("zh", &[]);
        Arc::make_mut(&mut stored.transcript).segments =
            vec![Segment::new("火", 10_000, 2_000), Segment::new("山", start_ms, 2_000)];
        assert_eq!(found("火山", &stored).is_some(), is_word, "{start_ms}");
        assert!(found("山", &stored).is_some());
        let document = SearchDocument::new(TrackSelector::Default, &stored, 100);
        assert_eq!(document.rows[0].words.contains("火山"), is_word, "{start_ms}");
    }
}

#[test]
fn match_phrase_has_no_extra_terms() {
    let check = |query: &str, language: &str, line: &str, expect: bool| {
        assert_eq!(found(query, &stored(language, &[line])).is_some(), expect, "{query}: {line}");
    };
    check("\"しが が\"", "ja", "むかしが", false);
    check("\"しが が\"", "ja", "むかしが、が", true);
    check("\"000 12000\"", "en", "for 12,000 people", false);
    check("for -\"000 12000\"", "en", "for 12,000 people", true);
    check("\"12 000\"", "en", "for 12,000 people", true);
    let mut stored = stored("ja", &["一つ"]);
    Arc::make_mut(&mut stored.transcript).author = Some("むかしが".to_owned());
    assert!(found("channel:\"かしが\"", &stored).is_some());
    assert_eq!(found("channel:\"かし しが\"", &stored), None);
    assert_eq!(found("channel:\"しが が\"", &stored), None);
}

/// It takes minutes if each of the places is widened over all marks.
#[test]
fn match_very_many_marks_take_linear_time() {
    let marks = "\u{e48}".repeat(100_000);
    assert_eq!(found("\u{e48}\u{e48}\u{e48}", &stored("th", &[&marks])).unwrap().len(), 1);
    let few = "\u{e48}".repeat(9);
    let moments = found("\u{e48}\u{e48}\u{e48}", &stored("th", &[&few])).unwrap();
    assert_eq!(moments[0].matches, [(0, 9)]);
}

#[test]
fn match_quoted_run_is_exact() {
    let check = |query: &str, line: &str, expect: Option<&[(u32, u32)]>| {
        let found = found(query, &stored("ja", &[line]));
        let matches = found.map(|moments| moments.into_iter().next().unwrap().matches);
        assert_eq!(matches.as_deref(), expect, "{query}: {line}");
    };
    check("\"酒を\"", "その酒は古い", None);
    check("\"酒を\"", "その酒を飲む", Some(&[(2, 4)]));
    check("酒を", "その酒は古い", Some(&[(2, 3)]));
}

#[test]
fn match_marks_whole_letters_and_no_others() {
    let check = |language: &str, query: &str, line: &str, expect: Option<&str>| {
        let found = found(query, &stored(language, &[line]));
        let marked = found.map(|moments| {
            let moment = moments.into_iter().next().unwrap();
            let (start, end) = moment.matches[0];
            moment.text.chars().skip(start as usize).take((end - start) as usize).collect::<String>()
        });
        assert_eq!(marked.as_deref(), expect, "{query}: {line}");
    };
    check("th", "ไม้", "ฉันไม่รู้", None);
    check("th", "ไม้", "ต้นไม้ใหญ่", Some("ไม้"));
    check("th", "ต้น", "สี่ต้น", Some("ต้น"));
    check("th", "ไฟ", "เปิดไฟ", Some("ไฟ"));
    let unordered = "ก\u{e48}\u{e38}ง";
    check("th", unordered, unordered, Some(unordered));
    check("th", "ไอซ์แลนด์", "ที่ไอซ์แลนด์มี", Some("ไอซ์แลนด์"));
    check("ko", "섬", "섬입니다", Some("섬"));
    check("ko", "섬", "그섬", Some("섬"));
    let parts = "\u{1109}\u{1165}\u{110b}\u{116e}\u{11af}";
    check("ko", "서울", &format!("{parts}에서"), Some(parts));
    check("ko", parts, "서울에서", Some("서울"));
    check("ko", "서", parts, Some("\u{1109}\u{1165}"));
    check("hi", "गांव", "यह गाँव है", Some("गाँव"));
    check("hi", "हिंदी", "यह हिन्दी है", Some("हिन्दी"));
    check("hi", "हिन्दी", "यह हिंदी है", Some("हिंदी"));
    check("hi", "हिन्*", "यह हिंदी है", Some("हिंदी"));
    check("mr", "सम्बन्ध", "हा संबंध", Some("संबंध"));
    check("mr", "सन्\u{200D}त", "हा संत", Some("संत"));
    check("mr", "अन्न", "हा अंन", None);
    check("mr", "पन्जा", "हा पंजा", None);
    check("gu", "હિન્દી", "આ હિંદી", Some("હિંદી"));
    check("bn", "সংগীত", "এই সঙ্গীত", Some("সঙ্গীত"));
    check("bn", "হিন্দি", "এই হিংদি", None);
    check("ur", "دوسری", "یہ ہے۔دوسری بات", Some("دوسری"));
    check("am", "ለዓለም", "ሰላም፡ለዓለም፡ሁሉ።", Some("ለዓለም"));
    check("hy", "քաղաք", "մեծ քաղաք։Լիճ", Some("քաղաք"));
    check("he", "תל אביב", "העיר תל־אביב", Some("תל"));
    check("he", "אביב", "נסענו לתל־אביב", Some("אביב"));
    check("he", "צה\"ל", "היום צה״ל הודיע", Some("צה״ל"));
    check("he", "ש״ח", "עלה 5 ש\"ח", Some("ש\"ח"));
}

#[test]
fn match_phrase_of_runs_has_any_space() {
    let check = |query: &str, lines: &[&str], expect: Option<&[(u32, u32)]>| {
        let found = found(query, &stored("ja", lines));
        let matches = found.map(|moments| moments.into_iter().next().unwrap().matches);
        assert_eq!(matches.as_deref(), expect, "{query}: {lines:?}");
    };
    let query = "\"東京 大学\"";
    check(query, &["東京大学です"], Some(&[(0, 4)]));
    check(query, &["東京　大学です"], Some(&[(0, 2), (3, 5)]));
    check(query, &["東京", "大学です"], Some(&[(0, 4)]));
    check(query, &["東京の大学"], None);
    check(query, &["大学、東京"], None);
    check("\"東京 京都\"", &["東京都"], None);
    check("\"東京 京都\"", &["東京 京都"], Some(&[(0, 2), (3, 5)]));
    check("\"東京 京都\"", &["東京京都"], Some(&[(0, 4)]));
    check("\"東京 の 大学\"", &["東京の 大学"], Some(&[(0, 3), (4, 6)]));
    check("東京 -\"東京 大学\"", &["東京大学です"], None);
    check("\"ไม้ ไผ่\"", &["ต้นไม้ไผ่"], Some(&[(3, 9)]));
    check("\"ไม้ ไผ่\"", &["ต้นไม้ยาวไผ่"], None);
}

#[test]
fn match_words_with_apostrophe_are_those_of_text() {
    let is_found = |query: &str, line: &str| found(query, &stored("en", &[line])).is_some();
    assert!(is_found("it's", "Well, it’s late."));
    assert!(!is_found("it's", "At 3 p.m. in the U.S.A."));
    assert!(is_found("we'd", "and we'd go") && !is_found("we'd", "D-Day"));
    assert!(is_found("l'école", "une école") && is_found("qu'il", "il dit"));
    assert!(!is_found("c't", "T-shirts") && is_found("c't", "in der c't"));
}

#[test]
fn match_numbers_with_separators_are_those_without() {
    for query in ["12000", "12,000", "12.000", "$12,000", "12’000"] {
        for line in ["It costs $12,000.", "12000 people", "12.000 Leute", "12\u{202f}000 personnes"] {
            assert!(found(query, &stored("en", &[line])).is_some(), "{query}: {line}");
        }
        assert_eq!(found(query, &stored("en", &["12, 5000 and 112000"])), None, "{query}");
    }
    assert_eq!(found("12000", &stored("en", &["for $12,000 a year"])).unwrap()[0].matches, [(5, 11)]);
    for query in ["100000", "100,000", "1,00,000", "₹1,00,000"] {
        for line in ["It costs ₹1,00,000.", "It costs 100,000.", "100000 people"] {
            assert!(found(query, &stored("en", &[line])).is_some(), "{query}: {line}");
        }
        assert_eq!(found(query, &stored("en", &["1,00 and 1,00,00 and 12,00,000"])), None, "{query}");
    }
}

#[test]
fn match_turkish_letters_are_folded_and_stems_are_apart() {
    for query in ["IĞDIR", "Iğdır", "ığdır", "igdir"] {
        assert!(found(query, &stored("tr", &["Bugün Iğdır güneşli"])).is_some(), "{query}");
        assert_eq!(found(query, &stored("tr", &["Bir iki üç"])), None, "{query}");
    }
}

#[test]
fn match_long_segment_is_cut_around_match() {
    let check = |before: &str, after: &str, is_cut: bool| {
        let line = format!("{before} pelican {after}");
        let moments = found("pelican", &stored("en", &[&line])).unwrap();
        let (start, end) = moments[0].matches[0];
        let text: Vec<char> = moments[0].text.chars().collect();
        assert!(text.len() <= 2_000);
        assert_eq!(text.len() < line.trim().chars().count(), is_cut);
        assert_eq!(text[start as usize..end as usize].iter().collect::<String>(), "pelican");
    };
    check(&"word ".repeat(1_000), &"word ".repeat(1_000), true);
    // Longer than 1,000 characters before the match, but not too long.
    check(&"word".repeat(300), "", false);
    // More than 2,000 bytes.
    check(&"слово".repeat(300), "слово", false);
}

/// The terms of some texts, each with the letters of its range; extra ones in parentheses.
fn check_terms(texts: &[&str], expect: &str) {
    let letters: Vec<char> = texts.iter().flat_map(|text| text.chars()).collect();
    let mut found = Vec::new();
    terms_with_ranges(texts.iter().copied(), |term, range, kind| {
        let written: String = letters.get(range).unwrap().iter().collect();
        let term = if term.text() == written { written } else { format!("{}={written}", term.text()) };
        found.push(if kind == TokenKind::Extra { format!("({term})") } else { term });
    });
    assert_eq!(found.join(" "), expect, "{texts:?}");
}

#[test]
fn terms_of_runs_continue_in_next_text() {
    check_terms(&["ことシ", "ンガ"], "こと とし=とシ しん=シン んが=ンガ (が=ガ)");
    check_terms(&["火山", "爆发，", "好"], "火山 山爆 爆发 (火) (山) (爆) (发) 好");
    check_terms(&["火山\n爆发"], "火山 山爆=山\n爆 爆发 (火) (山) (爆) (发)");
    check_terms(&["서울", "에서"], "서울 (울) 에서 (서)");
    check_terms(&["火", "", "山"], "火 山");
    check_terms(&["one", "two"], "one two");
}

#[test]
fn terms_have_whole_letters() {
    check_terms(&["ไม่"], "ไม่ (ม่) (\u{e48})");
    check_terms(&["ไม้ไผ่"], "ไม้ ม้ไ ้ไผ ไผ่ (ผ่) (\u{e48})");
    let parts = "\u{1109}\u{1165}\u{110b}\u{116e}\u{11af}";
    check_terms(&[parts], &format!("서울={parts} (울=\u{110b}\u{116e}\u{11af})"));
}

#[test]
fn terms_of_numbers_have_their_digits() {
    check_terms(&["$12,000."], "12 000 (12000=12,000)");
    check_terms(&["1.450.000 or"], "1 450 000 (1450000=1.450.000) or");
    check_terms(&["1\u{a0}450\u{a0}000"], "1 450 000 (1450000=1\u{a0}450\u{a0}000)");
    check_terms(&["Route 66 500 miles"], "route=Route 66 500 miles");
    check_terms(&["1,234.56 12, 000 3.5 1234,567"], "1 234 (1234=1,234) 56 12 000 3 5 1234 567");
    check_terms(&["1,234.567"], "1 234 (1234=1,234) 567");
    check_terms(&["12", "000"], "12 000");
    check_terms(&["12,000円"], "12 000 (12000=12,000) 円");
    check_terms(&["12,34,567 to"], "12 34 567 (1234567=12,34,567) to");
    check_terms(&["1,00,00,000"], "1 00 00 000 (10000000=1,00,00,000)");
    check_terms(&["1,00,000,000"], "1 00 000 (100000=1,00,000) 000");
    check_terms(&["1,50 12,34 123,45,678"], "1 50 12 34 123 45 678 (45678=45,678)");
    check_terms(&["١٢٬٠٠٠"], "12=١٢ 000=٠٠٠ (12000=١٢٬٠٠٠)");
    check_terms(&["1½,000"], "1 1=½ 2=½ 000");
}

#[test]
fn total_is_written_as_number_of_videos() {
    for (value, is_exact, expect) in
        [(0, true, "0 videos"), (1, true, "1 video"), (1, false, "at least 1 video"), (20, true, "20 videos")]
    {
        assert_eq!(SearchTotal { value, is_exact }.to_string(), expect);
    }
}
